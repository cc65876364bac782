/* SPDX-License-Identifier: PostgreSQL
 * test_web_texts.c: JSON that is written and forms that are read, with any bytes in them. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "web_action.h"
#include "web_json.h"
#include "web_metrics.h"
#include "run_suite.h"

#define TEXT(literal) slice_of(literal, sizeof(literal) - 1)

static void check_text(struct slice in, const char *expected)
{
    struct buf out = {0};
    struct web_json j = {.out = &out};

    web_json_text(&j, in);
    ck_assert_uint_eq(out.len, strlen(expected));
    ck_assert_mem_eq(out.data, expected, out.len);
    buf_free(&out);
}

START_TEST(test_json_texts)
{
    check_text(TEXT("plain"), "\"plain\"");
    check_text(TEXT(""), "\"\"");
    check_text(TEXT("a\"b\\c"), "\"a\\\"b\\\\c\"");
    check_text(TEXT("\n\t\x01\x7f\0x"), "\"\\u000a\\u0009\\u0001\\u007f\\u0000x\"");
    check_text(TEXT("\xE3\x81\x82"), "\"\xE3\x81\x82\"");
    check_text(TEXT("\xF0\x9F\x90\x98"), "\"\xF0\x9F\x90\x98\"");
}
END_TEST

/* Halves, too long forms, what is beyond Unicode, and ends in the middle. */
START_TEST(test_json_bad_utf8)
{
    check_text(TEXT("\xFF"), "\"\xEF\xBF\xBD\"");
    check_text(TEXT("a\x80z"), "\"a\xEF\xBF\xBDz\"");
    check_text(TEXT("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
    check_text(TEXT("\xE0\x80\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    check_text(TEXT("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    check_text(TEXT("\xF4\x90\x80\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    check_text(TEXT("x\xE3\x81"), "\"x\xEF\xBF\xBD\xEF\xBF\xBD\"");
}
END_TEST

START_TEST(test_json_commas)
{
    static const char expected[] = "{\"a\":1,\"b\":[true,false,{}],\"c\":\"d\"}";
    struct buf out = {0};
    struct web_json j = {.out = &out};

    web_json_open(&j, '{');
    web_json_key(&j, "a");
    web_json_int(&j, 1);
    web_json_key(&j, "b");
    web_json_open(&j, '[');
    web_json_bool(&j, true);
    web_json_bool(&j, false);
    web_json_open(&j, '{');
    web_json_close(&j, '}');
    web_json_close(&j, ']');
    web_json_member(&j, "c", "d");
    web_json_close(&j, '}');
    ck_assert_uint_eq(out.len, strlen(expected));
    ck_assert_mem_eq(out.data, expected, out.len);
    buf_free(&out);
}
END_TEST

static void check_field(const char *body, const char *name, const char *expected)
{
    char out[8] = "before";

    ck_assert_int_eq(web_form_field(slice_of_str(body), name, out, sizeof out), expected != NULL);
    ck_assert_str_eq(out, expected == NULL ? "" : expected);
}

START_TEST(test_form_fields)
{
    check_field("a=1&b=2", "a", "1");
    check_field("a=1&b=2", "b", "2");
    check_field("aa=1&a=2", "a", "2");
    check_field("a=", "a", "");
    check_field("a=%41+%2b%26", "a", "A +&");
    check_field("a=1234567", "a", "1234567");
    check_field("", "a", NULL);
    check_field("a", "a", NULL);
    check_field("&&&=", "a", NULL);
    check_field("a=12345678", "a", NULL); /* no room */
    check_field("a=12%00", "a", NULL);
    check_field("a=%4", "a", NULL);
    check_field("a=%zz", "a", NULL);
    check_field("a=%", "a", NULL);
}
END_TEST

START_TEST(test_metric_labels)
{
    static const char expected[] = "{a=\"x\\\"\\\\\\ny\",b=\"\xE3\x81\x82\\\\xff\\\\xe3\",c=\"\"";
    struct buf out = {0};
    struct web_scrape s = {.out = &out};

    web_metric_label(&s, "a", TEXT("x\"\\\ny"));
    web_metric_label(&s, "b", TEXT("\xE3\x81\x82\xFF\xE3"));
    web_metric_label(&s, "c", TEXT(""));
    ck_assert_uint_eq(out.len, strlen(expected));
    ck_assert_mem_eq(out.data, expected, out.len);
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("web_texts");
    TCase *t = tcase_create("texts");

    tcase_add_test(t, test_json_texts);
    tcase_add_test(t, test_json_bad_utf8);
    tcase_add_test(t, test_json_commas);
    tcase_add_test(t, test_form_fields);
    tcase_add_test(t, test_metric_labels);
    suite_add_tcase(s, t);
    return run_suite(s);
}
