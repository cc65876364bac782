/* SPDX-License-Identifier: PostgreSQL
 * client_failed.c: a statement that a failed transaction refuses is named in the error, as
 * pgpool-II does it. Runs in: workers.
 *
 * The server knows only that its transaction has failed, so the text is kept from the moment it
 * arrives until it is refused. Only of simple queries, as there, and of one at a time: of a
 * pipeline nobody is told more than the server says. */
#include "config.h"

#include "base/mem.h"
#include "wire/batch.h"
#include "wire/errmsg.h"

#include "client_int.h"

static const char FAILED_STATE[] = "25P02";

/* The text of the Query that is all there is of `p`; p is NULL when it is not that. */
static struct slice lone_query(const char *p, const char *end)
{
    struct batch_msg m;

    if (!batch_next(&p, end, &m) || p != end || m.type != FE_QUERY || m.is_bad)
        return slice_of(NULL, 0);
    return m.sql;
}

void client_failed_note(char **refused, const char *p, const char *end)
{
    struct slice sql = lone_query(p, end);
    struct err err;

    mem_free(*refused);
    *refused = NULL;
    if (sql.p == NULL)
        return;
    errmsg_refuse_aborted(&err, sql);
    *refused = mem_strndup(err.detail, strlen(err.detail));
}

bool client_failed_tell(const char *refused, struct link *link, const struct errmsg *m)
{
    struct buf out = {0};

    if (refused == NULL || link->body_left > 0 || !slice_eq_str(m->sqlstate, FAILED_STATE) ||
        expect_head_is_ours(&link->expect) || expect_head(&link->expect) != OP_QUERY)
        return false;
    errmsg_put_detail(&out, m->whole, refused);
    link->ops->on_bytes(link->owner, link, out.data, out.len);
    buf_free(&out);
    return true;
}

bool client_failed_put(struct buf *out, const struct errmsg *m, struct slice sql)
{
    struct err err;

    if (sql.p == NULL || !slice_eq_str(m->sqlstate, FAILED_STATE))
        return false;
    errmsg_refuse_aborted(&err, sql);
    errmsg_put_detail(out, m->whole, err.detail);
    return true;
}
