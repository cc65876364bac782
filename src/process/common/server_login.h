/* SPDX-License-Identifier: PostgreSQL
 * server_login.h: the password with which pgpool itself logs in to a server.
 * Runs in: control. */
#ifndef PGP_PROCESS_SERVER_LOGIN_H
#define PGP_PROCESS_SERVER_LOGIN_H

#include "crypto/secret.h"

struct conf_gen;

/* Fills *out with the password of `user`: `given`, a value of the settings in any form that
 * pool_passwd may have, or when that is empty the entry of pool_passwd. Encrypted values are opened
 * with the key of `key_file`, which may be NULL or empty for the usual place. `setting` names the
 * setting in what is logged when a value cannot be used; *out is empty then, and when there is
 * none. */
void server_login_password(const struct conf_gen *gen, const char *user, const char *given,
    const char *setting, const char *key_file, struct secret *out);

#endif
