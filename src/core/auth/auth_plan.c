/* SPDX-License-Identifier: PostgreSQL
 * auth_plan.c: the table of authentication as a function. Must never answer "passes" for lack of a
 * reason to refuse: every path ends in a judge, in trust that the administrator wrote down, or in a
 * refusal. */
#include "config.h"

#include "auth/auth_plan.h"

static struct auth_plan plan_of(enum auth_ask ask, enum auth_proof proof)
{
    return (struct auth_plan){.ask = ask, .proof = proof};
}

static struct auth_plan refuse(const char *reason)
{
    return (struct auth_plan){.ask = AUTH_ASK_REFUSE, .reason = reason};
}

/* Goes through the motions of `ask` and fails: an unknown user looks like a wrong password. */
static struct auth_plan never(enum auth_ask ask, const char *reason)
{
    return (struct auth_plan){.ask = ask, .proof = AUTH_PROOF_NEVER, .reason = reason};
}

static bool server_asks(const struct auth_facts *f)
{
    return f->server == AUTH_SERVER_PASSWORD || f->server == AUTH_SERVER_MD5 ||
           f->server == AUTH_SERVER_SCRAM;
}

/* The client's password in clear text, judged by the server. */
static struct auth_plan password_by_server(const struct auth_facts *f)
{
    struct auth_plan p = plan_of(AUTH_ASK_PASSWORD, AUTH_PROOF_SERVER);

    if (f->has_rule && !f->may_relay &&
        f->stored == CRED_NONE) /* and no link is opened: that would take time */
        return never(AUTH_ASK_PASSWORD, "No password is stored for the user.");
    if (f->maps_user)
        return never(AUTH_ASK_PASSWORD,
            "No password is stored for the user, and the server knows it by another name.");
    if (!f->fresh_link)
        return plan_of(AUTH_ASK_SERVER_FIRST, AUTH_PROOF_NEVER);
    if (!server_asks(f))
        return never(AUTH_ASK_PASSWORD,
            f->server == AUTH_SERVER_TRUST
                ? "No password is stored for the user, and the server does not ask for one, so "
                  "that nobody could check it."
                : "No password is stored for the user, and the server asks for a kind of "
                  "authentication that is not supported.");
    p.keep_password = true;
    return p;
}

/* Nothing is stored: perhaps the client may prove itself to the server. `mock` is what it is asked
 * when it may not. */
static struct auth_plan relay_or_never(const struct auth_facts *f, enum auth_ask mock, bool md5_too)
{
    static const char missing[] = "No password is stored for the user.";

    if (!f->may_relay || f->maps_user)
        return never(mock, missing);
    if (!f->fresh_link)
        return plan_of(AUTH_ASK_SERVER_FIRST, AUTH_PROOF_NEVER);
    if (f->server == AUTH_SERVER_SCRAM || (md5_too && f->server == AUTH_SERVER_MD5))
        return plan_of(AUTH_ASK_RELAY, AUTH_PROOF_SERVER);
    return never(mock, missing);
}

static struct auth_plan plan_password(const struct auth_facts *f)
{
    struct auth_plan p = plan_of(AUTH_ASK_PASSWORD, AUTH_PROOF_STORED);

    if (f->stored == CRED_NONE)
        return password_by_server(f);
    p.keep_password = true;
    return p;
}

static struct auth_plan plan_md5(const struct auth_facts *f)
{
    switch (f->stored) {
    case CRED_PLAIN:
    case CRED_MD5:
        return plan_of(AUTH_ASK_MD5, AUTH_PROOF_STORED);
    case CRED_SCRAM: /* as PostgreSQL: an md5 line lets SCRAM in */
        return plan_of(AUTH_ASK_SCRAM, AUTH_PROOF_STORED);
    case CRED_NONE:
        break;
    }
    /* Whom the servers do not know looks like most whom they know. */
    return relay_or_never(f, f->may_relay || f->md5_is_usual ? AUTH_ASK_MD5 : AUTH_ASK_SCRAM, true);
}

static struct auth_plan plan_scram(const struct auth_facts *f)
{
    switch (f->stored) {
    case CRED_PLAIN:
    case CRED_SCRAM:
        return plan_of(AUTH_ASK_SCRAM, AUTH_PROOF_STORED);
    case CRED_MD5:
        return never(
            AUTH_ASK_SCRAM, "The user's password is stored as md5, which SCRAM cannot use.");
    case CRED_NONE:
        break;
    }
    return relay_or_never(f, AUTH_ASK_SCRAM, false);
}

static struct auth_plan plan_helper(const struct auth_facts *f, enum auth_proof proof)
{
    struct auth_plan p = plan_of(AUTH_ASK_PASSWORD, proof);

    p.keep_password = proof == AUTH_PROOF_PAM || f->ldap_password_for_server;
    return p;
}

