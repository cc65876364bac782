/* SPDX-License-Identifier: PostgreSQL
 * hook.c: what an operator's command is told.
 * Runs in: monitor. Pure. The line follows the shell's quoting as far as it must to know how a
 * value has to be written at its place; where it would have to understand more than that, it
 * refuses. */
#include "config.h"

#include "cluster/hook.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Where in the line we are. */
struct quoting {
    bool in_single;
    bool in_double;
    bool is_beyond_us; /* `, $( and the like were seen: we do not know any more where we are */
};

const char *hook_name(enum hook_kind kind)
{
    switch (kind) {
    case HOOK_FAILOVER:
        return "failover";
    case HOOK_FAILBACK:
        return "failback";
    case HOOK_FOLLOW:
        break;
    }
    return "follow_primary";
}

/* Letters that are no more than themselves in every place of a line. */
static bool is_plain(const char *s)
{
    static const char extra[] = "_-./:@%+,=";
    const char *p;

    for (p = s; *p != '\0'; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');

        if (!letter && !(*p >= '0' && *p <= '9') && strchr(extra, *p) == NULL)
            return false;
    }
    return true;
}

static bool has_control(const char *s)
{
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < ' ')
            return true;
    return false;
}

static void put_single(const char *s, struct buf *out)
{
    for (; *s != '\0'; s++) {
        if (*s == '\'')
            buf_put(out, "'\\''", 4);
        else
            buf_put_byte(out, *s);
    }
}

static void put_double(const char *s, struct buf *out)
{
    for (; *s != '\0'; s++) {
        if (strchr("\\\"$`", *s) != NULL)
            buf_put_byte(out, '\\');
        buf_put_byte(out, *s);
    }
}

static int put_value(const struct quoting *q, const char *s, struct buf *out, struct err *err)
{
    if (s[0] != '\0' && is_plain(s)) {
        buf_put(out, s, strlen(s));
        return 0;
    }
    if (s[0] != '\0' && (q->is_beyond_us || has_control(s))) {
        err_set(err, "22023", "a value cannot be put into the command safely");
        err_detail(err, "The value is \"%.100s\"; it has unusual letters.", s);
        err_hint(err, "Let the command read it from its environment (PGPOOL_...).");
        return -1;
    }
    if (q->in_single) {
        put_single(s, out);
    } else if (q->in_double) {
        put_double(s, out);
    } else if (s[0] == '\0') {
        buf_put(out, "\"\"", 2);
    } else {
        buf_put_byte(out, '\'');
        put_single(s, out);
        buf_put_byte(out, '\'');
    }
    return 0;
}

static int put_number(int number, bool exists, struct buf *out)
{
    if (exists)
        buf_printf(out, "%d", number);
    else
        buf_put(out, "\"\"", 2);
    return 0;
}

static int put_id(const struct hook_node *n, struct buf *out)
{
    return put_number(n->id, n->id != VIEW_NO_NODE, out);
}

static int put_sign(char sign, const struct hook_facts *f, const struct quoting *q, struct buf *out,
    struct err *err)
{
    switch (sign) {
    case 'd':
        return put_id(&f->node, out);
    case 'h':
        return put_value(q, f->node.host, out, err);
    case 'p':
        return put_number(f->node.port, f->node.id != VIEW_NO_NODE, out);
    case 'D':
        return put_value(q, f->node.data_dir, out, err);
    case 'm':
        return put_id(&f->new_main, out);
    case 'H':
        return put_value(q, f->new_main.host, out, err);
    case 'r':
        return put_number(f->new_main.port, f->new_main.id != VIEW_NO_NODE, out);
    case 'R':
        return put_value(q, f->new_main.data_dir, out, err);
    case 'M':
        return put_id(&f->old_main, out);
    case 'P':
        return put_id(&f->old_primary, out);
    case 'N':
        return put_value(q, f->old_primary.host, out, err);
    case 'S':
        return put_number(f->old_primary.port, f->old_primary.id != VIEW_NO_NODE, out);
    case '%':
        buf_put_byte(out, '%');
        return 0;
    default: /* dropped, as pgpool-II does */
        return 0;
    }
}

static void follow_quoting(const char *p, struct quoting *q)
{
    if (q->in_single) {
        q->in_single = *p != '\'';
    } else if (*p == '\'' && !q->in_double) {
        q->in_single = true;
    } else if (*p == '"') {
        q->in_double = !q->in_double;
    } else if (*p == '`' || (p[0] == '$' && p[1] != '\0' && strchr("({'\"", p[1]) != NULL)) {
        q->is_beyond_us = true;
    }
}

int hook_line(const char *line, const struct hook_facts *f, struct buf *out, struct err *err)
{
    struct quoting q = {0};
    const char *p;

    for (p = line; *p != '\0'; p++) {
        if (*p == '%' && p[1] != '\0') {
            if (put_sign(*++p, f, &q, out, err) == -1)
                return -1;
            continue;
        }
        buf_put_byte(out, *p);
        if (*p == '\\' && !q.in_single && p[1] == '%')
            q.is_beyond_us = true;
        else if (*p == '\\' && !q.in_single && p[1] != '\0')
            buf_put_byte(out, *++p);
        else
            follow_quoting(p, &q);
    }
    buf_put_byte(out, '\0');
    return 0;
}

/* Environment */

