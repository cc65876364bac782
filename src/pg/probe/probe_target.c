/* SPDX-License-Identifier: PostgreSQL
 * probe_target.c: whom to ask, in a copy that outlives the settings it came from.
 * Runs in: monitor, control. A reload may come while a name is resolved or a connection is opened.
 */
#include "config.h"

#include "probe/probe.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"

/* All strings but the password, which is wiped. */
static const size_t fields[] = {
    offsetof(struct probe_target, host),
    offsetof(struct probe_target, user),
    offsetof(struct probe_target, database),
    offsetof(struct probe_target, sslmode),
    offsetof(struct probe_target, sslrootcert),
    offsetof(struct probe_target, sslcrl),
    offsetof(struct probe_target, sslcert),
    offsetof(struct probe_target, sslkey),
    offsetof(struct probe_target, ssl_min),
};

#define NFIELDS (sizeof fields / sizeof fields[0])

static const char **field(struct probe_target *t, size_t i)
{
    return (const char **)(void *)((char *)t + fields[i]);
}

void probe_target_copy(struct probe_target *to, const struct probe_target *from)
{
    size_t n = strlen(from->password) + 1;
    char *password = mem_alloc_secret(n);
    size_t i;

    memcpy(password, from->password, n);
    *to = *from;
    to->password = password;
    for (i = 0; i < NFIELDS; i++)
        *field(to, i) = mem_strdup(*field(to, i));
}

void probe_target_free(struct probe_target *t)
{
    size_t i;

    for (i = 0; i < NFIELDS; i++)
        mem_free((void *)(uintptr_t)*field(t, i));
    mem_free_secret((void *)(uintptr_t)t->password);
    memset(t, 0, sizeof *t);
}
