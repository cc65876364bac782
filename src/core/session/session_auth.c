/* SPDX-License-Identifier: PostgreSQL
 * session_auth.c: what a worker needs for authentication: the rules, the book of users, the guard,
 * threads; read again at a reload, and pool_passwd when it changes.
 * Runs in: workers. Must never: go on with half of a file: a broken one leaves the old rules, and
 * without any old ones nobody is let in. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "auth/auth_helper.h"
#include "auth/passwd.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "crypto/crypto.h"
#include "session/session_auth.h"

#include "client_auth_int.h"

#define PASSWD_LOOK_US 1000000
/* At least this long sr_check_user is believed about a role that may log in, or may not. */
#define LOGIN_BELIEVED_MS 1000
#define ROLE_ANSWERS      4096

struct role_answer {
    struct hash_node node;
    struct list lru;
    int64_t at_us;
    bool is_member;
    uint32_t key_len;
    char key[]; /* user NUL role */
};

static void report_rule(const char *file, unsigned line, const char *text, void *ctx)
{
    const bool *speaks = ctx;

    if (*speaks)
        log_at(LVL_LOG, "%s:%u: %s", file, line, text);
}

/* All workers find the same: the first one says it. */
static bool is_speaker(const struct session_auth *sa)
{
    return sa->ss->env->ordinal == 0;
}

void auth_rules_unref(struct auth_rules **rp)
{
    struct auth_rules *r = *rp;

    *rp = NULL;
    if (r == NULL || --r->refs > 0)
        return;
    hba_free(&r->hba);
    ident_free(&r->ident);
    mem_free(r);
}

unsigned session_hba_flags(void)
{
    unsigned flags = crypto_is_built() ? HBA_WITH_TLS : 0;

    if (auth_pam_is_built())
        flags |= HBA_WITH_PAM;
    if (auth_ldap_is_built())
        flags |= HBA_WITH_LDAP;
    return flags;
}

int session_hba_path(
    const struct conf_gen *gen, const struct proc_paths *paths, char *out, size_t size)
{
    struct err err = {0};

    if (paths->hba[0] != '\0') {
        if (strlen(paths->hba) >= size)
            return -1;
        memcpy(out, paths->hba, strlen(paths->hba) + 1);
        return 0;
    }
    return conf_path(gen, "pool_hba.conf", out, size, &err);
}

static struct ident *load_ident(struct session_auth *sa, bool *failed)
{
    bool speaks = is_speaker(sa);
    char path[PROC_PATH_BYTES];
    struct err err = {0};
    struct ident *id;

    *failed = false;
    if (conf_path(sa->ss->gen, "pg_ident.conf", path, sizeof path, &err) == -1 ||
        (access(path, F_OK) == -1 && errno == ENOENT))
        return NULL;
    id = ident_load(path, 0, report_rule, &speaks);
    *failed = id == NULL;
    return id;
}

static void load_rules(struct session_auth *sa)
{
    bool speaks = is_speaker(sa);
    struct auth_rules *fresh;
    char path[PROC_PATH_BYTES];
    bool ident_failed;

    if (!sa->ss->conf->enable_pool_hba)
        return;
    fresh = mem_alloc_zero(sizeof *fresh);
    fresh->refs = 1;
    if (session_hba_path(sa->ss->gen, sa->ss->env->paths, path, sizeof path) == 0)
        fresh->hba = hba_load(path, session_hba_flags(), report_rule, &speaks);
    fresh->ident = load_ident(sa, &ident_failed);
    if (fresh->hba != NULL && !ident_failed) {
        auth_rules_unref(&sa->rules);
        sa->rules = fresh;
        return;
    }
    if (speaks)
        log_at(LVL_LOG, "%s could not be loaded: %s", ident_failed ? "pg_ident.conf" : path,
            sa->rules != NULL ? "the rules that were loaded before stay in use"
                              : "no client is let in");
    auth_rules_unref(&fresh);
}

static void look_at_passwd(struct session_auth *sa)
{
    char path[PROC_PATH_BYTES] = "";
    struct err err = {0};
    const char *name = sa->ss->conf->pool_passwd;

    sa->passwd_us = loop_now_us(sa->ss->loop);
    if (*name != '\0' && conf_path(sa->ss->gen, name, path, sizeof path, &err) == -1)
        path[0] = '\0';
    if (auth_book_load_passwd(sa->book, path, sa->key_path, is_speaker(sa))) {
        sa->file_judges = session_auth_file_judges(sa->ss->conf, auth_book_passwd(sa->book));
        session_auth_forget_seen(sa);
        session_auth_open_ahead(sa);
    }
}

