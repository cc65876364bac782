/* SPDX-License-Identifier: PostgreSQL
 * passtool.h: what pg_md5 and pg_enc share: asking for a password, files of user:password lines,
 * and finding pool_passwd. */
#ifndef PGP_BIN_PASSTOOL_H
#define PGP_BIN_PASSTOOL_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "crypto/secret.h"

#define PASSTOOL_MAX_BYTES 128 /* of a user name or password, as in pgpool-II */

/* Asks on the terminal without echo; false when standard input is none ("stdin is not tty"). */
bool passtool_ask(const char *prompt, struct secret *out);
/* Name of the operating system's user; NULL when there is none. */
const char *passtool_os_user(void);
/* Copies a secret of the command line and wipes it there, so that process lists stop showing it. */
void passtool_take_arg(char *arg, struct secret *out);
/* Appends the path of pool_passwd (and a NUL) as the settings of `conf_file` (NULL: the default)
 * say; false after saying why not. */
bool passtool_pool_passwd(const char *conf_file, struct buf *path);
/* Stores one entry; false after saying why not. */
bool passtool_store(const char *path, struct slice user, struct slice value);

/* Is called for each pair; false stops with an error. */
typedef bool passtool_pair_fn(unsigned line, struct slice user, struct slice password, void *ctx);

/* What a tool says about lines that it cannot use: pgpool-II's two tools differ. */
struct passtool_words {
    FILE *to;
    const char *blank;   /* NULL: nothing is said */
    const char *invalid; /* no colon, or nothing behind it */
};

/* Reads a file of user:password lines. false when it cannot be read or `fn` stopped. */
bool passtool_each_pair(
    const char *path, const struct passtool_words *words, passtool_pair_fn *fn, void *ctx);

#endif
