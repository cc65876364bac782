/* SPDX-License-Identifier: PostgreSQL
 * test_scram.c: SCRAM-SHA-256 in both roles: the exchange of RFC 7677, the two roles against each
 * other, verifiers that PostgreSQL made, channel binding and its downgrade, stand-ins, hostile
 * texts. */
#include "config.h"

#include "auth/scram.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/saslprep.h"
#include "base/mem.h"
#include "crypto/crypto.h"

static struct slice str(const char *s)
{
    return slice_of_str(s);
}

static void build(const char *password, uint32_t iterations, struct scram_verifier *v)
{
    ck_assert_int_eq(
        scram_verifier_build(str(password), str("0123456789abcdef"), iterations, v, NULL), 0);
}

/* RFC 7677, section 3: user "user", password "pencil". */
START_TEST(test_rfc7677_keys)
{
    static const char first_bare[] = "n=user,r=rOprNGfwEbeRWgbNEkqO";
    static const char server_first[] =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    static const char without_proof[] =
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    char auth[512];
    uint8_t salt[16];
    uint8_t sig[32];
    struct scram_keys keys;
    struct buf text = {0};
    size_t n;
    int i;

    ck_assert_int_eq(
        crypto_base64_decode(str("W22ZaJ0SNY7soEsUEjb6gQ=="), salt, sizeof salt, &n), 0);
    ck_assert_int_eq(
        scram_keys_derive(str("pencil"), slice_of((const char *)salt, n), 4096, &keys, NULL), 0);
    snprintf(auth, sizeof auth, "%s,%s,%s", first_bare, server_first, without_proof);
    ck_assert_int_eq(crypto_hmac_sha256(slice_of((const char *)keys.verifier.stored_key, 32),
                         str(auth), sig, NULL),
        0);
    for (i = 0; i < 32; i++)
        sig[i] ^= keys.client_key[i];
    crypto_base64_encode(slice_of((const char *)sig, 32), &text);
    ck_assert(slice_eq_str(buf_slice(&text), "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="));
    buf_clear(&text);
    ck_assert_int_eq(crypto_hmac_sha256(slice_of((const char *)keys.verifier.server_key, 32),
                         str(auth), sig, NULL),
        0);
    crypto_base64_encode(slice_of((const char *)sig, 32), &text);
    ck_assert(slice_eq_str(buf_slice(&text), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
    buf_free(&text);
}
END_TEST

/* Our server and our client against each other. */
struct duel {
    struct scram_server server;
    struct scram_client client;
    enum scram_status server_status;
    enum scram_status client_status;
    struct err server_err;
    struct err client_err;
    const char *mechanism;
};

struct duel_conf {
    struct scram_server_conf server;
    struct scram_client_conf client;
    const char *list; /* what the client is told; NULL: what the server offers */
    size_t list_n;
};

static void duel_run(struct duel *d, const struct duel_conf *conf)
{
    struct buf list = {0};
    struct buf a = {0};
    struct buf b = {0};

    memset(d, 0, sizeof *d);
    scram_server_init(&d->server, &conf->server);
    scram_client_init(&d->client, &conf->client);
    scram_server_mechanisms(&d->server, &list);
    if (conf->list != NULL) {
        buf_clear(&list);
        buf_put(&list, conf->list, conf->list_n);
    }
    d->server_status = SCRAM_CONTINUE;
    d->client_status =
        scram_client_start(&d->client, buf_slice(&list), &d->mechanism, &a, &d->client_err);
    if (d->client_status == SCRAM_CONTINUE)
        d->server_status =
            scram_server_start(&d->server, str(d->mechanism), buf_slice(&a), &b, &d->server_err);
    if (d->client_status == SCRAM_CONTINUE && d->server_status == SCRAM_CONTINUE) {
        buf_clear(&a);
        d->client_status = scram_client_step(&d->client, buf_slice(&b), &a, &d->client_err);
    }
    if (d->client_status == SCRAM_CONTINUE && d->server_status == SCRAM_CONTINUE) {
        buf_clear(&b);
        d->server_status = scram_server_step(&d->server, buf_slice(&a), &b, &d->server_err);
    }
    if (d->server_status == SCRAM_DONE)
        d->client_status = scram_client_final(&d->client, buf_slice(&b), &d->client_err);
    buf_free(&list);
    buf_free(&a);
    buf_free(&b);
}

static void duel_end(struct duel *d)
{
    scram_server_fini(&d->server);
    scram_client_fini(&d->client);
}

static struct duel_conf conf_of(const struct scram_verifier *v, const char *password)
{
    struct duel_conf c = {0};

    c.server.verifier = v;
    memset(c.server.nonce, 7, sizeof c.server.nonce);
    c.client.password = str(password);
    c.client.mode = SCRAM_CBIND_PREFER;
    memset(c.client.nonce, 9, sizeof c.client.nonce);
    return c;
}

static const uint32_t iteration_counts[] = {1, 2, 4096, 100000, 1000000};

START_TEST(test_duel_iterations)
{
    struct scram_verifier v;
    struct duel_conf c;
    struct duel d;

    build("geheim", iteration_counts[_i], &v);
    c = conf_of(&v, "geheim");
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_DONE);
    ck_assert_int_eq(d.client_status, SCRAM_DONE);
    ck_assert(scram_client_is_done(&d.client));
    duel_end(&d);
}
END_TEST

START_TEST(test_duel_wrong_password)
{
    static const char *const wrong[] = {"geheiM", "", " geheim", "geheim ", "geheim\n"};
    struct scram_verifier v;
    struct duel_conf c;
    struct duel d;
    size_t i;

    build("geheim", 16, &v);
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        c = conf_of(&v, wrong[i]);
        duel_run(&d, &c);
        ck_assert_int_eq(d.server_status, SCRAM_DENIED);
        ck_assert(!err_is_set(&d.server_err));
        ck_assert(!scram_client_is_done(&d.client));
        duel_end(&d);
    }
}
END_TEST

