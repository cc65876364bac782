/* SPDX-License-Identifier: PostgreSQL
 * pgpool_import.c: pgpool --import-pgbouncer: reads a pgbouncer.ini and writes files of pgpool that
 * do the work of it. Runs in: the command line. No file is overwritten; what was taken over, and
 * what not and why, is printed. */
#include "config.h"

#include "bin/pgpool/pgpool_import.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "bin/pgpool/pgpool_opts.h"
#include "config/conf.h"
#include "sys/fd.h"

#define SECONDS_MAX (INT_MAX / 1000)

struct output {
    const char *name;
    const struct buf *text;
    mode_t mode;
};

/* ---- for all parts ---- */

static void say(struct imp *imp, const struct imp_item *item, const char *key, const char *verb)
{
    buf_printf(&imp->said, "%s:%d: ", item->file, item->line);
    if (strcmp(item->section, "pgbouncer") != 0)
        buf_printf(&imp->said, "[%s] %s%s", item->section, item->key, key == NULL ? "" : " ");
    else if (key == NULL)
        buf_printf(&imp->said, "%s", item->key);
    buf_printf(&imp->said, "%s%s", key == NULL ? "" : key, verb);
}

void imp_took(struct imp *imp, const struct imp_item *item, const char *key, const char *fmt, ...)
{
    va_list ap;

    say(imp, item, key, " -> ");
    va_start(ap, fmt);
    buf_vprintf(&imp->said, fmt, ap);
    va_end(ap);
    buf_put_byte(&imp->said, '\n');
}

void imp_left(struct imp *imp, const struct imp_item *item, const char *key, const char *fmt, ...)
{
    va_list ap;

    say(imp, item, key, ": not taken over: ");
    va_start(ap, fmt);
    buf_vprintf(&imp->said, fmt, ap);
    va_end(ap);
    buf_put_byte(&imp->said, '\n');
}

/* Between quotes a backslash takes the character behind it along, a quote too: such a value has no
 * line. */
int imp_put_text(struct buf *out, const char *name, const char *value)
{
    size_t n = strlen(value);
    const char *p;

    if (strstr(value, "\\'") != NULL || strstr(value, "\\\\") != NULL ||
        (n > 0 && value[n - 1] == '\\'))
        return -1;
    buf_printf(out, "%s = '", name);
    for (p = value; *p != '\0'; p++)
        buf_printf(out, *p == '\'' ? "'%c" : "%c", *p);
    buf_printf(out, "'\n");
    return 0;
}

bool imp_is_number(const char *value)
{
    return *value != '\0' && strspn(value, "0123456789") == strlen(value);
}

bool imp_is_on(const char *value)
{
    return strcmp(value, "0") != 0 && strcasecmp(value, "off") != 0 &&
           strcasecmp(value, "no") != 0 && strcasecmp(value, "false") != 0 && *value != '\0';
}

bool imp_is_pool_mode(const char *value)
{
    return strcasecmp(value, "session") == 0 || strcasecmp(value, "transaction") == 0 ||
           strcasecmp(value, "statement") == 0;
}

const char *imp_time(struct imp *imp, const char *value)
{
    char *end;
    double seconds = strtod(value, &end);

    if (!isdigit((unsigned char)*value) || *end != '\0' || !(seconds <= SECONDS_MAX))
        return NULL;
    if (imp_is_number(value))
        return arena_printf(imp->arena, "%ds", (int)seconds);
    return arena_printf(imp->arena, "%dms", (int)(seconds * 1000 + 0.5));
}

const char *imp_path(struct imp *imp, const char *path)
{
    if (*path == '/' || *path == '\0')
        return path;
    return arena_printf(imp->arena, "%s/%s", imp->folder, path);
}

/* ---- the command ---- */

/* The folder of `file`, absolute. */
static const char *folder_of(struct imp *imp, const char *file, struct err *err)
{
    char whole[PATH_MAX];
    char *slash;

    if (realpath(file, whole) == NULL) {
        err_set_errno(err, errno, "could not open \"%s\"", file);
        return NULL;
    }
    slash = strrchr(whole, '/');
    return arena_strndup(imp->arena, whole, slash == whole ? 1 : (size_t)(slash - whole));
}

static int write_new(const char *path, const struct output *o, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, o->mode);
    int rc;

    if (fd == -1) {
        bool lacks_folder = errno == ENOENT;

        err_set_errno(err, errno, "could not make \"%s\"", path);
        if (lacks_folder)
            err_hint(err, "Make the folder first, as the user that will run pgpool.");
        return -1;
    }
    rc = fd_write_all(fd, o->text->data, o->text->len);
    if (close(fd) == -1 || rc == -1) {
        err_set_errno(err, errno, "could not write \"%s\"", path);
        (void)unlink(path);
        return -1;
    }
    return 0;
}

