/* SPDX-License-Identifier: PostgreSQL
 * wd_addr.c: when the virtual address is wanted, and until when.
 * Runs in: watchdog. Leading with a majority heard makes it wanted until the lease ends; no trusted
 * server, no interface and the lease's end make it unwanted. Two clocks are looked at before
 * anything is renewed: the boot clock, by which leases are counted, and the monotonic one, which
 * stands still while the machine sleeps and by which the kernel counts lifetimes. Must never hold
 * the address beyond the lease. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "sys/clock.h"

#include "wd_addr_int.h"

#define HOOK_LIMIT_MS 60000
#define SLEPT_MS      100 /* the two clocks cannot be read at once */

static void begin(struct wd_addr *a);
static void de_escalate(struct wd_addr *a);

/* ---- clocks ---- */

static int64_t read_ms(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t wd_addr_boot_ms(void)
{
    return read_ms(CLOCK_BOOTTIME);
}

int64_t wd_addr_mono_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

int64_t wd_addr_too_early_ms(const struct wd_addr *a)
{
    int64_t left_ms = a->from_ms - wd_addr_boot_ms();

    return left_ms > 0 ? left_ms : 0;
}

/* ---- telling the owner, from the loop ---- */

static bool is_held(const struct wd_addr *a)
{
    return a->stage == WD_HELD;
}

static void tell_later(struct wd_addr *a)
{
    task_post(a->lp, &a->tell);
}

static void on_tell(struct task *t)
{
    struct wd_addr *a = LIST_ENTRY(t, struct wd_addr, tell);
    const struct wd_addr_calls *calls = &a->calls;
    bool is_unfit = a->unfit[0] != '\0';

    if (a->told_held && a->was_lost) {
        a->told_held = false;
        a->was_lost = false;
        if (calls->on_lost != NULL)
            calls->on_lost(a->owner, a->why);
    }
    if (is_held(a) && !a->told_held) {
        a->told_held = true;
        a->was_lost = false;
        if (calls->on_taken != NULL)
            calls->on_taken(a->owner);
    }
    if (is_unfit == a->told_unfit)
        return;
    a->told_unfit = is_unfit;
    if (is_unfit && calls->on_unfit != NULL)
        calls->on_unfit(a->owner, a->unfit);
    if (!is_unfit && calls->on_fit != NULL)
        calls->on_fit(a->owner);
}

/* ---- what the ways say ---- */

void wd_addr_taken(struct wd_addr *a)
{
    a->stage = WD_HELD;
    a->held_since_us = clock_wall_us();
    a->last_error[0] = a->last_logged[0] = '\0';
    if (a->how == WD_ADDR_KERNEL)
        log_at(LVL_LOG, "successfully acquired the delegate IP:\"%s\" on %s", a->address,
            a->link.name);
    else if (a->how == WD_ADDR_COMMANDS)
        log_at(LVL_LOG, "successfully acquired the delegate IP:\"%s\"", a->address);
    tell_later(a);
}

void wd_addr_hindered(struct wd_addr *a, int64_t again_ms, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a->last_error, sizeof a->last_error, fmt, ap);
    va_end(ap);
    if (strcmp(a->last_error, a->last_logged) != 0)
        log_at_detail(LVL_WARNING, a->last_error,
            "if_up_cmd and its rights; who else has the address: ip addr on all machines.",
            "the virtual address %s cannot be taken now: it is tried again", a->address);
    memcpy(a->last_logged, a->last_error, sizeof a->last_logged);
    a->stage = WD_WAITING;
    timer_start(a->lp, &a->again, again_ms);
}

static void note_loss(struct wd_addr *a, const char *why)
{
    if (a->how != WD_ADDR_NOTHING)
        log_at_detail(
            LVL_LOG, why, NULL, "successfully released the delegate IP:\"%s\"", a->address);
    snprintf(a->why, sizeof a->why, "%s", why);
    a->was_lost = true;
    tell_later(a);
}

void wd_addr_lost(struct wd_addr *a, const char *why)
{
    note_loss(a, why);
    a->stage = WD_IDLE;
    if (a->is_leading)
        begin(a);
}

void wd_addr_given(struct wd_addr *a)
{
    a->stage = WD_IDLE;
    if (a->is_leading)
        begin(a);
}

/* ---- what the ways need ---- */

bool wd_addr_find_place(struct wd_addr *a)
{
    struct wd_place_host *host = mem_alloc(sizeof *host);
    struct err err = {0};
    bool ok = wd_place_look(host, &err) == 0 &&
              wd_place_choose(host, &a->words.place, a->words.up_is_default, &a->ip, &a->where,
                  &a->link, &err) == 0;

    mem_free(host);
    if (!ok)
        wd_addr_hindered(a, 1000, "%s", err.msg);
    return ok;
}

