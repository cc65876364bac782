/* SPDX-License-Identifier: PostgreSQL
 * link_see.c: the owner sees whole messages of the answers to ops of OP_SEEN. Runs in: workers.
 * What the client gets is not touched by it: a message that is too long to be waited for
 * (LINK_COLLECT_MAX) is passed on in parts as ever, and put together here beside that. */
#include "config.h"

#include "base/hot.h"
#include "config/conf.h"
#include "wire/message.h"
#include "wire/reader.h"

#include "link_int.h"

/* Longer messages are not put together; what the query cache would keep is. */
#define SEE_MAX ((size_t)1 << 20)

static bool see_is_too_long(const struct link *link, size_t len)
{
    int64_t kept = link->be->conf->memqcache_maxcache_bytes;

    return len > SEE_MAX && (kept < 0 || len > (size_t)kept);
}

static bool see_is_heard(const struct link *link)
{
    return link->owner != NULL && link->phase == LINK_LENT;
}

static void see_end(struct link *link, enum link_tee_end end, unsigned n)
{
    for (; n > 0 && see_is_heard(link); n--)
        link->ops->on_tee_end(link->owner, link, end);
}

/* Which of the owner's calls see a message of this type that answers an op with these flags. */
static unsigned see_by(unsigned flags, char type)
{
    unsigned by = LINK_SEEING_NOTHING;

    if ((flags & OP_TEE) != 0)
        by |= LINK_SEEING_TEE;
    if ((flags & OP_ROWS) != 0 && type == BE_DATA_ROW)
        by |= LINK_SEEING_ROWS;
    if ((flags & OP_COLUMNS) != 0 &&
        (type == BE_ROW_DESCRIPTION || type == BE_NO_DATA || type == BE_PARAMETER_DESCRIPTION))
        by |= LINK_SEEING_COLUMNS;
    return by;
}

/* The op with OP_TEE wants no more when its owner says so. */
static void see_tee(struct link *link, char type, struct slice body, bool is_last)
{
    if (!link->ops->on_tee(link->owner, link, type, body)) {
        if (!is_last)
            expect_untee_head(&link->expect);
    } else if (is_last) {
        see_end(link, LINK_TEE_DONE, 1);
    }
}

/* One whole message. */
static void see_tell(struct link *link, struct slice msg, unsigned by)
{
    struct slice body = slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);
    bool is_last = (by & LINK_SEEING_LAST) != 0;
    uint32_t serial = expect_head_serial(&link->expect) - (is_last ? 1 : 0);

    if (!see_is_heard(link))
        return;
    if ((by & LINK_SEEING_ROWS) != 0)
        link->ops->on_own_row(link->owner, link, body);
    if ((by & LINK_SEEING_COLUMNS) != 0)
        link->ops->on_columns(link->owner, link, serial, msg.p[0], body);
    if ((by & LINK_SEEING_TEE) != 0)
        see_tee(link, msg.p[0], body, is_last);
}

/* The op that was at the head is answered with a message of `len` bytes, of which `have` are at
 * `p`. */
static void see_message(struct link *link, const char *p, size_t have, size_t len, unsigned by)
{
    bool is_last = (by & LINK_SEEING_LAST) != 0;

    if (!see_is_heard(link) || (by & ~(unsigned)LINK_SEEING_LAST) == LINK_SEEING_NOTHING)
        return;
    if (have == len) {
        see_tell(link, slice_of(p, len), by);
    } else if (!see_is_too_long(link, len)) {
        link_carry(link, slice_of(p, have));
        link->seeing = (uint8_t)(by & 0x0F);
    } else if ((by & LINK_SEEING_TEE) != 0) {
        if (!is_last)
            expect_untee_head(&link->expect);
        see_end(link, LINK_TEE_LONG, 1);
    }
}

bool link_see_waits(const struct link *link, char type, size_t len)
{
    return type != BE_NOTICE && type != BE_NOTIFICATION && len <= LINK_COLLECT_MAX &&
           see_by(expect_head_seen(&link->expect), type) != LINK_SEEING_NOTHING;
}

enum expect_verdict link_see_reply(struct link *link, const char *p, size_t have)
{
    struct expect *e = &link->expect;
    size_t len = message_bytes(p);
    unsigned flags = expect_head_seen(e);
    uint32_t serial = expect_head_serial(e);
    bool may_end_more = *p == BE_ERROR || e->copy_in;
    unsigned before = may_end_more ? expect_count_teed(e) : 0;
    enum expect_verdict verdict;
    unsigned after;
    unsigned by;

    if ((flags & OP_TEE) != 0 && *p == BE_ERROR)
        expect_untee_head(e); /* a Query is owed its ReadyForQuery still */
    verdict = expect_reply(e, *p);
    if (e->lost) {
        link_see_lost(link);
        return verdict;
    }
    after = may_end_more ? expect_count_teed(e) : 0;
    if (flags != 0 && *p != BE_ERROR) {
        by = see_by(flags, *p);
        if (serial != expect_head_serial(e))
            by |= LINK_SEEING_LAST;
        if (may_end_more && (by & LINK_SEEING_LAST) != 0 && (flags & OP_TEE) != 0)
            before--;
        see_message(link, p, have, len, by);
    }
    see_end(link, LINK_TEE_FAILED, before - after);
    e->is_seen = e->len > 0;
    return verdict;
}

void link_see_body(struct link *link, const char *p, size_t n)
{
    unsigned by = link->seeing;

    link_carry(link, slice_of(p, n));
    if (link->body_left > 0)
        return;
    see_tell(link, buf_slice(link->carry), by);
    link_see_forget(link);
}

void link_see_forget(struct link *link)
{
    if (link->seeing != LINK_SEEING_NOTHING)
        link_carry_free(link);
    link->seeing = LINK_SEEING_NOTHING;
}

void link_see_lost(struct link *link)
{
    const unsigned last = LINK_SEEING_TEE | LINK_SEEING_LAST;
    struct expect *e = &link->expect;
    unsigned n = expect_count_teed(e) + ((link->seeing & last) == last);

    e->is_seen = false;
    link_see_forget(link);
    see_end(link, LINK_TEE_LOST, n);
}
