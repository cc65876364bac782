/* SPDX-License-Identifier: PostgreSQL
 * test_link_see.c: the owner of a link sees whole messages, however they come, and how it ends. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/pool.h"
#include "backend/row_alloc.h"
#include "base/mem.h"
#include "config/conf.h"

#include "link_int.h"
#include "run_suite.h"

/* Longer than what is waited for, and longer than what is put together. */
#define LONG_ROW  100000
#define GREAT_ROW 3000000

static struct loop loop;
static struct conf conf;
static struct rows_header *rows;
static struct backend be;
static struct pool *pool;
static struct link *link_;
static int server;

/* What the owner heard: the type of each message seen, then how it ended. */
static char heard[128];
static struct buf told;   /* to the client */
static char stops_at;     /* on_tee is false at a message of this type */
static size_t seen_bytes; /* in bodies */
static bool is_lost;

static void hear(char what)
{
    size_t n = strlen(heard);

    ck_assert_uint_lt(n + 1, sizeof heard);
    heard[n] = what;
    heard[n + 1] = '\0';
}

static void on_bytes(void *owner, struct link *link, const char *p, size_t n)
{
    (void)owner;
    (void)link;
    buf_put(&told, p, n);
}

static bool on_error(void *owner, struct link *link, const struct errmsg *m)
{
    (void)owner;
    (void)link;
    (void)m;
    hear('E');
    return false;
}

static bool on_tee(void *owner, struct link *link, char type, struct slice body)
{
    (void)owner;
    (void)link;
    hear(type);
    seen_bytes += body.n;
    return type != stops_at;
}

static void on_tee_end(void *owner, struct link *link, enum link_tee_end end)
{
    (void)owner;
    (void)link;
    hear(".!lx"[end]);
}

static void on_own_row(void *owner, struct link *link, struct slice body)
{
    (void)owner;
    (void)link;
    hear('r');
    seen_bytes += body.n;
}

static void on_columns(
    void *owner, struct link *link, uint32_t serial, char type, struct slice body)
{
    (void)owner;
    (void)link;
    hear(type);
    hear((char)('0' + serial));
    seen_bytes += body.n;
}

static void on_tag(void *owner, struct link *link, struct slice tag)
{
    (void)owner;
    (void)link;
    (void)tag;
}

static void on_link(void *owner, struct link *link)
{
    (void)owner;
    (void)link;
}

static void on_lost(void *owner, struct link *link, const struct err *err, bool was_told)
{
    (void)owner;
    (void)link;
    (void)err;
    (void)was_told;
    is_lost = true;
    hear('X');
}

static const struct link_owner_ops owner_ops = {.on_bytes = on_bytes,
    .on_error = on_error,
    .on_tee = on_tee,
    .on_own_row = on_own_row,
    .on_columns = on_columns,
    .on_tee_end = on_tee_end,
    .on_tag = on_tag,
    .on_quiet = on_link,
    .on_settled = on_link,
    .on_lost = on_lost};

static void on_pool(struct pool *p, struct link *link)
{
    (void)p;
    (void)link;
}

static const struct link_pool_ops pool_ops = {
    .on_added = on_pool, .on_gone = on_pool, .on_idle = on_pool, .on_cleaning = on_pool};

static void setup(void)
{
    size_t n = (rows_bytes(sizeof(struct link_row), ROWS_LINK_STATEMENT_BYTES, 1, 1) + 127) / 64;
    int fd[2];

    memset(&be, 0, sizeof be);
    loop_init(&loop);
    rows = aligned_alloc(64, n * 64);
    memset(rows, 0, n * 64);
    rows_init(rows, sizeof(struct link_row), ROWS_LINK_STATEMENT_BYTES, 1, 1);
    be.loop = &loop;
    be.conf = &conf;
    be.pool_ops = &pool_ops;
    be.link_rows = rows;
    be.row_alloc = row_alloc_new(rows, 0);
    be.read_buf = malloc(BACKEND_READ_BYTES);
    list_init(&be.links);
    varset_store_init(&be.varsets);
    paramset_store_init(&be.paramsets);
    pool = mem_alloc_zero(sizeof *pool + 2);
    pool->be = &be;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    server = fd[1];
    link_ = link_adopt(pool, fd[0]);
    link_->phase = LINK_IDLE;
    link_lend(link_, &told, &owner_ops);
    heard[0] = '\0';
    stops_at = '\0';
    seen_bytes = 0;
    is_lost = false;
}

