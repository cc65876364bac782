/* SPDX-License-Identifier: PostgreSQL
 * log.h: log lines: level, prefix, text, DETAIL and HINT lines, to a sink.
 * Runs in: every process. One event is one line (plus DETAIL and HINT): line breaks and other
 * control characters inside a text are written as escapes. The prefix is made from log_line_prefix
 * and a context that says which process, client, user and database it is about. Never called on the
 * hot path; what a client can trigger goes through log_caused. */
#ifndef PGP_BASE_LOG_H
#define PGP_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hot.h"

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

#define LOG_JSONLINE_MAX 65536
/* The next step when processes of ours do not understand each other. */
#define LOG_HINT_MISFIT                                                                            \
    "Restart pgpool as a whole if two versions of it run; else it is a bug: please report it."

enum log_verbosity {
    LOG_TERSE, /* no DETAIL and HINT */
    LOG_DEFAULT,
    LOG_VERBOSE /* SQLSTATE in front of the text, and a LOCATION line */
};

/* Who the line is about; every field may be NULL. Stored by pointer while set. */
struct log_context {
    const char *app_name; /* %a: role of the process, or the client's application_name */
    const char *user;     /* %u */
    const char *database; /* %d */
    const char *host;     /* %h, and %r with the port */
    int port;             /* 0: it has none */
    uint32_t client_id;   /* as in SHOW POOL_CLIENTS, 0: none */
    int node;             /* of the link that the client has */
    int server_pid;       /* of that link; 0: it has none */
    /* The fingerprint of the statement that it runs, for jsonlog; NULL: none, or not known. */
    const char *fingerprint; /* as in SHOW POOL_STATEMENTS */
    const char *trace_id;    /* of its comment (traceparent) */
    const char *span_id;
    bool has_levels; /* the two below hold for its lines, not those of log_configure */
    enum log_level min_level;
    enum log_verbosity verbosity;
};

/* Where in the source a line comes from; the macros below make it. */
struct log_place {
    const char *file;
    const char *function;
    int line;
};
#define LOG_HERE (&(const struct log_place){__FILE__, __func__, __LINE__})

/* Receives one whole event: its line and, when there are any, the DETAIL and HINT lines, each with
 * its newline. `level` is for syslog. */
typedef void log_sink_fn(enum log_level level, const char *text, unsigned len, void *ctx);

/* Sets the process-wide names: %a until a context says otherwise, and %P. Keeps the pointers. Call
 * it in every process after its fork: the line counter (%l) starts again and the pid (%p) is read.
 */
void log_set_process(const char *role_name, const char *process_title);
/* Sets log_line_prefix, log_min_messages and log_error_verbosity. Copies the prefix. */
void log_configure(const char *line_prefix, enum log_level min_level, int verbosity);
/* Sets log_format: true for one JSON object per event instead of prefixed lines. */
void log_set_json(bool on);
/* Sets log_client_limit: lines per second for limits with burst 0; 0 means no limit. */
void log_set_client_limit(unsigned per_second);
/* Replaces the sink; NULL means standard error. */
void log_set_sink(log_sink_fn *fn, void *ctx);
/* Sets a sink that gets each event as one object with the names of PostgreSQL's jsonlog, at most
 * LOG_JSONLINE_MAX bytes with its newline; NULL for none. `alone`: the other sink gets nothing. */
void log_set_jsonlog(log_sink_fn *fn, void *ctx, bool alone);
/* True while there is such a sink. */
bool log_has_jsonlog(void);
/* Makes `ctx` the context of the lines that follow; NULL for none. Returns the one before. */
const struct log_context *log_use_context(const struct log_context *ctx);
/* True when a line of `level` would be written. */
bool log_is_on(enum log_level level);
/* log_at(level, fmt, ...): writes one event. errno is left alone. */
#define log_at(level, ...) log_put(LOG_HERE, level, NULL, NULL, __VA_ARGS__)
/* log_at_detail(level, detail, hint, fmt, ...): with a DETAIL and a HINT; NULL leaves that one out.
 */
#define log_at_detail(level, detail, hint, ...) log_put(LOG_HERE, level, detail, hint, __VA_ARGS__)
/* log_caused, log_caused_detail: the same for what a client can cause: no more lines per second
 * from one place in the source than log_client_limit says; the next one says how many were left
 * out. */
#define log_caused(level, ...) log_put_limited(LOG_HERE, level, NULL, NULL, __VA_ARGS__)
#define log_caused_detail(level, detail, hint, ...)                                                \
    log_put_limited(LOG_HERE, level, detail, hint, __VA_ARGS__)
/* log_err(level, err): writes `err` with its detail and hint. */
#define log_err(level, err) log_put_err(LOG_HERE, level, err)
/* What these macros call. */
COLD void log_put(const struct log_place *place, enum log_level level, const char *detail,
    const char *hint, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Writes as log_put does, limited by place. */
COLD void log_put_limited(const struct log_place *place, enum log_level level, const char *detail,
    const char *hint, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Writes an error with its detail and hint. */
COLD void log_put_err(const struct log_place *place, enum log_level level, const struct err *err);
/* "DEBUG1", "LOG", ... In lines all five debug levels are called DEBUG. */
const char *log_level_text(enum log_level level);
/* True when a message of `level` is to be sent to a client whose client_min_messages is
 * `client_min`: there LOG ranks between DEBUG1 and NOTICE, INFO always goes out. */
bool log_level_reaches_client(enum log_level level, enum log_level client_min);

/* Rate limit of one call site: at most `burst` lines per second, then counts what it swallows and
 * says so in the next line. A zeroed one follows log_client_limit. For what needs more than
 * log_caused: work before the line, or a limit of its own. Use:
 *     static struct log_limit lim;
 *     if (log_is_on(LVL_LOG) && log_limit_pass(&lim)) log_at(LVL_LOG, ...); */
struct log_limit {
    unsigned burst; /* 0: log_client_limit */
    unsigned in_window;
    unsigned swallowed;
    int64_t window_start_s;
};
/* True when the call site may log now; ask only when log_is_on. */
bool log_limit_pass(struct log_limit *lim);

#endif
