/* SPDX-License-Identifier: PostgreSQL
 * test_auth_book.c: what is stored and what is learned about users stay apart; files and answers
 * replace each other as they should; the guard counts per address. */
#include "config.h"

#include "auth/auth_book.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/auth_guard.h"
#include "base/mem.h"
#include "crypto/cipher.h"
#include "crypto/crypto.h"

#include "run_suite.h"

#define SECOND 1000000

static struct auth_book *book;
static char folder[] = "/tmp/test_auth_book.XXXXXX";
static char path[200];
static unsigned nwrites;

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pool_passwd", folder);
    book = auth_book_new();
}

static void tear_down(void)
{
    auth_book_free(&book);
    unlink(path);
    rmdir(folder);
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
}

static struct slice str(const char *s)
{
    return slice_of_str(s);
}

/* A new file each time, as pg_enc writes it: its inode differs even within one tick of the clock.
 */
static void write_passwd(const char *text)
{
    char fresh[220];
    FILE *f;

    snprintf(fresh, sizeof fresh, "%s.%u", path, nwrites++);
    f = fopen(fresh, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(rename(fresh, path), 0);
    auth_book_load_passwd(book, path, NULL, false);
}

static struct scram_verifier make_verifier(const char *password, const char *salt)
{
    struct scram_verifier v;

    ck_assert_int_eq(scram_verifier_build(str(password), str(salt), 4096, &v, NULL), 0);
    return v;
}

static bool put_verifier(const char *user, const struct scram_verifier *v, int64_t now)
{
    struct buf text = {0};
    bool changed;

    scram_verifier_format(v, &text);
    changed = auth_book_put_answer(book, str(user), str("db"), true, buf_slice(&text), now);
    buf_free(&text);
    return changed;
}

static struct scram_keys make_keys(const char *password, const char *salt)
{
    struct scram_keys keys;

    ck_assert_int_eq(scram_keys_derive(str(password), str(salt), 4096, &keys, NULL), 0);
    return keys;
}

START_TEST(test_file)
{
    struct auth_stored st;

    ck_assert(!auth_book_find_passwd(book, str("ann"), &st));
    write_passwd("ann:one\nbob:md5"
                 "0123456789abcdef0123456789abcdef\n");
    ck_assert(auth_book_find_passwd(book, str("ann"), &st));
    ck_assert_int_eq(st.cred->kind, CRED_PLAIN);
    ck_assert(auth_book_find_passwd(book, str("bob"), &st));
    ck_assert_int_eq(st.cred->kind, CRED_MD5);
    ck_assert_uint_eq(auth_book_login(book, str("ann"))->hold, AUTH_HOLD_PASSWORD);
    ck_assert_uint_eq(auth_book_login(book, str("bob"))->hold, AUTH_HOLD_MD5);
    write_passwd("ann:two\n");
    ck_assert(secret_equal(&auth_book_login(book, str("ann"))->password, str("two")));
    ck_assert(!auth_book_find_passwd(book, str("bob"), &st));
    ck_assert_ptr_null(auth_book_login(book, str("bob")));
    unlink(path);
    auth_book_load_passwd(book, path, NULL, false);
    ck_assert(!auth_book_find_passwd(book, str("ann"), &st));
    ck_assert_ptr_null(auth_book_login(book, str("ann")));
}
END_TEST

/* What takes long can be done by a thread, and is done once for a text, however often the file is
 * written. */
START_TEST(test_slow_entry_is_opened_elsewhere_and_once)
{
    struct auth_stored st;
    struct auth_opening *o;
    struct buf line = {0};
    struct slice next;
    size_t at = 0;
    char key_path[220];
    char name[40];
    int i;
    FILE *f;

    snprintf(key_path, sizeof key_path, "%s/key", folder);
    f = fopen(key_path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("the key\n", f);
    fclose(f);
    auth_book_load_passwd(book, path, key_path, false);
    buf_put(&line, "ann:GCM", 7);
    ck_assert_int_eq(cipher_gcm_encrypt(str("the key"), str("one"), &line, NULL), 0);
    buf_put(&line, "\nbob:two\n", 10);
    buf_put_byte(&line, '\0');
    write_passwd(line.data);
    ck_assert(auth_book_has_readable(book));
    ck_assert(auth_book_next_closed(book, &at, &next) && slice_eq_str(next, "ann"));
    ck_assert(!auth_book_next_closed(book, &at, &next));
    ck_assert_ptr_null(auth_book_begin_opening(book, str("bob")));
    o = auth_book_begin_opening(book, str("ann"));
    ck_assert_ptr_nonnull(o);
    auth_opening_work(o);
    auth_book_end_opening(book, str("ann"), o);
    auth_opening_free(&o);
    ck_assert_ptr_null(auth_book_begin_opening(book, str("ann")));
    ck_assert(auth_book_find_passwd(book, str("ann"), &st));
    ck_assert(st.cred->kind == CRED_PLAIN && secret_equal(&st.cred->text, str("one")));
    /* the user of another server has the same entry: it is not opened once more */
    ck_assert(secret_equal(&auth_book_login(book, slice_of("ann\0srv", 7))->password, str("one")));
    memcpy(line.data + line.len - 5, "2", 1); /* bob's password */
    write_passwd(line.data);
    ck_assert_ptr_null(auth_book_begin_opening(book, str("ann")));
    /* nor after more names than the book keeps */
    for (i = 0; i < AUTH_BOOK_USERS + 500; i++) {
        snprintf(name, sizeof name, "stranger%d", i);
        auth_book_put_answer(book, str(name), str("db"), false, slice_of(NULL, 0), 1);
    }
    ck_assert_ptr_null(auth_book_begin_opening(book, str("ann")));
    ck_assert_uint_eq(auth_book_slow_values(book), 1);
    o = auth_book_begin_nothing(book);
    auth_opening_make_last(o, 1);
    auth_opening_work(o);
    auth_book_end_opening(book, str("nobody"), o);
    auth_opening_free(&o);
    write_passwd("ann:three\n");
    ck_assert_uint_eq(auth_book_slow_values(book), 0);
    ck_assert(auth_book_find_passwd(book, str("ann"), &st));
    ck_assert(secret_equal(&st.cred->text, str("three")));
    buf_free(&line);
    unlink(key_path);
}
END_TEST

/* A verifier is made once, on a thread, for one password and one number of iterations. */
START_TEST(test_verifier_is_kept)
{
    struct auth_stored st;
    struct scram_verifier v;
    struct scram_verifier made;
    struct cred cred = {0};

    write_passwd("ann:one\nbob:md50123456789abcdef0123456789abcdef\n");
    ck_assert(auth_book_find_passwd(book, str("ann"), &st));
    ck_assert(!auth_book_has_verifier(book, str("ann"), st.cred, 4096));
    cred_copy(st.cred, &cred);
    ck_assert_int_eq(cred_scram_verifier(&cred, str("ann"), str("secret"), 4096, &made, NULL), 0);
    auth_book_put_verifier(book, str("ann"), &cred, &made);
    ck_assert(auth_book_has_verifier(book, str("ann"), &cred, 4096));
    ck_assert(!auth_book_has_verifier(book, str("ann"), &cred, 4097));
    ck_assert(!auth_book_has_verifier(book, str("bob"), &cred, 4096));
    /* the secret does not count: it was not made again */
    ck_assert_int_eq(auth_book_verifier(book, str("ann"), &cred, str("other"), 4096, &v, NULL), 0);
    ck_assert_mem_eq(&v, &made, sizeof v);
    cred_from_plain(str("two"), &cred);
    ck_assert(!auth_book_has_verifier(book, str("ann"), &cred, 4096));
    cred_free(&cred);
    write_passwd("bob:md50123456789abcdef0123456789abcdef\n");
    ck_assert(!auth_book_has_readable(book));
}
END_TEST

START_TEST(test_mapped_user_opens_nothing_of_its_own)
{
    struct auth_stored st;

    write_passwd("ann:one:app:secret\n");
    ck_assert(auth_book_find_passwd(book, str("ann"), &st));
    ck_assert(slice_eq(st.server_user, str("app")));
    ck_assert(secret_equal(&st.server_cred->text, str("secret")));
    ck_assert_ptr_null(auth_book_login(book, str("ann")));
    ck_assert_ptr_null(auth_book_login(book, str("app")));
    auth_book_learn_cred(book, str("app"), st.server_cred);
    ck_assert(secret_equal(&auth_book_login(book, str("app"))->password, str("secret")));
    ck_assert(!auth_book_find_passwd(book, str("app"), &st));
}
END_TEST

START_TEST(test_answers_expire)
{
    struct scram_verifier v = make_verifier("pw", "salt");
    struct auth_stored st;

    ck_assert(!auth_book_find_answer(book, str("ann"), str("db"), 0, SECOND, &st));
    ck_assert(!put_verifier("ann", &v, 5 * SECOND));
    ck_assert(auth_book_find_answer(book, str("ann"), str("db"), 6 * SECOND, SECOND, &st));
    ck_assert_int_eq(st.cred->kind, CRED_SCRAM);
    ck_assert_int_eq(st.age_us, SECOND);
    ck_assert(!auth_book_find_answer(book, str("ann"), str("db"), 6 * SECOND + 1, SECOND, &st));
    ck_assert(!auth_book_find_answer(book, str("ann"), str("evil"), 6 * SECOND, SECOND, &st));
    auth_book_put_answer(book, str("nobody"), str("db"), false, slice_of(NULL, 0), 0);
    ck_assert(auth_book_find_answer(book, str("nobody"), str("db"), 0, 0, &st));
    ck_assert_int_eq(st.cred->kind, CRED_NONE);
    auth_book_drop_answer(book, str("ann"));
    ck_assert(!auth_book_find_answer(book, str("ann"), str("db"), 5 * SECOND, SECOND, &st));
    ck_assert_msg(!put_verifier("ann", &v, 6 * SECOND), "the same as before: no change");
}
END_TEST

START_TEST(test_changed_password_forgets_the_keys)
{
    struct scram_verifier old = make_verifier("old", "salt1");
    struct scram_verifier new = make_verifier("new", "salt2");
    struct scram_keys keys = make_keys("old", "salt1");

    put_verifier("ann", &old, 0);
    ck_assert_ptr_null(auth_book_login(book, str("ann")));
    auth_book_learn_keys(book, str("ann"), &keys);
    ck_assert_uint_eq(auth_book_login(book, str("ann"))->hold, AUTH_HOLD_KEYS);
    ck_assert(!put_verifier("ann", &old, 1));
    ck_assert_ptr_nonnull(auth_book_login(book, str("ann")));
    ck_assert(put_verifier("ann", &new, 2));
    ck_assert_ptr_null(auth_book_login(book, str("ann")));
    auth_book_learn_password(book, str("ann"), str("new"));
    ck_assert(auth_book_put_answer(book, str("ann"), str("db"), true, slice_of(NULL, 0), 3));
    ck_assert_msg(auth_book_login(book, str("ann")) == NULL, "a locked user opens nothing");
}
END_TEST

/* The owner of a database says "mine" of a user who has shown something else there. */
START_TEST(test_what_a_database_says_does_not_meet_what_was_shown)
{
    struct slice there = slice_of("ann\0db", 6);
    struct scram_verifier made = make_verifier("mine", "salt2");
    struct scram_keys keys = make_keys("pw", "salt1");
    struct buf text = {0};

    auth_book_learn_keys(book, there, &keys);
    auth_book_put_answer(book, there, str("db"), true, str("mine"), 1);
    ck_assert_uint_eq(auth_book_login(book, there)->hold, AUTH_HOLD_PASSWORD);
    auth_book_learn_password(book, there, str("pw"));
    scram_verifier_format(&made, &text);
    ck_assert(auth_book_put_answer(book, there, str("db"), true, buf_slice(&text), 2));
    ck_assert_ptr_null(auth_book_login(book, there));
    buf_free(&text);
}
END_TEST

static unsigned login_keys(void)
{
    const struct auth_login *login = auth_book_login(book, str("ann"));

    return login == NULL ? 0 : login->hold & AUTH_HOLD_KEYS;
}

/* Who is in the file alone keeps what was learned at each answer that the servers do not know him;
 * who was known, or has a row without a secret, does not. */
START_TEST(test_unknown_to_the_servers_and_in_the_file)
{
    struct scram_verifier v = make_verifier("pw", "salt");
    struct scram_keys keys = make_keys("pw", "salt");
    struct auth_stored st;

    write_passwd("ann:SCRAM-SHA-256$nonsense\n");
    auth_book_learn_keys(book, str("ann"), &keys);
    ck_assert(!auth_book_put_answer(book, str("ann"), str("db"), false, slice_of(NULL, 0), 1));
    ck_assert(auth_book_find_answer(book, str("ann"), str("db"), 1, 0, &st) && !st.is_known);
    ck_assert_ptr_nonnull(auth_book_login(book, str("ann")));
    ck_assert(!auth_book_put_answer(book, str("ann"), str("db"), true, slice_of(NULL, 0), 2));
    ck_assert(auth_book_find_answer(book, str("ann"), str("db"), 2, 0, &st) && st.is_known);
    ck_assert_uint_eq(login_keys(), 0);
    put_verifier("ann", &v, 3);
    auth_book_learn_keys(book, str("ann"), &keys);
    ck_assert(auth_book_put_answer(book, str("ann"), str("db"), false, slice_of(NULL, 0), 4));
    ck_assert_uint_eq(login_keys(), 0);
    auth_book_learn_keys(book, str("bob"), &keys);
    ck_assert(!auth_book_put_answer(book, str("bob"), str("db"), false, slice_of(NULL, 0), 5));
    ck_assert_ptr_null(auth_book_login(book, str("bob")));
}
END_TEST

START_TEST(test_a_doubted_answer_opens_servers)
{
    char md5[] = "md5900150983cd24fb0d6963f7d28e17f72";
    struct auth_stored st;

    auth_book_put_answer(book, str("ann"), str("db"), true, str(md5), SECOND);
    auth_book_drop_answer(book, str("ann"));
    ck_assert_uint_eq(auth_book_login(book, str("ann"))->hold, AUTH_HOLD_MD5);
    ck_assert(!auth_book_find_answer(book, str("ann"), str("db"), SECOND, INT64_MAX - 1, &st));
    ck_assert(auth_book_find_answer(book, str("ann"), str("db"), SECOND, INT64_MAX, &st));
    auth_book_forget(book, str("ann"));
    ck_assert_msg(auth_book_login(book, str("ann")) == NULL, "a server has refused it");
    ck_assert(!auth_book_find_answer(book, str("ann"), str("db"), SECOND, INT64_MAX, &st));
    ck_assert_msg(!auth_book_put_answer(book, str("ann"), str("db"), true, str(md5), SECOND),
        "the same as before: no change");
    ck_assert(auth_book_find_answer(book, str("ann"), str("db"), SECOND, 0, &st));
}
END_TEST

START_TEST(test_learned_goes_before_the_file)
{
    struct scram_keys keys = make_keys("new", "salt");

    write_passwd("ann:old\n");
    auth_book_learn_keys(book, str("ann"), &keys);
    auth_book_learn_password(book, str("ann"), str("new"));
    ck_assert(secret_equal(&auth_book_login(book, str("ann"))->password, str("new")));
    ck_assert_msg((auth_book_login(book, str("ann"))->hold & AUTH_HOLD_KEYS) == 0,
        "keys of an unknown password are not kept beside a new one");
    auth_book_forget(book, str("ann"));
    ck_assert(secret_equal(&auth_book_login(book, str("ann"))->password, str("old")));
    ck_assert_ptr_null(auth_book_login(book, str("bob")));
}
END_TEST

START_TEST(test_derived_verifier_is_made_once_and_follows)
{
    struct scram_verifier a;
    struct scram_verifier b;
    struct cred cred = {0};

    cred_from_plain(str("one"), &cred);
    ck_assert_int_eq(auth_book_verifier(book, str("ann"), &cred, str("secret"), 4096, &a, NULL), 0);
    ck_assert_int_eq(auth_book_verifier(book, str("ann"), &cred, str("secret"), 4096, &b, NULL), 0);
    ck_assert_mem_eq(a.stored_key, b.stored_key, sizeof a.stored_key);
    cred_from_plain(str("two"), &cred);
    ck_assert_int_eq(auth_book_verifier(book, str("ann"), &cred, str("secret"), 4096, &b, NULL), 0);
    ck_assert_mem_ne(a.stored_key, b.stored_key, sizeof a.stored_key);
    ck_assert_int_eq(auth_book_verifier(book, str("ann"), &cred, str("secret"), 5000, &b, NULL), 0);
    ck_assert_uint_eq(b.iterations, 5000);
    cred_free(&cred);
}
END_TEST

START_TEST(test_number_of_users_is_bounded)
{
    struct auth_stored st;
    char name[32];
    unsigned i;

    for (i = 0; i < AUTH_BOOK_UNPROVED + 100; i++) {
        snprintf(name, sizeof name, "user%u", i);
        auth_book_put_answer(book, str(name), str("db"), true, str("pw"), 0);
        ck_assert(auth_book_find_answer(book, str("user0"), str("db"), 0, 0, &st));
    }
    ck_assert_msg(
        !auth_book_find_answer(book, str("user1"), str("db"), 0, 0, &st), "the oldest is gone");
    ck_assert(auth_book_find_answer(book, str(name), str("db"), 0, 0, &st));
}
END_TEST

START_TEST(test_strangers_evict_nobody)
{
    char name[32];
    unsigned i;

    auth_book_learn_password(book, str("alice"), str("pw"));
    for (i = 0; i < AUTH_BOOK_USERS + 100; i++) {
        snprintf(name, sizeof name, "stranger%u", i);
        auth_book_put_answer(book, str(name), str("db"), false, slice_of(NULL, 0), 0);
    }
    ck_assert_ptr_nonnull(auth_book_login(book, str("alice")));
}
END_TEST

START_TEST(test_who_has_pools_is_not_forgotten)
{
    char name[32];
    unsigned i;

    auth_book_hold(book, str("alice")); /* the pool is there first */
    auth_book_hold(book, str("alice"));
    auth_book_learn_password(book, str("alice"), str("pw"));
    auth_book_learn_password(book, str("bob"), str("pw"));
    auth_book_let_go(book, str("alice"));
    for (i = 0; i < AUTH_BOOK_USERS; i++) {
        snprintf(name, sizeof name, "user%u", i);
        auth_book_learn_password(book, str(name), str("pw"));
    }
    ck_assert_ptr_null(auth_book_login(book, str("bob")));
    ck_assert_ptr_nonnull(auth_book_login(book, str("alice")));
    auth_book_let_go(book, str("alice"));
    auth_book_let_go(book, str("alice")); /* one too many does no harm */
    for (i = 0; i < AUTH_BOOK_USERS; i++) {
        snprintf(name, sizeof name, "other%u", i);
        auth_book_learn_password(book, str(name), str("pw"));
    }
    ck_assert_ptr_null(auth_book_login(book, str("alice")));
}
END_TEST

START_TEST(test_guard)
{
    struct auth_guard *g = mem_alloc_zero(auth_guard_bytes());
    struct hba_addr a = {4, {192, 0, 2, 1}};
    struct hba_addr b = {4, {192, 0, 2, 2}};
    struct hba_addr six = {16, {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 9}};
    struct hba_addr same_net = {16, {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 7}};
    struct hba_addr local = {0, {0}};
    int i;

    auth_guard_init(g);
    ck_assert_uint_eq(auth_guard_secret(g).n, 32);
    for (i = 0; i < 5; i++) {
        ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &a, 100, 5));
        auth_guard_count(g, AUTH_GUARD_WRONG, &a, 100);
        auth_guard_count(g, AUTH_GUARD_WRONG, &six, 100);
        auth_guard_count(g, AUTH_GUARD_WRONG, &local, 100);
    }
    ck_assert(auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &a, 159, 5));
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_UNSURE, &a, 159, 1));
    auth_guard_count(g, AUTH_GUARD_UNSURE, &a, 100);
    ck_assert(auth_guard_is_blocked(g, AUTH_GUARD_UNSURE, &a, 159, 1));
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &a, 159, 6));
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &a, 159, 6));
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &a, 159, 0));
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &b, 159, 5));
    auth_guard_bar(g, &b, 159);
    ck_assert(auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &b, 160, 1000000));
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &b, 160, 0));
    ck_assert_uint_gt(auth_guard_count(g, AUTH_GUARD_WRONG, &b, 160), 1000000);
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &b, 219, 5));
    auth_guard_bar(g, &local, 159);
    ck_assert_msg(auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &same_net, 159, 5),
        "one customer has many addresses");
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &local, 159, 5));
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &a, 160, 5));
    auth_guard_count(g, AUTH_GUARD_WRONG, &a, 161);
    ck_assert(auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &a, 161, 1));
    ck_assert(!auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &a, 161, 2));
    mem_free(g);
}
END_TEST

