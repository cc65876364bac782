/* SPDX-License-Identifier: PostgreSQL
 * pcp_opts.c: the command line of the pcp_* tools. Options and texts are those of pgpool-II's
 * tools, so that scripts go on working. */
#include "config.h"

#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "pcp_tool.h"

#define PACKAGE_SOCKETS   "/run/pgpool" /* pcp_socket_dir of the packages */
#define DEFAULT_SOCKETS   "/tmp"
#define DEFAULT_PORT      9898
#define DEFAULT_TIMEOUT_S 60
#define LEAVE_TIMEOUT_S   660 /* longer than the server waits for clients to leave */
#define MAX_TIMEOUT_S     86400
#define MIN_PORT          1024
#define MAX_ID            128 /* of a node or a pgpool, as pgpool-II's tools have it */
#define MAX_PORT          65535

enum {
    OPT_JSON = 1000,
    OPT_OLD_STATUS,
    OPT_TIMEOUT,
    OPT_SWITCHOVER,
    OPT_SCOPE,
    OPT_TLS,
    OPT_TLS_CA,
    OPT_SCRAM,
    OPT_STATUS,
    OPT_WATCH,
    OPT_WHY
};

static const char *id_name(const struct tool *t)
{
    switch (t->arg) {
    case ARG_PROCESS:
        return "process-id";
    case ARG_WATCHDOG:
        return "watchdog-id";
    case ARG_DATABASE:
        return "database";
    case ARG_NODE:
    case ARG_NONE:
        break;
    }
    return "node-id";
}

/* Options that only some tools have. */
static void usage_of_some(FILE *to, const struct tool *t)
{
    if (strchr(t->letters, 'n') != NULL && t->arg == ARG_WATCHDOG)
        fputs(
            "  -n, --watchdog-id=ID   which pgpool of the watchdog cluster: 0 is the one that is\n"
            "                         asked; without it all of them\n",
            to);
    else if (strchr(t->letters, 'n') != NULL)
        fputs("  -n, --node-id=NODEID   which node\n", to);
    if (strchr(t->letters, 'P') != NULL)
        fputs("  -P, --process-id=PID   which worker process\n", to);
    if (strchr(t->letters, 'a') != NULL)
        fputs(t->arg == ARG_NODE ? "  -a, --all              all nodes, as without a number\n"
                                 : "  -a, --all              also what is not in use\n",
            to);
    if (strchr(t->letters, 'g') != NULL)
        fputs("  -g, --gracefully       let clients end their sessions first\n", to);
    if (strchr(t->letters, 'Y') != NULL)
        fputs("      --why=TEXT         the reason, for the log and SHOW POOL_EVENTS\n", to);
    if (strchr(t->letters, 's') != NULL)
        fputs("  -s, --switchover       promote the server itself\n", to);
    if (strchr(t->letters, 'R') != NULL)
        fputs("      --status           show the last recoveries, of all nodes or of one\n"
              "      --watch            follow the last one, whoever asked for it, to its end\n",
            to);
    if (strchr(t->letters, 'm') != NULL)
        fputs("  -m, --mode=MODE        smart, fast or immediate (default: smart)\n", to);
    if (strchr(t->letters, 'S') != NULL)
        fputs("  -s, --scope=SCOPE      local (default), or cluster: all pgpools of the watchdog\n"
              "                         cluster\n",
            to);
}

