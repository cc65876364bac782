/* SPDX-License-Identifier: PostgreSQL
 * recovery_run.c: runs a program without a shell and shows what it said when it failed.
 * Runs in: a backend of PostgreSQL. What is run may go on for hours, so a wait ends at once when
 * the query is cancelled; and it may start a server that keeps our pipe open, so it is the end of
 * the program that counts, not the end of its output. */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/stringinfo.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port.h"
#include "storage/latch.h"
#include "utils/wait_event.h"

#include "recovery_run.h"

#define LOOK_MS    50
#define KEEP_BYTES 4000 /* of the output's end */
#define READ_BYTES 1024
#define FIRST_FD   3
#define LAST_FD    1024
#define KILL_LOOKS 100
#define KILL_US    10000L

const char *recovery_bindir(void)
{
    static char dir[MAXPGPATH]; /* a constant of the server, found once */

    if (dir[0] == '\0') {
        strlcpy(dir, my_exec_path, sizeof dir);
        get_parent_directory(dir);
    }
    return dir;
}

/* In the child: nothing of the server's but standard error stays open. */
static void close_the_rest(int keep)
{
    int fd;

    for (fd = FIRST_FD; fd < LAST_FD; fd++) {
        if (fd != keep)
            close(fd);
    }
#ifdef CLOSE_RANGE_CLOEXEC
    (void)close_range(LAST_FD, ~0U, CLOSE_RANGE_CLOEXEC);
#endif
}

/* In the child: becomes the program. `out` takes its output, -1: the server's standard error does;
 * `failed` tells the parent why it could not be run. */
static void become(char *const argv[], int out, int failed)
{
    int null = open("/dev/null", O_RDONLY);
    int sig;
    int why;

    for (sig = 1; sig < 32; sig++)
        (void)pqsignal(sig, SIG_DFL);
    (void)setsid();
    if (null != -1)
        (void)dup2(null, STDIN_FILENO);
    if (out != -1)
        (void)dup2(out, STDERR_FILENO);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    close_the_rest(failed);
    (void)setenv("PGBIN", recovery_bindir(), 0);
    PG_SETMASK(&UnBlockSig);
    execv(argv[0], argv);
    why = errno;
    (void)!write(failed, &why, sizeof why);
    _exit(127); /* ban: a child of fork must not run the server's exit handlers */
}

/* Forks; the caller has made `out`. Raises an ERROR when the program cannot be run. */
static pid_t start(const char *what, char *const argv[], int out)
{
    int failed[2];
    int why = 0;
    pid_t pid;
    ssize_t n;

    if (pipe(failed) == -1)
        ereport(ERROR, (errmsg("%s: could not make a pipe: %m", what)));
    (void)fcntl(failed[1], F_SETFD, FD_CLOEXEC);
    fflush(NULL);
    PG_SETMASK(&BlockSig);
    pid = fork();
    if (pid == 0)
        become(argv, out, failed[1]);
    why = errno;
    PG_SETMASK(&UnBlockSig);
    close(failed[1]);
    if (pid == -1) {
        close(failed[0]);
        errno = why;
        ereport(ERROR, (errmsg("%s: could not start a process: %m", what)));
    }
    do {
        n = read(failed[0], &why, sizeof why);
    } while (n == -1 && errno == EINTR);
    close(failed[0]);
    if (n == (ssize_t)sizeof why) {
        (void)waitpid(pid, NULL, 0);
        errno = why;
        ereport(ERROR,
            (errcode_for_file_access(), errmsg("%s: could not run \"%s\": %m", what, argv[0])));
    }
    return pid;
}

/* Takes what is there; false at the end of the output. */
static bool read_some(int fd, StringInfo tail)
{
    char bytes[READ_BYTES];
    ssize_t n = read(fd, bytes, sizeof bytes);

    if (n == 0)
        return false;
    if (n == -1)
        return errno == EAGAIN || errno == EINTR;
    appendBinaryStringInfo(tail, bytes, (int)n);
    if (tail->len > KEEP_BYTES) {
        memmove(tail->data, tail->data + tail->len - KEEP_BYTES, KEEP_BYTES);
        tail->len = KEEP_BYTES;
        tail->data[tail->len] = '\0';
    }
    return true;
}

