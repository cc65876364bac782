/* SPDX-License-Identifier: PostgreSQL
 * test_names.c: what a client's names mean when all works that was sent, and when it does not. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "names/names.h"

#include "run_suite.h"

static struct prep_store store;
static struct prep *known[10]; /* by their content, a digit */
static struct names all;
static struct names_way way;
static struct prepset preps;
static uint32_t serial;

static struct prep *content(char digit)
{
    char body[12] = "select ?"; /* NUL, no parameter types */
    bool is_new;

    body[7] = digit;
    if (known[digit - '0'] == NULL) {
        known[digit - '0'] = prep_get(&store, slice_of(body, 11), 0, &is_new);
        prep_need_name(known[digit - '0']);
    }
    return known[digit - '0'];
}

static void start(void)
{
    prep_store_init(&store);
    memset(known, 0, sizeof known);
    all = (struct names){0};
    way = (struct names_way){.names = &all};
    preps = (struct prepset){0};
    serial = 100;
}

static void end(void)
{
    unsigned i;

    names_free(&way);
    ck_assert_ptr_null(all.set);
    ck_assert_ptr_null(all.unnamed);
    prepset_clear(&preps);
    for (i = 0; i < 10; i++) {
        ck_assert(known[i] == NULL || known[i]->refs == 1); /* nothing holds one any more */
        prep_unref(&known[i]);
    }
    prep_store_fini(&store);
}

static struct names_entry *entry(char name, char digit)
{
    struct names_entry *n = names_entry_new(slice_of(&name, 1));

    n->prep = prep_ref(content(digit));
    return n;
}

static void parse(char name, char digit)
{
    struct names_entry *n = entry(name, digit);
    bool is_known = prepset_touch(&preps, n->prep->id);

    names_put(&all, n);
    prepset_add(&preps, n->prep->id);
    names_pending_push(&way, PENDING_NAME, n->prep, n, !is_known, serial);
}

static void close_name(struct names_entry *n)
{
    names_take(&all, n);
    prepset_remove(&preps, n->prep->id);
    names_pending_push(&way, PENDING_CLOSED, n->prep, n, false, serial);
}

static void prepare(char name, char digit)
{
    struct names_entry *n = names_entry_new(slice_of(&name, 1));

    n->sql = mem_strndup(&digit, 1);
    n->content = (uint64_t)digit;
    names_word_push(&way, n, serial, 0);
}

/* Sends one message: Parse, Close, Unnamed parse, preQare in SQL, deallocate (X), deallocate All.
 */
static void send_one(const char *m)
{
    serial++;
    if (m[0] == 'P')
        parse(m[1], m[2]);
    else if (m[0] == 'C')
        close_name(names_find(&all, slice_of(m + 1, 1)));
    else if (m[0] == 'U')
        names_pending_unnamed(&way, content(m[2]), serial, 7);
    else if (m[0] == 'Q')
        prepare(m[1], m[2]);
    else if (m[0] == 'X')
        names_word_push(&way, names_entry_new(slice_of(m + 1, 1)), serial, 0);
    else
        names_word_push(&way, NULL, serial, 0);
}

/* Messages of four characters: kind, name, content, + worked, ! refused, - skipped. True when the
 * link may know more or less than is thought. */
static bool exchange(const char *msgs, bool is_undone)
{
    const struct names_heard heard = {.preps = &preps, .tx_status = 'I'};
    uint64_t worked = 0;
    unsigned npending = 0;
    const char *m;

    for (m = msgs; *m != '\0'; m += m[4] == ' ' ? 5 : 4) {
        send_one(m);
        if (m[3] == '!')
            names_pending_refused(&way, serial);
        if (strchr("QXA", m[0]) == NULL) {
            worked |= (uint64_t)(m[3] == '+') << npending++;
        } else if (m[3] == '+') {
            names_settle_first(&way, &heard, npending, worked);
            worked = npending = 0;
            ck_assert_int_eq(names_note_tag(&way, &preps, serial, -1), m[0] == 'A');
        }
    }
    if (is_undone)
        names_undo_first(&way, &heard, npending, worked);
    else
        names_settle_first(&way, &heard, npending, worked);
    return names_forget_words(&way, &heard);
}

