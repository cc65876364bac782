/* SPDX-License-Identifier: PostgreSQL
 * auth_book.c: a table of users with what is known about each.
 * Runs in: workers. Must never: hand what was learned from one user to another; keep more users
 * than its limit, for clients choose the names. */
#include "config.h"

#include "auth/auth_book.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "auth/passwd.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "crypto/cipher.h"

#include "auth_held.h"

/* How many users that may not go are passed over for one place. */
#define AUTH_BOOK_TRIES 16

enum answer_state {
    ANSWER_NONE, /* never asked for */
    ANSWER_VOID, /* a server has refused what it was good for */
    ANSWER_USED
};

/* A value of pool_passwd, decrypted: once, not at each reading of the file. */
struct opened {
    bool is_done;
    enum passwd_kind kind; /* what it was made of */
    struct secret of;
    uint64_t key_gen;
    struct cred cred;
};

struct auth_opening {
    struct opened value[2]; /* the user's and the servers' */
    bool is_wanted[2];
    unsigned nidle; /* so many more cost the same and give nothing */
    struct err err[2];
    struct secret key;
};

struct auth_user {
    struct hash_node node;
    struct list lru; /* one of the book's two, most recently used last */
    bool is_proved;  /* somebody showed a secret for it, or pool_passwd has it */
    bool is_known;   /* by `answer` */
    bool has_derived;
    enum answer_state answer_state;
    int64_t answer_us;             /* INT64_MIN: it is in doubt */
    struct buf answer_db;          /* which told `answer`, and is believed for itself alone */
    struct cred answer;            /* of auth_query */
    struct opened opened;          /* of pool_passwd */
    struct opened server;          /* of pool_passwd for server_user */
    struct scram_verifier derived; /* from the plain password `derived_of` */
    struct secret derived_of;
    struct auth_login learned;
    struct auth_login merged; /* what auth_book_login gives out */
    uint32_t name_len;
    char name[];
};

struct auth_book {
    struct hash_table users;
    struct list proved;
    struct list unproved; /* names that clients only said: they push out nobody but each other */
    uint32_t nunproved;
    struct auth_held held;
    struct passwd_table *passwd;
    struct secret key;
    struct stat key_st;
    bool has_key;
    bool told_missing;
    char *path;
    uint64_t key_gen;
};

static void opened_free(struct opened *o)
{
    secret_free(&o->of);
    cred_free(&o->cred);
    o->is_done = false;
}

static void login_wipe(struct auth_login *l)
{
    secret_free(&l->password);
    mem_wipe(l, sizeof *l);
}

static int user_eq(const struct hash_node *node, const void *key)
{
    const struct auth_user *u = LIST_ENTRY(node, struct auth_user, node);
    const struct slice *name = key;

    return slice_eq(slice_of(u->name, u->name_len), *name);
}

static struct auth_user *user_find(struct auth_book *b, struct slice name)
{
    uint64_t hash = hash_bytes(name.p, name.n, 0);
    struct hash_node *n = hash_table_find(&b->users, hash, user_eq, &name);
    struct auth_user *u;

    if (n == NULL)
        return NULL;
    u = LIST_ENTRY(n, struct auth_user, node);
    list_remove(&u->lru);
    list_push_back(u->is_proved ? &b->proved : &b->unproved, &u->lru);
    return u;
}

static void user_free(struct auth_book *b, struct auth_user *u)
{
    b->nunproved -= u->is_proved ? 0 : 1;
    hash_table_del(&b->users, &u->node);
    list_remove(&u->lru);
    cred_free(&u->answer);
    buf_free(&u->answer_db);
    opened_free(&u->opened);
    opened_free(&u->server);
    secret_free(&u->derived_of);
    login_wipe(&u->learned);
    login_wipe(&u->merged);
    mem_free_secret(u);
}

/* What took long to open is not forgotten for the names that clients think of: who has such an
 * entry would be seen by the time. What opens the servers of a user with pools is needed when the
 * next link is opened, and no client is asked for it again before that. */