bool wd_addr_is_here(const struct wd_addr *a)
{
    struct wd_place_host *host = mem_alloc(sizeof *host);
    struct err err = {0};
    bool is_here = wd_place_look(host, &err) == 0 && wd_place_find(host, &a->ip) != NULL;

    mem_free(host);
    return is_here;
}

/* Nobody is told of the end, but the log is, and the limit holds. */
static void on_ended_beside(void *owner, const struct run_end *end)
{
}

void wd_addr_run_beside(struct wd_addr *a, const char *name, const char *command)
{
    struct run_spec spec = {
        .name = name, .line = command, .limit_ms = HOOK_LIMIT_MS, .done = on_ended_beside};

    if (command[0] != '\0')
        (void)run_start(a->lp, &spec);
}

void wd_addr_run_after(
    struct wd_addr *a, const struct run *before, const char *name, const char *command)
{
    struct buf line = {0};

    if (command[0] == '\0')
        return;
    buf_printf(
        &line, "while kill -0 %d 2>/dev/null; do sleep 0.1; done; %s", run_pid(before), command);
    buf_put_byte(&line, '\0');
    wd_addr_run_beside(a, name, line.data);
    buf_free(&line);
}

/* ---- beginning ---- */

static void take(struct wd_addr *a)
{
    a->stage = WD_TAKING;
    if (a->how == WD_ADDR_KERNEL)
        wd_kernel_take(a);
    else if (a->how == WD_ADDR_COMMANDS)
        wd_command_take(a);
    else
        wd_addr_taken(a);
}

/* The counterpart of a hook comes behind it, whatever has become of the lead meanwhile. */
static void on_hook(void *owner, const struct run_end *end)
{
    struct wd_addr *a = owner;

    a->hook = NULL;
    if (a->stage == WD_HOOK) {
        take(a);
    } else if (a->stage == WD_GIVING) {
        a->stage = WD_IDLE;
        de_escalate(a);
        if (a->is_leading)
            begin(a);
    }
}

static void on_hook_back(void *owner, const struct run_end *end)
{
    struct wd_addr *a = owner;

    a->hook = NULL;
    if (a->stage == WD_WAITING && a->is_leading && !timer_is_armed(&a->again))
        begin(a);
}

/* False when there is none, or it cannot be run. */
static bool run_hook(struct wd_addr *a)
{
    struct run_spec spec = {.name = "wd_escalation_command",
        .line = a->words.up_hook,
        .limit_ms = HOOK_LIMIT_MS,
        .done = on_hook,
        .owner = a};

    a->is_escalated = true;
    if (a->words.up_hook[0] == '\0')
        return false;
    a->stage = WD_HOOK;
    a->hook = run_start(a->lp, &spec);
    return a->hook != NULL;
}

/* The next wd_escalation_command waits for its end. */
static void de_escalate(struct wd_addr *a)
{
    struct run_spec spec = {.name = "wd_de_escalation_command",
        .line = a->words.down_hook,
        .limit_ms = HOOK_LIMIT_MS,
        .done = on_hook_back,
        .owner = a};

    if (!a->is_escalated || a->hook != NULL)
        return;
    a->is_escalated = false;
    if (a->words.down_hook[0] != '\0')
        a->hook = run_start(a->lp, &spec);
}

/* The kernel's way asks while it waits; commands cannot, and a hook may move an address by itself.
 */
static bool must_wait(const struct wd_addr *a)
{
    bool has_hook = !a->is_escalated && a->words.up_hook[0] != '\0';

    return wd_addr_too_early_ms(a) > 0 && (a->how != WD_ADDR_KERNEL || has_hook);
}

/* Leading, nothing held, nothing going on. */
static void begin(struct wd_addr *a)
{
    if (a->unfit[0] != '\0' || wd_trusted_state(a->trusted) == WD_TRUST_UNKNOWN ||
        a->hook != NULL) {
        a->stage = WD_WAITING;
        return;
    }
    if (must_wait(a)) {
        a->stage = WD_WAITING;
        timer_start(a->lp, &a->again, wd_addr_too_early_ms(a));
        return;
    }
    if (a->is_escalated || !run_hook(a))
        take(a);
}

/* ---- ending ---- */

