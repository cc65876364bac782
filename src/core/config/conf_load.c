/* SPDX-License-Identifier: PostgreSQL
 * conf_load.c: makes generations: reading, defaults, values, what is kept at reload, the canonical
 * text.
 * Runs in: every process. A generation is made whole or not at all, and is never changed after. */
#include "config.h"

#include "conf_int.h"

#include "base/arena.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONF_CANONICAL_HEAD "#! pgpool settings "

/* ---- beginning and end ---- */

static struct conf_gen *conf_gen_new(uint64_t number, const char *command_line)
{
    struct conf_gen *gen = mem_alloc_zero(sizeof(*gen));
    gen->arena = arena_new_secret("conf generation", 0);
    gen->number = number;
    gen->command_line = command_line == NULL ? NULL : arena_strdup(gen->arena, command_line);
    gen->conf.pools = pools_conf_new(gen->arena);
    return gen;
}

void conf_gen_free(struct conf_gen **gp)
{
    if (*gp == NULL)
        return;
    pools_conf_fini((*gp)->conf.pools);
    arena_free(&(*gp)->arena);
    mem_wipe(*gp, sizeof(**gp));
    mem_free(*gp);
    *gp = NULL;
}

const struct conf *conf_of(const struct conf_gen *gen)
{
    return &gen->conf;
}

uint64_t conf_number(const struct conf_gen *gen)
{
    return gen->number;
}

const char *conf_file(const struct conf_gen *gen)
{
    return gen->file;
}

const char *conf_base_dir(const struct conf_gen *gen)
{
    return gen->base_dir;
}

/* Makes `path` absolute without needing it to exist, and notes its folder. */
static void conf_set_file(struct conf_gen *gen, const char *path)
{
    char cwd[PATH_MAX];
    if (path[0] == '/' || getcwd(cwd, sizeof(cwd)) == NULL)
        gen->file = arena_strdup(gen->arena, path);
    else
        gen->file = arena_printf(gen->arena, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path);
    const char *slash = strrchr(gen->file, '/');
    if (slash == NULL)
        gen->base_dir = ".";
    else if (slash == gen->file)
        gen->base_dir = "/";
    else
        gen->base_dir = arena_strndup(gen->arena, gen->file, (size_t)(slash - gen->file));
}

static void conf_load_begin(
    struct conf_reading *load, struct conf_gen *gen, struct conf_report *report)
{
    int n;
    int slots = 0;
    const struct conf_param *t = conf_param_table(&n);
    memset(load, 0, sizeof(*load));
    load->gen = gen;
    load->report = report;
    load->slot_base = mem_alloc((size_t)n * sizeof(load->slot_base[0]));
    for (int i = 0; i < n; i++) {
        load->slot_base[i] = slots;
        slots += conf_scope_count(t[i].scope);
    }
    load->slot = mem_alloc_zero((size_t)slots * sizeof(load->slot[0]));
}

static void conf_load_end(struct conf_reading *load)
{
    mem_free(load->slot);
    mem_free(load->slot_base);
}

/* ---- values ---- */

/* Stores the value that was found for `ref`; a bad one is reported and leaves the default. */
static void conf_apply_slot(
    struct conf_reading *load, const struct conf_ref *ref, const struct conf_slot *slot, void *at)
{
    struct err err = {0};
    char name[CONF_NAME_SIZE];
    conf_ref_name(ref, name);
    if (conf_value_parse(load->gen->arena, ref->param, name, slot->value, at, &err) == -1)
        conf_report_err(load->report, CONF_ERROR, slot->file, slot->line, &err);
}

/* Stores default or given value of every parameter. */
static void conf_apply(struct conf_reading *load)
{
    struct conf_gen *gen = load->gen;
    struct conf_ref ref = {NULL, -1};
    while (conf_ref_next(&ref)) {
        void *at = conf_value_at(&gen->conf, &ref);
        const struct conf_slot *slot = conf_slot_of(load, &ref);
        conf_value_default(gen->arena, ref.param, at);
        if (slot->value != NULL)
            conf_apply_slot(load, &ref, slot, at);
    }
}

/* Gives each server the common value of what it has no own value for. */
static void conf_apply_common(struct conf_reading *load)
{
    int n;
    struct conf *conf = &load->gen->conf;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        struct conf_ref common = {conf_param_named(CONF_SCOPE_GLOBAL, t[i].name), -1};
        if (t[i].scope != CONF_SCOPE_NODE || common.param == NULL)
            continue;
        for (int k = 0; k < CONF_MAX_NODES; k++) {
            struct conf_ref own = {&t[i], k};
            if (conf_slot_of(load, &own)->value == NULL)
                memcpy(conf_value_at(conf, &own), conf_value_of(conf, &common),
                    conf_value_size(&t[i]));
        }
    }
}

