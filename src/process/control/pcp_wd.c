/* SPDX-License-Identifier: PostgreSQL
 * pcp_wd.c: PCP's questions and orders about the watchdog cluster.
 * Runs in: control. Answers from shared memory; orders for all pgpools go through the watchdog. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cluster/wd_json.h"
#include "cluster/wd_share.h"
#include "config/conf.h"

#include "control_int.h"

#define ALL -1

static void put_cluster(const struct wd_share *s, int total, struct buf *out)
{
    int leader = s->leader;

    buf_printf(out,
        "{\"NodeCount\":%d,\"RemoteNodeCount\":%d,\"MemberRemoteNodeCount\":%d,"
        "\"AliveNodeCount\":%d,\"NodesRequireForQuorum\":%d,\"QuorumStatus\":%d,\"Escalated\":%d,",
        total, total - 1, s->nmembers > 0 ? s->nmembers - 1 : 0, s->nalive > 0 ? s->nalive - 1 : 0,
        s->nneeded, s->quorum, s->is_escalated);
    wd_json_put_text(
        out, "LeaderNodeName", leader == WD_NO_MEMBER ? "Not Set" : s->member[leader].name);
    buf_put_byte(out, ',');
    wd_json_put_text(
        out, "LeaderHostName", leader == WD_NO_MEMBER ? "Not Set" : s->member[leader].host);
    buf_printf(out, ",\"WatchdogNodes\":[");
}

static void put_time(int64_t at_us, struct buf *out)
{
    char text[64] = "";
    time_t at = (time_t)(at_us / 1000000);
    struct tm tm;

    if (at_us != 0 && localtime_r(&at, &tm) != NULL)
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    wd_json_put_text(out, "Time", text);
}

/* What pgpool-II does not tell. */
static void put_history(const struct wd_share *s, struct buf *out)
{
    bool is_told = wd_share_knows_leader(s);
    int i;

    buf_printf(out, ",\"LeaderID\":%d,\"Leads\":{", (int)s->leader);
    put_time(is_told ? s->state.leader_since_us : 0, out);
    buf_put_byte(out, ',');
    wd_json_put_text(out, "Why", is_told ? s->state.leader_why : "");
    buf_printf(out, "},\"LeaseLeft\":%lld,", (long long)(s->is_escalated ? s->lease_left_ms : -1));
    wd_json_put_text(out, "AddressWhy", s->why);
    buf_printf(out, ",\"Events\":[");
    for (i = 0; i < s->state.nkept && i < WD_KEPT_EVENTS; i++) {
        buf_printf(out, i == 0 ? "{" : ",{");
        put_time(s->state.kept[i].at_us, out);
        buf_put_byte(out, ',');
        wd_json_put_text(out, "Text", s->state.kept[i].text);
        buf_put_byte(out, '}');
    }
    buf_printf(out, "]}");
}

/* Puts this pgpool first, as number 0; the others follow by their numbers. */
static void put_members(const struct wd_share *s, int wanted, struct buf *out)
{
    int place = 0;
    int nput = 0;
    int i;

    for (i = -1; i < WD_MAX_MEMBERS; i++) {
        int id = i == -1 ? s->self : i;

        if (i == s->self || !s->member[id].exists)
            continue;
        if (wanted == ALL || wanted == place) {
            if (nput++ > 0)
                buf_put_byte(out, ',');
            wd_json_put_member(s, id, out);
        }
        place++;
    }
    buf_put_byte(out, ']');
}

int pcp_wd_info(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err)
{
    struct wd_share *s = mem_alloc(sizeof *s);
    struct buf json = {0};
    int wanted = ALL;
    int total = 0;
    size_t mark;
    int i;

    if (!conf_of(role_loop_gen(&c->ctl->role))->use_watchdog ||
        !wd_share_copy(c->ctl->role.env->shm, s)) {
        err_set(err, "55000", "PCP: informing watchdog info failed");
        err_detail(err, "watchdog is not enabled");
        mem_free(s);
        return -1;
    }
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        total += s->member[i].exists;
    if (!pcp_take_int(&body, &wanted) || wanted < 0)
        wanted = ALL;
    if (wanted >= total) {
        err_set(err, "22023", "PCP: informing watchdog info failed");
        err_detail(err, "invalid watchdog index");
        mem_free(s);
        return -1;
    }
    put_cluster(s, total, &json);
    put_members(s, wanted, &json);
    put_history(s, &json);
    buf_put_byte(&json, '\0');
    mark = pcp_begin(out, 'w');
    buf_put_cstr(out, PCP_COMPLETE);
    buf_put(out, json.data, json.len);
    pcp_end(out, mark);
    buf_free(&json);
    mem_free(s);
    return 0;
}

bool pcp_wd_order_all(struct pcp_conn *c, char what, char mode, struct err *err)
{
    const struct proc_env *env = c->ctl->role.env;
    struct wd_cluster_order order = {what, mode};
    int slot = proc_find(env->shm, ROLE_WATCHDOG);

    if (slot != -1 &&
        mailbox_post(env->boxes, slot, MAIL_WD_CLUSTER, &order, sizeof order, -1) == 0)
        return true;
    err_set(err, "55000", "the watchdog could not be asked");
    err_hint(err, "Try again, or use the scope local on each pgpool.");
    return false;
}

bool pcp_wd_is_elsewhere(const struct pcp_conn *c)
{
    struct wd_share *s = mem_alloc(sizeof *s);
    bool is_elsewhere = wd_share_copy(c->ctl->role.env->shm, s) && s->leader != s->self;

    mem_free(s);
    return is_elsewhere;
}
