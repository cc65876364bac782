/* SPDX-License-Identifier: PostgreSQL
 * passwd.c: reading pool_passwd into a table. The whole text is kept once and wiped at the end;
 * entries point into it. */
#include "config.h"

#include "auth/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "crypto/cipher.h"
#include "crypto/crypto.h"
#include "passwd_int.h"

struct passwd_node {
    struct hash_node hash;
    struct passwd_node *next;
    struct passwd_entry entry;
};

struct passwd_table {
    struct arena *arena;
    struct secret text; /* fields are unescaped in place */
    struct hash_table users;
    struct passwd_node *first; /* in the order of the file */
    struct passwd_node **last;
    struct stat st;
    unsigned count;
    unsigned readable;
    unsigned errors;
};

struct parse {
    struct passwd_table *p;
    const char *name;
    unsigned line;
    passwd_report_fn *report;
    void *ctx;
};

static void say(struct parse *ps, enum err_severity severity, const char *text)
{
    struct err err = {0};

    if (severity == ERR_ERROR)
        ps->p->errors++;
    if (ps->report == NULL)
        return;
    err_set(&err, "F0000", "%s", text);
    err.severity = severity;
    ps->report(ps->name, ps->line, &err, ps->ctx);
}

struct passwd_value passwd_value_of(struct slice s)
{
    struct scram_verifier v;
    struct passwd_value out = {PASSWD_PLAIN, s};

    if (cred_is_md5(s)) {
        out.kind = PASSWD_MD5;
    } else if (s.n > 3 && memcmp(s.p, PASSWD_PREFIX_AES, 3) == 0) {
        out = (struct passwd_value){PASSWD_AES, slice_of(s.p + 3, s.n - 3)};
    } else if (s.n > 3 && memcmp(s.p, PASSWD_PREFIX_GCM, 3) == 0) {
        out = (struct passwd_value){PASSWD_GCM, slice_of(s.p + 3, s.n - 3)};
    } else if (s.n > 4 && memcmp(s.p, PASSWD_PREFIX_TEXT, 4) == 0) {
        out.text = slice_of(s.p + 4, s.n - 4);
    } else if (scram_verifier_parse(s, &v) == 0) {
        out.kind = PASSWD_SCRAM;
        mem_wipe(&v, sizeof v);
    }
    return out;
}

int passwd_open_value(
    const struct passwd_value *v, const struct secret *key, struct cred *out, struct err *err)
{
    struct secret plain = {0};
    int rc;

    cred_free(out);
    if (v->kind == PASSWD_PLAIN) {
        cred_from_plain(v->text, out);
        return 0;
    }
    if (v->kind == PASSWD_MD5 || v->kind == PASSWD_SCRAM) {
        cred_from_stored(v->text, out);
        return 0;
    }
    if (key == NULL || secret_is_empty(key)) {
        err_set(err, "28000", "an encrypted password needs the key file, and there is no key");
        err_hint(err, "Put the key in the file named by PGPOOLKEYFILE or in ~/.pgpoolkey.");
        return -1;
    }
    rc = v->kind == PASSWD_AES ? cipher_cbc_decrypt(secret_slice(key), v->text, &plain, err)
                               : cipher_gcm_decrypt(secret_slice(key), v->text, &plain, err);
    if (rc == 0)
        cred_from_plain(secret_slice(&plain), out);
    else
        err_hint(err, "The key is not the one that the entry was encrypted with, or the entry is "
                      "damaged.");
    secret_free(&plain);
    return rc;
}

/* Takes one field up to an unescaped colon, unescaping in place. *more tells that a colon ended
 * it. With `to_end` colons are part of the field. */
static struct slice take_field(char **at, char *end, bool to_end, bool *more)
{
    char *start = *at;
    char *r = start;
    char *w = start;

    *more = false;
    for (; r < end; r++) {
        if (*r == ':' && !to_end) {
            *more = true;
            break;
        }
        if (*r == '\\' && r + 1 < end && (r[1] == ':' || r[1] == '\\'))
            r++;
        *w++ = *r;
    }
    *at = *more ? r + 1 : r;
    return slice_of(start, (size_t)(w - start));
}

static int user_eq(const struct hash_node *n, const void *key)
{
    const struct passwd_node *node =
        (const struct passwd_node *)((const char *)n - offsetof(struct passwd_node, hash));

    return slice_eq(node->entry.user, *(const struct slice *)key);
}