/* The first message as it stands in a packet of the client. */
static void watch_first(struct scram_watch *w, const char *mechanism, const struct buf *data)
{
    struct buf body = {0};

    buf_put_cstr(&body, mechanism);
    buf_put_u32(&body, (uint32_t)data->len);
    buf_put(&body, data->data, data->len);
    scram_watch_client(w, buf_slice(&body));
    buf_free(&body);
}

/* An exchange that is only passed on: whether the proof is right is seen by the verifier alone. */
static bool watched(const struct scram_verifier *v, const char *password,
    const struct scram_verifier *looked_up, struct scram_keys *keys)
{
    struct duel_conf c = conf_of(v, password);
    struct scram_watch w = {0};
    const char *mechanism;
    struct err err = {0};
    struct buf a = {0};
    struct buf b = {0};
    struct duel d = {0};
    bool is_known;

    scram_client_init(&d.client, &c.client);
    scram_server_init(&d.server, &c.server);
    (void)scram_client_start(
        &d.client, slice_of(SCRAM_NAME "\0", sizeof SCRAM_NAME + 1), &mechanism, &a, &err);
    watch_first(&w, mechanism, &a);
    (void)scram_server_start(&d.server, str(mechanism), buf_slice(&a), &b, &err);
    ck_assert(!scram_watch_is_whole(&w));
    scram_watch_server(&w, buf_slice(&b));
    buf_clear(&a);
    (void)scram_client_step(&d.client, buf_slice(&b), &a, &err);
    ck_assert(!scram_watch_keys(&w, looked_up, keys));
    scram_watch_client(&w, buf_slice(&a));
    ck_assert(scram_watch_is_whole(&w));
    is_known = scram_watch_keys(&w, looked_up, keys);
    scram_watch_fini(&w);
    duel_end(&d);
    buf_free(&a);
    buf_free(&b);
    return is_known;
}

