/* SPDX-License-Identifier: PostgreSQL
 * mailbox.h: typed messages between our processes.
 * Runs in: every process. Each process slot has a SOCK_SEQPACKET socketpair made before fork by the
 * supervisor; everybody inherits every sending end, only the owner (and the supervisor, for the
 * next owner) the receiving end. A message is at most MAILBOX_MAX_BYTES and may carry one
 * descriptor. Posting never blocks: a full box is an error the caller handles (count it, retry
 * later). */
#ifndef PGP_IPC_MAILBOX_H
#define PGP_IPC_MAILBOX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define MAILBOX_MAX_BYTES 65536

enum mail_type {
#define MAIL(sym, sender, receiver, carries_fd, text) MAIL_##sym,
#include "ipc/messages.def"
#undef MAIL
    MAIL_TYPE_COUNT
};

struct mail {
    enum mail_type type;
    int from_slot;
    int fd; /* -1 when none; the receiver owns it */
    size_t len;
    char body[MAILBOX_MAX_BYTES];
};

struct mailboxes;

/* Makes boxes for `nslots` process slots. Supervisor, before the first fork. */
struct mailboxes *mailboxes_open(int nslots, struct err *err);
/* Closes all of it and clears *mp. */
void mailboxes_close(struct mailboxes **mp);
/* In a child: keeps the receiving end of `own_slot` only. Returns that descriptor (non-blocking).
 */
int mailboxes_attach(struct mailboxes *m, int own_slot);
/* The receiving end of this process: slot 0's until mailboxes_attach. */
int mailboxes_own_fd(const struct mailboxes *m);
/* Every descriptor a child must keep, for the inherit list; returns how many were written. */
int mailboxes_list_fds(const struct mailboxes *m, int own_slot, int *fds, int max);
/* Sends; `fd` is -1 or is duplicated to the receiver (the caller still closes its own). Returns 0,
 * or -1 when the box is full or its reader is gone (errno is kept). */
int mailbox_post(
    struct mailboxes *m, int to_slot, enum mail_type type, const void *body, size_t len, int fd);
/* Takes one message. Returns 1 got one, 0 none waiting, -1 broken: with errno EPROTO only this
 * message is (it is gone), else the box. */
int mailbox_take(struct mailboxes *m, struct mail *out);
/* Throws away what waits for `slot`, closing descriptors: supervisor, when the slot's process died.
 */
void mailbox_drain(struct mailboxes *m, int slot);
/* The symbol of a message, for log lines. */
const char *mail_name(enum mail_type type);

#endif
