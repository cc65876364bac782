/* SPDX-License-Identifier: PostgreSQL
 * test_conf_without.c: a file that asks for what needs a library that the build has not: this
 * program stands in for conf_build.c. */
#include "config.h"

#include "conf_int.h"
#include "conf_test.h"

bool conf_build_has_memcached(void)
{
    return false;
}

#define FAR "memory_cache_enabled = on\nmemqcache_method = memcached\n"

START_TEST(memcached_is_refused)
{
    conf_test_bad(CONF_TEST_SERVER FAR, 4, "no libmemcached");
}
END_TEST

/* The method alone does nothing: files of pgpool-II may have it and not use it. */
START_TEST(a_cache_that_is_off_may_name_it)
{
    struct conf_gen *gen = conf_test_good(CONF_TEST_SERVER "memqcache_method = memcached\n");

    conf_gen_free(&gen);
    gen = conf_test_good(CONF_TEST_SERVER "memory_cache_enabled = on\n");
    conf_gen_free(&gen);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conf_without");
    TCase *t = tcase_create("memcached");

    tcase_add_test(t, memcached_is_refused);
    tcase_add_test(t, a_cache_that_is_off_may_name_it);
    suite_add_tcase(s, t);
    return conf_test_run(s);
}
