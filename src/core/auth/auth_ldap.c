/* SPDX-License-Identifier: PostgreSQL
 * auth_ldap.c: asks an LDAP directory whether a password is right: a simple bind as
 * prefix-user-suffix, or a search for the user's entry and a bind as that.
 * Runs in: workers, on a thread of its own. Must never: bind with an empty password (a directory
 * takes that for an anonymous bind and says yes), put a user's name into a filter or a name
 * unescaped, believe a search that found several entries. */
#include "config.h"

#include <ldap.h>
#include <string.h>
#include <sys/time.h>

#include "auth/auth_helper.h"
#include "base/buf.h"
#include "base/mem.h"

#define LDAP_PORT_PLAIN 389
#define LDAP_PORT_TLS   636

/* "What: the error (what the library or the directory adds to it)". With TLS only the addition says
 * that it is the certificate. `ld` may be NULL. */
static void say(struct err *err, LDAP *ld, const char *what, int rc)
{
    char *more = NULL;

    if (ld != NULL)
        (void)ldap_get_option(ld, LDAP_OPT_DIAGNOSTIC_MESSAGE, &more);
    if (more != NULL && *more != '\0')
        err_set(err, "28000", "%s: %s (%s)", what, ldap_err2string(rc), more);
    else
        err_set(err, "28000", "%s: %s", what, ldap_err2string(rc));
    if (more != NULL)
        ldap_memfree(more);
}

static enum auth_opinion broken(struct err *err, LDAP *ld, const char *what, int rc)
{
    say(err, ld, what, rc);
    return AUTH_OPINION_BROKEN;
}

static void say_refused(struct err *err, LDAP *ld, const char *dn, int rc)
{
    struct buf what = {0};

    buf_printf(&what, "LDAP login as \"%s\" failed", dn);
    buf_put_byte(&what, '\0');
    say(err, ld, what.data, rc);
    buf_free(&what);
}

/* One URI per server name, separated by blanks: the library tries them in turn. */
static void put_uris(const struct hba_ldap *o, struct buf *out)
{
    const char *scheme = o->scheme != NULL ? o->scheme : "ldap";
    const char *p = o->server != NULL ? o->server : "";
    int port = o->port;
    size_t n;

    if (port == 0)
        port = strcmp(scheme, "ldaps") == 0 ? LDAP_PORT_TLS : LDAP_PORT_PLAIN;
    while (*p != '\0') {
        p += strspn(p, " ");
        n = strcspn(p, " ");
        if (n > 0)
            buf_printf(out, "%s%s://%.*s:%d", out->len > 0 ? " " : "", scheme, (int)n, p, port);
        p += n;
    }
    buf_put_byte(out, '\0');
}

/* A handle; nothing is sent yet. */
static LDAP *make_handle(const struct hba_ldap *o, int64_t timeout_ms, struct err *err)
{
    struct timeval tv = {
        .tv_sec = (time_t)(timeout_ms / 1000), .tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000)};
    struct buf uris = {0};
    int version = LDAP_VERSION3;
    LDAP *ld = NULL;
    int rc;

    put_uris(o, &uris);
    if (uris.data[0] == '\0') { /* the library would take its own default, without TLS perhaps */
        buf_free(&uris);
        err_set(err, "08001", "the line of pool_hba.conf names no LDAP server");
        err_hint(err, "Set ldapserver or ldapurl: servers are not looked for in DNS.");
        return NULL;
    }
    rc = ldap_initialize(&ld, uris.data);
    buf_free(&uris);
    if (rc != LDAP_SUCCESS) {
        broken(err, NULL, "could not set up LDAP", rc);
        return NULL;
    }
    (void)ldap_set_option(ld, LDAP_OPT_PROTOCOL_VERSION, &version);
    (void)ldap_set_option(ld, LDAP_OPT_NETWORK_TIMEOUT, &tv);
    (void)ldap_set_option(ld, LDAP_OPT_TIMEOUT, &tv);
    (void)ldap_set_option(ld, LDAP_OPT_REFERRALS, LDAP_OPT_OFF);
    return ld;
}

static bool is_tls(const struct hba_ldap *o)
{
    return o->start_tls || (o->scheme != NULL && strcmp(o->scheme, "ldaps") == 0);
}

