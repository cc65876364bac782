/* SPDX-License-Identifier: PostgreSQL
 * fuzz_scram.c: fuzz target over both roles of SCRAM: the input is what the peer says, one message
 * a line. Invariants: a peer that does not know the password never gets DONE out of us; a refusal
 * says why; nothing is sent together with a refusal. "@" in a message stands for our part of the
 * nonce, so that mutations get past it. */
#include "config.h"

#include "auth/scram.h"

#include "fuzz_auth.h"

/* Cuts the next line out of *in. */
static struct slice next_line(struct slice *in)
{
    const char *nl = in->n == 0 ? NULL : memchr(in->p, '\n', in->n);
    struct slice line = slice_of(in->p, nl == NULL ? in->n : (size_t)(nl - in->p));

    *in = slice_of(in->p + line.n, in->n - line.n);
    if (nl != NULL)
        *in = slice_of(in->p + 1, in->n - 1);
    return line;
}

/* Puts `nonce` in place of each @. */
static void fill_in(struct slice line, struct slice nonce, struct buf *out)
{
    size_t i;

    buf_clear(out);
    for (i = 0; i < line.n && out->len < 100000; i++) {
        if (line.p[i] == '@')
            buf_put(out, nonce.p, nonce.n);
        else
            buf_put_byte(out, line.p[i]);
    }
}

static void check_server(enum scram_status st, const struct err *err, const struct buf *out)
{
    require(st != SCRAM_DONE, "a client got in that knows nothing");
    require((st == SCRAM_BROKEN) == err_is_set(err), "error and status differ");
    if (st == SCRAM_BROKEN || st == SCRAM_DENIED)
        require(out->len == 0, "something is sent with a refusal");
}

static void fuzz_server(struct slice in, bool plus)
{
    struct scram_verifier v = {.iterations = 4096, .salt_len = 16};
    struct scram_server_conf conf = {.verifier = &v};
    struct scram_server s;
    struct slice mechanism = next_line(&in);
    struct buf out = {0};
    struct buf msg = {0};
    struct buf nonce = {0};
    struct err err = {0};
    enum scram_status st;
    const char *comma;
    int i;

    memset(v.stored_key, 0x55, sizeof v.stored_key);
    conf.cbind = plus ? slice_of_str("hash of the certificate") : slice_of_str("");
    scram_server_init(&s, &conf);
    st = scram_server_start(&s, mechanism, next_line(&in), &out, &err);
    check_server(st, &err, &out);
    for (i = 0; i < 3 && st == SCRAM_CONTINUE; i++) {
        comma = out.len < 3 ? NULL : memchr(out.data, ',', out.len);
        if (comma != NULL)
            buf_put(&nonce, out.data + 2, (size_t)(comma - out.data) - 2);
        fill_in(next_line(&in), buf_slice(&nonce), &msg);
        buf_clear(&out);
        st = scram_server_step(&s, buf_slice(&msg), &out, &err);
        check_server(st, &err, &out);
    }
    scram_server_fini(&s);
    buf_free(&out);
    buf_free(&msg);
    buf_free(&nonce);
}

/* The whole input as the first message, and as the one behind a good first one. */
static void fuzz_outer(struct slice in)
{
    static const char good[] = "SCRAM-SHA-256\0\0\0\0\13n,,n=,r=abc";
    struct scram_verifier v = {.iterations = 4096, .salt_len = 16};
    struct scram_server_conf conf = {.verifier = &v};
    struct scram_server s;
    struct buf out = {0};
    struct err err = {0};
    enum scram_status st;

    scram_server_init(&s, &conf);
    st = scram_server_message(&s, in, &out, &err);
    check_server(st, &err, &out);
    scram_server_fini(&s);
    buf_clear(&out);
    err_clear(&err);
    scram_server_init(&s, &conf);
    st = scram_server_message(&s, slice_of(good, sizeof good), &out, &err);
    require(st == SCRAM_BROKEN, "a length that is one short");
    scram_server_fini(&s);
    err_clear(&err);
    buf_clear(&out);
    scram_server_init(&s, &conf);
    st = scram_server_message(&s, slice_of(good, sizeof good - 1), &out, &err);
    require(st == SCRAM_CONTINUE, "a good first message is refused");
    buf_clear(&out);
    check_server(scram_server_message(&s, in, &out, &err), &err, &out);
    scram_server_fini(&s);
    buf_free(&out);
}

static void fuzz_client(struct slice in, bool plus)
{
    struct scram_keys keys = {.verifier = {.iterations = 4096, .salt_len = 4}};
    struct scram_client_conf conf = {.keys = &keys, .mode = SCRAM_CBIND_PREFER};
    struct scram_client c;
    struct slice list = next_line(&in);
    struct buf out = {0};
    struct buf msg = {0};
    struct err err = {0};
    enum scram_status st;
    const char *mechanism;

    memcpy(keys.verifier.salt, "salt", 4);
    conf.cbind = plus ? slice_of_str("hash of the certificate") : slice_of_str("");
    scram_client_init(&c, &conf);
    if (list.n < 4) /* else the list itself is under test */
        list = slice_of("SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0", 34);
    st = scram_client_start(&c, list, &mechanism, &out, &err);
    if (st == SCRAM_CONTINUE) {
        fill_in(next_line(&in), slice_of(out.data + out.len - 24, 24), &msg);
        buf_clear(&out);
        st = scram_client_step(&c, buf_slice(&msg), &out, &err);
        require(st == SCRAM_CONTINUE || out.len == 0, "something is sent with a refusal");
    }
    if (st == SCRAM_CONTINUE)
        st = scram_client_final(&c, next_line(&in), &err);
    require(st != SCRAM_DONE && !scram_client_is_done(&c), "believed a server that knows nothing");
    require((st == SCRAM_BROKEN) == err_is_set(&err), "error and status differ");
    scram_client_fini(&c);
    buf_free(&out);
    buf_free(&msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice in = slice_of((const char *)data, size);
    struct scram_verifier v;
    struct buf text = {0};

    fuzz_outer(in);
    fuzz_server(in, false);
    fuzz_server(in, true);
    fuzz_client(in, false);
    fuzz_client(in, true);
    if (scram_verifier_parse(in, &v) == 0) {
        scram_verifier_format(&v, &text);
        require(text.len <= in.n, "a verifier grows");
        buf_free(&text);
    }
    return 0;
}

#define BIND "c=cD10bHMtc2VydmVyLWVuZC1wb2ludCwsaGFzaCBvZiB0aGUgY2VydGlmaWNhdGU=,r=@,x=y,p="
#define ZERO "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static const char *const seeds[] = {
    "SCRAM-SHA-256\nn,,n=,r=abc\nc=biws,r=@,p=" ZERO "\n",
    ("SCRAM-SHA-256-PLUS\np=tls-server-end-point,,n=u,r=abc,x=1\n" BIND ZERO "\n"),
    "SCRAM-SHA-256\ny,,n=,r=abc\nc=eSws,r=@,p=" ZERO "\n",
    "x\nr=@xyz,s=c2FsdA==,i=4096\nv=" ZERO "\n",
    "x\nr=@xyz,s=c2FsdA==,i=4096\ne=invalid-proof\n",
    "SCRAM-SHA-256$4096:c2FsdA==$" ZERO ":" ZERO,
};

FUZZ_MAIN(seeds, 60000, ",=@npyarscivme$:-AB/+")
