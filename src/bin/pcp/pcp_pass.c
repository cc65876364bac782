/* SPDX-License-Identifier: PostgreSQL
 * pcp_pass.c: the password of an administrator: from a password file, or from the terminal. A line
 * of the file is host:port:user:password; a field may be '*'; a backslash takes the next character
 * as it is. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"
#include "sys/fd.h"

#include "pcp_tool.h"

#define LINE_BYTES 1024
#define FILE_NAME  ".pcppass"

static bool file_name(char *out, size_t size)
{
    const char *named = getenv("PCPPASSFILE");
    const char *home = getenv("HOME");
    const struct passwd *pw;
    int n;

    if (named != NULL && named[0] != '\0')
        return (size_t)snprintf(out, size, "%s", named) < size;
    if (home == NULL || home[0] == '\0') {
        pw = getpwuid(geteuid());
        home = pw == NULL ? NULL : pw->pw_dir;
    }
    if (home == NULL)
        return false;
    n = snprintf(out, size, "%s/%s", home, FILE_NAME);
    return n > 0 && (size_t)n < size;
}

/* Compares the field at *p with `text` and steps over its colon. */
static bool field_fits(const char **p, const char *text)
{
    const char *s = *p;
    bool star = s[0] == '*' && s[1] == ':';
    bool same = true;

    while (*s != '\0' && *s != ':') {
        if (*s == '\\' && s[1] != '\0')
            s++;
        same = same && *text == *s;
        if (*text != '\0')
            text++;
        s++;
    }
    same = same && *text == '\0';
    if (*s != ':')
        return false;
    *p = s + 1;
    return star || same;
}

static void take_password(const char *p, struct secret *out)
{
    char text[LINE_BYTES];
    size_t n = 0;

    while (*p != '\0' && n < sizeof text) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        text[n++] = *p++;
    }
    secret_set(out, slice_of(text, n));
    mem_wipe(text, sizeof text);
}

/* A socket is known by its folder and as localhost. */
static bool host_fits(const char **p, const char *host)
{
    const char *again = *p;

    if (host[0] != '/' || !field_fits(&again, "localhost"))
        return field_fits(p, host);
    *p = again;
    return true;
}

static bool search(FILE *f, const struct tool_options *o, struct secret *out)
{
    char line[LINE_BYTES];
    char port[16];
    bool found = false;

    snprintf(port, sizeof port, "%d", o->port);
    while (!found && fgets(line, sizeof line, f) != NULL) {
        const char *p = line;

        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '#')
            continue;
        if (host_fits(&p, o->host) && field_fits(&p, port) && field_fits(&p, o->user)) {
            take_password(p, out);
            found = true;
        }
    }
    mem_wipe(line, sizeof line);
    return found;
}

/* *why says why nothing was found there; empty: that was said already. */
static bool from_file(
    const struct tool_options *o, struct secret *out, char *path, size_t size, const char **why)
{
    struct stat st;
    bool found = false;
    FILE *f;

    *why = "its name is too long, or there is no home folder";
    if (!file_name(path, size)) {
        path[0] = '\0';
        return false;
    }
    f = fopen(path, "re");
    *why = strerror(errno);
    if (f == NULL)
        return false;
    *why = "";
    if (fstat(fileno(f), &st) == -1 || !S_ISREG(st.st_mode))
        fprintf(stderr, "WARNING: password file \"%s\" is not a plain file\n", path);
    else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        fprintf(stderr,
            "WARNING: password file \"%s\" has group or world access; permissions should be u=rw "
            "(0600) or less\n",
            path);
    else if (!(found = search(f, o, out)))
        *why = "it has no line for this host, port and user";
    fclose(f);
    return found;
}

/* Writes what stands in front of the answer, reads a line, ends it on the screen. */
static ssize_t ask(int in, int screen, char *line, size_t room)
{
    static const char prompt[] = "Password: ";
    ssize_t n;

    (void)fd_write_all(screen, prompt, sizeof prompt - 1);
    n = read(in, line, room);
    (void)fd_write_all(screen, "\n", 1);
    return n;
}

/* Scripts write the password into the tool when there is no terminal. */
static bool from_terminal(struct secret *out)
{
    char line[LINE_BYTES];
    struct termios old;
    struct termios quiet;
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    ssize_t n;

    if (fd == -1 || tcgetattr(fd, &old) == -1) {
        n = ask(STDIN_FILENO, STDERR_FILENO, line, sizeof line - 1);
    } else {
        quiet = old;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(fd, TCSAFLUSH, &quiet);
        n = ask(fd, fd, line, sizeof line - 1);
        tcsetattr(fd, TCSAFLUSH, &old);
    }
    fd_close(&fd);
    if (n <= 0) {
        fprintf(stderr, "ERROR: no password was given, and there is no terminal to ask for it\n");
        return false;
    }
    line[n] = '\0';
    secret_set(out, slice_of(line, strcspn(line, "\r\n")));
    mem_wipe(line, sizeof line);
    return true;
}

bool tool_pass_get(const struct tool_options *o, struct secret *out)
{
    char path[4096];
    const char *why = "";

    if (o->asks != TOOL_ASKS_ALWAYS && from_file(o, out, path, sizeof path, &why))
        return true;
    if (o->asks != TOOL_ASKS_NEVER)
        return from_terminal(out);
    fprintf(stderr, "ERROR: no password from password file \"%s\"%s%s\n", path,
        why[0] == '\0' ? "" : ": ", why);
    return false;
}
