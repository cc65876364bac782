/* SPDX-License-Identifier: PostgreSQL
 * wd_json.h: the JSON in which the watchdog is asked and answers: by PCP and over its command
 * socket. Runs in: watchdog, control, wd_cli. Pure. Reading allocates nothing: values are slices of
 * the text. Whatever is not well-formed is not there. */
#ifndef PGP_CLUSTER_WD_JSON_H
#define PGP_CLUSTER_WD_JSON_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "cluster/wd_share.h"

/* The value of `key` in the object `text`, as it is written there. */
bool wd_json_find(struct slice text, const char *key, struct slice *value);
/* A string without its quotes and escapes, as much of it as fits; what is no ASCII and escaped
 * becomes '?'. */
bool wd_json_text(struct slice text, const char *key, char *out, size_t room);
bool wd_json_int(struct slice text, const char *key, int *out);
/* The next element of an array: starts with *rest as wd_json_find found it. */
bool wd_json_next(struct slice *rest, struct slice *element);

/* Appends "key":"text" with what needs an escape escaped. */
void wd_json_put_text(struct buf *out, const char *key, const char *text);
/* Appends the object of one member, as pgpool-II names its fields. */
void wd_json_put_member(const struct wd_share *s, int member, struct buf *out);

#endif
