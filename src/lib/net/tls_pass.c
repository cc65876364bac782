/* SPDX-License-Identifier: PostgreSQL
 * tls_pass.c: asks ssl_passphrase_command for the passphrase of a key.
 * Runs in: workers, when they start and serve nobody yet; after that the passphrase is remembered,
 * so that a reload waits for no command. */
#include "config.h"

#include "net/tls.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/sig.h"

/* A command that takes longer is ended: the worker has to start. */
#define PASSPHRASE_LIMIT_US INT64_C(30000000)

/* %p becomes the prompt, %% one percent sign. */
static void expand_command(const struct tls_passphrase *pp, struct buf *out)
{
    const char *p;

    for (p = pp->command; *p != '\0'; p++) {
        if (p[0] == '%' && p[1] == 'p') {
            buf_printf(out, "Enter PEM pass phrase for \"%s\":", pp->key_file);
            p++;
        } else {
            if (p[0] == '%' && p[1] == '%')
                p++;
            buf_put_byte(out, *p);
        }
    }
    buf_put_byte(out, '\0');
}

/* In the child: the shell that the setting is written for. */
_Noreturn static void run_command(const char *command, int out_fd)
{
    int keep[1] = {-1};

    (void)dup2(out_fd, STDOUT_FILENO);
    (void)fd_null_stdio(0, NULL);
    fd_close_others(keep, 0);
    sig_reset_all(NULL, 0);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127); /* ban: a forked child has no other way out */
}

/* Reads all the command says, within the limit; -1 when it says too much or takes too long. */
static int read_answer(int fd, struct tls_passphrase *pp)
{
    int64_t end_us = clock_mono_us() + PASSPHRASE_LIMIT_US;
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    ssize_t n;

    while (clock_mono_us() < end_us) {
        if (poll(&pfd, 1, (int)((end_us - clock_mono_us()) / 1000) + 1) <= 0)
            continue;
        n = read(fd, pp->text + pp->len, sizeof pp->text - (size_t)pp->len);
        if (n == 0)
            return 0;
        if (n > 0)
            pp->len += (int)n;
        else if (errno != EINTR)
            return -1;
        if (pp->len == (int)sizeof pp->text)
            return -1;
    }
    return -1;
}

/* 0 when the command ended well. */
static int bury(pid_t pid, bool is_late)
{
    int status = 0;

    if (is_late)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int ask_command(struct tls_passphrase *pp)
{
    struct buf command = {0};
    bool is_late;
    int fd[2];
    pid_t pid;

    if (pipe(fd) == -1)
        return -1;
    expand_command(pp, &command);
    pid = fork();
    if (pid == 0)
        run_command(command.data, fd[1]);
    buf_free(&command);
    close(fd[1]);
    is_late = pid == -1 || read_answer(fd[0], pp) == -1;
    close(fd[0]);
    return pid == -1 || bury(pid, is_late) == -1 ? -1 : 0;
}

void tls_passphrase_forget(struct tls_passphrase *pp)
{
    mem_wipe(pp->text, sizeof pp->text);
    pp->len = 0;
}

int tls_passphrase_get(char *out, int cap, void *ctx)
{
    struct tls_passphrase *pp = ctx;

    if (pp->len == 0 && ask_command(pp) == -1) {
        log_at_detail(LVL_WARNING, NULL,
            "Run it by hand as the user that pgpool runs as; it has to print the passphrase.",
            "ssl_passphrase_command failed");
        tls_passphrase_forget(pp);
        return -1;
    }
    while (pp->len > 0 && (pp->text[pp->len - 1] == '\n' || pp->text[pp->len - 1] == '\r'))
        pp->len--;
    if (pp->len == 0 || pp->len > cap)
        return -1;
    memcpy(out, pp->text, (size_t)pp->len);
    return pp->len;
}