static struct auth_plan plan_by_method(const struct auth_facts *f)
{
    switch (f->method) {
    case HBA_REJECT:
        return refuse("The line of pool_hba.conf says reject.");
    case HBA_TRUST:
        return plan_of(AUTH_ASK_NOTHING, AUTH_PROOF_TRUST);
    case HBA_PASSWORD:
        return plan_password(f);
    case HBA_MD5:
        return plan_md5(f);
    case HBA_SCRAM:
        return plan_scram(f);
    case HBA_CERT:
        return plan_of(AUTH_ASK_NOTHING, AUTH_PROOF_CERT);
    case HBA_PAM:
        return plan_helper(f, AUTH_PROOF_PAM);
    case HBA_LDAP:
        return plan_helper(f, AUTH_PROOF_LDAP);
    case HBA_PEER:
        return plan_of(AUTH_ASK_NOTHING, AUTH_PROOF_PEER);
    }
    return refuse("The authentication method is not known.");
}

static struct auth_plan plan_by_rule(const struct auth_facts *f)
{
    struct auth_plan p;

    if ((f->clientcert != HBA_CERT_OFF || f->method == HBA_CERT) && f->method != HBA_REJECT &&
        f->channel != AUTH_CHANNEL_TLS_CERT)
        return refuse("The line of pool_hba.conf asks for a valid client certificate.");
    p = plan_by_method(f);
    p.check_cert_name = f->clientcert == HBA_CERT_VERIFY_FULL || f->method == HBA_CERT;
    return p;
}

/* Without pool_hba the server's way is ours. With something stored we ask in that way and judge
 * ourselves; without, the server has to judge. */
static struct auth_plan mirror_challenge(const struct auth_facts *f)
{
    bool md5 = f->server == AUTH_SERVER_MD5;
    enum auth_ask ask = md5 ? AUTH_ASK_MD5 : AUTH_ASK_SCRAM;
    bool fits = f->stored == CRED_PLAIN || f->stored == (md5 ? CRED_MD5 : CRED_SCRAM);
    struct auth_plan p;

    if (fits)
        return plan_of(ask, AUTH_PROOF_STORED);
    if (f->stored != CRED_NONE && f->maps_user) /* the server's way does not bind this user's */
        return plan_of(md5 ? AUTH_ASK_SCRAM : AUTH_ASK_MD5, AUTH_PROOF_STORED);
    if (f->stored != CRED_NONE) {
        if (!f->allow_clear_text)
            return never(ask,
                md5 ? "The server asks for md5, and a SCRAM verifier is stored for the user."
                    : "The server asks for SCRAM, and an md5 password is stored for the user.");
        p = plan_of(AUTH_ASK_PASSWORD, AUTH_PROOF_STORED);
        p.keep_password = true;
        return p;
    }
    return f->allow_clear_text ? password_by_server(f) : relay_or_never(f, ask, true);
}

static struct auth_plan plan_mirror(const struct auth_facts *f)
{
    switch (f->server) {
    case AUTH_SERVER_UNKNOWN:
        return plan_of(AUTH_ASK_SERVER_FIRST, AUTH_PROOF_NEVER);
    case AUTH_SERVER_TRUST:
        if (f->maps_user) /* the trust is in the other name */
            return plan_scram(f);
        return plan_of(AUTH_ASK_NOTHING, AUTH_PROOF_TRUST);
    case AUTH_SERVER_PASSWORD:
        if (f->fresh_link && !f->maps_user)
            return password_by_server(f);
        return plan_password(f);
    case AUTH_SERVER_MD5:
    case AUTH_SERVER_SCRAM:
        return mirror_challenge(f);
    case AUTH_SERVER_OTHER:
        break;
    }
    return refuse("The server asks for a kind of authentication that is not supported.");
}

struct auth_plan auth_plan_make(const struct auth_facts *f)
{
    struct auth_plan p = f->has_rule ? plan_by_rule(f) : plan_mirror(f);

    /* A server's judgement exists only on a link opened for this client. */
    if (p.proof == AUTH_PROOF_SERVER && (!f->fresh_link || !server_asks(f) || f->maps_user))
        return refuse("Nobody can check the password.");
    return p;
}

static unsigned hold_of(enum cred_kind kind)
{
    switch (kind) {
    case CRED_PLAIN:
        return AUTH_HOLD_PASSWORD;
    case CRED_MD5:
        return AUTH_HOLD_MD5;
    case CRED_SCRAM: /* a verifier opens nothing: the keys come from the client */
    case CRED_NONE:
        break;
    }
    return 0;
}

unsigned auth_hold(const struct auth_facts *f, const struct auth_plan *plan, bool got_keys)
{
    unsigned hold;

    if (f->maps_user)
        return hold_of(f->mapped);
    hold = hold_of(f->stored);
    if (got_keys)
        hold |= AUTH_HOLD_KEYS;
    if (plan->keep_password && plan->ask == AUTH_ASK_PASSWORD)
        hold |= AUTH_HOLD_PASSWORD;
    return hold;
}

