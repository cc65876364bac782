/* SPDX-License-Identifier: PostgreSQL
 * web_json.h: writing JSON. Runs in: web. */
#ifndef PGP_PROCESS_WEB_JSON_H
#define PGP_PROCESS_WEB_JSON_H

#include "base/buf.h"

#define WEB_TYPE_JSON "application/json; charset=utf-8"

/* Writes one value after the other; commas are put where they belong. */
struct web_json {
    struct buf *out;
    bool needs_comma;
};

/* How long the UTF-8 character at `p` is, of `n` bytes, at least one; 0: it is none. */
size_t web_utf8_len(const unsigned char *p, size_t n);

void web_json_open(struct web_json *j, char bracket);  /* { or [ */
void web_json_close(struct web_json *j, char bracket); /* } or ] */
/* The name of the next value of an object. */
void web_json_key(struct web_json *j, const char *name);
/* Bytes that are not UTF-8 become U+FFFD. */
void web_json_text(struct web_json *j, struct slice text);
void web_json_int(struct web_json *j, int64_t v);
void web_json_bool(struct web_json *j, bool v);
/* Text that is JSON already. */
void web_json_raw(struct web_json *j, struct slice text);
/* key and text */
void web_json_member(struct web_json *j, const char *name, const char *text);

#endif
