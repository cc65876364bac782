/* SPDX-License-Identifier: PostgreSQL
 * test_wd_gate.c: which messages libraft is given, and which would end it. */
#include "config.h"

#include <check.h>
#include <string.h>

#include "cluster/wd_state.h"
#include "process/watchdog/wd_gate.h"

#include "run_suite.h"

/* Term 3; entries 5 (term 2), 6 and 7 (term 3) behind a snapshot up to 4; agreed on up to 6. */
static struct raft_entry log_entries[8] = {{.term = 2}, {.term = 3}, {.term = 3}};
static struct raft raft;
static struct wd_state scratch;

static void setup(void)
{
    memset(&raft, 0, sizeof raft);
    raft.id = 1;
    raft.state = RAFT_FOLLOWER;
    raft.current_term = 3;
    raft.commit_index = 6;
    raft.log.entries = log_entries;
    raft.log.size = 8;
    raft.log.back = 3;
    raft.log.offset = 4;
    raft.log.snapshot.last_index = 4;
    raft.log.snapshot.last_term = 2;
}

static enum wd_gate judged(struct raft_message m)
{
    m.server_id = 2;
    return wd_gate_judge(&raft, &m, &scratch);
}

static enum wd_gate append(
    uint64_t term, uint64_t prev, uint64_t prev_term, struct raft_entry *e, unsigned n)
{
    return judged((struct raft_message){.type = RAFT_IO_APPEND_ENTRIES,
        .append_entries = {.term = term,
            .prev_log_index = prev,
            .prev_log_term = prev_term,
            .entries = e,
            .n_entries = n}});
}

START_TEST(test_entries)
{
    static char event[8];
    struct raft_entry one = {.term = 3, .type = RAFT_COMMAND, .buf = {event, 8}};
    struct raft_entry old = {.term = 2, .type = RAFT_COMMAND, .buf = {event, 8}};
    struct raft_entry large = {.term = 3, .type = RAFT_COMMAND, .buf = {event, 1 << 20}};
    struct raft_entry zero = {.term = 0, .type = RAFT_COMMAND, .buf = {event, 8}};

    ck_assert_int_eq(append(3, 7, 3, &one, 1), WD_GATE_PASS);
    ck_assert_int_eq(append(3, 6, 3, &one, 1), WD_GATE_PASS); /* it has it */
    ck_assert_int_eq(append(4, 5, 2, &one, 1), WD_GATE_PASS);
    ck_assert_int_eq(append(3, 4, 2, NULL, 0), WD_GATE_PASS); /* the snapshot's end */
    ck_assert_int_eq(append(3, 9, 3, &one, 1), WD_GATE_PASS); /* libraft rejects it */
    ck_assert_int_eq(append(2, 7, 2, NULL, 0), WD_GATE_PASS); /* of a former leader: the same */
    ck_assert_int_eq(append(2, 5, 2, &old, 1), WD_GATE_PASS);
    ck_assert_int_eq(append(4, 5, 2, &old, 1), WD_GATE_MALFORMED); /* 6 was agreed on */
    ck_assert_int_eq(append(4, 6, 2, NULL, 0), WD_GATE_MALFORMED);
    ck_assert_int_eq(
        append(4, 0, 0, &old, 1), WD_GATE_MALFORMED); /* its place is in the snapshot */
    ck_assert_int_eq(append(4, 0, 0, NULL, 0), WD_GATE_PASS);
    ck_assert_int_eq(append(4, 2, 2, &old, 1), WD_GATE_PASS); /* before it: libraft rejects it */
    ck_assert_int_eq(append(3, 7, 3, &zero, 1), WD_GATE_MALFORMED);
    ck_assert_int_eq(append(3, 7, 3, &large, 1), WD_GATE_MALFORMED);
    ck_assert_int_eq(append(0, 7, 3, NULL, 0), WD_GATE_PASS); /* libraft rejects it */
    ck_assert_int_eq(append(UINT64_MAX, 7, 3, NULL, 0), WD_GATE_MALFORMED);
    ck_assert_int_eq(append(3, UINT64_MAX, 3, &one, 1), WD_GATE_MALFORMED);
    raft.state = RAFT_LEADER;
    ck_assert_int_eq(append(3, 7, 3, NULL, 0), WD_GATE_MALFORMED);
    ck_assert_int_eq(append(4, 7, 3, NULL, 0), WD_GATE_PASS);
}
END_TEST

