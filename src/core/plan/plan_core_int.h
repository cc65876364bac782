/* SPDX-License-Identifier: PostgreSQL
 * plan_core_int.h: what is judged of one text, in a simple query or a sequence. */
#ifndef PGP_PLAN_CORE_INT_H
#define PGP_PLAN_CORE_INT_H

#include "plan/plan.h"

/* Nothing was chosen yet: it stays where the transaction lives, or writes go. */
void plan_choice_init(const struct plan_case *in, struct plan_choice *out);
/* What is kept comes first, and a link that was set aside on a standby was so for one statement.
 * True: that is the choice. */
bool plan_is_settled(const struct plan_case *in, struct plan_choice *out);
/* Asks the router; false: something is asked first, and `out` says what. */
bool plan_judge_text(const struct plan_case *in, struct slice sql, struct plan_choice *out);
/* Whether the statement leaves its transaction: route.node is where to. */
bool plan_leaves(const struct plan_case *in, struct plan_choice *out);
/* read_consistency: false, something is asked or waited for first. */
bool plan_sees_enough(const struct plan_case *in, struct plan_choice *out);
/* route.node is where it may run, and may be one that writes do not go to. */
bool plan_may_go_there(const struct plan_case *in, const struct route_decision *d);
/* A read goes to `to`, unless that has just failed. */
void plan_take_read(const struct plan_case *in, int to, bool is_out, struct plan_choice *out);
/* A statement of a transaction runs elsewhere; where the transaction lives. */
void plan_note_left(const struct sql_facts *facts, struct plan_choice *out);
void plan_note_stays(
    const struct plan_case *in, const struct sql_facts *facts, struct plan_choice *out);

/* Reads may leave the open transaction, as far as their text does not matter. */
static inline bool plan_tx_is_open(const struct plan_case *in)
{
    return in->tx == PLAN_TX_VIRTUAL || in->tx == PLAN_TX_ASIDE;
}
#endif
