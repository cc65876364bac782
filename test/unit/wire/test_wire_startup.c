/* SPDX-License-Identifier: PostgreSQL
 * test_wire_startup.c: the first packet: every kind, every way to get it wrong, `options`. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/startup.h"

#include "run_suite.h"

/* Builds a packet around `body`, with the right length unless `len` is given. */
static struct buf packet(uint32_t len, uint32_t version, const char *body, size_t n)
{
    struct buf b = {0};

    buf_put_u32(&b, len == 0 ? (uint32_t)(8 + n) : len);
    buf_put_u32(&b, version);
    buf_put(&b, body, n);
    return b;
}

#define PACKET(version, lit) packet(0, version, lit, sizeof(lit) - 1)

static void assert_bad(struct buf b, const char *sqlstate, const char *msg)
{
    struct startup st;
    struct err err = {0};

    ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_BAD);
    ck_assert_str_eq(err.sqlstate, sqlstate);
    ck_assert_str_eq(err.msg, msg);
    ck_assert_int_eq(err.severity, ERR_FATAL);
    buf_free(&b);
}

START_TEST(decodes_a_normal_packet)
{
    struct buf b =
        PACKET(PROTO_3_0, "user\0alice\0database\0shop\0application_name\0psql\0"
                          "options\0-c a=1\0replication\0false\0client_encoding\0UTF8\0\0");
    struct startup st;
    struct err err = {0};

    buf_put(&b, "Q", 1); /* what follows is not ours */
    ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_NORMAL);
    ck_assert_uint_eq(st.packet_bytes, b.len - 1);
    ck_assert_uint_eq(st.version, PROTO_3_0);
    ck_assert(slice_eq_str(st.user, "alice"));
    ck_assert(slice_eq_str(st.database, "shop"));
    ck_assert(slice_eq_str(st.options, "-c a=1"));
    ck_assert(slice_eq_str(st.replication, "false"));
    ck_assert(!st.is_replication);
    ck_assert_uint_eq(st.nparams, 2);
    ck_assert(slice_eq_str(st.params[0].name, "application_name"));
    ck_assert(slice_eq_str(st.params[0].value, "psql"));
    ck_assert(slice_eq_str(st.params[1].name, "client_encoding"));
    ck_assert_uint_eq(st.nunknown, 0);
    buf_free(&b);
}
END_TEST

START_TEST(every_prefix_needs_more)
{
    struct buf b = PACKET(PROTO_3_2, "user\0alice\0database\0shop\0\0");
    struct startup st;
    struct err err = {0};
    size_t n;

    for (n = 0; n < b.len; n++)
        ck_assert_int_eq(startup_decode(slice_of(b.data, n), &st, &err), STARTUP_NEED_MORE);
    ck_assert_int_eq(startup_decode(slice_of(b.data, n), &st, &err), STARTUP_NORMAL);
    ck_assert(!err_is_set(&err));
    buf_free(&b);
}
END_TEST

START_TEST(database_defaults_to_user)
{
    struct buf b = PACKET(PROTO_3_0, "user\0alice\0database\0\0replication\0database\0\0");
    struct startup st;
    struct err err = {0};

    ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_NORMAL);
    ck_assert(slice_eq_str(st.database, "alice"));
    ck_assert(st.is_replication);
    buf_free(&b);
    /* The last of repeated parameters counts; an empty value is a value. */
    b = PACKET(PROTO_3_0, "user\0alice\0user\0bob\0search_path\0\0\0");
    ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_NORMAL);
    ck_assert(slice_eq_str(st.user, "bob"));
    ck_assert(slice_eq_str(st.database, "bob"));
    ck_assert_uint_eq(st.nparams, 1);
    ck_assert_uint_eq(st.params[0].value.n, 0);
    ck_assert(!st.is_replication);
    buf_free(&b);
}
END_TEST

START_TEST(newer_minors_and_protocol_options)
{
    struct buf b =
        PACKET(PROTO_VERSION(3, 9999), "_pq_.test_protocol_negotiation\0\0user\0a\0_pq_.x\0on\0\0");
    struct startup st;
    struct err err = {0};

    ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_NORMAL);
    ck_assert_uint_eq(st.version, PROTO_VERSION(3, 9999));
    ck_assert_uint_eq(st.nunknown, 2);
    ck_assert(slice_eq_str(st.unknown[0], "_pq_.test_protocol_negotiation"));
    ck_assert(slice_eq_str(st.unknown[1], "_pq_.x"));
    ck_assert_uint_eq(st.nparams, 0);
    buf_free(&b);
}
END_TEST

START_TEST(encryption_requests)
{
    struct buf b = PACKET(PROTO_SSL, "");
    struct startup st;
    struct err err = {0};

    buf_put(&b, "stuffed plain text", 18);
    ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_SSL);
    /* The caller can see that more came than the request. */
    ck_assert_uint_eq(st.packet_bytes, 8);
    buf_free(&b);
    b = PACKET(PROTO_GSSENC, "");
    ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_GSSENC);
    buf_free(&b);
    assert_bad(PACKET(PROTO_SSL, "x"), "08P01", "invalid length of startup packet");
}
END_TEST

