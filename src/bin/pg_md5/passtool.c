/* SPDX-License-Identifier: PostgreSQL
 * passtool.c: terminal, input files and pool_passwd for pg_md5 and pg_enc. */
#include "config.h"

#include "passtool.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "auth/passwd.h"
#include "base/mem.h"
#include "config/conf.h"

#define LINE_BYTES 4096

bool passtool_ask(const char *prompt, struct secret *out)
{
    char line[LINE_BYTES];
    struct termios old;
    struct termios quiet;
    char *got;

    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &old) == -1) {
        fprintf(stderr, "stdin is not tty\n");
        return false;
    }
    quiet = old;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    printf("%s: ", prompt);
    fflush(stdout);
    got = fgets(line, sizeof line, stdin);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
    printf("\n");
    if (got == NULL) {
        fprintf(stderr, "nothing was typed\n");
        return false;
    }
    secret_set(out, slice_of(line, strcspn(line, "\r\n")));
    mem_wipe(line, sizeof line);
    return true;
}

const char *passtool_os_user(void)
{
    const struct passwd *pw = getpwuid(geteuid());

    return pw == NULL ? NULL : pw->pw_name;
}

void passtool_take_arg(char *arg, struct secret *out)
{
    secret_set(out, slice_of_str(arg));
    mem_wipe(arg, strlen(arg));
}

bool passtool_pool_passwd(const char *conf_file, struct buf *path)
{
    struct conf_report report;
    struct conf_gen *gen;
    struct buf text = {0};
    struct err err = {0};
    char full[4096];
    bool ok = false;

    conf_report_init(&report);
    gen = conf_load(conf_file == NULL ? SYSCONFDIR "/pgpool.conf" : conf_file, NULL, &report);
    if (gen == NULL) {
        conf_report_format(&report, &text);
        fprintf(stderr, "%.*s\nUnable to get configuration. Exiting...\n\n", (int)text.len,
            text.data == NULL ? "" : text.data);
    } else if (conf_of(gen)->pool_passwd[0] == '\0') {
        fprintf(stderr, "the settings name no pool_passwd file\n");
    } else if (conf_path(gen, conf_of(gen)->pool_passwd, full, sizeof full, &err) == -1) {
        fprintf(stderr, "%s\n", err.msg);
    } else {
        buf_put_cstr(path, full);
        ok = true;
    }
    buf_free(&text);
    conf_gen_free(&gen);
    conf_report_fini(&report);
    return ok;
}

bool passtool_store(const char *path, struct slice user, struct slice value)
{
    struct err err = {0};

    if (passwd_update(path, user, value, &err) == 0)
        return true;
    fprintf(stderr, "%s\n", err.msg);
    return false;
}

/* Cuts a line into user and password; false when it has to be left out, after saying so. */
static bool split_pair(unsigned line, struct slice text, const struct passtool_words *words,
    struct slice *user, struct slice *password)
{
    const char *colon = memchr(text.p, ':', text.n);

    if (text.n == 0) {
        if (words->blank != NULL)
            fprintf(words->to, "LINE#%02u: %s\n", line, words->blank);
        return false;
    }
    if (colon == NULL || colon + 1 == text.p + text.n) {
        fprintf(words->to, "LINE#%02u: %s\n", line, words->invalid);
        return false;
    }
    *user = slice_of(text.p, (size_t)(colon - text.p));
    *password = slice_of(colon + 1, text.n - user->n - 1);
    if (user->n > PASSTOOL_MAX_BYTES) {
        fprintf(words->to, "LINE#%02u: input exceeds maximum username length %d\n%s", line,
            PASSTOOL_MAX_BYTES, words->to == stdout ? "\n" : "");
        return false;
    }
    if (password->n > PASSTOOL_MAX_BYTES) {
        fprintf(words->to, "LINE#%02u: input exceeds maximum password length %d\n", line,
            PASSTOOL_MAX_BYTES);
        return false;
    }
    return true;
}

bool passtool_each_pair(
    const char *path, const struct passtool_words *words, passtool_pair_fn *fn, void *ctx)
{
    char text[LINE_BYTES];
    struct slice user;
    struct slice password;
    unsigned line = 0;
    bool ok = true;
    FILE *f;

    printf("trying to read username:password pairs from file %s\n", path);
    f = fopen(path, "re");
    if (f == NULL) {
        fprintf(stderr, "failed to open input_file \"%s\" (%s)\n\n", path, strerror(errno));
        return false;
    }
    while (ok && fgets(text, sizeof text, f) != NULL) {
        line++;
        if (split_pair(line, slice_of(text, strcspn(text, "\r\n")), words, &user, &password))
            ok = fn(line, user, password, ctx);
    }
    mem_wipe(text, sizeof text);
    fclose(f);
    return ok;
}
