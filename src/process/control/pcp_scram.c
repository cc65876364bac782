/* SPDX-License-Identifier: PostgreSQL
 * pcp_scram.c: log-in of administrators by SCRAM, for those whose line in pcp.conf has a verifier.
 * Runs in: control. pgpool-II's protocol knows md5 alone: who asks for a salt and says who it is
 * (our tools do) finds the list of mechanisms behind the salt; see doc/internals/pcp-login.md. A
 * verifier costs no iterations here, so nothing keeps the loop. */
#include "config.h"

#include "auth/auth_guard.h"
#include "base/log.h"
#include "base/mem.h"
#include "crypto/crypto.h"
#include "net/tls.h"

#include "control_int.h"

/* The hash of our certificate, for SCRAM-SHA-256-PLUS; empty without TLS. */
static struct slice scram_channel(const struct pcp_conn *c, uint8_t hash[CRYPTO_CERT_HASH_MAX])
{
    struct buf der = {0};
    struct err err = {0};
    size_t n = 0;
    int nid = 0;

    if (stream_is_tls(&c->stream) && stream_tls_server_cert(&c->stream, &der, &nid) == 0 &&
        crypto_cert_hash_by(buf_slice(&der), nid, hash, &n, &err) == -1)
        n = 0;
    buf_free(&der);
    return slice_of((const char *)hash, n);
}

void pcp_scram_offer(struct pcp_conn *c, struct slice user, struct buf *out)
{
    uint8_t hash[CRYPTO_CERT_HASH_MAX];
    struct scram_server_conf conf = {0};
    struct pcp_proof proof;
    struct err err = {0};

    c->has_scram = false;
    if (pcp_login_find(c, user, &proof, &err) == -1 ||
        (proof.is_scram && crypto_random(conf.nonce, sizeof conf.nonce, &err) == -1)) {
        log_err(LVL_WARNING, &err);
        return; /* nothing will fit */
    }
    if (proof.is_scram) {
        conf.verifier = &proof.verifier;
        conf.is_mock = proof.is_mock;
        conf.cbind = scram_channel(c, hash);
        scram_server_fini(&c->scram);
        scram_server_init(&c->scram, &conf);
        scram_server_mechanisms(&c->scram, out);
        c->has_scram = true;
    }
    mem_wipe(&proof, sizeof proof);
}

int pcp_scram_step(struct pcp_conn *c, struct slice body)
{
    struct buf text = {0};
    struct buf out = {0};
    struct err err = {0};
    enum scram_status st = scram_server_message(&c->scram, body, &text, &err);
    size_t mark;

    if (st == SCRAM_CONTINUE || st == SCRAM_DONE) {
        mark = pcp_begin(&out, PCP_ANSWER_SASL);
        buf_put(&out, text.data, text.len);
        pcp_end(&out, mark);
        pcp_conn_send(c, &out);
        buf_free(&out);
    } else if (err_is_set(&err)) {
        log_at_detail(LVL_LOG, err.detail[0] != '\0' ? err.detail : NULL, NULL,
            "PCP log-in of user \"%s\" from %s failed: %s", c->user, c->peer, err.msg);
    }
    buf_free(&text);
    if (st == SCRAM_DONE)
        scram_server_fini(&c->scram);
    return st == SCRAM_DONE ? 1 : st == SCRAM_CONTINUE ? 0 : -1;
}
