/* SPDX-License-Identifier: PostgreSQL
 * console_int.h: what the console has of a client, as its files share it. Runs in: workers. */
#ifndef PGP_CONSOLE_CONSOLE_INT_H
#define PGP_CONSOLE_CONSOLE_INT_H

#include "admin/admin.h"
#include "admin/kill.h"
#include "base/list.h"
#include "session/client.h"
#include "session/answering.h"

struct console_wait; /* for what it has ordered: console_orders.c */
struct console_kill; /* that it wants, and about which the server is asked: console_kill.c */
struct sessions;
struct wire_reader;

enum console_right { CONSOLE_NOT_IN, CONSOLE_MAY_LOOK, CONSOLE_MAY_ALL };

/* Of a client; what of it is empty is given up behind each message. */
struct console {
    struct list objects; /* struct console_object */
    unsigned nobjects;
    struct console_wait *wait;
    struct console_kill *kill;
    uint8_t right; /* enum console_right: in the virtual database, at a place of reserved_admin */
    char tx;       /* there, as in ReadyForQuery */
};

/* ---- console_client.c ---- */

/* The client's, made when there is none. */
struct console *console_of(struct client *c);
/* Is it in the virtual database? */
bool console_is_alone(const struct client *c);
/* There: a command was run, or failed (both NULL): what becomes of the transaction, which is one by
 * name only. */
void console_note(struct client *c, const struct admin_cmd *cmd, struct admin_result *res);
bool console_ends_tx(const struct admin_cmd *cmd);
/* Puts the error of a command that failed. */
void console_put_failure(struct client *c, const struct err *err, struct buf *out);
/* Sends it; what follows of the sequence is skipped. */
enum local_verdict console_fail(struct client *c, const struct err *err);
/* Sends what is in `out`. */
enum local_verdict console_tell(struct client *c, struct buf *out);

/* ---- console_objects.c ---- */

/* A prepared statement of ours, or a portal of one, whose answer is made at the first Execute. */
struct console_object {
    struct list node;
    char what; /* 'S', 'P' */
    bool has_run;
    char *name;
    char *text; /* NULL: it is the server's, and `kill` */
    size_t len;
    struct admin_kill kill;
    struct admin_result result;
    struct admin_cursor cursor;
};

/* NULL: there is none. */
struct console_object *object_find(const struct client *c, char what, struct slice name);
/* `sql` may be without a text: see struct console_object. */
struct console_object *object_add(struct client *c, char what, struct slice name, struct slice sql,
    const struct admin_kill *kill);
bool object_has_room(struct client *c);
/* NULL is harmless. */
void object_forget(struct client *c, struct console_object *o);
void objects_forget_portals(struct client *c);
void objects_forget_all(struct client *c);
static inline struct slice object_sql(const struct console_object *o)
{
    return slice_of(o->text, o->len);
}

/* ---- console_commands.c ---- */

enum local_verdict console_query(struct client *c, struct slice sql);
enum local_verdict console_message(struct client *c, char type, struct slice body);

/* ---- console_sources.c ---- */

void console_sources(struct client *c, struct admin_sources *src);

/* ---- console_kill.c: pg_terminate_backend() and pg_cancel_backend() of a client's number ---- */

enum local_verdict kill_query(struct client *c, struct slice sql);
/* The server parses it, too: which process is meant is known with its Bind. */
void kill_parse(struct client *c, struct slice name, struct slice sql);
/* True when it is a client's number that is bound. */
bool kill_bind(
    struct client *c, const struct console_object *s, struct wire_reader *r, struct admin_kill *k);
enum local_verdict kill_execute(struct client *c, struct console_object *p);
/* For struct console_ops. */
void kill_question(struct client *c, struct buf *out);
void kill_row(struct client *c, struct slice body);
void kill_refused(struct client *c, const struct errmsg *m);
bool kill_judged(struct client *c, bool has_failed, struct err *why);
/* Nothing is asked for any more. */
void kill_free(struct console *console);

/* ---- console_orders.c ---- */

/* An admin_order_fn: carries out an order of client `ctx`. One that is not done at once parks the
 * client; its command is run again every now and then until it is done. */
enum admin_order_state orders_run(void *ctx, const struct admin_order *order, struct err *err);
/* For struct console_ops. */
bool orders_wait_cancel(struct client *c);
/* The client waits no more: a PAUSE that was not complete is taken back. */
void orders_wait_end(struct client *c);

/* ---- console_alone.c: the virtual database ---- */

/* For struct console_ops. */
int alone_enter(
    struct client *c, bool may_all, struct slice application, struct buf *out, struct err *err);
enum feed_step alone_message(struct client *c, char type, struct slice body, bool is_whole);
char alone_tx_status(const struct client *c);
/* Prepares a command: who may only look sees all, too. 0; or -1: it may not run now. */
int alone_prepare(const struct client *c, const struct admin_cmd *cmd, struct admin_sources *src,
    struct err *err);
void alone_leave(struct client *c);

#endif
