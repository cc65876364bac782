/* SPDX-License-Identifier: PostgreSQL
 * command_run.c: an operator's command, run by the shell beside the loop.
 * Runs in: monitor, watchdog. The command has a session of its own, so that all of it can be ended,
 * and that the end of this process does not end it. It holds the reading end of its output too
 * (descriptor 3): without a monitor it is not hit by SIGPIPE, and the next monitor takes the output
 * up from there. Its input is a file in memory. Must never wait for it. */
#include "config.h"

#include "command_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "sys/fd.h"

#define READ_BYTES 65536
#define LINE_BYTES 1000
#define MAX_LINES  1000 /* of one command; the rest is counted */
#define PIPE_BYTES (1 << 20)
#define OUTPUT_FD  3
#define LOOK_MS    100 /* for what it still prints after its end; between looks at an adopted one */
#define MERCY_MS   2000 /* between SIGTERM and SIGKILL */

struct run {
    struct loop *lp;
    const char *name;
    run_done_fn *done; /* NULL: nobody wants to know any more */
    void *owner;
    int pid;
    bool is_quiet;
    bool adopted;
    bool timed_out;
    bool ended;
    int64_t status;
    int signo;
    uint32_t seq;
    int nopen; /* handles that are not closed yet */
    uv_process_t process;
    uv_pipe_t pipe;
    struct timer deadline;
    struct timer look;
    int nlines;
    int64_t nleft_out;
    size_t len;
    char line[LINE_BYTES + 1];
    char chunk[READ_BYTES];
};

/* Output */

static void put_line(struct run *r)
{
    r->line[r->len] = '\0';
    r->len = 0;
    if (r->is_quiet)
        return;
    if (r->nlines < MAX_LINES)
        log_at(LVL_LOG, "%s: %s", r->name, r->line);
    else
        r->nleft_out++;
    r->nlines++;
}

static void take_output(struct run *r, const char *p, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (p[i] == '\n' || r->len == LINE_BYTES)
            put_line(r);
        if (p[i] != '\n')
            r->line[r->len++] = p[i];
    }
}

static void on_room(uv_handle_t *h, size_t wanted, uv_buf_t *b)
{
    struct run *r = h->data;

    *b = uv_buf_init(r->chunk, sizeof r->chunk);
}

static void on_output(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    if (n > 0)
        take_output(s->data, b->base, (size_t)n);
    else if (n < 0)
        uv_read_stop(s);
}

/* The end */

/* What a shell's exit statuses mean. */
static const char *status_meaning(int64_t status)
{
    switch (status) {
    case 126:
        return " (it may not be executed)";
    case 127:
        return " (no such command)";
    default:
        return "";
    }
}

static void describe(const struct run *r, struct run_end *end)
{
    end->seq = r->seq;
    end->timed_out = r->timed_out;
    end->ok = !r->timed_out && !r->adopted && r->signo == 0 && r->status == 0;
    if (r->timed_out)
        snprintf(end->text, sizeof end->text, "it took too long and was ended");
    else if (r->adopted)
        snprintf(end->text, sizeof end->text, "it was started by a former monitor process");
    else if (r->signo != 0)
        snprintf(end->text, sizeof end->text, "it was ended by signal %d", r->signo);
    else
        snprintf(end->text, sizeof end->text, "exit status %lld%s", (long long)r->status,
            status_meaning(r->status));
}

static void on_closed(uv_handle_t *h)
{
    struct run *r = h->data;

    if (--r->nopen == 0)
        mem_free(r);
}

static void close_all(struct run *r)
{
    timer_stop(r->lp, &r->deadline);
    timer_stop(r->lp, &r->look);
    (void)loop_uv(r->lp);
    if (!r->adopted && !uv_is_closing((uv_handle_t *)&r->process))
        uv_close((uv_handle_t *)&r->process, on_closed);
    if (!uv_is_closing((uv_handle_t *)&r->pipe))
        uv_close((uv_handle_t *)&r->pipe, on_closed);
}

static void finish(struct run *r)
{
    struct run_end end = {0};
    run_done_fn *done = r->done;

    if (r->len > 0)
        put_line(r);
    if (r->nleft_out > 0)
        log_at(LVL_LOG, "%s: %lld more lines were left out", r->name, (long long)r->nleft_out);
    describe(r, &end);
    if (r->adopted && !r->timed_out)
        log_at(LVL_LOG, "%s has ended; %s", r->name, end.text);
    else if (!end.ok && !r->is_quiet)
        log_at_detail(LVL_WARNING, end.text,
            "Run it by hand as the user that pgpool runs as; what it printed is in the lines "
            "before.",
            "%s failed", r->name);
    r->done = NULL;
    close_all(r);
    if (done != NULL)
        done(r->owner, &end);
}

static void on_exit_status(uv_process_t *p, int64_t status, int signo)
{
    struct run *r = p->data;

    r->ended = true;
    r->status = status;
    r->signo = signo;
    timer_stop(r->lp, &r->deadline);
    if (r->done != NULL)
        timer_start(r->lp, &r->look, LOOK_MS);
}

/* True while the process is there and is more than a name in the table. */
static bool is_living(int pid)
{
    char path[64];
    char text[512];
    const char *p;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return false;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    p = strrchr(text, ')');
    return p != NULL && p[1] == ' ' && p[2] != 'Z' && p[2] != 'X' && getpgid(pid) == pid;
}

static void on_look(struct timer *t)
{
    struct run *r = LIST_ENTRY(t, struct run, look);

    if (r->adopted && !r->ended) {
        r->ended = !is_living(r->pid);
        timer_start(r->lp, &r->look, LOOK_MS);
        return;
    }
    finish(r);
}

