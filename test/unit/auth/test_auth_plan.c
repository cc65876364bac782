/* SPDX-License-Identifier: PostgreSQL
 * test_auth_plan.c: the whole matrix of authentication against a simulated client and a simulated
 * server with their own idea of the password. For every combination of rule, stored form, server
 * method, link and settings: a wrong password, no password and a foreign password never pass, and
 * the right one passes wherever somebody can judge it. Credentials are real ones, checked by the
 * real code. */
#include "config.h"

#include "auth/auth_plan.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/crypto.h"

#include "run_suite.h"

#define USER "alice"
#define GOOD "right password"
#define BAD  "wrong password"

static const uint8_t salt4[4] = {1, 2, 3, 4};

/* The credential that is stored, in each form. */
static struct cred creds[4];
/* What the server has: the same password, other salt where it is a verifier of its own. */
static struct cred server_cred;

static void make_creds(void)
{
    char md5[CRED_MD5_BYTES + 1];

    cred_from_plain(slice_of_str(GOOD), &creds[CRED_PLAIN]);
    ck_assert_int_eq(cred_make_md5(slice_of_str(USER), slice_of_str(GOOD), md5, NULL), 0);
    cred_from_stored(slice_of_str(md5), &creds[CRED_MD5]);
    creds[CRED_SCRAM].kind = CRED_SCRAM;
    ck_assert_int_eq(scram_verifier_build(slice_of_str(GOOD), slice_of_str("0123456789abcdef"), 2,
                         &creds[CRED_SCRAM].verifier, NULL),
        0);
    cred_from_plain(slice_of_str(GOOD), &server_cred);
}

static bool password_fits(const struct cred *c, const char *password)
{
    bool match = false;

    ck_assert_int_eq(
        cred_check_password(c, slice_of_str(USER), slice_of_str(password), &match, NULL, NULL), 0);
    return match;
}

static bool md5_fits(const struct cred *c, const char *password)
{
    struct cred client = {0};
    char response[CRED_MD5_BYTES + 1] = "";
    bool match = false;

    cred_from_plain(slice_of_str(password), &client);
    if (client.kind == CRED_PLAIN)
        ck_assert_int_eq(cred_answer_md5(&client, slice_of_str(USER), salt4, response, NULL), 0);
    ck_assert_int_eq(
        cred_check_md5(c, slice_of_str(USER), salt4, slice_of_str(response), &match, NULL), 0);
    cred_free(&client);
    return match;
}

/* A real exchange with the verifier of `c`, or with a stand-in. */
static bool scram_fits(const struct cred *c, bool mock, const char *password, bool *keys)
{
    struct scram_verifier v;
    struct scram_server_conf sc = {.verifier = &v, .is_mock = mock};
    struct scram_client_conf cc = {.password = slice_of_str(password)};
    struct scram_server s;
    struct scram_client k;
    struct buf a = {0};
    struct buf b = {0};
    const char *mech;
    bool ok;

    if (mock)
        ck_assert_int_eq(
            scram_verifier_mock(slice_of_str("s"), slice_of_str(USER), 2, false, &v, NULL), 0);
    else if (c->kind == CRED_SCRAM)
        v = c->verifier;
    else /* as cred_scram_verifier, with fewer iterations: there are thousands of cases */
        ck_assert_int_eq(scram_verifier_build(
                             secret_slice(&c->text), slice_of_str("salt of the user"), 2, &v, NULL),
            0);
    scram_server_init(&s, &sc);
    scram_client_init(&k, &cc);
    ck_assert_int_eq(
        scram_client_start(&k, slice_of(SCRAM_NAME "\0", 15), &mech, &a, NULL), SCRAM_CONTINUE);
    ck_assert_int_eq(
        scram_server_start(&s, slice_of_str(mech), buf_slice(&a), &b, NULL), SCRAM_CONTINUE);
    buf_clear(&a);
    ck_assert_int_eq(scram_client_step(&k, buf_slice(&b), &a, NULL), SCRAM_CONTINUE);
    ok = scram_server_step(&s, buf_slice(&a), &b, NULL) == SCRAM_DONE;
    *keys = ok;
    scram_server_fini(&s);
    scram_client_fini(&k);
    buf_free(&a);
    buf_free(&b);
    return ok;
}

