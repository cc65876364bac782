/* SPDX-License-Identifier: PostgreSQL
 * web_route.c: which request is answered by which function, and who may ask.
 * Runs in: web. Who may ask what stands in one table, and nothing is done before that was looked
 * up. */
#include "config.h"

#include <string.h>

#include "admin/admin_view.h"
#include "session/session.h"
#include "sys/clock.h"

#include "web_login.h"
#include "web_metrics.h"

#define STATUS_NOT_FOUND  404
#define STATUS_BAD_METHOD 405

static const struct route {
    const char *method;
    const char *path;
    enum web_right right;
    web_page_fn *page;
} routes[] = {
    {"GET", "/livez", WEB_FOR_ANYONE, web_probe_live},
    {"GET", "/readyz", WEB_FOR_ANYONE, web_probe_ready},
    {"GET", "/primary", WEB_FOR_ANYONE, web_probe_primary},
    {"GET", "/replica", WEB_FOR_ANYONE, web_probe_replica},
    {"GET", "/leader", WEB_FOR_ANYONE, web_probe_leader},
    {"GET", "/metrics", WEB_FOR_SCRAPERS, web_metrics_page},
};

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
        session_node_counts(w->role.env->shm, id, &out->counts);
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

void web_route(const struct web_request *r, struct web_answer *a)
{
    struct web_who who;
    bool is_path = false;
    size_t i;

    for (i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (strcmp(r->path, routes[i].path) != 0)
            continue;
        is_path = true;
        if (strcmp(r->method, routes[i].method) == 0) {
            if (web_login_may(r, routes[i].right, a, &who))
                routes[i].page(r, a);
            return;
        }
    }
    if (is_path)
        web_answer_text(a, STATUS_BAD_METHOD, "this is not asked for in this way\n");
    else
        web_answer_text(a, STATUS_NOT_FOUND, "there is nothing here\n");
}
