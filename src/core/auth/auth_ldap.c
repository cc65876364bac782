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

static enum auth_opinion broken(struct err *err, const char *what, int rc)
{
    err_set(err, "28000", "%s: %s", what, ldap_err2string(rc));
    return AUTH_OPINION_BROKEN;
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

static LDAP *open_directory(const struct hba_ldap *o, int64_t timeout_ms, struct err *err)
{
    struct timeval tv = {
        .tv_sec = (time_t)(timeout_ms / 1000), .tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000)};
    struct buf uris = {0};
    int version = LDAP_VERSION3;
    LDAP *ld = NULL;
    int rc;

    put_uris(o, &uris);
    rc = ldap_initialize(&ld, uris.data);
    buf_free(&uris);
    if (rc != LDAP_SUCCESS) {
        broken(err, "could not set up LDAP", rc);
        return NULL;
    }
    (void)ldap_set_option(ld, LDAP_OPT_PROTOCOL_VERSION, &version);
    (void)ldap_set_option(ld, LDAP_OPT_NETWORK_TIMEOUT, &tv);
    (void)ldap_set_option(ld, LDAP_OPT_TIMEOUT, &tv);
    (void)ldap_set_option(ld, LDAP_OPT_REFERRALS, LDAP_OPT_OFF);
    if (o->start_tls) {
        rc = ldap_start_tls_s(ld, NULL, NULL);
        if (rc != LDAP_SUCCESS) {
            broken(err, "could not start TLS with the LDAP server", rc);
            (void)ldap_unbind_ext_s(ld, NULL, NULL);
            return NULL;
        }
    }
    return ld;
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
        *opinion = broken(err, "could not search the LDAP directory", rc);
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

static enum auth_opinion search_and_bind(
    LDAP *ld, const struct hba_ldap *o, const char *user, const char *password, struct err *err)
{
    enum auth_opinion opinion = AUTH_OPINION_NO;
    char *dn;
    int rc = bind_as(ld, o->bind_dn != NULL ? o->bind_dn : "",
        o->bind_dn != NULL && o->bind_password != NULL ? o->bind_password : "");

    if (rc != LDAP_SUCCESS)
        return broken(err, "could not bind to the LDAP server for the search", rc);
    dn = find_entry(ld, o, user, &opinion, err);
    if (dn == NULL)
        return opinion;
    rc = bind_as(ld, dn, password);
    if (rc == LDAP_SUCCESS)
        opinion = AUTH_OPINION_YES;
    else
        err_set(err, "28000", "LDAP login as \"%s\" failed: %s", dn, ldap_err2string(rc));
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

static enum auth_opinion simple_bind(
    LDAP *ld, const struct hba_ldap *o, const char *user, const char *password, struct err *err)
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
        err_set(err, "28000", "LDAP login as \"%s\" failed: %s", dn.data, ldap_err2string(rc));
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
        opinion = search_and_bind(ld, opts, user, password, err);
    else
        opinion = simple_bind(ld, opts, user, password, err);
    (void)ldap_unbind_ext_s(ld, NULL, NULL);
    return opinion;
}

bool auth_ldap_is_built(void)
{
    return true;
}
