/* SPDX-License-Identifier: PostgreSQL
 * sim_cancel.c: cancel requests on their way, each on a connection of its own that says nothing and
 * is closed when the other side has closed it. */
#include "config.h"

#include "sim_world.h"

#include <string.h>

#include "wire/proto.h"
#include "wire/writer.h"

#define MAX_CANCELLERS 32
static struct sim_sock *cancellers[MAX_CANCELLERS];

void cancels_start(void)
{
    memset(cancellers, 0, sizeof cancellers);
}

bool cancels_are_done(void)
{
    int i;

    for (i = 0; i < MAX_CANCELLERS; i++)
        if (cancellers[i] != NULL)
            return false;
    return true;
}

bool cancels_are_ready(void)
{
    int i;

    for (i = 0; i < MAX_CANCELLERS; i++)
        if (cancellers[i] != NULL && sim_sock_is_over(cancellers[i]))
            return true;
    return false;
}

void cancels_step(void)
{
    int i;

    for (i = 0; i < MAX_CANCELLERS; i++)
        if (cancellers[i] != NULL && sim_sock_is_over(cancellers[i]))
            sim_sock_close(&cancellers[i], false);
}

bool cancels_send(int pid, uint32_t key)
{
    struct buf packet = {0};
    int fd;
    int i;

    for (i = 0; i < MAX_CANCELLERS; i++) {
        if (cancellers[i] != NULL)
            continue;
        cancellers[i] = sim_sock_connect(&fd);
        buf_put_u32(&packet, 16);
        buf_put_u32(&packet, PROTO_CANCEL);
        buf_put_u32(&packet, (uint32_t)pid);
        buf_put_u32(&packet, key);
        sim_sock_put(cancellers[i], packet.data, packet.len);
        buf_free(&packet);
        workers_add_client(fd);
        return true;
    }
    return false;
}
