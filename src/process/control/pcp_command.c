/* SPDX-License-Identifier: PostgreSQL
 * pcp_command.c: the requests of PCP that do something, and which function answers which request.
 * Runs in: control. Nothing is changed here: the supervisor and the monitor are asked to, and an
 * answer says success only when there is an effect or nothing was left to do. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "cache/cache_store.h"
#include "config/conf.h"
#include "process/common/role_rules.h"
#include "sys/clock.h"

#include "control_int.h"
#include "recovery_job.h"

#define TEXT_BYTES 64

static const struct conf *conf_now(const struct pcp_conn *c)
{
    return conf_of(role_loop_gen(&c->ctl->role));
}

static enum pcp_outcome fail(
    struct err *err, const char *sqlstate, const char *msg, const char *detail)
{
    err_set(err, sqlstate, "%s", msg);
    err_detail(err, "%s", detail);
    return PCP_FAILED;
}

static enum pcp_outcome complete(const struct pcp_packet *p, struct buf *out)
{
    pcp_put_word(out, pcp_answer_type(p->type), PCP_COMPLETE);
    return PCP_DONE;
}

static bool ask_supervisor(struct pcp_conn *c, char what, struct err *err)
{
    struct proc_env *env = c->ctl->role.env;

    if (mailbox_post(env->boxes, PROC_SLOT_SUPERVISOR, MAIL_REQUEST, &what, 1, -1) == 0)
        return true;
    err_set(err, "53000", "the main process could not be asked");
    err_hint(err, "Try again.");
    return false;
}

/* The letter of a request that has one, else `preset`. */
static char letter_of(const struct pcp_packet *p, char preset)
{
    return p->body.n > 0 && p->body.p[0] != '\0' ? p->body.p[0] : preset;
}

/* Scope 'c' is all pgpools of a watchdog cluster. Without a watchdog that is this one alone. */
static bool is_for_all(const struct pcp_conn *c, const struct pcp_packet *p)
{
    return conf_now(c)->use_watchdog && letter_of(p, 'l') == 'c';
}

static bool check_scope(const struct pcp_packet *p, struct err *err)
{
    char scope = letter_of(p, 'l');

    if (scope != 'l' && scope != 'c') {
        fail(err, "22023", "invalid scope of a PCP command",
            "The scope is l (local) or c (cluster).");
        return false;
    }
    return true;
}

static enum pcp_outcome stop(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    char mode = letter_of(p, 's');

    if (mode != 's' && mode != 'f' && mode != 'i')
        return fail(err, "22023", "PCP: error while processing shutdown request",
            "The mode is s (smart), f (fast) or i (immediate).");
    if (p->type == PCP_STOP_CLUSTER && conf_now(c)->use_watchdog &&
        !pcp_wd_order_all(c, 's', mode, err))
        return PCP_FAILED;
    log_at(LVL_LOG, "PCP user \"%s\" from %s stops pgpool, mode %c", c->user, c->peer, mode);
    /* The answer is out before the supervisor's order to end comes back. */
    return ask_supervisor(c, mode, err) ? complete(p, out) : PCP_FAILED;
}

static void put_first_error(const struct conf_report *report, struct err *err)
{
    const struct conf_issue *issue = report->issue;

    while (issue < report->issue + report->n && issue->severity != CONF_ERROR)
        issue++;
    if (issue == report->issue + report->n || issue->file == NULL)
        err_detail(err, "%s", issue == report->issue + report->n ? "" : issue->text);
    else if (issue->line == 0)
        err_detail(err, "%s: %s", issue->file, issue->text);
    else
        err_detail(err, "%s:%d: %s", issue->file, issue->line, issue->text);
    err_hint(err, "Run pgpool --check-config to see all findings.");
}

/* The order is obeyed, and yet these settings stay: whoever gave it should not have to look into
 * the log for that. */