START_TEST(test_watched_exchange)
{
    static const char plus[] = SCRAM_NAME_PLUS "\0\0\0\0\11p=x,,n=,r=a";
    static const char bound[] = SCRAM_NAME "\0\0\0\0\13p=x,,n=,r=a";
    static const struct scram_keys none;
    struct scram_watch w = {0};
    struct scram_verifier v;
    struct scram_verifier changed;
    struct scram_keys keys;
    struct duel_conf c;
    struct duel d;

    build("geheim", 4096, &v);
    build("neu", 4096, &changed);
    ck_assert(watched(&v, "geheim", &v, &keys));
    c = conf_of(&v, "");
    c.client.keys = &keys;
    memset(c.server.nonce, 33, sizeof c.server.nonce);
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_DONE);
    duel_end(&d);
    ck_assert(!watched(&v, "falsch", &v, &keys));
    ck_assert_mem_eq(&keys, &none, sizeof keys);
    ck_assert(!watched(&v, "geheim", &changed, &keys));
    ck_assert_mem_eq(&keys, &none, sizeof keys);
    scram_watch_client(&w, slice_of(plus, sizeof plus - 1));
    scram_watch_server(&w, str("r=ab,s=YQ==,i=1"));
    scram_watch_client(&w, str("c=biws,r=ab,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
    ck_assert(!scram_watch_is_whole(&w));
    scram_watch_fini(&w);
    scram_watch_client(&w, slice_of(bound, sizeof bound - 1));
    scram_watch_server(&w, str("r=ab,s=YQ==,i=1"));
    scram_watch_client(&w, str("c=biws,r=ab,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
    ck_assert(!scram_watch_is_whole(&w));
    scram_watch_fini(&w);
}
END_TEST

/* A pooler in the middle: the client proves itself to us by a verifier; with the keys that its
 * proof gives we log in to the server that has the same verifier. */
START_TEST(test_pass_through_keys)
{
    struct scram_verifier v;
    struct scram_verifier other;
    struct scram_keys keys;
    struct scram_keys again;
    struct duel_conf c;
    struct duel d;

    build("geheim", 4096, &v);
    c = conf_of(&v, "geheim");
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_DONE);
    scram_server_keys(&d.server, &keys);
    scram_client_keys(&d.client, &again);
    ck_assert_mem_eq(keys.client_key, again.client_key, 32);
    duel_end(&d);

    c = conf_of(&v, "");
    c.client.keys = &keys;
    memset(c.server.nonce, 33, sizeof c.server.nonce);
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_DONE);
    ck_assert_int_eq(d.client_status, SCRAM_DONE);
    duel_end(&d);

    /* The password was changed, to the same one even: other salt, the keys are stale. */
    ck_assert_int_eq(
        scram_verifier_build(str("geheim"), str("other salt......"), 4096, &other, NULL), 0);
    c.server.verifier = &other;
    duel_run(&d, &c);
    ck_assert_int_eq(d.client_status, SCRAM_STALE);
    ck_assert_int_eq(d.server_status, SCRAM_CONTINUE);
    duel_end(&d);

    build("geheim", 4097, &other);
    duel_run(&d, &c);
    ck_assert_int_eq(d.client_status, SCRAM_STALE);
    duel_end(&d);

    /* Same salt and iterations, other password: the server says no. */
    build("anders", 4096, &other);
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_DENIED);
    duel_end(&d);
}
END_TEST

START_TEST(test_server_has_to_prove)
{
    struct scram_verifier v;
    struct duel_conf c;
    struct duel d;

    build("geheim", 16, &v);
    v.server_key[3] ^= 1; /* knows StoredKey, not ServerKey */
    c = conf_of(&v, "geheim");
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_DONE);
    ck_assert_int_eq(d.client_status, SCRAM_BROKEN);
    ck_assert_str_eq(d.client_err.sqlstate, "28000");
    duel_end(&d);
}
END_TEST

START_TEST(test_mock_denies)
{
    struct scram_verifier v;
    struct scram_verifier w;
    struct duel_conf c;
    struct duel d;

    ck_assert_int_eq(scram_verifier_mock(str("secret"), str("eve"), 4096, false, &v, NULL), 0);
    ck_assert_int_eq(scram_verifier_mock(str("secret"), str("eve"), 4096, true, &w, NULL), 0);
    ck_assert_mem_eq(&v, &w, sizeof v); /* no other answer, at either cost */
    ck_assert_int_eq(scram_verifier_mock(str("secret"), str("adam"), 4096, false, &w, NULL), 0);
    ck_assert(memcmp(v.salt, w.salt, 16) != 0);
    ck_assert_int_eq(scram_verifier_mock(str("other"), str("eve"), 4096, false, &w, NULL), 0);
    ck_assert(memcmp(v.salt, w.salt, 16) != 0);
    c = conf_of(&v, "anything");
    c.server.is_mock = true;
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_DENIED);
    duel_end(&d);
    /* Even the right password of the verifier does not pass a stand-in. */
    build("geheim", 16, &v);
    c = conf_of(&v, "geheim");
    c.server.is_mock = true;
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_DENIED);
    duel_end(&d);
}
END_TEST

