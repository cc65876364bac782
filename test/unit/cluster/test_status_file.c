/* SPDX-License-Identifier: PostgreSQL
 * test_status_file.c: what operators decided survives: written, read back, and read back from
 * nonsense. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cluster/status_file.h"
#include "cluster/switch_file.h"

#include "run_suite.h"

static struct view *make_view(void)
{
    struct view *v = mem_alloc_zero(sizeof *v);

    v->nnodes = 4;
    v->node[0].status = VIEW_UP;
    v->node[1].status = VIEW_DOWN;
    v->node[1].held_down = true;
    v->node[1].status_changed_us = INT64_C(1700000000123456);
    snprintf(v->node[1].held_by, sizeof v->node[1].held_by, "alice");
    snprintf(v->node[1].held_why, sizeof v->node[1].held_why, "new disk,\ttwo\nlines");
    v->node[2].status = VIEW_UNUSED;
    v->node[3].status = VIEW_DOWN;
    return v;
}

START_TEST(words_are_those_of_pgpool)
{
    struct view *v = make_view();
    struct buf words = {0};
    struct buf holds = {0};

    status_file_format(v, &words, &holds);
    buf_put_byte(&words, '\0');
    ck_assert_str_eq(words.data, "up\ndown\nunused\ndown\n");
    buf_free(&words);
    buf_free(&holds);
    mem_free(v);
}
END_TEST

START_TEST(holds_come_back)
{
    struct view *v = make_view();
    struct status_hold hold[4];
    struct err err = {0};
    char dir[] = "/tmp/test-status-XXXXXX";
    char path[64];
    struct stat st;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(status_file_load(dir, hold, 4, &err), 0);
    ck_assert_int_eq(status_file_save(dir, v, &err), 0);
    ck_assert_int_eq(status_file_load(dir, hold, 4, &err), 1);
    ck_assert_int_eq(hold[0].node, 1);
    ck_assert_int_eq(hold[0].since_us, INT64_C(1700000000123456));
    ck_assert_str_eq(hold[0].by, "alice");
    ck_assert_str_eq(hold[0].why, "new disk, two lines");
    v->node[1].held_down = false;
    ck_assert_int_eq(status_file_save(dir, v, &err), 0);
    ck_assert_int_eq(status_file_load(dir, hold, 4, &err), 0);
    ck_assert(!err_is_set(&err));
    snprintf(path, sizeof path, "%s/pgpool_status", dir);
    ck_assert_int_eq(stat(path, &st), 0);
    status_file_discard(dir);
    ck_assert_int_eq(rmdir(dir), 0);
    ck_assert_int_eq(status_file_save(dir, v, &err), -1);
    ck_assert(err_is_set(&err));
    mem_free(v);
}
END_TEST

START_TEST(nonsense_holds_nothing)
{
    static const char text[] =
        "\n1\n1\t2\n1\t2\tx\n-1\t2\ta\tb\n128\t2\ta\tb\nx\t2\ta\tb\n1\tx\ta\tb\n"
        "1\t99999999999999999999999\ta\tb\n7\t5\tme\t";
    struct slice rest = slice_of(text, sizeof text - 1);
    struct status_hold hold;
    int nbad = 0;

    ck_assert_int_eq(status_file_parse(&rest, &hold, &nbad), 1);
    ck_assert_int_eq(hold.node, 7);
    ck_assert_str_eq(hold.by, "me");
    ck_assert_str_eq(hold.why, "");
    ck_assert_int_eq(nbad, 9);
    ck_assert_int_eq(status_file_parse(&rest, &hold, &nbad), 0);
}
END_TEST

static struct decide_rules *make_rules(void)
{
    struct decide_rules *r = mem_alloc_zero(sizeof *r);
    int i;

    r->nnodes = 3;
    for (i = 0; i < 3; i++) {
        r->node[i].exists = true;
        r->node[i].port = 5432 + i;
        snprintf(r->node[i].host, sizeof r->node[i].host, "h%d", i);
    }
    return r;
}

static void swap_ends(struct decide_rules *r)
{
    struct decide_rule first = r->node[0];

    r->node[0] = r->node[2];
    r->node[2] = first;
}

/* Servers are found again under other numbers; one that is gone is counted. */
START_TEST(a_switchover_is_remembered)
{
    struct decide_rules *rules = make_rules();
    struct view_switch *sw = mem_alloc_zero(2 * sizeof *sw);
    struct view_switch *back = sw + 1;
    struct buf text = {0};

    sw->node = 0;
    sw->target = sw->moved_to = 2;
    switch_file_format(rules, sw, &text);
    ck_assert_uint_eq(text.len, 0); /* nothing was done to a server */
    sw->fenced[0] = sw->fence_set[0] = 1;
    sw->moved[0] = sw->slotted[0] = 2;
    sw->pending_us = 77;
    snprintf(sw->who, sizeof sw->who, "PCP user op");
    switch_file_format(rules, sw, &text);
    swap_ends(rules);
    ck_assert_int_eq(switch_file_parse(slice_of(text.data, text.len), rules, back), 0);
    ck_assert_uint_eq(back->fenced[0], 4);
    ck_assert_uint_eq(back->fence_set[0], 4);
    ck_assert_uint_eq(back->moved[0], 2);
    ck_assert_uint_eq(back->slotted[0], 2);
    ck_assert_int_eq(back->moved_to, 0);
    ck_assert_int_eq(back->node, 2);
    ck_assert_int_eq(back->target, 0);
    ck_assert_int_eq(back->pending_us, 77);
    ck_assert_str_eq(back->who, "PCP user op");
    ck_assert_int_eq(back->unsure_us, 0);
    rules->node[0].exists = false;
    ck_assert_int_eq(switch_file_parse(slice_of(text.data, text.len), rules, back), 2);
    ck_assert_int_eq(back->pending_us, 0);
    ck_assert_uint_eq(back->fenced[0], 4);
    ck_assert_int_eq(
        switch_file_parse(slice_of_str("x\n\nfenced\npending\t1\n\t\t\t\n"), rules, back), 1);
    ck_assert_uint_eq(back->fenced[0], 0);
    buf_free(&text);
    mem_free(sw);
    mem_free(rules);
}
END_TEST

