/* SPDX-License-Identifier: PostgreSQL
 * test_expect.c: the queue of replies a server owes, against the server's rules. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backend/expect.h"
#include "wire/proto.h"

#include "expect_script.h"
#include "run_suite.h"

static struct expect e;

static void setup(void)
{
    expect_init(&e);
}

static void teardown(void)
{
    expect_fini(&e);
}

static void send_all(const char *msgs, unsigned flags)
{
    expect_script_send(&e, msgs, flags);
}

static void reply_all(const char *types)
{
    for (; *types != '\0'; types++)
        ck_assert_int_eq(expect_reply(&e, *types), EXPECT_FORWARD);
}

START_TEST(serials)
{
    uint32_t third;

    expect_push(&e, OP_PARSE);
    ck_assert_uint_eq(expect_head_serial(&e), 0);
    expect_push(&e, OP_QUERY);
    third = expect_next_serial(&e);
    expect_push(&e, OP_QUERY | OP_SWALLOW);
    (void)expect_reply(&e, BE_PARSE_COMPLETE);
    (void)expect_reply(&e, BE_READY);
    ck_assert_uint_eq(expect_head_serial(&e), third);
    /* Across a COPY, whose end and ignored Syncs have no reply. */
    (void)expect_reply(&e, BE_READY);
    expect_push(&e, OP_EXECUTE);
    expect_push(&e, OP_SYNC);
    expect_push(&e, OP_COPY_END);
    expect_push(&e, OP_SYNC);
    third = expect_next_serial(&e);
    expect_push(&e, OP_QUERY);
    (void)expect_reply(&e, BE_COPY_IN);
    (void)expect_reply(&e, BE_COMMAND_COMPLETE);
    (void)expect_reply(&e, BE_READY);
    ck_assert_uint_eq(expect_head_serial(&e), third);
}
END_TEST

/* A string of statements goes on behind them, with another serial. */
START_TEST(serial_behind_copies)
{
    uint32_t serial = expect_next_serial(&e);
    unsigned n;
    int i;

    expect_push(&e, OP_QUERY);
    ck_assert_uint_eq(expect_count_copied(&e), 0);
    for (i = 0; i < 2; i++) {
        (void)expect_reply(&e, BE_COPY_IN);
        expect_push(&e, OP_SYNC);
        expect_push(&e, OP_COPY_END);
        n = expect_count_copied(&e);
        ck_assert_uint_eq(n, 2);
        (void)expect_reply(&e, BE_COMMAND_COMPLETE);
        serial += n;
        ck_assert_uint_eq(expect_head_serial(&e), serial);
        ck_assert_uint_eq(expect_count_copied(&e), 0);
    }
}
END_TEST

