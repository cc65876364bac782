/* SPDX-License-Identifier: PostgreSQL
 * monitor_delay.c: replication_delay_source_cmd: a command of the operator's tells the lag of the
 * standbys where the servers do not.
 * Runs in: monitor. The command runs beside the loop in a session of its own, so that a time-out
 * ends all that it started; its output has a limit. Names of hosts reach a shell: what is not plain
 * is refused. */
#include "config.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"

#include "monitor_int.h"

#define MAX_OUTPUT 16384

struct delay_run {
    struct monitor *m; /* NULL: nobody wants the result any more */
    uv_process_t process;
    uv_pipe_t pipe;
    struct timer deadline;
    struct loop *lp;
    int nopen; /* handles not closed yet */
    bool timed_out;
    bool too_long;
    int64_t status; /* how it ended */
    int nnodes;
    int node[VIEW_MAX_NODES]; /* whom the values are about, in order */
    size_t len;
    char out[MAX_OUTPUT];
};

#define HINT                                                                                       \
    "The last known lag of the standbys holds. Run the command by hand as the user that pgpool "   \
    "runs as."

static void warn(const char *detail, const char *text)
{
    log_at_detail(LVL_WARNING, detail, HINT, "%s", text);
}

/* Scripts look for pgpool-II's words. */
static void warn_failed(int status)
{
    log_at_detail(LVL_WARNING, "It is replication_delay_source_cmd.", HINT,
        "replication delay command failed with exit code %d", status);
}

static bool is_plain(const char *host)
{
    const char *p;

    for (p = host; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p) && strchr("._-:/", *p) == NULL)
            return false;
    return host[0] != '-';
}

/* Takes one value from the text: milliseconds. False when there is none. */
static bool take_value(char **text, double *ms)
{
    char *end;

    while (isspace((unsigned char)**text))
        (*text)++;
    if (**text == '\0')
        return false;
    *ms = strtod(*text, &end);
    if (end == *text || (*end != '\0' && !isspace((unsigned char)*end)) || !(*ms >= -1) ||
        *ms > 1e12) {
        warn(NULL, "replication_delay_source_cmd printed something that is no number");
        *ms = 0;
        while (*end != '\0' && !isspace((unsigned char)*end))
            end++;
    }
    *text = end;
    return true;
}

static void use_output(struct delay_run *r)
{
    double value[VIEW_MAX_NODES];
    char *text = r->out;
    double ms;
    int n = 0;
    int i;

    r->out[r->len] = '\0';
    while (take_value(&text, &ms)) {
        if (n < VIEW_MAX_NODES)
            value[n] = ms;
        n++;
    }
    if (n != r->nnodes) {
        warn(NULL, n == 0 ? "replication_delay_source_cmd printed nothing"
                          : "replication_delay_source_cmd printed another number of values than "
                            "there are standbys");
        return;
    }
    for (i = 0; i < n; i++) {
        if (value[i] < 0)
            log_at(LVL_LOG, "replication_delay_source_cmd says that node %d is down", r->node[i]);
        else
            decide_on_delay(
                &r->m->decide, r->node[i], (int64_t)(value[i] * 1000), monitor_now_us(r->m));
    }
    monitor_changed(r->m);
}

static void finish(struct delay_run *r)
{
    timer_stop(r->lp, &r->deadline);
    if (r->m != NULL) {
        r->m->delay_run = NULL;
        if (r->timed_out)
            warn(NULL, "replication_delay_source_cmd took too long and was ended");
        else if (r->status != 0)
            warn_failed((int)r->status);
        else if (r->too_long)
            warn(NULL, "replication_delay_source_cmd printed too much");
        else
            use_output(r);
    }
    mem_free(r);
}

static void on_closed(uv_handle_t *h)
{
    struct delay_run *r = h->data;

    if (--r->nopen == 0)
        finish(r);
}

static void on_exit_status(uv_process_t *p, int64_t status, int signo)
{
    struct delay_run *r = p->data;

    r->status = signo != 0 ? signo : status;
    uv_close((uv_handle_t *)p, on_closed);
}

static void on_room(uv_handle_t *h, size_t wanted, uv_buf_t *b)
{
    struct delay_run *r = h->data;

    *b = uv_buf_init(r->out + r->len, (unsigned)(sizeof r->out - 1 - r->len));
}

static void on_output(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    struct delay_run *r = s->data;

    if (n > 0) {
        r->len += (size_t)n;
        return;
    }
    if (n == 0)
        return;
    r->too_long = n == UV_ENOBUFS;
    uv_close((uv_handle_t *)s, on_closed);
}

