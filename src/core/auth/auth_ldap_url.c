/* SPDX-License-Identifier: PostgreSQL
 * auth_ldap_url.c: reads ldapurl with the library that PostgreSQL reads it with, so that the same
 * text means the same directory, attribute and scope (which depends on what is left out).
 * Runs in: workers, supervisor (checking). */
#include "config.h"

#include <ldap.h>
#include <string.h>

#include "auth/auth_helper.h"
#include "base/arena.h"

#define LDAP_PORT_MAX 65535

static const char *kept(struct arena *arena, const char *s)
{
    return s == NULL ? NULL : arena_strdup(arena, s);
}

const char *auth_ldap_read_url(const char *url, struct arena *arena, struct hba_ldap *out)
{
    LDAPURLDesc *u = NULL;
    const char *problem = NULL;

    if (ldap_url_parse(url, &u) != LDAP_URL_SUCCESS)
        return "could not parse LDAP URL %";
    if (strcmp(u->lud_scheme, "ldap") != 0 && strcmp(u->lud_scheme, "ldaps") != 0)
        problem = "unsupported LDAP URL scheme: %";
    else if (u->lud_port < 1 || u->lud_port > LDAP_PORT_MAX)
        problem = "invalid port in LDAP URL %";
    out->scheme = kept(arena, u->lud_scheme);
    if (u->lud_host != NULL)
        out->server = kept(arena, u->lud_host);
    out->port = u->lud_port;
    if (u->lud_dn != NULL)
        out->base_dn = kept(arena, u->lud_dn);
    if (u->lud_attrs != NULL) /* one is used */
        out->search_attribute = kept(arena, u->lud_attrs[0]);
    out->scope = u->lud_scope;
    if (u->lud_filter != NULL)
        out->search_filter = kept(arena, u->lud_filter);
    ldap_free_urldesc(u);
    return problem;
}