static void tell_kept(const struct conf_report *report, struct buf *out)
{
    int i;

    for (i = 0; i < report->n; i++) {
        const struct conf_issue *issue = &report->issue[i];
        struct err text = {0};

        if (!issue->is_kept)
            continue;
        if (issue->line == 0)
            err_set(&text, "01000", "%s: %s", issue->file, issue->text);
        else
            err_set(&text, "01000", "%s:%d: %s", issue->file, issue->line, issue->text);
        err_hint(&text, "%s", issue->hint);
        pcp_put_err(out, PCP_ANSWER_NOTICE, "WARNING", &text);
    }
}

/* The supervisor says nothing about a file it refuses, and workers go on with the rules and
 * certificates they have where new ones are no good: all of them are tried here first. */
static bool check_conf(struct pcp_conn *c, struct buf *out, struct err *err)
{
    const struct role_loop *role = &c->ctl->role;
    const struct conf_gen *gen = role_loop_gen(role);
    struct conf_report report;
    struct conf_gen *tried;

    conf_report_init(&report);
    tried = conf_reload(gen, conf_file(gen), &report);
    if (tried == NULL)
        err_set(err, "F0000", "the configuration file has errors: the settings stay as they are");
    else if (role_rules_check(tried, role->env->paths, &report) == -1)
        err_set(err, "F0000", "the rules of client authentication have errors: all stays as it is");
    else if (!pcp_tls_check(c->ctl, tried, err))
        err_hint(err, "All stays as it is. Correct the files and reload again.");
    if (report.nerrors > 0)
        put_first_error(&report, err);
    else if (!err_is_set(err))
        tell_kept(&report, out);
    conf_report_fini(&report);
    conf_gen_free(&tried);
    return !err_is_set(err);
}

static enum pcp_outcome reload(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    if (!check_scope(p, err) || !check_conf(c, out, err) ||
        (is_for_all(c, p) && !pcp_wd_order_all(c, 'r', 0, err)))
        return PCP_FAILED;
    c->old_generation = conf_number(role_loop_gen(&c->ctl->role));
    if (!ask_supervisor(c, 'r', err))
        return PCP_FAILED;
    pcp_wait_start(c, PCP_WAIT_RELOAD, VIEW_NO_NODE, pcp_answer_type(p->type));
    return PCP_LATER;
}

static enum pcp_outcome rotate(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    if (!check_scope(p, err) || (is_for_all(c, p) && !pcp_wd_order_all(c, 'l', 0, err)))
        return PCP_FAILED;
    if (!conf_now(c)->logging_collector)
        return fail(err, "55000", "there is no log file to rotate", "logging_collector is off.");
    return ask_supervisor(c, 'l', err) ? complete(p, out) : PCP_FAILED;
}

static enum pcp_outcome clear_cache(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    struct proc_env *env = c->ctl->role.env;
    struct cache *cache = cache_open(env->shm, env->slot);

    if (cache == NULL)
        return fail(err, "55000", "query cache is not enabled", "memory_cache_enabled is off.");
    cache_empty(cache, clock_mono_us());
    cache_close(&cache);
    log_at(LVL_LOG, "all query cache in shared memory deleted");
    if (conf_now(c)->use_watchdog && !pcp_wd_order_all(c, 'c', 0, err))
        return PCP_FAILED;
    return complete(p, out);
}

/* What is said of a node that does not exist: scripts look for pgpool-II's words. */
static void refuse_node(
    const struct pcp_conn *c, const struct pcp_packet *p, int id, struct err *err)
{
    switch (p->type) {
    case PCP_DETACH:
    case PCP_DETACH_GRACEFULLY:
        err_set(err, "22023",
            "invalid degenerate backend request, node id : %d status: [%d] is not valid for "
            "failover",
            id, VIEW_UNUSED);
        break;
    case PCP_PROMOTE:
    case PCP_PROMOTE_GRACEFULLY:
        err_set(err, "22023", "could not process promote request");
        break;
    case PCP_RECOVERY:
        err_set(err, "22023", "process recovery request failed");
        break;
    default:
        err_set(err, "22023", "invalid node ID");
        break;
    }
    if (p->type != PCP_DETACH && p->type != PCP_DETACH_GRACEFULLY)
        err_detail(err, "node id %d is not valid", id);
    err_hint(err, "There are %d nodes, numbered from 0.", conf_now(c)->nnodes);
}

