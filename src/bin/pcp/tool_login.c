/* SPDX-License-Identifier: PostgreSQL
 * tool_login.c: how a pcp_* tool proves who asks: by SCRAM when the server offers it for this user,
 * else by pgpool-II's md5. With SCRAM the server has to prove itself, too: it must know the
 * verifier. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "auth/cred.h"
#include "auth/scram.h"
#include "base/mem.h"
#include "crypto/crypto.h"

#include "pcp_tool.h"

static bool failed(const struct err *err)
{
    fprintf(stderr, "ERROR: %s\n", err->msg);
    return false;
}

/* ---- md5 ---- */

/* md5(md5(md5(password) user) salt): where PostgreSQL has the password stands its md5. */
static bool make_md5(const struct tool_options *o, struct slice password,
    const uint8_t salt[PCP_SALT_BYTES], struct buf *out)
{
    char hex[CRYPTO_MD5_HEX_BYTES + 1];
    char response[CRED_MD5_BYTES + 1];
    struct cred cred = {0};
    struct err err = {0};
    bool ok = crypto_md5_hex(password, slice_of("", 0), hex, &err) == 0;

    if (ok) {
        cred_from_plain(slice_of_str(hex), &cred);
        ok = cred_answer_md5(&cred, slice_of_str(o->user), salt, response, &err) == 0;
        cred_free(&cred);
    }
    if (ok) {
        buf_put_cstr(out, o->user);
        buf_put_cstr(out, response + 3);
    } else {
        (void)failed(&err);
    }
    mem_wipe(hex, sizeof hex);
    mem_wipe(response, sizeof response);
    return ok;
}

static bool by_md5(struct tool_link *l, const struct tool_options *o, struct slice password,
    const uint8_t salt[PCP_SALT_BYTES])
{
    struct buf body = {0};
    bool ok;

    if (o->needs_scram) {
        fprintf(stderr, "ERROR: the server wants an answer by md5, but SCRAM is required\n");
        return false;
    }
    ok = make_md5(o, password, salt, &body) && tool_link_send(l, PCP_LOGIN, &body);
    buf_free(&body);
    return ok;
}

/* ---- SCRAM ---- */

/* The hash of the server's certificate, which binds the exchange to this TLS connection. */
static struct slice channel(const struct tool_link *l, uint8_t hash[CRYPTO_CERT_HASH_MAX])
{
    struct buf der = {0};
    struct err err = {0};
    size_t n = 0;

    tool_tls_server_cert(l, &der);
    if (der.len > 0 && crypto_cert_hash(buf_slice(&der), hash, &n, &err) == -1)
        n = 0;
    buf_free(&der);
    return slice_of((const char *)hash, n);
}

/* Sends a message, waits for the server's. */
static bool exchange(struct tool_link *l, const struct buf *message, struct tool_answer *a)
{
    tool_answer_free(a);
    return tool_link_send(l, PCP_SASL, message) && tool_link_answer(l, PCP_ANSWER_SASL, a) == 1;
}

static bool run_scram(struct tool_link *l, struct scram_client *s, struct slice mechanisms,
    struct tool_answer *a, struct err *err)
{
    const char *mechanism;
    struct buf text = {0};
    struct buf body = {0};
    bool ok = scram_client_start(s, mechanisms, &mechanism, &text, err) == SCRAM_CONTINUE;

    if (ok) {
        buf_put_cstr(&body, mechanism);
        buf_put_u32(&body, text.len);
        buf_put(&body, text.data, text.len);
        ok = exchange(l, &body, a);
    }
    buf_clear(&text);
    ok = ok && scram_client_step(s, buf_slice(&a->bytes), &text, err) == SCRAM_CONTINUE &&
         exchange(l, &text, a) && scram_client_final(s, buf_slice(&a->bytes), err) == SCRAM_DONE;
    buf_free(&text);
    buf_free(&body);
    return ok;
}

static bool by_scram(struct tool_link *l, struct slice password, struct slice mechanisms)
{
    struct scram_client_conf conf = {.password = password, .mode = SCRAM_CBIND_PREFER};
    uint8_t hash[CRYPTO_CERT_HASH_MAX];
    struct scram_client s = {0};
    struct tool_answer a = {0};
    struct err err = {0};
    bool ok = false;

    if (crypto_random(conf.nonce, sizeof conf.nonce, &err) == 0) {
        conf.cbind = channel(l, hash);
        scram_client_init(&s, &conf);
        ok = run_scram(l, &s, mechanisms, &a, &err);
        scram_client_fini(&s);
    }
    if (!ok && err_is_set(&err)) /* else it has been said */
        (void)failed(&err);
    tool_answer_free(&a);
    return ok;
}

bool tool_login(struct tool_link *l, const struct tool_options *o, struct slice password)
{
    struct tool_answer salt = {0};
    struct tool_answer ok = {0};
    struct slice rest;
    struct buf name = {0};
    bool done;

    buf_put_cstr(&name, o->user); /* pgpool-II does not look at it */
    done = tool_link_send(l, PCP_SALT, &name) && tool_link_answer(l, PCP_ANSWER_SALT, &salt) == 1;
    if (done && salt.bytes.len < PCP_SALT_BYTES) {
        fprintf(stderr, "ERROR: the server sent no salt\n");
        done = false;
    }
    if (done) {
        rest = slice_of(salt.bytes.data + PCP_SALT_BYTES, salt.bytes.len - PCP_SALT_BYTES);
        done = rest.n > 0 ? by_scram(l, password, rest)
                          : by_md5(l, o, password, (const uint8_t *)salt.bytes.data);
    }
    done = done && tool_link_answer(l, PCP_ANSWER_LOGIN, &ok) == 1;
    buf_free(&name);
    tool_answer_free(&salt);
    tool_answer_free(&ok);
    return done;
}