static bool user_is_kept(const struct auth_book *b, const struct auth_user *u)
{
    struct slice name = slice_of(u->name, u->name_len);
    bool is_slow = (u->opened.is_done && u->opened.kind == PASSWD_GCM) ||
                   (u->server.is_done && u->server.kind == PASSWD_GCM);

    if (u->learned.hold != 0 && auth_held_has(&b->held, name))
        return true;
    return is_slow && b->passwd != NULL && passwd_find(b->passwd, name) != NULL;
}

/* Of those who may not go the table grows: there are no more of them than pools and entries of
 * pool_passwd. */
static void user_make_room(struct auth_book *b)
{
    unsigned tries = AUTH_BOOK_TRIES;
    struct auth_user *u;

    while (b->users.count - b->nunproved >= AUTH_BOOK_USERS && tries-- > 0) {
        u = LIST_ENTRY(list_first(&b->proved), struct auth_user, lru);
        list_remove(&u->lru);
        list_push_back(&b->proved, &u->lru);
        if (!user_is_kept(b, u))
            user_free(b, u);
    }
}

/* The name is no longer one that anybody may have thought of. */
static struct auth_user *user_prove(struct auth_book *b, struct auth_user *u)
{
    if (u->is_proved)
        return u;
    user_make_room(b);
    u->is_proved = true;
    b->nunproved--;
    list_remove(&u->lru);
    list_push_back(&b->proved, &u->lru);
    return u;
}

static struct auth_user *user_make(struct auth_book *b, struct slice name)
{
    struct auth_user *u = user_find(b, name);

    if (u != NULL)
        return u;
    while (b->nunproved >= AUTH_BOOK_UNPROVED)
        user_free(b, LIST_ENTRY(list_first(&b->unproved), struct auth_user, lru));
    u = mem_alloc_secret(sizeof *u + name.n + 1);
    u->name_len = (uint32_t)name.n;
    memcpy(u->name, name.p, name.n);
    list_init(&u->lru);
    list_push_back(&b->unproved, &u->lru);
    b->nunproved++;
    hash_table_add(&b->users, &u->node, hash_bytes(name.p, name.n, 0));
    return u;
}

void auth_book_hold(struct auth_book *b, struct slice user)
{
    auth_held_add(&b->held, user);
}

void auth_book_let_go(struct auth_book *b, struct slice user)
{
    auth_held_del(&b->held, user);
}

struct auth_book *auth_book_new(void)
{
    struct auth_book *b = mem_alloc_zero(sizeof *b);

    hash_table_init(&b->users);
    list_init(&b->proved);
    list_init(&b->unproved);
    auth_held_init(&b->held);
    return b;
}

void auth_book_free(struct auth_book **bp)
{
    struct auth_book *b = *bp;
    struct list *n;

    if (b == NULL)
        return;
    while ((n = list_first(&b->proved)) != NULL || (n = list_first(&b->unproved)) != NULL)
        user_free(b, LIST_ENTRY(n, struct auth_user, lru));
    hash_table_fini(&b->users);
    auth_held_fini(&b->held);
    passwd_free(&b->passwd);
    secret_free(&b->key);
    mem_free(b->path);
    mem_free(b);
    *bp = NULL;
}

static void report_line(const char *file, unsigned line, const struct err *problem, void *ctx)
{
    const bool *speaks = ctx;

    if (*speaks)
        log_at_detail(problem->severity == ERR_WARNING ? LVL_WARNING : LVL_LOG,
            problem->detail[0] != '\0' ? problem->detail : NULL,
            problem->hint[0] != '\0' ? problem->hint : NULL, "%s:%u: %s", file, line, problem->msg);
}