static void withdraw_commands(struct wd_addr *a)
{
    bool is_up_running = a->stage == WD_TAKING && a->run != NULL && !run_is_quiet(a->run);

    if (is_up_running) {
        a->must_give = true;
        a->stage = WD_GIVING;
        return;
    }
    run_forget(&a->run);
    if (a->stage == WD_HELD) {
        a->stage = WD_GIVING;
        wd_command_give(a);
        return;
    }
    a->stage = WD_IDLE;
}

/* Whatever goes on: gives it up. */
static void withdraw(struct wd_addr *a, const char *why)
{
    if (a->stage == WD_IDLE || a->stage == WD_GIVING)
        return;
    if (is_held(a))
        note_loss(a, why);
    timer_stop(a->lp, &a->again);
    if (a->stage == WD_HOOK) {
        a->stage = WD_GIVING;
        return;
    }
    if (a->how == WD_ADDR_COMMANDS) {
        withdraw_commands(a);
        return;
    }
    if (a->how == WD_ADDR_KERNEL)
        wd_kernel_drop(a);
    run_forget(&a->run);
    a->stage = WD_IDLE;
}

static void stop(struct wd_addr *a, const char *why)
{
    a->is_leading = false;
    a->lease_ms = 0;
    withdraw(a, why);
    de_escalate(a);
}

/* ---- the lease ---- */

