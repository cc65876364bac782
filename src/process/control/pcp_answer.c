/* SPDX-License-Identifier: PostgreSQL
 * pcp_answer.c: what goes back to an administrator, and the end of his connection. Runs in:
 * control.
 */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"

#include "control_int.h"

#define END_LIMIT_MS 5000

void pcp_conn_close(struct pcp_conn *c)
{
    struct control *ctl = c->ctl;

    if (c->state == PCP_STATE_CLOSED)
        return;
    pcp_order_end(c);
    c->state = PCP_STATE_CLOSED;
    timer_stop(&ctl->role.loop, &c->limit);
    timer_stop(&ctl->role.loop, &c->poll);
    list_remove(&c->node);
    if (c->is_logged_in && conf_of(role_loop_gen(&ctl->role))->log_pcp_processes)
        log_at(LVL_LOG, "PCP connection of user \"%s\" from %s is closed", c->user, c->peer);
    if (c->in.data != NULL)
        mem_wipe(c->in.data, c->in.len);
    buf_free(&c->in);
    scram_server_fini(&c->scram);
    stream_close(&c->stream);
}

/* Closes when everything is sent. */
void pcp_conn_end(struct pcp_conn *c)
{
    if (!stream_is_clogged(&c->stream)) {
        pcp_conn_close(c);
        return;
    }
    c->state = PCP_STATE_ENDING;
    stream_pause(&c->stream);
    timer_start(&c->ctl->role.loop, &c->limit, END_LIMIT_MS);
}

void pcp_conn_send(struct pcp_conn *c, const struct buf *out)
{
    /* A broken connection is found by the reader. */
    (void)stream_send(&c->stream, buf_slice(out).p, buf_unread(out));
}

void pcp_conn_refuse(struct pcp_conn *c, const struct err *err, bool fatal)
{
    struct buf out = {0};

    /* Strangers can cause it, so it is limited; a command's error is the operator's to see. */
    if (fatal)
        log_caused_detail(LVL_FATAL, err->detail[0] == '\0' ? NULL : err->detail,
            err->hint[0] == '\0' ? NULL : err->hint, "%s", err->msg);
    else if (log_is_on(LVL_DEBUG1))
        log_err(LVL_DEBUG1, err);
    pcp_put_err(&out, PCP_ANSWER_ERROR, fatal ? "FATAL" : "ERROR", err);
    pcp_conn_send(c, &out);
    buf_free(&out);
    if (fatal)
        pcp_conn_end(c);
}