static void usage(const struct tool *t)
{
    FILE *to = stderr;
    bool has_arg = t->arg != ARG_NONE;

    fprintf(to, "pcp_%s - %s\nUsage:\npcp_%s [OPTION...] %s%s%s\nOptions:\n", t->name, t->summary,
        t->name, has_arg ? "[" : "", has_arg ? id_name(t) : "", has_arg ? "]" : "");
    fputs("  -U, --username=NAME    user of pcp.conf (default: your own name)\n"
          "  -h, --host=HOSTNAME    host of pgpool, or folder of its socket (default: /run/pgpool\n"
          "                         where its socket is there, else /tmp)\n"
          "  -p, --port=PORT        PCP port (default: 9898)\n"
          "  -w, --no-password      never ask for the password\n"
          "  -W, --password         ask for the password even if a password file has it\n",
        to);
    usage_of_some(to, t);
    fputs("  -d, --debug            print the packets\n"
          "  -v, --verbose          print titles, too\n"
          "      --json             print JSON\n"
          "      --tls              encrypt the connection (TCP only)\n"
          "      --tls-ca=FILE      the same, and check the server's certificate\n"
          "      --require-scram    log in by SCRAM or not at all: never answer by md5\n"
          "      --timeout=SECONDS  longest wait for the server (default: 60, or more where a\n"
          "                         command has to wait for clients)\n"
          "      --old-exit-status  exit with 0 even when the server answers an error\n"
          "  -V, --version          print the version\n"
          "  -?, --help             print this help\n\n",
        to);
}

static int wrong(const struct tool *t, int *status)
{
    fprintf(stderr, "Try \"pcp_%s --help\" for more information.\n\n", t->name);
    *status = EXIT_FAILURE;
    return -1;
}

static bool parse_int(const char *text, int min, int max, int *out)
{
    char *end;
    long v = strtol(text, &end, 10);

    if (*text == '\0' || *end != '\0' || v < min || v > max)
        return false;
    *out = (int)v;
    return true;
}

static bool take_id(const struct tool *t, const char *text, struct tool_options *o)
{
    bool is_process = t->arg == ARG_PROCESS;

    if (parse_int(text, is_process, is_process ? INT32_MAX : MAX_ID, &o->id))
        return true;
    fprintf(stderr, "pcp_%s: Invalid %s \"%s\", must be ", t->name, id_name(t), text);
    if (is_process)
        fputs("greater than 0\n", stderr);
    else
        fprintf(stderr, "between 0 and %d\n", MAX_ID);
    return false;
}

static bool take_mode(const struct tool *t, const char *text, struct tool_options *o)
{
    static const char *const modes[] = {"smart", "fast", "immediate"};
    size_t i;

    for (i = 0; i < 3; i++) {
        if (strcasecmp(text, modes[i]) == 0 || (text[0] == modes[i][0] && text[1] == '\0')) {
            o->mode = modes[i][0];
            return true;
        }
    }
    fprintf(stderr,
        "pcp_%s: Invalid shutdown mode \"%s\", must be either \"smart\" \"immediate\" or \"fast\" "
        "\n",
        t->name, text);
    return false;
}

static bool take_scope(const struct tool *t, const char *text, struct tool_options *o)
{
    if (strcasecmp(text, "cluster") == 0 || strcmp(text, "c") == 0)
        o->scope = 'c';
    else if (strcasecmp(text, "local") == 0 || strcmp(text, "l") == 0)
        o->scope = 'l';
    else
        fprintf(stderr,
            "pcp_%s: Invalid command scope \"%s\", must be either \"cluster\" or \"local\" \n",
            t->name, text);
    return o->scope != '\0';
}

static bool take_port(const struct tool *t, const char *text, struct tool_options *o)
{
    if (parse_int(text, MIN_PORT, MAX_PORT, &o->port))
        return true;
    fprintf(stderr, "pcp_%s: Invalid port number \"%s\", must be between %d and %d\n", t->name,
        text, MIN_PORT, MAX_PORT);
    return false;
}

static bool take_common(const struct tool *t, int c, struct tool_options *o)
{
    switch (c) {
    case 'h':
        o->host = optarg;
        return true;
    case 'p':
        return take_port(t, optarg, o);
    case 'U':
        o->user = optarg;
        return true;
    case 'w':
        o->asks = TOOL_ASKS_NEVER;
        return true;
    case 'W':
        o->asks = TOOL_ASKS_ALWAYS;
        return true;
    case 'd':
        o->debug = true;
        return true;
    case 'v':
        o->verbose = true;
        return true;
    case OPT_JSON:
        o->json = true;
        return true;
    case OPT_OLD_STATUS:
        o->refused_status = EXIT_SUCCESS;
        return true;
    case OPT_TLS_CA:
        o->tls_ca = optarg;
        return o->tls = true;
    case OPT_SCRAM:
        return o->needs_scram = true;
    case OPT_TLS:
        return o->tls = true;
    case OPT_TIMEOUT:
        if (parse_int(optarg, 1, MAX_TIMEOUT_S, &o->timeout_s))
            return true;
        fprintf(stderr, "pcp_%s: Invalid timeout \"%s\"\n", t->name, optarg);
        return false;
    default:
        return false;
    }
}