static bool is_no_connection(int rc)
{
    return rc == LDAP_SERVER_DOWN || rc == LDAP_CONNECT_ERROR;
}

/* The library does not say (with GnuTLS at least) that it was the certificate which it did not
 * like. So it is asked once more without looking at it, and without a name or a password. */
static bool is_certificate_refused(const struct hba_ldap *o, int64_t timeout_ms)
{
    struct berval nothing = {0};
    struct err err = {0};
    int never = LDAP_OPT_X_TLS_NEVER;
    int client = 0;
    LDAP *ld = make_handle(o, timeout_ms, &err);
    int rc;

    if (ld == NULL)
        return false;
    (void)ldap_set_option(ld, LDAP_OPT_X_TLS_REQUIRE_CERT, &never);
    (void)ldap_set_option(ld, LDAP_OPT_X_TLS_NEWCTX, &client);
    rc = o->start_tls ? ldap_start_tls_s(ld, NULL, NULL)
                      : ldap_sasl_bind_s(ld, "", LDAP_SASL_SIMPLE, &nothing, NULL, NULL, NULL);
    (void)ldap_unbind_ext_s(ld, NULL, NULL);
    return !is_no_connection(rc);
}

/* Puts the reason behind what was said about a connection that could not be had. */
static void say_tls(struct err *err, const struct hba_ldap *o, int rc, int64_t timeout_ms)
{
    char said[sizeof err->msg];

    if (!is_no_connection(rc) || !is_tls(o) || !is_certificate_refused(o, timeout_ms))
        return;
    memcpy(said, err->msg, sizeof said);
    err_clear(err);
    err_set(err, "28000",
        "%s: the LDAP server's certificate is not of an authority that ldap.conf or LDAPTLS_CACERT "
        "names, or is for another host",
        said);
}

static LDAP *open_directory(const struct hba_ldap *o, int64_t timeout_ms, struct err *err)
{
    LDAP *ld = make_handle(o, timeout_ms, err);
    int rc;

    if (ld == NULL || !o->start_tls)
        return ld;
    rc = ldap_start_tls_s(ld, NULL, NULL);
    if (rc == LDAP_SUCCESS)
        return ld;
    broken(err, ld, "could not start TLS with the LDAP server", rc);
    (void)ldap_unbind_ext_s(ld, NULL, NULL);
    say_tls(err, o, rc, timeout_ms);
    return NULL;
}

static int bind_as(LDAP *ld, const char *dn, const char *password)
{
    struct berval cred = {.bv_len = strlen(password)};
    char *copy = mem_strdup(password);
    int rc;

    cred.bv_val = copy;
    rc = ldap_sasl_bind_s(ld, dn, LDAP_SASL_SIMPLE, &cred, NULL, NULL, NULL);
    mem_wipe(copy, cred.bv_len);
    mem_free(copy);
    return rc;
}

/* A value in a filter: RFC 4515. */
static void put_filter_value(struct buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (strchr("*()\\", *s) != NULL)
            buf_printf(out, "\\%02x", (unsigned char)*s);
        else
            buf_put_byte(out, *s);
    }
}

/* $username in the filter of the administrator stands for the user. */
static void put_filter(const struct hba_ldap *o, const char *user, struct buf *out)
{
    static const char name[] = "$username";
    const char *p = o->search_filter;
    const char *at;

    if (p == NULL) {
        buf_printf(out, "(%s=", o->search_attribute != NULL ? o->search_attribute : "uid");
        put_filter_value(out, user);
        buf_put(out, ")", 2); /* with its NUL */
        return;
    }
    while ((at = strstr(p, name)) != NULL) {
        buf_put(out, p, (size_t)(at - p));
        put_filter_value(out, user);
        p = at + sizeof name - 1;
    }
    buf_put_cstr(out, p);
}

/* The name of the user's one entry; NULL when there is none (or several: *opinion stays no). Free
 * with ldap_memfree. */
static char *find_entry(LDAP *ld, const struct hba_ldap *o, const char *user,
    enum auth_opinion *opinion, struct err *err)
{
    char no_attributes[] = LDAP_NO_ATTRS;
    char *attributes[] = {no_attributes, NULL};
    struct buf filter = {0};
    LDAPMessage *result = NULL;
    char *dn = NULL;
    int count;
    int rc;

