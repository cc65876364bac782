/* SPDX-License-Identifier: PostgreSQL
 * client_word_int.h: a word of a transaction (BEGIN, COMMIT, ROLLBACK) said by the extended
 * protocol, for those who answer it here. */
#ifndef PGP_SESSION_CLIENT_WORD_INT_H
#define PGP_SESSION_CLIENT_WORD_INT_H

#include "parser/parser.h"

#include "client_int.h"

/* The messages: Parse (or none), Bind, Describe (or none), Execute, and the Sync behind them when
 * it is there. They have a portal without a name, and no parameters. */
struct client_word {
    struct slice name;  /* of the statement */
    struct slice parse; /* the whole Parse; p is NULL: the statement is known */
    struct slice sql;
    const char *end; /* behind the last of them */
    bool describes;
    bool syncs;
    uint16_t nmessages;
};

/* Reads one from what has arrived. False: there is none, or not all of it. */
bool client_word_read(struct client *c, const char *p, const char *end, struct client_word *w);
/* Puts what is due in front of its tag, or of an error. Its statement is known from now on. */
void client_word_begin(struct client *c, const struct client_word *w, struct buf *out);
/* Logs the messages, which begin at `p`, as ones that are sent are. */
void client_word_log(struct client *c, const char *p, const struct client_word *w);
/* SQL_TX_COMMIT or SQL_TX_ROLLBACK when that is all the text says: the transaction, whatever has
 * become of it, is over then, and no other one begins. Else SQL_TX_NONE. */
enum sql_tx_op client_word_ends(const struct sql_facts *facts);

#endif
