/* SPDX-License-Identifier: PostgreSQL
 * pgpool.c: the program: start, stop, reload, and questions about settings.
 * Runs in: the command line, and becomes the supervisor. Options and texts are pgpool-II's, so that
 * scripts and service files written for it go on working. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "bin/pgpool/pgpool_auth.h"
#include "bin/pgpool/pgpool_cmd.h"
#include "bin/pgpool/pgpool_import.h"
#include "bin/pgpool/pgpool_opts.h"
#include "config/conf.h"
#include "config/conf_describe.h"
#include "crypto/crypto.h"
#include "ipc/roles.h"
#include "process/common/role_conf.h"
#include "process/common/role_rules.h"
#include "process/control/control.h"
#include "process/invalidator/invalidator.h"
#include "process/logger/logger.h"
#include "process/monitor/monitor.h"
#include "process/supervisor/supervisor.h"
#include "process/watchdog/watchdog.h"
#include "process/web/web.h"
#include "process/worker/worker.h"
#include "session/session.h"
#include "sys/fd.h"
#include "sys/pidfile.h"
#include "sys/title.h"

static proc_main_fn *const role_mains[ROLE_COUNT] = {
    [ROLE_WORKER] = worker_main,
    [ROLE_MONITOR] = monitor_main,
    [ROLE_CONTROL] = control_main,
    [ROLE_WATCHDOG] = watchdog_main,
    [ROLE_INVALIDATOR] = invalidator_main,
    [ROLE_WEB] = web_main,
    [ROLE_LOGGER] = logger_main,
};

static int describe(const char *what)
{
    struct buf out = {0};
    struct err err = {0};
    int rc = conf_describe(what, &out, &err);

    if (rc == -1)
        log_err(LVL_FATAL, &err);
    else
        rc = fd_write_all(STDOUT_FILENO, out.data, out.len);
    buf_free(&out);
    return rc == -1 ? PGPOOL_EXIT_USAGE : PGPOOL_EXIT_OK;
}

/* What a start would find out in the files that the settings name. */
static void check_files(
    const struct pgpool_opts *opts, const struct conf_gen *gen, struct conf_report *report)
{
    struct err err = {0};

    (void)role_rules_check(gen, &opts->paths, report);
    pgpool_auth_check_passwd(gen, report);
    pgpool_auth_check_pcp(opts, gen, report);
    if (sup_check_files(gen, &err) == -1)
        conf_report_err(report, CONF_ERROR, NULL, 0, &err);
    else if (err_is_set(&err))
        conf_report_err(report, CONF_WARNING, NULL, 0, &err);
    sup_try_start(gen, report);
}

/* Prints every finding; the status says whether a start would be refused. */
static int check_config(const struct pgpool_opts *opts)
{
    struct conf_report report;
    struct buf out = {0};
    struct conf_gen *gen;
    int status;

    conf_report_init(&report);
    gen = conf_load(opts->conf_file, opts->settings, &report);
    if (gen != NULL)
        check_files(opts, gen, &report);
    conf_report_format(&report, &out);
    (void)fd_write_all(STDERR_FILENO, out.data, out.len);
    status = report.nerrors > 0 ? PGPOOL_EXIT_FAILED : PGPOOL_EXIT_OK;
    conf_gen_free(&gen);
    conf_report_fini(&report);
    buf_free(&out);
    return status;
}

static struct conf_gen *load(const struct pgpool_opts *opts);

static int check_auth(const struct pgpool_opts *opts)
{
    struct conf_gen *gen = load(opts);
    int status;

    if (gen == NULL)
        return PGPOOL_EXIT_FATAL;
    status = pgpool_auth_check_user(opts, gen);
    conf_gen_free(&gen);
    return status;
}

static struct conf_gen *load(const struct pgpool_opts *opts)
{
    struct conf_report report;
    struct conf_gen *gen;

    conf_report_init(&report);
    gen = conf_load(opts->conf_file, opts->settings, &report);
    if (gen != NULL)
        role_conf_apply_log(conf_of(gen));
    /* Who only stops or reloads has been told about warnings at the start. */
    if (gen == NULL || opts->command == PGPOOL_START)
        role_conf_log_report(&report);
    if (gen == NULL)
        log_at_detail(LVL_FATAL, NULL, "Run pgpool --check-config to see all findings.",
            "configuration file \"%s\" cannot be used: %d error%s", opts->conf_file, report.nerrors,
            report.nerrors == 1 ? "" : "s");
    conf_report_fini(&report);
    return gen;
}

