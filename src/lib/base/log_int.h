/* SPDX-License-Identifier: PostgreSQL
 * log_int.h: what the files of the log share: an event, and its forms. */
#ifndef PGP_BASE_LOG_INT_H
#define PGP_BASE_LOG_INT_H

#include <stddef.h>

#include "base/log.h"

struct buf;

#define LOG_JSON_TEXT_MAX 32768 /* bytes of a message, as written */

/* What one event says; strings but `text` may be NULL. */
struct log_event {
    enum log_level level;
    const struct log_place *place;
    const char *label; /* of the level; log_put_jsonlog needs it */
    const char *sqlstate;
    const char *text;
    const char *detail;
    const char *hint;
};

/* Who says it. */
struct log_process {
    int pid;
    unsigned long line_no;
    const char *role;
    const char *title;
    unsigned swallowed;
    bool is_verbose;
};

/* Appends `s` in its quotes, no more than `max` bytes between them. What is longer ends in "...",
 * control characters are escaped, and what is not UTF-8 becomes U+FFFD. */
void log_put_json_string(struct buf *out, const char *s, size_t max);
/* Appends the event as one line of jsonlog; `c` may be NULL. */
void log_put_jsonlog(struct buf *out, const struct log_process *process,
    const struct log_context *c, const struct log_event *e);

#endif
