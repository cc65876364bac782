/* SPDX-License-Identifier: PostgreSQL
 * wd_state.c: the replicated state of a watchdog cluster.
 * Runs in: watchdog. Pure. An event that comes late changes nothing: whoever proposed it may have
 * lost the lead before it was taken in, and somebody else may have decided otherwise. */
#include "config.h"

#include "cluster/wd_state.h"

#include <stdio.h>
#include <string.h>

#define FORMAT       2
#define STATE_FORMAT 5
#define OLDEST       1 /* without timelines and pauses */
#define NO_REASONS   2 /* of a state that does not say why */
#define NO_TIMES     3 /* of a state without election time-outs */
#define NO_CHOICE    4 /* of a state in which nobody is chosen to take another one's place */

void wd_state_init(struct wd_state *s)
{
    int i;

    memset(s, 0, sizeof *s);
    s->leader = WD_NO_MEMBER;
    s->former = WD_NO_MEMBER;
    s->primary = VIEW_NO_NODE;
    for (i = 0; i < VIEW_MAX_NODES; i++)
        s->node[i].candidate = VIEW_NO_NODE;
}

/* For SHOW */

static void keep(struct wd_state *s, const struct wd_event *e, const char *text)
{
    struct wd_kept *k;

    if (s->nkept == WD_KEPT_EVENTS) {
        memmove(s->kept, s->kept + 1, (WD_KEPT_EVENTS - 1) * sizeof s->kept[0]);
        s->nkept--;
    }
    k = &s->kept[s->nkept++];
    memset(k, 0, sizeof *k);
    k->at_us = e->at_us;
    snprintf(k->text, sizeof k->text, "%s", text);
}

static void describe(const struct wd_state *s, const struct wd_event *e, char out[WD_TEXT_BYTES])
{
    switch ((enum wd_event_type)e->type) {
    case WD_EV_LEAD:
        if (e->is_on)
            snprintf(out, WD_TEXT_BYTES, "pgpool %d may take the address", e->member);
        else
            snprintf(out, WD_TEXT_BYTES, "pgpool %d leads: %.120s", e->member, s->leader_why);
        return;
    case WD_EV_JOIN:
        snprintf(out, WD_TEXT_BYTES, "pgpool %d has joined", e->member);
        return;
    case WD_EV_LOST:
        snprintf(out, WD_TEXT_BYTES, "node %d is lost: %.100s", e->node, e->text);
        return;
    case WD_EV_DETACH:
        snprintf(out, WD_TEXT_BYTES, "node %d is detached by %.60s", e->node, e->who);
        return;
    case WD_EV_ATTACH:
        snprintf(out, WD_TEXT_BYTES, "node %d is attached by %.60s", e->node, e->who);
        return;
    case WD_EV_UP:
        snprintf(out, WD_TEXT_BYTES, "node %d is in use again", e->node);
        return;
    case WD_EV_END:
        snprintf(out, WD_TEXT_BYTES, "failover %u, about node %d, is over: the primary is node %d",
            e->epoch, e->node, e->primary);
        return;
    case WD_EV_CHOSEN:
        snprintf(out, WD_TEXT_BYTES, "failover %u: node %d is to take the place of node %d",
            e->epoch, e->primary, e->node);
        return;
    case WD_EV_PRIMARY:
        snprintf(out, WD_TEXT_BYTES, "the primary is node %d", e->primary);
        return;
    case WD_EV_GIVEN:
        snprintf(out, WD_TEXT_BYTES, "pgpool %d has given the address up%s%.100s", e->member,
            e->text[0] == '\0' ? "" : ": ", e->text);
        return;
    case WD_EV_PAUSE:
        snprintf(out, WD_TEXT_BYTES, "%s%.*s%s at pgpool %d",
            e->text[0] == '\0' ? "all databases were " : "database \"", WD_DATABASE_BYTES, e->text,
            e->text[0] == '\0' ? (e->is_on ? "paused" : "resumed")
            : e->is_on         ? "\" was paused"
                               : "\" was resumed",
            e->node);
        return;
    case WD_EV_EMPTY:
        snprintf(out, WD_TEXT_BYTES, "all query caches are emptied for %.60s", e->who);
        return;
    case WD_EV_NONE:
        break;
    }
    out[0] = '\0';
}

/* Events */