/* The simulated server: does it let a client in that gives `password`? It does not even look when
 * it trusts. */
static bool server_accepts(enum auth_server method, const char *password)
{
    if (method == AUTH_SERVER_TRUST)
        return true;
    if (method == AUTH_SERVER_UNKNOWN || method == AUTH_SERVER_OTHER)
        return false;
    return strcmp(password, GOOD) == 0;
}

/* What became of a login. */
struct outcome {
    bool passed;
    bool judged; /* somebody looked at the password */
    bool asked_server;
    bool got_keys;
    struct auth_plan plan;
    struct auth_facts facts;
};

/* Plays the session: makes the plan, opens a fresh link when told to, asks, judges. */
static struct outcome play(struct auth_facts f, enum auth_server real, const char *password)
{
    struct outcome o = {0};
    const struct cred *c = &creds[f.stored];

    o.plan = auth_plan_make(&f);
    if (o.plan.ask == AUTH_ASK_SERVER_FIRST) {
        f.fresh_link = true;
        f.server = real;
        o.asked_server = true;
        o.plan = auth_plan_make(&f);
        ck_assert_msg(o.plan.ask != AUTH_ASK_SERVER_FIRST, "asks for the server for ever");
    }
    o.facts = f;
    switch (o.plan.ask) {
    case AUTH_ASK_REFUSE:
    case AUTH_ASK_SERVER_FIRST:
        return o;
    case AUTH_ASK_NOTHING:
        o.passed = true;
        return o;
    case AUTH_ASK_RELAY:
        ck_assert_int_eq(o.plan.proof, AUTH_PROOF_SERVER);
        break;
    case AUTH_ASK_PASSWORD:
        if (o.plan.proof == AUTH_PROOF_STORED)
            o.passed = password_fits(c, password);
        break;
    case AUTH_ASK_MD5:
        if (o.plan.proof == AUTH_PROOF_STORED)
            o.passed = md5_fits(c, password);
        break;
    case AUTH_ASK_SCRAM:
        if (o.plan.proof == AUTH_PROOF_STORED || o.plan.proof == AUTH_PROOF_NEVER)
            o.passed = scram_fits(c, o.plan.proof == AUTH_PROOF_NEVER, password, &o.got_keys);
        break;
    }
    o.judged = true;
    if (o.plan.proof == AUTH_PROOF_SERVER) {
        ck_assert_msg(f.fresh_link, "a server judges on a link that is not this client's");
        o.passed = server_accepts(f.server, password);
    }
    if (o.plan.proof == AUTH_PROOF_NEVER)
        ck_assert(!o.passed);
    return o;
}

static const enum hba_method methods[] = {HBA_PASSWORD, HBA_MD5, HBA_SCRAM};

/* Written down a second time, by hand and from the user's point of view: when does the right
 * password have to pass? */
static bool right_has_to_pass(const struct auth_facts *f, enum auth_server real)
{
    bool server_checks =
        real == AUTH_SERVER_PASSWORD || real == AUTH_SERVER_MD5 || real == AUTH_SERVER_SCRAM;

    if (f->has_rule) {
        if (f->method == HBA_SCRAM && f->stored == CRED_MD5)
            return false;
        if (f->stored != CRED_NONE)
            return true;
        if (f->maps_user || !server_checks)
            return false;
        if (f->method == HBA_PASSWORD)
            return f->may_relay;
        if (f->method == HBA_SCRAM)
            return f->may_relay && real == AUTH_SERVER_SCRAM;
        return f->may_relay && (real == AUTH_SERVER_SCRAM || real == AUTH_SERVER_MD5);
    }
    if (real == AUTH_SERVER_OTHER)
        return false;
    if (real == AUTH_SERVER_TRUST && !f->maps_user)
        return true;
    if (f->maps_user)
        return f->stored != CRED_NONE && !(real == AUTH_SERVER_TRUST && f->stored == CRED_MD5);
    if (real == AUTH_SERVER_PASSWORD)
        return true;
    if (f->stored == CRED_NONE)
        return f->allow_clear_text || f->may_relay;
    if (f->stored == CRED_MD5 && real == AUTH_SERVER_SCRAM)
        return f->allow_clear_text;
    if (f->stored == CRED_SCRAM && real == AUTH_SERVER_MD5)
        return f->allow_clear_text;
    return true;
}

