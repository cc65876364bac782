/* SPDX-License-Identifier: PostgreSQL
 * web_health.c: what is wrong, in sentences: for somebody who is woken up at night, and for
 * /readyz.
 * Runs in: web. web_health_judge is pure; web_health_look reads shared memory and never waits. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/limits.h"
#include "base/mem.h"
#include "ipc/orders.h"
#include "known/session_shared.h"
#include "session/session.h"
#include "sys/clock.h"

#include "web_int.h"

#define ARGS_MAX         3
#define ARG_BYTES        160
#define NEARLY_FULL_PART 90 /* per cent of max_clients */

static const struct sentence {
    const char *code;
    enum web_level level;
    bool may_log_in;
    const char *en;
    const char *ja;
} sentences[] = {
#define WEB_TROUBLE(SYM, code, level, may_log_in, en, ja) {code, WEB_##level, may_log_in, en, ja},
#include "web_troubles.def"
#undef WEB_TROUBLE
};

/* The list that is being made. */
struct judge {
    const struct web_facts *f;
    const struct view *v;
    const struct conf *conf;
    struct web_trouble *out;
    int n;
    char args[ARGS_MAX][ARG_BYTES];
};

const char *web_trouble_code(enum web_trouble_kind kind)
{
    return sentences[kind].code;
}

enum web_level web_trouble_level(enum web_trouble_kind kind)
{
    return sentences[kind].level;
}

bool web_trouble_may_log_in(enum web_trouble_kind kind)
{
    return sentences[kind].may_log_in;
}

/* Writes `text` with the arguments in place of its {}. */
static void fill_in(const char *text, char args[ARGS_MAX][ARG_BYTES], char *out, size_t size)
{
    struct buf b = {0};
    int next = 0;
    size_t n;

    for (; *text != '\0'; text++) {
        if (text[0] == '{' && text[1] == '}' && next < ARGS_MAX) {
            buf_put(&b, args[next], strlen(args[next]));
            next++;
            text++;
        } else {
            buf_put(&b, text, 1);
        }
    }
    n = b.len < size ? b.len : size - 1;
    memcpy(out, b.data, n);
    out[n] = '\0';
    buf_free(&b);
}

/* Adds a sentence; its arguments stand in j->args. */
static void add(struct judge *j, enum web_trouble_kind kind)
{
    struct web_trouble *t = &j->out[j->n];

    if (j->n < WEB_TROUBLES_MAX) {
        t->kind = kind;
        fill_in(sentences[kind].en, j->args, t->en, sizeof t->en);
        fill_in(sentences[kind].ja, j->args, t->ja, sizeof t->ja);
        j->n++;
    }
    memset(j->args, 0, sizeof j->args);
}

static void set_number(struct judge *j, int arg, int64_t n)
{
    snprintf(j->args[arg], ARG_BYTES, "%" PRId64, n);
}

static void set_node(struct judge *j, int arg, int node)
{
    snprintf(j->args[arg], ARG_BYTES, "%d (%.100s:%d)", node, j->conf->nodes[node].backend_hostname,
        j->conf->nodes[node].backend_port);
}

int web_health_usable(const struct view *v)
{
    int n = 0;
    int i;

    for (i = 0; i < v->nnodes; i++)
        n += view_is_usable(v, i) && v->node[i].pg_status != VIEW_PG_DOWN;
    return n;
}

/* While no server was ever asked for its role (nobody may log in to ask), writes go to the first
 * that is usable. */
bool web_health_can_write(const struct view *v)
{
    bool answers = false;
    int i;

    if (view_can_write(v))
        return true;
    for (i = 0; i < v->nnodes; i++) {
        if (v->node[i].pg_role != VIEW_ROLE_UNKNOWN)
            return false;
        answers = answers || (view_is_usable(v, i) && v->node[i].pg_status == VIEW_PG_UP);
    }
    return answers && v->primary_epoch == 0 && !v->is_looking;
}

static int count_nodes(const struct judge *j)
{
    int n = 0;
    int i;

    for (i = 0; i < j->conf->nnodes; i++)
        n += conf_has_node(j->conf, i);
    return n;
}

/* Sets the cause of the first server of which something was said: where all are down they mostly
 * are so for one reason. */
static void set_first_cause(struct judge *j, int arg)
{
    int i;

    for (i = 0; i < j->conf->nnodes && j->args[arg][0] == '\0'; i++)
        if (conf_has_node(j->conf, i) && j->f->cause[i][0] != '\0')
            snprintf(j->args[arg], ARG_BYTES, " (server %d: %s)", i, j->f->cause[i]);
}

static void judge_process(struct judge *j)
{
    if (j->f->is_stopping)
        add(j, WEB_TROUBLE_STOPPING);
    if (j->f->nworkers == 0)
        add(j, WEB_TROUBLE_NO_WORKER);
    if (web_health_usable(j->v) == 0) {
        set_number(j, 0, count_nodes(j));
        set_first_cause(j, 1);
        add(j, WEB_TROUBLE_NO_SERVER);
    }
    if (j->f->orders & ORDER_DRAIN)
        add(j, WEB_TROUBLE_DRAINED);
    if (j->f->nclients >= j->conf->max_clients) {
        set_number(j, 0, j->f->nclients);
        set_number(j, 1, j->conf->max_clients);
        add(j, WEB_TROUBLE_FULL);
    }
}