/* The key is needed only when something is encrypted: its absence is no news until then. */
static bool load_key(struct auth_book *b, const char *key_path, bool speaks)
{
    struct err warn = {0};
    struct err err = {0};
    struct stat st;

    if (key_path == NULL || stat(key_path, &st) == -1)
        return false;
    if (b->has_key && st.st_mtim.tv_sec == b->key_st.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == b->key_st.st_mtim.tv_nsec && st.st_ino == b->key_st.st_ino)
        return false;
    if (passwd_key_load(key_path, &b->key, &warn, &err) == -1) {
        if (speaks)
            log_err(LVL_WARNING, &err);
        return false;
    }
    if (err_is_set(&warn) && speaks)
        log_err(LVL_WARNING, &warn);
    b->key_st = st;
    b->has_key = true;
    b->key_gen++;
    return true;
}

static bool load_table(struct auth_book *b, const char *path, bool speaks)
{
    struct err err = {0};
    struct err warn = {0};
    struct passwd_table *fresh = passwd_load(path, report_line, &speaks, &err);
    struct stat st;

    if (fresh == NULL) {
        if (speaks && !b->told_missing)
            log_err(LVL_WARNING, &err);
        b->told_missing = true;
        return false;
    }
    b->told_missing = false;
    if (speaks && stat(path, &st) == 0 && !passwd_mode_is_safe(path, &st, "pool_passwd", &warn))
        log_err(LVL_WARNING, &warn);
    if (speaks && b->passwd != NULL)
        log_at(LVL_LOG, "pool_passwd was read again: %u users", passwd_count(fresh));
    passwd_free(&b->passwd);
    b->passwd = fresh;
    return true;
}

bool auth_book_load_passwd(
    struct auth_book *b, const char *path, const char *key_path, bool is_speaker)
{
    struct stat st;
    bool is_new_name;
    bool is_new_key;
    bool had = b->passwd != NULL;

    if (path == NULL || *path == '\0') {
        passwd_free(&b->passwd);
        return had;
    }
    is_new_name = b->path == NULL || strcmp(b->path, path) != 0;
    if (is_new_name) {
        mem_free(b->path);
        b->path = mem_strdup(path);
        b->told_missing = false;
    }
    is_new_key = load_key(b, key_path, is_speaker);
    if (stat(path, &st) == -1) {
        if (is_speaker && !b->told_missing && errno != ENOENT)
            log_at_detail(LVL_WARNING, NULL,
                "The file and its folder have to be readable by the user that pgpool runs as.",
                "could not look at pool_passwd \"%s\": %s", path, strerror(errno));
        b->told_missing = true;
        if (errno == ENOENT)
            passwd_free(&b->passwd); /* the file was taken away: its entries are no more */
        return had && b->passwd == NULL;
    }
    if (is_new_name || b->passwd == NULL || passwd_is_changed(b->passwd, &st))
        return load_table(b, path, is_speaker) || is_new_key;
    return is_new_key;
}

static bool is_opened(
    const struct auth_book *b, const struct passwd_value *v, const struct opened *o)
{
    return o->is_done && o->key_gen == b->key_gen && o->kind == v->kind &&
           secret_equal(&o->of, v->text);
}

/* A value that does not open counts as no password: the user is refused like one with a wrong
 * password, and the log says why. */
static void open_now(struct opened *o, const struct secret *key, struct err *err)
{
    struct passwd_value v = {o->kind, secret_slice(&o->of)};

    cred_free(&o->cred);
    if (passwd_open_value(&v, key, &o->cred, err) == -1)
        cred_free(&o->cred);
    o->is_done = true;
}

static void say_unusable(struct slice user, const struct err *err)
{
    if (err_is_set(err))
        log_at_detail(LVL_WARNING, err->detail[0] != '\0' ? err->detail : NULL,
            err->hint[0] != '\0' ? err->hint : NULL,
            "the entry of user \"%.*s\" in pool_passwd cannot be used: %s", (int)user.n, user.p,
            err->msg);
}

static void opened_prepare(
    const struct auth_book *b, const struct passwd_value *v, struct opened *out)
{
    out->kind = v->kind;
    out->key_gen = b->key_gen;
    secret_set(&out->of, v->text);
}