/* The number of an existing node, or -1 after setting *err. */
static int take_node(
    struct pcp_conn *c, const struct pcp_packet *p, struct slice *body, struct err *err)
{
    struct slice text;
    char digits[16];
    int id = -1;
    bool is_there = false;

    /* Promotion sends a blank behind the number. */
    if (pcp_take_str(body, &text) && text.n > 0 && text.n < sizeof digits) {
        size_t n = text.p[text.n - 1] == ' ' ? text.n - 1 : text.n;
        struct slice number;

        memcpy(digits, text.p, n);
        digits[n] = '\0';
        number = slice_of(digits, n + 1);
        is_there = pcp_take_int(&number, &id) && conf_has_node(conf_now(c), id);
    }
    if (!is_there)
        refuse_node(c, p, id, err);
    return is_there ? id : -1;
}

static bool ask_monitor_why(
    struct pcp_conn *c, enum node_order order, int node, const char *why, struct err *err)
{
    char who[VIEW_WHO_BYTES];

    snprintf(who, sizeof who, "PCP user %.50s", c->user);
    return control_ask_monitor(c->ctl, order, node, who, why, err);
}

static bool ask_monitor(struct pcp_conn *c, enum node_order order, int node, struct err *err)
{
    return ask_monitor_why(c, order, node, "", err);
}

/* Behind the number, where pgpool-II's server does not look, our tool may put a reason. */
static bool take_why(struct slice *body, char out[VIEW_WHY_BYTES], struct err *err)
{
    struct slice text;

    memset(out, 0, VIEW_WHY_BYTES);
    if (body->n == 0 || !pcp_take_str(body, &text))
        return true;
    if (text.n >= VIEW_WHY_BYTES) {
        fail(err, "22001", "the reason is too long", "127 bytes are kept of it.");
        return false;
    }
    memcpy(out, text.p, text.n);
    return true;
}

static enum pcp_outcome attach(struct pcp_conn *c, const struct pcp_packet *p, struct err *err)
{
    struct slice body = p->body;
    int node = take_node(c, p, &body, err);

    if (node == -1 || !ask_monitor(c, NODE_ATTACH, node, err))
        return PCP_FAILED;
    pcp_wait_start(c, PCP_WAIT_ATTACH, node, pcp_answer_type(p->type));
    return PCP_LATER;
}

static enum pcp_outcome detach(struct pcp_conn *c, const struct pcp_packet *p, struct err *err)
{
    enum node_order order = p->type == PCP_DETACH ? NODE_DETACH : NODE_DETACH_GRACEFULLY;
    struct slice body = p->body;
    int node = take_node(c, p, &body, err);
    char why[VIEW_WHY_BYTES];

    if (node == -1 || !take_why(&body, why, err) || !ask_monitor_why(c, order, node, why, err))
        return PCP_FAILED;
    pcp_wait_start(c, order == NODE_DETACH ? PCP_WAIT_DETACH : PCP_WAIT_DETACH_IDLE, node,
        pcp_answer_type(p->type));
    return PCP_LATER;
}

/* The standby becomes the primary, and the others follow: the monitor tells in the view how it
 * went. A switchover lets transactions end in any case, so -g adds nothing to it. */