static void conf_count_nodes(struct conf *conf)
{
    conf->nnodes = 0;
    conf->nwd_nodes = 0;
    conf->nheartbeats = 0;
    for (int i = 0; i < CONF_MAX_NODES; i++) {
        conf->nodes[i].backend_flag |=
            (conf->nodes[i].backend_flag & CONF_BACKEND_DISALLOW_FAILOVER) != 0
                ? 0U
                : (unsigned)CONF_BACKEND_ALLOW_FAILOVER;
        if (conf->nodes[i].backend_port != 0)
            conf->nnodes = i + 1;
    }
    for (int i = 0; i < CONF_MAX_WD_NODES; i++)
        if (conf->wd_nodes[i].wd_port != 0)
            conf->nwd_nodes = i + 1;
    for (int i = 0; i < CONF_MAX_HEARTBEATS; i++)
        if (conf->heartbeats[i].heartbeat_port != 0)
            conf->nheartbeats = i + 1;
}

/* connection_life_time is pgpool-II's word for server_idle_timeout. */
static void conf_apply_idle_timeout(struct conf_reading *load)
{
    struct conf *conf = &load->gen->conf;
    struct conf_ref ref = {conf_param_named(CONF_SCOPE_GLOBAL, "server_idle_timeout"), -1};
    if (conf->connection_life_time_ms > 0 && conf_slot_of(load, &ref)->value == NULL)
        conf->server_idle_timeout_ms = conf->connection_life_time_ms;
}

static void conf_apply_session(struct conf_gen *gen)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        struct conf_ref ref = {&t[i], -1};
        if (t[i].context == CONF_CONTEXT_SESSION)
            memcpy((char *)&gen->session + t[i].session_offset, conf_value_of(&gen->conf, &ref),
                conf_value_size(&t[i]));
    }
}

/* ---- reload ---- */

static void conf_report_kept(
    struct conf_reading *load, const struct conf_ref *ref, const char *hint)
{
    char name[CONF_NAME_SIZE];
    const struct conf_slot *slot = conf_slot_of(load, ref);
    conf_ref_name(ref, name);
    conf_report_add(load->report, CONF_WARNING, slot->value == NULL ? load->gen->file : slot->file,
        slot->line, hint, "parameter \"%s\" cannot be changed without restarting", name);
    load->report->issue[load->report->n - 1].is_kept = true;
}

/* Gives `ref` its old value back; says so when it was to change. */
static void conf_keep(
    struct conf_reading *load, const struct conf *old, const struct conf_ref *ref, const char *hint)
{
    void *at = conf_value_at(&load->gen->conf, ref);
    const void *was = conf_value_of(old, ref);
    if (conf_value_equal(ref->param, at, was))
        return;
    if (hint != NULL)
        conf_report_kept(load, ref, hint);
    conf_value_copy(load->gen->arena, ref->param, at, was);
}

static void conf_keep_startup(struct conf_reading *load, const struct conf *old)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        struct conf_ref ref = {&t[i], -1};
        if (t[i].context == CONF_CONTEXT_STARTUP && t[i].scope == CONF_SCOPE_GLOBAL)
            conf_keep(load, old, &ref, "It keeps its old value until then.");
    }
}

/* Servers that exist keep host and port, and do not go away. */
static void conf_keep_nodes(struct conf_reading *load, const struct conf *old)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    for (int k = 0; k < old->nnodes; k++) {
        if (old->nodes[k].backend_port == 0)
            continue;
        bool is_gone = load->gen->conf.nodes[k].backend_port == 0;
        if (is_gone)
            conf_report_add(load->report, CONF_WARNING, load->gen->file, 0,
                "Detach it to keep clients away from it.",
                "server %d is no longer in the file; it is kept until pgpool is restarted", k);
        for (int i = 0; i < n; i++) {
            struct conf_ref ref = {&t[i], k};
            if (t[i].scope != CONF_SCOPE_NODE)
                continue;
            if (is_gone)
                conf_keep(load, old, &ref, NULL);
            else if (strcmp(t[i].name, "backend_hostname") == 0 ||
                     strcmp(t[i].name, "backend_port") == 0)
                conf_keep(load, old, &ref,
                    "The server keeps its old address; a new one may be added under a free "
                    "number.");
        }
    }
}

/* ---- loading ---- */

/* pools.conf: after it is known which file that is. Another process was given its text. */
static void conf_settle_pools(struct conf_reading *load, const struct conf *old)
{
    struct conf *conf = &load->gen->conf;
    struct conf_ref ref = {conf_param_named(CONF_SCOPE_GLOBAL, "pools_file"), -1};
    if (load->is_canonical)
        pools_conf_undump(conf->pools, load->pools_text, load->report);
    else if (load->is_file)
        pools_conf_load(load, old, conf->pools_file, conf_slot_of(load, &ref)->value != NULL);
}