static void open_value(
    struct auth_book *b, const struct passwd_value *v, struct slice user, struct opened *out)
{
    struct err err = {0};

    if (is_opened(b, v, out))
        return;
    opened_prepare(b, v, out);
    open_now(out, b->has_key ? &b->key : NULL, &err);
    say_unusable(user, &err);
}

/* pool_passwd does not know of servers: what stands before a NUL is the user. */
static struct slice plain_name(struct slice user)
{
    const char *end = user.n == 0 ? NULL : memchr(user.p, '\0', user.n);

    return end == NULL ? user : slice_of(user.p, (size_t)(end - user.p));
}

static const struct passwd_entry *user_open(
    struct auth_book *b, struct slice user, struct auth_user **up)
{
    const struct passwd_entry *e =
        b->passwd == NULL ? NULL : passwd_find(b->passwd, plain_name(user));
    struct auth_user *u;

    if (e == NULL)
        return NULL;
    u = user_prove(b, user_make(b, plain_name(user))); /* opened once for all servers */
    *up = u;
    open_value(b, &e->value, user, &u->opened);
    if (e->server_user.n > 0)
        open_value(b, &e->server_value, user, &u->server);
    else
        opened_free(&u->server);
    return e;
}

/* The one form whose key is made by many rounds. */
static bool is_slow(const struct auth_book *b, const struct passwd_value *v, const struct opened *o)
{
    return v->kind == PASSWD_GCM && b->has_key && !is_opened(b, v, o);
}

bool auth_book_next_closed(struct auth_book *b, size_t *at, struct slice *user)
{
    const struct passwd_entry *e = NULL;
    size_t i = 0;

    if (b->passwd == NULL)
        return false;
    while ((e = passwd_next(b->passwd, e)) != NULL) {
        if (i++ < *at || (e->value.kind != PASSWD_GCM && e->server_value.kind != PASSWD_GCM))
            continue;
        *at = i;
        *user = e->user;
        return true;
    }
    return false;
}

const struct passwd_table *auth_book_passwd(const struct auth_book *b)
{
    return b->passwd;
}

bool auth_book_has_readable(const struct auth_book *b)
{
    return b->passwd != NULL && passwd_readable_count(b->passwd) > 0;
}

unsigned auth_book_slow_values(const struct auth_book *b)
{
    const struct passwd_entry *e = NULL;
    unsigned most = 0;
    unsigned n;

    if (b->passwd == NULL || !b->has_key)
        return 0;
    while ((e = passwd_next(b->passwd, e)) != NULL) {
        n = (e->value.kind == PASSWD_GCM ? 1U : 0U) +
            (e->server_user.n > 0 && e->server_value.kind == PASSWD_GCM ? 1U : 0U);
        most = n > most ? n : most;
    }
    return most;
}

struct auth_opening *auth_book_begin_nothing(const struct auth_book *b)
{
    struct auth_opening *o = mem_alloc_secret(sizeof *o);

    secret_set(&o->key, secret_slice(&b->key));
    return o;
}

void auth_opening_make_last(struct auth_opening *o, unsigned nvalues)
{
    unsigned nwanted = (o->is_wanted[0] ? 1U : 0U) + (o->is_wanted[1] ? 1U : 0U);

    o->nidle = nvalues > nwanted ? nvalues - nwanted : 0;
}

struct auth_opening *auth_book_begin_opening(struct auth_book *b, struct slice user)
{
    const struct passwd_entry *e =
        b->passwd == NULL ? NULL : passwd_find(b->passwd, plain_name(user));
    struct auth_opening *o;
    struct auth_user *u;