void session_auth_look(struct session_auth *sa)
{
    if (loop_now_us(sa->ss->loop) - sa->passwd_us >= PASSWD_LOOK_US)
        look_at_passwd(sa);
}

void session_auth_reload(struct session_auth *sa)
{
    load_rules(sa);
    look_at_passwd(sa);
    sa->file_judges = session_auth_file_judges(sa->ss->conf, auth_book_passwd(sa->book));
    session_auth_forget_asked(sa);
    sa->use_fallback = false;
    sa->fallback_targets = 0;
}

struct session_auth *session_auth_new(struct sessions *ss)
{
    struct session_auth *sa = mem_alloc_zero(sizeof *sa);

    sa->ss = ss;
    sa->book = ss->be.book;
    sa->guard = shm_get(ss->env->shm, SHM_AUTH);
    sa->jobs = ss->be.jobs;
    hash_table_init(&sa->roles);
    list_init(&sa->role_lru);
    list_init(&sa->probers);
    sa->key_path = passwd_key_path(ss->env->paths->key[0] != '\0' ? ss->env->paths->key : NULL);
    session_auth_reload(sa);
    return sa;
}

static void roles_clear(struct session_auth *sa)
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

void session_auth_forget_roles(struct session_auth *sa)
{
    roles_clear(sa);
    session_auth_forget_asked(sa);
}

void session_auth_free(struct session_auth **sap)
{
    struct session_auth *sa = *sap;

    if (sa == NULL)
        return;
    auth_probers_close(sa);
    job_leave(&sa->opener);
    session_auth_forget_seen(sa);
    session_auth_forget_asked(sa);
    prep_unref(&sa->last_lookup);
    roles_clear(sa);
    hash_table_fini(&sa->roles);
    auth_rules_unref(&sa->rules);
    mem_free(sa->key_path);
    buf_free(&sa->failed_key);
    mem_free(sa);
    *sap = NULL;
}

static int role_eq(const struct hash_node *node, const void *key)
{
    const struct role_answer *r = LIST_ENTRY(node, struct role_answer, node);

    return slice_eq(slice_of(r->key, r->key_len), buf_slice(key));
}

static struct role_answer *role_find(
    struct session_auth *sa, struct slice user, struct slice role, struct buf *key)
{
    struct hash_node *n;

    buf_put(key, user.p, user.n);
    buf_put_byte(key, '\0');
    buf_put(key, role.p, role.n);
    n = hash_table_find(&sa->roles, hash_bytes(key->data, key->len, 0), role_eq, key);
    return n == NULL ? NULL : LIST_ENTRY(n, struct role_answer, node);
}

/* Whether a role may log in is a question for each login: without auth_user, who is there to be
 * asked at each login, sr_check_user is asked once a second at most. Groups matter where
 * pool_hba.conf names them only. */
static int64_t role_believed_us(const struct session_auth *sa, struct slice role)
{
    int64_t ms = sa->ss->conf->auth_query_expire_ms;
    bool is_spared =
        *sa->ss->conf->auth_user == '\0' &&
        (slice_eq_str(role, AUTH_ROLE_CAN_LOGIN) || slice_eq_str(role, AUTH_ROLE_IS_VALID));

    return (is_spared && ms < LOGIN_BELIEVED_MS ? LOGIN_BELIEVED_MS : ms) * 1000;
}

enum hba_answer session_auth_role(struct session_auth *sa, struct slice user, struct slice role)
{
    struct buf key = {0};
    struct role_answer *r = role_find(sa, user, role, &key);
    int64_t now_us = loop_now_us(sa->ss->loop);

    buf_free(&key);
    if (r == NULL || now_us - r->at_us > role_believed_us(sa, role))
        return HBA_ASK;
    return r->is_member ? HBA_YES : HBA_NO;
}

void session_auth_put_role(
    struct session_auth *sa, struct slice user, struct slice role, bool is_member)
{
    struct buf key = {0};
    struct role_answer *r = role_find(sa, user, role, &key);

    if (r == NULL) {
        if (sa->roles.count >= ROLE_ANSWERS)
            roles_clear(sa);
        r = mem_alloc_zero(sizeof *r + key.len);
        r->key_len = key.len;
        memcpy(r->key, key.data, key.len);
        list_init(&r->lru);
        list_push_back(&sa->role_lru, &r->lru);
        hash_table_add(&sa->roles, &r->node, hash_bytes(key.data, key.len, 0));
    }
    r->at_us = loop_now_us(sa->ss->loop);
    r->is_member = is_member;
    buf_free(&key);
}
