/* SPDX-License-Identifier: PostgreSQL
 * orders_give.c: gives the orders of operators: sets what stands in shared memory, tells the
 * workers, and looks whether an order is carried out. Runs in: workers, for PGPOOL ...; control,
 * for pcp_pause and its like, who need no server connection and no client's place. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "ipc/mailbox.h"
#include "ipc/orders.h"
#include "sys/clock.h"

/* Longest list of what holds, in a refusal. */
#define HELD_BYTES 200

static bool is_meant(struct slice wanted, struct slice database)
{
    return wanted.n == 0 || slice_eq(wanted, database);
}

static bool links_are_gone(const struct shm *shm, struct slice database, int64_t client_row)
{
    const struct rows_header *rows = shm_get(shm, SHM_LINKS);
    const struct rows_worker *range;
    struct row_words words;
    struct link_row link;
    uint32_t w;
    uint32_t i;

    for (w = 0; w < rows->nworkers; w++) {
        range = rows_worker(rows, w);
        for (i = 0; i < range->high_water; i++) {
            (void)link_row_copy(rows, range->first + i, &link, &words);
            if (link.state != LINK_STATE_FREE && link.client_row != client_row &&
                is_meant(database, row_database(&words.names)))
                return false;
        }
    }
    return true;
}

/* Is a client there, other than that of `client_row`? Superusers and logins hinder no DRAIN, but
 * they use a database. */
static bool has_clients(
    const struct shm *shm, struct slice database, int64_t client_row, bool counts_all)
{
    const struct rows_header *rows = shm_get(shm, SHM_CLIENTS);
    const struct rows_worker *range;
    struct row_words words;
    struct client_row row;
    uint32_t w;
    uint32_t i;

    for (w = 0; w < rows->nworkers; w++) {
        range = rows_worker(rows, w);
        for (i = 0; i < range->high_water; i++) {
            (void)client_row_copy(rows, range->first + i, &row, &words);
            if (row.state == CLIENT_STATE_FREE || (int64_t)range->first + i == client_row ||
                (!counts_all && (row.state == CLIENT_STATE_LOGIN || row.is_superuser)))
                continue;
            if (is_meant(database, row_database(&words.names)))
                return true;
        }
    }
    return false;
}

int orders_reload(const struct proc_env *env, bool is_in_virtual, struct err *err)
{
    char what = 'r';

    if (!is_in_virtual) {
        err_set(err, "42501", "RELOAD is an order of pgpool's own database");
        err_hint(err, "Connect to database \"pgpool\", or use pgpool reload or pcp_reload_config.");
        return -1;
    }
    if (mailbox_post(env->boxes, PROC_SLOT_SUPERVISOR, MAIL_REQUEST, &what, 1, -1) == 0)
        return 0;
    err_set(err, "53000", "the main process could not be asked");
    err_hint(err, "Try again.");
    return -1;
}

int orders_shutdown(const struct proc_env *env, bool is_in_virtual, bool waits_for_clients,
    const struct orders_giver *giver, struct err *err)
{
    char what = waits_for_clients ? 's' : 'f';

    if (!is_in_virtual) {
        err_set(err, "42501", "SHUTDOWN is an order of pgpool's own database");
        err_hint(err, "Connect to database \"pgpool\", or use pgpool stop or pcp_stop_pgpool.");
        return -1;
    }
    log_at(LVL_LOG, "%s stops pgpool, mode %c", giver->who, what);
    if (mailbox_post(env->boxes, PROC_SLOT_SUPERVISOR, MAIL_REQUEST, &what, 1, -1) == 0)
        return 0;
    err_set(err, "53000", "the main process could not be asked");
    err_hint(err, "Try again.");
    return -1;
}

bool orders_are_replaced(const struct shm *shm, struct slice database, int64_t client_row)
{
    const struct rows_header *rows = shm_get(shm, SHM_LINKS);
    int64_t mono_from_wall_us = clock_mono_us() - clock_wall_us();
    const struct rows_worker *range;
    struct row_words words;
    struct link_row link;
    struct slice name;
    uint32_t w;
    uint32_t i;

    for (w = 0; w < rows->nworkers; w++) {
        range = rows_worker(rows, w);
        for (i = 0; i < range->high_water; i++) {
            (void)link_row_copy(rows, range->first + i, &link, &words);
            name = row_database(&words.names);
            if (link.state != LINK_STATE_FREE && link.client_row != client_row &&
                is_meant(database, name) &&
                orders_want_close(shm, name, link.created_us + mono_from_wall_us))
                return false;
        }
    }
    return true;
}