/* May a client pass without a password that anybody looked at? Only where somebody wrote trust. */
static bool trust_was_written(const struct auth_facts *f, enum auth_server real)
{
    return !f->has_rule && real == AUTH_SERVER_TRUST && !f->maps_user;
}

static void describe(
    char *out, size_t n, const struct auth_facts *f, enum auth_server real, const struct outcome *o)
{
    snprintf(out, n,
        "rule=%s stored=%d server=%s (known %s) fresh=%d relay=%d clear=%d maps=%d: ask=%s "
        "proof=%s",
        f->has_rule ? hba_method_text(f->method) : "none", (int)f->stored, auth_server_text(real),
        auth_server_text(f->server), f->fresh_link, f->may_relay, f->allow_clear_text, f->maps_user,
        auth_ask_text(o->plan.ask), auth_proof_text(o->plan.proof));
}

static void check_case(const struct auth_facts *f, enum auth_server real)
{
    static const char *const wrong[] = {BAD, "", "right passwor", "RIGHT PASSWORD"};
    struct outcome o;
    char text[300];
    size_t i;

    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        o = play(*f, real, wrong[i]);
        describe(text, sizeof text, f, real, &o);
        if (trust_was_written(f, real))
            ck_assert_msg(o.passed, "%s: trust does not pass", text);
        else
            ck_assert_msg(!o.passed, "%s: WRONG PASSWORD PASSES", text);
    }
    o = play(*f, real, GOOD);
    describe(text, sizeof text, f, real, &o);
    ck_assert_msg(o.passed == right_has_to_pass(f, real), "%s: right password %s", text,
        o.passed ? "passes against the table" : "does not pass");
    if (o.passed && !trust_was_written(f, real))
        ck_assert_msg(o.judged, "%s: passes unjudged", text);
    if (!o.passed)
        ck_assert_msg(o.plan.reason != NULL, "%s: refused without a reason for the log", text);
}

static const enum auth_server servers[] = {
    AUTH_SERVER_TRUST, AUTH_SERVER_PASSWORD, AUTH_SERVER_MD5, AUTH_SERVER_SCRAM, AUTH_SERVER_OTHER};

/* rule or none x stored form x real server x what is known of it x relay x clear text x mapping */
START_TEST(test_matrix)
{
    struct auth_facts f;
    unsigned cases = 0;
    unsigned bits;
    int rule;
    int stored;
    size_t s;

    for (rule = -1; rule < 3; rule++)
        for (stored = CRED_NONE; stored <= CRED_SCRAM; stored++)
            for (s = 0; s < sizeof servers / sizeof servers[0]; s++)
                for (bits = 0; bits < 32; bits++) {
                    memset(&f, 0, sizeof f);
                    f.has_rule = rule >= 0;
                    f.method = rule >= 0 ? methods[rule] : HBA_REJECT;
                    f.stored = (enum cred_kind)stored;
                    f.mapped = CRED_PLAIN;
                    f.may_relay = (bits & 1) != 0;
                    f.allow_clear_text = (bits & 2) != 0;
                    f.maps_user = (bits & 4) != 0;
                    f.fresh_link = (bits & 8) != 0;
                    /* known from before (pooled link), or not yet */
                    f.server = f.fresh_link || (bits & 16) != 0 ? servers[s] : AUTH_SERVER_UNKNOWN;
                    check_case(&f, servers[s]);
                    cases++;
                }
    ck_assert_uint_eq(cases, 4 * 4 * 5 * 32);
}
END_TEST