    put_filter(o, user, &filter);
    rc = ldap_search_ext_s(
        ld, o->base_dn, o->scope, filter.data, attributes, 0, NULL, NULL, NULL, 2, &result);
    if (rc != LDAP_SUCCESS && rc != LDAP_SIZELIMIT_EXCEEDED) {
        *opinion = broken(err, ld, "could not search the LDAP directory", rc);
    } else {
        count = ldap_count_entries(ld, result);
        if (rc == LDAP_SUCCESS && count == 1)
            dn = ldap_get_dn(ld, ldap_first_entry(ld, result));
        else
            err_set(err, "28000", "the LDAP search with filter \"%s\" found %s", filter.data,
                count == 0 ? "no entry" : "several entries");
    }
    if (result != NULL)
        ldap_msgfree(result);
    buf_free(&filter);
    return dn;
}

static enum auth_opinion search_and_bind(LDAP *ld, const struct hba_ldap *o, const char *user,
    const char *password, int64_t timeout_ms, struct err *err)
{
    enum auth_opinion opinion = AUTH_OPINION_NO;
    char *dn;
    int rc = bind_as(ld, o->bind_dn != NULL ? o->bind_dn : "",
        o->bind_dn != NULL && o->bind_password != NULL ? o->bind_password : "");

    if (rc != LDAP_SUCCESS) {
        broken(err, ld, "could not bind to the LDAP server for the search", rc);
        say_tls(err, o, rc, timeout_ms);
        return AUTH_OPINION_BROKEN;
    }
    dn = find_entry(ld, o, user, &opinion, err);
    if (dn == NULL)
        return opinion;
    rc = bind_as(ld, dn, password);
    if (rc == LDAP_SUCCESS)
        opinion = AUTH_OPINION_YES;
    else
        say_refused(err, ld, dn, rc);
    if (rc != LDAP_SUCCESS && rc != LDAP_INVALID_CREDENTIALS)
        opinion = AUTH_OPINION_BROKEN;
    ldap_memfree(dn);
    return opinion;
}

/* Characters that mean something in a distinguished name (RFC 4514). A name with one of them would
 * be another name: such users have to be found by a search. */
static bool is_plain_in_dn(const char *user)
{
    return strpbrk(user, ",+\"\\<>;=#\n\r") == NULL && user[0] != ' ' &&
           user[strlen(user) - 1] != ' ';
}

static enum auth_opinion simple_bind(LDAP *ld, const struct hba_ldap *o, const char *user,
    const char *password, int64_t timeout_ms, struct err *err)
{
    enum auth_opinion opinion = AUTH_OPINION_NO;
    struct buf dn = {0};
    int rc;

    if (!is_plain_in_dn(user)) {
        err_set(err, "28000", "the user name has characters that are special in LDAP names");
        return AUTH_OPINION_NO;
    }
    buf_printf(&dn, "%s%s%s", o->prefix != NULL ? o->prefix : "", user,
        o->suffix != NULL ? o->suffix : "");
    buf_put_byte(&dn, '\0');
    rc = bind_as(ld, dn.data, password);
    if (rc == LDAP_SUCCESS)
        opinion = AUTH_OPINION_YES;
    else
        say_refused(err, ld, dn.data, rc);
    say_tls(err, o, rc, timeout_ms);
    if (rc != LDAP_SUCCESS && rc != LDAP_INVALID_CREDENTIALS && rc != LDAP_NO_SUCH_OBJECT &&
        rc != LDAP_INVALID_DN_SYNTAX)
        opinion = AUTH_OPINION_BROKEN;
    buf_free(&dn);
    return opinion;
}

enum auth_opinion auth_ldap_check(const struct hba_ldap *opts, const char *user,
    const char *password, int64_t timeout_ms, struct err *err)
{
    enum auth_opinion opinion;
    LDAP *ld;

    if (*password == '\0' || *user == '\0')
        return AUTH_OPINION_NO;
    ld = open_directory(opts, timeout_ms, err);
    if (ld == NULL)
        return AUTH_OPINION_BROKEN;
    if (opts->base_dn != NULL)
        opinion = search_and_bind(ld, opts, user, password, timeout_ms, err);
    else
        opinion = simple_bind(ld, opts, user, password, timeout_ms, err);
    (void)ldap_unbind_ext_s(ld, NULL, NULL);
    return opinion;
}

bool auth_ldap_is_built(void)
{
    return true;
}
