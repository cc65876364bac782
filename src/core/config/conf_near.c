/* SPDX-License-Identifier: PostgreSQL
 * conf_near.c: the known parameter most like a mistyped one.
 * Runs in: every process, while a file is read. Two letters exchanged, a wrong, a missing and a
 * needless one each count as one difference. */
#include "config.h"

#include "conf_int.h"

#include <stdio.h>
#include <string.h>

static int conf_near_min(int a, int b)
{
    return a < b ? a : b;
}

/* Number of differences between `a` and `b`, both shorter than CONF_NAME_SIZE. */
static int conf_near_distance(const char *a, const char *b)
{
    int row[3][CONF_NAME_SIZE + 1];
    int na = (int)strlen(a);
    int nb = (int)strlen(b);
    for (int j = 0; j <= nb; j++)
        row[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *now = row[i % 3];
        const int *up = row[(i + 2) % 3];
        const int *up2 = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            now[j] = conf_near_min(
                conf_near_min(up[j], now[j - 1]) + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = conf_near_min(now[j], up2[j - 2] + 1);
        }
    }
    return row[na % 3][nb];
}

const char *conf_near_name(const char *name, char *out)
{
    size_t n = strlen(name);
    if (n < 3 || n >= CONF_NAME_SIZE)
        return NULL;
    size_t base_len = n;
    while (base_len > 0 && name[base_len - 1] >= '0' && name[base_len - 1] <= '9')
        base_len--;
    char base[CONF_NAME_SIZE];
    memcpy(base, name, base_len);
    base[base_len] = '\0';
    const char *number = name + base_len;
    while (number[0] == '0' && number[1] != '\0')
        number++; /* a needless zero makes a name unknown */

    int best = conf_near_min(4, (int)n / 3) + 1;
    const char *found = NULL;
    int nparams;
    const struct conf_param *t = conf_param_table(&nparams);
    for (int i = 0; i < nparams; i++) {
        if ((t[i].flags & CONF_NO_SHOW) != 0)
            continue;
        bool numbered = t[i].scope != CONF_SCOPE_GLOBAL && base_len < n;
        int d = conf_near_distance(numbered ? base : name, t[i].name);
        if (d >= best)
            continue;
        best = d;
        found = out;
        snprintf(out, CONF_NAME_SIZE, "%s%s", t[i].name,
            t[i].scope == CONF_SCOPE_GLOBAL ? "" : (numbered ? number : "0"));
    }
    return found;
}