    if (e == NULL || (e->value.kind != PASSWD_GCM && e->server_value.kind != PASSWD_GCM))
        return NULL;
    u = user_prove(b, user_make(b, user));
    o = mem_alloc_secret(sizeof *o);
    o->is_wanted[0] = is_slow(b, &e->value, &u->opened);
    o->is_wanted[1] = e->server_user.n > 0 && is_slow(b, &e->server_value, &u->server);
    if (!o->is_wanted[0] && !o->is_wanted[1]) {
        auth_opening_free(&o);
        return NULL;
    }
    opened_prepare(b, &e->value, &o->value[0]);
    opened_prepare(b, &e->server_value, &o->value[1]);
    secret_set(&o->key, secret_slice(&b->key));
    return o;
}

void auth_opening_work(struct auth_opening *o)
{
    static const char nothing[] = "nothing";
    struct buf text = {0};
    unsigned n;
    int i;

    for (i = 0; i < 2; i++)
        if (o->is_wanted[i])
            open_now(&o->value[i], &o->key, &o->err[i]);
    for (n = 0; n < o->nidle; n++)
        (void)cipher_gcm_encrypt(
            secret_slice(&o->key), slice_of(nothing, sizeof nothing), &text, NULL);
    buf_free(&text);
}

void auth_book_end_opening(struct auth_book *b, struct slice user, struct auth_opening *o)
{
    struct auth_user *u;
    struct opened *to;
    int i;

    if (!o->is_wanted[0] && !o->is_wanted[1])
        return;
    u = user_prove(b, user_make(b, user));
    for (i = 0; i < 2; i++) {
        to = i == 0 ? &u->opened : &u->server;
        if (!o->is_wanted[i] || !o->value[i].is_done)
            continue;
        say_unusable(user, &o->err[i]);
        opened_free(to);
        *to = o->value[i];
        memset(&o->value[i], 0, sizeof o->value[i]);
    }
}

void auth_opening_free(struct auth_opening **op)
{
    struct auth_opening *o = *op;

    *op = NULL;
    if (o == NULL)
        return;
    opened_free(&o->value[0]);
    opened_free(&o->value[1]);
    secret_free(&o->key);
    mem_free_secret(o);
}

bool auth_book_find_passwd(struct auth_book *b, struct slice user, struct auth_stored *out)
{
    struct auth_user *u = NULL;
    const struct passwd_entry *e = user_open(b, user, &u);

    memset(out, 0, sizeof *out);
    if (e == NULL)
        return false;
    out->source = AUTH_SOURCE_PASSWD;
    out->cred = &u->opened.cred;
    out->server_user = e->server_user;
    out->server_cred = &u->server.cred;
    return true;
}

bool auth_book_find_answer(struct auth_book *b, struct slice user, struct slice database,
    int64_t now_us, int64_t max_age_us, struct auth_stored *out)
{
    struct auth_user *u = user_find(b, user);

    memset(out, 0, sizeof *out);
    if (u == NULL || u->answer_state != ANSWER_USED ||
        !slice_eq(database, buf_slice(&u->answer_db)))
        return false;
    out->age_us = u->answer_us == INT64_MIN ? INT64_MAX : now_us - u->answer_us;
    if (out->age_us > max_age_us)
        return false;
    out->source = AUTH_SOURCE_QUERY;
    out->cred = &u->answer;
    out->is_known = u->is_known;
    return true;
}

static bool is_same_verifier(const struct scram_verifier *a, const struct scram_verifier *b)
{
    return a->iterations == b->iterations && a->salt_len == b->salt_len &&
           memcmp(a->salt, b->salt, a->salt_len) == 0 &&
           memcmp(a->stored_key, b->stored_key, sizeof a->stored_key) == 0;
}

static bool is_same_cred(const struct cred *a, const struct cred *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == CRED_SCRAM)
        return is_same_verifier(&a->verifier, &b->verifier);
    return secret_equal(&a->text, secret_slice(&b->text));
}

static bool is_in_passwd(const struct auth_book *b, struct slice user)
{
    return b->passwd != NULL && passwd_find(b->passwd, plain_name(user)) != NULL;
}

