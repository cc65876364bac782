/* SPDX-License-Identifier: PostgreSQL
 * hook.h: what an operator's command (failover_command, failback_command, follow_primary_command)
 * is told: its line with the signs replaced, its environment, and a JSON object for its input.
 * Runs in: monitor. Pure. Values come from settings and from servers: none of them may become words
 * or commands of the shell that nobody wrote. */
#ifndef PGP_CLUSTER_HOOK_H
#define PGP_CLUSTER_HOOK_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cluster/view.h"

#define HOOK_MAX_ENV 24

enum hook_kind { HOOK_FAILOVER, HOOK_FAILBACK, HOOK_FOLLOW };

/* One server as a command sees it. Strings are borrowed. */
struct hook_node {
    int id; /* VIEW_NO_NODE: there is none; the rest is empty then */
    const char *host;
    int port;
    const char *data_dir;
};

struct hook_facts {
    enum hook_kind kind;
    const char *reason;
    const char *who;
    uint32_t epoch;        /* of the failover, in the log of a watchdog cluster; 0: it is in none */
    struct hook_node node; /* lost, returned, or to follow: %d %h %p %D */
    struct hook_node new_main;    /* %m %H %r %R */
    struct hook_node old_main;    /* %M */
    struct hook_node old_primary; /* %P %N %S */
    int nnodes;
    const struct hook_node *nodes; /* all, in order of their numbers */
    const struct view *view;       /* what is known of them */
};

/* Appends `line` with its signs replaced, and a NUL. A value with letters that mean something to
 * the shell is quoted as its place in the line wants it. -1 with *err when it stands where that
 * cannot be done safely (in a command substitution). */
int hook_line(const char *line, const struct hook_facts *f, struct buf *out, struct err *err);
/* Appends NAME=value, each with its NUL; returns how many. */
int hook_env(const struct hook_facts *f, struct buf *out);
/* Appends the facts as one line of JSON. */
void hook_json(const struct hook_facts *f, struct buf *out);
/* "failover", "failback" or "follow_primary". */
const char *hook_name(enum hook_kind kind);

#endif