enum auth_give auth_give_choose(
    unsigned hold, enum auth_server server, struct slice user, struct err *err)
{
    const char *need = "";

    switch (server) {
    case AUTH_SERVER_TRUST:
        return AUTH_GIVE_NOTHING;
    case AUTH_SERVER_PASSWORD:
        if ((hold & AUTH_HOLD_PASSWORD) != 0)
            return AUTH_GIVE_PASSWORD;
        need = "the password in clear text or encrypted";
        break;
    case AUTH_SERVER_MD5:
        if ((hold & AUTH_HOLD_MD5) != 0)
            return AUTH_GIVE_MD5;
        if ((hold & AUTH_HOLD_PASSWORD) != 0)
            return AUTH_GIVE_MD5_OF_PASSWORD;
        need = "the password as md5, in clear text or encrypted";
        break;
    case AUTH_SERVER_SCRAM: /* the keys first: no iterations to compute */
        if ((hold & AUTH_HOLD_KEYS) != 0)
            return AUTH_GIVE_SCRAM_KEYS;
        if ((hold & AUTH_HOLD_PASSWORD) != 0)
            return AUTH_GIVE_SCRAM_PASSWORD;
        need = "the password in clear text or encrypted, or a login of the client by SCRAM against "
               "the server's own verifier";
        break;
    case AUTH_SERVER_UNKNOWN:
    case AUTH_SERVER_OTHER:
        err_set(err, "28000", "the server asks for an authentication method that is not supported");
        err_hint(err, "Let pg_hba.conf of the server ask pgpool's address for scram-sha-256, md5, "
                      "password or a certificate.");
        return AUTH_GIVE_IMPOSSIBLE;
    }
    err_set(
        err, "28P01", "nothing to log in to the server with as user \"%.*s\"", (int)user.n, user.p);
    err_detail(err, "The server asks for %s, which needs %s.", auth_server_text(server), need);
    err_hint(err, "Add the user to pool_passwd, or let passwords be looked up with auth_query.");
    return AUTH_GIVE_IMPOSSIBLE;
}

/* An md5 secret knows nothing better, whatever a line says. What a client has sent in clear text
 * its line lets be sent so. */
const char *auth_scram_is_due(unsigned hold, bool has_verifier, bool by_scram, enum auth_give give)
{
    if (give != AUTH_GIVE_PASSWORD && give != AUTH_GIVE_MD5_OF_PASSWORD && give != AUTH_GIVE_MD5)
        return NULL;
    if (has_verifier)
        return "what is stored of the user is a SCRAM verifier";
    if ((hold & (AUTH_HOLD_KEYS | AUTH_HOLD_HEARD)) == AUTH_HOLD_KEYS)
        return "the user was logged in by SCRAM before";
    if (by_scram && give != AUTH_GIVE_MD5)
        return "the client's line of pool_hba.conf says scram-sha-256";
    return NULL;
}

void auth_refusal(
    const struct auth_facts *f, const struct auth_plan *plan, struct slice user, struct err *err)
{
    if (plan->ask == AUTH_ASK_REFUSE) {
        err_set_fatal(err, "28000", "client authentication failed");
        return;
    }
    switch (plan->proof) {
    case AUTH_PROOF_CERT:
        err_set_fatal(
            err, "28000", "CERT authentication failed for user \"%.*s\"", (int)user.n, user.p);
        return;
    case AUTH_PROOF_PEER:
        err_set_fatal(
            err, "28000", "peer authentication failed for user \"%.*s\"", (int)user.n, user.p);
        return;
    case AUTH_PROOF_PAM:
        err_set_fatal(
            err, "28000", "PAM authentication failed for user \"%.*s\"", (int)user.n, user.p);
        return;
    case AUTH_PROOF_LDAP:
        err_set_fatal(
            err, "28000", "LDAP authentication failed for user \"%.*s\"", (int)user.n, user.p);
        return;
    case AUTH_PROOF_NEVER:
    case AUTH_PROOF_TRUST:
    case AUTH_PROOF_STORED:
    case AUTH_PROOF_SERVER:
        break;
    }
    err_set_fatal(
        err, "28P01", "password authentication failed for user \"%.*s\"", (int)user.n, user.p);
}

const char *auth_ask_text(enum auth_ask ask)
{
    static const char *const text[] = {
        "refuse", "nothing", "password", "md5", "scram", "relay", "server first"};

    return text[ask];
}

const char *auth_proof_text(enum auth_proof proof)
{
    static const char *const text[] = {
        "never", "trust", "stored", "server", "cert", "pam", "ldap", "peer"};

    return text[proof];
}

const char *auth_server_text(enum auth_server server)
{
    static const char *const text[] = {
        "unknown", "trust", "password", "md5", "scram-sha-256", "an unsupported method"};

    return text[server];
}
