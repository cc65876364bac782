/* SPDX-License-Identifier: PostgreSQL
 * wd_addr_command.c: the virtual address by the operator's commands, where the kernel does not let
 * us set it.
 * Runs in: watchdog. A command that has begun is waited for: what it does cannot be taken back
 * half-way. Must never say that the address is gone before it is. */
#include "config.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"

#include "wd_addr_int.h"

#define QUESTION_LIMIT_MS 3000
#define COMMAND_LIMIT_MS  30000
#define TRY_AGAIN_MS      1000

static struct run *start(
    struct wd_addr *a, const char *name, const char *line, run_done_fn *done, bool is_question)
{
    struct run_spec spec = {.name = name,
        .line = line,
        .is_quiet = is_question,
        .limit_ms = is_question ? QUESTION_LIMIT_MS : COMMAND_LIMIT_MS,
        .done = done,
        .owner = a};

    return run_start(a->lp, &spec);
}

static void on_up(void *owner, const struct run_end *end)
{
    struct wd_addr *a = owner;

    a->run = NULL;
    if (a->must_give) {
        wd_command_give(a);
    } else if (end->ok || wd_addr_is_here(a)) {
        wd_addr_taken(a);
        wd_addr_run_beside(a, "arping_cmd", a->words.arping);
    } else {
        wd_addr_hindered(a, TRY_AGAIN_MS, "if_up_cmd failed: %s", end->text);
    }
}

static void take_now(struct wd_addr *a)
{
    a->run = start(a, "if_up_cmd", a->words.up, on_up, false);
    if (a->run == NULL)
        wd_addr_hindered(a, TRY_AGAIN_MS, "if_up_cmd could not be run");
}

static void on_ping(void *owner, const struct run_end *end)
{
    struct wd_addr *a = owner;

    a->run = NULL;
    if (end->ok)
        wd_addr_hindered(a, TRY_AGAIN_MS,
            "another machine still answers for the virtual address %s", a->address);
    else
        take_now(a);
}

void wd_command_take(struct wd_addr *a)
{
    struct buf line = {0};

    a->must_give = false;
    if (access(a->words.ping, X_OK) == -1) {
        take_now(a);
        return;
    }
    buf_printf(&line, "%s -q -c 1 -W 1 %s", a->words.ping, a->address);
    buf_put_byte(&line, '\0');
    a->run = start(a, "ping", line.data, on_ping, true);
    buf_free(&line);
    if (a->run == NULL)
        take_now(a);
}

static void on_down(void *owner, const struct run_end *end)
{
    struct wd_addr *a = owner;

    a->run = NULL;
    if (end->ok || !wd_addr_is_here(a))
        wd_addr_given(a);
    else
        timer_start(a->lp, &a->again, TRY_AGAIN_MS);
}

void wd_command_give(struct wd_addr *a)
{
    a->must_give = false;
    a->run = start(a, "if_down_cmd", a->words.down, on_down, false);
    if (a->run == NULL)
        timer_start(a->lp, &a->again, TRY_AGAIN_MS);
}
