/* SPDX-License-Identifier: PostgreSQL
 * login_auth.c: what a worker needs for authentication: the rules, the book of users, the guard,
 * threads; read again at a reload, and pool_passwd when it changes.
 * Runs in: workers. Must never: go on with half of a file: a broken one leaves the old rules, and
 * without any old ones nobody is let in. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "auth/auth_helper.h"
#include "auth/passwd.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "crypto/crypto.h"
#include "ipc/proc.h"
#include "login/login_auth.h"

#include "client_auth_int.h"

#define PASSWD_LOOK_US 1000000

static void report_rule(const char *file, unsigned line, const char *text, void *ctx)
{
    const bool *speaks = ctx;

    if (*speaks) /* the file as a whole has no line */
        log_at(LVL_LOG, "%s:%.0u%s%s", file, line, line == 0 ? " " : ": ", text);
}

/* All workers find the same: the first one says it. */
static bool is_speaker(const struct login_auth *sa)
{
    return sa->worker.env->ordinal == 0;
}

struct auth_rules *auth_rules_ref(struct auth_rules *r)
{
    if (r != NULL)
        atomic_fetch_add(&r->refs, 1);
    return r;
}

void auth_rules_unref(struct auth_rules **rp)
{
    struct auth_rules *r = *rp;

    *rp = NULL;
    if (r == NULL || atomic_fetch_sub(&r->refs, 1) > 1)
        return;
    hba_free(&r->hba);
    ident_free(&r->ident);
    mem_free(r);
}

unsigned login_hba_flags(void)
{
    unsigned flags = crypto_is_built() ? HBA_WITH_TLS : 0;

    if (auth_pam_is_built())
        flags |= HBA_WITH_PAM;
    if (auth_ldap_is_built())
        flags |= HBA_WITH_LDAP;
    return flags;
}

int login_hba_path(
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

static struct ident *load_ident(struct login_auth *sa, bool *failed)
{
    bool speaks = is_speaker(sa) || sa->rules == NULL;
    char path[PROC_PATH_BYTES];
    struct err err = {0};
    struct ident *id;

    *failed = false;
    if (conf_path(sa->gen, "pg_ident.conf", path, sizeof path, &err) == -1 ||
        (access(path, F_OK) == -1 && errno == ENOENT))
        return NULL;
    id = ident_load(path, 0, report_rule, &speaks);
    *failed = id == NULL;
    return id;
}

/* Says that the rules were not loaded. Of workers that go on with the old ones only one speaks; one
 * without rules concerns its clients alone. */
static void say_not_loaded(struct login_auth *sa, const char *path)
{
    static const char hint[] = "Correct what the lines before name (pgpool --check-config shows it "
                               "again), and reload.";

    if (sa->rules == NULL)
        log_at_detail(LVL_WARNING, NULL, hint,
            "%s could not be loaded: no client is let in by this process", path);
    else if (is_speaker(sa))
        log_at_detail(LVL_WARNING, NULL, hint,
            "%s could not be loaded: the rules that were loaded before stay in use", path);
}

static void load_rules(struct login_auth *sa)
{
    bool speaks = is_speaker(sa) || sa->rules == NULL;
    struct auth_rules *fresh;
    char path[PROC_PATH_BYTES];
    bool ident_failed;

    if (!sa->be->conf->enable_pool_hba)
        return;
    fresh = mem_alloc_zero(sizeof *fresh);
    fresh->refs = 1;
    if (login_hba_path(sa->gen, sa->worker.env->paths, path, sizeof path) == 0)
        fresh->hba = hba_load(path, login_hba_flags(), report_rule, &speaks);
    fresh->ident = load_ident(sa, &ident_failed);
    if (fresh->hba != NULL && !ident_failed) {
        auth_rules_unref(&sa->rules);
        sa->rules = fresh;
        return;
    }
    say_not_loaded(sa, ident_failed ? "pg_ident.conf" : path);
    auth_rules_unref(&fresh);
}

static void look_at_passwd(struct login_auth *sa)
{
    char path[PROC_PATH_BYTES] = "";
    struct err err = {0};
    const char *name = sa->be->conf->pool_passwd;

    sa->passwd_us = loop_now_us(sa->be->loop);
    if (*name != '\0' && conf_path(sa->gen, name, path, sizeof path, &err) == -1)
        path[0] = '\0';
    if (auth_book_load_passwd(sa->book, path, sa->key_path, is_speaker(sa))) {
        login_auth_forget_tried(sa);
        login_auth_open_ahead(sa);
    }
}

void login_auth_look(struct login_auth *sa)
{
    if (loop_now_us(sa->be->loop) - sa->passwd_us >= PASSWD_LOOK_US)
        look_at_passwd(sa);
}

void login_auth_reload(struct login_auth *sa, const struct conf_gen *gen)
{
    sa->gen = gen;
    load_rules(sa);
    look_at_passwd(sa);
    login_auth_forget_tried(sa);
    sa->use_fallback = false;
    sa->fallback_targets = 0;
    sa->learn_after_us = 0;
}

struct login_auth *login_auth_new(const struct login_worker *worker, const struct conf_gen *gen)
{
    struct login_auth *sa = mem_alloc_zero(sizeof *sa);
    const struct proc_paths *paths = worker->env->paths;

    sa->worker = *worker;
    sa->be = worker->be;
    sa->book = worker->be->book;
    sa->guard = shm_get(worker->env->shm, SHM_AUTH);
    sa->jobs = worker->be->jobs;
    hash_table_init(&sa->roles);
    list_init(&sa->role_lru);
    list_init(&sa->probers);
    list_init(&sa->owing);
    list_init(&sa->learners);
    sa->key_path = passwd_key_path(paths->key[0] != '\0' ? paths->key : NULL);
    login_auth_reload(sa, gen);
    return sa;
}

void login_auth_free(struct login_auth **sap)
{
    struct login_auth *sa = *sap;

    if (sa == NULL)
        return;
    login_learners_close(sa);
    auth_probers_close(sa);
    job_leave(&sa->opener);
    login_auth_forget_tried(sa);
    prep_unref(&sa->last_lookup);
    login_roles_clear(sa);
    hash_table_fini(&sa->roles);
    auth_rules_unref(&sa->rules);
    mem_free(sa->key_path);
    buf_free(&sa->failed_key);
    mem_free(sa);
    *sap = NULL;
}
