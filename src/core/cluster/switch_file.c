/* SPDX-License-Identifier: PostgreSQL
 * switch_file.c: what a switchover has done to servers, and whom a failover may have told to be the
 * primary, kept over the end of all of pgpool.
 * Runs in: monitor. A line has a word and, between tabs, what belongs to it. */
#include "config.h"

#include "cluster/switch_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status_file_int.h"

#define FILE_NAME "pgpool_status.switch"
#define MAX_WORDS 3

/* The sets of nodes that are kept. */
static const struct {
    const char *word;
    size_t at;
} sets[] = {
    {"fenced", offsetof(struct view_switch, fenced)},
    {"fence_set", offsetof(struct view_switch, fence_set)},
    {"moved", offsetof(struct view_switch, moved)},
    {"slotted", offsetof(struct view_switch, slotted)},
};
#define NSETS (sizeof sets / sizeof sets[0])

/* The single nodes, each with its word. */
static const struct {
    const char *word;
    size_t at;
} singles[] = {
    {"moved_to", offsetof(struct view_switch, moved_to)},
    {"old", offsetof(struct view_switch, node)},
    {"new", offsetof(struct view_switch, target)},
};
#define NSINGLES (sizeof singles / sizeof singles[0])

static uint64_t *set_of(struct view_switch *sw, size_t i)
{
    return (uint64_t *)((char *)sw + sets[i].at);
}

static int32_t *single_of(struct view_switch *sw, size_t i)
{
    return (int32_t *)((char *)sw + singles[i].at);
}

static void put_node(struct buf *out, const char *word, const struct decide_rules *rules, int node)
{
    if (node >= 0 && node < rules->nnodes && rules->node[node].exists)
        buf_printf(out, "%s\t%s\t%d\n", word, rules->node[node].host, rules->node[node].port);
}

void switch_file_format(
    const struct decide_rules *rules, const struct view_switch *sw, struct buf *out)
{
    struct view_switch copy = *sw;
    bool is_ordered = !sw->is_asked_for && sw->phase == VIEW_PHASE_PROMOTE;
    size_t start = out->len;
    size_t i;
    int node;

    for (i = 0; i < NSETS; i++)
        for (node = 0; node < rules->nnodes; node++)
            if (view_has_node(set_of(&copy, i), node))
                put_node(out, sets[i].word, rules, node);
    if (out->len != start)
        put_node(out, "moved_to", rules, sw->moved_to);
    if (sw->unsure_us != 0 || is_ordered)
        buf_printf(out, "lost\t%" PRId64 "\t\n", is_ordered ? sw->phase_us : sw->unsure_us);
    else if (out->len != start && sw->pending_us != 0)
        buf_printf(out, "pending\t%" PRId64 "\t%s\n", sw->pending_us, sw->who);
    else
        return;
    buf_printf(out, "timeline\t%" PRIu32 "\t\n", sw->timeline);
    put_node(out, "old", rules, sw->node);
    put_node(out, "new", rules, sw->target);
}

static int find_node(const struct decide_rules *rules, const char *host, const char *port)
{
    int i;

    for (i = 0; i < rules->nnodes; i++)
        if (rules->node[i].exists && strcmp(rules->node[i].host, host) == 0 &&
            rules->node[i].port == atoi(port))
            return i;
    return VIEW_NO_NODE;
}

/* 0, or 1 when the server is not known. */
static int take_node(
    char *word[MAX_WORDS], const struct decide_rules *rules, struct view_switch *sw)
{
    int node = find_node(rules, word[1], word[2]);
    size_t i;

    if (node == VIEW_NO_NODE)
        return 1;
    for (i = 0; i < NSETS; i++)
        if (strcmp(word[0], sets[i].word) == 0)
            set_of(sw, i)[node / 64] |= UINT64_C(1) << (node % 64);
    for (i = 0; i < NSINGLES; i++)
        if (strcmp(word[0], singles[i].word) == 0)
            *single_of(sw, i) = node;
    return 0;
}

static int take_line(char *line, const struct decide_rules *rules, struct view_switch *sw)
{
    char *word[MAX_WORDS];
    int n = 0;

    while (n < MAX_WORDS && line != NULL)
        word[n++] = strsep(&line, "\t");
    if (n < MAX_WORDS)
        return 0;
    if (strcmp(word[0], "lost") == 0) {
        sw->unsure_us = strtoll(word[1], NULL, 10);
        return 0;
    }
    if (strcmp(word[0], "timeline") == 0) {
        sw->timeline = (uint32_t)strtoul(word[1], NULL, 10);
        return 0;
    }
    if (strcmp(word[0], "pending") != 0)
        return take_node(word, rules, sw);
    sw->pending_us = strtoll(word[1], NULL, 10);
    memset(sw->who, 0, sizeof sw->who);
    memcpy(sw->who, word[2], strnlen(word[2], sizeof sw->who - 1));
    return 0;
}

int switch_file_parse(struct slice text, const struct decide_rules *rules, struct view_switch *sw)
{
    struct buf copy = {0};
    int nunknown = 0;
    size_t i;
    char *rest;

    memset(sw, 0, sizeof *sw);
    for (i = 0; i < NSINGLES; i++)
        *single_of(sw, i) = VIEW_NO_NODE;
    buf_put(&copy, text.p, text.n);
    buf_put_byte(&copy, '\0');
    rest = copy.data;
    while (rest != NULL)
        nunknown += take_line(strsep(&rest, "\n"), rules, sw);
    if (sw->node == VIEW_NO_NODE || sw->target == VIEW_NO_NODE)
        sw->pending_us = sw->unsure_us = sw->timeline = 0;
    buf_free(&copy);
    return nunknown;
}

int switch_file_save(const char *dir, const struct buf *text, struct err *err)
{
    return text->len == 0 ? status_file_remove(dir, FILE_NAME, err)
                          : status_file_write(dir, FILE_NAME, text, err);
}

void switch_file_load(const char *dir, struct buf *out, struct err *err)
{
    status_file_read(dir, FILE_NAME, out, err);
}
