/* SPDX-License-Identifier: PostgreSQL
 * web_answer.c: what all who answer need: where SHOW gets its facts from, and plain answers.
 * Runs in: web. */
#include "config.h"

#include <string.h>

#include "admin/admin_view.h"
#include "console/console.h"
#include "session/session.h"
#include "sys/clock.h"

#include "web_int.h"

void web_answer_text(struct web_answer *a, unsigned status, const char *text)
{
    a->status = status;
    a->type = WEB_TYPE_TEXT;
    buf_clear(&a->body);
    buf_put(&a->body, text, strlen(text));
}

static void fill_node(void *ctx, int id, struct admin_node *out)
{
    struct web *w = ctx;

    admin_node_of_view(&w->view, id, out);
    if (id >= 0 && id < w->view.nnodes)
        console_node_counts(w->role.env->shm, id, &out->counts);
}

void web_sources(struct web *w, struct admin_sources *src)
{
    const struct proc_env *env = w->role.env;

    (void)view_refresh(env->shm, &w->view);
    memset(src, 0, sizeof *src);
    src->gen = role_loop_gen(&w->role);
    src->shm = env->shm;
    src->first_worker_slot = env->first_worker_slot;
    src->now_us = clock_wall_us();
    src->is_operator = true;
    src->balance_node = VIEW_NO_NODE;
    src->node = fill_node;
    src->node_ctx = w;
}
