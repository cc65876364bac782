/* SPDX-License-Identifier: PostgreSQL
 * monitor.c: the process that watches the servers: asks them, has the answers decided on, and
 * publishes what comes out.
 * Runs in: monitor. The only writer of the cluster view. Holds no opinion of its own: what an
 * answer means is in cluster/decide. Must never touch a client's bytes, and never wait for a
 * server. */
#include "config.h"

#include "process/monitor/monitor.h"

#include <string.h>
#include <unistd.h>

#include "backend/quota.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "cache/cache_store.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "process/common/role_conf.h"
#include "sys/clock.h"

#include "monitor_int.h"

#define MARGIN_PART     10 /* of a server's connections, one in so many is left to others */
#define MARGIN_LEAST    3
#define OWN_CONNECTIONS 1 /* the monitor's, out of what a server gives */

static const struct conf *conf_now(const struct monitor *m)
{
    return conf_of(role_loop_gen(&m->role));
}

static void copy_text(const char *from, char *to, size_t room)
{
    memset(to, 0, room);
    memcpy(to, from, strnlen(from, room - 1));
}

/* What comes out */

static void tell(const struct decide_event *e)
{
    enum log_level level =
        decide_event_level(e->type) == DECIDE_LVL_WARNING ? LVL_WARNING : LVL_LOG;

    if (e->type == DECIDE_EV_DOWN)
        log_at(LVL_DEBUG1, "executing failover on backend %d", e->node);
    log_at_detail(level, e->detail[0] == '\0' ? NULL : e->detail, e->hint, "%s", e->text);
}

/* The limit that the settings leave to us. Others than our clients want to get in, too. */
static void set_quota(struct monitor *m, int id)
{
    int limit = conf_now(m)->max_backend_connections;
    int room = m->decide.view.node[id].max_connections;

    if (limit == 0 && room > 0)
        limit = room - OWN_CONNECTIONS -
                (room / MARGIN_PART > MARGIN_LEAST ? room / MARGIN_PART : MARGIN_LEAST);
    if (conf_now(m)->max_backend_connections == 0 && room > 0 && limit < 1)
        limit = 1;
    if (limit != quota_limit(m->role.env->shm, id))
        quota_set_limit(m->role.env->shm, id, limit);
}

/* Servers of pools.conf are not watched: what they allow nobody here knows. */
static void set_other_quotas(struct monitor *m)
{
    const struct conf *conf = conf_now(m);
    int id;

    for (id = POOLS_FIRST_TARGET; pools_conf_target(conf, id) != NULL; id++)
        if (quota_limit(m->role.env->shm, id) != conf->max_backend_connections)
            quota_set_limit(m->role.env->shm, id, conf->max_backend_connections);
}

static void set_watched(struct monitor *m)
{
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        m->decide.view.node[i].is_watched =
            m->node[i].probe != NULL && monitor_conf_delay_ms(conf_now(m), &m->decide, i) >= 0;
}

static void set_weights(struct monitor *m)
{
    const struct conf *conf = conf_now(m);
    double sum = 0;
    int i;

    for (i = 0; i < conf->nnodes; i++)
        sum += conf_has_node(conf, i) ? conf->nodes[i].backend_weight : 0;
    for (i = 0; i < conf->nnodes; i++)
        m->decide.view.node[i].weight_permille =
            sum > 0 && conf_has_node(conf, i)
                ? (uint16_t)(conf->nodes[i].backend_weight * 1000 / sum + 0.5)
                : 0;
}

static void keep(struct monitor *m, const struct decide_event *e)
{
    struct view_event out = {.at_us = e->at_us, .node = e->node};

    copy_text(decide_event_name(e->type), out.name, sizeof out.name);
    copy_text(e->text, out.text, sizeof out.text);
    copy_text(e->detail, out.cause, sizeof out.cause);
    copy_text(e->who[0] == '\0' ? "monitor" : e->who, out.who, sizeof out.who);
    view_add_event(m->role.env->shm, &out);
}

/* What makes a difference to clients. */
static uint64_t digest_of(const struct view *v)
{
    int32_t words[7] = {v->primary, (int32_t)v->primary_epoch, v->sw.phase, v->sw.node, v->nnodes,
        v->sw.fenced[0] != 0, v->is_looking};
    uint64_t h = hash_bytes(words, sizeof words, 0);
    int i;

    for (i = 0; i < v->nnodes; i++) {
        const struct view_node *n = &v->node[i];
        uint8_t bytes[5] = {n->status, n->pg_status, n->pg_role, n->held_down, n->is_busy};

        h = hash_bytes(bytes, sizeof bytes, h);
    }
    return h;
}

