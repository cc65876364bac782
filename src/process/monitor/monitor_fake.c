/* SPDX-License-Identifier: PostgreSQL
 * monitor_fake.c: health_check_test: losses faked by the file backend_down_request in work_dir, for
 * tests of what follows from them.
 * Runs in: monitor. A line is a number and the word "down", as for pgpool-II; probes of that server
 * fail for as long as the line is there. Once the server is taken to be lost the word becomes
 * "already_down", which holds until an operator attaches the server. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "config/conf.h"

#include "monitor_int.h"

#define FILE_NAME "backend_down_request"
#define MAX_LINES 1024

static bool make_path(const struct conf_gen *gen, char out[PATH_MAX])
{
    char dir[PATH_MAX];
    struct err err = {0};

    return conf_path(gen, conf_of(gen)->work_dir, dir, sizeof dir, &err) == 0 &&
           snprintf(out, PATH_MAX, "%s/%s", dir, FILE_NAME) < PATH_MAX;
}

bool monitor_fake_is_down(const struct conf_gen *gen, int id, bool already)
{
    char path[PATH_MAX];
    char line[128];
    char word[16];
    bool found = false;
    FILE *f;
    int node;
    int i;

    f = make_path(gen, path) ? fopen(path, "re") : NULL;
    if (f == NULL)
        return false;
    for (i = 0; i < MAX_LINES && !found && fgets(line, sizeof line, f) != NULL; i++)
        found = sscanf(line, "%d %15s", &node, word) == 2 && node == id &&
                (strcmp(word, "down") == 0 || (already && strcmp(word, "already_down") == 0));
    fclose(f);
    return found;
}

/* The new content, "down" of `id` replaced. */
static bool mark(FILE *f, int id, struct buf *out)
{
    char line[128];
    char word[16];
    bool changed = false;
    int node;
    int i;

    for (i = 0; i < MAX_LINES && fgets(line, sizeof line, f) != NULL; i++) {
        if (sscanf(line, "%d %15s", &node, word) == 2 && node == id && strcmp(word, "down") == 0) {
            buf_printf(out, "%d\talready_down\n", id);
            changed = true;
        } else {
            buf_put(out, line, strlen(line));
        }
    }
    return changed;
}

/* In place: a file that a test has removed must not come back. */
void monitor_fake_mark(const struct conf_gen *gen, int id)
{
    struct buf text = {0};
    char path[PATH_MAX];
    FILE *f = make_path(gen, path) ? fopen(path, "r+e") : NULL;

    if (f == NULL)
        return;
    if (mark(f, id, &text) && (fseek(f, 0, SEEK_SET) == -1 ||
                                  fwrite(text.data, 1, text.len, f) != text.len || fflush(f) != 0))
        log_at_detail(LVL_WARNING, NULL,
            "The file of commands for tests has to be writable by the user that pgpool runs as.",
            "could not write file \"%s\"", path);
    buf_free(&text);
    fclose(f);
}
