/* SPDX-License-Identifier: PostgreSQL
 * wd_place.c: on which interface the virtual address belongs.
 * Runs in: watchdog. Existing files say it in a command for the shell; nobody should have to say it
 * twice, so the words of `ip` are read there. Must never change anything. */
#include "config.h"

#include "wd_place.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACEHOLDER "$_IP_$"

/* ---- the command's words ---- */

/* Copies the next word into `word`; false at the end. */
static bool next_word(const char **p, char *word, size_t size)
{
    size_t n;

    while (isspace((unsigned char)**p))
        (*p)++;
    n = strcspn(*p, " \t");
    if (n == 0)
        return false;
    snprintf(word, size, "%.*s", (int)n, *p);
    *p += n;
    return true;
}

static void keep(char to[IFNAMSIZ], const char *word)
{
    if (strlen(word) < IFNAMSIZ)
        memcpy(to, word, strlen(word) + 1);
}

static void read_prefix(const char *word, int *prefix)
{
    size_t n = strlen(PLACEHOLDER);
    char *end;
    long value;

    if (strncmp(word, PLACEHOLDER "/", n + 1) != 0)
        return;
    value = strtol(word + n + 1, &end, 10);
    if (end != word + n + 1 && *end == '\0' && value >= 0 && value <= 128)
        *prefix = (int)value;
}

/* The label of an alias belongs to the interface in front of its colon. */
static void read_ifconfig(const char *name, struct wd_place_words *words)
{
    keep(words->label, strchr(name, ':') != NULL ? name : "");
    keep(words->dev, name);
    words->dev[strcspn(words->dev, ":")] = '\0';
}

void wd_place_read(const char *command, struct wd_place_words *words)
{
    char word[256];
    char before[256] = "";
    const char *p = command;
    const char *base;

    *words = (struct wd_place_words){.prefix = -1};
    while (next_word(&p, word, sizeof word)) {
        base = strrchr(before, '/') == NULL ? before : strrchr(before, '/') + 1;
        if (strcmp(before, "dev") == 0)
            keep(words->dev, word);
        else if (strcmp(before, "label") == 0)
            keep(words->label, word);
        else if (strcmp(base, "ifconfig") == 0)
            read_ifconfig(word, words);
        else
            read_prefix(word, &words->prefix);
        memcpy(before, word, sizeof before);
    }
}

/* ---- the machine ---- */

int wd_place_look(struct wd_place_host *host, struct err *err)
{
    host->naddrs = ifaddr_list(host->addr, IFADDR_MAX, err);
    host->nlinks = iflink_list(host->link, IFLINK_MAX, err);
    return host->naddrs == -1 || host->nlinks == -1 ? -1 : 0;
}

const struct net_addr *wd_place_find(const struct wd_place_host *host, const struct net_ip *ip)
{
    int i;

    for (i = 0; i < host->naddrs; i++)
        if (net_ip_eq(&host->addr[i].ip, ip))
            return &host->addr[i];
    return NULL;
}

static const struct iflink *link_named(const struct wd_place_host *host, const char *name)
{
    int i;

    for (i = 0; i < host->nlinks; i++)
        if (strcmp(host->link[i].name, name) == 0)
            return &host->link[i];
    return NULL;
}

static const struct iflink *link_numbered(const struct wd_place_host *host, unsigned ifindex)
{
    int i;

    for (i = 0; i < host->nlinks; i++)
        if (host->link[i].ifindex == ifindex)
            return &host->link[i];
    return NULL;
}

/* The narrowest network that has the address, on the interface `only` (0: on any); the address
 * itself, which a former process may have left, is no network. */
static const struct net_addr *network_of(
    const struct wd_place_host *host, const struct net_ip *ip, unsigned only)
{
    const struct net_addr *best = NULL;
    const struct net_addr *a;
    int i;

    for (i = 0; i < host->naddrs; i++) {
        a = &host->addr[i];
        if (net_ip_eq(&a->ip, ip) || !net_ip_in(ip, &a->ip, a->prefix))
            continue;
        if ((only == 0 || a->ifindex == only) && (best == NULL || a->prefix > best->prefix))
            best = a;
    }
    return best;
}

static const struct iflink *choose_link(const struct wd_place_host *host,
    const struct wd_place_words *words, bool is_default, const struct net_ip *ip)
{
    const struct net_addr *net = network_of(host, ip, 0);

    if (net != NULL && (is_default || words->dev[0] == '\0'))
        return link_numbered(host, net->ifindex);
    return link_named(host, words->dev);
}

static int refuse(const struct wd_place_words *words, const struct net_ip *ip, struct err *err)
{
    char text[NET_IP_TEXT];

    (void)net_ip_text(ip, text);
    if (words->dev[0] == '\0')
        err_set(err, "55000", "there is no network interface for the address %s", text);
    else
        err_set(err, "55000", "there is no network interface \"%s\" for the address %s", words->dev,
            text);
    err_hint(err, "Name the interface in if_up_cmd: ... dev NAME.");
    return -1;
}

int wd_place_choose(const struct wd_place_host *host, const struct wd_place_words *words,
    bool is_default, const struct net_ip *ip, struct net_addr *where, struct iflink *link,
    struct err *err)
{
    int whole = (int)net_ip_size(ip) * 8;
    const struct iflink *chosen = choose_link(host, words, is_default, ip);
    const struct net_addr *net;

    if (chosen == NULL)
        return refuse(words, ip, err);
    net = network_of(host, ip, chosen->ifindex);
    *link = *chosen;
    *where = (struct net_addr){.ip = *ip, .ifindex = chosen->ifindex, .prefix = whole};
    if (words->prefix != -1 && words->prefix <= whole && !is_default)
        where->prefix = words->prefix;
    else if (net != NULL)
        where->prefix = net->prefix;
    else if (words->prefix != -1 && words->prefix <= whole && ip->family == AF_INET)
        where->prefix = words->prefix;
    /* The kernel wants labels to begin with the name of the interface. */
    if (strncmp(words->label, chosen->name, strlen(chosen->name)) == 0)
        memcpy(where->label, words->label, sizeof where->label);
    return 0;
}
