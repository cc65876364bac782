/* SPDX-License-Identifier: PostgreSQL
 * histogram.c: durations in log-linear buckets. Runs in: every process. Values below 16 have a
 * bucket each; above, every power of two is cut into 16 equal parts. Adding is a shift and a plain
 * store: there is one writer, readers see whole words. */
#include "config.h"

#include "base/histogram.h"
#include "base/hot.h"

unsigned histogram_bucket(int64_t value)
{
    unsigned bits;

    if (value < HISTOGRAM_SUB)
        return value < 0 ? 0 : (unsigned)value;
    if (value >> HISTOGRAM_MAX_BITS != 0)
        return HISTOGRAM_BUCKETS - 1;
    bits = 63U - (unsigned)__builtin_clzll((unsigned long long)value);
    return ((bits - HISTOGRAM_SUB_BITS) << HISTOGRAM_SUB_BITS) +
           (unsigned)(value >> (bits - HISTOGRAM_SUB_BITS));
}

int64_t histogram_bucket_start(unsigned bucket)
{
    unsigned octave = bucket >> HISTOGRAM_SUB_BITS;
    int64_t sub = bucket & (HISTOGRAM_SUB - 1);

    if (octave == 0)
        return sub;
    return (HISTOGRAM_SUB + sub) << (octave - 1);
}

HOT void histogram_add(struct histogram *h, int64_t value)
{
    histogram_count(h, histogram_value_of(value));
}

void histogram_sum_add(struct histogram_sum *sum, const struct histogram *h)
{
    uint64_t n;
    unsigned i;

    for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
        n = atomic_load_explicit(&h->bucket[i], memory_order_relaxed);
        sum->bucket[i] += n;
        sum->n += n;
    }
}

int64_t histogram_quantile(const struct histogram_sum *sum, unsigned parts)
{
    /* The rank of the value: the smallest one that at least `parts` of a thousand reach. */
    uint64_t rank = sum->n / 1000 * parts + (sum->n % 1000 * parts + 999) / 1000;
    uint64_t seen = 0;
    int64_t start;
    unsigned i;

    if (sum->n == 0)
        return 0;
    if (rank == 0)
        rank = 1;
    for (i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        seen += sum->bucket[i];
        if (seen >= rank)
            break;
    }
    start = histogram_bucket_start(i);
    return start + (histogram_bucket_start(i + 1) - 1 - start) / 2;
}
