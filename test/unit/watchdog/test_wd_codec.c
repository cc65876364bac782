/* SPDX-License-Identifier: PostgreSQL
 * test_wd_codec.c: libraft's messages as bytes, and what is not taken for one. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "process/watchdog/wd_codec.h"

#include "run_suite.h"

static struct buf wire;
static struct raft_message got;

static void setup(void)
{
    memset(&got, 0, sizeof got);
}

static void teardown(void)
{
    buf_free(&wire);
}

static void free_got(void)
{
    if (got.append_entries.n_entries > 0)
        raft_free(got.append_entries.entries[0].batch);
    raft_free(got.append_entries.entries);
}

/* Two entries, the second one of this type and size. */
static bool reads_back(unsigned short type, size_t size)
{
    static char text[] = "sixteen letters, and some";
    struct raft_entry entries[2] = {{.term = 3, .type = RAFT_COMMAND, .buf = {text, 16}},
        {.term = 4, .type = type, .buf = {text, size}}};
    struct raft_message m = {.type = RAFT_IO_APPEND_ENTRIES,
        .append_entries = {.term = 4, .prev_log_index = 9, .n_entries = 2, .entries = entries}};

    buf_clear(&wire);
    ck_assert(wd_codec_put(&m, &wire));
    return wd_codec_get(buf_slice(&wire), &got);
}

START_TEST(test_entries_are_read_back)
{
    ck_assert(reads_back(RAFT_CHANGE, 24));
    ck_assert_uint_eq(got.append_entries.n_entries, 2);
    ck_assert_uint_eq(got.append_entries.prev_log_index, 9);
    ck_assert_uint_eq(got.append_entries.entries[1].term, 4);
    ck_assert_uint_eq(got.append_entries.entries[1].buf.len, 24);
    ck_assert_mem_eq(got.append_entries.entries[1].buf.base, "sixteen letters, and som", 24);
    free_got();
}
END_TEST

/* With one of these on its disk libraft cannot begin again, ever. */
START_TEST(test_what_libraft_cannot_read_again_is_not_taken)
{
    ck_assert(!reads_back(RAFT_COMMAND, 15));
    ck_assert(!reads_back(RAFT_COMMAND, 0));
    ck_assert(!reads_back(0, 16));
    ck_assert(!reads_back(RAFT_CHANGE + 1, 16));
}
END_TEST

START_TEST(test_a_part_is_not_taken)
{
    struct buf whole = {0};

    ck_assert(reads_back(RAFT_BARRIER, 8));
    free_got();
    buf_put(&whole, wire.data, wire.len);
    for (uint32_t n = 0; n < whole.len; n++) {
        char *part = malloc(n + 1); /* of that size: a sanitizer sees a read one byte too far */

        memcpy(part, whole.data, n);
        ck_assert(!wd_codec_get(slice_of(part, n), &got));
        free(part);
    }
    buf_free(&whole);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wd_codec");
    TCase *t = tcase_create("messages");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_entries_are_read_back);
    tcase_add_test(t, test_what_libraft_cannot_read_again_is_not_taken);
    tcase_add_test(t, test_a_part_is_not_taken);
    suite_add_tcase(s, t);
    return run_suite(s);
}
