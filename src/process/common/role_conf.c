/* SPDX-License-Identifier: PostgreSQL
 * role_conf.c: how a process takes over a configuration generation.
 * Runs in: every process. */
#include "config.h"

#include "process/common/role_conf.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "sys/logdest.h"

#define CONF_TEXT_MAX_BYTES (64 * 1024 * 1024)

void role_conf_apply_log(const struct conf *conf)
{
    struct logdest_opts opts = {
        .to_stderr = (conf->log_destination & CONF_LOG_TO_STDERR) != 0,
        .to_jsonlog = (conf->log_destination & CONF_LOG_TO_JSONLOG) != 0,
        .to_syslog = (conf->log_destination & CONF_LOG_TO_SYSLOG) != 0,
        .syslog_facility = (int)conf->syslog_facility,
        .syslog_ident = conf->syslog_ident,
    };

    logdest_configure(&opts);
    log_configure(conf->log_line_prefix, conf->log_min_messages, (int)conf->log_error_verbosity);
    log_set_json(conf->log_format == CONF_LOG_JSON);
    log_set_client_limit((unsigned)conf->log_client_limit);
}

static enum log_level level_of(enum conf_severity severity)
{
    switch (severity) {
    case CONF_ERROR:
        return LVL_ERROR;
    case CONF_WARNING:
        return LVL_WARNING;
    case CONF_NOTE:
        break;
    }
    return LVL_INFO;
}

void role_conf_log_report(const struct conf_report *report)
{
    int i;

    for (i = 0; i < report->n; i++) {
        const struct conf_issue *issue = &report->issue[i];
        enum log_level level = level_of(issue->severity);

        if (issue->file == NULL)
            log_at_detail(level, NULL, issue->hint, "%s", issue->text);
        else if (issue->line == 0) /* the file as a whole */
            log_at_detail(level, NULL, issue->hint, "%s: %s", issue->file, issue->text);
        else
            log_at_detail(
                level, NULL, issue->hint, "%s:%d: %s", issue->file, issue->line, issue->text);
    }
}

/* The file's position is shared by all processes that got it: only pread is safe. */
static int read_text(int fd, char *text, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = pread(fd, text + done, size - done, (off_t)done);

        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        done += (size_t)n;
    }
    return 0;
}

/* The supervisor has checked the text: any finding now is a bug worth its first line. */
static struct conf_gen *parse_text(struct slice text, struct err *err)
{
    struct conf_report report;
    struct conf_gen *gen;

    conf_report_init(&report);
    gen = conf_load_canonical(text, &report);
    if (gen == NULL)
        err_set(err, "F0000", "the new configuration could not be read: %s",
            report.n > 0 ? report.issue[0].text : "no reason given");
    conf_report_fini(&report);
    return gen;
}

struct conf_gen *role_conf_read(int fd, struct err *err)
{
    struct conf_gen *gen = NULL;
    struct stat st;
    char *text;

    if (fd == -1 || fstat(fd, &st) == -1 || st.st_size > CONF_TEXT_MAX_BYTES) {
        err_set(err, "F0000", "the new configuration came without its text");
        if (fd != -1)
            close(fd);
        return NULL;
    }
    text = mem_alloc((size_t)st.st_size + 1);
    if (read_text(fd, text, (size_t)st.st_size) == -1)
        err_set_errno(err, errno, "could not read the new configuration");
    else
        gen = parse_text(slice_of(text, (size_t)st.st_size), err);
    mem_wipe(text, (size_t)st.st_size);
    mem_free(text);
    close(fd);
    return gen;
}

void role_conf_stand_beside(const struct conf_gen *gen, char left[PROC_PATH_BYTES])
{
    if (left != NULL && getcwd(left, PROC_PATH_BYTES) == NULL)
        left[0] = '\0';
    if (chdir(conf_base_dir(gen)) == -1)
        log_at_detail(LVL_WARNING, NULL,
            "Relative names of files are looked for elsewhere now: the rights of that folder.",
            "could not change to folder \"%s\": %s", conf_base_dir(gen), strerror(errno));
}
