/* SPDX-License-Identifier: PostgreSQL
 * server_login.h: how pgpool itself logs in to a server.
 * Runs in: control, invalidator. */
#ifndef PGP_PROCESS_SERVER_LOGIN_H
#define PGP_PROCESS_SERVER_LOGIN_H

#include "crypto/secret.h"

struct conf;
struct conf_gen;
struct probe_target;

/* Fills *out with the password of `user`: `given`, a value of the settings in any form that
 * pool_passwd may have, or when that is empty the entry of pool_passwd. Encrypted values are opened
 * with the key of `key_file`, which may be NULL or empty for the usual place. `setting` names the
 * setting in what is logged when a value cannot be used; *out is empty then, and when there is
 * none. */
void server_login_password(const struct conf_gen *gen, const char *user, const char *given,
    const char *setting, const char *key_file, struct secret *out);

/* Fills host, port and TLS of *t, as the links of workers have them; the rest is left alone. The
 * strings belong to the settings. */
void server_login_place(const struct conf *conf, int node, struct probe_target *t);

#endif