const struct passwd_entry *passwd_find(const struct passwd_table *p, struct slice user)
{
    struct hash_node *n = hash_table_find(&p->users, hash_bytes(user.p, user.n, 0), user_eq, &user);

    if (n == NULL)
        return NULL;
    return &((const struct passwd_node *)((const char *)n - offsetof(struct passwd_node, hash)))
                ->entry;
}

static const char verifier[] = "SCRAM-SHA-256$";

/* Splits a line; returns the number of fields, 5 for "more than four". */
static unsigned split_line(char *p, size_t n, struct slice field[4])
{
    char *end = p + n;
    unsigned nfields = 0;
    bool more = true;
    bool to_end;

    while (more && nfields < 4) {
        /* A verifier is pasted as the server shows it: its own colons need no escape. */
        to_end = nfields == 1 && (size_t)(end - p) > sizeof verifier - 1 &&
                 memcmp(p, verifier, sizeof verifier - 1) == 0;
        field[nfields++] = take_field(&p, end, to_end, &more);
    }
    return more ? 5 : nfields;
}

/* A server, too, takes no empty password, in whatever form it is stored. */
static bool is_md5_of_nothing(struct slice user, struct slice value)
{
    char hex[CRYPTO_MD5_HEX_BYTES + 1];
    struct err err = {0};

    return cred_is_md5(value) && crypto_md5_hex(slice_of_str(""), user, hex, &err) == 0 &&
           memcmp(value.p + 3, hex, CRYPTO_MD5_HEX_BYTES) == 0;
}

static const char *line_problem(unsigned nfields, const struct slice field[4])
{
    if (nfields == 1)
        return "no colon after the user name";
    if (nfields != 2 && nfields != 4)
        return "a line has two or four fields; a colon inside a password is written \\:";
    if (field[0].n == 0)
        return "the user name is empty";
    if (field[0].n > PASSWD_USER_MAX || (nfields == 4 && field[2].n > PASSWD_USER_MAX))
        return "a user name is longer than 128 bytes";
    if (field[1].n > PASSWD_VALUE_MAX || (nfields == 4 && field[3].n > PASSWD_VALUE_MAX))
        return "a password is longer than 2048 bytes";
    if (field[1].n == 0 || is_md5_of_nothing(field[0], field[1]))
        return "the password is empty";
    if (nfields == 4 && (field[2].n == 0 || field[3].n == 0))
        return "the user name or password for the servers is empty";
    return NULL;
}

/* Says what is doubtful about a value: it looks like something that it is not. */
static void check_value(struct parse *ps, struct passwd_value v)
{
    uint8_t raw[PASSWD_VALUE_MAX];
    size_t n;

    if (v.kind == PASSWD_AES &&
        (crypto_base64_decode(v.text, raw, sizeof raw, &n) == -1 || n == 0 || n % 16 != 0))
        say(ps, ERR_WARNING,
            "the text behind AES is not an encrypted password; a password in "
            "clear text that begins so is written TEXTAES…");
    if (v.kind == PASSWD_GCM && crypto_base64_decode(v.text, raw, sizeof raw, &n) == -1)
        say(ps, ERR_WARNING,
            "the text behind GCM is not an encrypted password; a password in "
            "clear text that begins so is written TEXTGCM…");
    if (v.kind == PASSWD_PLAIN && v.text.n > sizeof verifier - 1 &&
        memcmp(v.text.p, verifier, sizeof verifier - 1) == 0)
        say(ps, ERR_WARNING, "a malformed SCRAM verifier is taken as a password in clear text");
}

static void parse_line(struct parse *ps, char *p, size_t n)
{
    struct slice field[4] = {{0}};
    struct passwd_node *node;
    const char *problem;
    unsigned nfields;

    if (n > 0 && p[n - 1] == '\r')
        n--;
    if (n == 0)
        return;
    if (memchr(p, '\0', n) != NULL) {
        say(ps, ERR_ERROR, "the line contains a zero byte");
        return;
    }
    nfields = split_line(p, n, field);
    problem = line_problem(nfields, field);
    if (problem != NULL) {
        say(ps, ERR_ERROR, problem);
        return;
    }
    if (passwd_find(ps->p, field[0]) != NULL) {
        say(ps, ERR_WARNING, "a second line for the same user is not used");
        return;
    }
    node = arena_alloc_zero(ps->p->arena, sizeof *node);
    node->entry.line = ps->line;
    node->entry.user = field[0];
    node->entry.value = passwd_value_of(field[1]);
    check_value(ps, node->entry.value);
    if (nfields == 4) {
        node->entry.server_user = field[2];
        node->entry.server_value = passwd_value_of(field[3]);
        check_value(ps, node->entry.server_value);
    }
    hash_table_add(&ps->p->users, &node->hash, hash_bytes(field[0].p, field[0].n, 0));
    *ps->p->last = node;
    ps->p->last = &node->next;
    ps->p->count++;
    if (node->entry.value.kind != PASSWD_MD5 && node->entry.value.kind != PASSWD_SCRAM)
        ps->p->readable++;
}

