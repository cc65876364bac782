/* SPDX-License-Identifier: PostgreSQL
 * test_wd_json.c: reading what comes over the command socket: right, wrong, and cut off anywhere.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/wd_json.h"

#include "run_suite.h"

static const char text[] = "{\"IPCAuthKey\":\"a \\\"key\\\" \\\\ \\u00fc\",\"NodeID\" : 2,\n\t"
                           "\"List\":[1, {\"a\":[\"]\",\"}\"]}, \"x\"],\"Message\":\"\"}";

START_TEST(test_values)
{
    char got[32];
    int n = 0;

    ck_assert(wd_json_text(slice_of_str(text), "IPCAuthKey", got, sizeof got));
    ck_assert_str_eq(got, "a \"key\" \\ \xc3\xbc");
    ck_assert(wd_json_text(slice_of_str(text), "IPCAuthKey", got, 4));
    ck_assert_str_eq(got, "a \"");
    ck_assert(wd_json_text(slice_of_str(text), "Message", got, sizeof got));
    ck_assert_str_eq(got, "");
    ck_assert(wd_json_int(slice_of_str(text), "NodeID", &n));
    ck_assert_int_eq(n, 2);
    ck_assert(!wd_json_int(slice_of_str(text), "Message", &n));
    ck_assert(!wd_json_text(slice_of_str(text), "NodeID", got, sizeof got));
    ck_assert(!wd_json_text(slice_of_str(text), "a", got, sizeof got)); /* of an inner object */
}
END_TEST

/* As libraries write it by default: nothing but ASCII. */
START_TEST(test_escapes)
{
    static const struct {
        const char *json;
        const char *text;
    } table[] = {
        {"\\u0041\\u00FC\\u20ac", "A\xc3\xbc\xe2\x82\xac"},
        {"\\ud83d\\ude00!", "\xf0\x9f\x98\x80!"},
        {"\\n\\t\\/\\u0027\\u0022", "\n\t/'\""},
        {"\\ud83d", "\xef\xbf\xbd"}, /* half a character */
        {"\\ude00x", "\xef\xbf\xbdx"},
        {"\\ud83d\\u0041", "\xef\xbf\xbd"
                           "A"},
        {"\\u0000", "\xef\xbf\xbd"},
        {"\\u12x4", "\xef\xbf\xbd"},
        {"\\u12", "\xef\xbf\xbd"},
    };
    char json[64];
    char got[32];
    size_t i;

    for (i = 0; i < sizeof table / sizeof table[0]; i++) {
        snprintf(json, sizeof json, "{\"k\":\"%s\"}", table[i].json);
        ck_assert(wd_json_text(slice_of_str(json), "k", got, sizeof got));
        ck_assert_msg(strcmp(got, table[i].text) == 0, "%s: %s", json, got);
    }
    ck_assert(wd_json_text(slice_of_str("{\"k\":\"a\\u20ac\"}"), "k", got, 4));
    ck_assert_str_eq(got, "a"); /* no part of a character */
}
END_TEST

START_TEST(test_lists)
{
    struct slice rest;
    struct slice item;

    ck_assert(wd_json_find(slice_of_str(text), "List", &rest));
    ck_assert(wd_json_next(&rest, &item));
    ck_assert(slice_eq(item, slice_of_str("1")));
    ck_assert(wd_json_next(&rest, &item));
    ck_assert(slice_eq(item, slice_of_str("{\"a\":[\"]\",\"}\"]}")));
    ck_assert(wd_json_next(&rest, &item));
    ck_assert(slice_eq(item, slice_of_str("\"x\"")));
    ck_assert(!wd_json_next(&rest, &item));
}
END_TEST

/* Each in memory of just its length, so that a look behind the end is seen. */
START_TEST(test_cut_off)
{
    static const char *const keys[] = {"IPCAuthKey", "NodeID", "List", "Message", "none"};
    size_t n;
    size_t k;
    size_t c;

    for (n = 0; n < sizeof text; n++) {
        for (c = 0; c < 6; c++) {
            char *p = malloc(n + 1);
            struct slice cut = slice_of(p, n);
            struct slice value;
            char got[16];
            int v;

            memcpy(p, text, n);
            if (n > 0 && c > 0)
                p[n - 1] = "\"\\{[}"[c - 1];
            for (k = 0; k < sizeof keys / sizeof keys[0]; k++) {
                (void)wd_json_text(cut, keys[k], got, sizeof got);
                (void)wd_json_int(cut, keys[k], &v);
                if (wd_json_find(cut, keys[k], &value)) {
                    ck_assert(value.p >= p);
                    ck_assert(value.p + value.n <= p + n);
                }
            }
            free(p);
        }
    }
    ck_assert(!wd_json_find(slice_of_str("[]"), "a", &(struct slice){0}));
    ck_assert(!wd_json_find(slice_of_str("{}"), "a", &(struct slice){0}));
    ck_assert(!wd_json_find(slice_of_str("{\"a\"}"), "a", &(struct slice){0}));
}
END_TEST

START_TEST(test_what_is_written_is_read)
{
    struct buf out = {0};
    char got[32];

    buf_put_byte(&out, '{');
    wd_json_put_text(&out, "k", "a\"b\\c\nd\t");
    buf_put_byte(&out, '}');
    ck_assert(wd_json_text(buf_slice(&out), "k", got, sizeof got));
    ck_assert_str_eq(got, "a\"b\\c\nd\t");
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wd_json");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, test_values);
    tcase_add_test(tc, test_escapes);
    tcase_add_test(tc, test_lists);
    tcase_add_test(tc, test_cut_off);
    tcase_add_test(tc, test_what_is_written_is_read);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
