/* SPDX-License-Identifier: PostgreSQL
 * conf_read.c: reads a file of settings and what it includes; sorts values to their parameters.
 * Runs in: every process, while a file is read. It goes on after every error, so that all of them
 * are reported at once; values themselves are judged later, when it is known which of several wins.
 */
#include "config.h"

#include "conf_int.h"
#include "conf_lex.h"

#include "base/arena.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One open file, and the one that includes it. */
struct conf_source {
    const char *name;
    int depth;
    dev_t dev;
    ino_t ino;
    const struct conf_source *from;
};

static void conf_read_source(
    struct conf_reading *load, const struct conf_source *source, struct slice text);

/* Reads the whole of `fd` into heap memory. */
static int conf_slurp(
    int fd, const char *path, size_t size_hint, char **out, size_t *n_r, struct err *err)
{
    size_t cap = size_hint + 4096;
    size_t n = 0;
    char *text = mem_alloc(cap);
    for (;;) {
        if (n == cap) {
            cap *= 2;
            text = mem_resize(text, cap);
        }
        ssize_t got = read(fd, text + n, cap - n);
        if (got == 0)
            break;
        if (got == -1 && errno == EINTR)
            continue;
        if (got == -1) {
            err_set_errno(err, errno, "could not read configuration file \"%s\"", path);
            mem_free(text);
            return -1;
        }
        n += (size_t)got;
        if (n > CONF_MAX_FILE_SIZE) {
            err_set(err, "F0000", "configuration file \"%s\" is larger than %d MB", path,
                CONF_MAX_FILE_SIZE >> 20);
            mem_free(text);
            return -1;
        }
    }
    *out = text;
    *n_r = n;
    return 0;
}

/* Opens `source->name`, fills in which file it is, and reads it. */
static int conf_open_source(struct conf_source *source, char **text, size_t *n, struct err *err)
{
    struct stat st;
    int result = -1;
    int fd = open(source->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd == -1) {
        int why = errno;
        err_set_errno(err, why, "could not open configuration file \"%s\"", source->name);
        err_hint(err, why == EACCES ? "Give the user who runs pgpool the right to read it."
                                    : "Check the name; pgpool does not start without its file.");
        return -1;
    }
    if (fstat(fd, &st) == -1) {
        err_set_errno(err, errno, "could not read configuration file \"%s\"", source->name);
    } else if (!S_ISREG(st.st_mode)) {
        err_set(err, "F0000", "configuration file \"%s\" is not a regular file", source->name);
    } else {
        source->dev = st.st_dev;
        source->ino = st.st_ino;
        size_t hint = st.st_size > CONF_MAX_FILE_SIZE ? 0 : (size_t)st.st_size;
        result = conf_slurp(fd, source->name, hint, text, n, err);
    }
    close(fd);
    return result;
}

int conf_read_whole(const char *path, char **text, size_t *n, struct err *err)
{
    struct conf_source source = {.name = path};

    return conf_open_source(&source, text, n, err);
}

static bool conf_is_in_chain(const struct conf_source *source)
{
    for (const struct conf_source *s = source->from; s != NULL; s = s->from)
        if (s->dev == source->dev && s->ino == source->ino && s->ino != 0)
            return true;
    return false;
}

/* The name of an included file: relative ones begin at the folder of the including file. */
static const char *conf_include_name(
    struct conf_reading *load, const struct conf_source *from, const char *name)
{
    const char *slash = strrchr(from->name, '/');
    if (name[0] == '/' || slash == NULL)
        return arena_strdup(load->gen->arena, name);
    return arena_printf(load->gen->arena, "%.*s/%s", (int)(slash - from->name), from->name, name);
}

static void conf_read_include(
    struct conf_reading *load, const struct conf_source *from, int line, const char *name)
{
    struct err err = {0};
    struct conf_source source = {.depth = from->depth + 1, .from = from};
    char *text = NULL;
    size_t n = 0;
    if (name[0] == '\0') {
        conf_report_add(load->report, CONF_ERROR, from->name, line,
            "Give the name of a file: include = 'file'.", "include names no file");
        return;
    }
    if (source.depth > CONF_MAX_INCLUDE) {
        conf_report_add(load->report, CONF_ERROR, from->name, line,
            "Files may include each other at most 10 deep.",
            "could not open configuration file \"%s\": maximum nesting depth exceeded", name);
        return;
    }
    if (++load->nincludes > CONF_MAX_INCLUDES) {
        if (load->nincludes == CONF_MAX_INCLUDES + 1)
            conf_report_add(load->report, CONF_ERROR, from->name, line,
                "Files that include each other many times multiply.",
                "more than %d files are included", CONF_MAX_INCLUDES);
        return;
    }
    source.name = conf_include_name(load, from, name);
    if (conf_open_source(&source, &text, &n, &err) == -1) {
        conf_report_err(load->report, CONF_ERROR, from->name, line, &err);
        return;
    }
    if (conf_is_in_chain(&source))
        conf_report_add(load->report, CONF_ERROR, from->name, line,
            "Take the line out, or name another file.", "configuration file \"%s\" includes itself",
            source.name);
    else
        conf_read_source(load, &source, slice_of(text, n));
    mem_wipe(text, n); /* passwords */
    mem_free(text);
}

