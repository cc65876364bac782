/* SPDX-License-Identifier: PostgreSQL
 * console_auth.c: who may enter the virtual database. Users of admin_users and stats_users are
 * asked as everywhere, and judged by what is stored of them; everybody else has to be a user of
 * pcp.conf and show its password. Runs in: workers. Must never: need a server, take a name for a
 * proof (pool_hba.conf's trust is for those whom the settings name), judge by what opened servers
 * (nobody would be asked whether it holds still), tell who is in pcp.conf. */
#include "config.h"

#include <string.h>

#include "auth/auth_guard.h"
#include "auth/pcp_conf.h"
#include "auth/scram.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "crypto/crypto.h"
#include "ipc/proc.h"

#include "client_auth_int.h"

/* ---- pcp.conf ---- */

/* "md5" in front, and in small letters: as PostgreSQL has it, for a user without a name. */
static void take_md5(struct client_auth *a, struct slice hex)
{
    char text[CRED_MD5_BYTES] = "md5";
    size_t i;

    for (i = 0; i < hex.n && i + 3 < sizeof text; i++)
        text[i + 3] = (char)(hex.p[i] >= 'A' && hex.p[i] <= 'F' ? hex.p[i] + 32 : hex.p[i]);
    cred_from_stored(slice_of(text, sizeof text), &a->stored);
    mem_wipe(text, sizeof text);
}

/* Who is not there looks like a line of the file, always the same: as often of either kind as the
 * lines are. */
static bool stand_in_is_scram(const struct client_auth *a, unsigned nmd5, unsigned nscram)
{
    uint8_t sum[CRYPTO_SHA256_BYTES];
    struct buf text = {0};
    struct err err = {0};
    uint32_t pick = 0;

    if (nmd5 == 0 || nscram == 0)
        return nmd5 == 0;
    buf_put(&text, "console ", 8); /* not the salt's */
    buf_put(&text, client_auth_user(a).p, client_auth_user(a).n);
    if (crypto_hmac_sha256(auth_guard_secret(a->sa->guard), buf_slice(&text), sum, &err) == 0)
        memcpy(&pick, sum, sizeof pick);
    buf_free(&text);
    return pick % (nmd5 + nscram) < nscram;
}

static uint8_t pcp_of(bool is_scram)
{
    return is_scram ? LOGIN_PCP_SCRAM : LOGIN_PCP_MD5;
}

static void take_line(struct client_auth *a, const struct pcp_line *line)
{
    a->who.console->pcp = pcp_of(line->is_scram);
    if (line->is_scram)
        cred_from_stored(line->value, &a->stored);
    else
        take_md5(a, line->value);
}

/* The whole file is read, for whomever. */
static void look_in_pcp(struct client_auth *a, struct slice text)
{
    struct scram_verifier v;
    struct pcp_line line;
    unsigned nmd5 = 0;
    unsigned nscram = 0;
    bool is_known = false;

    while (pcp_conf_next(&text, &line)) {
        nmd5 += !line.is_scram;
        nscram += line.is_scram;
        if (line.is_scram && scram_verifier_parse(line.value, &v) == 0)
            a->who.console->pcp_iterations = v.iterations;
        if (is_known || !slice_eq(line.user, client_auth_user(a)))
            continue;
        is_known = true;
        take_line(a, &line);
    }
    mem_wipe(&v, sizeof v);
    if (!is_known)
        a->who.console->pcp = pcp_of(stand_in_is_scram(a, nmd5, nscram));
}

static void find_in_pcp(struct client_auth *a)
{
    const char *given = a->sa->worker.env->paths->pcp;
    const char *name = given[0] != '\0' ? given : PCP_CONF_NAME;
    char path[PROC_PATH_BYTES];
    struct err err = {0};
    struct stat st;
    char *text = NULL;
    size_t n = 0;

    a->who.console->pcp = LOGIN_PCP_SCRAM;
    if (conf_path(a->sa->gen, name, path, sizeof path, &err) == 0 &&
        pcp_conf_read(path, &text, &n, &st, &err) == 0) {
        look_in_pcp(a, slice_of(text, n));
        mem_free_secret(text);
    } else {
        log_caused(LVL_LOG, "%s", err.msg);
    }
    a->facts.stored = a->stored.kind;
}

bool console_judges(struct client_auth *a)
{
    struct auth_facts *f = &a->facts;

    if (a->rule == NULL) { /* pool_hba is off, and no server can be asked how it would ask */
        f->has_rule = true;
        f->method = HBA_SCRAM;
    }
    if (console_is_listed(a))
        return false;
    find_in_pcp(a);
    return true;
}

