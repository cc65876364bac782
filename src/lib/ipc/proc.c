/* SPDX-License-Identifier: PostgreSQL
 * proc.c: the table of processes and process titles.
 * Runs in: every process. */
#include "config.h"

#include "ipc/proc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sys/title.h"

#define TITLE_MAX_BYTES 256
#define COPY_MAX_TRIES  1000
#define TITLE_HEAD      "pgpool: "
#define TITLE_HEAD_LEN  (sizeof TITLE_HEAD - 1)

size_t proc_table_bytes(int nslots)
{
    return (size_t)nslots * sizeof(struct proc_row);
}

int proc_nslots(const struct shm *shm)
{
    return (int)(shm_bytes(shm, SHM_PROCS) / sizeof(struct proc_row));
}

struct proc_row *proc_row(const struct shm *shm, int slot)
{
    struct proc_row *rows = shm_get(shm, SHM_PROCS);

    ASSERT(slot >= 0 && slot < proc_nslots(shm));
    return &rows[slot];
}

int proc_find(const struct shm *shm, enum proc_role role)
{
    int slot;

    for (slot = 0; slot < proc_nslots(shm); slot++)
        if (proc_row(shm, slot)->role == (int32_t)role && proc_row(shm, slot)->pid != 0)
            return slot;
    return -1;
}

void proc_row_copy(const struct shm *shm, int slot, struct proc_row *out)
{
    const struct proc_row *row = proc_row(shm, slot);
    uint32_t n;
    int tries = 0;

    do {
        n = shm_read_begin(&row->seq);
        *out = *row;
    } while (shm_read_retry(&row->seq, n) && ++tries < COPY_MAX_TRIES);
}

const char *proc_title(void)
{
    const char *text = title_get();

    return text == NULL || strncmp(text, TITLE_HEAD, TITLE_HEAD_LEN) != 0 ? NULL
                                                                          : text + TITLE_HEAD_LEN;
}

void proc_set_title(const char *fmt, ...)
{
    char text[TITLE_MAX_BYTES] = TITLE_HEAD;
    size_t used = TITLE_HEAD_LEN;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + used, sizeof text - used, fmt, ap);
    va_end(ap);
    title_set(text);
}