START_TEST(cancel_requests_of_both_key_lengths)
{
    char key[PROTO_KEY_MAX_BYTES];
    struct buf b = {0};
    struct startup st;
    struct err err = {0};
    size_t n;

    memset(key, 0x80, sizeof key);
    for (n = 1; n <= sizeof key; n++) {
        buf_clear(&b);
        startup_encode_cancel(&b, -2, slice_of(key, n));
        ck_assert_uint_eq(b.len, 12 + n);
        ck_assert_int_eq(startup_decode(slice_of(b.data, b.len - 1), &st, &err), STARTUP_NEED_MORE);
        ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_CANCEL);
        ck_assert_int_eq(st.cancel_pid, -2);
        ck_assert(slice_eq(st.cancel_key, slice_of(key, n)));
    }
    buf_free(&b);
    /* No key, half a pid, and a key that is too long. */
    assert_bad(
        packet(12, PROTO_CANCEL, "\0\0\0\1", 4), "08P01", "invalid length of query cancel packet");
    assert_bad(
        packet(10, PROTO_CANCEL, "\0\0", 2), "08P01", "invalid length of query cancel packet");
    assert_bad(
        packet(269, PROTO_CANCEL, "\0\0\0\1", 4), "08P01", "invalid length of query cancel packet");
}
END_TEST

START_TEST(refuses_lengths_at_once)
{
    static const uint32_t lens[] = {1, 4, 7, 10001, 0x16030100, 0x80000000U, UINT32_MAX};
    struct startup st;
    struct err err;
    struct buf b;
    size_t i;

    for (i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        b = packet(lens[i], PROTO_3_0, "", 0);
        err_clear(&err);
        /* Four bytes are enough to know. */
        ck_assert_int_eq(startup_decode(slice_of(b.data, 4), &st, &err), STARTUP_SILENT);
        ck_assert_str_eq(err.sqlstate, "08P01");
        buf_free(&b);
    }
    err_clear(&err);
    ck_assert_int_eq(startup_decode(slice_of("\0\0\0\0", 4), &st, &err), STARTUP_SILENT);
    err_clear(&err);
    ck_assert_int_eq(startup_decode(slice_of("GET / HTTP/1.1\r\n", 16), &st, &err), STARTUP_SILENT);
}
END_TEST

START_TEST(refuses_versions_at_eight_bytes)
{
    struct startup st;
    struct err err = {0};
    struct buf b = packet(5000, PROTO_VERSION(2, 0), "", 0);

    ck_assert_int_eq(startup_decode(slice_of(b.data, 7), &st, &err), STARTUP_NEED_MORE);
    assert_bad(b, "0A000", "unsupported frontend protocol 2.0: server supports 3.0 to 3.2");
    assert_bad(packet(0, PROTO_VERSION(4, 1), "", 0), "0A000",
        "unsupported frontend protocol 4.1: server supports 3.0 to 3.2");
    assert_bad(packet(0, PROTO_VERSION(1234, 5681), "", 0), "0A000",
        "unsupported frontend protocol 1234.5681: server supports 3.0 to 3.2");
    assert_bad(packet(0, 0, "", 0), "0A000",
        "unsupported frontend protocol 0.0: server supports 3.0 to 3.2");
}
END_TEST

START_TEST(refuses_bad_layouts)
{
    const char *text = "invalid startup packet layout: expected terminator as last byte";

    assert_bad(PACKET(PROTO_3_0, ""), "08P01", text);
    assert_bad(PACKET(PROTO_3_0, "user"), "08P01", text);
    assert_bad(PACKET(PROTO_3_0, "user\0"), "08P01", text);
    assert_bad(PACKET(PROTO_3_0, "user\0alice"), "08P01", text);
    assert_bad(PACKET(PROTO_3_0, "user\0alice\0"), "08P01", text);
    assert_bad(PACKET(PROTO_3_0, "user\0alice\0\0x"), "08P01", text);
    assert_bad(PACKET(PROTO_3_0, "user\0alice\0\0database\0x\0\0"), "08P01", text);
    assert_bad(
        PACKET(PROTO_3_0, "\0"), "28000", "no PostgreSQL user name specified in startup packet");
    assert_bad(PACKET(PROTO_3_0, "database\0x\0\0"), "28000",
        "no PostgreSQL user name specified in startup packet");
    assert_bad(PACKET(PROTO_3_0, "user\0\0\0"), "28000",
        "no PostgreSQL user name specified in startup packet");
}
END_TEST

/* A packet with `n` parameters called `prefix`0, `prefix`1 ... */
static struct buf many(const char *prefix, unsigned n)
{
    struct buf body = {0};
    struct buf b;
    unsigned i;

    buf_put(&body, "user\0a", 7);
    for (i = 0; i < n; i++) {
        buf_printf(&body, "%s%u", prefix, i);
        buf_put(&body, "\0v", 3);
    }
    buf_put_byte(&body, '\0');
    b = packet(0, PROTO_3_0, body.data, body.len);
    buf_free(&body);
    return b;
}