static void on_deadline(struct timer *t)
{
    struct run *r = LIST_ENTRY(t, struct run, deadline);

    (void)kill(-r->pid, r->timed_out ? SIGKILL : SIGTERM);
    if (!r->timed_out)
        timer_start(r->lp, &r->deadline, MERCY_MS);
    r->timed_out = true;
}

/* The beginning */

static struct run *make(struct loop *lp, const struct run_spec *spec)
{
    struct run *r = mem_alloc_zero(sizeof *r);

    r->lp = lp;
    r->name = spec->name;
    r->seq = spec->seq;
    r->is_quiet = spec->is_quiet;
    r->done = spec->done;
    r->owner = spec->owner;
    r->process.data = r;
    r->pipe.data = r;
    timer_init(&r->deadline, on_deadline);
    timer_init(&r->look, on_look);
    uv_pipe_init(loop_uv(lp), &r->pipe, 0);
    r->nopen = 1;
    return r;
}

/* Our environment and what the command is told; the array is the caller's, the texts are not. */
static char **make_env(const struct buf *facts)
{
    static const struct buf none;
    const struct buf *env = facts == NULL ? &none : facts;
    extern char **environ;
    size_t n = 0;
    size_t at;
    char **out;

    while (environ[n] != NULL)
        n++;
    for (at = 0; at < env->len; at += strlen(env->data + at) + 1)
        n++;
    out = mem_alloc_zero((n + 1) * sizeof *out);
    for (n = 0; environ[n] != NULL; n++)
        out[n] = environ[n];
    for (at = 0; at < env->len; at += strlen(env->data + at) + 1)
        out[n++] = env->data + at;
    return out;
}

static int spawn(struct run *r, const struct run_spec *spec, int in, const int pipe_fd[2])
{
    char shell[] = "/bin/sh";
    char option[] = "-c";
    char *line = mem_strdup(spec->line);
    char *args[] = {shell, option, line, NULL};
    char **env = make_env(spec->env);
    uv_stdio_container_t io[OUTPUT_FD + 1] = {{.flags = UV_INHERIT_FD, .data.fd = in},
        {.flags = UV_INHERIT_FD, .data.fd = pipe_fd[1]},
        {.flags = UV_INHERIT_FD, .data.fd = pipe_fd[1]},
        {.flags = UV_INHERIT_FD, .data.fd = pipe_fd[0]}};
    uv_process_options_t opts = {.exit_cb = on_exit_status,
        .file = shell,
        .args = args,
        .env = env,
        .flags = UV_PROCESS_DETACHED,
        .stdio = io,
        .stdio_count = OUTPUT_FD + 1};
    int rc;

    if (spec->folder != NULL && access(spec->folder, X_OK) == 0)
        opts.cwd = spec->folder;
    rc = uv_spawn(loop_uv(r->lp), &r->process, &opts);
    mem_free(env);
    mem_free(line);
    return rc;
}

static struct run *give_up(struct run *r, int rc)
{
    log_at_detail(LVL_WARNING, NULL,
        "Is the command there, and may the user that pgpool runs as run it?",
        "%s could not be run: %s", r->name, uv_strerror(rc));
    r->done = NULL;
    close_all(r);
    return NULL;
}

struct run *run_start(struct loop *lp, const struct run_spec *spec)
{
    struct run *r = make(lp, spec);
    struct slice facts = slice_of_str("");
    struct err err = {0};
    int pipe_fd[2];
    int in;
    int rc;

    r->adopted = true; /* there is no process handle yet */
    if (spec->input != NULL)
        facts = buf_slice(spec->input);
    in = fd_of_text("pgpool-facts", facts.p, facts.n, &err);
    if (in == -1 || lseek(in, 0, SEEK_SET) == -1 || pipe2(pipe_fd, O_CLOEXEC) == -1) {
        rc = -errno;
        fd_close(&in);
        return give_up(r, rc);
    }
    r->adopted = false;
    r->nopen = 2;
    (void)fcntl(pipe_fd[0], F_SETPIPE_SZ, PIPE_BYTES); /* less will do, too */
    rc = spawn(r, spec, in, pipe_fd);
    close(in);
    close(pipe_fd[1]);
    if (rc == 0)
        rc = uv_pipe_open(&r->pipe, pipe_fd[0]);
    if (rc < 0) {
        close(pipe_fd[0]);
        return give_up(r, rc);
    }
    r->pid = r->process.pid;
    uv_read_start((uv_stream_t *)&r->pipe, on_room, on_output);
    if (spec->limit_ms > 0)
        timer_start(lp, &r->deadline, spec->limit_ms);
    return r;
}

static int open_output(int pid)
{
    char path[64];
    struct stat st;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, OUTPUT_FD);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd != -1 && (fstat(fd, &st) == -1 || !S_ISFIFO(st.st_mode)))
        fd_close(&fd);
    return fd;
}

struct run *run_adopt(struct loop *lp, int pid, const struct run_spec *spec)
{
    struct run *r;
    int fd;

    if (pid <= 1 || !is_living(pid))
        return NULL;
    r = make(lp, spec);
    r->adopted = true;
    r->pid = pid;
    fd = open_output(pid);
    if (fd != -1 && uv_pipe_open(&r->pipe, fd) == 0)
        uv_read_start((uv_stream_t *)&r->pipe, on_room, on_output);
    else
        fd_close(&fd);
    timer_start(lp, &r->look, LOOK_MS);
    if (spec->limit_ms > 0)
        timer_start(lp, &r->deadline, spec->limit_ms);
    return r;
}

int run_pid(const struct run *r)
{
    return r->pid;
}

bool run_is_quiet(const struct run *r)
{
    return r->is_quiet;
}

void run_forget(struct run **rp)
{
    if (*rp == NULL)
        return;
    (*rp)->done = NULL;
    close_all(*rp);
    *rp = NULL;
}
