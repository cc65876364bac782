/* SPDX-License-Identifier: PostgreSQL
 * hba_opts.c: the name=value options behind a method, and what may go together. */
#include "config.h"

#include "hba_int.h"

#include <stdlib.h>
#include <string.h>

#include "auth/auth_helper.h"

#define LDAP_PORT     389
#define LDAP_TLS_PORT 636
#define LDAP_SUBTREE  2

struct opt_ctx {
    struct hba_lex *lx;
    const struct hba_raw *raw;
    struct hba_rule *rule;
};

typedef int opt_fn(struct opt_ctx *c, const char *name, const char *value);

static int bad(struct opt_ctx *c, const char *fmt, const char *name)
{
    char text[256];
    const char *at = strstr(fmt, "%");

    /* One place holder, for the name: */
    if (at == NULL) {
        hba_complain(c->lx, c->raw->file, c->raw->line, "%s", fmt);
        return -1;
    }
    memset(text, 0, sizeof text);
    memcpy(text, fmt, (size_t)(at - fmt));
    hba_complain(c->lx, c->raw->file, c->raw->line, "%s\"%s\"%s", text, name, at + 1);
    return -1;
}

static int set_port(struct opt_ctx *c, const char *value)
{
    char *end;
    long v = strtol(value, &end, 10);

    if (*value == '\0' || *end != '\0' || v < 1 || v > 65535)
        return bad(c, "invalid LDAP port number: %", value);
    c->rule->ldap.port = (int)v;
    return 0;
}

static int set_flag(struct opt_ctx *c, const char *name, const char *value, bool *flag)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return bad(c, "option % takes 0 or 1", name);
    *flag = value[0] == '1';
    return 0;
}

static int set_scheme(struct opt_ctx *c, const char *value)
{
    if (strcmp(value, "ldap") != 0 && strcmp(value, "ldaps") != 0)
        return bad(c, "invalid ldapscheme value: %", value);
    c->rule->ldap.scheme = value;
    return 0;
}

static int set_url(struct opt_ctx *c, const char *value)
{
    const char *problem = auth_ldap_read_url(value, c->lx->arena, &c->rule->ldap);

    return problem == NULL ? 0 : bad(c, problem, value);
}

static int set_clientcert(struct opt_ctx *c, const char *value)
{
    struct hba_rule *rule = c->rule;

    if (rule->conn != HBA_CONN_HOSTSSL)
        return bad(c, "clientcert can only be configured for \"hostssl\" rows", NULL);
    if (strcmp(value, "verify-full") == 0)
        rule->clientcert = HBA_CERT_VERIFY_FULL;
    else if (rule->method == HBA_CERT)
        return bad(
            c, "clientcert only accepts \"verify-full\" when using \"cert\" authentication", NULL);
    else if (strcmp(value, "verify-ca") == 0 || strcmp(value, "1") == 0)
        rule->clientcert = HBA_CERT_VERIFY_CA; /* 1: as older files say */
    else if (strcmp(value, "0") == 0 || strcmp(value, "no-verify") == 0)
        rule->clientcert = HBA_CERT_OFF;
    else
        return bad(c, "invalid value for clientcert: %", value);
    return 0;
}

static int set_clientname(struct opt_ctx *c, const char *value)
{
    if (c->rule->conn != HBA_CONN_HOSTSSL)
        return bad(c, "clientname can only be configured for \"hostssl\" rows", NULL);
    if (strcmp(value, "CN") != 0 && strcmp(value, "DN") != 0)
        return bad(c, "invalid value for clientname: %", value);
    c->rule->clientname_is_dn = value[0] == 'D';
    return 0;
}

/* LDAP options that are plain texts. NULL when `name` is none. */
static const char **ldap_text(struct hba_ldap *l, const char *name)
{
    if (strcmp(name, "ldapserver") == 0)
        return &l->server;
    if (strcmp(name, "ldapprefix") == 0)
        return &l->prefix;
    if (strcmp(name, "ldapsuffix") == 0)
        return &l->suffix;
    if (strcmp(name, "ldapbasedn") == 0)
        return &l->base_dn;
    if (strcmp(name, "ldapbinddn") == 0)
        return &l->bind_dn;
    if (strcmp(name, "ldapbindpasswd") == 0)
        return &l->bind_password;
    if (strcmp(name, "ldapsearchattribute") == 0)
        return &l->search_attribute;
    if (strcmp(name, "ldapsearchfilter") == 0)
        return &l->search_filter;
    return NULL;
}

