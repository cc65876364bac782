/* SPDX-License-Identifier: PostgreSQL
 * watchdog.c: life of the process through which several pgpools act as one.
 * Runs in: watchdog. Must never wait for anything but its loop. */
#include "config.h"

#include "process/watchdog/watchdog.h"

#include "base/mem.h"

#include "wd_int.h"

int watchdog_main(struct proc_env *env)
{
    struct wd *w = mem_alloc_zero(sizeof *w);
    int status;

    role_loop_init(&w->role, env);
    status = role_loop_run(&w->role);
    role_loop_fini(&w->role);
    mem_free(w);
    return status;
}
