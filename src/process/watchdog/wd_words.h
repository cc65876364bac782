/* SPDX-License-Identifier: PostgreSQL
 * wd_words.h: messages between pgpools as bytes, those that are not libraft's.
 * Runs in: watchdog. Pure. A build may add fields at the end: who does not know them leaves them
 * unread, and has what its own words end with when they are missing. Whatever else changes needs a
 * new version (wd_seal.h). */
#ifndef PGP_WATCHDOG_WD_WORDS_H
#define PGP_WATCHDOG_WD_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "cluster/wd_share.h"

/* How one pgpool is, said by itself several times a second. */
struct wd_status {
    uint8_t begin; /* enum wd_begin */
    uint8_t role;  /* enum wd_role */
    bool is_unfit; /* it should not lead */
    bool is_witness;
    bool is_called_dead; /* a life check outside found it so */
    bool is_hindered;    /* unfit for another reason than that */
    int32_t priority;
    uint8_t identity[WD_IDENTITY_BYTES];
    uint64_t lost[2];   /* servers that it does not reach */
    uint64_t dead[2];   /* members that do not answer its queries: bit per member */
    uint64_t listed[2]; /* the members in its settings: bit per member */
    char name[WD_NAME_BYTES];
    int32_t follows; /* whom it takes for the leader; WD_NO_MEMBER: nobody, or it does not say */
    char release[WD_RELEASE_BYTES]; /* of its program; empty: it does not say */
    uint64_t silent[2]; /* servers that do not answer it at the moment; none: or it does not say */
};

void wd_status_put(const struct wd_status *s, struct buf *out);
/* False when something is missing that all builds say: *s is not to be used. */
bool wd_status_get(struct slice in, struct wd_status *s);

/* An address from which passwords are guessed: 4 or 16 bytes. */
struct wd_barred {
    uint8_t n;
    uint8_t bytes[16];
};

void wd_barred_put(const struct wd_barred *b, struct buf *out);
bool wd_barred_get(struct slice in, struct wd_barred *b);

#endif