static void teardown(void)
{
    if (link_->phase != LINK_CLOSED)
        link_close(link_);
    loop_poll(&loop);
    close(server);
    row_alloc_free(&be.row_alloc);
    varset_store_fini(&be.varsets);
    paramset_store_fini(&be.paramsets);
    loop_fini(&loop);
    buf_free(&told);
    mem_free(pool);
    free(be.read_buf);
    free(rows);
}

static void send_all(const char *msgs)
{
    static const char types[] = " QFPBDECS";

    /* A capital letter has OP_TEE. */
    for (; *msgs != '\0'; msgs++) {
        const char *at = strchr(types, *msgs >= 'a' ? *msgs - 'a' + 'A' : *msgs);

        ck_assert_ptr_nonnull(at);
        if (*msgs >= 'a')
            link_expect(link_, (unsigned)(at - types));
        else
            ck_assert(link_expect_tee(link_, (unsigned)(at - types)));
    }
}

/* A message of a server: R is a long row, G a great one, e an error that is FATAL. */
static void put_reply(struct buf *out, char what)
{
    static const char fields[] = "SERROR\0C42P01\0Mno\0";
    static const char fatal[] = "SFATAL\0C57P01\0Mno\0";
    uint32_t body = what == 'R' ? LONG_ROW : what == 'G' ? GREAT_ROW : 7;
    uint32_t i;

    if (what == 'E' || what == 'e')
        body = sizeof fields;
    else if (what == 'Z')
        body = 1;
    buf_put_byte(out, what == 'R' || what == 'G' ? 'D' : what == 'e' ? 'E' : what);
    buf_put_u32(out, body + 4);
    if (what == 'E' || what == 'e')
        buf_put(out, what == 'E' ? fields : fatal, sizeof fields);
    for (i = 0; what != 'E' && what != 'e' && i < body; i++)
        buf_put_byte(out, what == 'Z' ? 'I' : (char)('a' + i % 23));
}

static void serve(const char *p, size_t n, size_t step)
{
    size_t at = 0;
    ssize_t k;

    while (at < n && !is_lost) {
        k = write(server, p + at, n - at < step ? n - at : step);
        ck_assert_int_gt(k, 0);
        at += (size_t)k;
        do
            link_on_readable(&link_->stream);
        while (!is_lost && recv(stream_fd(&link_->stream), &(char){0}, 1, MSG_PEEK) == 1);
    }
}

/* Sends, answers in steps of so many bytes; the client gets all of it. */
static void run(const char *msgs, const char *replies, size_t step)
{
    struct buf out = {0};

    send_all(msgs);
    for (; *replies != '\0'; replies++)
        put_reply(&out, *replies);
    serve(out.data, out.len, step);
    ck_assert_uint_eq(told.len, out.len);
    ck_assert_mem_eq(told.data, out.data, out.len);
    buf_free(&out);
}

/* Types are those that a server sends: 1 ParseComplete, 2 BindComplete, n NoData, s suspended. */
static const struct {
    const char *sent;    /* capital letters with OP_TEE */
    const char *replies; /* N: NoticeResponse */
    const char *heard;
} cases[] = {
    {"q", "TDDCZ", ""},
    {"Q", "TDDCZ", "TDDCZ."},
    {"Q", "TDCNTDCZ", "TDCTDCZ."},
    {"qQ", "TDDCZTCZ", "TCZ."},
    {"Qq", "TCZTDDCZ", "TCZ."},
    {"Q", "IZ", "IZ."},
    {"Q", "TDNEZ", "TD!E"},
    {"QQ", "EZTDCZ", "!ETDCZ."},
    {"Q", "TRDCZ", "TDDCZ."},
    {"Q", "TRRCZ", "TDDCZ."},
    {"Q", "TDGDCZ", "TDl"},
    {"QQ", "TGDCZTDCZ", "TlTDCZ."},
    {"F", "VZ", "VZ."},
    {"pbdes", "12TDDCZ", ""},
    {"pbDEs", "12TDDCZ", "T.DDC."},
    {"pbDEs", "12nCZ", "n.C."},
    {"PBDEs", "12TDDCZ", "1.2.T.DDC."},
    {"pDs", "1tTZ", "tT."},
    {"pDs", "1tnZ", "tn."},
    {"bEs", "2DDsZ", "DDs."},
    {"bEs", "2IZ", "I."},
    {"bEs", "2DDEZ", "DD!E"},
    {"pbDEs", "EZ", "!!E"},
    {"pbDEsbEs", "1EZ2DCZ", "!!EDC."},
    {"pbDEs", "12TEZ", "T.!E"},
    {"bEs", "2HddcCZ", "HddcC."},
    {"bDEs", "2TRRCZ", "T.DDC."},
    {"bEbEs", "2DGDC2DCZ", "DlDC."},
    {"Q", "TDe", "TDE"},
};