/* Ends the command and all it started; the exit and the end of its output then follow. */
static void end_command(struct delay_run *r)
{
    if (!uv_is_closing((uv_handle_t *)&r->process))
        (void)kill(-r->process.pid, SIGKILL);
    (void)loop_uv(r->lp);
    if (!uv_is_closing((uv_handle_t *)&r->pipe))
        uv_close((uv_handle_t *)&r->pipe, on_closed);
}

static void on_deadline(struct timer *t)
{
    struct delay_run *r = LIST_ENTRY(t, struct delay_run, deadline);

    r->timed_out = true;
    end_command(r);
}

/* The command with host:port of every server that is not the primary; false when there is none or
 * a name is refused. */
static bool make_line(struct monitor *m, struct delay_run *r, struct buf *line)
{
    const struct conf *conf = conf_of(role_loop_gen(&m->role));
    int i;

    buf_printf(line, "%s", conf->replication_delay_source_cmd);
    for (i = 0; i < conf->nnodes; i++) {
        if (!conf_has_node(conf, i) || i == m->decide.view.primary)
            continue;
        if (!is_plain(conf->nodes[i].backend_hostname)) {
            warn(conf->nodes[i].backend_hostname,
                "the name of a host cannot be handed to replication_delay_source_cmd");
            return false;
        }
        buf_printf(line, " %s:%d", conf->nodes[i].backend_hostname, conf->nodes[i].backend_port);
        r->node[r->nnodes++] = i;
    }
    buf_put_byte(line, '\0');
    return r->nnodes > 0;
}

static int spawn(struct delay_run *r, char *line)
{
    char shell[] = "/bin/sh";
    char option[] = "-c";
    char *args[] = {shell, option, line, NULL};
    uv_stdio_container_t io[3] = {{.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE}, {.flags = UV_INHERIT_FD}};
    uv_process_options_t opts = {.exit_cb = on_exit_status,
        .file = shell,
        .args = args,
        .flags = UV_PROCESS_DETACHED,
        .stdio = io,
        .stdio_count = 3};

    if (r->m->started_in[0] != '\0' && access(r->m->started_in, X_OK) == 0)
        opts.cwd = r->m->started_in;
    io[1].data.stream = (uv_stream_t *)&r->pipe;
    io[2].data.fd = 2;
    return uv_spawn(loop_uv(r->lp), &r->process, &opts);
}

/* The deadline holds until the output has ended, too: something the command left behind may keep it
 * open. */
static void start(struct monitor *m, struct delay_run *r, char *line)
{
    int64_t limit_ms = conf_of(role_loop_gen(&m->role))->replication_delay_source_timeout_ms;
    int rc;

    r->m = m;
    r->lp = &m->role.loop;
    r->nopen = 2;
    r->process.data = r;
    r->pipe.data = r;
    timer_init(&r->deadline, on_deadline);
    uv_pipe_init(loop_uv(r->lp), &r->pipe, 0);
    m->delay_run = r;
    log_at(LVL_DEBUG1, "executing replication delay command: %s", line);
    rc = spawn(r, line);
    if (rc < 0) {
        r->status = rc;
        uv_close((uv_handle_t *)&r->process, on_closed);
        uv_close((uv_handle_t *)&r->pipe, on_closed);
        return;
    }
    uv_read_start((uv_stream_t *)&r->pipe, on_room, on_output);
    timer_start(r->lp, &r->deadline, limit_ms);
}

static void on_period(struct timer *t)
{
    struct monitor *m = LIST_ENTRY(t, struct monitor, delay_timer);
    struct delay_run *r;
    struct buf line = {0};

    monitor_delay_schedule(m);
    if (m->delay_run != NULL)
        return;
    r = mem_alloc_zero(sizeof *r);
    if (make_line(m, r, &line))
        start(m, r, line.data);
    else
        mem_free(r);
    buf_free(&line);
}

void monitor_delay_init(struct monitor *m)
{
    timer_init(&m->delay_timer, on_period);
}

void monitor_delay_schedule(struct monitor *m)
{
    const struct conf *conf = conf_of(role_loop_gen(&m->role));

    if (conf->replication_delay_source_cmd[0] == '\0' || conf->sr_check_period_ms == 0 ||
        m->decide.rules.mode != DECIDE_MODE_STREAMING)
        timer_stop(&m->role.loop, &m->delay_timer);
    else
        timer_start(&m->role.loop, &m->delay_timer, conf->sr_check_period_ms);
}

void monitor_delay_fini(struct monitor *m)
{
    struct delay_run *r = m->delay_run;

    timer_stop(&m->role.loop, &m->delay_timer);
    if (r == NULL)
        return;
    timer_stop(&m->role.loop, &r->deadline);
    r->m = NULL;
    m->delay_run = NULL;
    end_command(r);
    /* The process handle is closed here: nobody is left to be told of its end. */
    if (!uv_is_closing((uv_handle_t *)&r->process))
        uv_close((uv_handle_t *)&r->process, on_closed);
}
