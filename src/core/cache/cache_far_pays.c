/* SPDX-License-Identifier: PostgreSQL
 * cache_far_pays.c: do look-ups in memcached pay, of texts that differ in values alone? Pure.
 * Runs in: workers.
 *
 * They do not where hardly any finds something, and what is found saves less time than looking
 * takes: results that others write again before anybody asks for them twice. Then only keys of one
 * in sixteen are looked up and kept, always the same ones, so that what is seen of these is what
 * would be seen of all: when it pays with them, all are looked up again. Whoever reads texts that
 * take long, or finds something now and then, is never left out, also where memcached is slow: the
 * server is spared. */
#include "config.h"

#include "base/hash.h"

#include "cache_far_int.h"

/* Look-ups by which it is judged; those of one in sixteen of the keys come seldom. */
#define LOOKS         256
#define LOOKS_SAMPLED 32
/* The part of them that has to find something. */
#define HITS_IN    8
#define SAMPLED_IN 16
#define SALT       UINT64_C(0x70617973)

static struct far_paid *paid_at(struct far_pays *p, uint64_t text)
{
    struct far_paid *at = &p->paid[hash_pair(text, SALT) % FAR_PAYS_TEXTS];

    if (at->text != text)
        *at = (struct far_paid){.text = text};
    return at;
}

bool far_pays(struct far_pays *p, uint64_t text, uint64_t key_hash)
{
    return text == 0 || !paid_at(p, text)->is_sampled ||
           hash_pair(key_hash, SALT) % SAMPLED_IN == 0;
}

void far_pays_note(
    struct far_pays *p, uint64_t text, int64_t cost_us, bool is_hit, int64_t saved_us)
{
    struct far_paid *at;

    if (text == 0)
        return;
    at = paid_at(p, text);
    at->nlooks++;
    at->nhits += is_hit;
    at->cost_us += cost_us;
    at->saved_us += saved_us;
    if (at->nlooks < (at->is_sampled ? LOOKS_SAMPLED : LOOKS))
        return;
    *at = (struct far_paid){
        .text = text, .is_sampled = at->nhits * HITS_IN < at->nlooks && at->saved_us < at->cost_us};
}