START_TEST(test_channel_binding)
{
    static const char no_plus[] = "SCRAM-SHA-256\0";
    struct scram_verifier v;
    struct duel_conf c;
    struct duel d;

    build("geheim", 16, &v);
    c = conf_of(&v, "geheim");
    c.server.cbind = str("hash of certificate");
    c.client.cbind = str("hash of certificate");
    duel_run(&d, &c);
    ck_assert_str_eq(d.mechanism, SCRAM_NAME_PLUS);
    ck_assert_int_eq(d.client_status, SCRAM_DONE);
    duel_end(&d);

    /* Somebody sits between, with a certificate of his own. */
    c.client.cbind = str("hash of another one");
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_BROKEN);
    ck_assert_str_eq(d.server_err.sqlstate, "28000");
    duel_end(&d);

    /* Somebody took the offer out of the list: "y" tells. */
    c.client.cbind = str("hash of certificate");
    c.list = no_plus;
    c.list_n = sizeof no_plus;
    duel_run(&d, &c);
    ck_assert_int_eq(d.server_status, SCRAM_BROKEN);
    ck_assert_str_eq(d.server_err.msg, "SCRAM channel binding negotiation error");
    duel_end(&d);

    /* The client insists: it does not even begin. */
    c.client.mode = SCRAM_CBIND_REQUIRE;
    duel_run(&d, &c);
    ck_assert_int_eq(d.client_status, SCRAM_BROKEN);
    duel_end(&d);

    /* The client does not want to: "n" is fine. */
    c.client.mode = SCRAM_CBIND_DISABLE;
    c.list = NULL;
    duel_run(&d, &c);
    ck_assert_str_eq(d.mechanism, SCRAM_NAME);
    ck_assert_int_eq(d.client_status, SCRAM_DONE);
    duel_end(&d);

    /* The server cannot: "y" is fine. */
    c.client.mode = SCRAM_CBIND_PREFER;
    c.server.cbind = str("");
    duel_run(&d, &c);
    ck_assert_str_eq(d.mechanism, SCRAM_NAME);
    ck_assert_int_eq(d.client_status, SCRAM_DONE);
    duel_end(&d);
}
END_TEST

/* First messages that the server role must refuse, and with which SQLSTATE. */
static const char *const bad_first[][3] = {
    {SCRAM_NAME, "", "08P01"},
    {SCRAM_NAME, "n", "08P01"},
    {SCRAM_NAME, "n,", "08P01"},
    {SCRAM_NAME, "n,,", "08P01"},
    {SCRAM_NAME, "n,,n=", "08P01"},
    {SCRAM_NAME, "n,,n=,r=", "08P01"},
    {SCRAM_NAME, "n,,r=abc,n=", "08P01"},
    {SCRAM_NAME, "x,,n=,r=abc", "08P01"},
    {SCRAM_NAME, "n,a=root,n=,r=abc", "0A000"},
    {SCRAM_NAME, "n,,m=x,n=,r=abc", "0A000"},
    {SCRAM_NAME, "n,,n=,r=a\x01z", "08P01"},
    {SCRAM_NAME, "n,,n=,r=abc,m=x", "08P01"},
    {SCRAM_NAME, "n,,n=,r=abc,junk", "08P01"},
    {SCRAM_NAME, "n,,n=,r=\xc3\xa4", "08P01"},
    {SCRAM_NAME, "p=tls-server-end-point,,n=,r=abc", "08P01"},
    {SCRAM_NAME_PLUS, "n,,n=,r=abc", "08P01"},
    {SCRAM_NAME_PLUS, "y,,n=,r=abc", "08P01"},
    {SCRAM_NAME_PLUS, "p=tls-unique,,n=,r=abc", "08P01"},
    {SCRAM_NAME, "y,,n=,r=abc", "28000"},
    {"SCRAM-SHA-1", "n,,n=,r=abc", "08P01"},
    {"", "n,,n=,r=abc", "08P01"},
};

START_TEST(test_bad_first)
{
    struct scram_verifier v;
    struct duel_conf c;
    struct scram_server s;
    struct err err = {0};
    struct buf out = {0};

    build("geheim", 1, &v);
    c = conf_of(&v, "geheim");
    c.server.cbind = str("hash");
    scram_server_init(&s, &c.server);
    ck_assert_int_eq(
        scram_server_start(&s, str(bad_first[_i][0]), str(bad_first[_i][1]), &out, &err),
        SCRAM_BROKEN);
    ck_assert_str_eq(err.sqlstate, bad_first[_i][2]);
    ck_assert_uint_eq(out.len, 0);
    /* And nothing works after that. */
    ck_assert_int_eq(scram_server_step(&s, str("c=biws,r=x,p=eA=="), &out, &err), SCRAM_BROKEN);
    ck_assert_int_eq(
        scram_server_start(&s, str(SCRAM_NAME), str("n,,n=,r=a"), &out, &err), SCRAM_BROKEN);
    scram_server_fini(&s);
    buf_free(&out);
}
END_TEST

