/* SPDX-License-Identifier: PostgreSQL
 * balance_ask.c: questions about the catalogue. */
#include "config.h"

#include "balance_int.h"

int balance_lookup(void *ctx, const struct route_question *q, uint32_t *bits)
{
    return -1;
}
void balance_ask(struct client *c, const struct route_decision *d)
{
}
void balance_on_row(struct client *c, struct slice body)
{
}
void balance_ask_done(struct client *c)
{
}
__attribute__((weak)) void route_query(const struct route_input *in, struct slice text,
    const struct sql_facts *facts, struct route_decision *out)
{
}
__attribute__((weak)) int route_choose_balance_node(const struct route_input *in)
{
    return 0;
}