bool auth_book_put_answer(struct auth_book *b, struct slice user, struct slice database,
    bool is_known, struct slice secret, int64_t now_us)
{
    struct auth_user *u = user_make(b, user);
    struct cred fresh = {0};
    bool changed;
    bool fits;

    if (secret.p != NULL)
        cred_from_stored(secret, &fresh);
    /* What clients showed under an earlier password opens nothing any more. */
    fits = fresh.kind == CRED_SCRAM && is_same_verifier(&fresh.verifier, &u->learned.keys.verifier);
    if (fresh.kind == CRED_SCRAM && !fits && (u->learned.hold & AUTH_HOLD_KEYS) != 0)
        login_wipe(&u->learned);
    changed = u->answer_state != ANSWER_NONE && !is_same_cred(&fresh, &u->answer);
    /* A database's owner may say today what opens it for anybody: that does not go together with
     * what its users have shown there before. */
    if (!fits && fresh.kind != CRED_NONE && plain_name(user).n < user.n &&
        (changed || u->answer_state == ANSWER_NONE))
        login_wipe(&u->learned);
    /* Nobody who is out goes on opening servers; who is in pool_passwd alone was never in here. */
    if (fresh.kind == CRED_NONE && (is_known || changed || !is_in_passwd(b, user)))
        login_wipe(&u->learned);
    cred_free(&u->answer);
    u->answer = fresh;
    buf_clear(&u->answer_db);
    buf_put(&u->answer_db, database.p, database.n);
    u->answer_state = ANSWER_USED;
    u->is_known = is_known;
    u->answer_us = now_us;
    return changed;
}

void auth_book_drop_answer(struct auth_book *b, struct slice user)
{
    struct auth_user *u = user_find(b, user);

    if (u != NULL)
        u->answer_us = INT64_MIN;
}

bool auth_book_has_verifier(
    struct auth_book *b, struct slice user, const struct cred *cred, uint32_t iterations)
{
    const struct auth_user *u = user_find(b, user);

    return u != NULL && u->has_derived && u->derived.iterations == iterations &&
           secret_equal(&u->derived_of, secret_slice(&cred->text));
}

void auth_book_put_verifier(
    struct auth_book *b, struct slice user, const struct cred *cred, const struct scram_verifier *v)
{
    struct auth_user *u = user_make(b, user);

    u->derived = *v;
    secret_set(&u->derived_of, secret_slice(&cred->text));
    u->has_derived = true;
}

int auth_book_verifier(struct auth_book *b, struct slice user, const struct cred *cred,
    struct slice server_secret, uint32_t iterations, struct scram_verifier *out, struct err *err)
{
    if (cred->kind == CRED_PLAIN && auth_book_has_verifier(b, user, cred, iterations)) {
        *out = user_find(b, user)->derived;
        return 0;
    }
    if (cred_scram_verifier(cred, user, server_secret, iterations, out, err) == -1)
        return -1;
    if (cred->kind == CRED_PLAIN)
        auth_book_put_verifier(b, user, cred, out);
    return 0;
}

static void login_add_cred(struct auth_login *l, const struct cred *c)
{
    switch (c->kind) {
    case CRED_PLAIN:
        secret_set(&l->password, secret_slice(&c->text));
        l->hold = (l->hold & ~AUTH_HOLD_HEARD) | AUTH_HOLD_PASSWORD;
        l->has_verifier = false;
        break;
    case CRED_MD5:
        memcpy(l->md5, secret_slice(&c->text).p, CRED_MD5_BYTES);
        l->md5[CRED_MD5_BYTES] = '\0';
        l->hold |= AUTH_HOLD_MD5;
        l->has_verifier = false;
        break;
    case CRED_SCRAM:
        l->has_verifier = true;
        break;
    case CRED_NONE:
        break;
    }
}