START_TEST(simple_query_ends_with_ready)
{
    send_all("Q", 0);
    reply_all("TDDC");
    ck_assert(!expect_is_quiet(&e));
    reply_all("Z");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(error_in_simple_query_still_owes_ready)
{
    send_all("QQ", 0);
    reply_all("E");
    ck_assert(!expect_is_quiet(&e));
    reply_all("ZCZ");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(extended_sequence)
{
    send_all("PBDES", 0);
    reply_all("12TDDCZ");
    ck_assert(expect_is_quiet(&e));
    send_all("PDS", 0);
    reply_all("1tnZ");
    ck_assert(expect_is_quiet(&e));
    send_all("BES", 0);
    reply_all("2DsZ");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(error_skips_to_sync)
{
    send_all("PBDESPBES", 0);
    reply_all("1E"); /* Bind failed: D and E of this sequence get nothing */
    ck_assert_int_eq(expect_head(&e), OP_SYNC);
    reply_all("Z12CZ");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(error_before_sync_was_sent)
{
    send_all("PB", 0);
    reply_all("E");
    ck_assert(e.skipping);
    ck_assert(!expect_is_quiet(&e));
    ck_assert(expect_needs_sync(&e));
    send_all("DEQ", 0); /* all ignored by the server, the simple query too */
    ck_assert_int_eq(e.len, 0);
    send_all("S", 0);
    reply_all("Z");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(error_at_sync_time)
{
    send_all("PBES", 0);
    reply_all("12C");
    reply_all("EZ"); /* a deferred constraint fails at the implicit commit */
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(swallowed_replies_do_not_reach_the_client)
{
    send_all("Q", OP_SWALLOW);
    send_all("Q", 0);
    ck_assert(expect_head_is_ours(&e));
    ck_assert_int_eq(expect_reply(&e, 'C'), EXPECT_SWALLOW);
    ck_assert_int_eq(expect_reply(&e, 'Z'), EXPECT_SWALLOW);
    ck_assert(!expect_head_is_ours(&e));
    reply_all("TDCZ");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

static void swallow_all(const char *types)
{
    for (; *types != '\0'; types++)
        ck_assert_int_eq(expect_reply(&e, *types), EXPECT_SWALLOW);
}

START_TEST(an_exchange_of_ours_is_told_from_the_clients)
{
    ck_assert(!expect_exchange_is_ours(&e));
    send_all("Q", OP_SWALLOW);
    ck_assert(expect_exchange_is_ours(&e));
    send_all("C", OP_SWALLOW); /* in a sequence of the client's */
    send_all("BES", 0);
    ck_assert(expect_exchange_is_ours(&e));
    swallow_all("CZ");
    ck_assert(expect_head_is_ours(&e));
    ck_assert(!expect_exchange_is_ours(&e));
    swallow_all("3");
    reply_all("2CZ");
    send_all("PCS", OP_SWALLOW);
    send_all("Q", 0);
    ck_assert(expect_exchange_is_ours(&e));
    swallow_all("13Z");
    ck_assert(!expect_exchange_is_ours(&e));
}
END_TEST

START_TEST(copy_in_ignores_early_sync)
{
    send_all("PBES", 0); /* the driver sends Sync at once */
    reply_all("12G");
    send_all("cS", 0);
    reply_all("C");
    ck_assert_int_eq(e.len, 1);
    reply_all("Z");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(what_the_head_has_said)
{
    ck_assert(!expect_head_has_done(&e));
    send_all("EQQS", 0);
    reply_all("C");
    ck_assert(!expect_head_has_done(&e)); /* that was the Execute */
    reply_all("TD");
    ck_assert(!expect_head_has_done(&e));
    reply_all("C");
    ck_assert(expect_head_has_done(&e));
    reply_all("E");
    ck_assert(!expect_head_has_done(&e));
    reply_all("Z");
    ck_assert(!expect_head_has_done(&e));
    reply_all("I");
    ck_assert(expect_head_has_done(&e));
    reply_all("Z");
    ck_assert(!expect_head_has_done(&e)); /* a Sync says nothing of the kind */
    reply_all("Z");
}
END_TEST

START_TEST(copy_in_simple)
{
    send_all("Q", 0);
    reply_all("G");
    send_all("c", 0);
    reply_all("CZ");
    ck_assert(expect_is_quiet(&e));
    send_all("c", 0); /* stray: the server ignores it */
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(two_copies_in_one_query)
{
    send_all("Q", 0);
    reply_all("G");
    send_all("c", 0);
    reply_all("CG");
    send_all("c", 0);
    reply_all("CZ");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(copy_error_without_doubt)
{
    send_all("Q", 0);
    reply_all("G");
    reply_all("E");
    send_all("c", 0);
    reply_all("Z");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

/* Asks what the link asks: C is the Close, S the Sync, both ours. */
static void ask(void)
{
    ck_assert(expect_may_ask(&e));
    send_all("CS", OP_SWALLOW);
}

/* libpq's: with the Execute a Sync, which the server mostly has read when it fails. */
START_TEST(copy_error_with_early_sync)
{
    send_all("PBES", 0);
    reply_all("12GE");
    ck_assert(expect_is_stuck(&e));
    ck_assert(!expect_may_ask(&e)); /* it would be skipped, and its Sync be the end of that */
    ck_assert(expect_needs_sync(&e));
    send_all("cS", 0);
    ck_assert(!expect_is_stuck(&e));
    reply_all("Z");
    ask();
    swallow_all("3Z");
    ck_assert(expect_is_quiet(&e));
    ck_assert(expect_is_certain(&e));
}
END_TEST

/* It had not read it: the same, but that the client has two ReadyForQuery. */
START_TEST(copy_error_before_early_sync)
{
    send_all("PBES", 0);
    reply_all("12G");
    send_all("cS", 0);
    reply_all("EZ");
    ask();
    send_all("Q", 0); /* need not wait */
    ck_assert_uint_eq(expect_next_serial(&e), 9);
    reply_all("Z");
    ck_assert(!expect_head_is_spare(&e));
    swallow_all("3Z");
    reply_all("CZ");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

/* No other Sync was sent: it is this one's, and certain. */
START_TEST(copy_error_and_only_one_sync)
{
    send_all("PBES", 0);
    reply_all("12GEZ");
    ck_assert(expect_is_quiet(&e));
    ck_assert(expect_is_certain(&e));
}
END_TEST

START_TEST(copy_error_in_a_query_with_syncs)
{
    send_all("Q", 0);
    reply_all("G");
    send_all("SSc", 0);
    reply_all("EZ");
    ask();
    reply_all("Z");
    swallow_all("3Z");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

/* What the replies cannot tell. */
START_TEST(copy_error_that_is_lost)
{
    send_all("PBES", 0);
    reply_all("12G");
    send_all("cPBES", 0); /* skipped, or executed? */
    reply_all("EZ");
    ck_assert(e.lost);
    ck_assert(!expect_is_quiet(&e));
    reply_all("12CZ"); /* forwarded, however many come */
    expect_fini(&e);
    send_all("Q", 0);
    reply_all("G");
    send_all("S", 0);
    expect_push(&e, OP_MADE_PARSED);
    send_all("S", 0);
    reply_all("EZ");
    ck_assert(!expect_may_ask(&e));
    reply_all("Z");
    ck_assert(e.lost);
}
END_TEST

/* The server dies: what may have been ignored was, and the client ends its COPY with another Sync.
 */
START_TEST(copy_whose_server_dies)
{
    static const struct {
        const char *sent;  /* behind the G */
        const char *heard; /* then */
        const char *left;  /* Q E S */
        bool is_query;
        bool is_held;
        bool failed;
    } rows[] = {{"S", "", "E", false, false, false}, {"ScS", "", "ES", false, false, false},
        {"Sc", "", "E", false, false, false}, {"SScS", "E", "S", false, false, true},
        {"S", "E", "", false, false, true}, {"SSc", "E", "", false, false, true},
        {"ScQ", "E", "SQ", false, false, true}, {"ScS", "EZ", "", false, false, false},
        {"ScS", "EZ", "S", false, true, true}, {"SSc", "", "Q", true, false, false},
        {"SScS", "", "QS", true, false, false}, {"SSc", "E", "Q", true, false, false},
        {"SSc", "EZ", "", true, false, false}, {"ScQ", "EZ", "Q", true, false, false}};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char left[16] = "";
        unsigned k;
        unsigned n = 0;

        expect_fini(&e);
        expect_init(&e);
        send_all(rows[i].is_query ? "Q" : "E", 0);
        reply_all("G");
        send_all(rows[i].sent, 0);
        reply_all(rows[i].heard);
        e.is_held = rows[i].is_held;
        expect_on_end(&e);
        for (k = 0; k < e.len; k++)
            if ((expect_peek(&e, k) & OP_MASK) != OP_COPY_END)
                left[n++] = expect_peek(&e, k) == OP_SYNC      ? 'S'
                            : expect_peek(&e, k) == OP_EXECUTE ? 'E'
                                                               : 'Q';
        ck_assert_msg(strcmp(left, rows[i].left) == 0, "%zu: %s", i, left);
        ck_assert(expect_is_certain(&e));
        ck_assert_msg(e.failed == rows[i].failed, "%zu", i);
    }
}
END_TEST

/* It dies behind the question, or in the midst of its answer: what is held back is owed. */
START_TEST(copy_whose_server_dies_when_asked)
{
    static const char *const heard[] = {"", "3"};
    size_t i;

    for (i = 0; i < sizeof heard / sizeof heard[0]; i++) {
        expect_fini(&e);
        expect_init(&e);
        send_all("Q", 0);
        reply_all("G");
        send_all("Sc", 0);
        reply_all("EZ");
        e.is_held = true;
        ask();
        swallow_all(heard[i]);
        expect_on_end(&e);
        ck_assert_uint_gt(e.len, 0);
        ck_assert_uint_eq(expect_peek(&e, 0), OP_SYNC);
        ck_assert(e.failed);
        ck_assert(expect_is_certain(&e));
    }
}
END_TEST

/* A server that copies, and fails at some message; what it answers is put into `out`. */
struct copier {
    char out[64];
    unsigned nout;
    unsigned fails_at; /* so many messages are read of the COPY before */
    bool is_query;
    bool copies;
    bool skips;
};

static void copier_answer(struct copier *k, const char *types)
{
    while (*types != '\0')
        k->out[k->nout++] = *types++;
}

static void copier_read(struct copier *k, char type)
{
    if (k->copies && k->fails_at == 0) {
        copier_answer(k, k->is_query ? "EZ" : "E");
        k->copies = false;
        k->skips = !k->is_query;
    }
    if (k->copies) {
        k->fails_at--;
    } else if (type == 'S') {
        k->skips = false;
        copier_answer(k, "Z");
    } else if (!k->skips && type == 'C') {
        copier_answer(k, "3");
    } else if (!k->skips && type == 'Q') {
        copier_answer(k, "CZ");
    }
}

/* Wherever it fails and however far its answers lag behind: what is ours is swallowed, what is the
 * client's is not, and in the end nothing is owed. */
START_TEST(copy_error_anywhere)
{
    static const char *const sent[] = {
        "S_cS", "S__cS", "_S_S_cS", "SScS", "ScSQ", "ScSQQ", "S_ScSS", "cS", "S__S", "ScSSQ"};
    unsigned nrandom = 1;
    unsigned nasked = 0;
    int round;

    for (round = 0; round < 20000; round++) {
        struct copier k = {.is_query = round % 2 == 0, .copies = true};
        const char *p = sent[(round / 2) % (int)(sizeof sent / sizeof sent[0])];
        char mine[64] = "";
        unsigned nsent = 0;
        unsigned ntaken = 0;
        const char *done = strchr(p, 'c');
        size_t n = strlen(p);

        nrandom = nrandom * 1664525U + 1013904223U;
        k.fails_at = (nrandom >> 8) % (unsigned)(done == NULL ? n : (size_t)(done - p) + 1);
        expect_fini(&e);
        expect_init(&e);
        send_all(k.is_query ? "Q" : "E", 0);
        reply_all("G");
        while (nsent < n || ntaken < k.nout || expect_may_ask(&e)) {
            nrandom = nrandom * 1664525U + 1013904223U;
            if (expect_may_ask(&e) && (nrandom >> 8) % 2 == 0) {
                ask();
                copier_read(&k, 'C');
                copier_read(&k, 'S');
                mine[k.nout - 2] = mine[k.nout - 1] = 1;
                nasked++;
            } else if (nsent < n && (nrandom >> 9) % 2 == 0) {
                const char msg[2] = {p[nsent++], '\0'};

                send_all(msg, 0);
                copier_read(&k, msg[0]);
            } else if (ntaken < k.nout) {
                if (k.out[ntaken] != 'Z' || !expect_pass_last(&e))
                    ck_assert_int_eq(expect_reply(&e, k.out[ntaken]),
                        mine[ntaken] != 0 ? EXPECT_SWALLOW : EXPECT_FORWARD);
                ntaken++;
            }
        }
        ck_assert_msg(expect_is_quiet(&e), "%s, fails at %u of %d", p, k.fails_at, round % 2);
        ck_assert(expect_is_certain(&e));
    }
    ck_assert_uint_gt(nasked, 1000);
}
END_TEST

/* A reply that is made here comes in its turn, and not at all behind an error. */
START_TEST(replies_made_here)
{
    uint64_t worked;

    expect_push(&e, OP_MADE_PARSED | OP_NOTE);
    ck_assert(expect_is_made_due(&e));
    ck_assert_int_eq(expect_take_made(&e), '1');
    ck_assert_int_eq(expect_take_made(&e), 0);
    expect_push(&e, OP_BIND);
    expect_push(&e, OP_MADE_CLOSED | OP_NOTE);
    expect_push(&e, OP_PARSE | OP_NOTE);
    expect_push(&e, OP_SYNC);
    ck_assert(!expect_is_made_due(&e));
    ck_assert_int_eq(expect_reply(&e, '2'), EXPECT_FORWARD);
    ck_assert_int_eq(expect_take_made(&e), '3');
    ck_assert_int_eq(expect_reply(&e, 'E'), EXPECT_FORWARD);
    ck_assert_uint_eq(expect_take_notes(&e, &worked), 3);
    ck_assert_uint_eq(worked, 3); /* the Parse did not work */
    expect_push(&e, OP_MADE_CLOSED | OP_NOTE);
    ck_assert_int_eq(expect_reply(&e, 'Z'), EXPECT_FORWARD);
    ck_assert_int_eq(expect_take_made(&e), '3');
    expect_push(&e, OP_BIND);
    ck_assert_int_eq(expect_reply(&e, 'E'), EXPECT_FORWARD);
    expect_push(&e, OP_MADE_PARSED | OP_NOTE); /* skipped by the server, and here */
    ck_assert(!expect_is_made_due(&e));
    ck_assert_uint_eq(expect_take_notes(&e, &worked), 2);
    ck_assert_uint_eq(worked, 1);
}
END_TEST

START_TEST(unfitting_reply_is_lost)
{
    send_all("P", 0);
    ck_assert_int_eq(expect_reply(&e, '3'), EXPECT_FORWARD);
    ck_assert(e.lost);
}
END_TEST

START_TEST(long_pipelines_grow_and_shrink)
{
    int i;
    int round;

    for (round = 0; round < 3; round++) {
        for (i = 0; i < 5000; i++)
            send_all("PBE", 0);
        send_all("S", 0);
        for (i = 0; i < 5000; i++)
            reply_all("12C");
        reply_all("Z");
        ck_assert(expect_is_quiet(&e));
        ck_assert_ptr_eq(e.op, e.fixed);
    }
}
END_TEST

START_TEST(function_call)
{
    send_all("F", 0);
    reply_all("VZ");
    send_all("F", 0);
    reply_all("EZ");
    ck_assert(expect_is_quiet(&e));
}
END_TEST

START_TEST(needs_sync_after_unsynced_messages)
{
    ck_assert(!expect_needs_sync(&e));
    send_all("PB", 0);
    ck_assert(expect_needs_sync(&e));
    send_all("S", 0);
    ck_assert(!expect_needs_sync(&e));
}
END_TEST

static bool is_same(const struct expect *a, const struct expect *b)
{
    unsigned i;

    for (i = 0; i < a->len && a->len == b->len; i++)
        if (expect_peek(a, i) != expect_peek(b, i))
            return false;
    return a->len == b->len && a->skipping == b->skipping && a->failed == b->failed &&
           a->copy_in == b->copy_in && a->lost == b->lost && a->spare == b->spare &&
           a->last == b->last && a->nended == b->nended && a->nnotes == b->nnotes &&
           a->notes == b->notes && a->is_seen == b->is_seen && a->pushed == b->pushed;
}

/* What a CopyDone that is sent now belongs to. */
START_TEST(ends_in_execute)
{
    static const struct {
        const char *sent;
        bool yes;
    } rows[] = {{"", false}, {"S", false}, {"PBE", true}, {"PBES", true}, {"PBEScS", true},
        {"Q", false}, {"PBESQ", false}, {"PBED", false}, {"PBESP", false}};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        send_all(rows[i].sent, 0);
        ck_assert_msg(expect_ends_in_execute(&e) == rows[i].yes, "%s", rows[i].sent);
        expect_fini(&e);
        expect_init(&e);
    }
}
END_TEST

/* A sequence is open until its Sync, however much of it is answered. */
START_TEST(is_open_until_sync)
{
    static const struct {
        const char *sent;
        const char *replies;
        bool yes;
    } rows[] = {{"", "", false}, {"Q", "", false}, {"QPBE", "CZ", true}, {"PBE", "12C", true},
        {"P", "E", true}, {"PBES", "12CZ", false}, {"PBEQ", "12C", false}, {"PBEF", "", false},
        {"PBES", "E", false}, {"PBESP", "12CZ1", true}, {"PBE", "12G", true}, {"Qc", "GCZ", false},
        {"PBESc", "12GC", true}, {"PBEScS", "12GCZ", false}};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        send_all(rows[i].sent, 0);
        reply_all(rows[i].replies);
        ck_assert_msg(expect_is_open(&e) == rows[i].yes, "%s %s", rows[i].sent, rows[i].replies);
        expect_fini(&e);
        expect_init(&e);
    }
}
END_TEST

/* What no Sync follows: only its error is told, unless it was asked for. */
START_TEST(hushed_but_for_errors)
{
    send_all("PSPBE", 0);
    expect_hush(&e, 3);
    ck_assert_int_eq(expect_reply(&e, '1'), EXPECT_FORWARD);
    ck_assert_int_eq(expect_reply(&e, 'Z'), EXPECT_FORWARD);
    ck_assert_int_eq(expect_reply(&e, '1'), EXPECT_FORWARD); /* kept */
    ck_assert_int_eq(expect_reply(&e, '2'), EXPECT_SWALLOW);
    ck_assert_int_eq(expect_reply(&e, 'D'), EXPECT_SWALLOW);
    ck_assert_int_eq(expect_reply(&e, 'E'), EXPECT_FORWARD);
    ck_assert(e.skipping);
    send_all("SP", OP_SWALLOW);
    expect_hush(&e, 0);
    ck_assert_int_eq(expect_reply(&e, 'Z'), EXPECT_SWALLOW);
    ck_assert_int_eq(expect_reply(&e, 'E'), EXPECT_SWALLOW); /* ours is never told */
}
END_TEST

START_TEST(owes_ready_before_the_last)
{
    send_all("Q", 0);
    ck_assert(!expect_owes_ready(&e));
    send_all("P", 0);
    ck_assert(expect_owes_ready(&e));
    reply_all("Z");
    ck_assert(!expect_owes_ready(&e));
}
END_TEST

/* Whatever was sent and comes: the short way is the long one's, and the client's. */
START_TEST(passing_is_replying)
{
    static const unsigned flags[] = {0, 0, 0, OP_NOTE, OP_SWALLOW, OP_QUIET | OP_NOTE, OP_TAGS,
        OP_TAGS | OP_NOTE, OP_TEE, OP_SWALLOW | OP_ROWS, OP_COLUMNS | OP_NOTE};
    const unsigned nflags = sizeof flags / sizeof flags[0];
    static const char replies[] = "123CDDEGHIITZZZnstcdV";
    char msgs[] = "x\0\0\0\4x\0\0\0\4x\0\0\0";
    unsigned nrandom = 1;
    unsigned npassed = 0;
    uint64_t nrows = 0;
    unsigned nlast = 0;
    struct expect other;
    unsigned op;
    size_t i;
    size_t n;
    int round;
    char type;

    expect_init(&other);
    for (round = 0; round < 200000; round++) {
        nrandom = nrandom * 1664525U + 1013904223U;
        if (e.lost || e.nnotes > 50) {
            expect_fini(&e);
            expect_fini(&other);
        }
        if (e.len < 8 && (nrandom >> 8) % 3 != 0) {
            op = 1 + (nrandom >> 16) % OP_MADE_CLOSED;
            op |= op >= OP_MADE_PARSED ? 0 : flags[(nrandom >> 24) % nflags];
            if (op % 16 >= OP_SYNC)
                op &= ~(unsigned)(OP_SEEN | OP_TAGS);
            expect_push(&e, op);
            expect_push(&other, op);
        }
        while (expect_is_made_due(&e))
            ck_assert_int_eq(expect_take_made(&e), expect_take_made(&other));
        type = replies[(nrandom >> 12) % sizeof replies]; /* NUL, too */
        msgs[0] = msgs[5] = type;
        msgs[10] = 'D'; /* not whole */
        n = (size_t)(expect_pass(&e, msgs, msgs + sizeof msgs - 1, round % 7 == 0, &nrows) - msgs) /
            5;
        ck_assert(n <= 2 && (n == 0 || type != 'C' || round % 7 != 0));
        for (i = 0; i < n; i++) {
            ck_assert(!expect_head_is_ours(&other));
            ck_assert_uint_eq(expect_head_seen(&other), 0);
            ck_assert(type != 'C' || !expect_head_tells_tags(&other));
            ck_assert_int_eq(expect_reply(&other, type), EXPECT_FORWARD);
        }
        ck_assert(n == 0 || (!expect_is_made_due(&e) && e.len > 0));
        npassed += (unsigned)n;
        if (n == 0 && type == BE_READY && expect_pass_last(&e)) {
            nlast++;
            ck_assert_int_eq(expect_reply(&other, type), EXPECT_FORWARD);
            ck_assert(expect_is_quiet(&e));
        } else if (n == 0) {
            ck_assert_int_eq(expect_reply(&e, type), expect_reply(&other, type));
        }
        ck_assert(is_same(&e, &other));
    }
    ck_assert_uint_gt(npassed, 2000);
    ck_assert_uint_gt(nlast, 500);
    expect_fini(&other);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("expect");
    TCase *tc = tcase_create("rules");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, serials);
    tcase_add_test(tc, serial_behind_copies);
    tcase_add_test(tc, simple_query_ends_with_ready);
    tcase_add_test(tc, error_in_simple_query_still_owes_ready);
    tcase_add_test(tc, extended_sequence);
    tcase_add_test(tc, error_skips_to_sync);
    tcase_add_test(tc, error_before_sync_was_sent);
    tcase_add_test(tc, error_at_sync_time);
    tcase_add_test(tc, swallowed_replies_do_not_reach_the_client);
    tcase_add_test(tc, an_exchange_of_ours_is_told_from_the_clients);
    tcase_add_test(tc, copy_in_ignores_early_sync);
    tcase_add_test(tc, copy_in_simple);
    tcase_add_test(tc, what_the_head_has_said);
    tcase_add_test(tc, two_copies_in_one_query);
    tcase_add_test(tc, copy_error_without_doubt);
    tcase_add_test(tc, copy_error_with_early_sync);
    tcase_add_test(tc, copy_error_before_early_sync);
    tcase_add_test(tc, copy_error_and_only_one_sync);
    tcase_add_test(tc, copy_error_in_a_query_with_syncs);
    tcase_add_test(tc, copy_error_that_is_lost);
    tcase_add_test(tc, copy_error_anywhere);
    tcase_add_test(tc, copy_whose_server_dies);
    tcase_add_test(tc, copy_whose_server_dies_when_asked);
    tcase_add_test(tc, replies_made_here);
    tcase_add_test(tc, unfitting_reply_is_lost);
    tcase_add_test(tc, long_pipelines_grow_and_shrink);
    tcase_add_test(tc, function_call);
    tcase_add_test(tc, needs_sync_after_unsynced_messages);
    tcase_add_test(tc, ends_in_execute);
    tcase_add_test(tc, is_open_until_sync);
    tcase_add_test(tc, hushed_but_for_errors);
    tcase_add_test(tc, owes_ready_before_the_last);
    tcase_add_test(tc, passing_is_replying);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
