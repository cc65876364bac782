/* SPDX-License-Identifier: PostgreSQL
 * sup_try.c: --check-config: would this host let pgpool start? Opens what a start would open, and
 * closes it. While a pgpool of these settings runs, its own sockets are no findings. */
#include "config.h"

#include "process/supervisor/sup_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

static void folder_of(const char *path, char *out, size_t size)
{
    char *slash;

    snprintf(out, size, "%s", path);
    slash = strrchr(out, '/');
    if (slash == out)
        slash[1] = '\0';
    else if (slash != NULL)
        *slash = '\0';
}

/* Returns whether a pgpool holds the file. */
static bool try_pidfile(const struct conf_gen *gen, struct conf_report *report)
{
    char path[PROC_PATH_BYTES];
    char folder[PROC_PATH_BYTES];
    struct err err = {0};
    enum pidfile_state state = PIDFILE_BROKEN;
    int pid;

    if (conf_path(gen, conf_of(gen)->pid_file_name, path, sizeof path, &err) == 0)
        state = pidfile_look(path, &pid, &err);
    folder_of(path, folder, sizeof folder);
    if (state == PIDFILE_BROKEN)
        conf_report_err(report, CONF_ERROR, NULL, 0, &err);
    else if (state != PIDFILE_LIVE && access(folder, W_OK | X_OK) == -1)
        conf_report_add(report, CONF_ERROR, NULL, 0,
            "The folder must exist and be writable for who starts pgpool; pid_file_name names "
            "another "
            "place.",
            "pid file \"%s\" cannot be made: %s", path, strerror(errno));
    return state == PIDFILE_LIVE;
}

static void try_sockets(const struct conf_gen *gen, struct conf_report *report)
{
    struct sup *s = mem_alloc_zero(sizeof *s);
    struct err err = {0};

    s->gen = (struct conf_gen *)gen;
    s->nworkers = 1;
    log_configure("", LVL_FATAL, LOG_DEFAULT); /* nothing is set up to stay */
    if (sup_listen_open(s, &err) == -1)
        conf_report_err(report, CONF_ERROR, NULL, 0, &err);
    sup_listen_close_clients(s);
    sup_listen_close_control(s);
    mem_free(s);
}

/* The logger tries again and again, and writes to standard error meanwhile: no reason not to start.
 */
static void try_log_folder(const struct conf_gen *gen, struct conf_report *report)
{
    char path[PROC_PATH_BYTES];
    char parent[PROC_PATH_BYTES];
    struct stat st;
    struct err err = {0};

    if (!conf_of(gen)->logging_collector)
        return;
    if (conf_path(gen, conf_of(gen)->log_directory, path, sizeof path, &err) == -1) {
        conf_report_err(report, CONF_WARNING, NULL, 0, &err);
        return;
    }
    folder_of(path, parent, sizeof parent);
    if (access(stat(path, &st) == 0 ? path : parent, W_OK | X_OK) == -1)
        conf_report_add(report, CONF_WARNING, NULL, 0,
            "Make the folder, or set log_directory. Until then lines go to standard error.",
            "log files cannot be written to \"%s\": %s", path, strerror(errno));
}

/* A command that names its program by its path: is that there? */
static void try_command(const char *name, const char *command, struct conf_report *report)
{
    char program[PROC_PATH_BYTES];
    size_t n = strcspn(command, " \t\"'$`;|&<>()*?[]{}\\%");

    if (command[0] != '/' || n >= sizeof program || (command[n] != '\0' && command[n] != ' '))
        return;
    memcpy(program, command, n);
    program[n] = '\0';
    if (access(program, X_OK) == -1)
        conf_report_add(report, CONF_WARNING, NULL, 0, "The command will fail when it is needed.",
            "the program of %s, \"%s\": %s", name, program, strerror(errno));
}

void sup_try_start(const struct conf_gen *gen, struct conf_report *report)
{
    const struct conf *conf = conf_of(gen);

    if (!try_pidfile(gen, report))
        try_sockets(gen, report);
    try_log_folder(gen, report);
    try_command("failover_command", conf->failover_command, report);
    try_command("failback_command", conf->failback_command, report);
    try_command("follow_primary_command", conf->follow_primary_command, report);
}