START_TEST(test_first_without_data)
{
    struct scram_verifier v;
    struct duel_conf c;
    struct scram_server s;
    struct buf out = {0};

    build("geheim", 1, &v);
    c = conf_of(&v, "geheim");
    scram_server_init(&s, &c.server);
    ck_assert_int_eq(
        scram_server_start(&s, str(SCRAM_NAME), slice_of(NULL, 0), &out, NULL), SCRAM_CONTINUE);
    ck_assert_uint_eq(out.len, 0);
    ck_assert_int_eq(scram_server_step(&s, str("n,,n=x,r=abc,e=1"), &out, NULL), SCRAM_CONTINUE);
    ck_assert_int_eq(memcmp(out.data, "r=abc", 5), 0);
    scram_server_fini(&s);
    buf_free(&out);
}
END_TEST

/* Final messages with one thing wrong; %s is the right nonce, %p a well-formed proof. */
static const char *const bad_final[] = {
    "",
    "c=biws",
    "c=biws,r=abc,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "c=biws,r=@,p=",
    "c=biws,r=@,p=AAAA",
    "c=biws,r=@",
    "c=eSws,r=@,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "c=,r=@,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "r=@,c=biws,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "c=biws,r=@,m=x,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "c=biws,r=@,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,x=1",
    "c=biws,r=@x,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
};

START_TEST(test_bad_final)
{
    struct scram_verifier v;
    struct duel_conf c;
    struct scram_server s;
    struct buf out = {0};
    struct buf msg = {0};
    const char *p;
    const char *comma;

    build("geheim", 1, &v);
    c = conf_of(&v, "geheim");
    scram_server_init(&s, &c.server);
    ck_assert_int_eq(
        scram_server_start(&s, str(SCRAM_NAME), str("n,,n=,r=abc"), &out, NULL), SCRAM_CONTINUE);
    comma = memchr(out.data, ',', out.len);
    for (p = bad_final[_i]; *p != '\0'; p++) {
        if (*p == '@')
            buf_put(&msg, out.data + 2, (size_t)(comma - out.data) - 2);
        else
            buf_put_byte(&msg, *p);
    }
    buf_clear(&out);
    ck_assert_int_eq(scram_server_step(&s, buf_slice(&msg), &out, NULL), SCRAM_BROKEN);
    ck_assert_uint_eq(out.len, 0);
    scram_server_fini(&s);
    buf_free(&out);
    buf_free(&msg);
}
END_TEST

/* What a hostile server may say first; @ is our nonce. */
static const char *const bad_server[] = {
    "",
    "r=,s=c2FsdA==,i=1",
    "r=@,s=c2FsdA==,i=1",
    "r=x@y,s=c2FsdA==,i=1",
    "r=@y,s=,i=1",
    "r=@y,s=c2FsdA,i=1",
    "r=@y,s=c2FsdA==,i=0",
    "r=@y,s=c2FsdA==,i=-1",
    "r=@y,s=c2FsdA==,i=1000001",
    "r=@y,s=c2FsdA==,i=99999999999",
    "r=@y,s=c2FsdA==,i=",
    "r=@y,s=c2FsdA==,i=1x",
    "r=@y,i=1,s=c2FsdA==",
    "m=ext,r=@y,s=c2FsdA==,i=1",
    "r=@y,s=c2FsdA==,i=1,m=x",
    "e=other-error",
};

