/* SPDX-License-Identifier: PostgreSQL
 * pool_int.h: what the files of the pools share.
 * Runs in: workers. */
#ifndef PGP_BACKEND_POOL_INT_H
#define PGP_BACKEND_POOL_INT_H

#include <stdatomic.h>

#include "backend/pool.h"

/* How much longer a client of another worker must have waited to be served before one of this: a
 * link that travels costs two wake-ups. */
#define POOL_TRAVEL_US 5000
/* How much longer a client must have waited when a link is closed for it and another opened. */
#define POOL_REOPEN_US 20000
/* A link is closed for the sake of others, who open one in its place, at most this often within one
 * limit: what is opened costs a server more than hundreds of short transactions, and while it is
 * opened all wait longer, which would be a reason to close the next one. */
#define POOL_SWAP_US 200000
/* Somebody waits for so long that it can only be helped by that: then it is done more often. */
#define POOL_STARVED_US      100000
#define POOL_SWAP_STARVED_US 50000
/* A line whose own links came free this short a time ago wants none of another worker's: the next
 * of its own is there soon. */
#define POOL_PATIENCE_US 5000
/* Who waits longer than the others by this much has links that do not come free: it gets one,
 * however many it has. */
#define POOL_STUCK_US 20000
/* Who waits longer by this much gets a link even when one has to be closed for it. */
#define POOL_STUCK_REOPEN_US 200000
/* Clients of another worker are asked to come this often at most, by each pool. */
#define POOL_CALL_US 1000
/* How many clients are called over to another worker at once. */
#define POOL_CALL_MAX 32
/* While somebody waits, all who wait try again this often. */
#define POOL_SWEEP_MS LOOP_TICK_MS

/* False mostly: an operator has ordered something of some database. */
static inline bool pool_has_orders(const struct pool *pool)
{
    return atomic_load_explicit(pool->be->orders_any, memory_order_relaxed) != 0;
}

/* pool_table.c */
/* Nothing is lent and nothing opened while an operator has paused the database. */
bool pool_is_paused(const struct pool *pool);
/* NULL: there is none. */
struct pool *pool_find(struct backend *be, struct slice user, struct slice database, int node);

/* True when clients of some worker wait for what the pool has a part in. */
bool pool_is_waited_for(const struct pool *pool);

/* Looks up the pool's cells in the table of limits: where others say that they wait, and where it
 * says what it has. */
void pool_know_cells(struct pool *pool);
/* Tells the other workers how many idle links there are. */
void pool_tell_idle(struct pool *pool, bool barrier);

/* Frees a pool that has neither clients nor links. */
void pool_free_if_unused(struct pool *pool);

/* pool_keep.c */
/* The pool has idle links and no client, perhaps since now: closes others beyond max_pool. The pool
 * itself stays. */
void pool_keep_update(struct pool *pool);

/* pool_wait.c */
/* Puts the request in the line, or notes what is in its way now. */
enum acquire_result pool_request_join(struct pool_request *req, enum limits_verdict v);
void pool_request_leave(struct pool_request *req);
/* The request that waits longest; NULL when none does. */
struct pool_request *pool_head(struct pool *pool);
/* True when who waits may count on a link of this worker's. */
bool pool_frees_soon(const struct pool *pool);
/* True when who waits since `other_us` has waited markedly longer than who waits since `own_us`. */
bool pool_waits_longer(int64_t other_us, int64_t own_us, int64_t now_us, int64_t least_us);
/* What clients of any worker wait for that `pool` shares with other pools (room on its node, or
 * within the limit of its database or user), and since when; LIMITS_OK: nothing. With more than
 * one, that of who waits longest. */
enum limits_verdict pool_oldest_blocked(const struct pool *pool, int64_t *since_us);
/* True when somebody waits at the limit `v` markedly longer than who waits since `own_us`. */
bool pool_is_behind(const struct pool *pool, enum limits_verdict v, int64_t own_us, int64_t now_us);
/* True when a link of `pool` may be closed for who is at the limit `v`: none was a short time ago.
 * The next one may not. */
bool pool_may_swap(const struct pool *pool, enum limits_verdict v);
/* The worker that a link of ours should go to: its client waits longer than our own head, and its
 * links have more to do than ours; -1: none. */
int pool_find_older(struct pool *pool);
/* True when a link of ours that cannot travel is to be closed, so that another worker, whose client
 * waits longer, opens one: that takes more reason than a journey. The next one may stay when this
 * is true. */
bool pool_must_hand_over(struct pool *pool);
/* The link cannot go to another worker. */
bool pool_keeps_link(struct pool *pool, const struct link *link);
/* The place of a link that cannot travel is to go to the worker that has more time. */
bool pool_gives_place(const struct pool *pool);
/* A link that cannot travel is idle: true when who waits longest in another worker can come to it,
 * and has been asked to if that is longer than our own head. */
