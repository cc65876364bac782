/* SPDX-License-Identifier: PostgreSQL
 * test_parser_plain.c: fingerprints of plain text are the scanner's: on texts thrown together from
 * whatever is hard to cut, and on the whole corpus. */
#include "config.h"

#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "fingerprint_int.h"
#include "run_suite.h"

#define SOUPS 200000

static const char *const pieces[] = {" ", " ", " ", "\n", "\t ", "\r\n", "a", "e", "x", "u", "n",
    "b", "U&", "select", "SELECT", "From", "in", "IN", "not", "values", "merge_action",
    "json_table", "_a1$b", "pgbench_accounts", "a_name_that_is_longer_than_24_bytes",
    "a23456789012345678901234", "\xc3\xa4", "'", "''", "'abc'", "'a''b'", "'a\\b'", "E'a\\'b'",
    "\"", "\"Ab\"", "\"\"", "\"a\"\"b\"", "$", "$1", "$12", "$a$", "$$", "1", "0", "007",
    "2147483647", "2147483648", "99999999999999999999", "1.5", "1.", ".5", "1e5", "0x1F", "1_0",
    "..", ".", "::", ":", ":=", ";", ",", "(", ")", "[", "]", "*", "+", "-", "--", "-- c\n", "/*",
    "/* c */", "*/", "=", "<", ">", "<=", ">=", "<>", "!=", "=>", "||", "->", "->>", "@", "&&", "?",
    "%", "^", "|", "#", "~", "!", "`", "\\", "{"};

static struct arena *arena;

static void set_up(void)
{
    arena = arena_new("test", 0);
}

static void tear_down(void)
{
    arena_free(&arena);
}

/* Fails when both ways differ; true when the text was plain. */
static bool agree(const char *p, size_t n)
{
    struct sqlfp plain = {.seed = 77};
    struct sqlfp scanned = {.seed = 77};
    struct arena_mark mark = arena_mark(arena);
    struct slice text = slice_of(p, n);
    bool is_plain = sqlfp_plain(sqlp_copy_text(arena, text), n, &plain, NULL);
    bool has_fp = sqlfp_text(arena, text, true, &scanned) == 0;

    arena_release(arena, mark);
    if (!is_plain)
        return false;
    ck_assert_msg(has_fp, "plain, but broken for the scanner: %.*s", (int)n, p);
    ck_assert_msg(plain.sum.lo == scanned.sum.lo && plain.sum.hi == scanned.sum.hi &&
                      plain.layout == scanned.layout,
        "differs: %.*s", (int)n, p);
    return true;
}

static bool agree_str(const char *text)
{
    return agree(text, strlen(text));
}

START_TEST(what_is_sent_most_is_plain)
{
    ck_assert(agree_str("SELECT abalance FROM pgbench_accounts WHERE aid = 12345;"));
    ck_assert(agree_str("UPDATE pgbench_accounts SET abalance = abalance + -17 WHERE aid = 1"));
    ck_assert(agree_str("INSERT INTO t (tid, mtime) VALUES ($1, CURRENT_TIMESTAMP), ('a''b', $2)"));
    ck_assert(agree_str("select \"T\".\"id\" as c0 from \"S\".\"T\" where c in (1, 2,3) limit 10"));
    ck_assert(
        agree_str("select a::int, b || 'x', c->'d' from t where e <= 1.5 and f <> 3000000000"));
    ck_assert(agree_str("select \"a\"\"b\""));
    ck_assert(agree_str(""));
    ck_assert(agree_str(" \n"));
}
END_TEST

START_TEST(what_is_hard_is_left_to_the_scanner)
{
    static const char *const texts[] = {"select 1 -- c", "select /* c */ 1", "select e'a\\'b'",
        "select U&'a'", "select x'1f'", "select $a$b$a$", "select 1e5", "select 0x1f", "select 1_0",
        "select .5", "select 1..2", "select 'a'\n'b'", "select 'a' -- c\n'b'", "select 'a",
        "select \"a", "select \"\"", "select \xc3\xa4", "select a\xc3\xa4", "select 1a",
        "select $1a", "select a =-1", "select a->>'b'", "select n'a'"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert_msg(!agree_str(texts[i]), "%s", texts[i]);
    ck_assert(!agree("select 'a\0b'", 13));
    ck_assert(!agree("select \0", 8));
}
END_TEST

START_TEST(soups)
{
    uint64_t state = 88172645463325252u;
    char text[512];
    int nplain = 0;

    for (int i = 0; i < SOUPS; i++) {
        size_t n = 0;
        int count = 1 + i % 9;

        while (count-- > 0) {
            const char *piece;

            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            piece = pieces[state % (sizeof(pieces) / sizeof(pieces[0]))];
            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
        }
        nplain += agree(text, n);
    }
    ck_assert_int_gt(nplain, SOUPS / 10);
}
END_TEST

/* ---- moulds ---- */

static uint64_t draw(void)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Other digits, now and then other bytes, and strings of another length. */
static size_t change(char *to, const char *from, size_t n)
{
    static const char bytes[] = "19'\" -.a;=,(\\\n$";
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        char c = from[i];

        if (c >= '0' && c <= '9')
            c = (char)('0' + draw() % 10);
        if (c >= '0' && c <= '9' && draw() % 4 == 0)
            to[len++] = (char)('0' + draw() % 10);
        if (draw() % 60 == 0)
            c = bytes[draw() % (sizeof bytes - 1)];
        if (draw() % 90 != 0)
            to[len++] = c;
    }
    return len;
}