/* All values and rules. */
static void conf_settle(struct conf_reading *load, const struct conf *old)
{
    conf_apply(load);
    conf_apply_common(load);
    if (old != NULL) {
        conf_keep_startup(load, old);
        conf_keep_nodes(load, old);
    }
    conf_apply_idle_timeout(load); /* after it is known which life time holds */
    conf_count_nodes(&load->gen->conf);
    conf_apply_session(load->gen);
    conf_settle_pools(load, old);
    conf_check(load);
}

/* All that follows reading; nothing does when the file itself could not be read. Frees the
 * generation when there was an error. */
static struct conf_gen *conf_finish(struct conf_reading *load, const struct conf *old, bool is_read)
{
    struct conf_gen *gen = load->gen;
    if (gen->command_line != NULL)
        conf_read_text(load, "command line", slice_of_str(gen->command_line));
    if (is_read)
        conf_settle(load, old);
    if (load->is_file)
        conf_where_note(load);
    conf_load_end(load);
    conf_report_sort(load->report);
    if (load->report->nerrors > 0)
        conf_gen_free(&gen);
    return gen;
}

struct conf_gen *conf_load(const char *path, const char *command_line, struct conf_report *report)
{
    struct conf_reading load;
    struct conf_gen *gen = conf_gen_new(1, command_line);
    conf_set_file(gen, path);
    conf_load_begin(&load, gen, report);
    load.is_file = true;
    bool is_read = conf_read_file(&load, path) == 0;
    return conf_finish(&load, NULL, is_read);
}

struct conf_gen *conf_load_text(const char *name, struct slice text, struct conf_report *report)
{
    struct conf_reading load;
    struct conf_gen *gen = conf_gen_new(1, NULL);
    conf_set_file(gen, name);
    conf_load_begin(&load, gen, report);
    conf_read_text(&load, gen->file, text);
    return conf_finish(&load, NULL, true);
}

struct conf_gen *conf_reload(
    const struct conf_gen *old, const char *path, struct conf_report *report)
{
    struct conf_reading load;
    struct conf_gen *gen = conf_gen_new(old->number + 1, old->command_line);
    conf_set_file(gen, path);
    conf_load_begin(&load, gen, report);
    load.is_file = true;
    bool is_read = conf_read_file(&load, path) == 0;
    return conf_finish(&load, &old->conf, is_read);
}

/* ---- canonical text ---- */

void conf_dump_canonical(const struct conf_gen *gen, struct buf *out)
{
    struct buf value = {.is_secret = true};
    struct conf_ref ref = {NULL, -1};
    buf_printf(out, CONF_CANONICAL_HEAD "%llu %s\n", (unsigned long long)gen->number, gen->file);
    while (conf_ref_next(&ref)) {
        char name[CONF_NAME_SIZE];
        if (!conf_exists(&gen->conf, ref.param->scope, ref.index))
            continue;
        buf_clear(&value);
        conf_value_format(ref.param, conf_value_of(&gen->conf, &ref), CONF_STYLE_CANONICAL, &value);
        buf_put_byte(&value, '\0');
        conf_ref_name(&ref, name);
        buf_printf(out, "%s = ", name);
        conf_quote(value.data, out);
        buf_put_byte(out, '\n');
    }
    pools_conf_dump(gen->conf.pools, out);
    buf_free(&value);
}

struct conf_gen *conf_load_canonical(struct slice text, struct conf_report *report)
{
    struct conf_reading load;
    const char *eol = text.n == 0 ? NULL : memchr(text.p, '\n', text.n);
    size_t head = strlen(CONF_CANONICAL_HEAD);
    char line[PATH_MAX + 64];
    if (eol == NULL || (size_t)(eol - text.p) < head || (size_t)(eol - text.p) >= sizeof(line) ||
        memcmp(text.p, CONF_CANONICAL_HEAD, head) != 0) {
        conf_report_add(report, CONF_ERROR, NULL, 0, NULL, "settings handed over lack their head");
        return NULL;
    }
    snprintf(line, sizeof(line), "%.*s", (int)((size_t)(eol - text.p) - head), text.p + head);
    char *file;
    unsigned long long number = strtoull(line, &file, 10);
    struct conf_gen *gen = conf_gen_new(number, NULL);
    conf_set_file(gen, *file == ' ' ? file + 1 : file);
    conf_load_begin(&load, gen, report);
    load.is_canonical = true;
    load.pools_text = pools_conf_split(&text);
    conf_read_text(&load, gen->file, text);
    return conf_finish(&load, NULL, true);
}