static void begin(struct wd_state *s, struct wd_node *n, const struct wd_event *e)
{
    n->is_begun = true;
    n->candidate = VIEW_NO_NODE;
    n->epoch = ++s->epoch;
    n->since_us = e->at_us;
    memcpy(n->who, e->who, sizeof n->who);
    memcpy(n->why, e->text, sizeof n->why);
}

static void forget(struct wd_node *n)
{
    uint32_t epoch = n->epoch;

    memset(n, 0, sizeof *n);
    n->is_known = true;
    n->candidate = VIEW_NO_NODE;
    n->epoch = epoch;
}

static bool apply_lost(struct wd_state *s, struct wd_node *n, const struct wd_event *e)
{
    if (n->is_lost || n->is_held)
        return false;
    n->is_lost = true;
    n->was_primary = e->was_primary;
    begin(s, n, e);
    return true;
}

static bool apply_detach(struct wd_state *s, struct wd_node *n, const struct wd_event *e)
{
    bool is_primary = s->primary == e->node || e->was_primary;

    if (n->is_held)
        return false;
    n->is_held = true;
    n->was_primary = n->was_primary || is_primary;
    begin(s, n, e);
    return true;
}

static bool apply_end(struct wd_state *s, struct wd_node *n, const struct wd_event *e)
{
    if (!n->is_begun || n->epoch != e->epoch)
        return false;
    n->is_begun = false;
    n->candidate = VIEW_NO_NODE;
    if (e->primary >= 0 && e->primary < VIEW_MAX_NODES) {
        s->primary = e->primary;
        s->timeline = e->timeline;
    }
    if (e->primary == e->node && !n->is_held)
        forget(n); /* nobody had to take its place */
    return true;
}

static bool apply_chosen(struct wd_node *n, const struct wd_event *e)
{
    if (!n->is_begun || n->epoch != e->epoch || e->primary < 0 || e->primary >= VIEW_MAX_NODES ||
        e->primary == e->node || e->primary == n->candidate)
        return false;
    n->candidate = e->primary;
    return true;
}

static bool apply_to_node(struct wd_state *s, const struct wd_event *e)
{
    struct wd_node *n;

    if (e->node < 0 || e->node >= VIEW_MAX_NODES)
        return false;
    n = &s->node[e->node];
    n->is_known = true;
    switch ((enum wd_event_type)e->type) {
    case WD_EV_LOST:
        return apply_lost(s, n, e);
    case WD_EV_DETACH:
        return apply_detach(s, n, e);
    case WD_EV_END:
        return apply_end(s, n, e);
    case WD_EV_CHOSEN:
        return apply_chosen(n, e);
    case WD_EV_ATTACH:
        forget(n);
        return true;
    case WD_EV_UP:
        if (!n->is_lost || n->is_held)
            return false;
        forget(n);
        return true;
    case WD_EV_NONE:
    case WD_EV_LEAD:
    case WD_EV_JOIN:
    case WD_EV_PRIMARY:
    case WD_EV_GIVEN:
    case WD_EV_PAUSE:
    case WD_EV_EMPTY:
        break;
    }
    return false;
}

/* Takes in a primary, also one that stays when it is on another timeline. */
static bool apply_primary(struct wd_state *s, const struct wd_event *e)
{
    if (e->primary < 0 || e->primary >= VIEW_MAX_NODES ||
        (e->primary == s->primary && e->timeline == s->timeline))
        return false;
    s->primary = e->primary;
    s->timeline = e->timeline;
    return true;
}

bool wd_state_is_owed(const struct wd_state *s)
{
    return !s->was_given && s->former != WD_NO_MEMBER && s->former != s->leader;
}

/* About the one that begins to lead; by what is known of who led before. */
static void tell_why(struct wd_state *s, int before)
{
    if (before == WD_NO_MEMBER)
        snprintf(s->leader_why, sizeof s->leader_why, "it was the first to be elected");
    else if (s->was_given)
        snprintf(s->leader_why, sizeof s->leader_why, "pgpool %d gave the lead away%s%.100s",
            before, s->given_why[0] == '\0' ? "" : ": ", s->given_why);
    else if (before == s->leader)
        snprintf(s->leader_why, sizeof s->leader_why,
            "it had not heard a majority for a while, and was elected again");
    else
        snprintf(s->leader_why, sizeof s->leader_why, "pgpool %d was not heard any more", before);
}