/* Each name with its content in alphabetical order, the unnamed one as a dot. */
static const char *shown(void)
{
    static char text[64];
    const struct names_entry *n;
    size_t len = 0;
    char name;

    for (name = 'a'; name <= 'z'; name++)
        if ((n = names_find(&all, slice_of(&name, 1))) != NULL) {
            text[len++] = name;
            text[len++] = n->prep != NULL ? prep_sql(n->prep).p[7] : n->sql[0];
        }
    if (all.unnamed != NULL) {
        text[len++] = '.';
        text[len++] = prep_sql(all.unnamed).p[7];
    }
    text[len] = '\0';
    return text;
}

/* What the link knows under our names, and under the client's. */
static const char *of_link(void)
{
    static char text[64];
    uint64_t has;
    size_t len = 0;
    char c;

    for (c = '0'; c <= '9'; c++)
        if (known[c - '0'] != NULL && prepset_touch(&preps, known[c - '0']->id))
            text[len++] = c;
    for (c = 'a'; c <= 'z'; c++)
        if ((has = prepset_named(&preps, slice_of(&c, 1))) != 0) {
            text[len++] = c;
            text[len++] = has == PREPSET_DOUBTFUL ? '?' : (char)has;
        }
    text[len] = '\0';
    return text;
}

static const struct {
    const char *before; /* an exchange in which all worked */
    const char *msgs;
    const char *names;
    const char *link;
    bool is_undone;
    bool is_unsure;
} cases[] = {
    /* the protocol */
    {"", "Pa1+ Pb2+", "a1b2", "12", false, false},
    {"", "Pa1+ Pb2! Pc3-", "a1", "1", false, false},
    {"Pa1+", "Ca.+", "", "", false, false},
    {"Pa1+", "Ca.+ Pa2+", "a2", "2", false, false},
    {"Pa1+", "Ca.+ Pa2!", "", "", false, false},
    {"Pa1+", "Px9! Ca.- Pa2-", "a1", "1", false, false},
    {"Pa1+", "Pb1! Ca.-", "a1", "1", false, false},
    {"", "Pa1+ Ca.+ Pa2+ Ca.+", "", "", false, false},
    {"", "Px9! Pa1- Ca.- Pa2- Ca.-", "", "", false, false},
    {"", "Pa1+ Pb2+ Pc3+ Pd4+ Pe5+ Pf6+ Pg7!", "a1b2c3d4e5f6", "123456", false, false},
    /* the unnamed one: refused takes the old one away, skipped does not */
    {"", "U.1+", ".1", "", false, false},
    {"U.1+", "U.2+", ".2", "", false, false},
    {"U.1+", "U.2!", "", "", false, false},
    {"U.1+", "Px9! U.2-", ".1", "", false, false},
    {"U.1+", "U.2+ U.3!", "", "", false, false},
    {"U.1+", "U.2! U.3-", "", "", false, false},
    {"U.1+", "Px9! U.2- U.3-", ".1", "", false, false},
    {"U.1+", "A..+", ".1", "", false, false},
    /* PREPARE and DEALLOCATE */
    {"", "Qa1+", "a1", "a1", false, false},
    {"", "Qa1!", "", "a?", false, false},
    {"", "Qa1+ Qb2!", "a1", "a1b?", false, false},
    {"Qa1+", "Xa.+", "", "", false, false},
    {"Qa1+", "Xa.!", "a1", "a?", false, false},
    {"Qa1+", "Xa.+ Qa2+", "a2", "a2", false, false},
    {"Qa1+", "Xa.+ Qa2!", "", "a?", false, false},
    {"Qa1+", "Xa.! Qa2-", "a1", "a?", false, false},
    {"", "Qa1! Xa.-", "", "a?", false, false},
    {"Pa1+", "Xa.+ Pa2!", "", "1", false, false},
    /* DEALLOCATE ALL, DISCARD ALL */
    {"Pa1+ Qb2+", "A..+", "", "", false, false},
    {"Pa1+ Qb2+", "A..!", "a1b2", "1b2", false, true},
    {"Pa1+ Qb2+", "A..+ Pc3+ Qd4+", "c3d4", "3d4", false, false},
    {"Pa1+ Qb2+", "A..+ Pc3!", "", "", false, false},
    {"Pa1+ Qb2+", "A..! Pc3- Qd4-", "a1b2", "1b2d?", false, true},
    {"Pa1+", "Px9! A..- Pa2-", "a1", "1", false, true},
    {"Pa1+", "A..+ Pc3+ A..!", "c3", "3", false, true},
    {"Pa1+", "A..! Pc3- A..-", "a1", "1", false, true},
    {"Pa1+", "A..+ Pc3+ A..+ Pd4+", "d4", "4", false, false},
    {"Pa1+", "Pb2! A..-", "a1", "1", false, true},
    {"Qa1+", "Qb2+ A..!", "a1b2", "a1b2", false, true},
    {"Qa1+", "Qb2! A..-", "a1", "a1b?", false, true},
    {"Qa1+", "Xa.+ A..!", "", "", false, true},
    /* all of it will be sent again */
    {"", "Pa1+ Pb2!", "", "1", true, false},
    {"Pa1+", "Ca.+ Pa2+", "a1", "2", true, false},
    {"U.1+", "U.2+", ".1", "", true, false},
    {"U.1+", "U.2+ U.3+", ".1", "", true, false},
};