START_TEST(whole_messages_are_seen)
{
    run(cases[_i].sent, cases[_i].replies, 65536);
    ck_assert_str_eq(heard, cases[_i].heard);
}
END_TEST

START_TEST(also_in_small_pieces)
{
    bool is_long = strpbrk(cases[_i].replies, "RG") != NULL;

    run(cases[_i].sent, cases[_i].replies, is_long ? 997 : 1);
    ck_assert_str_eq(heard, cases[_i].heard);
}
END_TEST

START_TEST(a_body_is_all_there)
{
    run("Q", "TRCZ", 4096);
    ck_assert_uint_eq(seen_bytes, 7 + LONG_ROW + 7 + 1);
}
END_TEST

/* memqcache_maxcache may be more than what is put together for others. */
START_TEST(what_the_cache_takes_is_not_too_long)
{
    conf.memqcache_maxcache_bytes = GREAT_ROW + PROTO_HEADER_BYTES;
    run("Q", "TGCZ", 65536);
    conf.memqcache_maxcache_bytes = 0;
    ck_assert_str_eq(heard, "TDCZ.");
}
END_TEST

/* A question of ours: its rows are seen, however long, and the client gets nothing. */
START_TEST(rows_of_a_question_are_seen)
{
    struct buf out = {0};
    const char *p;

    link_expect(link_, OP_QUERY | OP_SWALLOW | OP_ROWS);
    link_expect(link_, OP_QUERY | OP_SWALLOW);
    link_expect(link_, OP_QUERY);
    for (p = "TDNRDCZTDCZ"; *p != '\0'; p++)
        put_reply(&out, *p);
    serve(out.data, out.len, _i == 0 ? 65536 : 7);
    ck_assert_str_eq(heard, "rrr");
    ck_assert_uint_eq(seen_bytes, LONG_ROW + 14);
    ck_assert_uint_eq(told.len, 0);
    ck_assert(!link_own_failed(link_));
    buf_free(&out);
    run("", "TDCZ", 65536);
    ck_assert_str_eq(heard, "rrr");
}
END_TEST

START_TEST(a_question_that_fails)
{
    struct buf out = {0};

    link_expect(link_, OP_QUERY | OP_SWALLOW | OP_ROWS);
    link_expect(link_, OP_QUERY);
    put_reply(&out, 'T');
    put_reply(&out, 'D');
    put_reply(&out, 'E');
    put_reply(&out, 'Z');
    serve(out.data, out.len, 65536);
    ck_assert_str_eq(heard, "rE");
    ck_assert(link_own_failed(link_));
    ck_assert(link_error_is_ours(link_));
    link_forget_failure(link_);
    buf_free(&out);
    run("", "EZ", 65536);
    ck_assert(!link_own_failed(link_));
    ck_assert(!link_error_is_ours(link_));
}
END_TEST