/* One that could not take the address leaves behind whom it would have taken it from; a build that
 * does not say whether it could is taken for who has it. */
static bool apply_lead(struct wd_state *s, const struct wd_event *e)
{
    int before = s->leader;

    if (e->member < 0 || e->member >= WD_MAX_MEMBERS)
        return false;
    if (e->is_on) {
        if (e->member != s->leader || !wd_state_is_owed(s))
            return false;
        s->former = s->leader;
        return true;
    }
    if (!wd_state_is_owed(s) || s->leader_ms == 0)
        s->former = s->leader;
    if (s->is_given || s->shortest_ms == 0 || (e->epoch != 0 && e->epoch < s->shortest_ms))
        s->shortest_ms = e->epoch;
    s->leader = e->member;
    s->leader_ms = e->epoch;
    s->leader_since_us = e->at_us;
    s->was_given = s->is_given;
    s->is_given = false;
    tell_why(s, before);
    return true;
}

/* Nobody has the address: of who leads now only what he says himself counts. */
static bool apply_given(struct wd_state *s, const struct wd_event *e)
{
    if (e->member != s->leader || s->is_given)
        return false;
    s->is_given = true;
    memcpy(s->given_why, e->text, sizeof s->given_why);
    return true;
}

static bool apply_join(struct wd_state *s, const struct wd_event *e)
{
    if (e->member < 0 || e->member >= WD_MAX_MEMBERS)
        return false;
    memcpy(s->identity[e->member], e->identity, WD_IDENTITY_BYTES);
    return true;
}

bool wd_state_apply(struct wd_state *s, const struct wd_event *e)
{
    char text[WD_TEXT_BYTES];
    bool fits;

    s->nevents++;
    if (e->type == WD_EV_LEAD) {
        fits = apply_lead(s, e);
    } else if (e->type == WD_EV_GIVEN) {
        fits = apply_given(s, e);
    } else if (e->type == WD_EV_JOIN) {
        fits = apply_join(s, e);
    } else if (e->type == WD_EV_PRIMARY) {
        fits = apply_primary(s, e);
    } else if (e->type == WD_EV_PAUSE) {
        fits = strlen(e->text) < WD_DATABASE_BYTES && wd_pauses_set(&s->pauses, e->text, e->is_on);
    } else if (e->type == WD_EV_EMPTY) {
        fits = true;
        s->nempties++;
    } else {
        fits = apply_to_node(s, e);
    }
    if (!fits)
        return false;
    describe(s, e, text);
    keep(s, e, text);
    return true;
}

bool wd_state_is_other_disk(
    const struct wd_state *s, int member, const uint8_t identity[WD_IDENTITY_BYTES])
{
    static const uint8_t none[WD_IDENTITY_BYTES];

    return member >= 0 && member < WD_MAX_MEMBERS &&
           memcmp(s->identity[member], none, WD_IDENTITY_BYTES) != 0 &&
           memcmp(s->identity[member], identity, WD_IDENTITY_BYTES) != 0;
}

/* The form in which it travels: big-endian numbers, texts with their NUL */

struct reader {
    const char *p;
    size_t left;
    bool bad;
};

static uint64_t get(struct reader *r, size_t n)
{
    uint64_t v = 0;
    size_t i;

    if (r->left < n) {
        r->bad = true;
        r->left = 0;
        return 0;
    }
    for (i = 0; i < n; i++)
        v = v << 8 | (uint8_t)r->p[i];
    r->p += n;
    r->left -= n;
    return v;
}

static void get_bytes(struct reader *r, void *out, size_t n)
{
    memset(out, 0, n);
    if (r->left < n) {
        r->bad = true;
        r->left = 0;
        return;
    }
    memcpy(out, r->p, n);
    r->p += n;
    r->left -= n;
}

static void get_text(struct reader *r, char *out, size_t room)
{
    size_t n = strnlen(r->p, r->left);

    memset(out, 0, room);
    if (n == r->left || n >= room) {
        r->bad = true;
        r->left = 0;
        return;
    }
    memcpy(out, r->p, n);
    r->p += n + 1;
    r->left -= n + 1;
}

static void put(struct buf *out, uint64_t v, unsigned n)
{
    while (n-- > 0)
        buf_put_byte(out, (char)(v >> (8 * n)));
}

