/* SPDX-License-Identifier: PostgreSQL
 * changes.h: what a logical replication stream with the plug-in test_decoding says.
 * Runs in: the invalidator. Pure: views into the bytes it is given. Why this plug-in and not
 * pgoutput: decisions/0020. */
#ifndef PGP_CHANGES_CHANGES_H
#define PGP_CHANGES_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* --- what comes in a CopyData message --- */

enum stream_kind {
    STREAM_DATA,  /* one event of the plug-in: see change_read */
    STREAM_ALIVE, /* the server lives, and has come this far */
    STREAM_BAD    /* no message of a stream, or one cut short */
};
struct stream_msg {
    enum stream_kind kind;
    uint64_t lsn;      /* DATA: where the event stands, of a COMMIT its end; ALIVE: how far */
    bool wants_answer; /* ALIVE */
    struct slice text; /* DATA */
};
/* Reads the content of one CopyData message. */
void stream_read(struct slice body, struct stream_msg *out);

#define STREAM_REPLY_BYTES 34
/* Writes what the server is told in return: everything up to `lsn` was dealt with; with
 * `asks_back` it answers at once how far it is. `now_us`: wall clock. */
void stream_reply(char out[STREAM_REPLY_BYTES], uint64_t lsn, int64_t now_us, bool asks_back);

/* --- what an event says --- */

enum change_kind {
    CHANGE_BEGIN,
    CHANGE_COMMIT,
    CHANGE_INSERT,
    CHANGE_UPDATE,
    CHANGE_DELETE,
    CHANGE_TRUNCATE,
    CHANGE_MESSAGE, /* of pg_logical_emit_message: nothing to do with tables */
    CHANGE_BAD      /* not understood */
};
struct change {
    enum change_kind kind;
    uint32_t xid;        /* BEGIN, COMMIT */
    int64_t commit_us;   /* COMMIT: when, wall clock of the server; 0: not told */
    struct slice tables; /* the table, of a TRUNCATE all of them: see change_next_table */
    bool has_old;        /* UPDATE, DELETE: columns of the old row are told */
    bool has_new;        /* INSERT, UPDATE: those of the new one are */
    struct slice old_row;
    struct slice new_row;
};
/* Reads one event. */
void change_read(struct slice text, struct change *out);

/* Takes the next table from the front of *tables: its qualified name, quoted where it has to be, as
 * quote_ident() does it. False at the end, or when what is left is no name. */
bool change_next_table(struct slice *tables, struct slice *name);

struct change_column {
    struct slice name; /* quoted where it has to be */
    struct slice type; /* as format_type() says */
    bool is_null;
    bool is_unchanged; /* a long value that stayed and is not told */
    bool is_quoted;    /* `value` is what stands between quotes: '' is one quote */
    struct slice value;
};
enum change_next { CHANGE_COLUMN, CHANGE_END, CHANGE_BROKEN };
/* Takes the next column from the front of *row. */
enum change_next change_next_column(struct slice *row, struct change_column *out);
/* Length of a quoted value without its doubled quotes, which are taken out on the way to `out`;
 * there is room for value.n bytes. */
size_t change_unquote(struct slice value, char *out);

#endif
