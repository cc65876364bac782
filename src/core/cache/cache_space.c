/* SPDX-License-Identifier: PostgreSQL
 * cache_space.c: the arena of a shard: pieces of any size, free ones in lists by size.
 * Runs in: workers, under the shard's lock; space_read and space_peek without it. Free neighbours
 * are always one piece. When no free piece is large enough an entry is kept in several, so that a
 * large result does not drive out a thousand small ones only because they lie apart. What a process
 * that was killed leaves half done is never looked at: the shard is made anew.
 *
 * A piece begins with a word that holds its size in units and two bits; a free one has its
 * neighbours in the list behind that, and its size in its last word; a used one has the next piece
 * of its entry behind it. Unit 0 and the last one are used for ever, so that every piece has
 * neighbours. */
#include "config.h"

#include <string.h>

#include "base/assert.h"

#include "cache_int.h"

#define BIT_FREE      1U
#define BIT_PREV_FREE 2U
#define BIT_COUNT     2

struct piece {
    uint32_t word;
    uint32_t next; /* used: next piece of the entry; free: next of the list */
    uint32_t prev; /* free: of the list */
    uint32_t size; /* free pieces of one unit: the last word. Others have it further down */
};
_Static_assert(sizeof(struct piece) == SPACE_UNIT, "the smallest piece");

static struct piece *piece_at(char *arena, uint32_t at)
{
    return (struct piece *)(void *)(arena + (size_t)at * SPACE_UNIT);
}

static uint32_t size_of(const struct piece *p)
{
    return p->word >> BIT_COUNT;
}

static uint32_t *last_word(char *arena, uint32_t at, uint32_t size)
{
    return (uint32_t *)(void *)(arena + ((size_t)at + size) * SPACE_UNIT) - 1;
}

/* Eight classes for every power of two; the first eight sizes have one each. */
static uint32_t class_of(uint32_t size)
{
    uint32_t log;

    if (size < 8)
        return size;
    log = 31U - (uint32_t)__builtin_clz(size);
    return (log - 2) * 8 + (size >> (log - 3) & 7);
}

/* The first class all of whose pieces are at least so large. */
static uint32_t class_above(uint32_t size)
{
    uint32_t log;

    if (size < 8)
        return size;
    log = 31U - (uint32_t)__builtin_clz(size);
    return class_of(size + (1U << (log - 3)) - 1);
}

static uint32_t units_for(size_t bytes)
{
    return (uint32_t)((bytes + SPACE_HEAD + SPACE_UNIT - 1) / SPACE_UNIT);
}

/* What a piece of this size holds. */
static size_t room_of(uint32_t size)
{
    return (size_t)size * SPACE_UNIT - SPACE_HEAD;
}

static uint32_t small_units(uint32_t size)
{
    return room_of(size) < SPACE_PIECE_MIN ? size : 0;
}

static void list_add(struct cache_space *s, char *arena, uint32_t at, uint32_t size)
{
    struct piece *p = piece_at(arena, at);
    uint32_t class = class_of(size);

    p->word = size << BIT_COUNT | BIT_FREE;
    p->prev = 0;
    p->next = s->head[class];
    *last_word(arena, at, size) = size;
    if (p->next != 0)
        piece_at(arena, p->next)->prev = at;
    s->head[class] = at;
    s->nsmall += small_units(size);
    s->used[class / 64] |= UINT64_C(1) << (class % 64);
    piece_at(arena, at + size)->word |= BIT_PREV_FREE;
}

static void list_del(struct cache_space *s, char *arena, uint32_t at)
{
    struct piece *p = piece_at(arena, at);
    uint32_t class = class_of(size_of(p));

    if (p->prev != 0)
        piece_at(arena, p->prev)->next = p->next;
    else
        s->head[class] = p->next;
    if (p->next != 0)
        piece_at(arena, p->next)->prev = p->prev;
    s->nsmall -= small_units(size_of(p));
    if (s->head[class] == 0)
        s->used[class / 64] &= ~(UINT64_C(1) << (class % 64));
    piece_at(arena, at + size_of(p))->word &= ~BIT_PREV_FREE;
}

void space_init(struct cache_space *s, char *arena, uint32_t nunits)
{
    ASSERT(nunits > 4);
    memset(s, 0, sizeof *s);
    s->nunits = nunits;
    s->nfree = nunits - 2;
    piece_at(arena, 0)->word = 1U << BIT_COUNT;
    piece_at(arena, nunits - 1)->word = 1U << BIT_COUNT;
    list_add(s, arena, 1, nunits - 2);
}

/* A free piece of at least this size, one of the best fitting; 0 none. */
static uint32_t find_fit(const struct cache_space *s, char *arena, uint32_t size)
{
    uint32_t class = class_of(size);
    uint32_t at = s->head[class];
    uint32_t i;

    if (at != 0 && size_of(piece_at(arena, at)) >= size)
        return at;
    class = class_above(size);
    for (i = class / 64; i < SPACE_CLASSES / 64; i++) {
        uint64_t bits = s->used[i];

        if (i == class / 64)
            bits &= UINT64_MAX << (class % 64);
        if (bits != 0)
            return s->head[i * 64 + (uint32_t)__builtin_ctzll(bits)];
    }
    return 0;
}