static enum pcp_outcome switch_over(
    struct pcp_conn *c, const struct pcp_packet *p, int node, struct err *err)
{
    c->told = 0;
    c->nbegun = c->ctl->view.sw.nbegun;
    c->nended = c->ctl->view.sw.nended;
    c->nrefused = c->ctl->view.sw.nrefused;
    c->is_elsewhere = pcp_wd_is_elsewhere(c);
    if (!ask_monitor(c, NODE_SWITCHOVER, node, err))
        return PCP_FAILED;
    pcp_wait_start(c, PCP_WAIT_SWITCHOVER, node, pcp_answer_type(p->type));
    return PCP_LATER;
}

static enum pcp_outcome promote(struct pcp_conn *c, const struct pcp_packet *p, struct err *err)
{
    struct slice body = p->body;
    int node = take_node(c, p, &body, err);

    if (node == -1)
        return PCP_FAILED;
    if (conf_now(c)->backend_clustering_mode != CONF_CLUSTER_STREAMING)
        return fail(err, "55000", "invalid promote request",
            "Promotion needs backend_clustering_mode = streaming_replication.");
    (void)view_refresh(c->ctl->role.env->shm, &c->ctl->view);
    if (c->ctl->view.primary == node) {
        err_set(err, "55000", "invalid promote request");
        err_detail(err, "specified node is already primary node, can't promote node id %d", node);
        return PCP_FAILED;
    }
    if (body.n > 0 && body.p[0] == 's')
        return switch_over(c, p, node, err);
    if (c->ctl->view.node[node].pg_role == VIEW_ROLE_STANDBY)
        return fail(err, "55000", "invalid promote request",
            "The server says that it is a standby: with --switchover it is made the primary; "
            "without, "
            "a node is only named.");
    if (!ask_monitor(c, NODE_PROMOTE, node, err))
        return PCP_FAILED;
    pcp_wait_start(c, PCP_WAIT_PROMOTE, node, pcp_answer_type(p->type));
    return PCP_LATER;
}

/* The levels of client_min_messages, from all to none. */
static enum pcp_outcome set_parameter(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    static const char *const levels[] = {"debug5", "debug4", "debug3", "debug2", "debug1", "log",
        "commerror", "info", "notice", "warning", "error"};
    struct slice body = p->body;
    struct slice name;
    struct slice value;
    size_t i;

    if (!pcp_take_str(&body, &name) || !pcp_take_str(&body, &value))
        return fail(err, "08P01", "PCP: set configuration parameter failed",
            "invalid pcp packet received from client");
    if (!slice_ieq_str(name, "client_min_messages")) {
        err_set(err, "42704", "PCP: set configuration parameter failed");
        err_detail(err, "invalid parameter \"%.*s\"",
            (int)(name.n < TEXT_BYTES ? name.n : TEXT_BYTES), name.p);
        return PCP_FAILED;
    }
    for (i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (slice_ieq_str(value, levels[i])) {
            c->tells_debug = i < 5;
            return complete(p, out);
        }
    }
    err_set(err, "22023", "PCP: set configuration parameter failed");
    err_detail(
        err, "invalid value \"%.*s\"", (int)(value.n < TEXT_BYTES ? value.n : TEXT_BYTES), value.p);
    return PCP_FAILED;
}

static enum pcp_outcome recovery(struct pcp_conn *c, const struct pcp_packet *p, struct err *err)
{
    struct slice body = p->body;

    int node = take_node(c, p, &body, err);

    if (node == -1)
        return PCP_FAILED;
    /* Scripts run it from failover_command and the like: the failover ends without us. */
    if (recovery_job_must_wait(c->ctl, node)) {
        pcp_wait_start(c, PCP_WAIT_FAILOVER, node, pcp_answer_type(p->type));
        return PCP_LATER;
    }
    if (!pcp_recovery_begin(c, node, err))
        return PCP_FAILED;
    pcp_wait_start(c, PCP_WAIT_RECOVERY, node, pcp_answer_type(p->type));
    return PCP_LATER;
}

