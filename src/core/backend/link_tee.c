/* SPDX-License-Identifier: PostgreSQL
 * link_tee.c: the owner sees each whole message of the answers to ops with OP_TEE. Runs in:
 * workers. What the client gets is not touched by it: a message that is too long to be waited for
 * (LINK_COLLECT_MAX) is passed on in parts as ever, and put together here beside that. */
#include "config.h"

#include "base/hot.h"
#include "config/conf.h"
#include "wire/reader.h"

#include "link_int.h"

/* Longer messages are not put together; what the query cache would keep is. */
#define TEE_MAX ((size_t)1 << 20)

static bool tee_is_too_long(const struct link *link, size_t len)
{
    int64_t kept = link->be->conf->memqcache_maxcache_bytes;

    return len > TEE_MAX && (kept < 0 || len > (size_t)kept);
}

static bool tee_is_heard(const struct link *link)
{
    return link->owner != NULL && link->phase == LINK_LENT;
}

static void tee_end(struct link *link, enum link_tee_end end, unsigned n)
{
    for (; n > 0 && tee_is_heard(link); n--)
        link->ops->on_tee_end(link->owner, link, end);
}

/* One whole message; `is_last`: its op is over. The op wants no more when its owner says so. */
static void tee_tell(struct link *link, struct slice msg, bool is_last)
{
    struct slice body = slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);

    if (!tee_is_heard(link))
        return;
    if (!link->ops->on_tee(link->owner, link, msg.p[0], body)) {
        if (!is_last)
            expect_untee_head(&link->expect);
    } else if (is_last) {
        tee_end(link, LINK_TEE_DONE, 1);
    }
}

/* The op at the head is answered with a message of `len` bytes, of which `have` are at `p`. */
static void tee_message(struct link *link, const char *p, size_t have, size_t len, bool is_last)
{
    if (!tee_is_heard(link))
        return;
    if (have == len) {
        tee_tell(link, slice_of(p, len), is_last);
    } else if (tee_is_too_long(link, len)) {
        if (!is_last)
            expect_untee_head(&link->expect);
        tee_end(link, LINK_TEE_LONG, 1);
    } else {
        link_carry(link, slice_of(p, have));
        link->teeing = is_last ? LINK_TEEING_LAST : LINK_TEEING;
    }
}

bool link_tee_waits(const struct link *link, char type, size_t len)
{
    return type != BE_NOTICE && type != BE_NOTIFICATION && expect_head_is_teed(&link->expect) &&
           len <= LINK_COLLECT_MAX;
}

enum expect_verdict link_tee_reply(struct link *link, const char *p, size_t have)
{
    struct expect *e = &link->expect;
    size_t len = (size_t)proto_get_u32(p + 1) + 1;
    bool is_teed = expect_head_is_teed(e);
    uint32_t serial = expect_head_serial(e);
    bool may_end_more = *p == BE_ERROR || e->copy_in;
    unsigned before = may_end_more ? expect_count_teed(e) : 0;
    enum expect_verdict verdict;
    unsigned after;
    bool is_last;

    if (is_teed && *p == BE_ERROR)
        expect_untee_head(e); /* a Query is owed its ReadyForQuery still */
    verdict = expect_reply(e, *p);
    if (e->lost) {
        link_tee_lost(link);
        return verdict;
    }
    after = may_end_more ? expect_count_teed(e) : 0;
    is_last = serial != expect_head_serial(e);
    if (is_teed && *p != BE_ERROR) {
        before -= may_end_more && is_last;
        tee_message(link, p, have, len, is_last);
    }
    tee_end(link, LINK_TEE_FAILED, before - after);
    e->has_tee = e->len > 0;
    return verdict;
}

void link_tee_body(struct link *link, const char *p, size_t n)
{
    bool is_last = link->teeing == LINK_TEEING_LAST;

    link_carry(link, slice_of(p, n));
    if (link->body_left > 0)
        return;
    tee_tell(link, buf_slice(link->carry), is_last);
    link_tee_forget(link);
}

void link_tee_forget(struct link *link)
{
    if (link->teeing != LINK_TEEING_NONE)
        link_carry_free(link);
    link->teeing = LINK_TEEING_NONE;
}

void link_tee_lost(struct link *link)
{
    struct expect *e = &link->expect;
    unsigned n = expect_count_teed(e) + (link->teeing == LINK_TEEING_LAST);

    e->has_tee = false;
    link_tee_forget(link);
    tee_end(link, LINK_TEE_LOST, n);
}