void wd_event_put(const struct wd_event *e, struct buf *out)
{
    bool is_choice = e->type == WD_EV_CHOSEN;

    put(out, FORMAT, 1);
    put(out, is_choice ? WD_EV_END : e->type, 1);
    put(out, (uint16_t)e->member, 2);
    put(out, (uint16_t)e->node, 2);
    put(out, (uint16_t)e->primary, 2);
    put(out, (uint64_t)e->was_primary | (uint64_t)e->is_on << 1, 1);
    put(out, is_choice ? 0 : e->epoch, 4);
    put(out, is_choice ? e->epoch : e->timeline, 4);
    put(out, (uint64_t)e->at_us, 8);
    buf_put(out, e->identity, sizeof e->identity);
    buf_put_cstr(out, e->who);
    buf_put_cstr(out, e->text);
}

bool wd_event_get(struct slice in, struct wd_event *e)
{
    struct reader r = {in.p, in.n, false};
    uint64_t format = get(&r, 1);
    uint64_t bits;

    memset(e, 0, sizeof *e);
    if (format < OLDEST || format > FORMAT)
        return false;
    e->type = (uint8_t)get(&r, 1);
    r.bad = r.bad || e->type == WD_EV_NONE || e->type > WD_EV_LAST;
    e->member = (int16_t)get(&r, 2);
    e->node = (int16_t)get(&r, 2);
    e->primary = (int16_t)get(&r, 2);
    bits = get(&r, 1);
    e->was_primary = (bits & 1) != 0;
    e->is_on = (bits & 2) != 0;
    e->epoch = (uint32_t)get(&r, 4);
    e->timeline = format > OLDEST ? (uint32_t)get(&r, 4) : 0;
    e->at_us = (int64_t)get(&r, 8);
    get_bytes(&r, e->identity, sizeof e->identity);
    get_text(&r, e->who, sizeof e->who);
    get_text(&r, e->text, sizeof e->text);
    if (e->type == WD_EV_END && e->epoch == 0) {
        e->type = WD_EV_CHOSEN;
        e->epoch = e->timeline;
        e->timeline = 0;
    }
    return !r.bad && r.left == 0;
}

static void put_node(const struct wd_node *n, struct buf *out)
{
    put(out,
        (uint64_t)n->is_held | (uint64_t)n->is_lost << 1 | (uint64_t)n->was_primary << 2 |
            (uint64_t)n->is_begun << 3,
        1);
    put(out, n->epoch, 4);
    put(out, (uint64_t)n->since_us, 8);
    buf_put_cstr(out, n->who);
    buf_put_cstr(out, n->why);
}

static void get_node(struct reader *r, struct wd_node *n)
{
    uint64_t bits = get(r, 1);

    n->is_known = true;
    n->candidate = VIEW_NO_NODE;
    n->is_held = (bits & 1) != 0;
    n->is_lost = (bits & 2) != 0;
    n->was_primary = (bits & 4) != 0;
    n->is_begun = (bits & 8) != 0;
    n->epoch = (uint32_t)get(r, 4);
    n->since_us = (int64_t)get(r, 8);
    get_text(r, n->who, sizeof n->who);
    get_text(r, n->why, sizeof n->why);
}

static int count_choices(const struct wd_state *s)
{
    int n = 0;
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        n += s->node[i].candidate != VIEW_NO_NODE;
    return n;
}

static void put_choices(const struct wd_state *s, int n, struct buf *out)
{
    int i;

    put(out, (uint32_t)n, 1);
    for (i = 0; i < VIEW_MAX_NODES; i++)
        if (s->node[i].candidate != VIEW_NO_NODE) {
            put(out, (uint32_t)i, 1);
            put(out, (uint16_t)s->node[i].candidate, 2);
        }
}

static void get_choices(struct reader *r, struct wd_state *s)
{
    uint64_t n;

    for (n = get(r, 1); n > 0 && !r->bad; n--) {
        uint64_t node = get(r, 1);
        uint64_t candidate = get(r, 2);

        r->bad = r->bad || node >= VIEW_MAX_NODES || candidate >= VIEW_MAX_NODES;
        if (!r->bad)
            s->node[node].candidate = (int16_t)candidate;
    }
}

/* Where nobody is chosen, which is nearly always, it is what a build that knows of no choices
 * reads.
 */
