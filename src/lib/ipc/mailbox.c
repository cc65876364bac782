/* SPDX-License-Identifier: PostgreSQL
 * mailbox.c: typed messages between our processes over socketpairs.
 * Runs in: every process. Both ends of a box are shared by many processes: nothing here may change
 * a mode of the open socket after mailboxes_open, and every call says MSG_DONTWAIT for itself. */
#include "config.h"

#include "ipc/mailbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"

#define MAILBOX_SEND_BYTES (1024 * 1024) /* wanted room for what waits in one box */
#define DRAIN_MAX          100000

struct mailboxes {
    int nslots;
    int own_slot;
    int *send_fd; /* by slot */
    int *recv_fd; /* by slot, -1 where it is not ours to read */
};

/* In front of each message. */
struct mail_header {
    uint32_t type;
    int32_t from_slot;
};

static int open_box(struct mailboxes *m, int slot, struct err *err)
{
    int ends[2];
    int bytes = MAILBOX_SEND_BYTES;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == -1) {
        err_set_errno(err, errno, "could not make the mailbox of process slot %d", slot);
        if (errno == EMFILE)
            err_hint(err, "Raise the limit of open files (ulimit -n) or lower num_init_children.");
        return -1;
    }
    if (setsockopt(ends[1], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) == -1)
        setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    m->recv_fd[slot] = ends[0];
    m->send_fd[slot] = ends[1];
    return 0;
}

struct mailboxes *mailboxes_open(int nslots, struct err *err)
{
    struct mailboxes *m = mem_alloc_zero(sizeof *m);
    int i;

    m->nslots = nslots;
    m->own_slot = 0;
    m->send_fd = mem_alloc((size_t)nslots * sizeof(int));
    m->recv_fd = mem_alloc((size_t)nslots * sizeof(int));
    for (i = 0; i < nslots; i++) {
        m->send_fd[i] = -1;
        m->recv_fd[i] = -1;
    }
    for (i = 0; i < nslots; i++) {
        if (open_box(m, i, err) == -1) {
            mailboxes_close(&m);
            return NULL;
        }
    }
    return m;
}

void mailboxes_close(struct mailboxes **mp)
{
    struct mailboxes *m = *mp;
    int i;

    if (m == NULL)
        return;
    for (i = 0; i < m->nslots; i++) {
        if (m->send_fd[i] != -1)
            close(m->send_fd[i]);
        if (m->recv_fd[i] != -1)
            close(m->recv_fd[i]);
    }
    mem_free(m->send_fd);
    mem_free(m->recv_fd);
    mem_free(m);
    *mp = NULL;
}

int mailboxes_attach(struct mailboxes *m, int own_slot)
{
    int i;

    ASSERT(own_slot >= 0 && own_slot < m->nslots);
    m->own_slot = own_slot;
    for (i = 0; i < m->nslots; i++) {
        if (i == own_slot || m->recv_fd[i] == -1)
            continue;
        close(m->recv_fd[i]);
        m->recv_fd[i] = -1;
    }
    return m->recv_fd[own_slot];
}

int mailboxes_own_fd(const struct mailboxes *m)
{
    return m->recv_fd[m->own_slot];
}

int mailboxes_list_fds(const struct mailboxes *m, int own_slot, int *fds, int max)
{
    int n = 0;
    int i;

    for (i = 0; i < m->nslots && n < max; i++)
        fds[n++] = m->send_fd[i];
    if (n < max)
        fds[n++] = m->recv_fd[own_slot];
    return n;
}

/* Room for the descriptor that a message may carry, aligned as the kernel wants it. */
union fd_room {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static void attach_fd(struct msghdr *msg, union fd_room *room, int fd)
{
    struct cmsghdr *c;

    memset(room, 0, sizeof *room);
    msg->msg_control = room->bytes;
    msg->msg_controllen = sizeof room->bytes;
    c = CMSG_FIRSTHDR(msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

int mailbox_post(
    struct mailboxes *m, int to_slot, enum mail_type type, const void *body, size_t len, int fd)
{
    struct mail_header head = {.type = (uint32_t)type, .from_slot = m->own_slot};
    struct iovec part[2];
    struct msghdr msg = {.msg_iov = part, .msg_iovlen = 2};
    union fd_room room;
    ssize_t n;

    ASSERT(to_slot >= 0 && to_slot < m->nslots);
    ASSERT((unsigned)type < MAIL_TYPE_COUNT && len <= MAILBOX_MAX_BYTES);
    part[0].iov_base = &head;
    part[0].iov_len = sizeof head;
    part[1].iov_base = (void *)(uintptr_t)body;
    part[1].iov_len = len;
    if (fd != -1)
        attach_fd(&msg, &room, fd);
    do {
        n = sendmsg(m->send_fd[to_slot], &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n == -1 && errno == EINTR);
    return n == -1 ? -1 : 0;
}

/* Takes the descriptor out of a received message, -1 when there is none. */
static int detach_fd(struct msghdr *msg)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    int fd = -1;

    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

static int take_from(int recv_fd, struct mail *out)
{
    struct mail_header head;
    struct iovec part[2];
    struct msghdr msg = {.msg_iov = part, .msg_iovlen = 2};
    union fd_room room;
    ssize_t n;

    part[0].iov_base = &head;
    part[0].iov_len = sizeof head;
    part[1].iov_base = out->body;
    part[1].iov_len = sizeof out->body;
    msg.msg_control = room.bytes;
    msg.msg_controllen = sizeof room.bytes;
    out->fd = -1;
    do {
        n = recvmsg(recv_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n == -1 && errno == EINTR);
    if (n == -1 && errno == EAGAIN)
        return 0;
    if (n == -1 || n == 0)
        return -1;
    out->fd = detach_fd(&msg);
    if (n < (ssize_t)sizeof head || (msg.msg_flags & MSG_TRUNC) != 0 ||
        head.type >= MAIL_TYPE_COUNT) {
        if (out->fd != -1)
            close(out->fd);
        out->fd = -1;
        errno = EPROTO;
        return -1;
    }
    out->type = (enum mail_type)head.type;
    out->from_slot = head.from_slot;
    out->len = (size_t)n - sizeof head;
    return 1;
}

int mailbox_take(struct mailboxes *m, struct mail *out)
{
    return take_from(m->recv_fd[m->own_slot], out);
}

void mailbox_drain(struct mailboxes *m, int slot)
{
    struct mail mail;
    int i;

    for (i = 0; i < DRAIN_MAX; i++) {
        int rc = take_from(m->recv_fd[slot], &mail);

        if (rc == 0 || (rc == -1 && errno != EPROTO))
            return;
        if (mail.fd != -1)
            close(mail.fd);
    }
}

static const char *const mail_names[] = {
#define MAIL(sym, sender, receiver, carries_fd, text) #sym,
#include "ipc/messages.def"
#undef MAIL
};

const char *mail_name(enum mail_type type)
{
    return (unsigned)type < MAIL_TYPE_COUNT ? mail_names[type] : "unknown";
}