/* The messages go to a client and to the log: bytes that are no text of this database become '?'.
 */
static const char *printable(StringInfo tail)
{
    int i;

    while (tail->len > 0 && strchr("\r\n ", tail->data[tail->len - 1]) != NULL)
        tail->data[--tail->len] = '\0';
    for (i = 0; i < tail->len; i++) {
        unsigned char c = (unsigned char)tail->data[i];

        if (c > 126 || (c < ' ' && c != '\n' && c != '\t'))
            tail->data[i] = '?';
    }
    return tail->data;
}

/* Waits for the end of the program; returns its status as waitpid tells it. */
static int wait_for_end(pid_t pid, int fd, StringInfo tail)
{
    bool is_open = true;
    int status = 0;

    for (;;) {
        pid_t ended = waitpid(pid, &status, WNOHANG);
        int events = WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH;

        if (ended == pid || (ended == -1 && errno != EINTR))
            break;
        (void)WaitLatchOrSocket(MyLatch, is_open ? events | WL_SOCKET_READABLE : events, fd,
            LOOK_MS, PG_WAIT_EXTENSION);
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
        if (is_open)
            is_open = read_some(fd, tail);
    }
    /* What it said last; a server that it started may keep the pipe open without saying more. */
    while (is_open) {
        int before = tail->len;
        ssize_t n;
        char bytes[READ_BYTES];

        n = read(fd, bytes, sizeof bytes);
        if (n <= 0 || before > KEEP_BYTES)
            break;
        appendBinaryStringInfo(tail, bytes, (int)n);
    }
    return status;
}

/* The query was cancelled: ends the program and what it started, and waits until it is gone. */
static void kill_all(pid_t pid)
{
    int i;

    (void)kill(-pid, SIGTERM);
    for (i = 0; i < KILL_LOOKS; i++) {
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return;
        pg_usleep(KILL_US);
    }
    (void)kill(-pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void report(const char *what, const char *program, int status, StringInfo tail)
{
    const char *said = printable(tail);

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        ereport(LOG, (errmsg("%s: \"%s\" succeeded", what, program),
                         said[0] == '\0' ? 0 : errdetail("Its output ended with: %s", said)));
        return;
    }
    if (WIFSIGNALED(status))
        ereport(
            ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
                       errmsg("%s: \"%s\" was ended by signal %d", what, program, WTERMSIG(status)),
                       said[0] == '\0' ? 0 : errdetail("Its output ended with: %s", said)));
    ereport(ERROR,
        (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
            errmsg("%s: \"%s\" failed with exit status %d", what, program, WEXITSTATUS(status)),
            said[0] == '\0' ? 0 : errdetail("Its output ended with: %s", said)));
}

void recovery_run(const char *what, char *const argv[])
{
    volatile pid_t pid = -1;
    StringInfoData tail;
    volatile int status = 0;
    int out[2];

    initStringInfo(&tail);
    if (pipe(out) == -1)
        ereport(ERROR, (errmsg("%s: could not make a pipe: %m", what)));
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    PG_TRY();
    {
        pid = start(what, argv, out[1]);
        close(out[1]);
        out[1] = -1;
        status = wait_for_end(pid, out[0], &tail);
        pid = -1;
    }
    PG_FINALLY();
    {
        if (pid != -1)
            kill_all(pid);
        if (out[1] != -1)
            close(out[1]);
        close(out[0]);
    }
    PG_END_TRY();
    report(what, argv[0], status, &tail);
    pfree(tail.data);
}

void recovery_launch(const char *what, char *const argv[])
{
    /* It is not waited for: it becomes a child of init when this backend ends. */
    (void)start(what, argv, -1);
}