/* Makes a mould of the text; whatever fits it has to have the fingerprint that the scanner finds.
 */
static int fitting(struct sql_moulds *m, const char *p, size_t n)
{
    struct slice text = slice_of(p, n);
    struct sqlfp fp = {.seed = 77};
    struct sql_mould_set *set = sql_mould_set_of(m, text);
    char other[2 * SQL_MOULD_TEXT_BYTES + 2];
    int found = 0;

    if (set == NULL || sqlfp_text(arena, text, false, &fp) == -1)
        return 0;
    memset(set, 0, sizeof *set);
    sql_mould_put(set, arena, text, &fp);
    for (int i = 0; i < 20; i++) {
        struct slice changed = slice_of(other, change(other, p, n));
        struct sqlfp real = {.seed = 77};
        struct sqlfp fit;
        uint64_t layout;
        const struct sql_mould *mould = sql_mould_find(set, changed, &layout);

        if (mould == NULL)
            continue;
        found++;
        fit = mould->fp;
        fit.layout ^= layout;
        ck_assert_msg(sqlfp_text(arena, changed, true, &real) == 0 && fit.sum.lo == real.sum.lo &&
                          fit.sum.hi == real.sum.hi,
            "%.*s\nis not\n%.*s", (int)changed.n, other, (int)n, p);
        ck_assert(fit.layout == real.layout || fit.layout != fp.layout);
    }
    return found;
}

START_TEST(what_fits_a_mould_is_alike)
{
    static struct sql_moulds moulds;
    const char *head = "select a, b, c, ";
    char text[1024];
    int found = 0;

    for (int i = 0; i < SOUPS / 4; i++) {
        size_t n = strlen(head);

        memcpy(text, head, n);
        for (uint64_t count = draw() % 12; count > 0; count--) {
            const char *piece = pieces[draw() % (sizeof(pieces) / sizeof(pieces[0]))];

            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
        }
        found += fitting(&moulds, text, n);
    }
    ck_assert_int_gt(found, SOUPS / 4);
}
END_TEST

START_TEST(a_mould_takes_other_values)
{
    static struct sql_moulds m;
    struct slice text = slice_of_str("UPDATE accounts SET n = n + 17, t = 'a b' WHERE aid = 1;");
    struct slice same = slice_of_str("UPDATE accounts SET n = n + 42, t = 'c d' WHERE aid = 7;");
    struct slice longer = slice_of_str("UPDATE accounts SET n = n + 1234, t = '' WHERE aid = 0;");
    struct slice big =
        slice_of_str("UPDATE accounts SET n = n + 1, t = '' WHERE aid = 3000000000;");
    struct sql_mould_set *set = sql_mould_set_of(&m, text);
    struct sqlfp fp = {.seed = 1};
    struct sql_mould *mould;
    uint64_t layout;

    ck_assert_int_eq(sqlfp_text(arena, text, false, &fp), 0);
    sql_mould_put(set, arena, text, &fp);
    mould = sql_mould_find(set, text, &layout);
    ck_assert(mould != NULL && layout == 0 && mould->fp.sum.lo == fp.sum.lo);
    ck_assert(sql_mould_find(set, same, &layout) == mould && layout == 0);
    ck_assert(sql_mould_find(set, longer, &layout) == mould && layout != 0);
    ck_assert_ptr_null(sql_mould_find(set, big, &layout));
    ck_assert_ptr_null(sql_mould_set_of(&m, slice_of_str("SELECT 1")));
}
END_TEST

/* A text per line; pieces between semicolons are texts, too. */
static int agree_file(const char *path, int *nplain)
{
    static char data[1 << 22];
    static struct sql_moulds moulds;
    FILE *f = fopen(path, "rb");
    size_t size;
    size_t from = 0;
    int n = 0;

    ck_assert_msg(f != NULL, "%s", path);
    size = fread(data, 1, sizeof data, f);
    fclose(f);
    for (size_t i = 0; i <= size; i++) {
        if (i < size && data[i] != '\n' && data[i] != ';')
            continue;
        *nplain += agree(data + from, i - from);
        (void)fitting(&moulds, data + from, i - from);
        from = i + 1;
        n++;
    }
    return n;
}

START_TEST(corpus)
{
    glob_t files;
    int nplain = 0;
    int n = 0;

    ck_assert_int_eq(glob(TOP_SRCDIR "/test/oracle/corpus/*.sql", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        n += agree_file(files.gl_pathv[i], &nplain);
    globfree(&files);
    ck_assert_int_gt(n, 1000);
    ck_assert_int_gt(nplain, n / 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("parser_plain");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_is_sent_most_is_plain);
    tcase_add_test(tc, what_is_hard_is_left_to_the_scanner);
    tcase_add_test(tc, soups);
    tcase_add_test(tc, corpus);
    tcase_add_test(tc, what_fits_a_mould_is_alike);
    tcase_add_test(tc, a_mould_takes_other_values);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
