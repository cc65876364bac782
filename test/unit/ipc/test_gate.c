/* SPDX-License-Identifier: PostgreSQL
 * test_gate.c: snapshots and commits exclude each other, nobody starves, the dead give back. */
#include "config.h"

#include <check.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/gate.h"

#include "run_suite.h"

#define NWORKERS 4
#define S        GATE_SNAPSHOT
#define C        GATE_COMMIT

static struct shm *shm;
static unsigned woken; /* workers, as bits */

static void on_wake(void *ctx, int ordinal)
{
    ck_assert_ptr_eq(ctx, &woken);
    woken |= 1U << ordinal;
}

static void setup(void)
{
    struct shm_plan plan = {{0}};
    struct err err = {0};

    plan.bytes[SHM_GATE] = gate_region_bytes(NWORKERS);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    gate_region_init(shm, NWORKERS);
    woken = 0;
}

static void teardown(void)
{
    shm_free(&shm);
}

/* One step: worker, '+' enters, '-' leaves, '?' gives up, '&' joins, 'x' dies; what it returns, and
 * how many are inside and who was told behind it. */
struct step {
    int worker;
    char what;
    enum gate_side side;
    bool result;
    uint32_t snapshots;
    uint32_t commits;
    unsigned woken;
};

static void run(const struct step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct step *s = &steps[i];
        bool result = true;

        woken = 0;
        if (s->what == '+')
            result = gate_enter(shm, s->worker, s->side);
        else if (s->what == '-')
            gate_leave(shm, s->worker, s->side, on_wake, &woken);
        else if (s->what == '?')
            result = gate_give_up(shm, s->worker, s->side, on_wake, &woken);
        else if (s->what == '&')
            gate_join(shm, s->worker, s->side);
        else
            gate_reclaim_worker(shm, s->worker, on_wake, &woken);
        ck_assert_msg(result == s->result, "step %zu: returned %d", i, result);
        ck_assert_msg(gate_inside(shm, S) == s->snapshots && gate_inside(shm, C) == s->commits,
            "step %zu: %u snapshots, %u commits", i, gate_inside(shm, S), gate_inside(shm, C));
        ck_assert_msg(woken == s->woken, "step %zu: told %x", i, woken);
    }
}
#define RUN(steps) run(steps, sizeof(steps) / sizeof((steps)[0]))

START_TEST(one_side_at_a_time)
{
    static const struct step steps[] = {
        {0, '+', S, true, 1, 0, 0},
        {1, '+', S, true, 2, 0, 0},
        {2, '+', C, false, 2, 0, 0},
        {3, '+', C, false, 2, 0, 0},
        {0, '-', S, true, 1, 0, 0},
        {1, '-', S, true, 0, 2, 0xc},
        {1, '+', C, true, 0, 3, 0},
        {1, '-', C, true, 0, 2, 0},
        {2, '-', C, true, 0, 1, 0},
        {3, '-', C, true, 0, 0, 0},
        {3, '+', C, true, 0, 1, 0},
    };

    RUN(steps);
}
END_TEST

/* Who comes while the other side waits does not get ahead of it, and is let in behind it. */
START_TEST(neither_side_starves)
{
    static const struct step steps[] = {
        {0, '+', C, true, 0, 1, 0},
        {1, '+', S, false, 0, 1, 0},
        {2, '+', C, false, 0, 1, 0}, /* behind it */
        {3, '+', C, false, 0, 1, 0},
        {0, '-', C, true, 1, 0, 0x2},
        {0, '+', S, false, 1, 0, 0}, /* behind the commits */
        {1, '-', S, true, 0, 2, 0xc},
        {1, '+', C, false, 0, 2, 0},
        {2, '-', C, true, 0, 1, 0},
        {3, '-', C, true, 1, 0, 0x1},
        {0, '-', S, true, 0, 1, 0x2},
    };

    RUN(steps);
}
END_TEST