/* One of the largest free pieces. */
static uint32_t find_large(const struct cache_space *s)
{
    uint32_t i;

    for (i = SPACE_CLASSES / 64; i-- > 0;)
        if (s->used[i] != 0)
            return s->head[i * 64 + 63 - (uint32_t)__builtin_clzll(s->used[i])];
    return 0;
}

/* Takes `size` units of the free piece; what is left of it stays free. */
static void cut(struct cache_space *s, char *arena, uint32_t at, uint32_t size)
{
    struct piece *p = piece_at(arena, at);
    uint32_t whole = size_of(p);

    list_del(s, arena, at);
    p->word = size << BIT_COUNT;
    p->next = 0;
    s->nfree -= size;
    if (whole > size)
        list_add(s, arena, at + size, whole - size);
}

static void give_one(struct cache_space *s, char *arena, uint32_t at)
{
    struct piece *p = piece_at(arena, at);
    uint32_t size = size_of(p);
    struct piece *after = piece_at(arena, at + size);

    s->nfree += size;
    if ((after->word & BIT_FREE) != 0) {
        uint32_t more = size_of(after);

        list_del(s, arena, at + size);
        size += more;
    }
    if ((p->word & BIT_PREV_FREE) != 0) {
        uint32_t more = *((uint32_t *)(void *)p - 1);

        list_del(s, arena, at - more);
        at -= more;
        size += more;
    }
    list_add(s, arena, at, size);
}

static uint32_t take_pieces(struct cache_space *s, char *arena, size_t bytes, size_t whole)
{
    uint32_t first = 0;
    uint32_t last = 0;

    while (bytes > 0) {
        uint32_t want = units_for(bytes);
        uint32_t at = find_large(s);
        uint32_t size = at == 0 ? 0 : size_of(piece_at(arena, at));

        if (size > want)
            size = want;
        if (at == 0 || (size < want && room_of(size) < SPACE_PIECE_MIN) ||
            (first == 0 && room_of(size) < whole)) {
            space_give(s, arena, first);
            return 0;
        }
        cut(s, arena, at, size);
        if (first == 0)
            first = at;
        else
            piece_at(arena, last)->next = at;
        last = at;
        bytes -= room_of(size) < bytes ? room_of(size) : bytes;
    }
    return first;
}

uint32_t space_take(struct cache_space *s, char *arena, size_t bytes, size_t whole)
{
    uint32_t at;

    ASSERT(bytes > 0 && whole <= bytes);
    if (bytes > (size_t)s->nfree * SPACE_UNIT)
        return 0;
    at = find_fit(s, arena, units_for(bytes));
    if (at == 0)
        return take_pieces(s, arena, bytes, whole);
    cut(s, arena, at, units_for(bytes));
    return at;
}

void space_give(struct cache_space *s, char *arena, uint32_t at)
{
    while (at != 0) {
        uint32_t next = piece_at(arena, at)->next;

        give_one(s, arena, at);
        at = next;
    }
}

void space_write(char *arena, uint32_t at, size_t from, const void *p, size_t n)
{
    const char *src = p;

    while (n > 0) {
        struct piece *piece = piece_at(arena, at);
        size_t room = room_of(size_of(piece));
        size_t part = from < room ? room - from : 0;

        if (part > n)
            part = n;
        if (part > 0)
            memcpy((char *)piece + SPACE_HEAD + from, src, part);
        src += part;
        n -= part;
        from = part > 0 ? 0 : from - room;
        at = piece->next;
    }
}

/* Another process may be writing here: each word is read once. */
static uint32_t read_word(const uint32_t *p)
{
    return *(const volatile uint32_t *)p;
}

HOT bool space_read(
    const char *arena, uint32_t nunits, uint32_t at, size_t from, void *dst, size_t n)
{
    char *out = dst;

    while (n > 0) {
        const struct piece *piece = piece_at((char *)(uintptr_t)arena, at);
        uint32_t size;
        size_t room;
        size_t part;

        if (at == 0 || at >= nunits)
            return false;
        size = read_word(&piece->word) >> BIT_COUNT;
        if (size == 0 || size > nunits - at)
            return false;
        room = room_of(size);
        part = from < room ? room - from : 0;
        if (part > n)
            part = n;
        if (part > 0)
            memcpy(out, (const char *)piece + SPACE_HEAD + from, part);
        out += part;
        n -= part;
        from = part > 0 ? 0 : from - room;
        at = read_word(&piece->next);
    }
    return true;
}

HOT const char *space_peek(const char *arena, uint32_t nunits, uint32_t at, size_t n)
{
    if (at == 0 || at >= nunits || n + SPACE_HEAD > (size_t)(nunits - at) * SPACE_UNIT)
        return NULL;
    return arena + (size_t)at * SPACE_UNIT + SPACE_HEAD;
}

uint32_t space_units(const char *arena, uint32_t at)
{
    uint32_t n = 0;

    while (at != 0) {
        const struct piece *p = piece_at((char *)(uintptr_t)arena, at);

        n += size_of(p);
        at = p->next;
    }
    return n;
}