START_TEST(test_bad_server)
{
    struct duel_conf c = {0};
    struct scram_client k;
    struct buf out = {0};
    struct buf msg = {0};
    struct err err = {0};
    const char *mech;
    const char *p;

    c = conf_of(&(struct scram_verifier){0}, "geheim");
    scram_client_init(&k, &c.client);
    ck_assert_int_eq(
        scram_client_start(&k, slice_of("SCRAM-SHA-256\0", 15), &mech, &out, NULL), SCRAM_CONTINUE);
    for (p = bad_server[_i]; *p != '\0'; p++) {
        if (*p == '@')
            buf_put(&msg, out.data + 8, out.len - 8);
        else
            buf_put_byte(&msg, *p);
    }
    buf_clear(&out);
    ck_assert_int_eq(scram_client_step(&k, buf_slice(&msg), &out, &err), SCRAM_BROKEN);
    ck_assert_str_eq(err.sqlstate, "08P01");
    ck_assert_uint_eq(out.len, 0);
    ck_assert(!scram_client_is_done(&k));
    ck_assert_int_eq(scram_client_final(&k, str("v="), NULL), SCRAM_BROKEN);
    scram_client_fini(&k);
    buf_free(&out);
    buf_free(&msg);
}
END_TEST

START_TEST(test_client_needs_known_mechanism)
{
    struct duel_conf c = conf_of(&(struct scram_verifier){0}, "geheim");
    struct scram_client k;
    struct buf out = {0};
    struct err err = {0};
    const char *mech;

    scram_client_init(&k, &c.client);
    ck_assert_int_eq(
        scram_client_start(&k, slice_of("GS2-KRB5\0SCRAM-SHA-25", 21), &mech, &out, &err),
        SCRAM_BROKEN);
    ck_assert_str_eq(err.sqlstate, "0A000");
    scram_client_fini(&k);
    buf_free(&out);
}
END_TEST

/* Made by PostgreSQL 15 (password_encryption = scram-sha-256) for these passwords. */
#include "scram_pg15.h"
#include "run_suite.h"

START_TEST(test_verifiers_of_postgres)
{
    struct scram_verifier v;
    struct buf text = {0};
    bool match;

    ck_assert_int_eq(scram_verifier_parse(str(pg15_verifiers[_i][1]), &v), 0);
    ck_assert_int_eq(scram_verifier_check(&v, str(pg15_verifiers[_i][0]), &match, NULL, NULL), 0);
    ck_assert_msg(match, "password %s", pg15_verifiers[_i][0]);
    ck_assert_int_eq(scram_verifier_check(&v, str("not that one"), &match, NULL, NULL), 0);
    ck_assert(!match);
    scram_verifier_format(&v, &text);
    ck_assert(slice_eq_str(buf_slice(&text), pg15_verifiers[_i][1]));
    buf_free(&text);
}
END_TEST

static const char *const bad_verifier[] = {
    "",
    "SCRAM-SHA-256",
    "SCRAM-SHA-256$",
    "SCRAM-SHA-256$4096",
    "SCRAM-SHA-256$4096:c2FsdA==",
    "SCRAM-SHA-256$4096:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "SCRAM-SHA-256$4096:c2FsdA==$AAAA:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "SCRAM-SHA-256$4096:$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "SCRAM-SHA-256$0:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "SCRAM-SHA-256$1000001:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "SCRAM-SHA-256$4096:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=x",
    "SCRAM-SHA-1$4096:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
};

START_TEST(test_bad_verifier)
{
    struct scram_verifier v;

    ck_assert_int_eq(scram_verifier_parse(str(bad_verifier[_i]), &v), -1);
}
END_TEST

#define LOOP(tc, fn, table) tcase_add_loop_test(tc, fn, 0, (int)(sizeof(table) / sizeof(table)[0]))

int main(void)
{
    Suite *s = suite_create("scram");
    TCase *tc = tcase_create("scram");

    if (!crypto_is_built()) {
        printf("not built with OpenSSL\n");
        return 77;
    }
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_rfc7677_keys);
    LOOP(tc, test_duel_iterations, iteration_counts);
    tcase_add_test(tc, test_duel_wrong_password);
    tcase_add_test(tc, test_pass_through_keys);
    tcase_add_test(tc, test_watched_exchange);
    tcase_add_test(tc, test_server_has_to_prove);
    tcase_add_test(tc, test_mock_denies);
    tcase_add_test(tc, test_channel_binding);
    LOOP(tc, test_bad_first, bad_first);
    tcase_add_test(tc, test_first_without_data);
    LOOP(tc, test_bad_final, bad_final);
    LOOP(tc, test_bad_server, bad_server);
    tcase_add_test(tc, test_client_needs_known_mechanism);
    LOOP(tc, test_verifiers_of_postgres, pg15_verifiers);
    LOOP(tc, test_bad_verifier, bad_verifier);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