START_TEST(test_guard_with_many_addresses)
{
    struct auth_guard *g = mem_alloc_zero(auth_guard_bytes());
    struct hba_addr a = {4, {0}};
    unsigned i;

    auth_guard_init(g);
    for (i = 0; i < 100000; i++) {
        memcpy(a.bytes, &i, sizeof i);
        auth_guard_count(g, AUTH_GUARD_WRONG, &a, 100 + i / 1000);
        ck_assert(auth_guard_is_blocked(g, AUTH_GUARD_WRONG, &a, 100 + i / 1000, 1));
    }
    mem_free(g);
}
END_TEST

/* Who is unknown looks like most, whatever a few look like. */
START_TEST(test_guard_votes)
{
    struct auth_guard *g = mem_alloc_zero(auth_guard_bytes());
    int i;

    auth_guard_init(g);
    ck_assert_uint_eq(auth_guard_usual(g), 4096);
    auth_guard_vote(g, 15000);
    ck_assert_uint_eq(auth_guard_usual(g), 15000);
    for (i = 0; i < 3000; i++)
        auth_guard_vote(g, i % 3 == 0 ? 4096 : 15000);
    ck_assert_uint_eq(auth_guard_usual(g), 15000);
    ck_assert_uint_eq(auth_guard_usual_cost(g), 15000);
    for (i = 0; i < 1100; i++)
        auth_guard_vote(g, 0);
    ck_assert_uint_eq(auth_guard_usual(g), 0);
    ck_assert_uint_eq(auth_guard_usual_cost(g), 4096);
    mem_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("auth_book");
    TCase *tc = tcase_create("all");

    if (!crypto_is_built())
        return 77;
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, test_file);
    tcase_add_test(tc, test_slow_entry_is_opened_elsewhere_and_once);
    tcase_add_test(tc, test_verifier_is_kept);
    tcase_add_test(tc, test_mapped_user_opens_nothing_of_its_own);
    tcase_add_test(tc, test_answers_expire);
    tcase_add_test(tc, test_changed_password_forgets_the_keys);
    tcase_add_test(tc, test_what_a_database_says_does_not_meet_what_was_shown);
    tcase_add_test(tc, test_unknown_to_the_servers_and_in_the_file);
    tcase_add_test(tc, test_a_doubted_answer_opens_servers);
    tcase_add_test(tc, test_learned_goes_before_the_file);
    tcase_add_test(tc, test_derived_verifier_is_made_once_and_follows);
    tcase_add_test(tc, test_number_of_users_is_bounded);
    tcase_add_test(tc, test_strangers_evict_nobody);
    tcase_add_test(tc, test_who_has_pools_is_not_forgotten);
    tcase_add_test(tc, test_guard);
    tcase_add_test(tc, test_guard_votes);
    tcase_add_test(tc, test_guard_with_many_addresses);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