START_TEST(an_exchange)
{
    bool is_unsure;

    (void)exchange(cases[_i].before, false);
    is_unsure = exchange(cases[_i].msgs, cases[_i].is_undone);
    ck_assert_msg(strcmp(shown(), cases[_i].names) == 0, "[%s] %s: %s in place of %s",
        cases[_i].before, cases[_i].msgs, shown(), cases[_i].names);
    ck_assert_msg(strcmp(of_link(), cases[_i].link) == 0, "[%s] %s: link %s in place of %s",
        cases[_i].before, cases[_i].msgs, of_link(), cases[_i].link);
    ck_assert_int_eq(is_unsure, cases[_i].is_unsure);
    ck_assert(names_are_settled(&way));
    ck_assert_uint_eq(way.nuncertain, 0);
}
END_TEST

/* The link died: what it has not said came to nothing. */
START_TEST(a_dead_link)
{
    const struct names_heard dead = {.preps = NULL};

    (void)exchange("Pa1+ Qb2+", false);
    send_one("A..");
    send_one("Qd4");
    names_settle_first(&way, &dead, UINT32_MAX, 0);
    ck_assert(!names_forget_words(&way, &dead));
    ck_assert_str_eq(shown(), "a1b2");
    ck_assert_uint_eq(names_nsql(&all), 1);
}
END_TEST

/* In a string of statements their tags are counted. */
START_TEST(a_string)
{
    const struct names_heard heard = {.preps = &preps, .tx_status = 'I'};

    (void)exchange("Qc3+", false);
    serial++;
    names_word_push(&way, names_entry_new(slice_of_str("c")), serial, 1);
    prepare('a', '1');
    way.words->next->at = 2;
    prepare('b', '2');
    way.words->next->next->at = 3;
    ck_assert(!names_note_tag(&way, &preps, serial, 0));
    ck_assert_str_eq(shown(), "c3");
    ck_assert(!names_note_tag(&way, &preps, serial, 1));
    ck_assert_str_eq(shown(), "");
    ck_assert(!names_note_tag(&way, &preps, serial, 2));
    ck_assert(!names_forget_words(&way, &heard));
    ck_assert_str_eq(shown(), "a1");
    ck_assert_str_eq(of_link(), "a1b?");
}
END_TEST

/* A failed transaction refuses what would drop it: the link has it still. */
START_TEST(in_a_failed_transaction)
{
    const struct names_heard heard = {.preps = &preps, .tx_status = 'E'};

    (void)exchange("Qa1+", false);
    send_one("Xa.");
    send_one("Qb2");
    ck_assert(!names_forget_words(&way, &heard));
    ck_assert_str_eq(shown(), "a1");
    ck_assert_str_eq(of_link(), "a1");
}
END_TEST

START_TEST(the_limit)
{
    struct err err = {0};
    uint64_t one;

    ck_assert(names_have_room(&all, 1, 1000)); /* the first may be of any size */
    (void)exchange("Pa1+", false);
    one = all.set->bytes;
    ck_assert_uint_gt(one, 0);
    ck_assert(names_have_room(&all, 0, SIZE_MAX / 2));
    ck_assert(names_have_room(&all, (int64_t)one + 10, 10));
    ck_assert(!names_are_full(&all, (int64_t)one + 10, 10, &err));
    ck_assert(!names_have_room(&all, (int64_t)one + 10, 11));
    ck_assert(names_are_full(&all, (int64_t)one + 10, 11, &err));
    ck_assert_str_eq(err.sqlstate, "53400");
    (void)exchange("Pb2+ Ca.+ Cb.+", false);
    ck_assert_uint_eq(all.set->bytes, 0);
}
END_TEST