static bool take(const struct tool *t, int c, struct tool_options *o)
{
    switch (c) {
    case 'n':
    case 'P':
        return take_id(t, optarg, o);
    case 'a':
        return o->all = true;
    case 'g':
        return o->gracefully = true;
    case 'm':
        return take_mode(t, optarg, o);
    case OPT_SWITCHOVER:
        return o->switchover = true;
    case OPT_STATUS:
        o->recovery = TOOL_RECOVERY_SHOWS;
        return true;
    case OPT_WATCH:
        o->recovery = TOOL_RECOVERY_FOLLOWS;
        return true;
    case OPT_WHY:
        o->why = optarg;
        return true;
    case OPT_SCOPE:
        return take_scope(t, optarg, o);
    default:
        return take_common(t, c, o);
    }
}

/* Options of this tool alone, in getopt's form; -s is a switch or takes a scope. */
static void letters_of(const struct tool *t, char *out, size_t size)
{
    const char *p;
    size_t n = (size_t)snprintf(out, size, "h:p:U:wWdv");

    for (p = t->letters; *p != '\0' && n + 2 < size; p++) {
        if (*p == 'R' || *p == 'Y')
            continue; /* long ones only */
        out[n++] = *p == 'S' ? 's' : *p;
        if (strchr("nPmS", *p) != NULL)
            out[n++] = ':';
    }
    out[n] = '\0';
}

static bool is_allowed(const struct tool *t, int c)
{
    if (c == OPT_SWITCHOVER)
        return strchr(t->letters, 's') != NULL;
    if (c == OPT_SCOPE)
        return strchr(t->letters, 'S') != NULL;
    if (c == OPT_STATUS || c == OPT_WATCH)
        return strchr(t->letters, 'R') != NULL;
    if (c == OPT_WHY)
        return strchr(t->letters, 'Y') != NULL;
    return c >= OPT_JSON || strchr("nPagm", c) == NULL || strchr(t->letters, c) != NULL;
}

static int scan(const struct tool *t, int argc, char **argv, struct tool_options *o)
{
    static const struct option longs[] = {{"host", required_argument, NULL, 'h'},
        {"port", required_argument, NULL, 'p'}, {"username", required_argument, NULL, 'U'},
        {"no-password", no_argument, NULL, 'w'}, {"password", no_argument, NULL, 'W'},
        {"debug", no_argument, NULL, 'd'}, {"verbose", no_argument, NULL, 'v'},
        {"node-id", required_argument, NULL, 'n'}, {"watchdog-id", required_argument, NULL, 'n'},
        {"process-id", required_argument, NULL, 'P'}, {"all", no_argument, NULL, 'a'},
        {"gracefully", no_argument, NULL, 'g'}, {"switchover", no_argument, NULL, OPT_SWITCHOVER},
        {"scope", required_argument, NULL, OPT_SCOPE}, {"mode", required_argument, NULL, 'm'},
        {"json", no_argument, NULL, OPT_JSON}, {"timeout", required_argument, NULL, OPT_TIMEOUT},
        {"tls", no_argument, NULL, OPT_TLS}, {"tls-ca", required_argument, NULL, OPT_TLS_CA},
        {"old-exit-status", no_argument, NULL, OPT_OLD_STATUS},
        {"require-scram", no_argument, NULL, OPT_SCRAM}, {"status", no_argument, NULL, OPT_STATUS},
        {"watch", no_argument, NULL, OPT_WATCH}, {"why", required_argument, NULL, OPT_WHY}, {0}};
    char letters[64];
    int c;

    letters_of(t, letters, sizeof letters);
    /* Options may stand behind the argument, too. */
    while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (c == '?')
            return -1;
        if (c == 's')
            c = strchr(t->letters, 'S') != NULL ? OPT_SCOPE : OPT_SWITCHOVER;
        if (!is_allowed(t, c)) {
            fprintf(stderr, "pcp_%s: there is no such option\n", t->name);
            return -1;
        }
        if (!take(t, c, o))
            return -1;
    }
    return 0;
}

