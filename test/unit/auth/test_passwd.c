/* SPDX-License-Identifier: PostgreSQL
 * test_passwd.c: pool_passwd: every kind of value, escapes, limits, duplicates, reports with line
 * numbers, change detection, updates; the key file; stored credentials. */
#include "config.h"

#include "auth/passwd.h"
#include "auth/pcp_conf.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "crypto/cipher.h"
#include "crypto/crypto.h"

#include "run_suite.h"

#define VERIFIER                                                                                   \
    "SCRAM-SHA-256$4096:+yDtfhC5yF2rJEx2G6yWJg==$BEoCU6Ny9NGpwpI4EqCDJy6dOsSzFtSPqcAB6dwlVKU=:"    \
    "UTJCpZ8ZSa/SMGtYByyDEVA13hOKX9XpXZ7WlO4Os4o="

static char folder[] = "/tmp/test_passwd.XXXXXX";
static char path[200];

static void make_folder(void)
{
    if (mkdtemp(folder) == NULL)
        exit(EXIT_FAILURE);
    snprintf(path, sizeof path, "%s/pool_passwd", folder);
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static void write_file(const char *text)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

struct seen {
    unsigned errors;
    unsigned warnings;
    unsigned lines[16];
    unsigned n;
};

static void on_report(const char *file, unsigned line, const struct err *problem, void *ctx)
{
    struct seen *s = ctx;

    if (problem->severity == ERR_ERROR)
        s->errors++;
    else
        s->warnings++;
    if (s->n < 16)
        s->lines[s->n++] = line;
}

static struct passwd_table *parse(const char *text, struct seen *seen)
{
    memset(seen, 0, sizeof *seen);
    return passwd_parse("pool_passwd", slice_of_str(text), on_report, seen);
}

static const struct passwd_entry *find(const struct passwd_table *p, const char *user)
{
    return passwd_find(p, slice_of_str(user));
}

START_TEST(test_kinds)
{
    static const char text[] = "plain:secret\n"
                               "text:TEXTmd5looks\n"
                               "md5:md5f3bd28f750c1652dc0198b285f82ef15\n"
                               "notmd5:md5f3bd28f750c1652dc0198b285f82ef1\n"
                               "aes:AESjxddJAjYgkQUsTBNWr1WEg==\n"
                               "gcm:GCMAAAA\n"
                               "scram:" VERIFIER "\n"
                               "esc:SCRAM-SHA-256$4096\\:c2FsdA==\r\n"
                               "last:no newline";
    static const enum passwd_kind want[] = {PASSWD_PLAIN, PASSWD_PLAIN, PASSWD_MD5, PASSWD_PLAIN,
        PASSWD_AES, PASSWD_GCM, PASSWD_SCRAM, PASSWD_PLAIN, PASSWD_PLAIN};
    static const char *const users[] = {
        "plain", "text", "md5", "notmd5", "aes", "gcm", "scram", "esc", "last"};
    struct seen seen;
    struct passwd_table *p = parse(text, &seen);
    unsigned i;

    ck_assert_uint_eq(passwd_count(p), 9);
    ck_assert_uint_eq(seen.errors, 0);
    ck_assert_uint_eq(seen.warnings, 1); /* the verifier that is none */
    for (i = 0; i < 9; i++) {
        ck_assert_ptr_nonnull(find(p, users[i]));
        ck_assert_int_eq(find(p, users[i])->value.kind, want[i]);
        ck_assert_uint_eq(find(p, users[i])->line, i + 1);
    }
    ck_assert(slice_eq_str(find(p, "text")->value.text, "md5looks"));
    ck_assert(slice_eq_str(find(p, "esc")->value.text, "SCRAM-SHA-256$4096:c2FsdA=="));
    ck_assert(slice_eq_str(find(p, "scram")->value.text, VERIFIER));
    ck_assert(slice_eq_str(find(p, "last")->value.text, "no newline"));
    ck_assert_ptr_null(find(p, "nobody"));
    ck_assert_ptr_null(find(p, ""));
    passwd_free(&p);
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(test_escapes_and_mapping)
{
    struct seen seen;
    struct passwd_table *p = parse("a\\:b:c\\:d\n"
                                   "back\\\\slash:x\\y\\\\z\\\n"
                                   "alice:pw:server:TEXTspw\n"
                                   "# no comment:x\n",
        &seen);

    ck_assert_uint_eq(seen.errors + seen.warnings, 0);
    ck_assert(slice_eq_str(find(p, "a:b")->value.text, "c:d"));
    ck_assert(slice_eq_str(find(p, "back\\slash")->value.text, "x\\y\\z\\"));
    ck_assert(slice_eq_str(find(p, "alice")->server_user, "server"));
    ck_assert(slice_eq_str(find(p, "alice")->server_value.text, "spw"));
    ck_assert_uint_eq(find(p, "a:b")->server_user.n, 0);
    ck_assert_ptr_nonnull(find(p, "# no comment"));
    passwd_free(&p);
}
END_TEST

/* Whoever says nothing has no password, however that is stored. */
START_TEST(test_empty_passwords_open_nothing)
{
    struct slice pcp = slice_of_str("a:d41d8cd98f00b204e9800998ecf8427e\n"
                                    "b:D41D8CD98F00B204E9800998ECF8427E\n"
                                    "c:e807f1fcf82d132f9bb018ca6738a19f\n");
    struct pcp_line line;
    struct seen seen;
    struct passwd_table *p = parse("nopw:md53c09d489ff5b05c0798564d077817c62\n"
                                   "other:md53c09d489ff5b05c0798564d077817c62\n",
        &seen);

    ck_assert_uint_eq(seen.errors, 1);
    ck_assert_uint_eq(seen.lines[0], 1);
    ck_assert_ptr_null(find(p, "nopw"));
    ck_assert_ptr_nonnull(find(p, "other"));
    passwd_free(&p);

    ck_assert(pcp_conf_next(&pcp, &line));
    ck_assert(slice_eq_str(line.user, "c"));
    ck_assert(!pcp_conf_next(&pcp, &line));
}
END_TEST

START_TEST(test_bad_lines)
{
    static const char text[] = "good:1\n"
                               "no colon\n"
                               ":no user\n"
                               "no password:\n"
                               "three:fields:here\n"
                               "five:a:b:c:d\n"
                               "empty:a::b\n"
                               "\n"
                               "good:2\n"
                               "aes:AESnot base64\n"
                               "fine:2\n";
    static const unsigned want[] = {2, 3, 4, 5, 6, 7, 9, 10};
    struct seen seen;
    struct passwd_table *p = parse(text, &seen);
    unsigned i;

    ck_assert_uint_eq(seen.errors, 6);
    ck_assert_uint_eq(passwd_error_count(p), 6);
    ck_assert_uint_eq(seen.warnings, 2);
    for (i = 0; i < 8; i++)
        ck_assert_uint_eq(seen.lines[i], want[i]);
    ck_assert(slice_eq_str(find(p, "good")->value.text, "1")); /* the first line counts */
    ck_assert_uint_eq(passwd_count(p), 3);
    passwd_free(&p);
}
END_TEST

START_TEST(test_limits)
{
    char text[3000];
    struct seen seen;
    struct passwd_table *p;

    memset(text, 'x', sizeof text);
    snprintf(text + 128, sizeof text - 128, ":p\n");
    p = parse(text, &seen);
    ck_assert_uint_eq(passwd_count(p), 1);
    passwd_free(&p);
    memset(text, 'x', 200);
    snprintf(text + 129, sizeof text - 129, ":p\n");
    p = parse(text, &seen);
    ck_assert_uint_eq(seen.errors, 1);
    passwd_free(&p);
    memset(text, 'x', sizeof text);
    text[1] = ':';
    text[2 + PASSWD_VALUE_MAX] = '\0';
    p = parse(text, &seen);
    ck_assert_uint_eq(passwd_count(p), 1);
    passwd_free(&p);
    text[2 + PASSWD_VALUE_MAX] = 'x';
    text[3 + PASSWD_VALUE_MAX] = '\0';
    p = parse(text, &seen);
    ck_assert_uint_eq(seen.errors, 1);
    passwd_free(&p);
    p = passwd_parse("x", slice_of("a:b\0c\nd:e\n", 10), on_report, &seen);
    ck_assert_uint_eq(passwd_count(p), 1);
    ck_assert_ptr_null(find(p, "a"));
    passwd_free(&p);
}
END_TEST

START_TEST(test_many_users)
{
    struct buf text = {0};
    struct passwd_table *p;
    char name[32];
    int i;

    for (i = 0; i < 20000; i++)
        buf_printf(&text, "user%d:pw%d\n", i, i);
    p = passwd_parse("x", buf_slice(&text), NULL, NULL);
    ck_assert_uint_eq(passwd_count(p), 20000);
    for (i = 0; i < 20000; i += 37) {
        snprintf(name, sizeof name, "user%d", i);
        ck_assert_ptr_nonnull(find(p, name));
        ck_assert_uint_eq(find(p, name)->line, (unsigned)i + 1);
    }
    passwd_free(&p);
    buf_free(&text);
}
END_TEST

START_TEST(test_open_values)
{
    struct secret key = {0};
    struct secret wrong = {0};
    struct cred c = {0};
    struct err err = {0};
    struct buf gcm = {0};
    struct passwd_value v;

    secret_set(&key, slice_of_str("thekey"));
    secret_set(&wrong, slice_of_str("other"));
    v = passwd_value_of(slice_of_str("AESjxddJAjYgkQUsTBNWr1WEg=="));
    ck_assert_int_eq(passwd_open_value(&v, &key, &c, &err), 0);
    ck_assert_int_eq(c.kind, CRED_PLAIN);
    ck_assert(slice_eq_str(secret_slice(&c.text), "secret"));
    ck_assert_int_eq(passwd_open_value(&v, NULL, &c, &err), -1);
    ck_assert_int_eq(c.kind, CRED_NONE);
    ck_assert_str_eq(err.sqlstate, "28000");
    ck_assert(strstr(err.hint, "PGPOOLKEYFILE") != NULL);
    err_clear(&err);
    ck_assert_int_eq(passwd_open_value(&v, &wrong, &c, &err), -1);
    ck_assert_int_eq(c.kind, CRED_NONE);

    buf_put(&gcm, "GCM", 3);
    ck_assert_int_eq(
        cipher_gcm_encrypt(secret_slice(&key), slice_of_str("md5looks"), &gcm, NULL), 0);
    v = passwd_value_of(buf_slice(&gcm));
    ck_assert_int_eq(v.kind, PASSWD_GCM);
    ck_assert_int_eq(passwd_open_value(&v, &key, &c, NULL), 0);
    ck_assert(slice_eq_str(secret_slice(&c.text), "md5looks"));
    ck_assert_int_eq(passwd_open_value(&v, &wrong, &c, NULL), -1);

    v = passwd_value_of(slice_of_str(VERIFIER));
    ck_assert_int_eq(passwd_open_value(&v, NULL, &c, NULL), 0);
    ck_assert_int_eq(c.kind, CRED_SCRAM);
    v = passwd_value_of(slice_of_str("md5f3bd28f750c1652dc0198b285f82ef15"));
    ck_assert_int_eq(passwd_open_value(&v, NULL, &c, NULL), 0);
    ck_assert_int_eq(c.kind, CRED_MD5);
    /* TEXT: a password that only looks like md5 */
    v = passwd_value_of(slice_of_str("TEXTmd5f3bd28f750c1652dc0198b285f82ef15"));
    ck_assert_int_eq(passwd_open_value(&v, NULL, &c, NULL), 0);
    ck_assert_int_eq(c.kind, CRED_PLAIN);
    cred_free(&c);
    secret_free(&key);
    secret_free(&wrong);
    buf_free(&gcm);
}
END_TEST

START_TEST(test_load_and_change)
{
    struct passwd_table *p;
    struct err err = {0};
    struct stat st;

    unlink(path);
    ck_assert_ptr_null(passwd_load(path, NULL, NULL, &err));
    ck_assert_str_eq(err.sqlstate, "58P01");
    err_clear(&err);
    ck_assert_ptr_null(passwd_load(folder, NULL, NULL, &err));
    ck_assert(err_is_set(&err));
    write_file("a:b\n");
    p = passwd_load(path, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert(!passwd_is_changed(p, &st));
    ck_assert_int_eq(passwd_update(path, slice_of_str("a"), slice_of_str("c"), NULL), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert(passwd_is_changed(p, &st)); /* same length: told by the inode */
    passwd_free(&p);
    write_file("");
    p = passwd_load(path, NULL, NULL, NULL);
    ck_assert_uint_eq(passwd_count(p), 0);
    passwd_free(&p);
}
END_TEST

static void assert_content(const char *want)
{
    char got[1000];
    FILE *f = fopen(path, "r");
    size_t n;

    ck_assert_ptr_nonnull(f);
    n = fread(got, 1, sizeof got - 1, f);
    fclose(f);
    got[n] = '\0';
    ck_assert_str_eq(got, want);
}

START_TEST(test_update)
{
    struct err err = {0};
    struct stat st;

    unlink(path);
    ck_assert_int_eq(passwd_update(path, slice_of_str("a"), slice_of_str("1"), NULL), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(passwd_update(path, slice_of_str("ab"), slice_of_str("2:3"), NULL), 0);
    ck_assert_int_eq(passwd_update(path, slice_of_str("a"), slice_of_str("4"), NULL), 0);
    ck_assert_int_eq(passwd_update(path, slice_of_str("x:y"), slice_of_str(VERIFIER), NULL), 0);
    assert_content("a:4\nab:2\\:3\nx\\:y:" VERIFIER "\n");
    write_file("a:1\nbroken\na:2\nlast:3");
    ck_assert_int_eq(passwd_update(path, slice_of_str("a"), slice_of_str("9"), NULL), 0);
    assert_content("a:9\nbroken\na:2\nlast:3\n");
    ck_assert_int_eq(passwd_update(path, slice_of_str("a\nb"), slice_of_str("9"), &err), -1);
    ck_assert_int_eq(passwd_update(path, slice_of_str(""), slice_of_str("9"), NULL), -1);
    ck_assert_int_eq(passwd_update(path, slice_of_str("a"), slice_of_str("9\nroot:x"), NULL), -1);
    assert_content("a:9\nbroken\na:2\nlast:3\n");
    ck_assert_int_eq(
        passwd_update("/nonexistent/pool_passwd", slice_of_str("a"), slice_of_str("1"), NULL), -1);
}
END_TEST

START_TEST(test_update_through_link)
{
    char link_path[220];
    struct stat st;

    snprintf(link_path, sizeof link_path, "%s/link", folder);
    write_file("a:1\n");
    ck_assert_int_eq(symlink(path, link_path), 0);
    ck_assert_int_eq(passwd_update(link_path, slice_of_str("a"), slice_of_str("2"), NULL), 0);
    ck_assert_int_eq(lstat(link_path, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    assert_content("a:2\n");
    unlink(link_path);
}
END_TEST

START_TEST(test_modes)
{
    struct stat st;
    struct err err = {0};
    static const struct {
        uid_t uid;
        mode_t mode;
        bool safe;
    } cases[] = {{1000, 0600, true}, {1000, 0400, true}, {1000, 0640, false}, {1000, 0604, false},
        {0, 0640, true}, {0, 0600, true}, {0, 0660, false}, {0, 0644, false}};
    size_t i;

    memset(&st, 0, sizeof st);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        st.st_uid = cases[i].uid;
        st.st_mode = S_IFREG | cases[i].mode;
        err_clear(&err);
        ck_assert_int_eq(passwd_mode_is_safe("f", &st, "file", &err), cases[i].safe);
        ck_assert_int_eq(err.severity, cases[i].safe ? ERR_NONE : ERR_WARNING);
    }
}
END_TEST

START_TEST(test_key_file)
{
    struct secret key = {0};
    struct err warn = {0};
    struct err err = {0};
    char *p;

    write_file("the key \r\nsecond\n");
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(passwd_key_load(path, &key, &warn, NULL), 0);
    ck_assert(secret_equal(&key, slice_of_str("the key \r")));
    ck_assert(!err_is_set(&warn));
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_int_eq(passwd_key_load(path, &key, &warn, NULL), 0);
    ck_assert(err_is_set(&warn));
    write_file("\nkey\n");
    ck_assert_int_eq(passwd_key_load(path, &key, NULL, &err), -1);
    err_clear(&err);
    unlink(path);
    ck_assert_int_eq(passwd_key_load(path, &key, NULL, &err), -1);
    ck_assert_str_eq(err.sqlstate, "58P01");
    setenv("HOME", "/home/x", 1);
    unsetenv("PGPOOLKEYFILE");
    p = passwd_key_path(NULL);
    ck_assert_str_eq(p, "/home/x/.pgpoolkey");
    mem_free(p);
    setenv("PGPOOLKEYFILE", "/k", 1);
    p = passwd_key_path(NULL);
    ck_assert_str_eq(p, "/k");
    mem_free(p);
    p = passwd_key_path("opt");
    ck_assert_str_eq(p, "opt");
    mem_free(p);
    unsetenv("PGPOOLKEYFILE");
    unsetenv("HOME");
    ck_assert_ptr_null(passwd_key_path(NULL));
    secret_free(&key);
}
END_TEST

/* Every stored form x right and wrong password, in clear text and as md5 response. */
START_TEST(test_cred_checks)
{
    static const uint8_t salt[4] = {0, 255, 10, 13};
    static const char *const passwords[] = {"secret", "Secret", "", "secret ", "md5secret"};
    char md5[CRED_MD5_BYTES + 1];
    char answer[CRED_MD5_BYTES + 1];
    struct cred forms[3] = {{0}};
    struct cred client = {0};
    struct slice user = slice_of_str("bob");
    bool match;
    size_t f;
    size_t i;

    cred_from_plain(slice_of_str("secret"), &forms[0]);
    ck_assert_int_eq(cred_make_md5(user, slice_of_str("secret"), md5, NULL), 0);
    cred_from_stored(slice_of_str(md5), &forms[1]);
    forms[2].kind = CRED_SCRAM;
    ck_assert_int_eq(scram_verifier_build(slice_of_str("secret"), slice_of_str("salt"), 10,
                         &forms[2].verifier, NULL),
        0);
    for (f = 0; f < 3; f++)
        for (i = 0; i < 5; i++) {
            ck_assert_int_eq(cred_check_password(
                                 &forms[f], user, slice_of_str(passwords[i]), &match, NULL, NULL),
                0);
            ck_assert_int_eq(match, i == 0);
            cred_from_plain(slice_of_str(passwords[i]), &client);
            if (client.kind == CRED_NONE)
                continue;
            ck_assert_int_eq(cred_answer_md5(&client, user, salt, answer, NULL), 0);
            ck_assert_int_eq(
                cred_check_md5(&forms[f], user, salt, slice_of_str(answer), &match, NULL), 0);
            ck_assert_int_eq(match, i == 0 && f < 2);
        }
    /* The md5 text itself is no password, and no response. */
    ck_assert_int_eq(
        cred_check_password(&forms[1], user, slice_of_str(md5), &match, NULL, NULL), 0);
    ck_assert(!match);
    ck_assert_int_eq(cred_check_md5(&forms[1], user, salt, slice_of_str(md5), &match, NULL), 0);
    ck_assert(!match);
    /* Nothing stored, nothing passes. */
    cred_free(&client);
    ck_assert_int_eq(cred_check_password(&client, user, slice_of_str(""), &match, NULL, NULL), 0);
    ck_assert(!match);
    cred_from_stored(slice_of_str(""), &client);
    ck_assert_int_eq(client.kind, CRED_NONE);
    for (f = 0; f < 3; f++)
        cred_free(&forms[f]);
}
END_TEST

START_TEST(test_cred_scram_verifier)
{
    struct cred c = {0};
    struct scram_verifier v;
    struct scram_verifier w;
    struct slice user = slice_of_str("bob");
    struct slice secret = slice_of_str("server secret");
    bool match;

    ck_assert_int_eq(cred_scram_verifier(&c, user, secret, SCRAM_ITERATIONS, &v, NULL), -1);
    cred_from_plain(slice_of_str("secret"), &c);
    ck_assert_int_eq(cred_scram_verifier(&c, user, secret, SCRAM_ITERATIONS, &v, NULL), 0);
    ck_assert_int_eq(scram_verifier_check(&v, slice_of_str("secret"), &match, NULL, NULL), 0);
    ck_assert(match);
    /* Told from a stand-in by nothing that goes over the wire. */
    ck_assert_int_eq(scram_verifier_mock(secret, user, SCRAM_ITERATIONS, true, &w, NULL), 0);
    ck_assert_uint_eq(v.iterations, w.iterations);
    ck_assert_uint_eq(v.salt_len, w.salt_len);
    ck_assert_mem_eq(v.salt, w.salt, v.salt_len);
    cred_from_stored(slice_of_str("md5f3bd28f750c1652dc0198b285f82ef15"), &c);
    ck_assert_int_eq(cred_scram_verifier(&c, user, secret, SCRAM_ITERATIONS, &v, NULL), -1);
    cred_free(&c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("passwd");
    TCase *tc = tcase_create("passwd");

    if (!crypto_is_built()) {
        printf("not built with OpenSSL\n");
        return 77;
    }
    tcase_add_unchecked_fixture(tc, make_folder, remove_folder);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_kinds);
    tcase_add_test(tc, test_escapes_and_mapping);
    tcase_add_test(tc, test_empty_passwords_open_nothing);
    tcase_add_test(tc, test_bad_lines);
    tcase_add_test(tc, test_limits);
    tcase_add_test(tc, test_many_users);
    tcase_add_test(tc, test_open_values);
    tcase_add_test(tc, test_load_and_change);
    tcase_add_test(tc, test_update);
    tcase_add_test(tc, test_update_through_link);
    tcase_add_test(tc, test_modes);
    tcase_add_test(tc, test_key_file);
    tcase_add_test(tc, test_cred_checks);
    tcase_add_test(tc, test_cred_scram_verifier);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
