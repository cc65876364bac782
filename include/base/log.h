/* SPDX-License-Identifier: PostgreSQL
 * log.h: log lines: level, prefix, text, DETAIL and HINT lines, to a sink.
 * Runs in: every process. One event is one line (plus DETAIL/HINT). The prefix is made from
 * log_line_prefix and a context that says which process, client, user and database it is about.
 * Never called on the hot path; what a client can trigger goes through log_limited. */
#ifndef PGP_BASE_LOG_H
#define PGP_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct err;

/* Ordered by noise, as PostgreSQL and pgpool-II name them. */
enum log_level {
    LVL_DEBUG5,
    LVL_DEBUG4,
    LVL_DEBUG3,
    LVL_DEBUG2,
    LVL_DEBUG1,
    LVL_INFO,
    LVL_NOTICE,
    LVL_WARNING,
    LVL_ERROR,
    LVL_LOG, /* ranks above ERROR for the log, as in PostgreSQL */
    LVL_FATAL,
    LVL_PANIC
};

/* Who the line is about; every field may be NULL. Stored by pointer while set. */
struct log_context {
    const char *app_name; /* %a: role of the process, or the client's application_name */
    const char *user;     /* %u */
    const char *database; /* %d */
};

/* Receives one complete line with its newline. `level` is for syslog. */
typedef void log_sink_fn(enum log_level level, const char *line, unsigned len, void *ctx);

/* Sets the process-wide name (%a until a context says otherwise, and %P). Keeps the pointer. */
void log_set_process(const char *role_name, const char *process_title);
/* Sets log_line_prefix, log_min_messages and verbosity (0 terse, 1 default, 2 verbose). Copies. */
void log_configure(const char *line_prefix, enum log_level min_level, int verbosity);
/* Replaces the sink; NULL means standard error. */
void log_set_sink(log_sink_fn *fn, void *ctx);
/* Makes `ctx` the context of the lines that follow; NULL for none. Returns the one before. */
const struct log_context *log_use_context(const struct log_context *ctx);
/* True when a line of `level` would be written. */
bool log_is_on(enum log_level level);
/* Writes one line. */
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes one line with a DETAIL and a HINT; NULL leaves that one out. */
void log_at_detail(enum log_level level, const char *detail, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Writes `err` with its detail and hint. */
void log_err(enum log_level level, const struct err *err);
/* "DEBUG1", "LOG", ... */
const char *log_level_text(enum log_level level);

/* Rate limit of one call site: at most `burst` lines per second, then counts what it swallows and
 * says so in the next line. Use: static struct log_limit lim = {.burst = 10}; */
struct log_limit {
    unsigned burst;
    unsigned in_window;
    unsigned swallowed;
    int64_t window_start_s;
};
/* True when the call site may log now. */
bool log_limit_pass(struct log_limit *lim);

#endif