static void tell_workers(struct monitor *m)
{
    const struct proc_env *env = m->role.env;
    uint64_t now = digest_of(&m->decide.view);
    int slot;

    if (now == m->told)
        return;
    m->told = now;
    for (slot = 0; slot < proc_nslots(env->shm); slot++)
        if (proc_row(env->shm, slot)->role == ROLE_WORKER)
            (void)mailbox_post(env->boxes, slot, MAIL_CLUSTER_CHANGED, NULL, 0, -1);
}

static void on_publish(struct task *t)
{
    struct monitor *m = LIST_ENTRY(t, struct monitor, publish);
    int n;
    int i;

    decide_look(&m->decide, monitor_now_us(m));
    monitor_act_step(m);
    n = decide_take_events(&m->decide, m->events, DECIDE_MAX_EVENTS);
    for (i = 0; i < n && conf_now(m)->health_check_test; i++)
        if (m->events[i].type == DECIDE_EV_DOWN)
            monitor_fake_mark(role_loop_gen(&m->role), m->events[i].node);
    set_weights(m);
    set_watched(m);
    view_publish(m->role.env->shm, &m->decide.view);
    tell_workers(m);
    for (i = 0; i < n; i++) {
        if (decide_event_is_kept(m->events[i].type))
            keep(m, &m->events[i]);
        tell(&m->events[i]);
    }
    monitor_act_tell(m);
    for (i = 0; i < m->decide.rules.nnodes; i++)
        if (m->decide.rules.node[i].exists)
            set_quota(m, i);
    set_other_quotas(m);
    monitor_orders_save(m);
    monitor_wd_tell(m);
}

void monitor_changed(struct monitor *m)
{
    task_post(&m->role.loop, &m->publish);
}

/* What goes in */

static void schedule(struct watched *w)
{
    struct loop *lp = &w->m->role.loop;
    int64_t delay_ms = monitor_conf_delay_ms(conf_now(w->m), &w->m->decide, w->id);

    if (delay_ms < 0) {
        timer_stop(lp, &w->timer);
        return;
    }
    w->due_us = loop_now_us(lp) + delay_ms * CLOCK_US_PER_MS;
    timer_start(lp, &w->timer, delay_ms);
}

/* One server's answer may make another one's due: a lost primary is searched for everywhere. Never
 * puts a probe off. */
static void schedule_sooner(struct monitor *m)
{
    int64_t now_us = loop_now_us(&m->role.loop);
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++) {
        struct watched *w = &m->node[i];
        int64_t delay_ms;

        if (w->probe == NULL || probe_is_running(w->probe) || !decide_is_urgent(&m->decide, i))
            continue;
        delay_ms = monitor_conf_delay_ms(conf_now(m), &m->decide, i);
        if (!timer_is_armed(&w->timer) || now_us + delay_ms * CLOCK_US_PER_MS < w->due_us)
            schedule(w);
    }
}

static void take_in(struct watched *w, const struct decide_probe *dp)
{
    decide_on_probe(&w->m->decide, w->id, dp, monitor_now_us(w->m));
    schedule(w);
    schedule_sooner(w->m);
    monitor_changed(w->m);
}

static void ask(struct watched *w)
{
    struct decide_probe fake = {.answer = DECIDE_FAILED,
        .sqlstate = "",
        .message = "the file backend_down_request says so"};

    if (conf_now(w->m)->health_check_test && monitor_fake_is_down(role_loop_gen(&w->m->role), w->id,
                                                 w->m->decide.view.node[w->id].status == VIEW_DOWN))
        take_in(w, &fake);
    else if (w->m->decide.node[w->id].suspected)
        probe_start_anew(w->probe);
    else
        probe_start(w->probe);
}

void monitor_ask_all(struct monitor *m)
{
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        if (m->node[i].probe != NULL)
            ask(&m->node[i]);
}

static void on_timer(struct timer *t)
{
    ask(LIST_ENTRY(t, struct watched, timer));
}

static void translate_sender(const struct probe_sender *from, struct decide_sender *to)
{
    copy_text(from->name, to->name, sizeof to->name);
    copy_text(from->addr, to->addr, sizeof to->addr);
    copy_text(from->state, to->state, sizeof to->state);
    copy_text(from->sync_state, to->sync_state, sizeof to->sync_state);
    to->replay_lag_us = from->replay_lag_us;
}

static void translate_facts(const struct probe_facts *from, struct decide_facts *to)
{
    int i;

    memset(to, 0, sizeof *to);
    to->is_primary = !from->in_recovery;
    to->is_receiving = from->is_receiving;
    to->timeline = from->timeline;
    to->server_version = from->server_version;
    to->system_id = from->system_id;
    to->max_connections = from->max_connections - from->reserved;
    to->received_lsn = from->received_lsn;
    to->replayed_lsn = from->replayed_lsn;
    to->replay_age_us = from->replay_age_us;
    to->silence_us = from->silence_us;
    to->silence_limit_us = from->silence_limit_us;
    copy_text(from->receiver_name, to->receiver_name, sizeof to->receiver_name);
    for (i = 0; i < from->nsenders && i < DECIDE_MAX_SENDERS; i++)
        translate_sender(&from->sender[i], &to->sender[to->nsenders++]);
}

