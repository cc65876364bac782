/* SPDX-License-Identifier: PostgreSQL
 * wd_command.c: what the commands of the socket mean. They are pgpool-II's: a life check outside
 * says that a pgpool is dead or alive, asks who there is; operators' scripts have orders for all.
 * Runs in: watchdog. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/wd_ipc.h"
#include "cluster/wd_json.h"

#include "wd_int.h"
#include "wd_socket.h"

#define NAME_BYTES 64

static char bad(struct buf *out, const char *why)
{
    buf_put_byte(out, '{');
    wd_json_put_text(out, "Error", why);
    buf_put_byte(out, '}');
    return WD_IPC_BAD;
}

static char answer_nodes(struct wd *w, struct slice json, struct buf *out)
{
    const struct wd_share *s = &w->share;
    int wanted = WD_NO_MEMBER;
    int n = 0;
    int i;

    (void)wd_json_int(json, "NodeID", &wanted);
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        n += s->member[i].exists && (wanted < 0 || wanted == i);
    buf_printf(out, "{\"NodeCount\":%d,\"WatchdogNodes\":[", n);
    n = 0;
    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        if (!s->member[i].exists || (wanted >= 0 && wanted != i))
            continue;
        if (n++ > 0)
            buf_put_byte(out, ',');
        wd_json_put_member(s, i, out);
    }
    buf_printf(out, "]}");
    return WD_IPC_OK;
}

/* A pgpool that is dead for the life check is not for libraft: it goes on voting. It does not lead,
 * and does not say what it sees of the servers. It says itself that this is so: one that cannot be
 * told is lost already. */
static char take_status(struct wd *w, struct slice json, struct buf *out)
{
    char message[WD_TEXT_BYTES];
    int member;
    int status;

    if (wd_conf(w)->wd_lifecheck_method != CONF_LIFECHECK_EXTERNAL)
        return bad(out, "wd_lifecheck_method is not external");
    if (!wd_json_int(json, "NodeID", &member) || !wd_json_int(json, "NodeStatus", &status) ||
        !wd_is_listed(w, member) || (status != WD_IPC_DEAD && status != WD_IPC_ALIVE))
        return bad(out, "NodeID or NodeStatus is missing or wrong");
    (void)wd_json_text(json, "Message", message, sizeof message);
    log_at_detail(LVL_LOG, message[0] == '\0' ? NULL : message, NULL,
        "received node status change ipc message: pgpool %d is %s", member,
        status == WD_IPC_DEAD ? "dead" : "alive");
    wd_talk_call_dead(w, member, status == WD_IPC_DEAD);
    return WD_IPC_OK;
}

static char take_order(struct wd *w, struct slice json, struct buf *out)
{
    char name[NAME_BYTES];
    char mode[NAME_BYTES];
    struct wd_cluster_order order = {.mode = 's'};

    if (!wd_json_text(json, "Command", name, sizeof name))
        return bad(out, "Command is missing");
    if (wd_json_text(json, "Mode", mode, sizeof mode))
        order.mode = (char)tolower((unsigned char)mode[0]);
    if (strcmp(name, "SHUTDOWN_CLUSTER") == 0)
        order.what = 's';
    else if (strcmp(name, "RELOAD_CONFIG_CLUSTER") == 0)
        order.what = 'r';
    else if (strcmp(name, "LOGROTATE_CLUSTER") == 0)
        order.what = 'l';
    if (order.what == 's' && strchr("sfi", order.mode) == NULL)
        return bad(out, "Mode is not smart, fast or immediate");
    if (order.what != 0) {
        (void)wd_talk_cluster_order(w, &order);
        wd_talk_obey(w, order.what, order.mode);
        return WD_IPC_OK;
    }
    if (strcmp(name, "REELECT_LEADER") != 0)
        return bad(out, "the command is not known here");
    if (!wd_is_leading(w))
        return bad(out, "this pgpool does not lead");
    if (!wd_lead_has_heir(w))
        return bad(out, "there is nobody who could take the lead");
    wd_lead_yield(w, WD_NO_MEMBER, "a command of its watchdog socket wants it");
    return WD_IPC_OK;
}

static char take_failover(struct wd *w, struct slice json, struct buf *out)
{
    static const struct {
        const char *name;
        enum node_order order;
    } known[] = {{"FAILBACK_REQUEST", NODE_ATTACH}, {"DEGENERATE_BACKEND_REQUEST", NODE_DETACH},
        {"PROMOTE_BACKEND_REQUEST", NODE_PROMOTE}};
    struct node_command cmd = {.who = "command socket"};
    struct slice rest;
    struct slice item;
    char name[NAME_BYTES];
    size_t i;
    int n = 0;

    (void)wd_json_text(json, "Function", name, sizeof name);
    for (i = 0; i < sizeof known / sizeof known[0] && strcmp(known[i].name, name) != 0; i++)
        ;
    if (i == sizeof known / sizeof known[0] || !wd_json_find(json, "NodeIDList", &rest))
        return bad(out, "Function or NodeIDList is missing or wrong");
    if (w->raft == NULL || wd_raft_leader(w->raft) == WD_NO_MEMBER)
        return WD_IPC_TRANSITION;
    cmd.order = known[i].order;
    for (; wd_json_next(&rest, &item); n++) {
        char digits[8] = "";

        memcpy(digits, item.p, item.n < sizeof digits ? item.n : 0);
        if (sscanf(digits, "%d", &cmd.node) != 1 || cmd.node < 0 || cmd.node >= VIEW_MAX_NODES)
            return bad(out, "NodeIDList holds something that is no server");
        wd_talk_node_command(w, &cmd);
    }
    return n > 0 ? WD_IPC_OK : bad(out, "NodeIDList is empty");
}

static char answer_variable(const struct wd *w, struct slice json, struct buf *out)
{
    const struct wd_share *s = &w->share;
    char name[NAME_BYTES];
    int value;

    (void)wd_json_text(json, "VarName", name, sizeof name);
    if (strcmp(name, "WDState") == 0)
        value = s->member[w->self].state;
    else if (strcmp(name, "QuorumState") == 0)
        value = s->quorum;
    else if (strcmp(name, "Escalated") == 0)
        value = s->is_escalated;
    else
        return bad(out, "VarName is not WDState, QuorumState or Escalated");
    buf_put_byte(out, '{');
    wd_json_put_text(out, "VarName", name);
    buf_printf(out, ",\"ValueData\":%d}", value);
    return WD_IPC_OK;
}

static char answer(void *owner, char type, struct slice json, struct buf *out)
{
    struct wd *w = owner;

    switch (type) {
    case WD_IPC_NODES:
        return answer_nodes(w, json, out);
    case WD_IPC_NODE_STATUS:
        return take_status(w, json, out);
    case WD_IPC_COMMAND:
        return take_order(w, json, out);
    case WD_IPC_FAILOVER:
        return take_failover(w, json, out);
    case WD_IPC_VARIABLE:
        return answer_variable(w, json, out);
    default:
        return bad(out, "the command is not known here");
    }
}

void wd_command_open(struct wd *w)
{
    const struct conf *c = wd_conf(w);

    w->socket =
        wd_socket_new(&w->role.loop, c->wd_ipc_socket_dir, c->wd_nodes[w->self].wd_port, answer, w);
    wd_socket_set_key(w->socket, c->wd_authkey);
}