static void judge_primary(struct judge *j)
{
    if (view_failover_in_progress(j->v))
        add(j, WEB_TROUBLE_REPLACING);
    else if (!web_health_can_write(j->v) && !j->v->is_looking && web_health_usable(j->v) > 0)
        add(j, WEB_TROUBLE_NO_PRIMARY);
    if (j->f->orders & ORDER_PAUSE)
        add(j, WEB_TROUBLE_PAUSED);
}

static bool is_lagging(const struct judge *j, const struct view_node *n)
{
    if (n->role != VIEW_ROLE_STANDBY || n->status != VIEW_UP)
        return false;
    if (j->conf->delay_threshold_by_time_ms > 0)
        return n->delay_is_time && n->delay_us > j->conf->delay_threshold_by_time_ms * 1000;
    return j->conf->delay_threshold_bytes > 0 && n->delay_bytes > j->conf->delay_threshold_bytes;
}

static bool has_other_primary(const struct view *v, int id)
{
    return v->primary != VIEW_NO_NODE && v->primary != id;
}

static bool is_former(const struct view *v, int id)
{
    return v->node[id].pg_role == VIEW_ROLE_PRIMARY && v->node[id].pg_status == VIEW_PG_UP &&
           has_other_primary(v, id);
}

/* Without auto_failback a standby stays away until somebody attaches it. */
static enum web_trouble_kind why_down(const struct judge *j, int id)
{
    const struct view *v = j->v;
    const struct view_node *n = &v->node[id];
    bool waits = has_other_primary(v, id) && !j->conf->auto_failback && n->status == VIEW_DOWN;

    if (n->is_busy)
        return WEB_TROUBLE_NODE_BUSY;
    if (n->pg_status == VIEW_PG_DOWN && !has_other_primary(v, id))
        return WEB_TROUBLE_NODE_DOWN;
    if (n->pg_status == VIEW_PG_DOWN)
        return waits ? WEB_TROUBLE_NODE_GONE : WEB_TROUBLE_NODE_LEFT;
    if (is_former(v, id))
        return waits ? WEB_TROUBLE_NODE_FORMER_STAYS : WEB_TROUBLE_NODE_FORMER;
    return waits ? WEB_TROUBLE_NODE_WAITS : WEB_TROUBLE_NODE_BACK;
}

static void judge_node(struct judge *j, int id)
{
    const struct view_node *n = &j->v->node[id];
    enum web_trouble_kind kind = why_down(j, id);
    bool is_silent = kind == WEB_TROUBLE_NODE_LEFT || kind == WEB_TROUBLE_NODE_GONE ||
                     kind == WEB_TROUBLE_NODE_DOWN;

    set_node(j, 0, id);
    if (n->held_down) {
        snprintf(j->args[1], ARG_BYTES, "%.63s", n->held_by);
        add(j, WEB_TROUBLE_NODE_HELD);
    } else if (n->status == VIEW_QUARANTINE || n->status == VIEW_DOWN ||
               n->pg_status == VIEW_PG_DOWN) {
        if (is_silent && j->f->cause[id][0] != '\0')
            snprintf(j->args[1], ARG_BYTES, " (%s)", j->f->cause[id]);
        if (has_other_primary(j->v, id))
            set_node(j, is_silent ? 2 : 1, j->v->primary);
        add(j, kind);
    } else if (n->is_unfed && has_other_primary(j->v, id)) {
        set_node(j, 1, j->v->primary);
        add(j, WEB_TROUBLE_NODE_UNFED);
    }
}

static void judge_lag(struct judge *j, int id)
{
    const struct view_node *n = &j->v->node[id];

    if (!is_lagging(j, n))
        return;
    set_node(j, 0, id);
    if (n->delay_is_time)
        snprintf(j->args[1], ARG_BYTES, "%.1f s", (double)n->delay_us / 1000000);
    else
        snprintf(j->args[1], ARG_BYTES, "%" PRId64 " bytes", n->delay_bytes);
    add(j, WEB_TROUBLE_LAGGING);
}

static void judge_load(struct judge *j)
{
    const struct web_facts *f = j->f;

    if (f->nwaiting > 0) {
        set_number(j, 0, f->nwaiting);
        add(j, WEB_TROUBLE_WAITING);
    }
    if (f->ordered[0] != '\0') {
        snprintf(j->args[0], ARG_BYTES, "%s", f->ordered);
        add(j, WEB_TROUBLE_ORDERED);
    }
    if (f->nclients < j->conf->max_clients &&
        (int64_t)f->nclients * 100 >= (int64_t)j->conf->max_clients * NEARLY_FULL_PART) {
        set_number(j, 0, f->nclients);
        set_number(j, 1, j->conf->max_clients);
        add(j, WEB_TROUBLE_NEARLY_FULL);
    }
}