static bool take_argument(const struct tool *t, int argc, char **argv, struct tool_options *o)
{
    if (optind < argc && t->arg == ARG_DATABASE) {
        o->database = argv[optind++];
        if (o->database[0] == '\0') {
            fprintf(stderr, "pcp_%s: the name of the database is empty\n", t->name);
            return false;
        }
    } else if (optind < argc && t->arg != ARG_NONE && o->id == TOOL_NO_ID) {
        if (!take_id(t, argv[optind], o))
            return false;
        optind++;
    }
    if (optind < argc) {
        fprintf(stderr, "pcp_%s: Warning: extra command-line argument \"%s\" ignored\n", t->name,
            argv[optind]);
    }
    if (t->needs_arg && o->id == TOOL_NO_ID && o->recovery == TOOL_RECOVERY_BEGINS) {
        fprintf(stderr, "pcp_%s: missing %s\n", t->name, id_name(t));
        return false;
    }
    return true;
}

/* --help or --version, which need no server. */
static bool answers_by_itself(const struct tool *t, const char *option)
{
    if (strcmp(option, "-?") == 0 || strcmp(option, "--help") == 0)
        usage(t);
    else if (strcmp(option, "-V") == 0 || strcmp(option, "--version") == 0)
        fprintf(stderr, "pcp_%s (pgpool-II) %s\n", t->name, PACKAGE_VERSION);
    else
        return false;
    return true;
}

static int default_timeout_s(const struct tool *t, const struct tool_options *o)
{
    if (t->request == PCP_RECOVERY && o->recovery != TOOL_RECOVERY_SHOWS)
        return MAX_TIMEOUT_S;
    return o->gracefully || o->switchover || t->arg == ARG_DATABASE ? LEAVE_TIMEOUT_S
                                                                    : DEFAULT_TIMEOUT_S;
}

/* Where packages have pgpool's socket, if it is there: in /tmp anybody could have made one in its
 * place, and would get what the password is proved with. */
static const char *default_host(int port)
{
    char path[sizeof PACKAGE_SOCKETS "/.s.PGSQL.65535"];

    snprintf(path, sizeof path, PACKAGE_SOCKETS "/.s.PGSQL.%d", port);
    return access(path, F_OK) == 0 ? PACKAGE_SOCKETS : DEFAULT_SOCKETS;
}

/* What was not given, as it is without. */
static void fill_in(const struct tool *t, struct tool_options *o)
{
    const struct passwd *pw;

    if (o->host[0] == '\0')
        o->host = default_host(o->port);
    if (o->scope == '\0')
        o->scope = 'l';
    if (o->timeout_s == 0)
        o->timeout_s = default_timeout_s(t, o);
    if (o->user == NULL && (pw = getpwuid(geteuid())) != NULL)
        o->user = pw->pw_name;
}

int tool_opts_parse(
    const struct tool *t, int argc, char **argv, struct tool_options *o, int *status)
{
    *o = (struct tool_options){
        .host = "",
        .port = DEFAULT_PORT,
        .mode = 's',
        .id = TOOL_NO_ID,
        .refused_status = EXIT_FAILURE,
    };
    *status = EXIT_SUCCESS;
    if (argc > 1 && answers_by_itself(t, argv[1]))
        return -1;
    if (scan(t, argc, argv, o) == -1 || !take_argument(t, argc, argv, o))
        return wrong(t, status);
    fill_in(t, o);
    if (o->tls && o->host[0] == '/') {
        fprintf(stderr, "pcp_%s: TLS is for TCP: name a host\n", t->name);
        return wrong(t, status);
    }
    if (o->user == NULL || o->user[0] == '\0' || strlen(o->user) > PCP_USER_BYTES) {
        fprintf(stderr, "pcp_%s: no user name, or one that is too long\n", t->name);
        return wrong(t, status);
    }
    return 0;
}
