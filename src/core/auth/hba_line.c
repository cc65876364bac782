/* SPDX-License-Identifier: PostgreSQL
 * hba_line.c: one line of pool_hba.conf: connection type, databases, users, address, method. */
#include "config.h"

#include "hba_int.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* A line being read. */
struct line_read {
    struct hba_lex *lx;
    const struct hba_raw *raw;
    struct hba_line *line;
    unsigned at; /* field to read next */
};

static const char *const conn_names[] = {
    [HBA_CONN_LOCAL] = "local",
    [HBA_CONN_HOST] = "host",
    [HBA_CONN_HOSTSSL] = "hostssl",
    [HBA_CONN_HOSTNOSSL] = "hostnossl",
    [HBA_CONN_HOSTGSSENC] = "hostgssenc",
    [HBA_CONN_HOSTNOGSSENC] = "hostnogssenc",
};

static const char *const method_names[] = {
    [HBA_REJECT] = "reject",
    [HBA_TRUST] = "trust",
    [HBA_PASSWORD] = "password",
    [HBA_MD5] = "md5",
    [HBA_SCRAM] = "scram-sha-256",
    [HBA_CERT] = "cert",
    [HBA_PAM] = "pam",
    [HBA_LDAP] = "ldap",
    [HBA_PEER] = "peer",
};

/* Known to PostgreSQL, not to us: said by name, so that nobody looks for a typing error. */
static const char *const foreign_methods[] = {"gss", "sspi", "radius", "bsd", "oauth", "krb5"};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

const char *hba_method_text(enum hba_method method)
{
    return method_names[method];
}

/* Takes the next field, which must be there; `what` names it in the message. */
static const struct hba_field *take(struct line_read *r, const char *what)
{
    if (r->at >= r->raw->n) {
        hba_complain(r->lx, r->raw->file, r->raw->line, "end of line before %s", what);
        return NULL;
    }
    return &r->raw->field[r->at++];
}

/* Takes the next field, which has to be one word; `what` names it in the message. */
static const struct hba_token *take_one(struct line_read *r, const char *what)
{
    const struct hba_field *f = take(r, what);

    if (f == NULL)
        return NULL;
    if (f->n != 1) {
        hba_complain(r->lx, r->raw->file, r->raw->line, "%s values specified for %s",
            f->n == 0 ? "no" : "multiple", what);
        return NULL;
    }
    return &f->token[0];
}

static int read_conn(struct line_read *r)
{
    const struct hba_token *t = take_one(r, "connection type");
    size_t i;

    if (t == NULL)
        return -1;
    for (i = 0; i < COUNT(conn_names); i++)
        if (strcmp(t->text, conn_names[i]) == 0)
            break;
    if (i == COUNT(conn_names)) {
        hba_complain(r->lx, r->raw->file, r->raw->line, "invalid connection type \"%s\"", t->text);
        return -1;
    }
    r->line->rule.conn = (enum hba_conn)i;
    if (r->line->rule.conn == HBA_CONN_HOSTSSL && (r->lx->flags & HBA_WITH_TLS) == 0) {
        hba_complain(r->lx, r->raw->file, r->raw->line,
            "a hostssl line cannot match: TLS is not supported by this build");
        return -1;
    }
    return 0;
}

/* Takes a list of names and compiles its expressions. */
static int read_names(struct line_read *r, const char *what, struct hba_field *out)
{
    const struct hba_field *f = take(r, what);
    unsigned i;

    if (f == NULL)
        return -1;
    for (i = 0; i < f->n; i++)
        if (hba_compile(r->lx, r->raw, &f->token[i]) == -1)
            return -1;
    *out = *f;
    return 0;
}

/* The short, octal and hex forms (10.1, 0x7f.1) that PostgreSQL takes too. */
static bool is_old_ipv4(const char *text)
{
    return text[0] >= '0' && text[0] <= '9' &&
           strspn(text, "0123456789abcdefABCDEFxX.") == strlen(text);
}

/* fe80::1%eth0: a client's interface is not compared, by PostgreSQL neither. */
static bool read_ipv6(const char *text, uint8_t *out)
{
    const char *zone = strchr(text, '%');
    char plain[INET6_ADDRSTRLEN];
    size_t n = zone == NULL ? strlen(text) : (size_t)(zone - text);

    if (n >= sizeof plain)
        return false;
    memcpy(plain, text, n);
    plain[n] = '\0';
    return inet_pton(AF_INET6, plain, out) == 1;
}

static bool read_ip(const char *text, struct hba_addr *out)
{
    struct in_addr four;

    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, out->bytes) == 1) {
        out->n = 4;
    } else if (is_old_ipv4(text) && inet_aton(text, &four) == 1) {
        memcpy(out->bytes, &four, 4);
        out->n = 4;
    } else if (read_ipv6(text, out->bytes)) {
        out->n = 16;
    }
    return out->n != 0;
}

static int bad_address(struct line_read *r, const char *text, const char *why)
{
    hba_complain(r->lx, r->raw->file, r->raw->line, "%s: \"%s\"", why, text);
    return -1;
}

