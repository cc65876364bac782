/* SPDX-License-Identifier: PostgreSQL
 * wd_seal.h: how two pgpools prove to each other that they know wd_authkey, and how each message
 * between them is sealed afterwards.
 * Runs in: watchdog. Pure but for the nonce. Each side sends a hello with a nonce of its own; each
 * proves itself by an HMAC over the two hellos, under a label of its own, so that no proof can be
 * sent back to where it came from. The key of the messages comes out of the same two hellos. */
#ifndef PGP_WATCHDOG_WD_SEAL_H
#define PGP_WATCHDOG_WD_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

#define WD_HELLO_BYTES 48
#define WD_PROOF_BYTES 32
#define WD_FRAME_MAX   (1024 * 1024)

/* What this build speaks: the forms of messages, events of the log and snapshots. A field at the
 * end of a message that older builds leave unread is no new version; anything else is, and a leader
 * proposes nothing new while a member does not speak it. 0: a build that did not say. */
#define WD_SPEAKS_OLDEST 1
#define WD_SPEAKS_NEWEST 1

enum wd_side { WD_CALLER = 'c', WD_CALLED = 's' };

struct wd_hello {
    int from;   /* number of the pgpool that says it */
    int to;     /* whom it takes the other one for */
    int oldest; /* versions that it speaks: from oldest to newest */
    int newest;
};

/* The two hellos as they went over the wire, the caller's first. */
struct wd_talk {
    uint8_t hello[2][WD_HELLO_BYTES];
};

/* A sealed stream of messages: one direction has one sender. */
struct wd_seal {
    uint8_t key[WD_PROOF_BYTES];
    uint64_t seq_out;
    uint64_t seq_in;
};

/* Makes a hello with a new nonce. */
int wd_hello_make(const struct wd_hello *h, uint8_t out[WD_HELLO_BYTES], struct err *err);
enum wd_hello_kind {
    WD_HELLO_OURS,
    WD_HELLO_OTHER_SEAL, /* a pgpool whose proofs and seals are of another version than ours */
    WD_HELLO_NONE        /* no pgpool's watchdog */
};
/* *h is filled in for WD_HELLO_OURS alone. */
enum wd_hello_kind wd_hello_read(const uint8_t in[WD_HELLO_BYTES], struct wd_hello *h);
/* The newest version that both speak; 0: none. */
int wd_hello_agree(const struct wd_hello *a, const struct wd_hello *b);
/* What proves that `side` knows the key. */
int wd_seal_prove(struct slice authkey, const struct wd_talk *t, enum wd_side side,
    uint8_t out[WD_PROOF_BYTES], struct err *err);
/* True when `proof` is that. */
bool wd_seal_check(
    struct slice authkey, const struct wd_talk *t, enum wd_side side, const uint8_t *proof);
/* The seal of what `side` sends and receives from now on. */
int wd_seal_begin(struct slice authkey, const struct wd_talk *t, enum wd_side side,
    struct wd_seal *seal, struct err *err);
/* Appends a sealed message. -1: no seal could be made. */
int wd_seal_put(struct wd_seal *seal, char type, struct slice body, struct buf *out);
/* Takes a message off the front of `in`: 1 and *type, *body (good until `in` changes) and *used,
 * the bytes to be consumed; 0 when it is not all there; -1 when its seal is broken. */
int wd_seal_get(
    struct wd_seal *seal, struct slice in, char *type, struct slice *body, size_t *used);

#endif