static void judge_cert(struct judge *j)
{
    const struct cert_date *c = &j->f->cert;

    if (c->setting[0] == '\0' || c->expires_s - CERT_DATES_SOON_S > j->f->now_s)
        return;
    snprintf(j->args[0], ARG_BYTES, "%s (\"%.100s\")", c->setting, c->file);
    cert_date_text(c->expires_s, j->args[1]);
    add(j, c->expires_s <= j->f->now_s ? WEB_TROUBLE_CERT_EXPIRED : WEB_TROUBLE_CERT_EXPIRES);
}

int web_health_judge(const struct web_facts *f, const struct view *v, const struct conf *conf,
    struct web_trouble out[WEB_TROUBLES_MAX])
{
    struct judge j = {.f = f, .v = v, .conf = conf, .out = out};
    int i;

    judge_process(&j);
    judge_primary(&j);
    for (i = 0; i < conf->nnodes && i < v->nnodes; i++)
        if (conf_has_node(conf, i))
            judge_node(&j, i);
    judge_cert(&j);
    judge_load(&j);
    for (i = 0; i < conf->nnodes && i < v->nnodes; i++)
        if (conf_has_node(conf, i))
            judge_lag(&j, i);
    if (v->is_looking)
        add(&j, WEB_TROUBLE_LOOKING);
    if (j.n == 0) {
        set_number(&j, 0, web_health_usable(v));
        set_number(&j, 1, count_nodes(&j));
        set_number(&j, 2, f->nclients);
        add(&j, WEB_TROUBLE_NONE);
    }
    return j.n;
}

static void look_at_orders(const struct shm *shm, struct web_facts *f)
{
    struct order_state state;
    uint32_t at = 0;

    f->orders = orders_flags(shm, slice_of("", 0));
    while (orders_next(shm, &at, &state)) {
        if (state.database[0] == '\0' || state.flags == 0 || f->ordered[0] != '\0')
            continue;
        snprintf(f->ordered, sizeof f->ordered, "%.63s", state.database);
    }
}

/* Copies the first line of a cause, without blanks and the full stop at its end: it goes into a
 * sentence. */
static void copy_cause(const char *from, char out[WEB_CAUSE_BYTES])
{
    size_t n = strcspn(from, "\r\n");

    while (n > 0 && strchr(" \t.", from[n - 1]) != NULL)
        n--;
    snprintf(out, WEB_CAUSE_BYTES, "%.*s%s", (int)(n < WEB_CAUSE_BYTES ? n : WEB_CAUSE_BYTES - 4),
        from, n < WEB_CAUSE_BYTES ? "" : "...");
}

/* What was said when a server was called down last; there are events of it only then. */
static void look_for_causes(const struct shm *shm, const struct view *v, struct web_facts *f)
{
    struct view_event *event;
    bool is_wanted = false;
    int n;
    int i;

    for (i = 0; i < v->nnodes; i++)
        is_wanted = is_wanted || v->node[i].pg_status == VIEW_PG_DOWN;
    if (!is_wanted)
        return;
    event = mem_alloc(VIEW_MAX_EVENTS * sizeof *event);
    n = view_copy_events(shm, event, VIEW_MAX_EVENTS);
    for (i = 0; i < n; i++) {
        event[i].name[sizeof event[i].name - 1] = '\0';
        event[i].cause[sizeof event[i].cause - 1] = '\0';
        if (event[i].node >= 0 && event[i].node < CONF_MAX_NODES &&
            strcmp(event[i].name, "down") == 0)
            copy_cause(event[i].cause, f->cause[event[i].node]);
    }
    mem_free(event);
}

void web_health_look(struct web *w, struct web_facts *f)
{
    const struct proc_env *env = w->role.env;
    const struct cert_date *cert = cert_dates_first(&w->certs);
    struct limits_row limit;
    struct proc_row row;
    int i;

    memset(f, 0, sizeof *f);
    f->now_s = clock_wall_us() / CLOCK_US_PER_S;
    if (cert != NULL)
        f->cert = *cert;
    (void)view_refresh(env->shm, &w->view);
    f->is_stopping = atomic_load(&proc_row(env->shm, PROC_SLOT_SUPERVISOR)->is_leaving) != 0;
    for (i = env->first_worker_slot; i < proc_nslots(env->shm); i++) {
        proc_row_copy(env->shm, i, &row);
        if (row.pid == 0 || row.role != ROLE_WORKER)
            continue;
        f->nworkers += row.is_leaving == 0;
    }
    f->nclients = session_count_all(env->shm);
    for (i = 0; i < limits_high_water(env->shm); i++)
        if (limits_copy(env->shm, i, &limit) && limit.kind == LIMITS_POOL)
            f->nwaiting += (int)limit.waiting;
    look_at_orders(env->shm, f);
    look_for_causes(env->shm, &w->view, f);
}
