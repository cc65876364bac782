/* SPDX-License-Identifier: PostgreSQL
 * client_lost.c: a transaction died with its link between two statements, and the client does not
 * know. Runs in: workers.
 *
 * COMMIT is an error then, for nothing is committed, and the transaction is over with it, as when a
 * server fails to commit. Answered with ROLLBACK, as the COMMIT of a transaction that is known to
 * have failed, most drivers would take it for done. A ROLLBACK is done, and anything else an error:
 * the transaction is a failed one until ROLLBACK, and what its COMMIT is answered with then is
 * ROLLBACK (follow_virtual.c, feed_followed.c). */
#include "config.h"

#include <string.h>

#include "wire/writer.h"

#include "client/client_lost_int.h"

/* The server has ended the session because of a time-out of its own. */
static bool is_of_timeout(const struct err *words)
{
    static const char *const timeout[] = {"25P03", "25P04", "57P05"};
    unsigned i;

    for (i = 0; i < sizeof timeout / sizeof timeout[0]; i++)
        if (strcmp(words->sqlstate, timeout[i]) == 0)
            return true;
    return false;
}

void client_lost_err(const struct err *words, struct err *err)
{
    if (words != NULL && is_of_timeout(words)) {
        *err = *words;
        return;
    }
    err_clear(err);
    err_set(err, "08006", "the server connection of this transaction was lost");
    err_hint(err, "Roll back, and run the transaction again.");
    if (words != NULL)
        err_detail(err, "%s", words->msg);
}

void client_lost_put(const struct err *words, struct buf *out)
{
    struct err err = {0};

    client_lost_err(words, &err);
    err.severity = ERR_ERROR;
    wire_put_err(out, &err);
}
