/* SPDX-License-Identifier: PostgreSQL
 * server_login.h: how pgpool itself logs in to a server.
 * Runs in: control, invalidator. */
#ifndef PGP_PROCESS_SERVER_LOGIN_H
#define PGP_PROCESS_SERVER_LOGIN_H

#include "crypto/secret.h"

struct conf_gen;
struct conf_node;
struct probe_target;

/* Fills *out with the password of `user`: `given`, a value of the settings in any form that
 * pool_passwd may have, or when that is empty the entry of pool_passwd. Encrypted values are opened
 * with the key of `key_file`, which may be NULL or empty for the usual place. `setting` names the
 * setting in what is logged when a value cannot be used; *out is empty then, and when there is
 * none. */
void server_login_password(const struct conf_gen *gen, const char *user, const char *given,
    const char *setting, const char *key_file, struct secret *out);

/* backend_ssl_min_protocol_version in libpq's words; empty: as libpq has it. */
const char *server_login_min_tls(const struct conf_node *n);
/* Fills host, port and TLS of *t, as the links of workers have them; the rest is left alone. The
 * strings belong to the settings, or are in *t. May write the file of server_ca.h. */
void server_login_place(const struct conf_gen *gen, int node, struct probe_target *t);

#endif
