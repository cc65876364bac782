/* SPDX-License-Identifier: PostgreSQL
 * title.c: writes process titles over the command line, where the kernel looks for them.
 * Runs in: every process. File-static state: the kernel knows one such area per process. */
#include "config.h"

#include "sys/title.h"

#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/mem.h"

struct title_area {
    char *start;
    size_t size;    /* 0: not claimed */
    char **args;    /* the copy of argv, which lives as long as the process */
    char **strings; /* that of the environment; a library may have put another in its place */
};

static struct title_area area;

/* Copies the strings of a vector that lie in one run of memory behind *end, moving *end along. */
static char **copy_vector(char **v, int n, char **end)
{
    char **copy = mem_alloc_zero(((size_t)n + 1) * sizeof copy[0]);
    int i;

    for (i = 0; i < n; i++) {
        if (*end == NULL || v[i] == *end)
            *end = v[i] + strlen(v[i]) + 1;
        copy[i] = mem_strdup(v[i]);
    }
    return copy;
}

char **title_init(int argc, char **argv)
{
    char *end = NULL;
    int n = 0;

    area.args = copy_vector(argv, argc, &end);
    while (environ[n] != NULL)
        n++;
    area.strings = copy_vector(environ, n, &end);
    environ = area.strings;
    area.start = argc > 0 ? argv[0] : NULL;
    area.size = area.start == NULL ? 0 : (size_t)(end - area.start);
    return area.args;
}

void title_set(const char *text)
{
    size_t len = strlen(text);

    if (area.size < 2)
        return;
    if (len > area.size - 1)
        len = area.size - 1;
    memcpy(area.start, text, len);
    memset(area.start + len, 0, area.size - len);
}

const char *title_get(void)
{
    return area.size < 2 ? NULL : area.start;
}
