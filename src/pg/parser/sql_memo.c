/* SPDX-License-Identifier: PostgreSQL
 * sql_memo.c: a table of one slot per hash: what is newer takes the place of what was there.
 * Runs in: workers. */
#include "config.h"

#include "base/hash.h"
#include "base/hot.h"
#include "base/mem.h"
#include "sql_memo.h"

#include <string.h>

static void forget(struct sql_memo_slot *slot)
{
    mem_free(slot->text);
    slot->text = NULL;
}

WARM struct sql_memo_slot *sql_memo_find(
    struct sql_memo *m, struct slice text, struct sql_memo_key *key)
{
    struct sql_memo_slot *slot;

    key->text = text;
    key->slot = NULL;
    if (text.n == 0 || text.n > SQL_MEMO_TEXT_BYTES)
        return NULL;
    /* Texts come from clients: where memory lies is the seed that nobody knows. */
    key->hash = hash_bytes(text.p, text.n, (uint64_t)(uintptr_t)m);
    key->slot = slot = &m->slots[key->hash % SQL_MEMO_SLOTS];
    if (slot->hash != key->hash || slot->text == NULL || slot->n != text.n ||
        memcmp(slot->text, text.p, text.n) != 0)
        return NULL;
    return slot;
}

void sql_memo_put(const struct sql_memo_key *key, const struct sqlfp *fp)
{
    struct sql_memo_slot *slot = key->slot;

    if (slot == NULL)
        return;
    slot->seen = slot->hash == key->hash ? slot->seen + 1 : 1;
    slot->hash = key->hash;
    forget(slot);
    if (slot->seen < SQL_MEMO_TIMES)
        return;
    slot->text = mem_alloc(key->text.n);
    memcpy(slot->text, key->text.p, key->text.n);
    slot->n = (uint32_t)key->text.n;
    slot->fp = *fp;
    memset(slot->note, 0, sizeof slot->note);
}

void sql_memo_clear(struct sql_memo *m)
{
    for (size_t i = 0; i < SQL_MEMO_SLOTS; i++)
        forget(&m->slots[i]);
}
