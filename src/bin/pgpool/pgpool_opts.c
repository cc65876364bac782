/* SPDX-License-Identifier: PostgreSQL
 * pgpool_opts.c: options of the pgpool command.
 * Runs in: the command line. Help and version go to standard error, as pgpool-II's do. */
#include "config.h"

#include "bin/pgpool/pgpool_opts.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPT_CHECK_CONFIG = 1000, OPT_CHECK_AUTH, OPT_DESCRIBE, OPT_IMPORT, OPT_INTO, OPT_WITNESS };

static const struct option long_options[] = {
    {"hba-file", required_argument, NULL, 'a'},
    {"check-auth", required_argument, NULL, OPT_CHECK_AUTH},
    {"check-config", no_argument, NULL, OPT_CHECK_CONFIG},
    {"clear-oidmaps", no_argument, NULL, 'C'},
    {"config-file", required_argument, NULL, 'f'},
    {"debug", no_argument, NULL, 'd'},
    {"debug-assertions", no_argument, NULL, 'x'},
    {"describe", required_argument, NULL, OPT_DESCRIBE},
    {"discard-status", no_argument, NULL, 'D'},
    {"dont-detach", no_argument, NULL, 'n'},
    {"help", no_argument, NULL, 'h'},
    {"import-pgbouncer", required_argument, NULL, OPT_IMPORT},
    {"into", required_argument, NULL, OPT_INTO},
    {"key-file", required_argument, NULL, 'k'},
    {"mode", required_argument, NULL, 'm'},
    {"pcp-file", required_argument, NULL, 'F'},
    {"version", no_argument, NULL, 'v'},
    {"witness", no_argument, NULL, OPT_WITNESS},
    {NULL, 0, NULL, 0},
};

static void print_version(void)
{
    fprintf(stderr, "pgpool-II version %s (%s)\n", PACKAGE_VERSION, PGPOOL_CODENAME);
    if (PGPOOL_LEFT_OUT[0] != '\0')
        fputs("built without: " PGPOOL_LEFT_OUT "\n", stderr);
}

static void print_usage(void)
{
    print_version();
    fputs(
        "pgpool pools connections to PostgreSQL servers, spreads reads over them and follows\n"
        "failovers.\n"
        "\n"
        "Usage:\n"
        "  pgpool [options]                  start\n"
        "  pgpool [options] [-m MODE] stop   stop the running pgpool\n"
        "  pgpool [options] reload           make the running pgpool read its files again\n"
        "  pgpool top [options] [view]       show clients, servers and waits (pgpool top --help)\n"
        "\n"
        "Files:\n"
        "  -f, --config-file=FILE    settings (default: " SYSCONFDIR "/pgpool.conf)\n"
        "  -a, --hba-file=FILE       rules of client authentication (default: pool_hba.conf beside "
        "the settings)\n"
        "  -F, --pcp-file=FILE       users of PCP commands (default: pcp.conf beside the "
        "settings)\n"
        "  -k, --key-file=FILE       key of encrypted passwords (default: ~/.pgpoolkey or "
        "$PGPOOLKEYFILE)\n"
        "\n"
        "Start:\n"
        "  -n, --dont-detach         stay in the foreground; log to standard error\n"
        "  -d, --debug               log_min_messages = debug1\n"
        "  -D, --discard-status      forget the saved status of the servers\n"
        "  -C, --clear-oidmaps       accepted for old scripts, has no effect\n"
        "  -x, --debug-assertions    accepted; assertions are always on\n"
        "      --witness             the watchdog alone, as a further vote: no clients, no "
        "servers\n"
        "\n"
        "Stop:\n"
        "  -m, --mode=MODE           smart (default): wait for clients to leave; fast: end their\n"
        "                            sessions; immediate: leave at once. One letter is enough.\n"
        "\n"
        "Settings:\n"
        "  --check-config            check the file and print every finding\n"
        "  --check-auth=USER [-d DB] say how the user would log in, here and to each server, and "
        "what\n"
        "                            is in the way\n"
        "  --describe=sample|man|roff|json\n"
        "                            print all settings as a sample file, manual, man page or "
        "JSON\n"
        "  --import-pgbouncer=FILE [--into=FOLDER]\n"
        "                            make pgpool.conf and its like of a pgbouncer.ini, in FOLDER "
        "or "
        "here;\n"
        "                            say what was taken over and what not\n"
        "\n"
        "  -h, --help                print this\n"
        "  -v, --version             print the version\n",
        stderr);
}

