/* SPDX-License-Identifier: PostgreSQL
 * cred.h: what is stored about a user's password, in whatever form, and the checks against it: a
 * clear-text password, an md5 response; and the md5 response we send to a server.
 * Runs in: workers, control. Pure. */
#ifndef PGP_AUTH_CRED_H
#define PGP_AUTH_CRED_H

#include <stdbool.h>

#include "auth/scram.h"
#include "base/err.h"
#include "base/slice.h"
#include "crypto/secret.h"

#define CRED_MD5_BYTES      35 /* "md5" and 32 hex digits */
#define CRED_MD5_SALT_BYTES 4

enum cred_kind { CRED_NONE, CRED_PLAIN, CRED_MD5, CRED_SCRAM };

/* A zeroed struct is CRED_NONE. */
struct cred {
    enum cred_kind kind;
    struct secret text;             /* CRED_PLAIN: the password; CRED_MD5: "md5…" */
    struct scram_verifier verifier; /* CRED_SCRAM */
};

/* Wipes and frees; *c is CRED_NONE afterwards. */
void cred_free(struct cred *c);
/* Makes *to, whatever it was, a copy of *from. */
void cred_copy(const struct cred *from, struct cred *to);
/* True when `text` is "md5" and 32 hex digits. */
bool cred_is_md5(struct slice text);
/* Fills *c from a value of pg_authid.rolpassword: md5, SCRAM verifier, anything else is a plain
 * password. An empty value gives CRED_NONE: an empty password never opens anything. */
void cred_from_stored(struct slice stored, struct cred *c);
/* Fills *c with a plain password, whatever it looks like. */
void cred_from_plain(struct slice password, struct cred *c);

/* Sets *match when the clear-text `password` of `user` fits. With SCRAM, *keys (may be NULL) are
 * the keys that it gives. CRED_NONE and an empty password never match. */
int cred_check_password(const struct cred *c, struct slice user, struct slice password, bool *match,
    struct scram_keys *keys, struct err *err);
/* Sets *match when `response` ("md5…") answers the challenge `salt`. False for CRED_SCRAM, which
 * cannot be checked this way. */
int cred_check_md5(const struct cred *c, struct slice user, const uint8_t salt[CRED_MD5_SALT_BYTES],
    struct slice response, bool *match, struct err *err);
/* Makes the response to a server's challenge; out has room for CRED_MD5_BYTES and a NUL. -1 with
 * 28000 when `c` is of a kind that cannot answer md5. */
int cred_answer_md5(const struct cred *c, struct slice user,
    const uint8_t salt[CRED_MD5_SALT_BYTES], char out[CRED_MD5_BYTES + 1], struct err *err);
/* Makes the stored form "md5…" of a password. */
int cred_make_md5(
    struct slice user, struct slice password, char out[CRED_MD5_BYTES + 1], struct err *err);
/* Gives the verifier that the server role of SCRAM needs: the stored one, or one made of a plain
 * password with the salt of scram_salt_of_user and so many iterations. -1 with 28000 for CRED_MD5
 * and CRED_NONE. */
int cred_scram_verifier(const struct cred *c, struct slice user, struct slice server_secret,
    uint32_t iterations, struct scram_verifier *out, struct err *err);

#endif
