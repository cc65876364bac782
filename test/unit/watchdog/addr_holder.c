/* SPDX-License-Identifier: PostgreSQL
 * addr_holder.c: a leader without a watchdog: holds the virtual address of a configuration file as
 * it is told on standard input, and prints what happens. For test_watchdog_address.py, which starts
 * one on each host of a network of its own.
 *
 *     addr_holder FILE LEASE_MS PERIOD_MS
 *
 * wait MS: the address is not to be taken before that time; lead: leads from now on, a majority
 * being heard each PERIOD_MS; deaf: none is heard any more; stop: does not lead any more; status:
 * prints the status; the end of the input ends it. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "config/conf.h"
#include "event/loop.h"
#include "process/watchdog/wd_addr.h"

struct holder {
    struct loop loop;
    struct io input;
    struct timer period;
    struct wd_addr *addr;
    int64_t lease_ms;
    int64_t period_ms;
    bool is_leading;
};

static void say(const char *word, const char *rest)
{
    printf("%s%s%s\n", word, rest[0] == '\0' ? "" : " ", rest);
    fflush(stdout);
}

static void on_taken(void *owner)
{
    say("taken", "");
}

static void on_lost(void *owner, const char *why)
{
    say("lost", why);
}

static void on_unfit(void *owner, const char *why)
{
    say("unfit", why);
}

static void on_fit(void *owner)
{
    say("fit", "");
}

static void on_period(struct timer *t)
{
    struct holder *h = LIST_ENTRY(t, struct holder, period);

    if (!h->is_leading)
        return;
    wd_addr_lead(h->addr, wd_addr_boot_ms() + h->lease_ms);
    timer_start(&h->loop, t, h->period_ms);
}

static void print_status(struct holder *h)
{
    struct wd_addr_status s;

    wd_addr_status(h->addr, &s);
    printf("status how=%s held=%d leading=%d left=%lld on=%s doing=%s error=%s\n",
        wd_addr_how_text(s.how), s.is_held, s.is_leading, (long long)s.lease_left_ms, s.interface,
        s.doing, s.last_error);
    fflush(stdout);
}

static void obey(struct holder *h, const char *word)
{
    if (strcmp(word, "lead") == 0) {
        h->is_leading = true;
        on_period(&h->period);
    } else if (strncmp(word, "wait ", 5) == 0) {
        wd_addr_not_before(h->addr, wd_addr_boot_ms() + atoll(word + 5));
    } else if (strcmp(word, "deaf") == 0) {
        h->is_leading = false;
    } else if (strcmp(word, "stop") == 0) {
        h->is_leading = false;
        wd_addr_stop_leading(h->addr);
    } else if (strcmp(word, "status") == 0) {
        print_status(h);
    }
}

static void on_input(struct io *io, int events)
{
    struct holder *h = LIST_ENTRY(io, struct holder, input);
    char text[512];
    char *save = NULL;
    char *word;
    ssize_t n = read(io->fd, text, sizeof text - 1);

    if (n <= 0) {
        loop_stop(&h->loop);
        return;
    }
    text[n] = '\0';
    for (word = strtok_r(text, "\n", &save); word != NULL; word = strtok_r(NULL, "\n", &save))
        obey(h, word);
}

static void on_input_closed(struct io *io)
{
}

static void run(struct holder *h, const struct conf *conf)
{
    static const struct wd_addr_calls calls = {on_taken, on_lost, on_unfit, on_fit};
    struct err err = {0};

    loop_init(&h->loop);
    timer_init(&h->period, on_period);
    (void)fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    h->addr = wd_addr_new(&h->loop, conf, &calls, h, &err);
    if (h->addr == NULL) {
        say("refused", err.msg);
        return;
    }
    io_open(&h->loop, &h->input, STDIN_FILENO, on_input);
    io_want(&h->input, IO_READ);
    say("ready", "");
    loop_run(&h->loop);
    io_close(&h->input, on_input_closed);
    timer_stop(&h->loop, &h->period);
    wd_addr_free(&h->addr);
    loop_fini(&h->loop);
}

int main(int argc, char **argv)
{
    struct conf_report report;
    struct holder *h;
    struct conf_gen *gen;

    if (argc != 4)
        return EXIT_FAILURE;
    log_set_process("watchdog", "watchdog");
    conf_report_init(&report);
    gen = conf_load(argv[1], NULL, &report);
    if (gen == NULL) {
        struct buf text = {0};

        conf_report_format(&report, &text);
        fprintf(stderr, "%.*s\n", (int)buf_slice(&text).n, buf_slice(&text).p);
        return EXIT_FAILURE;
    }
    h = calloc(1, sizeof *h);
    h->lease_ms = atoll(argv[2]);
    h->period_ms = atoll(argv[3]);
    run(h, conf_of(gen));
    free(h);
    conf_gen_free(&gen);
    conf_report_fini(&report);
    return EXIT_SUCCESS;
}
