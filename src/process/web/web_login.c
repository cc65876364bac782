/* SPDX-License-Identifier: PostgreSQL
 * web_login.c: who asks: users of pcp.conf, by basic authentication (programs) or by a session that
 * a cookie names (the console).
 * Runs in: web. Must never: let anybody find out which users there are, keep a password, or take a
 * cookie alone for an order: another site's page can make a browser send it. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "auth/auth_guard.h"
#include "auth/pcp_conf.h"
#include "auth/scram.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf_param.h"
#include "crypto/crypto.h"
#include "ipc/proc.h"

#include "web_login.h"

#define SESSIONS_MAX     64
#define SESSIONS_OF_ONE  8
#define IDLE_LIMIT_US    (INT64_C(1800) * 1000000)
#define LIFE_LIMIT_US    (INT64_C(12) * 3600 * 1000000)
#define TOKEN_BYTES      24
#define FAILURES_MAX     10 /* per address and minute */
#define FAILURE_PLACES   256
#define WINDOW_US        (INT64_C(60) * 1000000)
#define COOKIE_BYTES     32
#define BASIC            "Basic "
#define CREDENTIAL_BYTES 1024
#define STATUS_UNKNOWN   401
#define STATUS_FORBIDDEN 403
#define STATUS_SLOWER    429

struct session {
    char token[WEB_TOKEN_TEXT]; /* "" free */
    struct web_who who;
    int64_t since_us;
    int64_t used_us;
};

struct failures {
    uint64_t address; /* 0 free */
    int64_t since_us;
    unsigned n;
};

struct web_login {
    int64_t used_us; /* the last one of session.used_us */
    uint64_t seed;   /* nobody can choose addresses that meet in one place */
    struct session session[SESSIONS_MAX];
    struct failures failures[FAILURE_PLACES];
};

struct web_login *web_login_new(void)
{
    struct web_login *l = mem_alloc_secret(sizeof *l);
    struct err err = {0};

    if (crypto_random(&l->seed, sizeof l->seed, &err) == -1)
        log_err(LVL_WARNING, &err);
    return l;
}

void web_login_free(struct web_login **lp)
{
    mem_free_secret(*lp);
    *lp = NULL;
}

static int64_t now_us(const struct web_request *r)
{
    return loop_now_us(&r->web->role.loop);
}

/* --- failures --- */

static struct hba_addr address_of(const struct web_request *r)
{
    struct hba_addr none = {0};

    if (r->from == NULL || (r->from->sa_family != AF_INET && r->from->sa_family != AF_INET6))
        return none;
    return hba_addr_of(r->from);
}

/* An IPv6 network of 64 bits counts as one address: it belongs to one customer. */
static struct failures *failures_of(const struct web_request *r)
{
    struct hba_addr addr = address_of(r);
    uint64_t key = hash_bytes(addr.bytes, addr.n == 16 ? 8 : addr.n, r->web->login->seed) | 1;
    struct failures *f = &r->web->login->failures[key % FAILURE_PLACES];

    if (f->address != key || now_us(r) - f->since_us > WINDOW_US) {
        f->address = key;
        f->since_us = now_us(r);
        f->n = 0;
    }
    return f;
}

static bool is_blocked(const struct web_request *r)
{
    struct auth_guard *guard = shm_get(r->web->role.env->shm, SHM_AUTH);
    uint32_t limit = (uint32_t)conf_of(role_loop_gen(&r->web->role))->auth_failure_limit;
    struct hba_addr addr = address_of(r);

    return failures_of(r)->n >= FAILURES_MAX || auth_guard_is_blocked(guard, AUTH_GUARD_WRONG,
                                                    &addr, (uint32_t)(now_us(r) / 1000000), limit);
}

static void count_failure(const struct web_request *r, struct slice user)
{
    struct auth_guard *guard = shm_get(r->web->role.env->shm, SHM_AUTH);
    struct hba_addr addr = address_of(r);
    char peer[INET6_ADDRSTRLEN] = "";

    failures_of(r)->n++;
    auth_guard_count(guard, AUTH_GUARD_WRONG, &addr, (uint32_t)(now_us(r) / 1000000));
    web_login_peer(r, peer, sizeof peer);
    log_caused(LVL_LOG, "HTTP log-in of user \"%.*s\" from %s failed",
        (int)(user.n < WEB_USER_BYTES ? user.n : WEB_USER_BYTES), user.p, peer);
}

