/* SPDX-License-Identifier: PostgreSQL
 * cache_expire.c: how long results may be kept, by their tables.
 * Runs in: workers. */
#include "config.h"

#include "cache/cache_expire.h"

#include <regex.h>
#include <string.h>

#include "base/mem.h"
#include "config/conf.h"
#include "config/conf_pattern.h"

/* Two names of up to 63 bytes and a dot. */
#define NAME_BYTES 128

struct expiry {
    regex_t re;
    int64_t seconds;
};

struct cache_expire {
    int64_t preset_s;
    int n;
    struct expiry list[];
};

struct cache_expire *cache_expire_new(const struct conf *conf, struct err *err)
{
    const struct conf_list *list = &conf->memqcache_expire_list;
    struct cache_expire *e = mem_alloc_zero(sizeof *e + (size_t)list->n * sizeof(struct expiry));
    struct conf_expiry item;

    e->preset_s = conf->memqcache_expire_ms / 1000;
    for (; e->n < list->n; e->n++) {
        if (conf_expiry_parse(list->item[e->n], &item, err) == -1 ||
            conf_pattern_compile(&e->list[e->n].re, item.name, err) == -1) {
            cache_expire_free(&e);
            return NULL;
        }
        e->list[e->n].seconds = item.seconds;
    }
    return e;
}

void cache_expire_free(struct cache_expire **ep)
{
    struct cache_expire *e = *ep;

    if (e == NULL)
        return;
    while (e->n > 0)
        regfree(&e->list[--e->n].re);
    mem_free(e);
    *ep = NULL;
}

static int64_t expire_of_one(const struct cache_expire *e, struct slice table)
{
    char name[NAME_BYTES];
    const char *bare;
    int i;

    if (table.n >= sizeof name)
        return e->preset_s;
    memcpy(name, table.p, table.n);
    name[table.n] = '\0';
    bare = strchr(name, '.') == NULL ? name : strchr(name, '.') + 1;
    for (i = 0; i < e->n; i++)
        if (regexec(&e->list[i].re, name, 0, NULL, 0) == 0 ||
            regexec(&e->list[i].re, bare, 0, NULL, 0) == 0)
            return e->list[i].seconds;
    return e->preset_s;
}

int64_t cache_expire_of(const struct cache_expire *e, const struct slice *tables, size_t n)
{
    int64_t least = 0;
    size_t i;

    if (n == 0)
        return e->preset_s;
    for (i = 0; i < n; i++) {
        int64_t s = e->n == 0 ? e->preset_s : expire_of_one(e, tables[i]);

        if (s > 0 && (least == 0 || s < least))
            least = s;
    }
    return least;
}