static int env_text(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "PGPOOL_%s=%s", name, value);
    buf_put_byte(out, '\0');
    return 1;
}

static int env_number(struct buf *out, const char *prefix, const char *name, int value, bool exists)
{
    buf_printf(out, "PGPOOL_%s_%s=", prefix, name);
    if (exists)
        buf_printf(out, "%d", value);
    buf_put_byte(out, '\0');
    return 1;
}

static int env_epoch(struct buf *out, uint32_t epoch)
{
    buf_printf(out, "PGPOOL_EPOCH=");
    if (epoch != 0)
        buf_printf(out, "%" PRIu32, epoch);
    buf_put_byte(out, '\0');
    return 1;
}

static int env_node(struct buf *out, const char *prefix, const struct hook_node *n)
{
    bool exists = n->id != VIEW_NO_NODE;
    int count = env_number(out, prefix, "ID", n->id, exists);

    buf_printf(out, "PGPOOL_%s_HOST=%s", prefix, n->host);
    buf_put_byte(out, '\0');
    count += env_number(out, prefix, "PORT", n->port, exists);
    buf_printf(out, "PGPOOL_%s_DATA_DIRECTORY=%s", prefix, n->data_dir);
    buf_put_byte(out, '\0');
    return count + 2;
}

int hook_env(const struct hook_facts *f, struct buf *out)
{
    int n = env_text(out, "EVENT", hook_name(f->kind));

    n += env_text(out, "REASON", f->reason);
    n += env_text(out, "ACTOR", f->who);
    n += env_epoch(out, f->epoch);
    n += env_node(out, "NODE", &f->node);
    n += env_node(out, "NEW_PRIMARY", &f->new_main);
    n += env_node(out, "OLD_MAIN", &f->old_main);
    n += env_node(out, "OLD_PRIMARY", &f->old_primary);
    return n;
}

/* JSON */

static void json_text(struct buf *out, const char *s)
{
    buf_put_byte(out, '"');
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\')
            buf_printf(out, "\\%c", *s);
        else if ((unsigned char)*s < ' ')
            buf_printf(out, "\\u%04x", (unsigned)(unsigned char)*s);
        else
            buf_put_byte(out, *s);
    }
    buf_put_byte(out, '"');
}

static void json_node_fields(struct buf *out, const struct hook_node *n)
{
    buf_printf(out, "\"id\":%d,\"host\":", n->id);
    json_text(out, n->host);
    buf_printf(out, ",\"port\":%d,\"data_directory\":", n->port);
    json_text(out, n->data_dir);
}

static void json_node(struct buf *out, const char *name, const struct hook_node *n)
{
    buf_printf(out, ",\"%s\":", name);
    if (n->id == VIEW_NO_NODE) {
        buf_printf(out, "null");
        return;
    }
    buf_put_byte(out, '{');
    json_node_fields(out, n);
    buf_put_byte(out, '}');
}

static const char *role_text(const struct view_node *n)
{
    switch ((enum view_role)n->pg_role) {
    case VIEW_ROLE_PRIMARY:
        return "primary";
    case VIEW_ROLE_STANDBY:
        return "standby";
    case VIEW_ROLE_UNKNOWN:
        break;
    }
    return "unknown";
}

static const char *status_text(const struct view_node *n)
{
    static const char *const words[] = {
        [VIEW_UNUSED] = "unused",
        [VIEW_WAITING] = "waiting",
        [VIEW_UP] = "up",
        [VIEW_DOWN] = "down",
        [VIEW_QUARANTINE] = "quarantine",
    };

    return words[n->status];
}

static void json_known(struct buf *out, const struct hook_node *n, const struct view_node *v)
{
    buf_put_byte(out, '{');
    json_node_fields(out, n);
    buf_printf(out,
        ",\"status\":\"%s\",\"role\":\"%s\",\"answers\":%s,\"timeline\":%" PRIu32
        ",\"received_lsn\":\"%X/%X\",\"replayed_lsn\":\"%X/%X\"}",
        status_text(v), role_text(v), v->pg_status == VIEW_PG_UP ? "true" : "false", v->timeline,
        (unsigned)(v->received_lsn >> 32), (unsigned)v->received_lsn,
        (unsigned)(v->replayed_lsn >> 32), (unsigned)v->replayed_lsn);
}

void hook_json(const struct hook_facts *f, struct buf *out)
{
    bool first = true;
    int i;

    buf_printf(out, "{\"event\":\"%s\",\"reason\":", hook_name(f->kind));
    json_text(out, f->reason);
    buf_printf(out, ",\"actor\":");
    json_text(out, f->who);
    buf_printf(out, ",\"epoch\":");
    if (f->epoch == 0)
        buf_printf(out, "null");
    else
        buf_printf(out, "%" PRIu32, f->epoch);
    json_node(out, "node", &f->node);
    json_node(out, "new_primary", &f->new_main);
    json_node(out, "old_main", &f->old_main);
    json_node(out, "old_primary", &f->old_primary);
    buf_printf(out, ",\"nodes\":[");
    for (i = 0; i < f->nnodes; i++) {
        if (f->nodes[i].id == VIEW_NO_NODE)
            continue;
        if (!first)
            buf_put_byte(out, ',');
        first = false;
        json_known(out, &f->nodes[i], &f->view->node[f->nodes[i].id]);
    }
    buf_printf(out, "]}\n");
}
