/* SPDX-License-Identifier: PostgreSQL
 * hba_match.c: which line of pool_hba.conf a connection falls under. Walks the lines in order and
 * stops at the first that is not a clear no. */
#include "config.h"

#include "auth/hba.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "hba_int.h"

struct hba_addr hba_addr_of(const struct sockaddr *sa)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct hba_addr a = {0};
    const struct sockaddr_in6 *six = (const void *)sa;

    if (sa->sa_family == AF_INET) {
        a.n = 4;
        memcpy(a.bytes, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        a.n = 16;
        memcpy(a.bytes, &six->sin6_addr, 16);
        if (memcmp(a.bytes, mapped, sizeof mapped) == 0) {
            memmove(a.bytes, a.bytes + 12, 4);
            memset(a.bytes + 4, 0, 12);
            a.n = 4;
        }
    }
    return a;
}

static bool in_net(const struct hba_addr *a, const struct hba_addr *net, const uint8_t *mask)
{
    unsigned i;

    if (a->n != net->n)
        return false;
    for (i = 0; i < a->n; i++)
        if (((a->bytes[i] ^ net->bytes[i]) & mask[i]) != 0)
            return false;
    return true;
}

enum hba_answer hba_ask_interfaces(void *ctx, const struct hba_addr *addr, bool net)
{
    struct ifaddrs *all = NULL;
    struct ifaddrs *i;
    struct hba_addr own;
    struct hba_addr mask;
    enum hba_answer found = HBA_NO;

    if (getifaddrs(&all) == -1)
        return HBA_FAIL;
    for (i = all; i != NULL && found == HBA_NO; i = i->ifa_next) {
        if (i->ifa_addr == NULL || i->ifa_netmask == NULL)
            continue;
        own = hba_addr_of(i->ifa_addr);
        mask = hba_addr_of(i->ifa_netmask);
        if (own.n == 0 || (net && mask.n != own.n))
            continue;
        if (!net)
            memset(mask.bytes, 0xff, sizeof mask.bytes);
        if (in_net(addr, &own, mask.bytes))
            found = HBA_YES;
    }
    freeifaddrs(all);
    return found;
}

static enum hba_answer yes_if(bool b)
{
    return b ? HBA_YES : HBA_NO;
}

static enum hba_answer ask_role(
    const struct hba_oracle *o, struct slice user, struct slice role, struct err *err)
{
    enum hba_answer a = o == NULL || o->in_role == NULL ? HBA_FAIL : o->in_role(o->ctx, user, role);

    if (a == HBA_FAIL) {
        err_set_fatal(err, "28000", "could not find out whether user \"%.*s\" is in role \"%.*s\"",
            (int)user.n, user.p, (int)role.n, role.p);
        err_hint(
            err, "SHOW POOL_NODES: the server is asked for roles; auth_user may have to be set.");
    }
    return a;
}

static enum hba_answer user_matches(const struct hba_query *q, const struct hba_token *t,
    const struct hba_oracle *o, struct err *err)
{
    if (t->regex != NULL)
        return hba_regex_matches(t->regex, q->user, err);
    if (hba_token_is(t, "all"))
        return HBA_YES;
    if (!t->quoted && t->n > 1 && t->text[0] == '+')
        return ask_role(o, q->user, slice_of(t->text + 1, t->n - 1), err);
    return yes_if(slice_eq(q->user, hba_token_slice(t)));
}

static enum hba_answer database_matches(const struct hba_query *q, const struct hba_token *t,
    const struct hba_oracle *o, struct err *err)
{
    /* Physical replication has no database: only its keyword matches. */
    if (q->replication || hba_token_is(t, "replication"))
        return yes_if(q->replication && hba_token_is(t, "replication"));
    if (t->regex != NULL)
        return hba_regex_matches(t->regex, q->database, err);
    if (hba_token_is(t, "all"))
        return HBA_YES;
    if (hba_token_is(t, "sameuser"))
        return yes_if(slice_eq(q->user, q->database));
    if (hba_token_is(t, "samerole") || hba_token_is(t, "samegroup"))
        return ask_role(o, q->user, q->database, err);
    return yes_if(slice_eq(q->database, hba_token_slice(t)));
}

static enum hba_answer conn_matches(const struct hba_line *l, const struct hba_query *q)
{
    bool local = q->addr.n == 0;

