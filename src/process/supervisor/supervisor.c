/* SPDX-License-Identifier: PostgreSQL
 * supervisor.c: start and main loop of the first process.
 * Runs in: supervisor. A plain loop over a signal descriptor and a mailbox: an event library's
 * signal pipe and threads would not survive the forks, and nothing here may depend on one. */
#include "config.h"

#include "process/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/auth_guard.h"
#include "base/log.h"
#include "base/mem.h"
#include "cache/cache_store.h"
#include "cache/cache_stream.h"
#include "cluster/doubt.h"
#include "cluster/recovery.h"
#include "cluster/wd_share.h"
#include "cluster/status_file.h"
#include "crypto/crypto.h"
#include "ipc/charts.h"
#include "known/session_shared.h"
#include "process/common/role_conf.h"
#include "process/supervisor/sup_int.h"
#include "session/session.h"
#include "sys/clock.h"
#include "sys/daemon.h"
#include "sys/fd.h"
#include "sys/logdest.h"
#include "sys/notify.h"
#include "sys/sig.h"

#define MAILS_PER_TURN 64
#define FILES_BESIDES  32            /* those of a worker that are no connections, about */
#define LOG_ROOM_BYTES (1024 * 1024) /* wanted room for events that wait for the logger */

static int count_workers(const struct conf *conf)
{
    int n = conf->num_init_children;
    cpu_set_t cpus;

    if (n == 0)
        n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    if (n > SUP_MAX_WORKERS) {
        log_at_detail(LVL_WARNING, NULL,
            "A worker serves many clients; 0 means one worker per processor. Clients are limited "
            "by "
            "max_clients.",
            "num_init_children is %d, but no more than %d workers are started", n, SUP_MAX_WORKERS);
        n = SUP_MAX_WORKERS;
    }
    return n;
}

/* Slot 0 is the supervisor's; then logger, watchdog, monitor, control, web, workers. */
static void lay_out_slots(struct sup *s)
{
    const struct conf *conf = conf_of(s->gen);
    enum proc_role single[6];
    int nsingle = 0;
    int nwork;
    int i;

    if (conf->logging_collector)
        single[nsingle++] = ROLE_LOGGER;
    if (conf->use_watchdog)
        single[nsingle++] = ROLE_WATCHDOG;
    if (!s->opts.is_witness) {
        single[nsingle++] = ROLE_MONITOR;
        single[nsingle++] = ROLE_CONTROL;
    }
    if (conf->memory_cache_enabled && !s->opts.is_witness)
        single[nsingle++] = ROLE_INVALIDATOR;
    if (conf->http_port != 0 && !s->opts.is_witness)
        single[nsingle++] = ROLE_WEB;
    nwork = s->opts.is_witness ? 0 : count_workers(conf);
    s->nworkers = nwork > 0 && conf->child_max_connections > 0 ? nwork + SUP_MAX_RETIRING : nwork;
    s->nchildren = nsingle + s->nworkers;
    s->first_worker_slot = 1 + nsingle;
    s->children = mem_alloc_zero((size_t)s->nchildren * sizeof s->children[0]);
    for (i = 0; i < s->nchildren; i++) {
        s->children[i].slot = i + 1;
        s->children[i].role = i < nsingle ? single[i] : ROLE_WORKER;
        s->children[i].ordinal = i < nsingle ? 0 : i - nsingle;
        s->children[i].is_spare = i >= nsingle + nwork;
    }
}

/* Salts of users who do not exist must not change because pgpool was started anew. */
static void keep_secret(const struct sup *s)
{
    char dir[PROC_PATH_BYTES];
    struct err err = {0};

    if (conf_path(s->gen, conf_of(s->gen)->work_dir, dir, sizeof dir, &err) == -1 ||
        auth_guard_keep(shm_get(s->shm, SHM_AUTH), dir, &err) == -1)
        log_at_detail(LVL_WARNING, NULL,
            "By the salts of SCRAM, which change at each start now, a guesser can tell which users "
            "exist.",
            "%s", err.msg);
}

/* Transactions prepared on several servers are named after this pgpool and this run of it. */
static void begin_run(const struct sup *s)
{
    const struct conf *conf = conf_of(s->gen);
    char dir[PROC_PATH_BYTES];
    struct err err = {0};
    uint64_t random[2];

    if (!conf_writes_everywhere(conf))
        return;
    if (crypto_random(random, sizeof random, &err) == -1 ||
        conf_path(s->gen, conf->work_dir, dir, sizeof dir, &err) == -1 ||
        doubt_region_start(s->shm, s->nchildren + 1, dir, random[0], random[1], &err) == -1)
        log_at_detail(
            LVL_WARNING, NULL, "replication_commit = two_phase will be refused.", "%s", err.msg);
}

