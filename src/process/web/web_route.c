/* SPDX-License-Identifier: PostgreSQL
 * web_route.c: which request is answered by which function, and who may ask.
 * Runs in: web. Who may ask what stands in one table, and nothing is done before that was looked
 * up. */
#include "config.h"

#include <string.h>

#include "web_action.h"
#include "web_api.h"
#include "web_login.h"
#include "web_metrics.h"
#include "web_page.h"
#include "web_ring.h"

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
    {"GET", "/api/v1/health", WEB_FOR_VIEWERS, web_api_health},
    {"GET", "/api/v1/settings", WEB_FOR_VIEWERS, web_api_settings},
    {"GET", "/api/v1/log", WEB_FOR_VIEWERS, web_log_page},
    {"GET", "/api/v1/history", WEB_FOR_VIEWERS, web_ring_page},
    {"GET", "/api/v1/session", WEB_FOR_ANYONE, web_session_page},
    {"POST", "/api/v1/login", WEB_FOR_ANYONE, web_login_page},
    {"POST", "/api/v1/logout", WEB_FOR_SESSIONS, web_logout_page},
    {"POST", "/api/v1/do/*", WEB_FOR_OPERATORS, web_action_page},
    {"GET", "/api/v1/", WEB_FOR_VIEWERS, web_api_index},
    {"GET", "/api/v1/*", WEB_FOR_VIEWERS, web_api_report},
    {"GET", "/*", WEB_FOR_ANYONE, web_page_static},
};

/* A * at the end of a path stands for anything. */
static bool fits(const char *pattern, const char *path)
{
    size_t n = strlen(pattern);

    return n > 0 && pattern[n - 1] == '*' ? strncmp(pattern, path, n - 1) == 0
                                          : strcmp(pattern, path) == 0;
}

void web_route(struct web_request *r, struct web_answer *a)
{
    struct web_who who;
    bool is_path = false;
    bool may;
    size_t i;

    for (i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!fits(routes[i].path, r->path))
            continue;
        is_path = true;
        if (strcmp(r->method, routes[i].method) != 0)
            continue;
        r->who = &who;
        may = web_login_may(r, routes[i].right, a, &who);
        r->is_known = who.user[0] != '\0';
        if (may)
            routes[i].page(r, a);
        return;
    }
    if (is_path)
        web_answer_text(a, STATUS_BAD_METHOD, "this is not asked for in this way\n");
    else
        web_answer_text(a, STATUS_NOT_FOUND, "there is nothing here\n");
}
