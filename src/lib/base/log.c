/* SPDX-License-Identifier: PostgreSQL
 * log.c: makes log events and hands them to the sink.
 * Runs in: every process. The state is file-static because an assertion anywhere must be able to
 * log; there is one log per process. Not used from signal handlers. */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"

#include "log_int.h"

#define PREFIX_MAX_BYTES  256
#define LINE_KEEP_BYTES   16384 /* a larger line buffer is given back after use */
#define NOT_A_SESSION     "[No Connection]"
#define NSEC_PER_MSEC     1000000L
#define PREFIX_DEFAULT    "%m: %a pid %p: "
#define PADDING_MAX_CHARS 200
#define PLACES            64 /* in the source that count what they write; two may share one */

struct log_state {
    enum log_level min_level;
    int verbosity;
    bool json;
    unsigned client_limit; /* lines per second, 0: none */
    char prefix[PREFIX_MAX_BYTES];
    const char *role_name;
    const char *process_title;
    const struct log_context *context;
    log_sink_fn *sink;
    void *sink_ctx;
    log_sink_fn *jsonlog; /* NULL: nobody wants it */
    void *jsonlog_ctx;
    bool jsonlog_alone;
    unsigned long line_no;
    unsigned swallowed; /* to be told by the next event */
    pid_t pid;
    struct log_limit places[PLACES];
    struct buf line;
};

static struct log_state state = {
    .min_level = LVL_WARNING,
    .verbosity = LOG_DEFAULT,
    .client_limit = 100,
    .prefix = PREFIX_DEFAULT,
    .role_name = "main",
    .process_title = "pgpool",
};

static const char *const level_names[] = {"DEBUG5", "DEBUG4", "DEBUG3", "DEBUG2", "DEBUG1", "INFO",
    "NOTICE", "WARNING", "ERROR", "LOG", "FATAL", "PANIC"};

const char *log_level_text(enum log_level level)
{
    return level_names[level];
}

bool log_is_on(enum log_level level)
{
    const struct log_context *c = state.context;

    return level >= (c != NULL && c->has_levels ? c->min_level : state.min_level);
}

static int verbosity_now(void)
{
    const struct log_context *c = state.context;

    return c != NULL && c->has_levels ? (int)c->verbosity : state.verbosity;
}

bool log_level_reaches_client(enum log_level level, enum log_level client_min)
{
    int rank = (int)level * 2;
    int min = (int)client_min * 2;

    if (level == LVL_INFO)
        return true;
    if (level == LVL_LOG)
        rank = (int)LVL_DEBUG1 * 2 + 1;
    if (client_min == LVL_LOG)
        min = (int)LVL_DEBUG1 * 2 + 1;
    return rank >= min;
}

void log_set_process(const char *role_name, const char *process_title)
{
    state.role_name = role_name;
    state.process_title = process_title;
    state.pid = getpid();
    state.line_no = 0;
    state.context = NULL;
}

void log_configure(const char *line_prefix, enum log_level min_level, int verbosity)
{
    snprintf(state.prefix, sizeof state.prefix, "%s", line_prefix);
    state.min_level = min_level;
    state.verbosity = verbosity;
}

void log_set_json(bool on)
{
    state.json = on;
}

void log_set_client_limit(unsigned per_second)
{
    state.client_limit = per_second;
}

void log_set_sink(log_sink_fn *fn, void *ctx)
{
    state.sink = fn;
    state.sink_ctx = ctx;
}

void log_set_jsonlog(log_sink_fn *fn, void *ctx, bool alone)
{
    state.jsonlog = fn;
    state.jsonlog_ctx = ctx;
    state.jsonlog_alone = fn != NULL && alone;
}

bool log_has_jsonlog(void)
{
    return state.jsonlog != NULL;
}

const struct log_context *log_use_context(const struct log_context *ctx)
{
    const struct log_context *before = state.context;

    state.context = ctx;
    return before;
}

/* Appends `s` with control characters as escapes: one event stays one line whatever a client sent.
 */
static void put_escaped(struct buf *out, const char *s)
{
    const char *plain = s;

    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;

        if ((c >= 0x20 && c != 0x7f) || c == '\t')
            continue;
        buf_put(out, plain, (size_t)(s - plain));
        plain = s + 1;
        if (c == '\n')
            buf_put(out, "\\n", 2);
        else if (c == '\r')
            buf_put(out, "\\r", 2);
        else
            buf_printf(out, "\\x%02x", c);
    }
    buf_put(out, plain, (size_t)(s - plain));
}

static void put_padded(struct buf *out, const char *text, int padding)
{
    size_t len = strlen(text);
    size_t width = (size_t)(padding < 0 ? -padding : padding);
    size_t fill = width > len ? width - len : 0;

    if (padding > 0 && fill > 0)
        buf_printf(out, "%*s", (int)fill, "");
    put_escaped(out, text);
    if (padding < 0 && fill > 0)
        buf_printf(out, "%*s", (int)fill, "");
}

