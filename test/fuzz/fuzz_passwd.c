/* SPDX-License-Identifier: PostgreSQL
 * fuzz_passwd.c: fuzz target over pool_passwd, stored credentials and SASLprep. Invariants: what
 * was read can be written and is read again as the same; lines and errors add up; a value that
 * cannot be opened leaves no credential behind; preparing twice is preparing once. */
#include "config.h"

#include "auth/passwd.h"
#include "auth/saslprep.h"

#include "fuzz_auth.h"

static void on_report(const char *file, unsigned line, const struct err *problem, void *ctx)
{
    require(err_is_set(problem) && line > 0, "an empty report");
    if (problem->severity == ERR_ERROR)
        ++*(unsigned *)ctx;
}

/* Walks the lines of the text and looks up what stands before the first plain colon. */
static void look_up_all(const struct passwd_table *p, struct slice in)
{
    const struct passwd_entry *e;
    struct passwd_table *again;
    struct buf line = {0};
    const char *colon;

    colon = in.n == 0 ? NULL : memchr(in.p, ':', in.n);
    if (colon == NULL)
        return;
    e = passwd_find(p, slice_of(in.p, (size_t)(colon - in.p)));
    if (e == NULL || e->server_user.n > 0 || e->value.text.n == 0)
        return;
    passwd_put_line(e->user, e->value.text, &line);
    again = passwd_parse("again", buf_slice(&line), NULL, NULL);
    require(passwd_count(again) == 1, "a written line is not read");
    require(passwd_find(again, e->user) != NULL, "a written user is not found");
    passwd_free(&again);
    buf_free(&line);
}

static void fuzz_values(struct slice in)
{
    struct passwd_value v = passwd_value_of(in);
    struct secret key = {0};
    struct cred c = {0};
    struct err err = {0};
    bool match;

    secret_set(&key, slice_of_str("key"));
    /* A GCM text may ask for millions of iterations by right; that is not what is looked for. */
    if (v.kind != PASSWD_GCM && passwd_open_value(&v, &key, &c, &err) == -1) {
        require(err_is_set(&err), "failed without saying why");
        require(c.kind == CRED_NONE, "failed, and left a credential");
    }
    if (c.kind != CRED_SCRAM)
        require(cred_check_password(&c, slice_of_str("u"), slice_of_str("no such password"), &match,
                    NULL, NULL) == 0,
            "check failed");
    cred_free(&c);
    cred_from_stored(in, &c);
    require((c.kind == CRED_NONE) == (in.n == 0), "an empty secret is one");
    cred_free(&c);
    secret_free(&key);
}

static void fuzz_saslprep(struct slice in)
{
    struct secret once = {0};
    struct secret twice = {0};

    if (saslprep(in, &once) == 0) {
        require(once.n > 0, "prepared to nothing");
        require(once.n <= in.n * 18, "grew too much");
        if (saslprep(secret_slice(&once), &twice) == 0)
            require(slice_eq(secret_slice(&once), secret_slice(&twice)), "preparing is not stable");
    }
    saslprep_or_raw(in, &once);
    secret_free(&once);
    secret_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice in = slice_of((const char *)data, size);
    struct passwd_table *p;
    unsigned errors = 0;

    p = passwd_parse("x", in, on_report, &errors);
    require(errors == passwd_error_count(p), "errors do not add up");
    look_up_all(p, in);
    passwd_free(&p);
    fuzz_values(in);
    fuzz_saslprep(in);
    return 0;
}

static const char *const seeds[] = {
    "alice:secret\nbob:TEXTmd5x\n\ncarol:md5f3bd28f750c1652dc0198b285f82ef15\n",
    "a\\:b:c\\:d\\\\\nx:y:server:spw\r\nlast:AESjxddJAjYgkQUsTBNWr1WEg==",
    "eve:SCRAM-SHA-256$4096:+yDtfhC5yF2rJEx2G6yWJg==$BEoCU6Ny9NGpwpI4EqCDJy6dOsSzFtSPqcAB6dwlVKU=:"
    "UTJCpZ8ZSa/SMGtYByyDEVA13hOKX9XpXZ7WlO4Os4o=\n",
    "SCRAM-SHA-256$1:c2FsdA==$BEoCU6Ny9NGpwpI4EqCDJy6dOsSzFtSPqcAB6dwlVKU=:"
    "UTJCpZ8ZSa/SMGtYByyDEVA13hOKX9XpXZ7WlO4Os4o=",
    "AESjxddJAjYgkQUsTBNWr1WEg==",
    "GCMAQADDUA=",
    "p\303\244ss\314\210\357\254\201\341\204\200\341\205\241\330\247\342\200\213",
};

FUZZ_MAIN(seeds, 60000, ":\\\n\r=$+/\314\210\341\204\200\001")