/* Knowledge about the server that has become wrong must not open anything: known as trust from
 * before, but asking now; and the other way round. */
START_TEST(test_stale_knowledge)
{
    struct auth_facts f = {0};
    struct outcome o;
    size_t known;
    size_t real;
    int rule;

    for (rule = 0; rule < 3; rule++)
        for (known = 0; known < 5; known++)
            for (real = 0; real < 5; real++) {
                memset(&f, 0, sizeof f);
                f.has_rule = true;
                f.method = methods[rule];
                f.may_relay = true;
                f.server = servers[known];
                o = play(f, servers[real], BAD);
                ck_assert_msg(!o.passed, "stale %s, really %s: passes",
                    auth_server_text(servers[known]), auth_server_text(servers[real]));
            }
}
END_TEST

/* The two combinations behind CVE-2025-46801, by name. */
START_TEST(test_password_rule_without_entry_and_trusting_server)
{
    struct auth_facts f = {
        .has_rule = true, .method = HBA_PASSWORD, .fresh_link = true, .may_relay = true};
    struct auth_plan p;

    f.server = AUTH_SERVER_TRUST;
    p = auth_plan_make(&f);
    ck_assert_int_eq(p.proof, AUTH_PROOF_NEVER);
    f.fresh_link = false;
    f.server = AUTH_SERVER_SCRAM; /* a link is open already: that proves nothing */
    p = auth_plan_make(&f);
    ck_assert_int_eq(p.ask, AUTH_ASK_SERVER_FIRST);
    f.maps_user = true; /* the server would judge another user */
    f.fresh_link = true;
    p = auth_plan_make(&f);
    ck_assert_int_eq(p.proof, AUTH_PROOF_NEVER);
}
END_TEST

/* The servers were asked and do not know the user: no link is opened, for that takes time, and what
 * the client is asked is what those are asked whom they know. */
START_TEST(test_unknown_to_the_servers)
{
    static const enum hba_method tried[] = {HBA_PASSWORD, HBA_MD5, HBA_SCRAM};
    static const enum auth_ask wanted[] = {AUTH_ASK_PASSWORD, AUTH_ASK_SCRAM, AUTH_ASK_SCRAM};
    struct auth_facts f = {.has_rule = true};
    struct auth_plan p;
    int i;

    for (i = 0; i < 3; i++) {
        f.method = tried[i];
        p = auth_plan_make(&f);
        ck_assert_int_eq(p.ask, wanted[i]);
        ck_assert_int_eq(p.proof, AUTH_PROOF_NEVER);
    }
}
END_TEST

START_TEST(test_reject_and_trust)
{
    struct auth_facts f = {.has_rule = true, .stored = CRED_PLAIN};
    struct auth_plan p;
    struct err err = {0};

    f.method = HBA_REJECT;
    p = auth_plan_make(&f);
    ck_assert_int_eq(p.ask, AUTH_ASK_REFUSE);
    auth_refusal(&f, &p, slice_of_str(USER), &err);
    ck_assert_str_eq(err.sqlstate, "28000");
    ck_assert_int_eq(err.severity, ERR_FATAL);
    f.method = HBA_TRUST;
    p = auth_plan_make(&f);
    ck_assert_int_eq(p.ask, AUTH_ASK_NOTHING);
    ck_assert_int_eq(p.proof, AUTH_PROOF_TRUST);
}
END_TEST

/* Certificates: for every method and clientcert, without TLS or without a verified certificate
 * nobody passes; with, the name is checked where it has to be. */
