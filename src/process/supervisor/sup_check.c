/* SPDX-License-Identifier: PostgreSQL
 * sup_check.c: before the start: can the workers work with what the settings name?
 * Runs in: supervisor, and a child that lives for this question only: the supervisor itself has
 * nothing to do with keys. Workers would only be able to refuse clients; who starts a program wants
 * to know at once. */
#include "config.h"

#include "process/supervisor/sup_int.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/pools_conf.h"
#include "config/wd_id.h"
#include "session/session.h"
#include "sys/fd.h"

/* In the child: the answer is the error, empty when all is well. */
_Noreturn static void check_enter(const struct conf_gen *gen, int answer_fd)
{
    struct err err = {0};

    (void)session_check_tls(gen, &err);
    (void)fd_write_all(answer_fd, &err, sizeof err);
    _exit(0);
}

static int read_answer(int fd, struct err *err)
{
    size_t got = 0;
    ssize_t n;

    while (got < sizeof *err) {
        n = read(fd, (char *)err + got, sizeof *err - got);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return -1;
    }
    return 0;
}

static bool is_needed(const struct conf *conf)
{
    int i;

    for (i = 0; i < conf->nnodes; i++)
        if (conf_has_node(conf, i) && conf->nodes[i].backend_ssl_mode >= CONF_SSL_REQUIRE)
            return true;
    for (i = POOLS_FIRST_TARGET; pools_conf_target(conf, i) != NULL; i++)
        if (pools_conf_target(conf, i)->ssl_mode >= CONF_SSL_REQUIRE)
            return true;
    return conf->ssl;
}

int sup_check_files(const struct conf_gen *gen, struct err *err)
{
    struct err answer = {0};
    int fd[2];
    int rc;
    int id;
    pid_t pid;

    if (conf_of(gen)->use_watchdog && !PGPOOL_HAS_RAFT) {
        err_set(err, "F0000", "use_watchdog is on, and this pgpool was built without libraft");
        err_hint(err, "Set use_watchdog = off, or use a build with libraft.");
        return -1;
    }
    if (conf_of(gen)->use_watchdog && wd_id_read(gen, &id, err) == -1)
        return -1;
    if (!is_needed(conf_of(gen)))
        return 0;
    if (pipe(fd) == -1) {
        err_set_errno(err, errno, "could not make a pipe");
        return -1;
    }
    pid = fork();
    if (pid == 0)
        check_enter(gen, fd[1]);
    close(fd[1]);
    rc = pid == -1 ? -1 : read_answer(fd[0], &answer);
    close(fd[0]);
    while (pid != -1 && waitpid(pid, NULL, 0) == -1 && errno == EINTR)
        ;
    if (rc == -1)
        err_set(err, "58000", "could not check the certificates");
    else if (err_is_set(&answer))
        *err = answer;
    return rc == -1 || answer.severity >= ERR_ERROR ? -1 : 0;
}
