/* SPDX-License-Identifier: PostgreSQL
 * web_log.c: the end of the log, for operators: statements and addresses stand in it.
 * Runs in: web. The file is the one in log_directory that was written last of those whose names
 * log_filename makes: the folder may be that of others, too. Without the collector there is none
 * here, and the answer says where the log is. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "web_api.h"
#include "web_json.h"
#include "web_login.h"

#define STATUS_FORBIDDEN 403
#define TAIL_BYTES       (64 << 10)
#define PATH_BYTES       1024
#define GLOB_BYTES       1024

struct newest {
    int fd; /* -1: none was found */
    char name[256];
    struct timespec at;
    off_t size;
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Links are not followed: only what the collector itself writes is shown. */
static void consider(struct newest *best, int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd == -1)
        return;
    if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
        (best->fd != -1 && !is_later(&st.st_mtim, &best->at))) {
        close(fd);
        return;
    }
    if (best->fd != -1)
        close(best->fd);
    best->fd = fd;
    best->at = st.st_mtim;
    best->size = st.st_size;
    snprintf(best->name, sizeof best->name, "%s", name);
}

/* What strftime makes of `pattern`, as fnmatch knows it: whatever it fills in may be anything. */
static void make_glob(const char *pattern, char glob[GLOB_BYTES])
{
    size_t n = 0;

    for (; *pattern != '\0' && n + 2 < GLOB_BYTES; pattern++) {
        if (*pattern == '%' && pattern[1] != '\0' && pattern[1] != '%') {
            pattern += 1 + strspn(pattern + 1, "EO_-0^#"); /* modifiers in front of the letter */
            glob[n++] = '*';
            if (*pattern == '\0')
                break;
            continue;
        }
        if (*pattern == '%' && pattern[1] == '%')
            pattern++;
        if (strchr("*?[\\", *pattern) != NULL)
            glob[n++] = '\\';
        glob[n++] = *pattern;
    }
    glob[n] = '\0';
}

static void find_newest(const char *path, const char *pattern, struct newest *best)
{
    DIR *folder = opendir(path);
    char glob[GLOB_BYTES];
    struct dirent *entry;

    if (folder == NULL)
        return;
    make_glob(pattern, glob);
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.' && fnmatch(glob, entry->d_name, 0) == 0)
            consider(best, dirfd(folder), entry->d_name);
    closedir(folder);
}

/* Whole lines: of the first one in `text` only its end may be there. */
static struct slice whole_lines(struct slice text, bool is_cut)
{
    const char *line = is_cut ? memchr(text.p, '\n', text.n) : NULL;

    if (line == NULL)
        return text;
    return slice_of(line + 1, (size_t)(text.p + text.n - line - 1));
}

static void put_tail(struct web_json *j, const struct newest *file)
{
    off_t from = file->size > TAIL_BYTES ? file->size - TAIL_BYTES : 0;
    struct buf text = {0};
    char *room = buf_reserve(&text, TAIL_BYTES);
    ssize_t n = pread(file->fd, room, TAIL_BYTES, from);

    web_json_member(j, "file", file->name);
    web_json_key(j, "text");
    web_json_text(j, whole_lines(slice_of(room, n > 0 ? (size_t)n : 0), from > 0));
    buf_free(&text);
}

void web_log_page(const struct web_request *r, struct web_answer *a)
{
    const struct conf_gen *gen = role_loop_gen(&r->web->role);
    struct web_json j = {.out = &a->body};
    struct newest file = {.fd = -1};
    char path[PATH_BYTES];
    struct err err = {0};

    if (!r->who->is_operator) {
        web_answer_text(a, STATUS_FORBIDDEN, "the log is for operators (http_operators)\n");
        return;
    }
    if (conf_of(gen)->logging_collector &&
        conf_path(gen, conf_of(gen)->log_directory, path, sizeof path, &err) == 0)
        find_newest(path, conf_of(gen)->log_filename, &file);
    web_json_open(&j, '{');
    if (file.fd != -1) {
        put_tail(&j, &file);
        close(file.fd);
    }
    web_json_key(&j, "collector");
    web_json_bool(&j, conf_of(gen)->logging_collector);
    web_json_close(&j, '}');
    a->type = WEB_TYPE_JSON;
}
