/* SPDX-License-Identifier: PostgreSQL
 * doubt.c: names of prepared transactions, lines of decisions, what follows from both; the region
 * DOUBT. Runs in: workers, control, all that show. Touches no file. */
#include "config.h"

#include "cluster/doubt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/doubt_log.h"

#define GID_PREFIX "pgpool_"
#define LINE_WORD  "commit "

void doubt_gid_format(const struct doubt_gid *gid, char out[DOUBT_GID_BYTES])
{
    snprintf(out, DOUBT_GID_BYTES,
        GID_PREFIX "%016" PRIx64 "_%016" PRIx64 "_%08" PRIx32 "_%08" PRIx32 "_%016" PRIx64,
        gid->owner.instance, gid->owner.run, gid->owner.slot, gid->owner.pid, gid->number);
}

/* Exactly `digits` of them, small letters. */
static bool take_hex(struct slice *s, unsigned digits, uint64_t *out)
{
    *out = 0;
    if (s->n < digits)
        return false;
    for (unsigned i = 0; i < digits; i++) {
        char c = s->p[i];

        if (c >= '0' && c <= '9')
            *out = *out << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *out = *out << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *s = slice_of(s->p + digits, s->n - digits);
    return true;
}

static bool take_text(struct slice *s, const char *text)
{
    size_t n = strlen(text);

    if (s->n < n || memcmp(s->p, text, n) != 0)
        return false;
    *s = slice_of(s->p + n, s->n - n);
    return true;
}

bool doubt_gid_parse(struct slice text, struct doubt_gid *out)
{
    uint64_t slot;
    uint64_t pid;

    if (!take_text(&text, GID_PREFIX) || !take_hex(&text, 16, &out->owner.instance) ||
        !take_text(&text, "_") || !take_hex(&text, 16, &out->owner.run) || !take_text(&text, "_") ||
        !take_hex(&text, 8, &slot) || !take_text(&text, "_") || !take_hex(&text, 8, &pid) ||
        !take_text(&text, "_") || !take_hex(&text, 16, &out->number))
        return false;
    out->owner.slot = (uint32_t)slot;
    out->owner.pid = (uint32_t)pid;
    return text.n == 0;
}

/* ---- lines ---- */

void doubt_line_put(const char *gid, uint64_t nodes, struct buf *out)
{
    uint32_t start = out->len;

    buf_printf(out, LINE_WORD "%s %016" PRIx64, gid, nodes);
    buf_printf(out, " %016" PRIx64 "\n", hash_bytes(out->data + start, out->len - start, 0));
}

static bool parse_line(struct slice line, struct slice *gid, uint64_t *nodes)
{
    struct slice rest = line;
    struct doubt_gid parsed;
    const char *space;
    uint64_t sum;
    size_t summed;

    if (!take_text(&rest, LINE_WORD))
        return false;
    space = memchr(rest.p, ' ', rest.n);
    if (space == NULL)
        return false;
    *gid = slice_of(rest.p, (size_t)(space - rest.p));
    rest = slice_of(space + 1, rest.n - gid->n - 1);
    if (!take_hex(&rest, 16, nodes))
        return false;
    summed = line.n - rest.n;
    return take_text(&rest, " ") && take_hex(&rest, 16, &sum) && rest.n == 0 &&
           sum == hash_bytes(line.p, summed, 0) && doubt_gid_parse(*gid, &parsed);
}

bool doubt_line_take(struct slice *text, struct slice *gid, uint64_t *nodes)
{
    while (text->n > 0) {
        const char *nl = memchr(text->p, '\n', text->n);
        struct slice line = slice_of(text->p, nl == NULL ? text->n : (size_t)(nl - text->p));
        size_t gone = nl == NULL ? line.n : line.n + 1;

        *text = slice_of(text->p + gone, text->n - gone);
        if (nl != NULL && parse_line(line, gid, nodes))
            return true;
    }
    return false;
}

uint64_t doubt_decided(struct slice text, struct slice gid)
{
    struct slice one;
    uint64_t nodes;

    while (doubt_line_take(&text, &one, &nodes)) {
        if (one.n == gid.n && memcmp(one.p, gid.p, gid.n) == 0)
            return nodes;
    }
    return 0;
}

/* ---- what follows ---- */

enum doubt_verdict doubt_judge(const struct doubt_facts *facts)
{
    if (!facts->is_ours)
        return DOUBT_FOREIGN;
    if (facts->is_alive && facts->is_open)
        return DOUBT_LEAVE;
    return facts->is_decided ? DOUBT_COMMIT : DOUBT_ROLLBACK;
}

const char *doubt_verdict_name(enum doubt_verdict v)
{
    static const char *const names[] = {[DOUBT_LEAVE] = "none yet",
        [DOUBT_COMMIT] = "commit",
        [DOUBT_ROLLBACK] = "rollback",
        [DOUBT_FOREIGN] = "unknown"};

    return names[v];
}

/* ---- shared memory ---- */

struct doubt_region {
    uint64_t instance;
    uint64_t run;
    bool is_started;
    int nslots;
    struct shm_seq seq;
    uint32_t nrows;
    struct doubt_row row[DOUBT_MAX_ROWS];
    struct doubt_worker worker[];
};

size_t doubt_region_bytes(int nslots)
{
    return sizeof(struct doubt_region) + (size_t)nslots * sizeof(struct doubt_worker);
}

int doubt_region_start(
    struct shm *shm, int nslots, const char *dir, uint64_t candidate, uint64_t run, struct err *err)
{
    struct doubt_region *r = shm_get(shm, SHM_DOUBT);

    r->nslots = nslots;
    r->run = run;
    if (doubt_log_instance(dir, candidate, &r->instance, err) == -1)
        return -1;
    r->is_started = true;
    return 0;
}

bool doubt_owner_of(const struct shm *shm, int slot, struct doubt_owner *out)
{
    const struct doubt_region *r = shm_get(shm, SHM_DOUBT);

    if (r == NULL || !r->is_started)
        return false;
    *out = (struct doubt_owner){.instance = r->instance, .run = r->run, .slot = (uint32_t)slot};
    return true;
}

struct doubt_worker *doubt_worker_of(const struct shm *shm, uint32_t slot)
{
    struct doubt_region *r = shm_get(shm, SHM_DOUBT);

    return r == NULL || slot >= (uint32_t)r->nslots ? NULL : &r->worker[slot];
}

bool doubt_is_open(const struct shm *shm, const struct doubt_gid *gid)
{
    const struct doubt_region *r = shm_get(shm, SHM_DOUBT);
    const struct doubt_worker *w = doubt_worker_of(shm, gid->owner.slot);

    if (w == NULL || r->run != gid->owner.run || atomic_load(&w->pid) != gid->owner.pid)
        return true; /* a process that we know nothing of holds its file */
    return gid->number >= atomic_load(&w->oldest);
}

void doubt_publish(struct shm *shm, const struct doubt_row *rows, uint32_t n)
{
    struct doubt_region *r = shm_get(shm, SHM_DOUBT);

    if (r == NULL)
        return;
    n = n > DOUBT_MAX_ROWS ? DOUBT_MAX_ROWS : n;
    shm_write_begin(&r->seq);
    r->nrows = n;
    if (n > 0)
        memcpy(r->row, rows, n * sizeof *rows);
    shm_write_end(&r->seq);
}

uint32_t doubt_copy(const struct shm *shm, struct doubt_row *out, uint32_t max)
{
    const struct doubt_region *r = shm_get(shm, SHM_DOUBT);
    uint32_t seen;
    uint32_t n;

    if (r == NULL)
        return 0;
    do {
        seen = shm_read_begin(&r->seq);
        n = r->nrows < max ? r->nrows : max;
        n = n > DOUBT_MAX_ROWS ? DOUBT_MAX_ROWS : n;
        memcpy(out, r->row, n * sizeof *out);
    } while (shm_read_retry(&r->seq, seen));
    return n;
}