static int make_shared(struct sup *s, struct err *err)
{
    struct shm_plan plan = {{0}};
    struct proc_row *row;

    plan.bytes[SHM_PROCS] = proc_table_bytes(s->nchildren + 1);
    plan.bytes[SHM_RECOVERY] = recovery_region_bytes();
    plan.bytes[SHM_DOUBT] = doubt_region_bytes(s->nchildren + 1);
    plan.bytes[SHM_WATCHDOG] = conf_of(s->gen)->use_watchdog ? wd_share_region_bytes() : 0;
    plan.bytes[SHM_CHARTS] = conf_of(s->gen)->http_port != 0 ? sizeof(struct charts) : 0;
    if (s->nworkers > 0) {
        session_plan_shm(conf_of(s->gen), s->nworkers, &plan);
        cache_plan_shm(conf_of(s->gen), s->nchildren + 1, &plan);
        plan.bytes[SHM_CACHE_STREAMS] =
            conf_of(s->gen)->memory_cache_enabled ? cache_streams_bytes() : 0;
    }
    s->shm = shm_new(&plan, err);
    if (s->shm == NULL)
        return -1;
    if (s->nworkers > 0) {
        session_init_shm(conf_of(s->gen), s->nworkers, s->shm);
        cache_init_shm(conf_of(s->gen), s->nchildren + 1, s->shm);
        keep_secret(s);
        begin_run(s);
    }
    row = proc_row(s->shm, PROC_SLOT_SUPERVISOR);
    row->pid = (int32_t)getpid();
    row->role = ROLE_SUPERVISOR;
    row->start_time_us = clock_wall_us();
    row->conf_generation = conf_number(s->gen);
    s->boxes = mailboxes_open(s->nchildren + 1, err);
    return s->boxes == NULL ? -1 : 0;
}

/* The channels to the logger exist before it and outlive it: what is written meanwhile waits. */
static int open_logger_ends(struct sup *s, struct err *err)
{
    int bytes = LOG_ROOM_BYTES;

    if (!conf_of(s->gen)->logging_collector)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->log_ends) == -1 ||
        pipe2(s->err_ends, O_CLOEXEC) == -1) {
        err_set_errno(err, errno, "could not make the channel to the logger");
        return -1;
    }
    if (setsockopt(s->log_ends[1], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) == -1)
        setsockopt(s->log_ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    return 0;
}

/* From here on nothing is written to the terminal of whoever started us, nor by a child later. */
static int redirect_output(struct sup *s, struct err *err)
{
    if (s->log_ends[1] != -1)
        log_at_detail(LVL_LOG, NULL, "Future log output will appear in the files of log_directory.",
            "redirecting log output to the logger process");
    if (s->daemon_fd != -1 && fd_null_stdio(1, err) == -1)
        return -1;
    if (s->log_ends[1] == -1)
        return 0;
    s->plain_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    logdest_set_collector(s->log_ends[1]);
    dup2(s->err_ends[1], STDERR_FILENO);
    return 0;
}

static int hold_pidfile(struct sup *s, struct err *err)
{
    char path[PROC_PATH_BYTES];
    int holder;

    if (conf_path(s->gen, conf_of(s->gen)->pid_file_name, path, sizeof path, err) == -1)
        return -1;
    return pidfile_hold(&s->pidfile, path, &holder, err);
}

static int look_at_files(const struct conf_gen *gen, struct err *err)
{
    if (sup_check_files(gen, err) == -1)
        return -1;
    if (err_is_set(err))
        log_err(LVL_WARNING, err);
    err_clear(err);
    return 0;
}

static int prepare(struct sup *s, struct err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};

    if (!s->opts.foreground && (s->daemon_fd = daemon_detach(err)) == -1)
        return -1;
    log_set_process(proc_role_app_name(ROLE_SUPERVISOR), "pgpool");
    sig_ignore(SIGPIPE);
    /* As the server does: a stray timer, a terminal or a limit of file sizes ends no pooler. */
    sig_ignore(SIGALRM);
    sig_ignore(SIGTTIN);
    sig_ignore(SIGTTOU);
    sig_ignore(SIGXFSZ);
    s->signal_fd = sig_open_fd(signals, (int)(sizeof signals / sizeof signals[0]), err);
    if (s->signal_fd == -1 || fd_null_stdio(0, err) == -1)
        return -1;
    s->most_files = fd_raise_limit();
    lay_out_slots(s);
    if (hold_pidfile(s, err) == -1 || look_at_files(s->gen, err) == -1 ||
        (!s->opts.is_witness && sup_listen_open(s, err) == -1) || make_shared(s, err) == -1)
        return -1;
    return open_logger_ends(s, err) == -1 ? -1 : redirect_output(s, err);
}