static enum decide_answer translate_answer(enum probe_answer answer)
{
    switch (answer) {
    case PROBE_FAILED:
        return DECIDE_FAILED;
    case PROBE_UNSURE:
        return DECIDE_UNSURE;
    case PROBE_BUSY:
        return DECIDE_BUSY;
    case PROBE_ALIVE:
        return DECIDE_ALIVE;
    case PROBE_COMPLETE:
        break;
    }
    return DECIDE_FACTS;
}

/* Results are as the server's settings were: TimeZone, search_path, whatever it was. A connection
 * that was open then says later when it heard of it than one that came afterwards. */
static void note_loaded(struct monitor *m, int id, int64_t loaded_us)
{
    struct view_node *v = &m->decide.view.node[id];
    bool is_first = v->loaded_us == 0;
    struct cache *cache;

    if (loaded_us <= v->loaded_us)
        return;
    v->loaded_us = loaded_us;
    cache = is_first ? NULL : cache_open(m->role.env->shm, m->role.env->slot);
    if (cache == NULL)
        return;
    cache_empty(cache, clock_mono_us());
    cache_close(&cache);
    log_at(LVL_LOG, "query cache: node %d has read its configuration anew: all results are dropped",
        id);
}

static void on_done(struct probe *p, const struct probe_report *r)
{
    struct watched *w = probe_owner(p);
    struct monitor *m = w->m;
    struct decide_probe dp = {
        .answer = translate_answer(r->answer),
        .sqlstate = r->sqlstate,
        .message = r->message,
        .took_ms = r->took_us / 1000,
        .began_us = r->began_us,
        .is_late = r->was_late,
        .facts = &m->facts,
    };

    if (dp.answer == DECIDE_FACTS) {
        translate_facts(&r->facts, &m->facts);
        note_loaded(m, w->id, r->facts.loaded_us);
    }
    take_in(w, &dp);
}

/* Our own idle connection broke: the server is going, or somebody ended us. Ask again at once. */
static void on_lost(struct probe *p)
{
    ask(probe_owner(p));
}

/* Somebody's link to a server broke, or another pgpool has found it lost: ask it now, and the
 * others too, for if it was the primary the new one may be there already. A thousand clients may
 * say so at once: while its failed probe is being repeated, they do not use up the repetitions. */
static void on_suspect(struct monitor *m, const struct mail *mail)
{
    int32_t id;

    if (mail->len < sizeof id)
        return;
    memcpy(&id, mail->body, sizeof id);
    if (id < 0 || id >= VIEW_MAX_NODES || m->node[id].probe == NULL)
        return;
    decide_on_suspect(&m->decide, id, clock_mono_us());
    if (mail->type == MAIL_NODE_MISSED)
        monitor_changed(m); /* the others hear that the question is open here */
    if (m->decide.node[id].fails > 0)
        return;
    if (id == m->decide.view.primary)
        monitor_ask_all(m);
    else
        ask(&m->node[id]);
}

/* What was decided is checked at once: an attached server may be gone, its role another. */
static void on_command(struct monitor *m, const struct mail *mail)
{
    if (!monitor_orders_take(m, mail))
        return;
    monitor_ask_all(m);
    monitor_changed(m);
}

/* A worker died amid what one server does for good. */
static void on_ahead(struct monitor *m)
{
    if (!monitor_orders_catch_up(m))
        return;
    monitor_ask_all(m);
    monitor_changed(m);
}

/* Writes an event for another process: the monitor alone writes them. */
static void on_note(struct monitor *m, const struct mail *mail)
{
    struct view_event e;

    if (mail->len != sizeof e)
        return;
    memcpy(&e, mail->body, sizeof e);
    e.name[sizeof e.name - 1] = e.text[sizeof e.text - 1] = '\0';
    e.cause[sizeof e.cause - 1] = e.who[sizeof e.who - 1] = '\0';
    view_add_event(m->role.env->shm, &e);
}

/* Servers that the settings leave alone stay alone. */
static void on_look(struct monitor *m)
{
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        if (m->node[i].probe != NULL && monitor_conf_delay_ms(conf_now(m), &m->decide, i) >= 0)
            ask(&m->node[i]);
}