void wd_state_put(const struct wd_state *s, struct buf *out)
{
    int nchoices = count_choices(s);
    int i;

    put(out, nchoices == 0 ? NO_CHOICE : STATE_FORMAT, 1);
    put(out, s->nevents, 8);
    put(out, s->epoch, 4);
    put(out, (uint32_t)s->leader, 4);
    put(out, (uint64_t)s->leader_since_us, 8);
    put(out, (uint32_t)s->primary, 4);
    put(out, (uint64_t)s->is_given | (uint64_t)s->was_given << 1, 1);
    for (i = 0; i < VIEW_MAX_NODES; i++) {
        put(out, s->node[i].is_known, 1);
        if (s->node[i].is_known)
            put_node(&s->node[i], out);
    }
    buf_put(out, s->identity, sizeof s->identity);
    put(out, (uint32_t)s->nkept, 1);
    for (i = 0; i < s->nkept; i++) {
        put(out, (uint64_t)s->kept[i].at_us, 8);
        buf_put_cstr(out, s->kept[i].text);
    }
    put(out, s->timeline, 4);
    put(out, s->nempties, 4);
    put(out, (uint32_t)s->former, 4);
    put(out, (uint32_t)s->pauses.n, 1);
    for (i = 0; i < s->pauses.n; i++)
        buf_put_cstr(out, s->pauses.database[i]);
    buf_put_cstr(out, s->leader_why);
    buf_put_cstr(out, s->given_why);
    put(out, s->leader_ms, 4);
    put(out, s->shortest_ms, 4);
    if (nchoices > 0)
        put_choices(s, nchoices, out);
}

static void get_shared(struct reader *r, struct wd_state *s)
{
    char database[WD_DATABASE_BYTES];
    uint64_t n;

    s->timeline = (uint32_t)get(r, 4);
    s->nempties = (uint32_t)get(r, 4);
    s->former = (int32_t)get(r, 4);
    for (n = get(r, 1); n > 0 && !r->bad; n--) {
        get_text(r, database, sizeof database);
        r->bad = r->bad || !wd_pauses_set(&s->pauses, database, true);
    }
}

bool wd_state_get(struct slice in, struct wd_state *s)
{
    struct reader r = {in.p, in.n, false};
    uint64_t format = get(&r, 1);
    uint64_t bits;
    int i;

    wd_state_init(s);
    r.bad = r.bad || format < OLDEST || format > STATE_FORMAT;
    s->nevents = get(&r, 8);
    s->epoch = (uint32_t)get(&r, 4);
    s->leader = (int32_t)get(&r, 4);
    s->leader_since_us = (int64_t)get(&r, 8);
    s->primary = (int32_t)get(&r, 4);
    bits = get(&r, 1);
    s->is_given = (bits & 1) != 0;
    s->was_given = (bits & 2) != 0;
    for (i = 0; i < VIEW_MAX_NODES && !r.bad; i++)
        if (get(&r, 1) != 0)
            get_node(&r, &s->node[i]);
    get_bytes(&r, s->identity, sizeof s->identity);
    s->nkept = (int32_t)get(&r, 1);
    r.bad = r.bad || s->nkept > WD_KEPT_EVENTS;
    for (i = 0; !r.bad && i < s->nkept; i++) {
        s->kept[i].at_us = (int64_t)get(&r, 8);
        get_text(&r, s->kept[i].text, sizeof s->kept[i].text);
    }
    if (!r.bad && format > OLDEST)
        get_shared(&r, s);
    if (!r.bad && format > NO_REASONS) {
        get_text(&r, s->leader_why, sizeof s->leader_why);
        get_text(&r, s->given_why, sizeof s->given_why);
    }
    if (!r.bad && format > NO_TIMES) {
        s->leader_ms = (uint32_t)get(&r, 4);
        s->shortest_ms = (uint32_t)get(&r, 4);
    }
    if (!r.bad && format > NO_CHOICE)
        get_choices(&r, s);
    if (!r.bad && r.left == 0)
        return true;
    wd_state_init(s);
    return false;
}

bool wd_state_is_newer(struct slice in)
{
    return in.n > 0 && (uint8_t)in.p[0] > STATE_FORMAT;
}

bool wd_state_equal(const struct wd_state *a, const struct wd_state *b)
{
    struct buf x = {0};
    struct buf y = {0};
    bool same;

    wd_state_put(a, &x);
    wd_state_put(b, &y);
    same = slice_eq(buf_slice(&x), buf_slice(&y));
    buf_free(&x);
    buf_free(&y);
    return same;
}