START_TEST(test_certificates)
{
    struct auth_facts f;
    struct auth_plan p;
    int method;
    int cert;
    int have;

    for (method = HBA_TRUST; method <= HBA_PEER; method++)
        for (cert = HBA_CERT_OFF; cert <= HBA_CERT_VERIFY_FULL; cert++)
            for (have = 0; have <= AUTH_CHANNEL_TLS_CERT; have++) {
                memset(&f, 0, sizeof f);
                f.has_rule = true;
                f.method = (enum hba_method)method;
                f.clientcert = (enum hba_clientcert)cert;
                f.stored = CRED_PLAIN;
                f.channel = (enum auth_channel)have;
                p = auth_plan_make(&f);
                if ((cert != HBA_CERT_OFF || method == HBA_CERT) && have != AUTH_CHANNEL_TLS_CERT) {
                    ck_assert_int_eq(p.ask, AUTH_ASK_REFUSE);
                    continue;
                }
                ck_assert_int_ne(p.ask, AUTH_ASK_REFUSE);
                ck_assert_int_eq(
                    p.check_cert_name, cert == HBA_CERT_VERIFY_FULL || method == HBA_CERT);
                if (method == HBA_CERT)
                    ck_assert_int_eq(p.proof, AUTH_PROOF_CERT);
            }
}
END_TEST

START_TEST(test_helpers)
{
    struct auth_facts f = {.has_rule = true, .method = HBA_LDAP};
    struct auth_plan p = auth_plan_make(&f);

    ck_assert_int_eq(p.ask, AUTH_ASK_PASSWORD);
    ck_assert_int_eq(p.proof, AUTH_PROOF_LDAP);
    ck_assert_uint_eq(auth_hold(&f, &p, false), 0);
    f.ldap_password_for_server = true;
    p = auth_plan_make(&f);
    ck_assert_uint_eq(auth_hold(&f, &p, false), AUTH_HOLD_PASSWORD);
    f.method = HBA_PAM;
    p = auth_plan_make(&f);
    ck_assert_int_eq(p.proof, AUTH_PROOF_PAM);
    f.method = HBA_PEER;
    p = auth_plan_make(&f);
    ck_assert_int_eq(p.ask, AUTH_ASK_NOTHING);
    ck_assert_int_eq(p.proof, AUTH_PROOF_PEER);
}
END_TEST

/* The servers' leg: what is held x what is asked. A mapped user's password is never the client's.
 */
START_TEST(test_give)
{
    static const enum auth_give want[8][5] = {
        /* trust, password, md5, scram, other; by bits of hold */
        {AUTH_GIVE_NOTHING, 0, 0, 0, 0},
        {AUTH_GIVE_NOTHING, AUTH_GIVE_PASSWORD, AUTH_GIVE_MD5_OF_PASSWORD, AUTH_GIVE_SCRAM_PASSWORD,
            0},
        {AUTH_GIVE_NOTHING, 0, AUTH_GIVE_MD5, 0, 0},
        {AUTH_GIVE_NOTHING, AUTH_GIVE_PASSWORD, AUTH_GIVE_MD5, AUTH_GIVE_SCRAM_PASSWORD, 0},
        {AUTH_GIVE_NOTHING, 0, 0, AUTH_GIVE_SCRAM_KEYS, 0},
        {AUTH_GIVE_NOTHING, AUTH_GIVE_PASSWORD, AUTH_GIVE_MD5_OF_PASSWORD, AUTH_GIVE_SCRAM_KEYS, 0},
        {AUTH_GIVE_NOTHING, 0, AUTH_GIVE_MD5, AUTH_GIVE_SCRAM_KEYS, 0},
        {AUTH_GIVE_NOTHING, AUTH_GIVE_PASSWORD, AUTH_GIVE_MD5, AUTH_GIVE_SCRAM_KEYS, 0},
    };
    struct err err;
    unsigned hold;
    size_t s;

    for (hold = 0; hold < 8; hold++)
        for (s = 0; s < 5; s++) {
            err_clear(&err);
            ck_assert_int_eq(
                auth_give_choose(hold, servers[s], slice_of_str(USER), &err), want[hold][s]);
            ck_assert_int_eq(err_is_set(&err), want[hold][s] == AUTH_GIVE_IMPOSSIBLE);
        }
}
END_TEST