static int set_ldap(struct opt_ctx *c, const char *name, const char *value)
{
    struct hba_ldap *l = &c->rule->ldap;
    const char **text = ldap_text(l, name);

    if (c->rule->method != HBA_LDAP)
        return bad(c, "authentication option % is only valid for authentication method ldap", name);
    if (text != NULL) {
        *text = value;
        return 0;
    }
    if (strcmp(name, "ldapport") == 0)
        return set_port(c, value);
    if (strcmp(name, "ldapscheme") == 0)
        return set_scheme(c, value);
    if (strcmp(name, "ldapurl") == 0)
        return set_url(c, value);
    if (strcmp(name, "ldaptls") == 0)
        return set_flag(c, name, value, &l->start_tls);
    if (strcmp(name, "backend_use_passwd") == 0)
        return set_flag(c, name, value, &l->use_password_for_server);
    return bad(c, "unrecognized authentication option name: %", name);
}

static int set_option(struct opt_ctx *c, const char *name, const char *value)
{
    struct hba_rule *rule = c->rule;

    if (strcmp(name, "map") == 0) {
        if (rule->method != HBA_PEER && rule->method != HBA_CERT)
            return bad(c,
                "authentication option \"map\" is only valid for authentication methods "
                "peer and cert",
                NULL);
        rule->map = value;
        return 0;
    }
    if (strcmp(name, "clientcert") == 0)
        return set_clientcert(c, value);
    if (strcmp(name, "clientname") == 0)
        return set_clientname(c, value);
    if (strcmp(name, "pamservice") == 0 || strcmp(name, "pam_use_hostname") == 0) {
        if (rule->method != HBA_PAM)
            return bad(
                c, "authentication option % is only valid for authentication method pam", name);
        if (name[3] == '_')
            return set_flag(c, name, value, &rule->pam_use_hostname);
        rule->pam_service = value;
        return 0;
    }
    if (strncmp(name, "ldap", 4) == 0 || strcmp(name, "backend_use_passwd") == 0)
        return set_ldap(c, name, value);
    return bad(c, "unrecognized authentication option name: %", name);
}

/* What of LDAP goes together: either prefix and suffix, or a search. */
static int check_ldap(struct opt_ctx *c)
{
    struct hba_ldap *l = &c->rule->ldap;
    bool simple = l->prefix != NULL || l->suffix != NULL;
    bool search = l->base_dn != NULL || l->bind_dn != NULL || l->bind_password != NULL ||
                  l->search_attribute != NULL || l->search_filter != NULL;

    if (l->server == NULL && (l->base_dn == NULL || l->base_dn[0] == '\0'))
        return bad(c,
            "authentication method \"ldap\" requires argument \"ldapserver\", "
            "\"ldapbasedn\" or \"ldapurl\" to be set",
            NULL);
    if (simple && search)
        return bad(c, "cannot mix options for simple bind and search+bind modes", NULL);
    if (!simple && l->base_dn == NULL)
        return bad(c,
            "authentication method \"ldap\" requires argument \"ldapbasedn\", "
            "\"ldapprefix\" or \"ldapsuffix\" to be set",
            NULL);
    if (l->search_attribute != NULL && l->search_filter != NULL)
        return bad(c, "cannot use ldapsearchattribute together with ldapsearchfilter", NULL);
    if (l->scheme == NULL)
        l->scheme = "ldap";
    if (l->port == 0)
        l->port = strcmp(l->scheme, "ldaps") == 0 ? LDAP_TLS_PORT : LDAP_PORT;
    return 0;
}

static int read_option(struct opt_ctx *c, const struct hba_token *t)
{
    const char *eq = strchr(t->text, '=');

    /* Behind "ldapbindpasswd= " stands a password: not into the log. */
    if (eq == NULL && c->rule->ldap.bind_password != NULL)
        return bad(c, "authentication option not in name=value format", NULL);
    if (eq == NULL)
        return bad(c, "authentication option not in name=value format: %", t->text);
    return set_option(c, arena_strndup(c->lx->arena, t->text, (size_t)(eq - t->text)), eq + 1);
}

int hba_opts_read(struct hba_lex *lx, const struct hba_raw *raw, unsigned at, struct hba_rule *rule)
{
    struct opt_ctx c = {lx, raw, rule};
    unsigned i;

    rule->ldap.scope = LDAP_SUBTREE;
    if (rule->method == HBA_CERT)
        rule->clientcert = HBA_CERT_VERIFY_FULL;
    for (; at < raw->n; at++)
        for (i = 0; i < raw->field[at].n; i++)
            if (read_option(&c, &raw->field[at].token[i]) == -1)
                return -1;
    return rule->method == HBA_LDAP ? check_ldap(&c) : 0;
}