void web_login_peer(const struct web_request *r, char *out, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "?";

    if (r->from != NULL && r->from->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)r->from)->sin_addr, text,
            sizeof text);
    if (r->from != NULL && r->from->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)r->from)->sin6_addr, text,
            sizeof text);
    snprintf(out, size, "%s", text);
}

/* --- passwords --- */

static int read_users(const struct web_request *r, char **text, size_t *n, struct err *err)
{
    const struct proc_env *env = r->web->role.env;
    const char *name = env->paths->pcp[0] != '\0' ? env->paths->pcp : PCP_CONF_NAME;
    char path[PROC_PATH_BYTES];
    struct stat st;

    if (conf_path(role_loop_gen(&r->web->role), name, path, sizeof path, err) == -1)
        return -1;
    return pcp_conf_read(path, text, n, &st, err);
}

static bool md5_fits(struct slice line, struct slice password)
{
    char hex[CRYPTO_MD5_HEX_BYTES + 1] = "";
    struct err ignored = {0};
    bool fits;

    fits = crypto_md5_hex(password, slice_of("", 0), hex, &ignored) == 0 &&
           line.n == CRYPTO_MD5_HEX_BYTES && strncasecmp(line.p, hex, CRYPTO_MD5_HEX_BYTES) == 0;
    mem_wipe(hex, sizeof hex);
    return fits;
}

static bool verifier_fits(struct slice line, struct slice password)
{
    struct scram_verifier v;
    struct err ignored = {0};
    bool match = false;

    if (scram_verifier_parse(line, &v) == -1 ||
        scram_verifier_check(&v, password, &match, NULL, &ignored) == -1)
        match = false;
    mem_wipe(&v, sizeof v);
    return match;
}

/* Takes as long for who is not in the file as for who is: where there is any verifier, one is
 * computed for everybody. */
static bool password_fits(struct slice text, struct slice user, struct slice password)
{
    struct slice spare = slice_of(NULL, 0);
    struct pcp_line line;
    bool has_computed = false;
    bool fits = false;

    while (pcp_conf_next(&text, &line)) {
        bool is_his = slice_eq(line.user, user);

        if (line.is_scram)
            spare = line.value;
        if (is_his && line.is_scram && !has_computed) {
            fits = verifier_fits(line.value, password) || fits;
            has_computed = true;
        } else if (!line.is_scram) {
            fits = (md5_fits(line.value, password) && is_his) || fits;
        }
    }
    if (!has_computed && spare.n > 0)
        (void)verifier_fits(spare, password);
    return fits;
}

static bool is_operator(const struct conf *conf, const char *user)
{
    int i;

    for (i = 0; i < conf->http_operators.n; i++)
        if (strcmp(conf->http_operators.item[i], "*") == 0 ||
            strcmp(conf->http_operators.item[i], user) == 0)
            return true;
    return false;
}

/* What the file has for the user: with another password a session is over. False: nothing. */
static bool digest_lines(struct slice text, const char *user, uint8_t out[CRYPTO_SHA256_BYTES])
{
    struct buf lines = {.is_secret = true};
    struct err ignored = {0};
    struct pcp_line line;
    bool is_there;

    while (pcp_conf_next(&text, &line)) {
        if (!slice_eq_str(line.user, user))
            continue;
        buf_put(&lines, line.value.p, line.value.n);
        buf_put_byte(&lines, '\n');
    }
    is_there = lines.len > 0 && crypto_sha256(buf_slice(&lines), out, &ignored) == 0;
    buf_free(&lines);
    return is_there;
}

/* True when the password is right; else it is counted. */
static bool prove(
    const struct web_request *r, struct slice user, struct slice password, struct web_who *who)
{
    struct err err = {0};
    char *text = NULL;
    size_t n = 0;
    bool fits = false;

    if (user.n == 0 || user.n > WEB_USER_BYTES) {
        count_failure(r, user);
        return false;
    }
    if (read_users(r, &text, &n, &err) == -1) {
        log_err(LVL_WARNING, &err);
        return false;
    }
    memset(who, 0, sizeof *who);
    memcpy(who->user, user.p, user.n);
    fits = password_fits(slice_of(text, n), user, password) &&
           digest_lines(slice_of(text, n), who->user, who->lines);
    mem_free_secret(text);
    if (!fits) {
        memset(who, 0, sizeof *who);
        count_failure(r, user);
        return false;
    }
    who->is_operator = is_operator(conf_of(role_loop_gen(&r->web->role)), who->user);
    return true;
}