const struct auth_login *auth_book_login(struct auth_book *b, struct slice user)
{
    struct auth_user *in_file = NULL;
    const struct passwd_entry *e = user_open(b, user, &in_file);
    struct auth_user *u = e != NULL ? user_make(b, user) : user_find(b, user);
    const struct auth_login *from;

    if (u == NULL)
        return NULL;
    login_wipe(&u->merged);
    if (e != NULL && e->server_user.n == 0)
        login_add_cred(&u->merged, &in_file->opened.cred);
    if (u->answer_state == ANSWER_USED)
        login_add_cred(&u->merged, &u->answer);
    from = &u->learned; /* the newest knowledge */
    if ((from->hold & AUTH_HOLD_PASSWORD) != 0)
        secret_set(&u->merged.password, secret_slice(&from->password));
    if ((from->hold & AUTH_HOLD_MD5) != 0)
        memcpy(u->merged.md5, from->md5, sizeof from->md5);
    u->merged.keys = from->keys;
    u->merged.hold |= from->hold;
    return u->merged.hold == 0 ? NULL : &u->merged;
}

void auth_book_learn_password(struct auth_book *b, struct slice user, struct slice password)
{
    struct auth_user *u;

    if (password.n == 0)
        return;
    u = user_prove(b, user_make(b, user));
    if ((u->learned.hold & AUTH_HOLD_PASSWORD) != 0 &&
        secret_equal(&u->learned.password, password)) {
        u->learned.hold |= AUTH_HOLD_HEARD;
        return;
    }
    login_wipe(&u->learned); /* keys of another password would go before it */
    secret_set(&u->learned.password, password);
    u->learned.hold = AUTH_HOLD_PASSWORD | AUTH_HOLD_HEARD;
}

void auth_book_learn_keys(struct auth_book *b, struct slice user, const struct scram_keys *keys)
{
    struct auth_user *u = user_prove(b, user_make(b, user));

    if ((u->learned.hold & AUTH_HOLD_KEYS) != 0 &&
        memcmp(u->learned.keys.client_key, keys->client_key, sizeof keys->client_key) == 0 &&
        is_same_verifier(&u->learned.keys.verifier, &keys->verifier))
        return; /* a link that they opened shows them again: they are of whom they were */
    u->learned.keys = *keys;
    u->learned.hold |= AUTH_HOLD_KEYS;
}

void auth_book_learn_cred(struct auth_book *b, struct slice user, const struct cred *cred)
{
    login_add_cred(&user_prove(b, user_make(b, user))->learned, cred);
}

/* What is packed: this, and the password behind it. */
struct packed_login {
    unsigned hold;
    char md5[CRED_MD5_BYTES + 1];
    struct scram_keys keys;
};

void auth_book_pack_login(struct auth_book *b, struct slice user, struct buf *out)
{
    const struct auth_login *l = auth_book_login(b, user);
    struct packed_login p;
    struct slice password;

    if (l == NULL)
        return;
    memset(&p, 0, sizeof p); /* no byte leaves that nobody wrote */
    p.hold = l->hold;
    memcpy(p.md5, l->md5, sizeof p.md5);
    p.keys = l->keys;
    buf_put(out, &p, sizeof p);
    mem_wipe(&p, sizeof p);
    password = secret_slice(&l->password);
    buf_put(out, password.p, password.n);
}

void auth_book_learn_packed(struct auth_book *b, struct slice user, struct slice bytes)
{
    struct packed_login p;
    struct auth_login *to;

    if (bytes.n < sizeof p || auth_book_login(b, user) != NULL)
        return;
    memcpy(&p, bytes.p, sizeof p);
    to = &user_prove(b, user_make(b, user))->learned;
    login_wipe(to);
    to->hold = p.hold;
    memcpy(to->md5, p.md5, sizeof to->md5);
    to->keys = p.keys;
    secret_set(&to->password, slice_of(bytes.p + sizeof p, bytes.n - sizeof p));
    mem_wipe(&p, sizeof p);
}

void auth_book_forget(struct auth_book *b, struct slice user)
{
    struct auth_user *u = user_find(b, user);

    if (u == NULL)
        return;
    login_wipe(&u->learned);
    if (u->answer_state == ANSWER_USED)
        u->answer_state = ANSWER_VOID;
}
