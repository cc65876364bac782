/* SPDX-License-Identifier: PostgreSQL
 * cache_far_list.c: which memcached servers the settings name. Runs in: the supervisor. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "config/conf.h"

#include "cache_int.h"

/* The place that stands between `p` and `end`. */
static void list_one(const char *p, const char *end, int port, struct cache_far_server *out)
{
    const char *colon = *p == '/' ? NULL : memrchr(p, ':', (size_t)(end - p));
    size_t n = (size_t)((colon == NULL ? end : colon) - p);

    if (n >= sizeof out->host)
        n = sizeof out->host - 1;
    memcpy(out->host, p, n);
    out->host[n] = '\0';
    out->port = *p == '/' ? 0 : colon == NULL ? port : (int)strtol(colon + 1, NULL, 10);
}

void cache_far_list(const struct conf *conf, struct cache_far_state *out)
{
    const char *p = conf->memqcache_memcached_host;

    out->nservers = 0;
    while (*p != '\0' && out->nservers < CACHE_FAR_SERVERS) {
        const char *next = p + strcspn(p, ",");
        const char *end = next;

        p += strspn(p, " \t");
        while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        if (end > p)
            list_one(p, end, conf->memqcache_memcached_port, &out->server[out->nservers++]);
        p = next + (*next == ',');
    }
}
