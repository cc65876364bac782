/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_watchdog.c: SHOW POOL_WATCHDOG and SHOW POOL_WATCHDOG_EVENTS: the pgpools of the
 * cluster, and what they agreed on lately. Runs in: worker, control, web. Reads shared memory,
 * never waits. */
#include "config.h"

#include <stdio.h>

#include "admin_int.h"
#include "base/mem.h"
#include "cluster/wd_share.h"

#define LIST_BYTES 512

static const char *quorum_text(int quorum)
{
    switch (quorum) {
    case 1:
        return "QUORUM EXIST";
    case 0:
        return "QUORUM IS ON THE EDGE";
    case -1:
        return "QUORUM ABSENT";
    default:
        return "NO LEADER NODE";
    }
}

/* The numbers in a set of servers. */
static void put_set(struct admin_rows *out, const uint64_t set[2])
{
    char text[LIST_BYTES] = "";
    size_t n = 0;
    int i;

    for (i = 0; i < VIEW_MAX_NODES && n + 8 < sizeof text; i++)
        if (view_has_node(set, i))
            n += (size_t)snprintf(text + n, sizeof text - n, n == 0 ? "%d" : ",%d", i);
    admin_put_str(out, text);
}

static void put_member(const struct wd_share *s, int i, struct admin_rows *out)
{
    const struct wd_member *m = &s->member[i];
    bool is_told = i == s->leader && wd_share_knows_leader(s);

    admin_row_begin(out);
    admin_put_int(out, i);
    admin_put_str(out, m->name);
    admin_put_str(out, m->host);
    admin_put_int(out, m->pgpool_port);
    admin_put_int(out, m->wd_port);
    admin_put_static(out, wd_member_state_text(m->state));
    admin_put_int(out, m->priority);
    admin_put_static(out, m->is_voter ? "true" : "false");
    admin_put_static(out, m->is_witness ? "true" : "false");
    admin_put_static(out, i == s->self ? "true" : "false");
    admin_put_time(out, m->heard_us);
    put_set(out, m->lost);
    admin_put_optional_int(out, m->follows != WD_NO_MEMBER, m->follows);
    admin_put_time(out, is_told ? s->state.leader_since_us : 0);
    admin_put_str(out, is_told ? s->state.leader_why : "");
    admin_put_static(out, quorum_text(s->quorum));
    admin_put_str(out, i == s->self ? s->address : "");
    admin_put_optional_int(out, i == s->self && s->is_escalated, s->lease_left_ms);
    admin_put_str(out, i == s->self ? s->why : "");
    admin_put_optional_int(out, i == s->self, (int64_t)s->nstrangers);
    admin_put_str(out, m->release);
}

void admin_rows_watchdog(const struct admin_sources *src, struct admin_rows *out)
{
    struct wd_share *s = mem_alloc(sizeof *s);
    int i;

    for (i = 0; wd_share_copy(src->shm, s) && i < WD_MAX_MEMBERS; i++)
        if (s->member[i].exists)
            put_member(s, i, out);
    mem_free(s);
}

void admin_rows_watchdog_events(const struct admin_sources *src, struct admin_rows *out)
{
    struct wd_share *s = mem_alloc(sizeof *s);
    int i;

    if (wd_share_copy(src->shm, s)) {
        for (i = 0; i < s->state.nkept && i < WD_KEPT_EVENTS; i++) {
            admin_row_begin(out);
            admin_put_time(out, s->state.kept[i].at_us);
            admin_put_str(out, s->state.kept[i].text);
        }
    }
    mem_free(s);
}