START_TEST(who_gives_up_holds_up_nobody)
{
    static const struct step steps[] = {
        {0, '+', C, true, 0, 1, 0},
        {1, '+', S, false, 0, 1, 0},
        {2, '+', C, false, 0, 1, 0},
        {1, '?', S, true, 0, 2, 0x4}, /* nobody stands in front of worker 2 any more */
        {1, '?', S, false, 0, 2, 0},
        {1, '+', S, false, 0, 2, 0},
        {0, '-', C, true, 0, 1, 0},
        {2, '-', C, true, 1, 0, 0x2},
        {1, '?', S, false, 1, 0, 0}, /* is inside by now */
        {1, '&', S, true, 2, 0, 0},
        {1, '-', S, true, 1, 0, 0},
        {1, '-', S, true, 0, 0, 0},
    };

    RUN(steps);
    ck_assert_uint_eq(gate_waiting(shm, 1, S), 0);
}
END_TEST

START_TEST(the_dead_give_back)
{
    static const struct step steps[] = {
        {0, '+', C, true, 0, 1, 0},
        {0, '&', C, true, 0, 2, 0},
        {1, '+', C, true, 0, 3, 0},
        {2, '+', S, false, 0, 3, 0},
        {3, '+', C, false, 0, 3, 0},
        {0, 'x', C, true, 0, 1, 0},
        {1, 'x', C, true, 1, 0, 0x4}, /* the last one who was inside */
        {1, '+', S, false, 1, 0, 0},
        {3, 'x', C, true, 2, 0, 0x2}, /* the one who stood in front of it */
        {3, 'x', C, true, 2, 0, 0},
        {2, 'x', C, true, 1, 0, 0},
        {1, 'x', C, true, 0, 0, 0},
        {1, '+', C, true, 0, 1, 0},
    };

    RUN(steps);
}
END_TEST

/* What is decided and not ended keeps snapshots waiting, when its worker has died or left it. */
START_TEST(what_is_left_to_control)
{
    static const struct step begin[] = {
        {0, '+', C, true, 0, 1, 0},
        {0, '&', C, true, 0, 2, 0},
        {1, '+', C, true, 0, 3, 0},
        {2, '+', S, false, 0, 3, 0},
    };
    static const struct step die[] = {
        {0, 'x', C, true, 0, 2, 0},
        {1, 'x', C, true, 0, 1, 0},
    };
    static const struct step more[] = {
        {2, '-', S, true, 0, 0, 0},
        {3, '+', C, true, 0, 1, 0},
    };

    RUN(begin);
    gate_begin_kept(shm, 0); /* one of its two */
    RUN(die);
    ck_assert_uint_eq(gate_left(shm), 1);
    gate_end_left(shm, 0, on_wake, &woken);
    gate_end_left(shm, 1, on_wake, &woken);
    ck_assert_uint_eq(woken, 0x4);
    ck_assert_uint_eq(gate_inside(shm, S), 1);
    RUN(more);
    gate_begin_kept(shm, 3);
    gate_leave_to_control(shm, 3);
    ck_assert_uint_eq(gate_inside(shm, C), 1);
    gate_reclaim_worker(shm, 3, on_wake, &woken); /* it has nothing any more */
    ck_assert_uint_eq(gate_left(shm), 1);
    gate_end_left(shm, 1, on_wake, &woken);
    ck_assert_uint_eq(gate_inside(shm, C), 0);
}
END_TEST

START_TEST(waits_are_counted)
{
    gate_count_wait(shm, S, 5, false);
    gate_count_wait(shm, S, 7, true);
    ck_assert_uint_eq(gate_figures_of(shm, S).nwaits, 2);
    ck_assert_uint_eq(gate_figures_of(shm, S).wait_us, 12);
    ck_assert_uint_eq(gate_figures_of(shm, S).ntimeouts, 1);
    ck_assert_uint_eq(gate_figures_of(shm, C).nwaits, 0);
}
END_TEST

/* ---- processes that die at any moment ---- */

struct seen {
    _Atomic int inside[NWORKERS][GATE_SIDES]; /* as each process says itself */
    _Atomic uint64_t turns[NWORKERS][GATE_SIDES];
    _Atomic int both; /* somebody saw the other side inside */
};