/* The files that it makes are root's then, and a mistake of ours or of a failover command has all
 * of the machine. */
static void look_at_user(void)
{
    if (geteuid() == 0)
        log_at_detail(LVL_WARNING, NULL,
            "Start it as a user of its own, or as postgres, who owns its folders and files "
            "(systemd: "
            "User=postgres). It needs no privilege; if_up_cmd and arping_cmd have theirs from "
            "sudo.",
            "pgpool runs as root");
}

/* Told here, or clients find out on the busiest day: they are not answered any more then. */
static void look_at_descriptors(const struct sup *s)
{
    const struct conf *conf = conf_of(s->gen);
    int n = count_workers(conf);

    if (s->most_files == -1 || s->most_files >= conf->max_clients / n + FILES_BESIDES)
        return;
    log_at_detail(LVL_WARNING, NULL,
        "Raise the hard limit (ulimit -Hn, systemd: LimitNOFILE) to twice max_clients, for a "
        "client and its server connection take one each, or lower max_clients.",
        "max_clients = %d cannot be reached: no process may have more than %ld files open, and "
        "there are %d for clients",
        (int)conf->max_clients, s->most_files, n);
}

static void start_children(struct sup *s)
{
    int i;

    look_at_user();
    if (!s->opts.is_witness)
        look_at_descriptors(s);
    for (i = 0; i < s->nchildren; i++) {
        if (!s->children[i].is_spare)
            sup_child_start(s, &s->children[i]);
    }
    log_at(LVL_LOG, "pgpool-II successfully started. version %s (%s)", PACKAGE_VERSION,
        PGPOOL_CODENAME);
}

/* Before the monitor starts, which would take it back. */
static void discard_status(const struct sup *s)
{
    char dir[PROC_PATH_BYTES];
    struct err err = {0};

    if (conf_path(s->gen, conf_of(s->gen)->work_dir, dir, sizeof dir, &err) == -1)
        log_err(LVL_WARNING, &err);
    else
        status_file_discard(dir);
    log_at(LVL_LOG, "option -D: the saved status of the servers is discarded");
}

static void use_options(const struct sup *s, const struct sup_opts *opts)
{
    if (opts->discard_status)
        discard_status(s);
    if (opts->clear_oidmaps)
        log_at(LVL_LOG, "option -C has no effect: the query cache keeps no oid maps in memcached");
}

static void on_signal(struct sup *s, int signo)
{
    struct sup_child *logger;

    switch (signo) {
    case SIGTERM:
        sup_stop_request(s, 's', signo);
        break;
    case SIGINT:
        sup_stop_request(s, 'f', signo);
        break;
    case SIGQUIT:
        sup_stop_request(s, 'i', signo);
        break;
    case SIGHUP:
        sup_reload(s);
        break;
    case SIGUSR1:
        logger = sup_child_of_role(s, ROLE_LOGGER);
        if (logger != NULL)
            (void)mailbox_post(s->boxes, logger->slot, MAIL_LOG_ROTATE, NULL, 0, -1);
        break;
    default: /* SIGCHLD: every turn reaps; SIGUSR2 has no meaning here but must not kill */
        break;
    }
}

static void on_succession(struct sup *s, const struct mail *mail)
{
    int32_t pid;

    if (mail->len != 1 + sizeof pid)
        return;
    memcpy(&pid, mail->body + 1, sizeof pid);
    sup_child_succeed(s, mail->from_slot, pid);
}

static void on_request(struct sup *s, const struct mail *mail)
{
    char what = mail->len > 0 ? mail->body[0] : 0;

    log_at(LVL_DEBUG1, "request '%c' from process slot %d", what, mail->from_slot);
    switch (what) {
    case 'r':
        on_signal(s, SIGHUP);
        break;
    case 's':
        on_signal(s, SIGTERM);
        break;
    case 'f':
        on_signal(s, SIGINT);
        break;
    case 'i':
        on_signal(s, SIGQUIT);
        break;
    case 'l':
        on_signal(s, SIGUSR1);
        break;
    case 'w':
        on_succession(s, mail);
        break;
    default:
        log_at_detail(LVL_WARNING, NULL, LOG_HINT_MISFIT, "unknown request from process slot %d",
            mail->from_slot);
        break;
    }
}