static void format_time(char *text, size_t size, bool with_ms)
{
    struct timespec now;
    struct tm tm;
    size_t n;

    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    n = strftime(text, size, "%Y-%m-%d %H:%M:%S", &tm);
    if (with_ms)
        snprintf(text + n, size - n, ".%03d", (int)(now.tv_nsec / NSEC_PER_MSEC));
}

static const char *text_or(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

/* The value of one escape; `text` is room for values that have to be made. NULL: unknown escape. */
static const char *escape_value(char escape, char *text, size_t size)
{
    static const struct log_context nobody;
    const struct log_context *c = state.context != NULL ? state.context : &nobody;

    switch (escape) {
    case 'a':
        return text_or(c->app_name, state.role_name);
    case 'u':
        return text_or(c->user, NOT_A_SESSION);
    case 'd':
        return text_or(c->database, NOT_A_SESSION);
    case 'h':
        return text_or(c->host, NOT_A_SESSION);
    case 'r':
        if (c->host == NULL || c->port == 0)
            return text_or(c->host, NOT_A_SESSION);
        snprintf(text, size, "%s(%d)", c->host, c->port);
        return text;
    case 'P':
        return state.process_title;
    case 'p':
        snprintf(text, size, "%d", (int)state.pid);
        return text;
    case 'l':
        snprintf(text, size, "%lu", state.line_no);
        return text;
    case 't':
    case 'm':
        format_time(text, size, escape == 'm');
        return text;
    default:
        return NULL;
    }
}

/* Reads "-10" of "%-10u"; leaves *pp at the escape letter. */
static int read_padding(const char **pp)
{
    const char *p = *pp;
    bool left = false;
    int n = 0;

    if (*p == '-') {
        left = true;
        p++;
    }
    for (; *p >= '0' && *p <= '9'; p++)
        n = n * 10 + (*p - '0') > PADDING_MAX_CHARS ? PADDING_MAX_CHARS : n * 10 + (*p - '0');
    *pp = p;
    return left ? -n : n;
}

static void put_prefix(struct buf *out)
{
    const char *p;

    for (p = state.prefix; *p != '\0'; p++) {
        char text[64];
        const char *value;
        int padding;

        if (*p != '%') {
            buf_put_byte(out, *p);
            continue;
        }
        p++;
        if (*p == '%') {
            buf_put_byte(out, '%');
            continue;
        }
        padding = read_padding(&p);
        if (*p == '\0')
            break;
        value = escape_value(*p, text, sizeof text);
        if (value != NULL) /* an unknown escape is left out, as PostgreSQL does */
            put_padded(out, value, padding);
    }
}

static void put_line(struct buf *out, const char *label, const char *sqlstate, const char *text)
{
    put_prefix(out);
    buf_put(out, label, strlen(label));
    buf_put(out, ":  ", 3);
    if (sqlstate != NULL)
        buf_printf(out, "%s: ", sqlstate);
    put_escaped(out, text);
}

static void write_stderr(const char *text, unsigned len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, text, len);

        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* there is nobody left to tell */
        text += n;
        len -= (unsigned)n;
    }
}

static const char *label_of(enum log_level level)
{
    return level <= LVL_DEBUG1 ? "DEBUG" : level_names[level];
}

static bool has_text(const char *s)
{
    return s != NULL && *s != '\0';
}

static const char *sqlstate_of(const struct log_event *e)
{
    if (has_text(e->sqlstate))
        return e->sqlstate;
    return e->level >= LVL_ERROR && e->level != LVL_LOG ? "XX000" : "00000";
}

/* Without the folders, which say where it was compiled. */
static const char *file_of(const struct log_place *place)
{
    const char *slash = strrchr(place->file, '/');

    return slash == NULL ? place->file : slash + 1;
}

static void put_as_text(struct buf *out, const struct log_event *e)
{
    bool verbose = verbosity_now() == LOG_VERBOSE;

    put_line(out, label_of(e->level), verbose ? sqlstate_of(e) : NULL, e->text);
    if (state.swallowed > 0)
        buf_printf(out, " (%u similar messages suppressed)", state.swallowed);
    buf_put_byte(out, '\n');
    if (has_text(e->detail)) {
        put_line(out, "DETAIL", NULL, e->detail);
        buf_put_byte(out, '\n');
    }
    if (has_text(e->hint)) {
        put_line(out, "HINT", NULL, e->hint);
        buf_put_byte(out, '\n');
    }
    if (verbose) {
        put_line(out, "LOCATION", NULL, e->place->function);
        buf_printf(out, ", %s:%d\n", file_of(e->place), e->place->line);
    }
}

static void put_json_member(struct buf *out, const char *name, const char *value)
{
    if (!has_text(value))
        return;
    buf_printf(out, ",\"%s\":", name);
    log_put_json_string(out, value, SIZE_MAX);
}

