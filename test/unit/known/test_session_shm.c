/* SPDX-License-Identifier: PostgreSQL
 * test_session_shm.c: the numbers that clients are given. */
#include "config.h"

#include <check.h>
#include <stdint.h>

#include "config/conf.h"
#include "known/session_shared.h"

#include "run_suite.h"

#define NWORKERS 128 /* the more, the sooner a worker has given all its numbers */

/* Reports tell them as int4, and KILL_CLIENT takes them. */
START_TEST(numbers_of_clients_begin_anew)
{
    struct conf_report report;
    struct shm_plan plan = {{0}};
    struct session_shared *s;
    struct conf_gen *gen;
    struct shm *shm;
    struct err err;
    uint32_t first;
    uint32_t id;
    int k;
    int i;

    conf_report_init(&report);
    gen = conf_load_text("pgpool.conf", slice_of_str("max_clients = 8\n"), &report);
    ck_assert_ptr_nonnull(gen);
    session_plan_shm(conf_of(gen), NWORKERS, &plan);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    session_init_shm(conf_of(gen), NWORKERS, shm);
    s = shm_get(shm, SHM_STATS);
    for (k = 0; k < NWORKERS; k += NWORKERS - 1) {
        first = session_next_client_id(s, k);
        ck_assert_uint_gt(first, 0);
        for (i = 0, id = 0; id != first; i++) {
            id = session_next_client_id(s, k);
            if (id == 0 || id > INT32_MAX || id % NWORKERS != (uint32_t)k)
                ck_abort_msg("%u is given by worker %d", id, k);
        }
        ck_assert_int_gt(i, INT32_MAX / NWORKERS - 2);
    }
    shm_free(&shm);
    conf_gen_free(&gen);
    conf_report_fini(&report);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("session_shm");
    TCase *t = tcase_create("session_shm");

    tcase_add_test(t, numbers_of_clients_begin_anew);
    suite_add_tcase(s, t);
    return run_suite(s);
}
