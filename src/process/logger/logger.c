/* SPDX-License-Identifier: PostgreSQL
 * logger.c: collects what all other processes say and writes it to the files of the log.
 * Runs in: logger. It outlives the others: it ends when both of its inputs have ended, that is when
 * no process is left that could write. An orphan (the supervisor was killed) waits for that only a
 * moment, because a script started by another process may hold an input open for hours. It must
 * never write to its own inputs, and never spin. */
#include "config.h"

#include "process/logger/logger.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "process/common/role_conf.h"
#include "process/logger/logfile.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/sig.h"

#define PACKET_MAX_BYTES (70 * 1024)
#define LINE_MAX_BYTES   (16 * 1024) /* raw output without a line feed is written in such pieces */
#define READS_PER_TURN   256
#define ORPHAN_CHECK_MS  1000
#define ORPHAN_LIMIT_MS  5000

enum { IN_MAIL, IN_SIGNAL, IN_LOG, IN_STDERR, IN_COUNT };

struct logger {
    struct proc_env *env;
    struct conf_gen *gen; /* after a reload; NULL before */
    struct logfile file;
    struct pollfd in[IN_COUNT];
    struct buf partial; /* a raw line that has no end yet */
    pid_t parent;
    int64_t orphan_until_us; /* 0: not an orphan */
    struct log_limit open_failed;
    char packet[PACKET_MAX_BYTES];
};

static const struct conf *conf_now(const struct logger *l)
{
    return conf_of(l->gen != NULL ? l->gen : l->env->conf);
}

static void write_own(enum log_level level, const char *text, unsigned len, void *ctx)
{
    struct logger *l = ctx;

    logfile_write(&l->file, text, len);
}

static void fill_opts(const struct logger *l, struct logfile_opts *opts)
{
    const struct conf *conf = conf_now(l);
    const struct conf_gen *gen = l->gen != NULL ? l->gen : l->env->conf;
    struct err err = {0};

    memset(opts, 0, sizeof *opts);
    if (conf_path(gen, conf->log_directory, opts->folder, sizeof opts->folder, &err) == -1)
        log_err(LVL_WARNING, &err);
    snprintf(opts->pattern, sizeof opts->pattern, "%s", conf->log_filename);
    opts->mode = (unsigned)conf->log_file_mode;
    opts->truncate = conf->log_truncate_on_rotation;
    opts->age_ms = conf->log_rotation_age_ms;
    opts->max_bytes = conf->log_rotation_size_bytes;
}

static bool is_jsonlog(const struct logger *l)
{
    return (conf_now(l)->log_destination & CONF_LOG_TO_JSONLOG) != 0;
}

static void apply_log(struct logger *l)
{
    const struct conf *conf = conf_now(l);

    role_conf_apply_log(conf);
    log_set_sink(write_own, l);
    log_set_jsonlog(is_jsonlog(l) ? write_own : NULL, l, true);
    /* Raw lines are events of this level then: none is left out. */
    if (is_jsonlog(l) && conf->log_min_messages > LVL_LOG)
        log_configure(conf->log_line_prefix, LVL_LOG, (int)conf->log_error_verbosity);
}

static void rotate(struct logger *l, enum logfile_reason reason)
{
    struct err err = {0};

    if (logfile_rotate(&l->file, reason, clock_wall_us(), &err) == 0)
        return;
    if (log_limit_pass(&l->open_failed))
        log_at_detail(LVL_WARNING, NULL, "Log lines go on to the old file, or to standard error.",
            "%s", err.msg);
}

static void reload(struct logger *l, int fd)
{
    struct logfile_opts opts;
    struct err err = {0};
    struct conf_gen *gen = role_conf_read(fd, &err);

    if (gen == NULL) {
        log_err(LVL_WARNING, &err);
        return;
    }
    conf_gen_free(&l->gen);
    l->gen = gen;
    apply_log(l);
    fill_opts(l, &opts);
    if (logfile_set_opts(&l->file, &opts) || logfile_is_elsewhere(&l->file))
        rotate(l, LOGFILE_ASKED);
}

static void take_mails(struct logger *l)
{
    struct mail mail;
    int i;

    for (i = 0; i < READS_PER_TURN && mailbox_take(l->env->boxes, &mail) == 1; i++) {
        if (mail.type == MAIL_RELOAD) {
            reload(l, mail.fd);
            mail.fd = -1;
        } else if (mail.type == MAIL_LOG_ROTATE) {
            rotate(l, LOGFILE_ASKED);
        }
        if (mail.fd != -1)
            close(mail.fd);
    }
}

static void take_signals(struct logger *l)
{
    int sender;

    while (sig_take(l->in[IN_SIGNAL].fd, &sender) == SIGUSR1)
        rotate(l, LOGFILE_ASKED);
}