/* ---- the plan ---- */

static struct auth_plan plan_refuse(const char *reason)
{
    return (struct auth_plan){.ask = AUTH_ASK_REFUSE, .reason = reason};
}

static bool is_loopback(const struct client_auth *a)
{
    static const uint8_t six[16] = {[15] = 1};

    return (a->addr.n == 4 && a->addr.bytes[0] == 127) ||
           (a->addr.n == 16 && memcmp(a->addr.bytes, six, sizeof six) == 0);
}

static bool may_ask_clear(const struct client_auth *a)
{
    bool is_safe = auth_is_tls(&a->facts) || stream_is_local(a->who.stream) || is_loopback(a);

    if (a->rule == NULL || a->rule->method == HBA_TRUST)
        return is_safe;
    return a->rule->method == HBA_PASSWORD;
}

/* The md5 of a password and nothing else answers no challenge. */
static void say_needs_clear(struct client_auth *a)
{
    struct err err = {0};

    err_set_fatal(&err, "28000", "the password would have to be sent in clear text");
    err_detail(&err, "pcp.conf has passwords as md5, which no other way of asking can be compared "
                     "with, and this connection is not one for that.");
    err_hint(&err,
        "Connect with TLS or over a Unix socket%s, or put a SCRAM verifier into pcp.conf.",
        a->rule == NULL ? "" : ", under a line of pool_hba.conf with the method \"password\"");
    client_auth_stop(a, &err, "pcp.conf has the password as md5.");
}

static struct auth_plan plan_stored(const struct client_auth *a, enum auth_ask ask)
{
    bool is_known = a->stored.kind != CRED_NONE;

    return (struct auth_plan){.ask = ask,
        .proof = is_known ? AUTH_PROOF_STORED : AUTH_PROOF_NEVER,
        .reason = is_known ? NULL : "Neither admin_users, stats_users nor pcp.conf has the user."};
}

/* Judges by pcp.conf, whatever the line of pool_hba.conf is for; only where it lets passwords in.
 */
static bool plan_pcp(struct client_auth *a)
{
    const struct hba_rule *rule = a->rule;
    bool is_for_passwords = rule == NULL || rule->method == HBA_TRUST ||
                            rule->method == HBA_PASSWORD || rule->method == HBA_MD5 ||
                            rule->method == HBA_SCRAM;

    if (rule != NULL && rule->method == HBA_REJECT) {
        a->plan = plan_refuse("The line of pool_hba.conf says reject.");
    } else if (!is_for_passwords) {
        a->plan = plan_refuse("The line of pool_hba.conf asks for what pcp.conf does not have, and "
                              "the user is in neither admin_users nor stats_users.");
    } else if (rule != NULL && rule->clientcert != HBA_CERT_OFF &&
               a->facts.channel != AUTH_CHANNEL_TLS_CERT) {
        a->plan = plan_refuse("The line of pool_hba.conf asks for a valid client certificate.");
    } else if (a->who.console->pcp == LOGIN_PCP_SCRAM) {
        a->plan = plan_stored(a, AUTH_ASK_SCRAM);
    } else if (may_ask_clear(a)) {
        a->plan = plan_stored(a, AUTH_ASK_PASSWORD);
    } else {
        say_needs_clear(a);
        return false;
    }
    a->plan.check_cert_name = rule != NULL && rule->clientcert == HBA_CERT_VERIFY_FULL;
    return true;
}

bool console_plan(struct client_auth *a)
{
    struct auth_facts *f = &a->facts;

    if (a->who.console->pcp == LOGIN_PCP_NOT && a->stored.kind == CRED_NONE &&
        (f->method == HBA_PASSWORD || f->method == HBA_MD5 || f->method == HBA_SCRAM)) {
        find_in_pcp(a);
        if (a->answer == AUTH_ANSWER_UNSURE && a->stored.kind != CRED_NONE)
            a->answer = AUTH_ANSWER_NONE;
    }
    if (a->who.console->pcp != LOGIN_PCP_NOT)
        return plan_pcp(a);
    if (a->rule == NULL && a->stored.kind == CRED_MD5)
        f->method = HBA_MD5;
    f->maps_user = false; /* servers are not meant */
    f->may_relay = false;
    a->plan = auth_plan_make(f);
    return true;
}