bool orders_database_is_used(const struct shm *shm, struct slice database)
{
    return database.n == 0 || has_clients(shm, database, ORDERS_NO_CLIENT, true) ||
           !links_are_gone(shm, database, ORDERS_NO_CLIENT);
}

void orders_tell_worker(const struct proc_env *env, int ordinal, const struct order_mail *m)
{
    int slot = env->first_worker_slot + ordinal;

    if (proc_row(env->shm, slot)->pid == 0)
        return; /* a worker that starts looks at the orders anyway */
    if (mailbox_post(env->boxes, slot, MAIL_ORDER, m, sizeof *m, -1) == -1)
        log_at_detail(LVL_WARNING, NULL,
            "Give the order again: the worker is busier than it should be.",
            "worker %d could not be told of an order: its mailbox is full", ordinal);
}

/* Tells all workers by mail, also the one that gives the order, so that it does not happen in the
 * middle of a client's message. */
void orders_tell(const struct proc_env *env)
{
    struct order_mail m = {.kind = ORDER_LOOK};
    int i;

    for (i = 0; i < env->nworkers; i++)
        orders_tell_worker(env, i, &m);
}

static const char *of_database(struct slice database, char *out, size_t size)
{
    snprintf(out, size, database.n == 0 ? "all databases" : "database \"%.*s\"", (int)database.n,
        database.p);
    return out;
}

static int set_pending(const struct proc_env *env, struct orders_pending *p, struct err *err)
{
    if (p->flag != ORDER_PAUSE)
        return orders_set(env->shm, p->database, p->flag, err);
    p->ticket = orders_take_ticket(env->shm, env->slot);
    return orders_set_pause(env->shm, p->database, p->ticket, err);
}

int orders_begin(const struct proc_env *env, struct orders_pending *p,
    const struct orders_giver *giver, struct err *err)
{
    const char *what = p->flag == ORDER_PAUSE ? "paused" : "draining";
    char text[ROWS_NAME_BYTES + 16];

    of_database(p->database, text, sizeof text);
    if ((orders_flags(env->shm, p->database) & p->flag) != 0) {
        err_set(err, "55000", "%s: %s already", text, what);
        err_hint(err, "PGPOOL RESUME ends it.");
        return -1;
    }
    if (p->database.n == 0 && p->flag == ORDER_PAUSE)
        orders_set_giver(env->shm, giver->user, giver->place);
    if (set_pending(env, p, err) == -1)
        return -1;
    log_at(LVL_LOG, "%s: %s by %s", text, what, giver->who);
    orders_tell(env);
    return 0;
}

static bool is_ended(const struct shm *shm, const struct orders_pending *p)
{
    return (orders_own_flags(shm, p->database) & p->flag) == 0;
}

bool orders_is_complete(const struct shm *shm, struct slice database, unsigned flag)
{
    return flag == ORDER_PAUSE ? links_are_gone(shm, database, ORDERS_NO_CLIENT)
                               : !has_clients(shm, database, ORDERS_NO_CLIENT, false);
}

enum orders_progress orders_look(
    const struct proc_env *env, const struct orders_pending *p, int64_t client_row, struct err *err)
{
    const struct shm *shm = env->shm;
    char text[ROWS_NAME_BYTES + 16];

    if (is_ended(shm, p)) {
        err_set(err, "55000", "%s: resumed before this was complete",
            of_database(p->database, text, sizeof text));
        return ORDERS_ENDED;
    }
    if (p->flag == ORDER_PAUSE ? !links_are_gone(shm, p->database, client_row)
                               : has_clients(shm, p->database, client_row, false))
        return ORDERS_PENDING;
    if (p->flag == ORDER_PAUSE)
        orders_end_ticket(env->shm, p->database, p->ticket);
    return ORDERS_DONE;
}