/* Who was taken out of the file, or has another password there, is somebody else now. */
static bool is_still_known(const struct web_request *r, const struct web_who *who)
{
    uint8_t lines[CRYPTO_SHA256_BYTES];
    struct err err = {0};
    char *text = NULL;
    size_t n = 0;
    bool is_same;

    if (read_users(r, &text, &n, &err) == -1)
        return false;
    is_same = digest_lines(slice_of(text, n), who->user, lines) &&
              crypto_equal(lines, who->lines, sizeof lines);
    mem_free_secret(text);
    return is_same;
}

/* --- basic authentication --- */

static bool proves_basic(const struct web_request *r, struct web_who *who)
{
    const char *header = web_request_header(r, "Authorization");
    char text[CREDENTIAL_BYTES];
    const char *colon;
    size_t n = 0;
    bool ok;

    if (header == NULL || strncasecmp(header, BASIC, strlen(BASIC)) != 0 || is_blocked(r))
        return false;
    if (crypto_base64_decode(slice_of_str(header + strlen(BASIC)), text, sizeof text, &n) == -1)
        return false;
    colon = memchr(text, ':', n);
    ok = colon != NULL && prove(r, slice_of(text, (size_t)(colon - text)),
                              slice_of(colon + 1, n - (size_t)(colon + 1 - text)), who);
    mem_wipe(text, sizeof text);
    return ok;
}

/* --- sessions --- */

static int make_token(char out[WEB_TOKEN_TEXT], struct err *err)
{
    uint8_t raw[TOKEN_BYTES];
    size_t i;

    if (crypto_random(raw, sizeof raw, err) == -1)
        return -1;
    for (i = 0; i < sizeof raw; i++)
        snprintf(out + 2 * i, 3, "%02x", raw[i]);
    return 0;
}

static bool is_over(const struct session *s, int64_t now)
{
    return s->token[0] == '\0' || now - s->used_us > IDLE_LIMIT_US ||
           now - s->since_us > LIFE_LIMIT_US;
}

/* Browsers do not tell ports of a host apart, and another pgpool may be behind one. */
static void name_cookie(const struct web_request *r, char out[COOKIE_BYTES])
{
    snprintf(out, COOKIE_BYTES, "pgpool_%d=", conf_of(role_loop_gen(&r->web->role))->http_port);
}

/* The value of our cookie; n == 0: there is none. */
static struct slice cookie_of(const struct web_request *r)
{
    const char *at = web_request_header(r, "Cookie");
    char name[COOKIE_BYTES];

    name_cookie(r, name);
    while (at != NULL) {
        while (*at == ' ' || *at == ';')
            at++;
        if (strncmp(at, name, strlen(name)) == 0) {
            at += strlen(name);
            return slice_of(at, strcspn(at, "; "));
        }
        at = strchr(at, ';');
    }
    return slice_of(NULL, 0);
}

static struct session *session_of(const struct web_request *r)
{
    struct slice cookie = cookie_of(r);
    int i;

    if (cookie.n != WEB_TOKEN_TEXT - 1)
        return NULL;
    for (i = 0; i < SESSIONS_MAX; i++) {
        struct session *s = &r->web->login->session[i];

        if (!is_over(s, now_us(r)) && crypto_equal(s->token, cookie.p, cookie.n))
            return s;
    }
    return NULL;
}

/* A place for a new one: of one that is over, or the one that was used least lately. Who has many
 * gives one of his own: nobody pushes out the others. */
static struct session *free_place(const struct web_request *r, const char *user)
{
    struct session *oldest = &r->web->login->session[0];
    struct session *own = NULL;
    struct session *over = NULL;
    int nown = 0;
    int i;

    for (i = 0; i < SESSIONS_MAX; i++) {
        struct session *s = &r->web->login->session[i];

        if (is_over(s, now_us(r))) {
            over = s;
            continue;
        }
        if (s->used_us < oldest->used_us)
            oldest = s;
        if (strcmp(s->who.user, user) != 0)
            continue;
        nown++;
        if (own == NULL || s->used_us < own->used_us)
            own = s;
    }
    if (nown >= SESSIONS_OF_ONE)
        return own;
    return over != NULL ? over : oldest;
}