static void take_mails(struct sup *s)
{
    struct mail mail;
    int i;

    for (i = 0; i < MAILS_PER_TURN && mailbox_take(s->boxes, &mail) == 1; i++) {
        if (mail.type == MAIL_REQUEST)
            on_request(s, &mail);
        else
            log_at_detail(LVL_WARNING, NULL, LOG_HINT_MISFIT,
                "supervisor got a message it does not know: %s", mail_name(mail.type));
        if (mail.fd != -1)
            close(mail.fd);
    }
}

static void earlier(int64_t *first, int64_t t)
{
    if (t != 0 && (*first == 0 || t < *first))
        *first = t;
}

static int wait_ms(const struct sup *s)
{
    int64_t first = 0;
    int64_t wait_us;
    int i;

    earlier(&first, s->upgrade_at_us);
    earlier(&first, s->kill_at_us);
    earlier(&first, s->retry_post_us);
    earlier(&first, s->alive_at_us);
    for (i = 0; i < s->nchildren; i++) {
        if (s->children[i].pid == 0)
            earlier(&first, s->children[i].retry_at_us);
    }
    if (first == 0)
        return -1;
    wait_us = first - clock_mono_us();
    return wait_us <= 0 ? 0 : (int)(wait_us / CLOCK_US_PER_MS) + 1;
}

static void ping(struct sup *s, int64_t now_us)
{
    if (s->alive_every_ms == 0 || now_us < s->alive_at_us)
        return;
    notify_alive();
    s->alive_at_us = now_us + s->alive_every_ms * CLOCK_US_PER_MS;
}

static void run(struct sup *s)
{
    struct pollfd fds[2] = {{.fd = s->signal_fd, .events = POLLIN},
        {.fd = mailboxes_own_fd(s->boxes), .events = POLLIN}};

    while (s->phase != SUP_DONE) {
        int64_t now_us;
        int signo;
        int sender;

        if (poll(fds, 2, wait_ms(s)) == -1 && errno != EINTR)
            log_at_detail(LVL_WARNING, NULL, "It is tried again: please report it if it goes on.",
                "the main process could not wait for events: %s", strerror(errno));
        while ((signo = sig_take(s->signal_fd, &sender)) != 0)
            on_signal(s, signo);
        take_mails(s);
        sup_child_reap(s);
        now_us = clock_mono_us();
        sup_child_start_due(s, now_us);
        if (s->retry_post_us != 0 && now_us >= s->retry_post_us)
            sup_tell_children(s);
        sup_stop_step(s, now_us);
        ping(s, now_us);
    }
}

static void give_back_memory(struct sup *s)
{
    mailboxes_close(&s->boxes);
    shm_free(&s->shm);
    fd_close(&s->signal_fd);
    fd_close(&s->gen_fd);
    conf_gen_free(&s->gen);
    mem_free(s->children);
}

int sup_main(const struct sup_opts *opts, struct conf_gen *gen)
{
    struct sup s = {.opts = *opts, .gen = gen, .gen_fd = -1, .signal_fd = -1, .daemon_fd = -1};
    struct err err = {0};

    s.log_ends[0] = s.log_ends[1] = s.err_ends[0] = s.err_ends[1] = s.plain_stderr = -1;
    s.pidfile.fd = -1;
    role_conf_apply_log(conf_of(gen));
    if (prepare(&s, &err) == -1) {
        err.severity = ERR_FATAL;
        log_err(LVL_FATAL, &err);
        sup_listen_close_clients(&s);
        sup_listen_close_control(&s);
        pidfile_drop(&s.pidfile);
        give_back_memory(&s);
        return SUP_EXIT_FATAL;
    }
    use_options(&s, opts);
    start_children(&s);
    s.alive_every_ms = notify_interval_ms();
    s.alive_at_us = s.alive_every_ms == 0 ? 0 : clock_mono_us();
    notify_ready("running");
    if (s.daemon_fd != -1)
        daemon_started(&s.daemon_fd);
    run(&s);
    sup_stop_finish(&s);
    give_back_memory(&s);
    return SUP_EXIT_OK;
}