/* The last recovery of node `wanted`, or of any: 0 when there was none. */
static uint64_t last_recovery(struct pcp_conn *c, int wanted, int *node)
{
    struct recovery_row row[RECOVERY_MAX_ROWS];
    int n = recovery_copy(c->ctl->role.env->shm, row, RECOVERY_MAX_ROWS);

    while (n-- > 0) {
        if (wanted == VIEW_NO_NODE || row[n].node == wanted) {
            *node = row[n].node;
            return row[n].number;
        }
    }
    return 0;
}

/* What became of recoveries that others asked for, or the steps of the last one until it is over.
 */
static enum pcp_outcome recoveries(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    struct slice body = p->body;
    struct slice word;
    int node;

    if (!pcp_take_str(&body, &word) || !pcp_take_int(&body, &node))
        return fail(err, "08P01", "PCP processing request", "The request is not complete.");
    if (slice_eq_str(word, PCP_STATUS))
        return pcp_show_recoveries(c, node, out, err) == 0 ? PCP_DONE : PCP_FAILED;
    c->recovery = last_recovery(c, node, &node);
    if (c->recovery == 0)
        return fail(err, "55000", "there is no recovery to watch",
            "None was asked for since pgpool was started.");
    c->recovery_step = -1;
    pcp_wait_start(c, PCP_WAIT_RECOVERY, node, pcp_answer_type(p->type));
    return PCP_LATER;
}

typedef int show_fn(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err);

static enum pcp_outcome show(
    show_fn *fn, struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    return fn(c, p->body, out, err) == 0 ? PCP_DONE : PCP_FAILED;
}

static enum pcp_outcome run_show(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    switch (p->type) {
    case PCP_NODE_COUNT:
        return show(pcp_show_node_count, c, p, out, err);
    case PCP_NODE_INFO:
        return show(pcp_show_node_info, c, p, out, err);
    case PCP_HEALTH:
        return show(pcp_show_health, c, p, out, err);
    case PCP_PROC_COUNT:
        return show(pcp_show_proc_count, c, p, out, err);
    case PCP_PROC_INFO:
        return show(pcp_show_proc_info, c, p, out, err);
    case PCP_POOL_STATUS:
        return show(pcp_show_status, c, p, out, err);
    case PCP_WATCHDOG:
        return show(pcp_wd_info, c, p, out, err);
    default:
        err_set_fatal(err, "08P01", "PCP processing request");
        if (p->type > ' ' && p->type < 127)
            err_detail(err, "unknown PCP packet type \"%c\"", p->type);
        return PCP_FAILED;
    }
}

static void tell_debug(const struct pcp_packet *p, struct buf *out)
{
    struct err text = {0};

    err_set(&text, "00000", "PCP: processing request \"%c\"", p->type);
    pcp_put_err(out, PCP_ANSWER_NOTICE, "DEBUG", &text);
}

enum pcp_outcome pcp_command_run(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    if (c->tells_debug && pcp_answer_type(p->type) != 0)
        tell_debug(p, out);
    switch (p->type) {
    case PCP_SET:
        return set_parameter(c, p, out, err);
    case PCP_STOP:
    case PCP_STOP_CLUSTER:
        return stop(c, p, out, err);
    case PCP_RELOAD:
        return reload(c, p, out, err);
    case PCP_LOG_ROTATE:
        return rotate(c, p, out, err);
    case PCP_ATTACH:
        return attach(c, p, err);
    case PCP_DETACH:
    case PCP_DETACH_GRACEFULLY:
        return detach(c, p, err);
    case PCP_PROMOTE:
    case PCP_PROMOTE_GRACEFULLY:
        return promote(c, p, err);
    case PCP_RECOVERY:
        return recovery(c, p, err);
    case PCP_RECOVERIES:
        return recoveries(c, p, out, err);
    case PCP_ORDER:
        return pcp_order_run(c, p, out, err);
    case PCP_CACHE_CLEAR:
        return clear_cache(c, p, out, err);
    default:
        return run_show(c, p, out, err);
    }
}
