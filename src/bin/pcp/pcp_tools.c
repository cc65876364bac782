/* SPDX-License-Identifier: PostgreSQL
 * pcp_tools.c: the tools: their names, requests, arguments and options. */
#include "config.h"

#include <string.h>

#include "pcp_tool.h"

static const struct tool tools[] = {
    {"attach_node", PCP_ATTACH, ARG_NODE, true, "n", tool_print_complete,
        "gives a node back to pgpool"},
    {"detach_node", PCP_DETACH, ARG_NODE, true, "ngY", tool_print_complete,
        "takes a node away from pgpool"},
    {"promote_node", PCP_PROMOTE, ARG_NODE, true, "ngs", tool_print_complete,
        "makes a node the primary"},
    {"recovery_node", PCP_RECOVERY, ARG_NODE, true, "nR", tool_print_complete,
        "rebuilds a node by online recovery"},
    {"node_count", PCP_NODE_COUNT, ARG_NONE, false, "", tool_print_count,
        "shows how many nodes there are"},
    {"node_info", PCP_NODE_INFO, ARG_NODE, false, "na", tool_print_node, "shows one node, or all"},
    {"health_check_stats", PCP_HEALTH, ARG_NODE, true, "n", tool_print_health,
        "shows the health checks of a node"},
    {"proc_count", PCP_PROC_COUNT, ARG_NONE, false, "", tool_print_pids,
        "shows the worker processes"},
    {"proc_info", PCP_PROC_INFO, ARG_PROCESS, false, "Pa", tool_print_processes,
        "shows the server connections of a worker process, or of all"},
    {"pool_status", PCP_POOL_STATUS, ARG_NONE, false, "", tool_print_settings,
        "shows the settings"},
    {"watchdog_info", PCP_WATCHDOG, ARG_WATCHDOG, false, "n", tool_print_watchdog,
        "shows the watchdog cluster"},
    {"reload_config", PCP_RELOAD, ARG_NONE, false, "S", tool_print_complete,
        "lets pgpool read its settings again"},
    {"log_rotate", PCP_LOG_ROTATE, ARG_NONE, false, "S", tool_print_complete,
        "lets pgpool begin a new log file"},
    {"stop_pgpool", PCP_STOP, ARG_NONE, false, "mS", tool_print_complete, "stops pgpool"},
    {"invalidate_query_cache", PCP_CACHE_CLEAR, ARG_NONE, false, "", tool_print_complete,
        "empties the query cache"},
    {"pause", PCP_ORDER, ARG_DATABASE, false, "", tool_print_complete,
        "closes the server connections of a database, or of all, and lets clients wait"},
    {"resume", PCP_ORDER, ARG_DATABASE, false, "", tool_print_complete,
        "ends pcp_pause and pcp_drain, or PGPOOL PAUSE and DRAIN"},
    {"drain", PCP_ORDER, ARG_DATABASE, false, "", tool_print_complete,
        "sends clients home between two transactions, and lets none in"},
    {"reconnect", PCP_ORDER, ARG_DATABASE, false, "", tool_print_complete,
        "lets pgpool open its server connections anew"},
    {NULL, PCP_DISCONNECT, ARG_NONE, false, "", NULL, NULL},
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
