/* SPDX-License-Identifier: PostgreSQL
 * login_roles.c: answers about memberships and about who may log in, kept for a while. Runs in:
 * workers. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "config/conf.h"
#include "login/login_auth.h"

#include "client_auth_int.h"

/* At least this long sr_check_user is believed about a role that may log in, or may not. */
#define LOGIN_BELIEVED_MS 1000
/* How long a role that was not to log in stays out while nobody can be asked about it. */
#define LAST_TOLD_US INT64_C(600000000)
#define ROLE_ANSWERS 4096

struct role_answer {
    struct hash_node node;
    struct list lru;
    int64_t at_us;
    enum auth_told told;
    uint32_t key_len;
    char key[]; /* enum auth_lookup_kind, user NUL role */
};

void login_roles_clear(struct login_auth *sa)
{
    struct role_answer *r;
    struct list *n;

    while ((n = list_first(&sa->role_lru)) != NULL) {
        r = LIST_ENTRY(n, struct role_answer, lru);
        list_remove(&r->lru);
        hash_table_del(&sa->roles, &r->node);
        mem_free(r);
    }
}

static int role_eq(const struct hash_node *node, const void *key)
{
    const struct role_answer *r = LIST_ENTRY(node, struct role_answer, node);

    return slice_eq(slice_of(r->key, r->key_len), buf_slice(key));
}

static struct role_answer *role_find(struct login_auth *sa, enum auth_lookup_kind kind,
    struct slice user, struct slice role, struct buf *key)
{
    struct hash_node *n;

    buf_put_byte(key, (char)kind);
    buf_put(key, user.p, user.n);
    buf_put_byte(key, '\0');
    buf_put(key, role.p, role.n);
    n = hash_table_find(&sa->roles, hash_bytes(key->data, key->len, 0), role_eq, key);
    return n == NULL ? NULL : LIST_ENTRY(n, struct role_answer, node);
}

/* Whether a role may log in is a question for each login: without auth_user, who is there to be
 * asked at each login, sr_check_user is asked once a second at most. Groups matter where
 * pool_hba.conf names them only. */
static int64_t role_believed_us(const struct login_auth *sa, enum auth_lookup_kind kind)
{
    int64_t ms = sa->be->conf->auth_query_expire_ms;
    bool is_spared =
        kind == AUTH_LOOKUP_KEYS || (kind == AUTH_LOOKUP_LOGIN && *sa->be->conf->auth_user == '\0');

    return (is_spared && ms < LOGIN_BELIEVED_MS ? LOGIN_BELIEVED_MS : ms) * 1000;
}

enum auth_told login_auth_told(
    struct login_auth *sa, enum auth_lookup_kind kind, struct slice user, struct slice role)
{
    struct buf key = {0};
    const struct role_answer *r = role_find(sa, kind, user, role, &key);

    buf_free(&key);
    if (r == NULL || loop_now_us(sa->be->loop) - r->at_us > role_believed_us(sa, kind))
        return AUTH_TOLD_NOTHING;
    return r->told;
}

enum auth_told login_auth_last_told(struct login_auth *sa, struct slice user)
{
    struct buf key = {0};
    const struct role_answer *r = role_find(sa, AUTH_LOOKUP_LOGIN, user, slice_of("", 0), &key);

    buf_free(&key);
    if (r == NULL || loop_now_us(sa->be->loop) - r->at_us >= LAST_TOLD_US)
        return AUTH_TOLD_NOTHING;
    return r->told;
}

void login_auth_put_told(struct login_auth *sa, enum auth_lookup_kind kind, struct slice user,
    struct slice role, enum auth_told told)
{
    struct buf key = {0};
    struct role_answer *r = role_find(sa, kind, user, role, &key);

    if (r == NULL) {
        if (sa->roles.count >= ROLE_ANSWERS)
            login_roles_clear(sa);
        r = mem_alloc_zero(sizeof *r + key.len);
        r->key_len = key.len;
        memcpy(r->key, key.data, key.len);
        list_init(&r->lru);
        list_push_back(&sa->role_lru, &r->lru);
        hash_table_add(&sa->roles, &r->node, hash_bytes(key.data, key.len, 0));
    }
    r->at_us = loop_now_us(sa->be->loop);
    r->told = told;
    buf_free(&key);
}

void login_auth_forget_roles(struct login_auth *sa)
{
    login_roles_clear(sa);
    login_auth_forget_tried(sa);
}