/* From before the order is sent until it is known what became of it. */
START_TEST(an_order_of_a_failover_is_remembered)
{
    struct decide_rules *rules = make_rules();
    struct view_switch *sw = mem_alloc_zero(2 * sizeof *sw);
    struct view_switch *back = sw + 1;
    struct buf text = {0};

    sw->node = 0;
    sw->target = 2;
    sw->phase = VIEW_PHASE_PROMOTE;
    sw->phase_us = 78;
    sw->timeline = 3;
    switch_file_format(rules, sw, &text);
    swap_ends(rules);
    ck_assert_int_eq(switch_file_parse(slice_of(text.data, text.len), rules, back), 0);
    ck_assert_int_eq(back->unsure_us, 78);
    ck_assert_uint_eq(back->timeline, 3);
    ck_assert_int_eq(back->pending_us, 0);
    ck_assert_int_eq(back->node, 2);
    ck_assert_int_eq(back->target, 0);
    buf_clear(&text);
    sw->phase = VIEW_PHASE_SEARCH;
    switch_file_format(rules, sw, &text);
    ck_assert_uint_eq(text.len, 0); /* it was answered */
    sw->unsure_us = 79;
    switch_file_format(rules, sw, &text);
    ck_assert_int_eq(switch_file_parse(slice_of(text.data, text.len), rules, back), 0);
    ck_assert_int_eq(back->unsure_us, 79);
    rules->node[0].exists = false;
    ck_assert_int_eq(switch_file_parse(slice_of(text.data, text.len), rules, back), 1);
    ck_assert_int_eq(back->unsure_us, 0);
    ck_assert_uint_eq(back->timeline, 0);
    buf_free(&text);
    mem_free(sw);
    mem_free(rules);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("status_file");
    TCase *t = tcase_create("status_file");

    tcase_add_test(t, words_are_those_of_pgpool);
    tcase_add_test(t, holds_come_back);
    tcase_add_test(t, a_switchover_is_remembered);
    tcase_add_test(t, an_order_of_a_failover_is_remembered);
    tcase_add_test(t, nonsense_holds_nothing);
    suite_add_tcase(s, t);
    return run_suite(s);
}
