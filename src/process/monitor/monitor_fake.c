/* SPDX-License-Identifier: PostgreSQL
 * monitor_fake.c: health_check_test: losses faked by the file backend_down_request in work_dir, for
 * tests of what follows from them.
 * Runs in: monitor. A line is a number and the word "down", as for pgpool-II; probes of that server
 * fail for as long as the line is there. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/conf.h"

#include "monitor_int.h"

#define FILE_NAME "backend_down_request"
#define MAX_LINES 1024

bool monitor_fake_is_down(const struct conf_gen *gen, int id)
{
    char dir[PATH_MAX];
    char path[PATH_MAX];
    char line[128];
    char word[16];
    struct err err = {0};
    bool found = false;
    FILE *f;
    int node;
    int i;

    if (conf_path(gen, conf_of(gen)->work_dir, dir, sizeof dir, &err) == -1 ||
        snprintf(path, sizeof path, "%s/%s", dir, FILE_NAME) >= (int)sizeof path)
        return false;
    f = fopen(path, "re");
    if (f == NULL)
        return false;
    for (i = 0; i < MAX_LINES && !found && fgets(line, sizeof line, f) != NULL; i++)
        found =
            sscanf(line, "%d %15s", &node, word) == 2 && node == id && strcmp(word, "down") == 0;
    fclose(f);
    return found;
}
