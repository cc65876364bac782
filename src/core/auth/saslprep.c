/* SPDX-License-Identifier: PostgreSQL
 * saslprep.c: stringprep for passwords; printable ASCII passes unchanged. */
#include "config.h"

#include "auth/saslprep.h"

static bool is_printable_ascii(struct slice in)
{
    size_t i;

    for (i = 0; i < in.n; i++)
        if (in.p[i] < 0x20 || in.p[i] > 0x7e)
            return false;
    return in.n > 0;
}

int saslprep(struct slice in, struct secret *out)
{
    if (!is_printable_ascii(in))
        return -1;
    secret_set(out, in);
    return 0;
}

void saslprep_or_raw(struct slice in, struct secret *out)
{
    if (saslprep(in, out) == -1)
        secret_set(out, in);
}