/* An answer by SCRAM is never too weak; of the others each, by what is known of the user. */
START_TEST(test_scram_is_due)
{
    static const enum auth_give weak[] = {
        AUTH_GIVE_PASSWORD, AUTH_GIVE_MD5, AUTH_GIVE_MD5_OF_PASSWORD};
    static const enum auth_give strong[] = {
        AUTH_GIVE_IMPOSSIBLE, AUTH_GIVE_NOTHING, AUTH_GIVE_SCRAM_PASSWORD, AUTH_GIVE_SCRAM_KEYS};
    unsigned hold;
    size_t i;

    for (hold = 0; hold < 16; hold++) {
        bool knows_scram = (hold & AUTH_HOLD_KEYS) != 0 && (hold & AUTH_HOLD_HEARD) == 0;

        for (i = 0; i < sizeof strong / sizeof *strong; i++)
            ck_assert_ptr_null(auth_scram_is_due(hold, true, true, strong[i]));
        for (i = 0; i < sizeof weak / sizeof *weak; i++) {
            ck_assert_ptr_nonnull(auth_scram_is_due(hold, true, false, weak[i]));
            ck_assert_int_eq(auth_scram_is_due(hold, false, false, weak[i]) != NULL, knows_scram);
            ck_assert_int_eq(auth_scram_is_due(hold, false, true, weak[i]) != NULL,
                knows_scram || weak[i] != AUTH_GIVE_MD5);
        }
    }
}
END_TEST

START_TEST(test_hold)
{
    struct auth_facts f = {.has_rule = true, .method = HBA_SCRAM, .stored = CRED_SCRAM};
    struct auth_plan p = auth_plan_make(&f);

    ck_assert_uint_eq(auth_hold(&f, &p, false), 0);
    ck_assert_uint_eq(auth_hold(&f, &p, true), AUTH_HOLD_KEYS);
    f.maps_user = true;
    f.mapped = CRED_MD5;
    ck_assert_uint_eq(auth_hold(&f, &p, true), AUTH_HOLD_MD5);
    f.mapped = CRED_NONE;
    f.method = HBA_PASSWORD;
    p = auth_plan_make(&f);
    ck_assert_uint_eq(auth_hold(&f, &p, true), 0);
    f.maps_user = false;
    ck_assert_uint_eq(auth_hold(&f, &p, true), AUTH_HOLD_KEYS | AUTH_HOLD_PASSWORD);
}
END_TEST

/* A wrong password and an unknown user get the same words. */
START_TEST(test_refusal_tells_nothing)
{
    struct auth_facts known = {.has_rule = true, .method = HBA_SCRAM, .stored = CRED_PLAIN};
    struct auth_facts unknown = {.has_rule = true, .method = HBA_SCRAM, .stored = CRED_NONE};
    struct auth_plan a = auth_plan_make(&known);
    struct auth_plan b = auth_plan_make(&unknown);
    struct err x = {0};
    struct err y = {0};

    ck_assert_int_eq(a.ask, b.ask);
    auth_refusal(&known, &a, slice_of_str(USER), &x);
    auth_refusal(&unknown, &b, slice_of_str(USER), &y);
    ck_assert_str_eq(x.msg, y.msg);
    ck_assert_str_eq(x.detail, y.detail);
    ck_assert_str_eq(x.msg, "password authentication failed for user \"alice\"");
    ck_assert_str_eq(x.sqlstate, "28P01");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("auth_plan");
    TCase *tc = tcase_create("auth_plan");

    if (!crypto_is_built()) {
        printf("not built with OpenSSL\n");
        return 77;
    }
    tcase_add_unchecked_fixture(tc, make_creds, NULL);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_matrix);
    tcase_add_test(tc, test_stale_knowledge);
    tcase_add_test(tc, test_password_rule_without_entry_and_trusting_server);
    tcase_add_test(tc, test_unknown_to_the_servers);
    tcase_add_test(tc, test_reject_and_trust);
    tcase_add_test(tc, test_certificates);
    tcase_add_test(tc, test_helpers);
    tcase_add_test(tc, test_give);
    tcase_add_test(tc, test_scram_is_due);
    tcase_add_test(tc, test_hold);
    tcase_add_test(tc, test_refusal_tells_nothing);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
