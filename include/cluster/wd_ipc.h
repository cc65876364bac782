/* SPDX-License-Identifier: PostgreSQL
 * wd_ipc.h: the watchdog's command socket: a byte that says what it is, a big-endian length, JSON.
 * The numbers of the bytes are pgpool-II's. */
#ifndef PGP_CLUSTER_WD_IPC_H
#define PGP_CLUSTER_WD_IPC_H

#define WD_IPC_SOCKET_NAME ".s.PGPOOLWD_CMD."
#define WD_IPC_MAX_BYTES   65536

enum wd_ipc_type {
    WD_IPC_REGISTER = '0',    /* not built: nobody is notified */
    WD_IPC_NODE_STATUS = '2', /* {NodeID, NodeStatus, Message}: from a life check outside */
    WD_IPC_NODES = '3',       /* {NodeID?}: answered by {NodeCount, WatchdogNodes} */
    WD_IPC_COMMAND = 'c',     /* {Command, Mode?}: for all pgpools */
    WD_IPC_FAILOVER = 'f',    /* {Function, NodeIDList} */
    WD_IPC_VARIABLE = 'v',    /* {VarName}: answered by {VarName, ValueData} */
    WD_IPC_TRANSITION = '5',  /* answers: nobody leads now */
    WD_IPC_BAD = '6',         /* {Error} says what is wrong */
    WD_IPC_OK = '7'
};

/* NodeStatus */
enum { WD_IPC_DEAD = 1, WD_IPC_ALIVE = 2 };

#endif
