/* SPDX-License-Identifier: PostgreSQL
 * wd_fence.c: wd_fence_command: whoever begins to lead has the one before shut out, when that has
 * not given the lead up in order, before it takes the address. Runs in: watchdog. What fails is
 * tried again for as long as this pgpool leads, and by the next one when it leads no more: until it
 * stands in the log the address is nobody's. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "process/common/command_run.h"

#include "wd_int.h"

#define LIMIT_MS 60000
#define AGAIN_MS 2000

static bool has_command(const struct wd *w)
{
    return wd_conf(w)->wd_fence_command[0] != '\0' && wd_is_listed(w, w->state.former);
}

static void on_end(void *owner, const struct run_end *end)
{
    struct wd *w = owner;

    w->fence.run = NULL;
    w->fence.is_done = end->ok;
    w->fence.again_ms = wd_addr_boot_ms() + AGAIN_MS;
    if (end->ok)
        log_at(LVL_LOG, "watchdog: the former leader, pgpool %d, is shut out", w->state.former);
    else
        log_at_detail(LVL_WARNING, end->text,
            "It is run again; by hand, as the user that pgpool runs as, it tells more.",
            "watchdog: wd_fence_command has failed: the virtual address is not taken yet");
}

static void make_line(const struct wd *w, struct buf *line)
{
    const char *p;

    for (p = wd_conf(w)->wd_fence_command; *p != '\0'; p++) {
        if (p[0] == '%' && p[1] == 'h')
            buf_printf(line, "%s", wd_conf(w)->wd_nodes[w->state.former].hostname);
        else if (p[0] == '%' && p[1] == 'i')
            buf_printf(line, "%d", w->state.former);
        else if (p[0] == '%' && p[1] == '%')
            buf_put_byte(line, '%');
        else {
            buf_put_byte(line, *p);
            continue;
        }
        p++;
    }
    buf_put_byte(line, '\0');
}

static void start(struct wd *w)
{
    struct buf line = {0};
    struct run_spec spec = {
        .name = "wd_fence_command", .limit_ms = LIMIT_MS, .done = on_end, .owner = w};

    make_line(w, &line);
    spec.line = line.data;
    w->fence.run = run_start(&w->role.loop, &spec);
    w->fence.again_ms = wd_addr_boot_ms() + AGAIN_MS;
    buf_free(&line);
}

bool wd_fence_is_done(struct wd *w)
{
    struct wd_fence *f = &w->fence;

    if (f->lead_ms != w->lead.since_boot_ms) {
        run_forget(&f->run);
        memset(f, 0, sizeof *f);
        f->lead_ms = w->lead.since_boot_ms;
    }
    if (f->is_done || !has_command(w))
        return true;
    if (f->run == NULL && wd_addr_boot_ms() >= f->again_ms)
        start(w);
    return false;
}
