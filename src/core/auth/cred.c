/* SPDX-License-Identifier: PostgreSQL
 * cred.c: stored forms of a password and the checks against them. */
#include "config.h"

#include "auth/cred.h"

#include <string.h>

#include "base/mem.h"
#include "crypto/crypto.h"

void cred_free(struct cred *c)
{
    secret_free(&c->text);
    mem_wipe(c, sizeof *c);
    c->kind = CRED_NONE;
}

void cred_copy(const struct cred *from, struct cred *to)
{
    cred_free(to);
    to->kind = from->kind;
    to->verifier = from->verifier;
    secret_set(&to->text, secret_slice(&from->text));
}

bool cred_is_md5(struct slice text)
{
    size_t i;

    if (text.n != CRED_MD5_BYTES || memcmp(text.p, "md5", 3) != 0)
        return false;
    for (i = 3; i < text.n; i++)
        if (!((text.p[i] >= '0' && text.p[i] <= '9') || (text.p[i] >= 'a' && text.p[i] <= 'f')))
            return false;
    return true;
}

void cred_from_stored(struct slice stored, struct cred *c)
{
    cred_free(c);
    if (stored.n == 0)
        return;
    if (scram_verifier_parse(stored, &c->verifier) == 0) {
        c->kind = CRED_SCRAM;
        return;
    }
    c->kind = cred_is_md5(stored) ? CRED_MD5 : CRED_PLAIN;
    secret_set(&c->text, stored);
}

void cred_from_plain(struct slice password, struct cred *c)
{
    cred_free(c);
    if (password.n == 0)
        return;
    c->kind = CRED_PLAIN;
    secret_set(&c->text, password);
}

int cred_make_md5(
    struct slice user, struct slice password, char out[CRED_MD5_BYTES + 1], struct err *err)
{
    memcpy(out, "md5", 3);
    return crypto_md5_hex(password, user, out + 3, err);
}

int cred_check_password(const struct cred *c, struct slice user, struct slice password, bool *match,
    struct scram_keys *keys, struct err *err)
{
    char text[CRED_MD5_BYTES + 1];

    *match = false;
    if (password.n == 0)
        return 0;
    switch (c->kind) {
    case CRED_NONE:
        return 0;
    case CRED_PLAIN:
        *match = secret_equal(&c->text, password);
        return 0;
    case CRED_MD5:
        if (cred_make_md5(user, password, text, err) == -1)
            return -1;
        *match = secret_equal(&c->text, slice_of(text, CRED_MD5_BYTES));
        mem_wipe(text, sizeof text);
        return 0;
    case CRED_SCRAM:
        return scram_verifier_check(&c->verifier, password, match, keys, err);
    }
    return 0;
}

int cred_answer_md5(const struct cred *c, struct slice user,
    const uint8_t salt[CRED_MD5_SALT_BYTES], char out[CRED_MD5_BYTES + 1], struct err *err)
{
    char text[CRED_MD5_BYTES + 1];
    int rc;

    if (c->kind == CRED_MD5) {
        memcpy(text, secret_slice(&c->text).p, CRED_MD5_BYTES);
    } else if (c->kind != CRED_PLAIN) {
        err_set(err, "28000", "md5 authentication needs a plain or md5 password for user \"%.*s\"",
            (int)user.n, user.p);
        return -1;
    } else if (cred_make_md5(user, secret_slice(&c->text), text, err) == -1) {
        return -1;
    }
    memcpy(out, "md5", 3);
    rc = crypto_md5_hex(slice_of(text + 3, CRYPTO_MD5_HEX_BYTES),
        slice_of((const char *)salt, CRED_MD5_SALT_BYTES), out + 3, err);
    mem_wipe(text, sizeof text);
    return rc;
}

int cred_check_md5(const struct cred *c, struct slice user, const uint8_t salt[CRED_MD5_SALT_BYTES],
    struct slice response, bool *match, struct err *err)
{
    char want[CRED_MD5_BYTES + 1];

    *match = false;
    if (c->kind != CRED_PLAIN && c->kind != CRED_MD5)
        return 0;
    if (cred_answer_md5(c, user, salt, want, err) == -1)
        return -1;
    *match = response.n == CRED_MD5_BYTES && crypto_equal(response.p, want, CRED_MD5_BYTES);
    return 0;
}

int cred_scram_verifier(const struct cred *c, struct slice user, struct slice server_secret,
    uint32_t iterations, struct scram_verifier *out, struct err *err)
{
    uint8_t salt[SCRAM_SALT_BYTES];

    if (c->kind == CRED_SCRAM) {
        *out = c->verifier;
        return 0;
    }
    if (c->kind != CRED_PLAIN) {
        err_set(err, "28000",
            "SCRAM authentication needs a plain password or a SCRAM verifier for user \"%.*s\"",
            (int)user.n, user.p);
        return -1;
    }
    if (scram_salt_of_user(server_secret, user, salt, err) == -1)
        return -1;
    return scram_verifier_build(
        secret_slice(&c->text), slice_of((const char *)salt, sizeof salt), iterations, out, err);
}