static void live(struct seen *seen, int me)
{
    unsigned random = (unsigned)getpid();

    for (;;) {
        enum gate_side side = rand_r(&random) % 3 == 0 ? C : S;

        if (!gate_enter(shm, me, side)) {
            while (gate_waiting(shm, me, side) > 0)
                sched_yield();
        }
        atomic_store(&seen->inside[me][side], 1);
        for (int i = 0; i < NWORKERS; i++) {
            if (atomic_load(&seen->inside[i][side == S ? C : S]) != 0)
                atomic_store(&seen->both, 1);
        }
        atomic_fetch_add(&seen->turns[me][side], 1);
        atomic_store(&seen->inside[me][side], 0);
        gate_leave(shm, me, side, NULL, NULL);
    }
}

static pid_t start(struct seen *seen, int me)
{
    pid_t pid = fork();

    if (pid == 0)
        live(seen, me);
    return pid;
}

START_TEST(killed_at_any_moment)
{
    struct seen *seen =
        mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[NWORKERS];

    ck_assert_ptr_ne(seen, MAP_FAILED);
    for (int i = 0; i < NWORKERS; i++)
        pid[i] = start(seen, i);
    for (int round = 0; round < 400; round++) {
        int who = round % NWORKERS;
        uint64_t before[GATE_SIDES];
        int other = (who + 1) % NWORKERS;

        kill(pid[who], SIGKILL);
        (void)waitpid(pid[who], NULL, 0);
        memset(seen->inside[who], 0, sizeof seen->inside[who]);
        gate_reclaim_worker(shm, who, NULL, NULL);
        for (int side = 0; side < GATE_SIDES; side++)
            before[side] = atomic_load(&seen->turns[other][side]);
        /* Each of the living goes on, on both sides. */
        while (atomic_load(&seen->turns[other][S]) == before[S] ||
               atomic_load(&seen->turns[other][C]) == before[C])
            sched_yield();
        pid[who] = start(seen, who);
        ck_assert_int_eq(atomic_load(&seen->both), 0);
    }
    for (int i = 0; i < NWORKERS; i++) {
        kill(pid[i], SIGKILL);
        (void)waitpid(pid[i], NULL, 0);
        gate_reclaim_worker(shm, i, NULL, NULL);
    }
    ck_assert_uint_eq(gate_inside(shm, S) + gate_inside(shm, C), 0);
}
END_TEST

/* Commits on their way: who waits for those of before does not wait for later ones. */
START_TEST(flights_of_before_are_over)
{
    uint64_t first = gate_flight_number(shm);
    uint64_t second;
    uint64_t before;

    gate_flights_set(shm, 0, first);
    before = gate_flight_next(shm);
    second = gate_flight_number(shm);
    gate_flights_set(shm, 1, second);
    ck_assert(!gate_flights_are_over(shm, before));
    ck_assert(gate_flights_are_over(shm, first));
    gate_flights_wait(shm, 2, 1);
    woken = 0;
    gate_flights_set(shm, 0, 0);
    gate_flights_tell(shm, 0, on_wake, &woken);
    ck_assert_uint_eq(woken, 1U << 2);
    ck_assert(gate_flights_are_over(shm, before));
    ck_assert(!gate_flights_are_over(shm, gate_flight_next(shm)));
    /* The dead commit nothing any more. */
    woken = 0;
    gate_reclaim_worker(shm, 1, on_wake, &woken);
    ck_assert_uint_eq(woken, 1U << 2);
    ck_assert(gate_flights_are_over(shm, gate_flight_next(shm)));
    gate_reclaim_worker(shm, 2, on_wake, &woken);
    woken = 0;
    gate_flights_tell(shm, 0, on_wake, &woken);
    ck_assert_uint_eq(woken, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gate");
    TCase *tc = tcase_create("gate");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_side_at_a_time);
    tcase_add_test(tc, neither_side_starves);
    tcase_add_test(tc, who_gives_up_holds_up_nobody);
    tcase_add_test(tc, the_dead_give_back);
    tcase_add_test(tc, what_is_left_to_control);
    tcase_add_test(tc, waits_are_counted);
    tcase_add_test(tc, killed_at_any_moment);
    tcase_add_test(tc, flights_of_before_are_over);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