static void put_as_json(struct buf *out, const struct log_event *e)
{
    const struct log_context *c = state.context;
    char time_text[64];

    format_time(time_text, sizeof time_text, true);
    buf_printf(out, "{\"timestamp\":\"%s\",\"pid\":%d,\"line_num\":%lu", time_text, (int)state.pid,
        state.line_no);
    put_json_member(out, "process", state.role_name);
    put_json_member(out, "level", label_of(e->level));
    put_json_member(out, "application", c == NULL ? NULL : c->app_name);
    put_json_member(out, "user", c == NULL ? NULL : c->user);
    put_json_member(out, "database", c == NULL ? NULL : c->database);
    put_json_member(out, "remote_host", c == NULL ? NULL : c->host);
    if (c != NULL && c->host != NULL && c->port != 0)
        buf_printf(out, ",\"remote_port\":%d", c->port);
    put_json_member(out, "sqlstate", e->sqlstate);
    put_json_member(out, "message", e->text);
    put_json_member(out, "detail", e->detail);
    put_json_member(out, "hint", e->hint);
    if (verbosity_now() == LOG_VERBOSE) {
        put_json_member(out, "func_name", e->place->function);
        put_json_member(out, "file_name", file_of(e->place));
        buf_printf(out, ",\"file_line_num\":%d", e->place->line);
    }
    if (state.swallowed > 0)
        buf_printf(out, ",\"suppressed\":%u", state.swallowed);
    buf_put(out, "}\n", 2);
}

static void write_jsonlog(const struct log_event *e)
{
    struct log_process process = {.pid = (int)state.pid,
        .line_no = state.line_no,
        .role = state.role_name,
        .title = state.process_title,
        .swallowed = state.swallowed,
        .is_verbose = verbosity_now() == LOG_VERBOSE};
    struct log_event whole = *e;
    struct buf *out = &state.line;

    whole.label = label_of(e->level);
    whole.sqlstate = sqlstate_of(e);
    buf_clear(out);
    log_put_jsonlog(out, &process, state.context, &whole);
    state.jsonlog(e->level, out->data, out->len, state.jsonlog_ctx);
}

static void write_event(const struct log_event *e)
{
    struct buf *out = &state.line;

    buf_clear(out);
    if (state.json)
        put_as_json(out, e);
    else
        put_as_text(out, e);
    if (state.sink != NULL)
        state.sink(e->level, out->data, out->len, state.sink_ctx);
    else
        write_stderr(out->data, out->len);
}

static void emit(struct log_event e)
{
    struct buf *out = &state.line;
    int saved_errno = errno;

    if (state.pid == 0)
        state.pid = getpid();
    if (verbosity_now() == LOG_TERSE) {
        e.detail = NULL;
        e.hint = NULL;
    }
    state.line_no++;
    if (state.jsonlog != NULL)
        write_jsonlog(&e);
    if (!state.jsonlog_alone)
        write_event(&e);
    state.swallowed = 0;
    if (out->cap > LINE_KEEP_BYTES)
        buf_free(out);
    errno = saved_errno;
}

/* Formats and writes; long texts are formatted a second time into a buffer. */
static void emit_formatted(struct log_event e, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

static void emit_formatted(struct log_event e, const char *fmt, va_list ap)
{
    char text[1024];
    struct buf big = {0};
    va_list again;
    int n;

    e.text = text;
    va_copy(again, ap);
    n = vsnprintf(text, sizeof text, fmt, ap);
    if (n < 0 || (size_t)n >= sizeof text) {
        buf_vprintf(&big, fmt, again);
        buf_put_byte(&big, '\0');
        e.text = big.data;
    }
    emit(e);
    buf_free(&big);
    va_end(again);
}

void log_put(const struct log_place *place, enum log_level level, const char *detail,
    const char *hint, const char *fmt, ...)
{
    va_list ap;

    if (!log_is_on(level))
        return;
    va_start(ap, fmt);
    emit_formatted(
        (struct log_event){.level = level, .place = place, .detail = detail, .hint = hint}, fmt,
        ap);
    va_end(ap);
}

static struct log_limit *limit_of_place(const struct log_place *place)
{
    uintptr_t h = (uintptr_t)place->file / 8 + (uintptr_t)place->line * 31;

    return &state.places[h % PLACES];
}

void log_put_limited(const struct log_place *place, enum log_level level, const char *detail,
    const char *hint, const char *fmt, ...)
{
    va_list ap;

    if (!log_is_on(level) || !log_limit_pass(limit_of_place(place)))
        return;
    va_start(ap, fmt);
    emit_formatted(
        (struct log_event){.level = level, .place = place, .detail = detail, .hint = hint}, fmt,
        ap);
    va_end(ap);
}

void log_put_err(const struct log_place *place, enum log_level level, const struct err *err)
{
    if (!log_is_on(level))
        return;
    emit((struct log_event){.level = level,
        .place = place,
        .sqlstate = err->sqlstate,
        .text = err->msg,
        .detail = err->detail,
        .hint = err->hint});
}

bool log_limit_pass(struct log_limit *lim)
{
    unsigned burst = lim->burst > 0 ? lim->burst : state.client_limit;
    struct timespec now;

    if (burst == 0)
        return true;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec != lim->window_start_s) {
        lim->window_start_s = now.tv_sec;
        lim->in_window = 0;
    }
    if (lim->in_window >= burst) {
        lim->swallowed++;
        return false;
    }
    lim->in_window++;
    state.swallowed = lim->swallowed;
    lim->swallowed = 0;
    return true;
}