void orders_take_back(const struct proc_env *env, const struct orders_pending *p)
{
    if (p->flag != ORDER_PAUSE || !orders_has_ticket(env->shm, p->database, p->ticket))
        return;
    orders_clear(env->shm, p->database, ORDER_PAUSE);
    orders_tell(env);
}

/* What could have been meant. */
static void say_what_holds(const struct shm *shm, struct err *err)
{
    char held[HELD_BYTES] = "";
    char text[ROWS_NAME_BYTES + 16];
    struct order_state state;
    uint32_t at = 0;
    size_t n = 0;

    while (orders_next(shm, &at, &state)) {
        if ((state.flags & (ORDER_PAUSE | ORDER_DRAIN)) == 0 || n >= sizeof held)
            continue;
        of_database(slice_of(state.database, strnlen(state.database, sizeof state.database)), text,
            sizeof text);
        n += (size_t)snprintf(held + n, sizeof held - n, "%s%s", n == 0 ? "" : ", ", text);
    }
    if (n == 0)
        err_detail(err, "Nothing is paused or draining.");
    else
        err_detail(err, "Paused or draining: %s.", held);
}

int orders_resume(const struct proc_env *env, struct slice database,
    const struct orders_giver *giver, struct err *err)
{
    char text[ROWS_NAME_BYTES + 16];

    of_database(database, text, sizeof text);
    if ((orders_own_flags(env->shm, database) & (ORDER_PAUSE | ORDER_DRAIN)) == 0) {
        err_set(err, "55000", "%s: neither paused nor draining", text);
        say_what_holds(env->shm, err);
        err_hint(err, "An order for all databases and one for a single database are taken back "
                      "each by its own RESUME.");
        return -1;
    }
    orders_clear(env->shm, database, ORDER_PAUSE | ORDER_DRAIN);
    log_at(LVL_LOG, "%s: resumed by %s", text, giver->who);
    orders_tell(env);
    return 0;
}

int orders_reconnect(const struct proc_env *env, struct slice database,
    const struct orders_giver *giver, struct err *err)
{
    char text[ROWS_NAME_BYTES + 16];

    if (orders_set_reconnect(env->shm, database, clock_mono_us() + 1, err) == -1)
        return -1;
    log_at(LVL_LOG, "%s: server connections are replaced, by %s",
        of_database(database, text, sizeof text), giver->who);
    orders_tell(env);
    return 0;
}

int orders_disable(const struct proc_env *env, struct slice database, bool is_on,
    const struct orders_giver *giver, struct err *err)
{
    bool was_on = (orders_own_flags(env->shm, database) & ORDER_DISABLE) != 0;
    char text[ROWS_NAME_BYTES + 16];

    of_database(database, text, sizeof text);
    if (was_on == is_on) {
        err_set(err, "55000", is_on ? "%s: disabled already" : "%s: not disabled", text);
        return -1;
    }
    if (!is_on)
        orders_clear(env->shm, database, ORDER_DISABLE);
    else if (orders_set(env->shm, database, ORDER_DISABLE, err) == -1)
        return -1;
    log_at(LVL_LOG, "%s: %s by %s", text, is_on ? "disabled" : "enabled", giver->who);
    return 0;
}

int orders_kill_database(const struct proc_env *env, struct slice database, uint32_t giver_id,
    const struct orders_giver *giver, struct err *err)
{
    struct order_mail m = {.kind = ORDER_KILL_DATABASE, .client_id = giver_id};
    char text[ROWS_NAME_BYTES + 16];
    int i;

    if (database.n == 0)
        orders_set_giver(env->shm, giver->user, giver->place);
    if (orders_set(env->shm, database, ORDER_PAUSE, err) == -1)
        return -1;
    log_at(LVL_LOG, "%s: paused, and all clients sent away, by %s",
        of_database(database, text, sizeof text), giver->who);
    orders_tell(env);
    rows_set_text(m.database, sizeof m.database, database.p, database.n);
    for (i = 0; i < env->nworkers; i++)
        orders_tell_worker(env, i, &m);
    return 0;
}