/* A name that is not in the table. */
static void conf_read_unknown(
    struct conf_reading *load, const char *file, int line, const char *name, const struct err *err)
{
    char near[CONF_NAME_SIZE];
    char hint[CONF_NAME_SIZE + 128];
    const char *found = strlen(name) < CONF_NAME_SIZE ? conf_near_name(name, near) : NULL;
    if (err->detail[0] != '\0') { /* a number too large */
        conf_report_err(load->report, CONF_ERROR, file, line, err);
        return;
    }
    snprintf(hint, sizeof(hint), "Did you mean \"%s\"? The line is passed over.", near);
    conf_report_add(load->report, CONF_WARNING, file, line,
        found != NULL ? hint : "The line is passed over.",
        "unrecognized configuration parameter \"%.64s%s\"", name, strlen(name) > 64 ? "..." : "");
}

/* A later line takes the place of this value, which is no reason to pass over a mistake in it. One
 * in another file, or of the command line, is there for that; one in the same file is a slip. */
static void conf_check_replaced(struct conf_reading *load, const struct conf_ref *ref,
    const struct conf_slot *slot, const char *file, int line)
{
    struct err err = {0};
    char name[CONF_NAME_SIZE];
    struct arena *a = load->gen->arena;
    void *unused = arena_alloc(a, conf_value_size(ref->param));

    conf_ref_name(ref, name);
    if (conf_value_parse(a, ref->param, name, slot->value, unused, &err) == -1)
        conf_report_err(load->report, CONF_ERROR, slot->file, slot->line, &err);
    if (strcmp(slot->file, file) == 0 && slot->line != line)
        conf_report_add(load->report, CONF_WARNING, slot->file, slot->line,
            "The last line that names it counts. Take the others out.",
            "parameter \"%s\" is set here and again in line %d", name, line);
}

static void conf_read_item(
    struct conf_reading *load, const char *file, int line, const struct conf_item *item)
{
    struct err err = {0};
    struct conf_ref ref;
    const struct conf_alias *alias = conf_alias_find(item->name);
    if (alias != NULL && alias->new_name == NULL) {
        conf_report_add(load->report, CONF_WARNING, file, line, alias->hint,
            "parameter \"%s\" was removed from pgpool-II and is passed over", item->name);
        if (load->old_mode == NULL || strcmp(load->old_mode->old_name, item->name) == 0) {
            load->old_mode = conf_refused_find(item->name, item->value);
            load->old_mode_at = (struct conf_slot){item->value, file, line};
        }
        return;
    }
    if (alias != NULL)
        conf_report_add(load->report, CONF_WARNING, file, line, NULL,
            "parameter \"%s\" is an old name; use \"%s\"", item->name, alias->new_name);
    if (conf_param_find(item->name, &ref, &err) == -1) {
        conf_read_unknown(load, file, line, item->name, &err);
        return;
    }
    if (ref.index < 0 && ref.param->scope != CONF_SCOPE_GLOBAL) {
        conf_report_add(load->report, CONF_ERROR, file, line,
            "Add a number from 0 on, as in the sample file.",
            "parameter \"%s\" needs a number, such as %s0", item->name, ref.param->name);
        return;
    }
    struct conf_slot *slot = &load->slot[load->slot_base[conf_param_ordinal(ref.param)] +
                                         (ref.index < 0 ? 0 : ref.index)];
    if (slot->value != NULL)
        conf_check_replaced(load, &ref, slot, file, line);
    slot->value = item->value;
    slot->file = file;
    slot->line = line;
}

static void conf_read_source(
    struct conf_reading *load, const struct conf_source *source, struct slice text)
{
    struct conf_lex lx;
    struct conf_item item;
    conf_lex_init(&lx, text);
    for (;;) {
        struct err err = {0};
        int got = conf_lex_next(&lx, load->gen->arena, &item, &err);
        if (got == 0)
            return;
        if (got == -1)
            conf_report_err(load->report, CONF_ERROR, source->name, lx.line, &err);
        else if (strcasecmp(item.name, "include") == 0)
            conf_read_include(load, source, lx.line, item.value);
        else
            conf_read_item(load, source->name, lx.line, &item);
    }
}

int conf_read_file(struct conf_reading *load, const char *path)
{
    struct err err = {0};
    struct conf_source source = {.name = path};
    char *text = NULL;
    size_t n = 0;
    if (conf_open_source(&source, &text, &n, &err) == -1) {
        conf_report_err(load->report, CONF_ERROR, path, 0, &err);
        return -1;
    }
    conf_read_source(load, &source, slice_of(text, n));
    mem_wipe(text, n); /* passwords */
    mem_free(text);
    return 0;
}

void conf_read_text(struct conf_reading *load, const char *name, struct slice text)
{
    struct conf_source source = {.name = name};
    conf_read_source(load, &source, text);
}