static void arm_lease(struct wd_addr *a)
{
    struct itimerspec at = {.it_value = {.tv_sec = a->lease_ms / 1000,
                                .tv_nsec = (long)(a->lease_ms % 1000) * 1000000}};

    (void)timerfd_settime(a->lease_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void expire(struct wd_addr *a)
{
    if (a->is_leading && wd_addr_boot_ms() >= a->lease_ms)
        stop(a, "the lease is over");
}

static void on_lease(struct io *io, int events)
{
    struct wd_addr *a = LIST_ENTRY(io, struct wd_addr, lease);
    uint64_t times;

    (void)!read(a->lease_fd, &times, sizeof times);
    expire(a);
}

/* While a machine sleeps the kernel's lifetimes stand still, and the lease does not. */
static void look_at_clocks(struct wd_addr *a)
{
    int64_t ahead_ms = wd_addr_boot_ms() - wd_addr_mono_ms();
    int64_t slept_ms = ahead_ms - a->slept_ms;

    a->slept_ms = ahead_ms;
    expire(a);
    if (slept_ms <= SLEPT_MS || !is_held(a))
        return;
    log_at(LVL_LOG, "this machine has slept for %lld ms: the virtual address is taken anew",
        (long long)slept_ms);
    withdraw(a, "this machine has slept");
    if (a->stage == WD_IDLE && a->is_leading)
        begin(a);
}

void wd_addr_lead(struct wd_addr *a, int64_t valid_until_boot_ms)
{
    int64_t span_ms = valid_until_boot_ms - wd_addr_boot_ms();

    look_at_clocks(a);
    if (a->how != WD_ADDR_KERNEL) { /* a command takes its time, too */
        valid_until_boot_ms -= WD_ADDR_LATE_MS;
        span_ms -= WD_ADDR_LATE_MS;
    }
    if (span_ms <= 0 || valid_until_boot_ms <= a->lease_ms)
        return;
    a->lease_ms = valid_until_boot_ms;
    if (!a->is_leading || span_ms > a->span_ms)
        a->span_ms = span_ms;
    arm_lease(a);
    if (!a->is_leading)
        wd_trusted_ask(a->trusted);
    a->is_leading = true;
    if (a->stage == WD_IDLE)
        begin(a);
    else if (a->stage == WD_HELD && a->how == WD_ADDR_KERNEL)
        wd_kernel_renew(a);
    else if (a->stage == WD_TAKING && a->how == WD_ADDR_KERNEL && !timer_is_armed(&a->again))
        wd_kernel_step(a); /* all but the lease was there */
}

void wd_addr_not_before(struct wd_addr *a, int64_t boot_ms)
{
    a->from_ms = boot_ms;
}

void wd_addr_stop_leading(struct wd_addr *a)
{
    stop(a, "this pgpool does not lead any more");
}

/* ---- may this pgpool lead ---- */

static bool links_are_up(const struct wd_addr *a)
{
    struct iflink *link;
    struct err err = {0};
    bool are_up;
    int n;

    if (a->watched.n == 0)
        return true;
    link = mem_alloc(IFLINK_MAX * sizeof *link);
    n = iflink_list(link, IFLINK_MAX, &err);
    are_up = n == -1 || wd_words_links_are_up(&a->watched, link, n);
    mem_free(link);
    return are_up;
}

static void become_unfit(struct wd_addr *a, const char *why)
{
    bool was_fit = a->unfit[0] == '\0';

    snprintf(a->unfit, sizeof a->unfit, "%s", why);
    snprintf(a->last_error, sizeof a->last_error, "%s", why);
    if (!was_fit)
        return;
    log_at_detail(LVL_WARNING, a->unfit, "The network of this machine; SHOW POOL_WATCHDOG.",
        "this pgpool should not lead now");
    withdraw(a, a->unfit);
    de_escalate(a);
    if (a->stage == WD_IDLE && a->is_leading)
        begin(a);
    tell_later(a);
}

static void judge_fitness(struct wd_addr *a)
{
    bool was_unfit = a->unfit[0] != '\0';

    if (wd_trusted_state(a->trusted) == WD_TRUST_SILENT) {
        become_unfit(a, "no trusted server answers");
    } else if (!links_are_up(a)) {
        become_unfit(a, "no interface of wd_monitoring_interfaces_list is up");
    } else {
        a->unfit[0] = '\0';
        if (was_unfit)
            tell_later(a);
        if (a->stage == WD_WAITING && !timer_is_armed(&a->again))
            begin(a);
    }
}

static void on_trusted(void *owner)
{
    judge_fitness(owner);
}

static void on_change(struct io *io, int events)
{
    struct wd_addr *a = LIST_ENTRY(io, struct wd_addr, watch);

    if (!ifaddr_watch_read(a->watch_fd))
        return;
    look_at_clocks(a);
    judge_fitness(a);
    if (is_held(a) && a->how == WD_ADDR_KERNEL && !wd_addr_is_here(a))
        wd_kernel_missed(a);
}

static void on_again(struct timer *t)
{
    struct wd_addr *a = LIST_ENTRY(t, struct wd_addr, again);

    look_at_clocks(a);
    if (timer_is_armed(t))
        return;
    if (a->stage == WD_WAITING && a->is_leading)
        begin(a);
    else if (a->stage == WD_GIVING)
        wd_command_give(a);
    else if (a->how == WD_ADDR_KERNEL)
        wd_kernel_step(a);
}

/* ---- life ---- */

static int read_address(struct wd_addr *a, const struct conf *conf, struct err *err)
{
    if (conf->delegate_ip[0] == '\0')
        return 0;
    if (!net_ip_parse(conf->delegate_ip, &a->ip)) {
        err_set(err, "22023", "delegate_ip \"%s\" is no address", conf->delegate_ip);
        err_hint(err, "Give an address of IPv4 or IPv6, without a prefix.");
        return -1;
    }
    (void)net_ip_text(&a->ip, a->address);
    return 0;
}

static int open_clocks(struct wd_addr *a, struct err *err)
{
    a->lease_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (a->lease_fd == -1) {
        err_set_errno(err, errno, "could not make a timer");
        return -1;
    }
    a->watch_fd = ifaddr_watch(err);
    if (a->watch_fd == -1) {
        close(a->lease_fd);
        return -1;
    }
    io_open(a->lp, &a->lease, a->lease_fd, on_lease);
    io_want(&a->lease, IO_READ);
    io_open(a->lp, &a->watch, a->watch_fd, on_change);
    io_want(&a->watch, IO_READ);
    a->nopen = 2;
    return 0;
}

static void choose_way(struct wd_addr *a)
{
    if (a->address[0] == '\0')
        return;
    if (wd_kernel_init(a)) {
        a->how = WD_ADDR_KERNEL;
        return;
    }
    a->how = WD_ADDR_COMMANDS;
    log_at_detail(LVL_WARNING,
        "A pgpool that is killed, stopped or hangs keeps the address, and a second one may take "
        "it besides.",
        "Give the program CAP_NET_ADMIN and CAP_NET_RAW: then the kernel takes the address away "
        "when the lease is over.",
        "the virtual address %s is set by if_up_cmd and removed by if_down_cmd alone", a->address);
    if (!wd_addr_is_here(a))
        return;
    log_at_detail(LVL_WARNING, NULL, "It is taken away by if_down_cmd; nothing needs to be done.",
        "the virtual address %s is on this machine, left by a former process", a->address);
    a->stage = WD_GIVING;
    wd_command_give(a);
}

static void copy_list(struct conf_list *to, const struct conf_list *from)
{
    int i;

    to->item = mem_alloc_zero((size_t)(from->n + 1) * sizeof *to->item);
    to->n = from->n;
    for (i = 0; i < from->n; i++)
        to->item[i] = mem_strdup(from->item[i]);
}

/* Frees what no io needs. */
static void drop_parts(struct wd_addr *a)
{
    int i;

    for (i = 0; i < a->watched.n; i++)
        mem_free((char *)a->watched.item[i]);
    mem_free(a->watched.item);
    a->watched = (struct conf_list){0};
    wd_words_fini(&a->words);
    wd_trusted_free(&a->trusted);
}

struct wd_addr *wd_addr_new(struct loop *lp, const struct conf *conf,
    const struct wd_addr_calls *calls, void *owner, struct err *err)
{
    struct wd_addr *a = mem_alloc_zero(sizeof *a);

    a->lp = lp;
    a->calls = *calls;
    a->owner = owner;
    a->kernel.request_fd = -1;
    a->slept_ms = wd_addr_boot_ms() - wd_addr_mono_ms();
    timer_init(&a->again, on_again);
    task_init(&a->tell, on_tell);
    if (read_address(a, conf, err) == 0)
        a->trusted = wd_trusted_new(lp, conf, on_trusted, a, err);
    if (a->trusted == NULL || open_clocks(a, err) == -1) {
        drop_parts(a);
        mem_free(a);
        return NULL;
    }
    wd_words_init(&a->words, conf, a->address);
    copy_list(&a->watched, &conf->wd_monitoring_interfaces_list);
    choose_way(a);
    judge_fitness(a);
    return a;
}

static void closed_one(struct wd_addr *a)
{
    if (--a->nopen == 0)
        mem_free(a);
}

static void on_lease_closed(struct io *io)
{
    closed_one(LIST_ENTRY(io, struct wd_addr, lease));
}

static void on_watch_closed(struct io *io)
{
    closed_one(LIST_ENTRY(io, struct wd_addr, watch));
}

void wd_addr_free(struct wd_addr **ap)
{
    struct wd_addr *a = *ap;

    if (a == NULL)
        return;
    *ap = NULL;
    stop(a, "this pgpool stops");
    if (a->must_give)
        wd_addr_run_after(a, a->run, "if_down_cmd", a->words.down);
    if (a->is_escalated) /* the hook still runs */
        wd_addr_run_after(a, a->hook, "wd_de_escalation_command", a->words.down_hook);
    run_forget(&a->run);
    run_forget(&a->hook);
    timer_stop(a->lp, &a->again);
    task_cancel(&a->tell);
    wd_kernel_fini(a);
    drop_parts(a);
    io_close(&a->lease, on_lease_closed);
    io_close(&a->watch, on_watch_closed);
    close(a->lease_fd);
    close(a->watch_fd);
}

void wd_addr_reload(struct wd_addr *a, const struct conf *conf)
{
    wd_words_hooks(&a->words, conf);
    wd_trusted_reload(a->trusted, conf);
}

bool wd_addr_is_fit(const struct wd_addr *a, const char **why)
{
    *why = a->unfit;
    return a->unfit[0] == '\0';
}

bool wd_addr_is_trusted(struct wd_addr *a, int64_t since_us)
{
    if (wd_trusted_answered(a->trusted, since_us))
        return true;
    wd_trusted_ask(a->trusted);
    return false;
}

const char *wd_addr_how_text(enum wd_addr_how how)
{
    static const char *const text[] = {
        [WD_ADDR_NOTHING] = "none", [WD_ADDR_KERNEL] = "kernel", [WD_ADDR_COMMANDS] = "commands"};

    return text[how];
}

void wd_addr_status(const struct wd_addr *a, struct wd_addr_status *out)
{
    static const char *const doing[] = {[WD_IDLE] = "not wanted",
        [WD_HOOK] = "wd_escalation_command runs",
        [WD_WAITING] = "waiting",
        [WD_TAKING] = "being taken",
        [WD_HELD] = "held",
        [WD_GIVING] = "being given up"};
    int64_t left_ms = a->lease_ms - wd_addr_boot_ms();

    *out = (struct wd_addr_status){.address = a->address,
        .interface = a->link.name,
        .doing = doing[a->stage],
        .how = a->how,
        .is_leading = a->is_leading,
        .is_held = is_held(a) || a->stage == WD_GIVING,
        .is_gone = a->how == WD_ADDR_KERNEL && a->stage == WD_IDLE && !a->is_leading &&
                   !a->kernel.is_left};
    if (is_held(a)) {
        out->lease_left_ms = left_ms > 0 ? left_ms : 0;
        out->held_since_us = a->held_since_us;
    }
    memcpy(out->last_error, a->last_error, sizeof out->last_error);
}