START_TEST(columns_come_with_the_serial_of_their_op)
{
    link_expect(link_, OP_PARSE);
    link_expect(link_, OP_DESCRIBE | OP_COLUMNS);
    link_expect(link_, OP_DESCRIBE);
    link_expect(link_, OP_DESCRIBE | OP_COLUMNS);
    link_expect(link_, OP_BIND);
    link_expect(link_, OP_DESCRIBE | OP_COLUMNS | OP_TEE);
    link_expect(link_, OP_EXECUTE | OP_TEE);
    link_expect(link_, OP_SYNC);
    run("", "1tTtTtn2TDCZ", _i == 0 ? 65536 : 1);
    ck_assert_str_eq(heard, "t1T1t3n3T5T.DC.");
}
END_TEST

START_TEST(who_wants_no_more_hears_no_more)
{
    stops_at = 'D';
    run("QQ", "TDDCZIZ", 65536);
    ck_assert_str_eq(heard, "TDIZ.");
    heard[0] = '\0';
    buf_empty(&told);
    stops_at = 'C';
    run("bEbEs", "2DC2DCZ", 65536);
    ck_assert_str_eq(heard, "DCDC");
}
END_TEST

START_TEST(what_is_lost_is_told)
{
    run("QQbEs", "TDDCZTD", 65536);
    shutdown(server, SHUT_WR);
    link_on_readable(&link_->stream);
    ck_assert_str_eq(heard, "TDDCZ.TDxxX");
}
END_TEST

START_TEST(what_is_lost_in_its_last_message_is_told_once)
{
    struct buf out = {0};

    send_all("pDQ");
    put_reply(&out, '1');
    buf_put_byte(&out, 'T');
    buf_put_u32(&out, LONG_ROW);
    while (out.len < LONG_ROW / 2)
        buf_put_byte(&out, 'x');
    serve(out.data, out.len, 65536);
    ck_assert_str_eq(heard, "");
    shutdown(server, SHUT_WR);
    link_on_readable(&link_->stream);
    ck_assert_str_eq(heard, "xxX");
    buf_free(&out);
}
END_TEST

START_TEST(a_reply_that_does_not_fit_ends_it)
{
    run("bEQ", "1", 65536);
    ck_assert_str_eq(heard, "xx");
    ck_assert(!link_expect_tee(link_, OP_QUERY));
}
END_TEST

START_TEST(what_is_skipped_is_not_heard_of)
{
    run("pE", "E", 65536);
    ck_assert_str_eq(heard, "!E");
    ck_assert(!link_expect_tee(link_, OP_EXECUTE));
    link_expect(link_, OP_SYNC);
    ck_assert(link_expect_tee(link_, OP_QUERY));
    buf_empty(&told);
    run("", "ZTCZ", 65536);
    ck_assert_str_eq(heard, "!ETCZ.");
}
END_TEST

/* The rest of it is drained while the link is cleaned, and nobody hears of it. */
START_TEST(who_has_left_hears_nothing)
{
    struct buf out = {0};

    conf.connection_cache = true;
    send_all("Q");
    put_reply(&out, 'T');
    put_reply(&out, 'R');
    serve(out.data, LONG_ROW / 2, 65536);
    link_release(link_, true);
    ck_assert_int_eq(link_->phase, LINK_CLEANING);
    put_reply(&out, 'C');
    put_reply(&out, 'Z');
    serve(out.data + LONG_ROW / 2, out.len - LONG_ROW / 2, 65536);
    ck_assert_int_eq(link_->phase, LINK_IDLE);
    ck_assert_str_eq(heard, "T");
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("link_see");
    TCase *tc = tcase_create("tee");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, whole_messages_are_seen, 0, sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(tc, also_in_small_pieces, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tc, a_body_is_all_there);
    tcase_add_test(tc, what_the_cache_takes_is_not_too_long);
    tcase_add_loop_test(tc, rows_of_a_question_are_seen, 0, 2);
    tcase_add_test(tc, a_question_that_fails);
    tcase_add_loop_test(tc, columns_come_with_the_serial_of_their_op, 0, 2);
    tcase_add_test(tc, who_wants_no_more_hears_no_more);
    tcase_add_test(tc, what_is_lost_is_told);
    tcase_add_test(tc, what_is_lost_in_its_last_message_is_told_once);
    tcase_add_test(tc, a_reply_that_does_not_fit_ends_it);
    tcase_add_test(tc, what_is_skipped_is_not_heard_of);
    tcase_add_test(tc, who_has_left_hears_nothing);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
