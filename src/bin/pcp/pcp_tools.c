/* SPDX-License-Identifier: PostgreSQL
 * pcp_tools.c: the tools: their names, requests, arguments and options. */
#include "config.h"

#include <string.h>

#include "pcp_tool.h"

static void put_nothing(const struct tool *t, const struct tool_options *o, struct buf *out)
{
}

/* A node, of PostgreSQL's or of the watchdog's: -1 is all of them. */
static void put_node(const struct tool *t, const struct tool_options *o, struct buf *out)
{
    pcp_put_int(out, o->id == TOOL_NO_ID ? -1 : o->id);
}

static void put_detach(const struct tool *t, const struct tool_options *o, struct buf *out)
{
    put_node(t, o, out);
    if (o->why != NULL)
        buf_put_cstr(out, o->why);
}

static void put_promote(const struct tool *t, const struct tool_options *o, struct buf *out)
{
    buf_printf(out, "%d ", o->id);
    buf_put_byte(out, '\0');
    buf_put_byte(out, o->switchover ? 's' : 'n');
}

/* 0: all of them. */
static void put_process(const struct tool *t, const struct tool_options *o, struct buf *out)
{
    pcp_put_int(out, o->id == TOOL_NO_ID ? 0 : o->id);
}

static void put_scope(const struct tool *t, const struct tool_options *o, struct buf *out)
{
    buf_put_byte(out, o->scope);
}

static void put_mode(const struct tool *t, const struct tool_options *o, struct buf *out)
{
    buf_put_byte(out, o->mode);
}

static void put_order(const struct tool *t, const struct tool_options *o, struct buf *out)
{
    buf_put_cstr(out, t->name);
    buf_put_cstr(out, o->database == NULL ? "" : o->database);
}

static const struct tool tools[] = {
    {"attach_node", PCP_ATTACH, PCP_ATTACH, put_node, ARG_NODE, true, "n", tool_print_complete,
        "gives a node back to pgpool"},
    {"detach_node", PCP_DETACH, PCP_DETACH_GRACEFULLY, put_detach, ARG_NODE, true, "ngY",
        tool_print_complete, "takes a node away from pgpool"},
    {"promote_node", PCP_PROMOTE, PCP_PROMOTE_GRACEFULLY, put_promote, ARG_NODE, true, "ngs",
        tool_print_complete, "makes a node the primary"},
    {"recovery_node", PCP_RECOVERY, PCP_RECOVERY, put_node, ARG_NODE, true, "nR",
        tool_print_complete, "rebuilds a node by online recovery"},
    {"node_count", PCP_NODE_COUNT, PCP_NODE_COUNT, put_nothing, ARG_NONE, false, "",
        tool_print_count, "shows how many nodes there are"},
    {"node_info", PCP_NODE_INFO, PCP_NODE_INFO, put_node, ARG_NODE, false, "na", tool_print_node,
        "shows one node, or all"},
    {"health_check_stats", PCP_HEALTH, PCP_HEALTH, put_node, ARG_NODE, true, "n", tool_print_health,
        "shows the health checks of a node"},
    {"proc_count", PCP_PROC_COUNT, PCP_PROC_COUNT, put_nothing, ARG_NONE, false, "",
        tool_print_pids, "shows the worker processes"},
    {"proc_info", PCP_PROC_INFO, PCP_PROC_INFO, put_process, ARG_PROCESS, false, "Pa",
        tool_print_processes, "shows the server connections of a worker process, or of all"},
    {"pool_status", PCP_POOL_STATUS, PCP_POOL_STATUS, put_nothing, ARG_NONE, false, "",
        tool_print_settings, "shows the settings"},
    {"watchdog_info", PCP_WATCHDOG, PCP_WATCHDOG, put_node, ARG_WATCHDOG, false, "n",
        tool_print_watchdog, "shows the watchdog cluster"},
    {"reload_config", PCP_RELOAD, PCP_RELOAD, put_scope, ARG_NONE, false, "S", tool_print_complete,
        "lets pgpool read its settings again"},
    {"log_rotate", PCP_LOG_ROTATE, PCP_LOG_ROTATE, put_scope, ARG_NONE, false, "S",
        tool_print_complete, "lets pgpool begin a new log file"},
    {"stop_pgpool", PCP_STOP, PCP_STOP_CLUSTER, put_mode, ARG_NONE, false, "mS",
        tool_print_complete, "stops pgpool"},
    {"invalidate_query_cache", PCP_CACHE_CLEAR, PCP_CACHE_CLEAR, put_nothing, ARG_NONE, false, "",
        tool_print_complete, "empties the query cache"},
    {"pause", PCP_ORDER, PCP_ORDER, put_order, ARG_DATABASE, false, "", tool_print_complete,
        "closes the server connections of a database, or of all, and lets clients wait"},
    {"resume", PCP_ORDER, PCP_ORDER, put_order, ARG_DATABASE, false, "", tool_print_complete,
        "ends pcp_pause and pcp_drain, or PGPOOL PAUSE and DRAIN"},
    {"drain", PCP_ORDER, PCP_ORDER, put_order, ARG_DATABASE, false, "", tool_print_complete,
        "sends clients home between two transactions, and lets none in"},
    {"reconnect", PCP_ORDER, PCP_ORDER, put_order, ARG_DATABASE, false, "", tool_print_complete,
        "lets pgpool open its server connections anew"},
    {NULL, PCP_DISCONNECT, PCP_DISCONNECT, put_nothing, ARG_NONE, false, "", NULL, NULL},
};

const struct tool *tool_find(const char *name)
{
    const struct tool *t;

    if (strncmp(name, "pcp_", 4) == 0)
        name += 4;
    for (t = tools; t->name != NULL; t++) {
        if (strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

const struct tool *tool_list(void)
{
    return tools;
}

char tool_put_request(const struct tool *t, const struct tool_options *o, struct buf *out)
{
    if (o->recovery != TOOL_RECOVERY_BEGINS) {
        buf_put_cstr(out, o->recovery == TOOL_RECOVERY_SHOWS ? PCP_STATUS : PCP_WATCH);
        put_node(t, o, out);
        return PCP_RECOVERIES;
    }
    t->put(t, o, out);
    return (char)(o->gracefully || o->scope == 'c' ? t->variant : t->request);
}