START_TEST(test_members)
{
    static const struct {
        const char *text;
        size_t n;
        enum wd_gate expected;
    } cases[] = {
#define MEMBERS(n, text)     "\1" n "\0\0\0\0\0\0\0" text
#define CASE(text, expected) {text, sizeof(text) - 1, expected}
        CASE(MEMBERS("\1", "\1\0\0\0\0\0\0\0pgpool 0\0\1"), WD_GATE_PASS),
        CASE(MEMBERS("\1", "\1\0\0\0\0\0\0\0pgpool 0\0\1\0\0\0\0\0"), WD_GATE_PASS),
        CASE(MEMBERS("\2", "\1\0\0\0\0\0\0\0pgpool 0\0\1\3\0\0\0\0\0\0\0pgpool 2\0\0"),
            WD_GATE_PASS),
        CASE(MEMBERS("\2", "\1\0\0\0\0\0\0\0pgpool 0\0\1\1\0\0\0\0\0\0\0pgpool 0\0\1"),
            WD_GATE_MALFORMED),
        CASE(MEMBERS("\2", "\1\0\0\0\0\0\0\0pgpool 0\0\1\2\0\0\0\0\0\0\0pgpool 0\0\1"),
            WD_GATE_MALFORMED),
        CASE(MEMBERS("\1", "\1\0\0\0\0\0\0\0pgpool 0\0\0"), WD_GATE_MALFORMED),
        CASE(MEMBERS("\1", "\1\0\0\0\0\0\0\0pgpool 0\0\3"), WD_GATE_MALFORMED),
        CASE(MEMBERS("\1", "\1\0\0\0\0\0\0\0pgpool 0"), WD_GATE_MALFORMED),
        CASE(MEMBERS("\1", "\1\0\0\0\0\0\0\0pgpool 0\0"), WD_GATE_MALFORMED),
        CASE(MEMBERS("\2", "\1\0\0\0\0\0\0\0pgpool 0\0\1"), WD_GATE_MALFORMED),
        CASE(MEMBERS("\1", "\0\0\0\0\0\0\0\0pgpool -1\0\1"), WD_GATE_MALFORMED),
        CASE(MEMBERS("\1", "\1\1\0\0\0\0\0\0pgpool 256\0\1"), WD_GATE_MALFORMED),
        CASE(MEMBERS("\0", ""), WD_GATE_MALFORMED), CASE("\1\1", WD_GATE_MALFORMED),
        CASE("\2\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0pgpool 0\0\1", WD_GATE_MALFORMED)};
    struct raft_entry e = {.term = 3, .type = RAFT_CHANGE};
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        e.buf.base = (void *)(uintptr_t)cases[i].text;
        e.buf.len = cases[i].n;
        ck_assert_msg(append(3, 7, 3, &e, 1) == cases[i].expected, "case %zu", i);
    }
}
END_TEST

static enum wd_gate snapshot(uint64_t term, uint64_t last, uint64_t last_term, struct slice data,
    struct raft_configuration *c)
{
    return judged((struct raft_message){.type = RAFT_IO_INSTALL_SNAPSHOT,
        .install_snapshot = {.term = term,
            .last_index = last,
            .last_term = last_term,
            .conf_index = 1,
            .conf = *c,
            .data = {(void *)(uintptr_t)data.p, data.n}}});
}

START_TEST(test_snapshots)
{
    struct raft_configuration c;
    struct raft_configuration none;
    struct wd_state state;
    struct buf good = {0};
    struct slice data;

    wd_state_init(&state);
    wd_state_put(&state, &good);
    buf_put(&good, "\0\0\0", 3);
    data = buf_slice(&good);
    raft_configuration_init(&c);
    raft_configuration_init(&none);
    ck_assert_int_eq(raft_configuration_add(&c, 2, "pgpool 1", RAFT_VOTER), 0);
    ck_assert_int_eq(snapshot(3, 9, 3, data, &c), WD_GATE_PASS);
    ck_assert_int_eq(snapshot(3, 4, 2, data, &c), WD_GATE_PASS); /* libraft says that it has it */
    ck_assert_int_eq(snapshot(3, 6, 3, data, &c), WD_GATE_PASS);
    ck_assert_int_eq(snapshot(4, 5, 3, data, &c), WD_GATE_MALFORMED); /* less than was agreed on */
    ck_assert_int_eq(snapshot(3, 9, 4, data, &c), WD_GATE_MALFORMED);
    ck_assert_int_eq(snapshot(3, 9, 0, data, &c), WD_GATE_MALFORMED);
    ck_assert_int_eq(snapshot(3, 9, 3, data, &none), WD_GATE_MALFORMED);
    ck_assert_int_eq(
        snapshot(3, 9, 3, slice_of_str("1234567"), &c), WD_GATE_NEWER); /* format '1' */
    ck_assert_int_eq(snapshot(3, 9, 3, slice_of("", 0), &c), WD_GATE_MALFORMED);
    ck_assert_int_eq(snapshot(3, 9, 3, slice_of(data.p, data.n / 2), &c), WD_GATE_MALFORMED);
    raft.state = RAFT_LEADER;
    ck_assert_int_eq(snapshot(3, 9, 3, data, &c), WD_GATE_MALFORMED);
    raft_configuration_close(&c);
    buf_free(&good);
}
END_TEST

START_TEST(test_votes_and_answers)
{
    struct raft_message vote = {.type = RAFT_IO_REQUEST_VOTE,
        .request_vote = {.term = 4, .candidate_id = 2, .last_log_index = 7, .last_log_term = 3}};
    struct raft_message answer = {.type = RAFT_IO_REQUEST_VOTE_RESULT,
        .request_vote_result = {.term = 3, .pre_vote = raft_tribool_false}};
    struct raft_message result = {.type = RAFT_IO_APPEND_ENTRIES_RESULT,
        .append_entries_result = {.term = 3, .rejected = 8, .last_log_index = UINT64_MAX}};

    ck_assert_int_eq(judged(vote), WD_GATE_PASS);
    vote.request_vote.candidate_id = 3; /* for somebody else */
    ck_assert_int_eq(judged(vote), WD_GATE_MALFORMED);
    ck_assert_int_eq(judged(answer), WD_GATE_PASS);
    answer.request_vote_result.pre_vote = (raft_tribool)9;
    ck_assert_int_eq(judged(answer), WD_GATE_MALFORMED);
    ck_assert_int_eq(judged(result), WD_GATE_PASS);
    result.append_entries_result.rejected = 9;
    ck_assert_int_eq(judged(result), WD_GATE_MALFORMED);
    ck_assert_int_eq(judged((struct raft_message){.type = 7}), WD_GATE_MALFORMED);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wd_gate");
    TCase *t = tcase_create("messages");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, test_entries);
    tcase_add_test(t, test_members);
    tcase_add_test(t, test_snapshots);
    tcase_add_test(t, test_votes_and_answers);
    suite_add_tcase(s, t);
    return run_suite(s);
}
