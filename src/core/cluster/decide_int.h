/* SPDX-License-Identifier: PostgreSQL
 * decide_int.h: between the parts of the decision. */
#ifndef PGP_DECIDE_INT_H
#define PGP_DECIDE_INT_H

#include "cluster/decide.h"

/* decide.c */
/* Notes an event; the last argument but the text's is what follows %. Returns it, never NULL, for
 * detail and hint. */
struct decide_event *decide_note(struct decide *d, enum decide_event_type type, int node, int other,
    int64_t now_us, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
void decide_set_status(struct decide *d, int node, enum view_status status, int64_t now_us);
bool decide_is_used(const struct decide *d, int node); /* status UP or WAITING */
bool decide_has_facts(const struct decide *d, int node);

/* True, and noted: it is to be told now, as it was not before. */
static inline bool decide_tells_first(struct decide_node *n, enum decide_told what)
{
    bool is_first = (n->told & what) == 0;

    n->told |= what;
    return is_first;
}

/* A question of a WAL receiver has its answer by then. */
#define DECIDE_ANSWER_US INT64_C(2000000)

/* After half of wal_receiver_timeout without a word a WAL receiver asks its server for one, and a
 * server that is there answers at once: it need not be waited for until the other half is over. */
static inline bool decide_hears_nobody(const struct decide_facts *f)
{
    return f->silence_limit_us > 0 && f->silence_us > f->silence_limit_us / 2 + DECIDE_ANSWER_US;
}

/* decide_orders.c: an operator gave this server back while no primary is known, or while it is kept
 * out beside one: if it says that it is one, it is believed, whatever timeline others were seen on.
 */
void decide_vouch(struct decide *d, int node);

/* decide_stray.c */
/* Looks again at who says that it is a newer primary beside the present one. */
void decide_weigh_newcomers(struct decide *d, int64_t now_us);
/* True when `node` is one and is not to become the primary, for now or for good. */
bool decide_is_kept_out(const struct decide *d, int node);
/* True when `node` is kept out for now: the present primary and the standbys have not been asked
 * again yet. */
bool decide_is_doubtful(const struct decide *d, int node);

/* True when `node` is no primary, whatever it says: all pgpools of a watchdog cluster agree on
 * that, or one of them may have told another server to take its place. */
static inline bool decide_is_barred(const struct decide *d, int node)
{
    return view_has_node(d->barred, node) || view_has_node(d->view.sw.replaced, node);
}

/* decide_role.c: makes primary, roles and status follow from what is known. */
void decide_settle(struct decide *d, int64_t now_us);

/* decide_replay.c: `node` has told its facts; it was asked at `began_us` (clock_mono_us). */
void decide_replay(struct decide *d, int node, int64_t began_us);
/* How long before a standby was asked last the primary had written what the standby had not
 * replayed then; 0: nothing like that is known. */
int64_t decide_replay_lacks_us(const struct decide *d, int node);

/* decide_lag.c */
/* Bytes that a standby is behind the primary; 0 when either is not known. */
int64_t decide_lag_bytes(const struct decide *d, int node);
/* Time that it is behind, microseconds. */
int64_t decide_lag_us(const struct decide *d, int node);
/* True when the lag is above the limit that the settings give. */
bool decide_lag_is_over(const struct decide *d, int node);
/* Fills lag and state of replication of `node` in the view. */
void decide_lag_publish(struct decide *d, int node);
/* Says in the log how far `node` is behind, as the settings want it. */
void decide_lag_tell(struct decide *d, int node, int64_t now_us);
/* Says once of a standby in use that it does not follow the primary, and when it does again. */
void decide_lag_tell_unfed(struct decide *d, int node, int64_t now_us);

#endif