bool pool_call_older(struct pool *pool);
/* Lets a waiting client try. */
void pool_serve(struct pool *pool);
void backend_on_retry(struct task *t);
void backend_on_sweep(struct timer *t);

/* Starts the check of an idle link for a request that is not the first in its line; false: there is
 * none that suits and is due. */
bool pool_check_for(struct pool *pool, const struct pool_request *req);
/* An idle link suits this request, and is its when its turn comes. */
bool pool_has_for(const struct pool *pool, const struct pool_request *req);

/* pool_open.c */
/* Opens a link for the request, or for the pool, within the limits; else the request waits. */
enum acquire_result pool_open_for(struct pool_request *req);
/* For the requests behind the head: idle links are checked, or new ones opened, as far as that is
 * possible. */
void pool_grow(struct pool *pool);
/* Opens a link whose place another worker has moved here, or gives that back. */
void pool_open_moved(struct pool *pool);
/* Opens a link nobody waits for, to have min_pool_size of them. */
void pool_warm(struct pool *pool);

/* pool_share.c */
/* Asks the worker with idle links of this pool for one, or all to make room. */
void pool_ask_others(struct pool *pool);
/* Closes an idle link that cannot travel, so that worker `to` opens one in its place. False: it is
 * still there. */
bool pool_give_place(struct link *link, int to);
/* Asks worker `to` for clients that wait there. */
void pool_call_clients(struct pool *pool, int to);
/* Room was made: tells the workers whose clients wait for it. */
void pool_wake_others(const struct pool *pool);
/* Closes an idle link that stands in the way of a link of `pool`; false when there is none. */
bool backend_make_room(struct backend *be, const struct pool *pool, enum limits_verdict v,
    struct slice user, struct slice database, int node);

/* pool_role.c */
/* Puts the question that a link is asked about its own role. */
void pool_role_put_question(const struct link *link, struct buf *out);
/* The answer is no: no link of that role that is open now will be lent again. The link itself is
 * left to the caller. */
void pool_role_refuse(struct link *link);
/* The question met an error; false when the link is not to be kept. */
bool pool_role_on_error(struct link *link, struct slice sqlstate);

/* pool_said.c */
/* See struct link_pool_ops. */
void pool_link_said(struct pool *pool, const struct link *link, struct slice text);
void pool_said_free(struct pool *pool);

/* pool_meant.c */
/* `what` concerns this link. */
bool pool_is_meant(const struct link *link, const struct link_retire *what);
/* What it was opened for has changed since: it is not to be lent. */
bool pool_was_retired(const struct link *link);

/* pool_place.c */
/* Takes over the settings of a new generation. Idle links that must not be lent any more are
 * retired: the caller closes them. */
void pool_set_conf(struct pool *pool, const struct conf *conf, const struct conf *was_conf);

/* backend_maint.c */
void backend_on_maint(struct timer *t);
/* Looks whether the pools have more links than their limits allow: those may be other ones now. */
void backend_look_for_excess(struct backend *be);
/* True when a link that is free now has to go: it was to be used once, there are too many, or its
 * database is somewhere else now. */
bool pool_is_done_with(const struct pool *pool, const struct link *link);
/* Starts the check of an idle link that was not used for long or whose role is to be asked about,
 * or (for who shares links) its reset that is due: true when it is being seen to now. */
bool pool_check_idle(struct pool *pool, struct link *link, bool for_sharing);
/* An idle link is CLEANING now, for as long as a server may take to answer. */
void pool_link_taken(struct pool *pool, struct link *link);

/* pool.c and pool_open.c: see struct link_pool_ops, which says when. */
void pool_learn_auth(struct pool *pool, enum link_auth auth);
void pool_link_added(struct pool *pool, struct link *link);
void pool_link_idle(struct pool *pool, struct link *link);
void pool_link_cleaning(struct pool *pool, struct link *link);
/* A link's cleaning takes long: it does not count as one that will be there soon, and others are
 * opened. */
void pool_link_slow(struct pool *pool, struct link *link);
/* A link is gone. Gives back what it holds of the limits. */
void pool_link_gone(struct pool *pool, struct link *link);
/* The login needs the server no more for a while, or is over: the link does not count as opening.
 * Harmless when it does not. `accepted`: the server let it in. */
void pool_link_opened(struct link *link, bool accepted);
/* The server refused the link with `sqlstate`. True when that is for lack of room or because it is
 * starting up: all workers leave it alone for a while, and whoever can wait had better wait. */
bool pool_link_refused(struct link *link, const char *sqlstate);

#endif