/* Takes over the bytes of *text. */
static struct passwd_table *parse_secret(
    const char *name, struct secret *text, passwd_report_fn *report, void *ctx)
{
    struct passwd_table *p = mem_alloc_zero(sizeof *p);
    struct parse ps = {.p = p, .name = name, .report = report, .ctx = ctx};
    char *at;
    char *nl;
    char *end;

    p->arena = arena_new("pool_passwd", 0);
    hash_table_init(&p->users);
    p->last = &p->first;
    secret_move(&p->text, text);
    at = p->text.bytes;
    end = at + p->text.n;
    while (at < end) {
        nl = memchr(at, '\n', (size_t)(end - at));
        if (nl == NULL)
            nl = end;
        ps.line++;
        parse_line(&ps, at, (size_t)(nl - at));
        at = nl + 1;
    }
    return p;
}

struct passwd_table *passwd_parse(
    const char *name, struct slice text, passwd_report_fn *report, void *ctx)
{
    struct secret copy = {0};

    secret_set(&copy, text);
    return parse_secret(name, &copy, report, ctx);
}

int passwd_read_file(
    const char *path, size_t limit, struct secret *out, struct stat *st, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *p;
    size_t have = 0;
    ssize_t n = 0;

    if (fd == -1 || fstat(fd, st) == -1) {
        err_set_errno(err, errno, "could not open file \"%s\"", path);
        err_hint(err, "It has to be readable by the user that pgpool runs as.");
        if (fd != -1)
            close(fd);
        return -1;
    }
    if (!S_ISREG(st->st_mode) || st->st_size < 0 || (size_t)st->st_size > limit) {
        err_set(err, "58030", "file \"%s\" is not a regular file or is too large", path);
        close(fd);
        return -1;
    }
    p = mem_alloc_secret((size_t)st->st_size + 1);
    while (have < (size_t)st->st_size && (n = read(fd, p + have, (size_t)st->st_size - have)) > 0)
        have += (size_t)n;
    if (n == -1)
        err_set_errno(err, errno, "could not read file \"%s\"", path);
    close(fd);
    if (n != -1)
        secret_set(out, slice_of(p, have));
    mem_free_secret(p);
    return n == -1 ? -1 : 0;
}

struct passwd_table *passwd_load(
    const char *path, passwd_report_fn *report, void *ctx, struct err *err)
{
    struct secret text = {0};
    struct stat st;
    struct passwd_table *p;

    if (passwd_read_file(path, PASSWD_FILE_MAX, &text, &st, err) == -1)
        return NULL;
    p = parse_secret(path, &text, report, ctx);
    p->st = st;
    return p;
}

void passwd_free(struct passwd_table **pp)
{
    struct passwd_table *p = *pp;

    if (p == NULL)
        return;
    secret_free(&p->text);
    hash_table_fini(&p->users);
    arena_free(&p->arena);
    mem_free(p);
    *pp = NULL;
}

unsigned passwd_count(const struct passwd_table *p)
{
    return p->count;
}

unsigned passwd_readable_count(const struct passwd_table *p)
{
    return p->readable;
}

const struct passwd_entry *passwd_next(const struct passwd_table *p, const struct passwd_entry *e)
{
    const struct passwd_node *n = p->first;

    if (e != NULL)
        n = LIST_ENTRY(e, struct passwd_node, entry)->next;
    return n == NULL ? NULL : &n->entry;
}

unsigned passwd_error_count(const struct passwd_table *p)
{
    return p->errors;
}

bool passwd_is_changed(const struct passwd_table *p, const struct stat *st)
{
    return p->st.st_ino != st->st_ino || p->st.st_dev != st->st_dev ||
           p->st.st_size != st->st_size || p->st.st_mtim.tv_sec != st->st_mtim.tv_sec ||
           p->st.st_mtim.tv_nsec != st->st_mtim.tv_nsec ||
           p->st.st_ctim.tv_sec != st->st_ctim.tv_sec ||
           p->st.st_ctim.tv_nsec != st->st_ctim.tv_nsec;
}
