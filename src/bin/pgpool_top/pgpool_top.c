/* SPDX-License-Identifier: PostgreSQL
 * pgpool_top.c: `pgpool top`: clients, servers, waits and pools on a terminal, looked at again and
 * again. Runs in: a program of its own, which `pgpool top` becomes, so that pgpool itself needs no
 * library of terminals. It knows only SHOW and PGPOOL statements of the virtual database: whatever
 * is here can be asked with psql. */
#include "config.h"

#include "bin/pgpool_top/top.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, OPT_HELP = 1000 };

struct options {
    const char *host;
    const char *port;
    const char *user;
    const char *database;
    int interval_ms;
    bool is_once;
    const struct top_view *view;
};

static void print_usage(FILE *to)
{
    int i;

    fputs("pgpool top shows clients, servers, waits and pools of a running pgpool.\n\n"
          "Usage:\n  pgpool top [options] [view]\n\n"
          "Options:\n"
          "  -h, --host=HOST           host or folder of the socket (default: as psql's)\n"
          "  -p, --port=PORT           port (default: $PGPORT, else 9999)\n"
          "  -U, --username=NAME       one of admin_users or stats_users, or of pcp.conf\n"
          "  -d, --dbname=NAME         database (default: pgpool, which needs no server)\n"
          "  -i, --interval=SECONDS    time from one look to the next (default: 2)\n"
          "  -1, --once                print one look as text and leave\n"
          "      --help                print this\n\n"
          "Views:",
        to);
    for (i = 0; i < top_nviews; i++)
        fprintf(to, " %s", top_views[i].name);
    fputs("\nThe password is taken from $PGPASSWORD or ~/.pgpass.\n", to);
}

static const struct top_view *view_of(const char *name)
{
    int i;

    for (i = 0; i < top_nviews; i++) {
        if (strcmp(top_views[i].name, name) == 0)
            return &top_views[i];
    }
    fprintf(stderr, "pgpool top: there is no view \"%s\"; there are:", name);
    for (i = 0; i < top_nviews; i++)
        fprintf(stderr, " %s", top_views[i].name);
    fputc('\n', stderr);
    return NULL;
}

static int take_interval(const char *text, int *out)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds >= 0.1 && seconds <= 3600)) {
        fprintf(stderr, "pgpool top: \"%s\" is no time between 0.1 and 3600 seconds\n", text);
        return -1;
    }
    *out = (int)(seconds * 1000);
    return 0;
}

/* -1: a mistake was told. 1: nothing is left to do. */
static int take_options(int argc, char **argv, struct options *o)
{
    static const struct option long_options[] = {{"host", required_argument, NULL, 'h'},
        {"port", required_argument, NULL, 'p'}, {"username", required_argument, NULL, 'U'},
        {"dbname", required_argument, NULL, 'd'}, {"interval", required_argument, NULL, 'i'},
        {"once", no_argument, NULL, '1'}, {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0}};
    int opt;

    while ((opt = getopt_long(argc, argv, "h:p:U:d:i:1", long_options, NULL)) != -1) {
        switch (opt) {
        case 'h':
            o->host = optarg;
            break;
        case 'p':
            o->port = optarg;
            break;
        case 'U':
            o->user = optarg;
            break;
        case 'd':
            o->database = optarg;
            break;
        case '1':
            o->is_once = true;
            break;
        case 'i':
            if (take_interval(optarg, &o->interval_ms) == -1)
                return -1;
            break;
        case OPT_HELP:
            print_usage(stdout);
            return 1;
        default:
            print_usage(stderr);
            return -1;
        }
    }
    if (optind < argc - 1) {
        print_usage(stderr);
        return -1;
    }
    if (optind == argc - 1)
        o->view = view_of(argv[optind]);
    return o->view == NULL ? -1 : 0;
}

static void print_table(const struct top_table *t)
{
    char cell[TOP_CELL_BYTES];
    int row;
    int i;

    for (row = -1; row < top_table_rows(t); row++) {
        for (i = 0; i < t->ncolumns; i++) {
            if (row == -1)
                snprintf(cell, sizeof cell, "%s", t->columns[i].name);
            else
                (void)top_table_cell(t, row, i, cell);
            if (i == t->ncolumns - 1)
                puts(cell);
            else
                printf("%-*s  ", t->columns[i].width, cell);
        }
    }
}

static int run_once(struct top_link *l, const struct top_view *view)
{
    struct top_table table;
    char summary[320];
    PGresult *answer = top_link_ask(l, view->statement);

    if (answer == NULL) {
        fprintf(stderr, "pgpool top: %s\n", l->error);
        return EXIT_FAILED;
    }
    top_table_init(&table, view);
    if (top_table_take(&table, answer, 0) == -1) {
        fprintf(stderr, "pgpool top: the answer to %s is not known here\n", view->statement);
        return EXIT_FAILED;
    }
    top_summary(l, summary, sizeof summary);
    puts(summary);
    print_table(&table);
    top_table_fini(&table);
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    struct options o = {.database = "pgpool", .interval_ms = 2000, .view = &top_views[0]};
    const char *keywords[] = {"host", "port", "user", "dbname", "fallback_application_name", NULL};
    const char *values[] = {NULL, NULL, NULL, NULL, "pgpool top", NULL};
    struct top_link link = {.keywords = keywords, .values = values, .wake_fd = -1};
    int status = take_options(argc, argv, &o);

    if (status != 0)
        return status == 1 ? EXIT_OK : EXIT_USAGE;
    values[0] = o.host;
    values[1] = o.port != NULL ? o.port : getenv("PGPORT") != NULL ? NULL : "9999";
    values[2] = o.user;
    values[3] = o.database;
    if (o.is_once) {
        status = run_once(&link, o.view);
    } else if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        fputs("pgpool top: this is no terminal; --once prints one look\n", stderr);
        status = EXIT_USAGE;
    } else {
        link.wake_fd = STDIN_FILENO;
        status = top_screen_run(&link, o.interval_ms, o.view);
    }
    top_link_close(&link);
    return status;
}