/* address/bits */
static int read_cidr(struct line_read *r, const char *text, const char *slash)
{
    struct hba_line *l = r->line;
    const char *host = arena_strndup(r->lx->arena, text, (size_t)(slash - text));
    char *end;
    long bits = strtol(slash + 1, &end, 10);
    unsigned i;

    if (!read_ip(host, &l->addr))
        return bad_address(r, text, "specifying both host name and CIDR mask is invalid");
    if (slash[1] < '0' || slash[1] > '9' || *end != '\0' || bits < 0 || bits > 8L * l->addr.n)
        return bad_address(r, text, "invalid CIDR mask in address");
    for (i = 0; i < l->addr.n; i++, bits -= 8)
        l->mask[i] = bits >= 8 ? 0xff : bits <= 0 ? 0 : (uint8_t)(0xff << (8 - bits));
    l->addr_kind = HBA_ADDR_IP;
    return 0;
}

/* An address whose mask is the next field. */
static int read_mask(struct line_read *r)
{
    const struct hba_token *t;
    struct hba_addr mask;

    t = take_one(r, "netmask specification");
    if (t == NULL)
        return -1;
    if (!read_ip(t->text, &mask))
        return bad_address(r, t->text, "invalid IP mask");
    if (mask.n != r->line->addr.n)
        return bad_address(r, t->text, "IP address and mask do not match");
    memcpy(r->line->mask, mask.bytes, sizeof mask.bytes);
    r->line->addr_kind = HBA_ADDR_IP;
    return 0;
}

static int read_address(struct line_read *r)
{
    const struct hba_token *t = take_one(r, "IP address specification");
    const char *slash;

    if (t == NULL)
        return -1;
    r->line->addr_kind = HBA_ADDR_ALL;
    if (hba_token_is(t, "all"))
        return 0;
    r->line->addr_kind = HBA_ADDR_SAMEHOST;
    if (hba_token_is(t, "samehost"))
        return 0;
    r->line->addr_kind = HBA_ADDR_SAMENET;
    if (hba_token_is(t, "samenet"))
        return 0;
    slash = strchr(t->text, '/');
    if (slash != NULL)
        return read_cidr(r, t->text, slash);
    if (read_ip(t->text, &r->line->addr))
        return read_mask(r);
    if (t->n == 0 || strpbrk(t->text, ": \t") != NULL)
        return bad_address(r, t->text, "invalid IP address or host name");
    r->line->addr_kind = HBA_ADDR_NAME;
    r->line->host = t->text;
    return 0;
}

static int method_missing(struct line_read *r, const char *name, const char *why)
{
    hba_complain(
        r->lx, r->raw->file, r->raw->line, "invalid authentication method \"%s\": %s", name, why);
    return -1;
}

static int read_method(struct line_read *r)
{
    const struct hba_token *t = take_one(r, "authentication method");
    struct hba_rule *rule = &r->line->rule;
    const char *name;
    size_t i;

    if (t == NULL)
        return -1;
    /* PostgreSQL means peer where it reads ident on a Unix socket. */
    name = rule->conn == HBA_CONN_LOCAL && strcmp(t->text, "ident") == 0 ? "peer" : t->text;
    for (i = 0; i < COUNT(method_names); i++)
        if (strcmp(name, method_names[i]) == 0)
            break;
    if (i == COUNT(method_names)) {
        for (i = 0; i < COUNT(foreign_methods); i++)
            if (strcmp(name, foreign_methods[i]) == 0)
                return method_missing(r, name, "not supported by pgpool");
        if (strcmp(name, "ident") == 0)
            return method_missing(r, name, "supported on local lines only, as peer");
        return method_missing(r, name, "no such method");
    }
    rule->method = (enum hba_method)i;
    /* Without TLS there is no OpenSSL, and no digest either. */
    if ((rule->method == HBA_PAM && (r->lx->flags & HBA_WITH_PAM) == 0) ||
        ((rule->method == HBA_MD5 || rule->method == HBA_SCRAM) &&
            (r->lx->flags & HBA_WITH_TLS) == 0) ||
        (rule->method == HBA_LDAP && (r->lx->flags & HBA_WITH_LDAP) == 0))
        return method_missing(r, name, "not supported by this build");
    if (rule->method == HBA_PEER && rule->conn != HBA_CONN_LOCAL)
        return method_missing(r, name, "peer authentication is only supported on local sockets");
    if (rule->method == HBA_CERT && rule->conn != HBA_CONN_HOSTSSL)
        return method_missing(
            r, name, "cert authentication is only supported on hostssl connections");
    return 0;
}

struct hba_line *hba_line_read(struct hba_lex *lx, const struct hba_raw *raw)
{
    struct hba_line *l = arena_alloc_zero(lx->arena, sizeof *l);
    struct line_read r = {.lx = lx, .raw = raw, .line = l};

    l->rule.file = raw->file;
    l->rule.line = raw->line;
    if (read_conn(&r) == -1 || read_names(&r, "database specification", &l->databases) == -1 ||
        read_names(&r, "role specification", &l->users) == -1)
        return NULL;
    if (l->rule.conn != HBA_CONN_LOCAL && read_address(&r) == -1)
        return NULL;
    if (read_method(&r) == -1 || hba_opts_read(lx, raw, r.at, &l->rule) == -1)
        return NULL;
    return l;
}