/* Makes `path` absolute: going to the background leaves the present folder. */
static int keep_path(const char *path, char *out, size_t size)
{
    char here[PROC_PATH_BYTES] = "";
    int n;

    if (*path != '/' && getcwd(here, sizeof here) == NULL)
        here[0] = '\0';
    n = *path == '/' ? snprintf(out, size, "%s", path) : snprintf(out, size, "%s/%s", here, path);
    if (*path != '\0' && n > 0 && (size_t)n < size)
        return 0;
    fprintf(stderr, "pgpool: file name \"%s\" is empty or too long\n", path);
    return -1;
}

/* s, f, i, or any beginning of smart, fast, immediate; -1 for others. */
static int signal_of_mode(const char *mode)
{
    static const char *const names[] = {"smart", "fast", "immediate"};
    static const int signals[] = {SIGTERM, SIGINT, SIGQUIT};
    size_t len = strlen(mode);
    int i;

    for (i = 0; i < 3 && len > 0; i++) {
        if (strncmp(names[i], mode, len) == 0)
            return signals[i];
    }
    fprintf(stderr, "pgpool: unknown shutdown mode \"%s\": smart, fast or immediate\n", mode);
    return -1;
}

static int take_option(int opt, struct pgpool_opts *out)
{
    switch (opt) {
    case 'a':
        return keep_path(optarg, out->paths.hba, sizeof out->paths.hba);
    case 'F':
        return keep_path(optarg, out->paths.pcp, sizeof out->paths.pcp);
    case 'k':
        return keep_path(optarg, out->paths.key, sizeof out->paths.key);
    case 'f':
        return keep_path(optarg, out->conf_file, sizeof out->conf_file);
    case 'm':
        out->stop_signal = signal_of_mode(optarg);
        return out->stop_signal == -1 ? -1 : 0;
    case 'd':
        out->is_debug = true;
        return 0;
    case 'n':
        out->foreground = true;
        return 0;
    case 'D':
        out->discard_status = true;
        return 0;
    case 'C':
        out->clear_oidmaps = true;
        return 0;
    case 'x':
        out->debug_assertions = true;
        return 0;
    case OPT_CHECK_CONFIG:
        out->check_config = true;
        return 0;
    case OPT_CHECK_AUTH:
        out->check_auth = optarg;
        return 0;
    case OPT_DESCRIBE:
        out->describe = optarg;
        return 0;
    case OPT_IMPORT:
        out->import_file = optarg;
        return 0;
    case OPT_INTO:
        out->import_folder = optarg;
        return 0;
    case OPT_WITNESS:
        out->is_witness = true;
        return 0;
    default:
        print_usage();
        return -1;
    }
}

static int take_command(int argc, char **argv, struct pgpool_opts *out)
{
    if (optind == argc)
        return 0;
    if (optind == argc - 1 && out->check_auth != NULL) { /* -d takes no value: it comes last */
        out->check_database = argv[optind];
        return 0;
    }
    if (optind == argc - 1 && strcmp(argv[optind], "stop") == 0) {
        out->command = PGPOOL_STOP;
        return 0;
    }
    if (optind == argc - 1 && strcmp(argv[optind], "reload") == 0) {
        out->command = PGPOOL_RELOAD;
        return 0;
    }
    print_usage();
    return -1;
}

/* A witness has no address to hold, and nobody else has to answer for it. */
#define WITNESS_SETTINGS "use_watchdog = on\ndelegate_ip = ''\nssl = off\n"
#define DEBUG_SETTINGS   "log_min_messages = debug1\n"

static const char *settings_of(const struct pgpool_opts *opts)
{
    if (opts->is_witness)
        return opts->is_debug ? WITNESS_SETTINGS DEBUG_SETTINGS : WITNESS_SETTINGS;
    return opts->is_debug ? DEBUG_SETTINGS : NULL;
}

enum pgpool_opts_result pgpool_opts_parse(int argc, char **argv, struct pgpool_opts *out)
{
    int opt;

    memset(out, 0, sizeof *out);
    out->stop_signal = SIGTERM;
    snprintf(out->conf_file, sizeof out->conf_file, "%s/pgpool.conf", SYSCONFDIR);
    while ((opt = getopt_long(argc, argv, "a:f:F:k:m:dnDChvx", long_options, NULL)) != -1) {
        if (opt == 'h') {
            print_usage();
            return PGPOOL_OPTS_DONE;
        }
        if (opt == 'v') {
            print_version();
            return PGPOOL_OPTS_DONE;
        }
        if (take_option(opt, out) == -1)
            return PGPOOL_OPTS_WRONG;
    }
    if (out->import_folder != NULL && out->import_file == NULL) {
        fputs("pgpool: --into belongs to --import-pgbouncer\n", stderr);
        return PGPOOL_OPTS_WRONG;
    }
    out->settings = settings_of(out);
    return take_command(argc, argv, out) == -1 ? PGPOOL_OPTS_WRONG : PGPOOL_OPTS_RUN;
}