static void rotate_if_due(struct logger *l)
{
    enum logfile_reason reason;

    if (logfile_is_due(&l->file, clock_wall_us(), &reason))
        rotate(l, reason);
}

/* Whole events, one per packet. */
static void take_events(struct logger *l)
{
    int i;

    for (i = 0; i < READS_PER_TURN; i++) {
        ssize_t n = recv(l->in[IN_LOG].fd, l->packet, sizeof l->packet, MSG_DONTWAIT);

        if (n == -1 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            fd_close(&l->in[IN_LOG].fd);
            return;
        }
        logfile_write(&l->file, l->packet, (size_t)n);
        rotate_if_due(l);
    }
}

/* Raw lines become events of jsonlog, for whoever reads such a file expects nothing else. */
static void write_raw(struct logger *l, const char *p, size_t n)
{
    const char *end;
    size_t line;

    if (!is_jsonlog(l)) {
        logfile_write(&l->file, p, n);
        return;
    }
    for (; n > 0; p += line, n -= line) {
        end = memchr(p, '\n', n);
        line = end == NULL ? n : (size_t)(end - p);
        log_at(LVL_LOG, "%.*s", (int)line, p);
        line += end != NULL;
    }
}

static void write_whole_lines(struct logger *l)
{
    struct slice s = buf_slice(&l->partial);
    const char *last = memrchr(s.p, '\n', s.n);
    size_t n = last == NULL ? 0 : (size_t)(last - s.p) + 1;

    if (n == 0 && s.n >= LINE_MAX_BYTES)
        n = s.n;
    if (n == 0)
        return;
    write_raw(l, s.p, n);
    buf_consume(&l->partial, n);
}

/* Anything: backtraces, words of libraries, output of scripts. One read per turn; poll comes back.
 */
static void take_stderr(struct logger *l)
{
    ssize_t n = read(l->in[IN_STDERR].fd, l->packet, sizeof l->packet);

    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        buf_put(&l->partial, l->packet, (size_t)n);
        write_whole_lines(l);
        return;
    }
    if (buf_unread(&l->partial) > 0) {
        buf_put_byte(&l->partial, '\n');
        write_whole_lines(l);
    }
    fd_close(&l->in[IN_STDERR].fd);
}

static int wait_ms(const struct logger *l)
{
    int ms = logfile_wait_ms(&l->file, clock_wall_us());

    return ms == -1 || ms > ORPHAN_CHECK_MS ? ORPHAN_CHECK_MS : ms;
}

/* False when it is time to go. */
static bool someone_may_write(struct logger *l)
{
    int64_t now_us = clock_mono_us();

    if (l->in[IN_LOG].fd == -1 && l->in[IN_STDERR].fd == -1)
        return false;
    if (l->orphan_until_us == 0 && getppid() != l->parent)
        l->orphan_until_us = now_us + ORPHAN_LIMIT_MS * CLOCK_US_PER_MS;
    return l->orphan_until_us == 0 || now_us < l->orphan_until_us;
}

static void run(struct logger *l)
{
    while (someone_may_write(l)) {
        if (poll(l->in, IN_COUNT, wait_ms(l)) == -1)
            continue;
        if (l->in[IN_LOG].revents != 0)
            take_events(l);
        if (l->in[IN_STDERR].revents != 0)
            take_stderr(l);
        if (l->in[IN_SIGNAL].revents != 0)
            take_signals(l);
        if (l->in[IN_MAIL].revents != 0)
            take_mails(l);
        rotate_if_due(l);
    }
}

int logger_main(struct proc_env *env)
{
    static const int signals[] = {SIGUSR1};
    struct logger *l = mem_alloc_zero(sizeof *l);
    struct logfile_opts opts;
    struct err err = {0};

    l->env = env;
    l->parent = getppid();
    l->open_failed.burst = 1;
    l->in[IN_MAIL] = (struct pollfd){.fd = env->mail_fd, .events = POLLIN};
    l->in[IN_LOG] = (struct pollfd){.fd = env->log_fd, .events = POLLIN};
    l->in[IN_STDERR] = (struct pollfd){.fd = env->stderr_fd, .events = POLLIN};
    l->in[IN_SIGNAL] = (struct pollfd){.fd = sig_open_fd(signals, 1, &err), .events = POLLIN};
    fill_opts(l, &opts);
    logfile_init(&l->file, &opts);
    apply_log(l);
    if (err_is_set(&err))
        log_err(LVL_WARNING, &err);
    rotate(l, LOGFILE_START);
    run(l);
    fd_close(&l->in[IN_SIGNAL].fd);
    logfile_fini(&l->file);
    buf_free(&l->partial);
    conf_gen_free(&l->gen);
    log_set_sink(NULL, NULL);
    mem_free(l);
    return 0;
}
