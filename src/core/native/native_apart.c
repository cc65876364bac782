/* SPDX-License-Identifier: PostgreSQL
 * native_apart.c: a sequence that is further on another node than on the main one would give other
 * numbers there. Runs in: workers.
 *
 * Who takes numbers hears of it with the answer. All are asked where the sequences stand behind
 * that, for a function may have taken some on all nodes since the main one was asked; where they
 * differ the statement is undone, and the main node brought forward under the lock that it still
 * has: a sequence is not undone. Whoever does it again gets equal numbers. */
#include "config.h"

#include "native_int.h"

static bool asks(struct native *n, bool agree)
{
    bool is_undone_yet = n->failed < 0 && (n->wrapped || native_tx(n) == 'T');
    struct buf sql = {0};

    if (!n->numbers.are_apart || !is_undone_yet || n->leg[n->main].kind == 'E')
        return false;
    n->numbers.are_apart = !agree;
    repl_numbers_where_sql(&n->numbers, &sql);
    native_round(n, STEP_WHERE, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (native_is_up(&n->leg[i]) && n->leg[i].link->tx_status == 'T')
            native_ask(n, &n->leg[i], buf_slice(&sql));
    }
    buf_free(&sql);
    return true;
}

static void told(struct native *n, void (*end)(struct native *n))
{
    struct buf sql = {0};
    bool alike = repl_numbers_are_alike(&n->numbers, buf_slice(&n->rows), &sql);

    if (alike && !n->numbers.are_apart) {
        end(n);
    } else {
        native_round(n, STEP_FORWARD, true, -1);
        native_ask(n, &n->leg[n->main], buf_slice(&sql));
    }
    buf_free(&sql);
}

static void brought(struct native *n)
{
    buf_clear(&n->held);
    native_refuse(n, "40001",
        "a sequence was further on another node than on the main node, which is brought forward: "
        "do it again");
}

const struct native_apart_ops native_apart_ops = {.asks = asks, .told = told, .brought = brought};
