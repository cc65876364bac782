/* SPDX-License-Identifier: PostgreSQL
 * decide_bed.h: what every test of decide_on_probe() begins with: three servers of streaming
 * replication that may fail and are asked for their health, in virtual time. A program includes it
 * once, adds its own rules and calls decide_init(). */
#ifndef PGP_TEST_DECIDE_BED_H
#define PGP_TEST_DECIDE_BED_H

#include "base/mem.h"
#include "cluster/decide.h"

#define SECOND_US INT64_C(1000000)
#define SYSTEM_ID UINT64_C(7000000000000000001)

static struct decide *d;
static struct decide_rules *rules;
static struct decide_facts *facts;
static int64_t now_us;

static void bed_make(void)
{
    int i;

    d = mem_alloc_zero(sizeof *d);
    rules = mem_alloc_zero(sizeof *rules);
    facts = mem_alloc_zero(sizeof *facts);
    now_us = 1000 * SECOND_US;
    rules->mode = DECIDE_MODE_STREAMING;
    rules->nnodes = 3;
    for (i = 0; i < 3; i++) {
        rules->node[i].exists = true;
        rules->node[i].may_fail = true;
        rules->node[i].health_check = true;
    }
}

static void bed_free(void)
{
    mem_free(d);
    mem_free(rules);
    mem_free(facts);
}

#endif