START_TEST(limits_parameters)
{
    struct startup st;
    struct err err = {0};
    unsigned n;
    struct buf b;

    for (n = 0; n <= STARTUP_MAX_PARAMS; n++) {
        b = many("p", n);
        ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_NORMAL);
        ck_assert_uint_eq(st.nparams, n);
        buf_free(&b);
    }
    assert_bad(many("p", STARTUP_MAX_PARAMS + 1), "08P01", "too many parameters in startup packet");
    assert_bad(many("_pq_.", 9), "08P01", "too many protocol options in startup packet");
}
END_TEST

START_TEST(spellings_of_false)
{
    static const char *const yes[] = {
        "0", "f", "fa", "false", "FALSE", "n", "no", "No", "of", "off", "OFF"};
    static const char *const no[] = {
        "", "o", "on", "1", "t", "true", "database", "falsey", "00", "nope", "offf"};
    size_t i;

    for (i = 0; i < sizeof yes / sizeof yes[0]; i++)
        ck_assert_msg(startup_value_is_false(slice_of_str(yes[i])), "%s", yes[i]);
    for (i = 0; i < sizeof no / sizeof no[0]; i++)
        ck_assert_msg(!startup_value_is_false(slice_of_str(no[i])), "%s", no[i]);
}
END_TEST

static void note_option(struct slice name, struct slice value, void *ctx)
{
    buf_printf(ctx, "[%.*s|%.*s]", (int)name.n, name.p, (int)value.n, value.p);
}

START_TEST(splits_options)
{
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"", ""},
        {" \t\n\v\f\r ", ""},
        {"-c search_path=a,b", "[search_path|a,b]"},
        {"-csearch_path=a", "[search_path|a]"},
        {"--search-path=a-b", "[search_path|a-b]"},
        {"--x.y-z=1 -c  w=2", "[x.y_z|1][w|2]"},
        {"-c TimeZone=Europe/Berlin\\ x", "[TimeZone|Europe/Berlin x]"},
        {"-c a=\\\\x", "[a|\\x]"},
        {"-c a=", "[a|]"},
        {"-c a=b=c", "[a|b=c]"},
        {"-c", "[|-c]"},
        {"-c a", "[|-c][|a]"},
        {"-c =a", "[|-c][|=a]"},
        {"-c -c a=1", "[|-c][|-c][|a=1]"},
        {"-e -B 100", "[|-e][|-B][|100]"},
        {"--", "[|--]"},
        {"--single", "[|--single]"},
        {"a=b", "[|a=b]"},
        {"x\\", "[|x]"},
        {"\\", "[|]"},
        {"\\-c a=b", "[a|b]"},
    };
    struct buf seen = {0};
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buf_clear(&seen);
        startup_split_options(slice_of_str(cases[i].in), note_option, &seen);
        ck_assert_msg(slice_eq_str(buf_slice(&seen), cases[i].out), "%s: %.*s", cases[i].in,
            (int)seen.len, seen.data);
    }
    buf_free(&seen);
}
END_TEST

START_TEST(encodes_what_it_decodes)
{
    struct startup_param extra[] = {{slice_of_str("application_name"), slice_of_str("x")},
        {slice_of_str(""), slice_of_str("lost")},
        {slice_of_str("options"), slice_of("-c a=1\0evil\0x", 13)}};
    struct startup st;
    struct err err = {0};
    struct buf b = {0};

    buf_put(&b, "junk", 4); /* encoding appends, whatever was there */
    b.pos = 1;
    startup_encode(&b, PROTO_3_2, slice_of_str("alice"), slice_of_str("shop"), extra, 3);
    buf_consume(&b, 3);
    ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_NORMAL);
    ck_assert_uint_eq(st.packet_bytes, buf_unread(&b));
    ck_assert_uint_eq(st.version, PROTO_3_2);
    ck_assert(slice_eq_str(st.user, "alice"));
    ck_assert(slice_eq_str(st.database, "shop"));
    ck_assert_uint_eq(st.nparams, 1);
    ck_assert(slice_eq_str(st.options, "-c a=1"));
    buf_free(&b);
    startup_encode(&b, PROTO_3_0, slice_of_str("alice"), slice_of("", 0), NULL, 0);
    ck_assert_int_eq(startup_decode(buf_slice(&b), &st, &err), STARTUP_NORMAL);
    ck_assert(slice_eq_str(st.database, "alice"));
    ck_assert_uint_eq(b.len, 8 + 11 + 1);
    buf_free(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire_startup");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, decodes_a_normal_packet);
    tcase_add_test(tc, every_prefix_needs_more);
    tcase_add_test(tc, database_defaults_to_user);
    tcase_add_test(tc, newer_minors_and_protocol_options);
    tcase_add_test(tc, encryption_requests);
    tcase_add_test(tc, cancel_requests_of_both_key_lengths);
    tcase_add_test(tc, refuses_lengths_at_once);
    tcase_add_test(tc, refuses_versions_at_eight_bytes);
    tcase_add_test(tc, refuses_bad_layouts);
    tcase_add_test(tc, limits_parameters);
    tcase_add_test(tc, spellings_of_false);
    tcase_add_test(tc, splits_options);
    tcase_add_test(tc, encodes_what_it_decodes);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
