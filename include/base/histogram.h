/* SPDX-License-Identifier: PostgreSQL
 * histogram.h: how often a duration was about so long: log-linear buckets, good to 1/16 of the
 * value, from 0 to 2^40 - 1 (microseconds: twelve days). Runs in: every process. Plain data without
 * pointers, so that it can lie in shared memory: one process adds, any other reads. Pure. */
#ifndef PGP_BASE_HISTOGRAM_H
#define PGP_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_SUB_BITS 4
#define HISTOGRAM_SUB      (1 << HISTOGRAM_SUB_BITS)
#define HISTOGRAM_MAX_BITS 40
#define HISTOGRAM_BUCKETS  ((HISTOGRAM_MAX_BITS - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUB)

/* A zeroed one is empty. */
struct histogram {
    _Atomic uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* The sum of several, for a reader. A zeroed one is empty. */
struct histogram_sum {
    uint64_t n;
    uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* A duration and its bucket, for what is counted in several. */
struct histogram_value {
    int64_t us;
    unsigned bucket;
};

/* The bucket of `value`. Negative values are taken for 0, too large ones for the largest. */
unsigned histogram_bucket(int64_t value);
/* The smallest value of a bucket; of HISTOGRAM_BUCKETS: 2^40. */
int64_t histogram_bucket_start(unsigned bucket);
static inline struct histogram_value histogram_value_of(int64_t us)
{
    return (struct histogram_value){.us = us, .bucket = histogram_bucket(us)};
}
/* Counts one. Only the one writing process may call it. */
static inline void histogram_count(struct histogram *h, struct histogram_value value)
{
    _Atomic uint64_t *cell = &h->bucket[value.bucket];

    atomic_store_explicit(
        cell, atomic_load_explicit(cell, memory_order_relaxed) + 1, memory_order_relaxed);
}
/* Counts a duration that is counted nowhere else. */
void histogram_add(struct histogram *h, int64_t value);
/* Adds what `h` counted so far to *sum. Any process. */
void histogram_sum_add(struct histogram_sum *sum, const struct histogram *h);
/* The value that `parts` of a thousand do not exceed, as the middle of its bucket; 0 when nothing
 * was counted. 500 is the median, 999 the 99.9th percentile. */
int64_t histogram_quantile(const struct histogram_sum *sum, unsigned parts);

#endif
