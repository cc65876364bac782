/* SPDX-License-Identifier: PostgreSQL
 * sim_mail.c: the mailboxes of several processes in one: takes the place of mailbox.c. A message
 * waits in its box until its reader has a turn; a box may be full. Descriptors are duplicated, as
 * the kernel does it. */
#include "config.h"

#include "ipc/mailbox.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"

#include "sim.h"

#define MAX_SLOTS 8

struct letter {
    struct list node;
    enum mail_type type;
    int from_slot;
    int fd;
    size_t len;
    char body[];
};

/* What all processes see of one. */
struct box {
    struct list letters;
    bool has_mail;
    int fd;
};

struct post {
    struct box box[MAX_SLOTS];
    unsigned refs;
    uint32_t full_one_in;
};

struct mailboxes {
    struct post *post;
    int own_slot;
};

struct mailboxes *sim_mail_new(int nslots, int own_slot, struct mailboxes *like)
{
    struct mailboxes *m = mem_alloc_zero(sizeof *m);
    int i;

    ASSERT(nslots <= MAX_SLOTS);
    m->own_slot = own_slot;
    m->post = like == NULL ? mem_alloc_zero(sizeof *m->post) : like->post;
    m->post->refs++;
    for (i = 0; like == NULL && i < nslots; i++) {
        list_init(&m->post->box[i].letters);
        m->post->box[i].fd = sim_net_flag_fd(&m->post->box[i].has_mail);
    }
    return m;
}

static struct letter *box_pop(struct box *b)
{
    struct list *n = list_first(&b->letters);

    if (n == NULL)
        return NULL;
    list_remove(n);
    b->has_mail = !list_is_empty(&b->letters);
    return LIST_ENTRY(n, struct letter, node);
}

void sim_mail_free(struct mailboxes *m)
{
    struct post *post = m->post;
    struct letter *l;
    int i;

    mem_free(m);
    if (--post->refs > 0)
        return;
    for (i = 0; i < MAX_SLOTS; i++) {
        if (post->box[i].letters.next == NULL)
            continue;
        while ((l = box_pop(&post->box[i])) != NULL) {
            if (l->fd != -1)
                close(l->fd);
            mem_free(l);
        }
        close(post->box[i].fd);
    }
    mem_free(post);
}

void sim_mail_set_full(struct mailboxes *m, uint32_t one_in)
{
    m->post->full_one_in = one_in;
}

int mailboxes_own_fd(const struct mailboxes *m)
{
    return m->post->box[m->own_slot].fd;
}

int mailbox_post(
    struct mailboxes *m, int to_slot, enum mail_type type, const void *body, size_t len, int fd)
{
    struct box *b = &m->post->box[to_slot];
    struct letter *l;

    ASSERT(to_slot >= 0 && to_slot < MAX_SLOTS && b->letters.next != NULL);
    ASSERT((unsigned)type < MAIL_TYPE_COUNT && len <= MAILBOX_MAX_BYTES);
    if (sim_one_in(m->post->full_one_in)) {
        sim_note("mail %s to slot %d: the box is full", mail_name(type), to_slot);
        errno = EAGAIN;
        return -1;
    }
    l = mem_alloc(sizeof *l + len);
    list_init(&l->node);
    l->type = type;
    l->from_slot = m->own_slot;
    l->fd = fd == -1 ? -1 : sim_net_dup(fd);
    l->len = len;
    if (len > 0)
        memcpy(l->body, body, len);
    list_push_back(&b->letters, &l->node);
    b->has_mail = true;
    return 0;
}

int mailbox_take(struct mailboxes *m, struct mail *out)
{
    struct letter *l = box_pop(&m->post->box[m->own_slot]);

    if (l == NULL)
        return 0;
    out->type = l->type;
    out->from_slot = l->from_slot;
    out->fd = l->fd;
    out->len = l->len;
    memcpy(out->body, l->body, l->len);
    mem_free(l);
    return 1;
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