/* All files or none: those that were made are taken away when one cannot be. */
static int write_files(struct imp *imp, const char *folder, struct err *err)
{
    const struct output outputs[] = {
        {"pgpool.conf", &imp->conf, 0640},
        {"pools.conf", &imp->pools, 0640},
        {"pool_hba.conf", &imp->hba, 0640},
        {"pool_passwd", &imp->passwd, 0600},
        {"pg_ident.conf", &imp->ident, 0640},
    };
    const char *paths[sizeof outputs / sizeof outputs[0]];
    size_t n = sizeof outputs / sizeof outputs[0];
    size_t i;

    for (i = 0; i < n; i++) {
        paths[i] = arena_printf(imp->arena, "%s/%s", folder, outputs[i].name);
        if (outputs[i].text->len > 0 && access(paths[i], F_OK) == 0) {
            err_set(err, "58P02", "\"%s\" exists, and no file is overwritten", paths[i]);
            err_hint(err, "Name another folder with --into.");
            return -1;
        }
    }
    for (i = 0; i < n; i++) {
        if (outputs[i].text->len == 0)
            continue;
        if (write_new(paths[i], &outputs[i], err) == 0) {
            buf_printf(&imp->said, "made %s\n", paths[i]);
            continue;
        }
        while (i-- > 0)
            if (outputs[i].text->len > 0)
                (void)unlink(paths[i]);
        return -1;
    }
    return 0;
}

/* The default place of the pid file is made by packages; where it is missing pgpool could not
 * start. */
static void put_pid_file(struct imp *imp)
{
    static const char least[] = "backend_hostname0 = 'a'\nbackend_port0 = 5432\n";
    struct conf_report report;
    struct conf_gen *gen;
    char *folder;

    conf_report_init(&report);
    gen = conf_load_text("defaults", slice_of_str(least), &report);
    ASSERT(gen != NULL);
    folder = arena_strdup(imp->arena, conf_of(gen)->pid_file_name);
    *strrchr(folder, '/') = '\0';
    if (access(folder, W_OK) == -1) {
        buf_printf(&imp->conf, "pid_file_name = 'pgpool.pid'\n");
        buf_printf(&imp->said,
            "pid_file_name = 'pgpool.pid' (beside pgpool.conf): \"%s\" is not there, or may not be "
            "written to\n",
            folder);
    }
    conf_gen_free(&gen);
    conf_report_fini(&report);
}

static int convert(struct imp *imp, const char *file, const char *folder, struct err *err)
{
    static const char head[] = "# Made by pgpool --import-pgbouncer.\n";

    imp->folder = folder_of(imp, file, err);
    if (imp->folder == NULL || imp_read(imp, file, err) == -1)
        return -1;
    buf_printf(&imp->conf, "%s# What PgBouncer's file says.\n", head);
    buf_printf(&imp->pools, "%s", head);
    buf_printf(&imp->hba, "%s", head);
    imp_settings(imp);
    if (imp_databases(imp, err) == -1 || imp_auth(imp, err) == -1)
        return -1;
    put_pid_file(imp);
    return write_files(imp, folder, err);
}

/* Says what is wrong with the files as they are: a value that PgBouncer allows may be out of our
 * range. */
static int check_made(struct imp *imp, const char *folder)
{
    const char *path = arena_printf(imp->arena, "%s/pgpool.conf", folder);
    char whole[PATH_MAX];
    struct conf_report report;
    struct buf out = {0};
    struct conf_gen *gen;
    int rc;

    conf_report_init(&report);
    gen = conf_load(realpath(path, whole) != NULL ? whole : path, NULL, &report);
    rc = gen == NULL ? -1 : 0;
    if (report.nerrors + report.nwarnings > 0) {
        conf_report_format(&report, &out);
        (void)fd_write_all(STDERR_FILENO, out.data, out.len);
    }
    conf_gen_free(&gen);
    conf_report_fini(&report);
    buf_free(&out);
    return rc;
}

int pgpool_import(const char *file, const char *folder)
{
    struct imp imp = {0};
    struct err err = {0};
    int rc;

    imp.arena = arena_new_secret("import", 0);
    imp.end = &imp.first;
    imp.passwd.is_secret = true;
    rc = convert(&imp, file, folder, &err);
    if (imp.said.len > 0)
        (void)fd_write_all(STDOUT_FILENO, imp.said.data, imp.said.len);
    if (rc == -1)
        log_err(LVL_FATAL, &err);
    else
        rc = check_made(&imp, folder);
    buf_free(&imp.conf);
    buf_free(&imp.pools);
    buf_free(&imp.hba);
    buf_free(&imp.ident);
    buf_free(&imp.passwd);
    buf_free(&imp.users);
    buf_free(&imp.said);
    arena_free(&imp.arena);
    return rc == -1 ? PGPOOL_EXIT_FAILED : PGPOOL_EXIT_OK;
}