START_TEST(nothing_means_one_that_is_gone)
{
    struct names_entry *n = entry('a', '1');

    names_pending_push(&way, PENDING_NAME, n->prep, n, false, serial);
    way.last_bound = way.unloaded = way.looked_at = n;
    way.watched[0].name = n;
    way.nwatched = 1;
    names_entry_free(&way, n);
    ck_assert_ptr_null(way.pending[0].name);
    ck_assert_ptr_null(way.last_bound);
    ck_assert_ptr_null(way.unloaded);
    ck_assert_ptr_null(way.looked_at);
    ck_assert_ptr_null(way.watched[0].name);
}
END_TEST

/* An error speaks of a statement by our name: the client's is found wherever it is. */
START_TEST(the_name_of_a_content)
{
    (void)exchange("Pa1+ Pb2+ Pc3+", false);
    ck_assert(slice_eq_str(names_of_content(&way, content('2')->name), "b"));
    send_one("Cb.");
    ck_assert(slice_eq_str(names_of_content(&way, content('2')->name), "b"));
    ck_assert_ptr_null(names_of_content(&way, content('9')->name).p);
}
END_TEST

/* What waits may be more than what stands in the value, and is settled in parts. */
START_TEST(as_many_as_may_be_pending)
{
    const struct names_heard heard = {.preps = &preps, .tx_status = 'I'};
    unsigned i;

    for (i = 0; i < NAMES_MAX_PENDING; i++)
        names_pending_unnamed(&way, content((char)('0' + i % 10)), ++serial, 7);
    names_settle_first(&way, &heard, 40, UINT64_MAX);
    ck_assert_uint_eq(way.npending, NAMES_MAX_PENDING - 40);
    names_pending_overtaken(&way);
    names_settle_first(&way, &heard, UINT32_MAX, 0);
    ck_assert(names_are_settled(&way));
    ck_assert_ptr_null(all.unnamed); /* a Query went behind them */
    ck_assert_uint_eq(way.unnamed_epoch, 0);
}
END_TEST

static const struct {
    enum names_portal_state before;
    bool saw_error;
    bool stays;
    enum names_portal_state behind;
} portals[] = {
    {PORTAL_IS_THERE, false, true, PORTAL_IS_THERE},
    {PORTAL_IS_NEW, false, true, PORTAL_IS_THERE},
    {PORTAL_IS_OVER, false, false, PORTAL_IS_OVER},
    {PORTAL_IN_DOUBT, false, true, PORTAL_IN_DOUBT},
    {PORTAL_IS_THERE, true, true, PORTAL_IS_THERE},
    {PORTAL_IS_NEW, true, true, PORTAL_IN_DOUBT},
    {PORTAL_IS_OVER, true, true, PORTAL_IN_DOUBT},
    {PORTAL_IN_DOUBT, true, true, PORTAL_IN_DOUBT},
};

START_TEST(a_portal)
{
    struct names_portal *p = mem_alloc_zero(sizeof *p + 2);
    struct names_portal *first = p;

    p->len = 1;
    p->name[0] = 'p';
    p->state = (uint8_t)portals[_i].before;
    ck_assert_int_eq(
        names_portal_find(first, slice_of_str("p")) != NULL, p->state != PORTAL_IS_OVER);
    names_portals_settle(&first, portals[_i].saw_error);
    ck_assert_int_eq(first != NULL, portals[_i].stays);
    if (first != NULL) {
        ck_assert_uint_eq(first->state, portals[_i].behind);
        ck_assert_ptr_eq(names_portal_find(first, slice_of_str("p")), first);
    }
    names_portals_free(&first);
    ck_assert_ptr_null(first);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("names");
    TCase *tc = tcase_create("names");

    tcase_add_checked_fixture(tc, start, end);
    tcase_add_loop_test(tc, an_exchange, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_loop_test(tc, a_portal, 0, (int)(sizeof portals / sizeof portals[0]));
    tcase_add_test(tc, a_dead_link);
    tcase_add_test(tc, a_string);
    tcase_add_test(tc, in_a_failed_transaction);
    tcase_add_test(tc, the_limit);
    tcase_add_test(tc, nothing_means_one_that_is_gone);
    tcase_add_test(tc, the_name_of_a_content);
    tcase_add_test(tc, as_many_as_may_be_pending);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