static bool can_use_rules(const struct pgpool_opts *opts, const struct conf_gen *gen)
{
    struct conf_report report;
    int rc;

    conf_report_init(&report);
    rc = role_rules_check(gen, &opts->paths, &report);
    role_conf_log_report(&report);
    conf_report_fini(&report);
    return rc == 0;
}

static int start(const struct pgpool_opts *opts, struct conf_gen *gen, const char *pid_path)
{
    struct sup_opts sup = {
        .paths = opts->paths,
        .foreground = opts->foreground,
        .discard_status = opts->discard_status,
        .clear_oidmaps = opts->clear_oidmaps,
        .is_witness = opts->is_witness,
        .mains = role_mains,
    };
    int status = pgpool_cmd_check_pidfile(pid_path);

    if (status != PGPOOL_EXIT_OK) {
        conf_gen_free(&gen);
        return status;
    }
    if (!opts->is_witness && !can_use_rules(opts, gen)) {
        log_at_detail(LVL_FATAL, NULL, "Correct the file, or set enable_pool_hba = off.",
            "the rules of client authentication could not be loaded");
        conf_gen_free(&gen);
        return PGPOOL_EXIT_FATAL;
    }
    if (opts->debug_assertions)
        log_at(LVL_LOG, "option -x: assertions are always on");
    return sup_main(&sup, gen);
}

/* Whether keys belong to who uses them can be judged by the user that pgpool runs as. */
static bool is_its_user(const char *pid_path)
{
    struct stat st;

    return stat(pid_path, &st) == 0 && st.st_uid == geteuid();
}

/* The rules may be of another file there (-a), so that a mistake in these is no failure. */
static int reload(const struct pgpool_opts *opts, const struct conf_gen *gen, const char *pid_path)
{
    struct err err = {0};
    int status = pgpool_cmd_reload(pid_path);

    if (status != PGPOOL_EXIT_OK)
        return status;
    if (!can_use_rules(opts, gen))
        log_at_detail(LVL_WARNING, NULL, "Correct the file and reload again.",
            "the rules of client authentication could not be loaded: those from before stay in "
            "use, and where there were none nobody is let in");
    /* What the command says may be another word than that of the start, which is kept there. */
    if (*conf_of(gen)->ssl_passphrase_command == '\0' && is_its_user(pid_path) &&
        session_check_tls(gen, &err) == -1)
        err_hint(&err, "What was in use before stays in use. Correct the files and reload again.");
    if (err_is_set(&err))
        log_err(LVL_WARNING, &err);
    return status;
}

static int run(const struct pgpool_opts *opts)
{
    struct conf_gen *gen = load(opts);
    struct err err = {0};
    char pid_path[PROC_PATH_BYTES];
    int status;

    if (gen == NULL)
        return PGPOOL_EXIT_FATAL;
    if (conf_path(gen, conf_of(gen)->pid_file_name, pid_path, sizeof pid_path, &err) == -1) {
        log_err(LVL_FATAL, &err);
        conf_gen_free(&gen);
        return PGPOOL_EXIT_FATAL;
    }
    if (opts->command == PGPOOL_START)
        return start(opts, gen, pid_path);
    if (opts->command == PGPOOL_STOP)
        status = pgpool_cmd_stop(pid_path, opts->stop_signal);
    else
        status = reload(opts, gen, pid_path);
    conf_gen_free(&gen);
    return status;
}

int main(int argc, char **argv)
{
    struct pgpool_opts opts;
    char **args = title_init(argc, argv);
    bool is_hidden = crypto_hide_memory(); /* before anything may use OpenSSL */
    int status;

    tzset();
    log_set_process(proc_role_app_name(ROLE_SUPERVISOR), "pgpool");
    if (!is_hidden)
        log_at(LVL_WARNING, "keys of TLS may be seen in core dumps: OpenSSL was in use already");
    if (argc > 1 && strcmp(args[1], "top") == 0)
        return pgpool_cmd_top(args + 1);
    status = pgpool_opts_parse(argc, args, &opts);
    if (status == PGPOOL_OPTS_DONE)
        return PGPOOL_EXIT_OK;
    if (status == PGPOOL_OPTS_WRONG)
        return PGPOOL_EXIT_USAGE;
    if (opts.describe != NULL)
        return describe(opts.describe);
    if (opts.import_file != NULL)
        return pgpool_import(
            opts.import_file, opts.import_folder != NULL ? opts.import_folder : ".");
    if (opts.check_config)
        return check_config(&opts);
    if (opts.check_auth != NULL)
        return check_auth(&opts);
    return run(&opts);
}
