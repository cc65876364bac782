/* SPDX-License-Identifier: PostgreSQL
 * top_link.c: one connection to pgpool's virtual database, opened again when it breaks.
 * Runs in: pgpool-top. Never waits without a limit, and never while a key waits to be read for
 * long: the screen's input ends a wait, for who presses q wants to leave also when pgpool hangs. */
#include "config.h"

#include "bin/pgpool_top/top.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ANSWER_WITHIN_MS = 10000, PATIENT_MS = 1000 };

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void note(struct top_link *l, const char *text)
{
    size_t len;

    snprintf(l->error, sizeof l->error, "%s", text != NULL ? text : "");
    for (len = strlen(l->error); len > 0 && l->error[len - 1] == '\n'; len--)
        l->error[len - 1] = '\0';
}

void top_link_close(struct top_link *l)
{
    PQfinish(l->conn);
    l->conn = NULL;
}

/* Waits for the socket. -1: the time is over, or a key was pressed when that had lasted a second.
 * 0: ready, or to be looked at again. */
static int wait_for(struct top_link *l, short events, int64_t deadline)
{
    struct pollfd fds[2] = {{PQsocket(l->conn), events, 0}, {l->wake_fd, POLLIN, 0}};
    int64_t left = deadline - now_ms();
    int64_t patient = left - (ANSWER_WITHIN_MS - PATIENT_MS);
    int n;

    if (left <= 0 || fds[0].fd == -1)
        return -1;
    if (patient > 0) {
        (void)poll(fds, 1, (int)patient);
        return 0;
    }
    n = poll(fds, 2, (int)left);
    return n == 0 || (n > 0 && fds[0].revents == 0) ? -1 : 0;
}

static int open_link(struct top_link *l, int64_t deadline)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    l->conn = PQconnectStartParams(l->keywords, l->values, 1);
    if (l->conn == NULL || PQstatus(l->conn) == CONNECTION_BAD) {
        note(l, l->conn == NULL ? "out of memory" : PQerrorMessage(l->conn));
        top_link_close(l);
        return -1;
    }
    while (state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED) {
            note(l, PQerrorMessage(l->conn));
            top_link_close(l);
            return -1;
        }
        if (wait_for(l, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline) == -1) {
            note(l, "pgpool did not answer the login in time");
            top_link_close(l);
            return -1;
        }
        state = PQconnectPoll(l->conn);
    }
    return 0;
}

/* Reads to the end of the statement; its last result. */
static PGresult *read_answer(struct top_link *l, int64_t deadline)
{
    PGresult *last = NULL;
    PGresult *next;

    for (;;) {
        while (PQisBusy(l->conn)) {
            if (wait_for(l, POLLIN, deadline) == -1 || PQconsumeInput(l->conn) == 0) {
                note(l, PQstatus(l->conn) == CONNECTION_BAD ? PQerrorMessage(l->conn)
                                                            : "pgpool did not answer in time");
                PQclear(last);
                top_link_close(l);
                return NULL;
            }
        }
        next = PQgetResult(l->conn);
        if (next == NULL)
            return last;
        PQclear(last);
        last = next;
    }
}

PGresult *top_link_ask(struct top_link *l, const char *sql)
{
    int64_t deadline = now_ms() + ANSWER_WITHIN_MS;
    PGresult *answer;

    if (l->conn == NULL && open_link(l, deadline) == -1)
        return NULL;
    if (PQsendQuery(l->conn, sql) == 0) {
        note(l, PQerrorMessage(l->conn));
        top_link_close(l);
        return NULL;
    }
    answer = read_answer(l, deadline);
    if (answer == NULL)
        return NULL;
    if (PQresultStatus(answer) == PGRES_TUPLES_OK || PQresultStatus(answer) == PGRES_COMMAND_OK) {
        l->error[0] = '\0';
        return answer;
    }
    note(l, PQresultErrorMessage(answer));
    PQclear(answer);
    if (PQstatus(l->conn) == CONNECTION_BAD)
        top_link_close(l);
    return NULL;
}