    switch (l->rule.conn) {
    case HBA_CONN_LOCAL:
        return yes_if(local);
    case HBA_CONN_HOST:
    case HBA_CONN_HOSTNOGSSENC: /* we never encrypt by GSSAPI */
        return yes_if(!local);
    case HBA_CONN_HOSTSSL:
        return yes_if(!local && q->tls);
    case HBA_CONN_HOSTNOSSL:
        return yes_if(!local && !q->tls);
    case HBA_CONN_HOSTGSSENC:
        break;
    }
    return HBA_NO;
}

static enum hba_answer address_matches(const struct hba_line *l, const struct hba_query *q,
    const struct hba_oracle *o, struct err *err)
{
    enum hba_answer a = HBA_FAIL;

    if (l->rule.conn == HBA_CONN_LOCAL || l->addr_kind == HBA_ADDR_ALL)
        return HBA_YES;
    if (l->addr_kind == HBA_ADDR_IP)
        return yes_if(in_net(&q->addr, &l->addr, l->mask));
    if (l->addr_kind == HBA_ADDR_NAME) {
        if (o != NULL && o->has_host != NULL)
            a = o->has_host(o->ctx, &q->addr, l->host);
    } else if (o != NULL && o->is_same != NULL) {
        a = o->is_same(o->ctx, &q->addr, l->addr_kind == HBA_ADDR_SAMENET);
    }
    if (a == HBA_FAIL)
        err_set_fatal(err, "28000", "could not find out whether the client's address belongs to %s",
            l->host != NULL ? l->host : "this machine");
    return a;
}

typedef enum hba_answer token_fn(const struct hba_query *q, const struct hba_token *t,
    const struct hba_oracle *o, struct err *err);

/* YES when any token says so; else the strongest doubt: a doubt must not be passed over. */
static enum hba_answer any_matches(const struct hba_field *f, token_fn *fn,
    const struct hba_query *q, const struct hba_oracle *o, struct err *err)
{
    enum hba_answer worst = HBA_NO;
    enum hba_answer a;
    struct err own = {0};
    unsigned i;

    for (i = 0; i < f->n; i++) {
        a = fn(q, &f->token[i], o, &own);
        if (a == HBA_YES)
            return HBA_YES;
        if (a > worst)
            worst = a;
    }
    if (worst == HBA_FAIL && err != NULL && !err_is_set(err))
        *err = own;
    return worst;
}

static enum hba_answer line_matches(const struct hba_line *l, const struct hba_query *q,
    const struct hba_oracle *o, struct err *err)
{
    enum hba_answer part[4];
    enum hba_answer worst = HBA_YES;
    struct err own = {0};
    int i;

    /* All parts are looked at before a doubt counts: a clear no makes the doubt unimportant. */
    part[0] = conn_matches(l, q);
    if (part[0] == HBA_NO)
        return HBA_NO;
    part[1] = any_matches(&l->databases, database_matches, q, o, &own);
    if (part[1] == HBA_NO)
        return HBA_NO;
    part[2] = any_matches(&l->users, user_matches, q, o, &own);
    if (part[2] == HBA_NO)
        return HBA_NO;
    part[3] = address_matches(l, q, o, &own);
    if (part[3] == HBA_NO)
        return HBA_NO;
    for (i = 0; i < 4; i++)
        if (part[i] > worst)
            worst = part[i];
    if (worst == HBA_FAIL && err != NULL && !err_is_set(err))
        *err = own;
    return worst;
}

static void nobody(const struct hba_query *q, struct err *err)
{
    char text[INET6_ADDRSTRLEN] = "[local]";
    const char *host = text;

    if (q->host != NULL)
        host = q->host;
    else if (q->addr.n != 0)
        inet_ntop(q->addr.n == 4 ? AF_INET : AF_INET6, q->addr.bytes, text, sizeof text);
    err_set_fatal(err, "28000", "client authentication failed");
    err_detail(err, "no pool_hba.conf entry for host \"%s\", user \"%.*s\", database \"%.*s\", %s",
        host, (int)q->user.n, q->user.p, (int)q->database.n, q->database.p,
        q->tls ? "SSL on" : "SSL off");
}

enum hba_verdict hba_match(const struct hba *h, const struct hba_query *q,
    const struct hba_oracle *oracle, const struct hba_rule **rule, struct err *err)
{
    const struct hba_line *l;

    *rule = NULL;
    for (l = h->first; l != NULL; l = l->next) {
        switch (line_matches(l, q, oracle, err)) {
        case HBA_NO:
            continue;
        case HBA_YES:
            *rule = &l->rule;
            return HBA_MATCHED;
        case HBA_ASK:
            return HBA_PENDING;
        case HBA_FAIL:
            return HBA_REFUSED;
        }
    }
    nobody(q, err);
    return HBA_NOBODY;
}