/* Several of one turn of the loop have an order, too. */
static int64_t used_now_us(const struct web_request *r)
{
    struct web_login *l = r->web->login;

    l->used_us = now_us(r) > l->used_us ? now_us(r) : l->used_us + 1;
    return l->used_us;
}

static void set_cookie(const struct web_request *r, struct web_answer *a, const char *token)
{
    char name[COOKIE_BYTES];

    name_cookie(r, name);
    a->header_name = "Set-Cookie";
    snprintf(a->header_value, sizeof a->header_value, "%s%s; Path=/; HttpOnly; SameSite=Strict%s%s",
        name, token, r->web->tls != NULL ? "; Secure" : "", token[0] == '\0' ? "; Max-Age=0" : "");
}

enum web_login_result web_login_begin(const struct web_request *r, struct slice user,
    struct slice password, struct web_answer *a, struct web_who *who)
{
    struct session *s;
    struct err err = {0};

    if (is_blocked(r))
        return WEB_LOGIN_BLOCKED;
    if (!prove(r, user, password, who))
        return WEB_LOGIN_WRONG;
    s = free_place(r, who->user);
    memset(s, 0, sizeof *s);
    if (make_token(who->csrf, &err) == -1 || make_token(s->token, &err) == -1) {
        log_err(LVL_WARNING, &err);
        memset(s, 0, sizeof *s);
        return WEB_LOGIN_WRONG;
    }
    s->who = *who;
    s->since_us = now_us(r);
    s->used_us = used_now_us(r);
    set_cookie(r, a, s->token);
    return WEB_LOGIN_DONE;
}

void web_login_end(const struct web_request *r, struct web_answer *a)
{
    struct session *s = session_of(r);

    if (s != NULL)
        mem_wipe(s, sizeof *s);
    set_cookie(r, a, "");
}

/* --- who may --- */

static bool has_csrf(const struct web_request *r, const struct web_who *who)
{
    const char *given = web_request_header(r, "X-CSRF-Token");

    return given != NULL && strlen(given) == WEB_TOKEN_TEXT - 1 &&
           crypto_equal(given, who->csrf, WEB_TOKEN_TEXT - 1);
}

static bool refuse(struct web_answer *a, unsigned status, const char *text)
{
    web_answer_text(a, status, text);
    return false;
}

static bool may_order(
    const struct web_request *r, enum web_right right, struct session *s, struct web_answer *a)
{
    if (s == NULL || !has_csrf(r, &s->who))
        return refuse(a, STATUS_FORBIDDEN, "log in first\n");
    if (right == WEB_FOR_SESSIONS)
        return true;
    s->who.is_operator = is_operator(conf_of(role_loop_gen(&r->web->role)), s->who.user);
    if (!s->who.is_operator)
        return refuse(a, STATUS_FORBIDDEN, "only those whom http_operators names may do this\n");
    return true;
}

bool web_login_may(
    const struct web_request *r, enum web_right right, struct web_answer *a, struct web_who *who)
{
    const struct conf *conf = conf_of(role_loop_gen(&r->web->role));
    struct session *s = session_of(r);

    memset(who, 0, sizeof *who);
    if (s != NULL && !is_still_known(r, &s->who))
        s = NULL;
    if (s != NULL) {
        s->used_us = used_now_us(r);
        s->who.is_operator = is_operator(conf, s->who.user);
        *who = s->who;
    }
    if (right == WEB_FOR_ANYONE || (right == WEB_FOR_SCRAPERS && conf->http_metrics_open))
        return true;
    if (right == WEB_FOR_OPERATORS || right == WEB_FOR_SESSIONS)
        return may_order(r, right, s, a);
    if (s != NULL || proves_basic(r, who))
        return true;
    if (web_request_header(r, "Authorization") != NULL && is_blocked(r))
        return refuse(a, STATUS_SLOWER, "too many wrong passwords: wait for a minute\n");
    /* Not for the console's own questions: browsers would ask for a password in their own way. */
    if (right == WEB_FOR_SCRAPERS) {
        a->header_name = "WWW-Authenticate";
        snprintf(a->header_value, sizeof a->header_value, "Basic realm=\"pgpool\"");
    }
    return refuse(a, STATUS_UNKNOWN, "log in with a user of pcp.conf\n");
}