static void on_says(struct monitor *m, const struct mail *mail)
{
    bool is_attached = false;

    if (!monitor_wd_take(m, mail, &is_attached))
        return;
    if (is_attached)
        monitor_ask_all(m); /* as behind an order here */
    monitor_changed(m);
}

static void on_leads(struct monitor *m, const struct mail *mail)
{
    if (monitor_wd_led(m, mail))
        monitor_changed(m);
}

static void on_mail(struct role_loop *rl, struct mail *mail)
{
    struct monitor *m = LIST_ENTRY(rl, struct monitor, role);

    if (mail->type == MAIL_NODE_SUSPECT || mail->type == MAIL_NODE_MISSED)
        on_suspect(m, mail);
    else if (mail->type == MAIL_NODES_LOOK)
        on_look(m);
    else if (mail->type == MAIL_NODE_COMMAND)
        on_command(m, mail);
    else if (mail->type == MAIL_NODE_AHEAD)
        on_ahead(m);
    else if (mail->type == MAIL_NOTE)
        on_note(m, mail);
    else if (mail->type == MAIL_WD_SAYS)
        on_says(m, mail);
    else if (mail->type == MAIL_WD_LEADS)
        on_leads(m, mail);
    else
        log_at_detail(LVL_WARNING, NULL, LOG_HINT_MISFIT,
            "monitor got a message it does not know: %s", mail_name(mail->type));
    if (mail->fd != -1)
        close(mail->fd);
}

/* Who is watched */

static void unwatch(struct watched *w)
{
    timer_stop(&w->m->role.loop, &w->timer);
    probe_free(&w->probe);
    monitor_conf_drop_password(&w->password);
}

static void watch(struct watched *w)
{
    struct probe_target target;

    if (w->probe == NULL)
        w->probe = probe_new(&w->m->role.loop, on_done, on_lost, w);
    monitor_conf_target(role_loop_gen(&w->m->role), w->id, &target, &w->password);
    probe_set_target(w->probe, &target);
}

static void watch_all(struct monitor *m)
{
    const struct conf *conf = conf_now(m);
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++) {
        struct watched *w = &m->node[i];

        if (!conf_has_node(conf, i)) {
            unwatch(w);
            continue;
        }
        watch(w);
        if (monitor_conf_delay_ms(conf, &m->decide, i) >= 0)
            ask(w);
    }
    monitor_delay_schedule(m);
    monitor_changed(m);
}

static void on_reload(struct role_loop *rl)
{
    struct monitor *m = LIST_ENTRY(rl, struct monitor, role);
    struct decide_rules *rules = mem_alloc(sizeof *rules);

    monitor_conf_rules(conf_now(m), rules);
    decide_set_rules(&m->decide, rules, monitor_now_us(m));
    mem_free(rules);
    watch_all(m);
    monitor_certs_read(m);
}

/* The supervisor has published once; more than that was an earlier life of ours. */
static void adopt(struct monitor *m)
{
    struct view *before = mem_alloc_zero(sizeof *before);

    if (view_refresh(m->role.env->shm, before) && before->version > 1) {
        decide_adopt(&m->decide, before);
        monitor_act_adopt(m);
    } else {
        monitor_orders_load(m);
        monitor_orders_resume(m);
    }
    mem_free(before);
}

static void start(struct monitor *m)
{
    struct decide_rules *rules = mem_alloc(sizeof *rules);
    int i;

    monitor_conf_rules(conf_now(m), rules);
    decide_init(&m->decide, rules, monitor_now_us(m));
    mem_free(rules);
    monitor_act_init(m);
    monitor_wd_init(m);
    m->is_kept = true;
    m->kept = UINT64_MAX; /* nobody knows what it holds */
    adopt(m);
    for (i = 0; i < VIEW_MAX_NODES; i++) {
        m->node[i].m = m;
        m->node[i].id = i;
        timer_init(&m->node[i].timer, on_timer);
    }
    task_init(&m->publish, on_publish);
    monitor_delay_init(m);
    watch_all(m);
    on_ahead(m); /* the one before may have been told, and died */
    monitor_certs_init(m);
}

int monitor_main(struct proc_env *env)
{
    struct monitor *m = mem_alloc_zero(sizeof *m);
    int status;
    int i;

    m->role.on_mail = on_mail;
    m->role.on_reload = on_reload;
    probe_forget_environment();
    role_conf_stand_beside(env->conf, m->started_in);
    role_loop_init(&m->role, env);
    start(m);
    status = role_loop_run(&m->role);
    task_cancel(&m->publish);
    monitor_certs_fini(m);
    monitor_delay_fini(m);
    monitor_act_fini(m);
    for (i = 0; i < VIEW_MAX_NODES; i++)
        unwatch(&m->node[i]);
    role_loop_fini(&m->role);
    mem_free(m);
    return status;
}
