/* SPDX-License-Identifier: PostgreSQL
 * pcp_print.c: answers on standard output, as pgpool-II's tools print them: scripts read them by
 * position; with --verbose with titles, with --json as JSON. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pcp_tool.h"

#define MAX_FIELDS 32

/* Strings of a body behind its first word; returns how many there are. */
static int split(struct slice body, struct slice *fields)
{
    struct slice word;
    int n = 0;

    if (!pcp_take_str(&body, &word))
        return 0;
    while (n < MAX_FIELDS && pcp_take_str(&body, &fields[n]))
        n++;
    return n;
}

static bool body_is(const struct tool_answer *a, int i, const char *wanted)
{
    struct slice body = tool_answer_body(a, i);
    struct slice word;

    return pcp_take_str(&body, &word) && slice_eq_str(word, wanted);
}

static bool not_understood(void)
{
    fprintf(stderr, "ERROR: the server's answer was not understood\n");
    return false;
}

/* "Title : value", the titles as wide as the widest. */
static void print_titled(const char *const *titles, const struct slice *values, int n)
{
    int width = 0;
    int i;

    for (i = 0; i < n; i++)
        width = (int)strlen(titles[i]) > width ? (int)strlen(titles[i]) : width;
    for (i = 0; i < n; i++)
        printf("%-*s : %.*s\n", width, titles[i], (int)values[i].n, values[i].p);
    putchar('\n');
}

static void print_line(const struct slice *values, int n)
{
    int i;

    for (i = 0; i < n; i++)
        printf("%s%.*s", i == 0 ? "" : " ", (int)values[i].n, values[i].p);
    putchar('\n');
}

static void print_row(const struct tool_options *o, const char *const *titles,
    const char *const *keys, const struct slice *values, int n, bool first)
{
    if (o->json) {
        fputs(first ? "" : ",\n ", stdout);
        tool_json_object(keys, values, n);
    } else if (o->verbose) {
        print_titled(titles, values, n);
    } else {
        print_line(values, n);
    }
}

bool tool_print_complete(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a)
{
    if (o->json)
        printf("{\"command\": \"pcp_%s\", \"success\": true}\n", t->name);
    else
        printf("pcp_%s -- Command Successful\n", t->name);
    return true;
}

bool tool_print_count(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a)
{
    struct slice fields[MAX_FIELDS];

    if (split(tool_answer_body(a, 0), fields) < 1)
        return not_understood();
    if (o->json)
        printf("{\"node_count\": %d}\n", atoi(fields[0].p));
    else if (o->verbose)
        printf("Node Count\n____________\n %d\n", atoi(fields[0].p));
    else
        printf("%d\n", atoi(fields[0].p));
    return true;
}

bool tool_print_pids(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a)
{
    struct slice body = tool_answer_body(a, 0);
    struct slice text;
    int total;
    int n;

    if (!pcp_take_str(&body, &text) || !pcp_take_int(&body, &total))
        return not_understood();
    if (o->json)
        printf("{\"processes\": [");
    else if (o->verbose)
        printf("No \t | \t PID\n_____________________\n");
    for (n = 0; n < total && pcp_take_str(&body, &text); n++) {
        if (o->json)
            printf("%s%d", n == 0 ? "" : ", ", atoi(text.p));
        else if (o->verbose)
            printf("%d \t | \t %d\n", n, atoi(text.p));
        else
            printf("%d ", atoi(text.p));
    }
    if (o->json)
        printf("]}\n");
    else if (o->verbose)
        printf("\nTotal Processes:%d\n", n);
    else
        putchar('\n');
    return true;
}

/* Fields of a node as they come; releases before 4.4 have no DELAY_IS_TIME. */
enum {
    N_HOST,
    N_PORT,
    N_STATUS,
    N_QUARANTINE,
    N_PG_STATUS,
    N_WEIGHT,
    N_ROLE,
    N_PG_ROLE,
    N_IS_TIME,
    N_DELAY,
    N_STATE,
    N_SYNC,
    N_CHANGED,
    N_FIELDS
};

static const char *name_of(struct slice number, const char *const *names, int n)
{
    int v = atoi(number.p);

    return v >= 0 && v < n ? names[v] : "unknown";
}

struct node_texts {
    char weight[32];
    char delay[64];
    char changed[32];
};

static void format_node(const struct slice *f, const struct tool_options *o, struct node_texts *t)
{
    double seconds = (double)atoll(f[N_DELAY].p) / 1000000.0;
    time_t at = (time_t)atoll(f[N_CHANGED].p);
    const char *unit = !o->verbose ? "" : seconds >= 2 ? " seconds" : " second";
    struct tm tm;

    snprintf(t->weight, sizeof t->weight, "%f", atof(f[N_WEIGHT].p) / PCP_WEIGHT_WHOLE);
    if (atoi(f[N_IS_TIME].p) != 0)
        snprintf(t->delay, sizeof t->delay, "%.6f%s", seconds, unit);
    else
        snprintf(t->delay, sizeof t->delay, "%lld", atoll(f[N_DELAY].p));
    t->changed[0] = '\0';
    if (localtime_r(&at, &tm) != NULL)
        strftime(t->changed, sizeof t->changed, "%Y-%m-%d %H:%M:%S", &tm);
}

static struct slice or_none(struct slice text)
{
    return text.n == 0 ? slice_of_str("none") : text;
}

static void print_one_node(const struct tool_options *o, const struct slice *f, bool first)
{
    static const char *const titles[] = {"Hostname", "Port", "Status", "Weight", "Status Name",
        "Backend Status Name", "Role", "Backend Role", "Replication Delay", "Replication State",
        "Replication Sync State", "Last Status Change"};
    static const char *const keys[] = {"hostname", "port", "status", "weight", "status_name",
        "pg_status", "role", "pg_role", "replication_delay", "replication_state",
        "replication_sync_state", "last_status_change"};
    static const char *const statuses[] = {"unused", "waiting", "up", "down"};
    static const char *const roles[] = {"main", "replica", "primary", "standby"};
    struct node_texts t;
    const char *status =
        atoi(f[N_QUARANTINE].p) != 0 ? "quarantine" : name_of(f[N_STATUS], statuses, 4);

    format_node(f, o, &t);
    print_row(o, titles, keys,
        (struct slice[]){f[N_HOST], f[N_PORT], f[N_STATUS], slice_of_str(t.weight),
            slice_of_str(status), f[N_PG_STATUS], slice_of_str(name_of(f[N_ROLE], roles, 4)),
            f[N_PG_ROLE], slice_of_str(t.delay), or_none(f[N_STATE]), or_none(f[N_SYNC]),
            slice_of_str(t.changed)},
        12, first);
}

bool tool_print_node(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a)
{
    struct slice f[MAX_FIELDS];
    bool ok = true;
    int nprinted = 0;
    int i;

    if (o->json)
        putchar('[');
    for (i = 0; ok && i < a->nbodies; i++) {
        int n;

        if (!body_is(a, i, PCP_NODE))
            continue;
        n = split(tool_answer_body(a, i), f);
        if (n == N_FIELDS - 1) {
            memmove(&f[N_IS_TIME + 1], &f[N_IS_TIME], (size_t)(n - N_IS_TIME) * sizeof f[0]);
            f[N_IS_TIME] = slice_of_str("0");
        } else if (n < N_FIELDS) {
            ok = false;
            continue;
        }
        print_one_node(o, f, nprinted++ == 0);
    }
    if (o->json)
        printf("]\n");
    return ok ? true : not_understood();
}

bool tool_print_health(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a)
{
    static const char *const titles[] = {"Node Id", "Host Name", "Port", "Status", "Role",
        "Last Status Change", "Total Count", "Success Count", "Fail Count", "Skip Count",
        "Retry Count", "Average Retry Count", "Max Retry Count", "Max Health Check Duration",
        "Minimum Health Check Duration", "Average Health Check Duration", "Last Health Check",
        "Last Successful Health Check", "Last Skip Health Check", "Last Failed Health Check"};
    static const char *const keys[] = {"node_id", "hostname", "port", "status", "role",
        "last_status_change", "total_count", "success_count", "fail_count", "skip_count",
        "retry_count", "average_retry_count", "max_retry_count", "max_duration", "min_duration",
        "average_duration", "last_health_check", "last_successful_health_check",
        "last_skip_health_check", "last_failed_health_check"};
    struct slice f[MAX_FIELDS];
    int n = (int)(sizeof keys / sizeof keys[0]);

    if (split(tool_answer_body(a, 0), f) < n)
        return not_understood();
    print_row(o, titles, keys, f, n, true);
    if (o->json)
        putchar('\n');
    return true;
}

/* Order of the output, by position in the packet. */
static const struct {
    int field;
    const char *title;
    const char *key;
} process_columns[] = {{5, "Database", "database"}, {6, "Username", "username"},
    {1, "Start time", "start_time"}, {2, "Client connection count", "client_connection_count"},
    {11, "Major", "majorversion"}, {12, "Minor", "minorversion"},
    {7, "Backend connection time", "backend_connection_time"},
    {8, "Client connection time", "client_connection_time"},
    {10, "Client idle duration", "client_idle_duration"},
    {9, "Client disconnection time", "client_disconnection_time"},
    {13, "Pool Counter", "pool_counter"}, {14, "Backend PID", "pool_backendpid"},
    {15, "Connected", "pool_connected"}, {0, "PID", "pool_pid"}, {4, "Backend ID", "backend_id"},
    {16, "Status", "status"}, {17, "Load balance node", "load_balance_node"},
    {18, "client_host", "client_host"}, {19, "client_port", "client_port"},
    {20, "statement", "statement"}};

#define NPROCESS_COLUMNS ((int)(sizeof process_columns / sizeof process_columns[0]))
#define PROCESS_OLD      17 /* fields of old releases */
#define PROCESS_DATABASE 5

static void print_process(
    const struct tool_options *o, const struct slice *f, int nfields, bool first)
{
    const char *titles[NPROCESS_COLUMNS];
    const char *keys[NPROCESS_COLUMNS];
    struct slice values[NPROCESS_COLUMNS];
    int n = 0;
    int i;

    for (i = 0; i < NPROCESS_COLUMNS; i++) {
        if (process_columns[i].field >= nfields)
            continue;
        titles[n] = process_columns[i].title;
        keys[n] = process_columns[i].key;
        values[n++] = f[process_columns[i].field];
    }
    print_row(o, titles, keys, values, n, first);
}

bool tool_print_processes(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a)
{
    struct slice f[MAX_FIELDS];
    bool ok = true;
    int nprinted = 0;
    int i;

    if (o->json)
        putchar('[');
    for (i = 0; ok && i < a->nbodies; i++) {
        int n;

        if (!body_is(a, i, PCP_PROCESS))
            continue;
        n = split(tool_answer_body(a, i), f);
        ok = n >= PROCESS_OLD;
        if (ok && (o->all || f[PROCESS_DATABASE].n > 0))
            print_process(o, f, n, nprinted++ == 0);
    }
    if (o->json)
        printf("]\n");
    else if (ok && nprinted == 0)
        printf("No process information available\n\n");
    return ok ? true : not_understood();
}

bool tool_print_settings(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a)
{
    static const char *const keys[] = {"name", "value", "description"};
    struct slice f[MAX_FIELDS];
    int nprinted = 0;
    int i;

    if (o->json)
        putchar('[');
    for (i = 0; i < a->nbodies; i++) {
        if (!body_is(a, i, PCP_SETTING) || split(tool_answer_body(a, i), f) < 3)
            continue;
        if (o->json) {
            fputs(nprinted == 0 ? "" : ",\n ", stdout);
            tool_json_object(keys, f, 3);
        } else if (o->verbose) {
            printf("Name [%3d]:\t%s\nValue:      \t%s\nDescription:\t%s\n\n", nprinted, f[0].p,
                f[1].p, f[2].p);
        } else {
            printf("name : %s\nvalue: %s\ndesc : %s\n\n", f[0].p, f[1].p, f[2].p);
        }
        nprinted++;
    }
    if (o->json)
        printf("]\n");
    return true;
}

/* In the order of SHOW POOL_RECOVERY. In plain lines what may hold blanks comes last. */
bool tool_print_recoveries(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a)
{
    static const char *const titles[] = {"Node Id", "Host Name", "Port", "Primary Node Id", "State",
        "Step", "Started", "Step Started", "Ended", "Who", "Message"};
    static const char *const keys[] = {"node_id", "hostname", "port", "primary_node_id", "state",
        "step", "started", "step_started", "ended", "who", "message"};
    enum { STATE = 4, STEP = 5, STARTED = 6, NCOLUMNS = 11 };
    struct slice f[MAX_FIELDS];
    bool ok = true;
    int nprinted = 0;
    int i;

    if (o->json)
        putchar('[');
    for (i = 0; ok && i < a->nbodies; i++) {
        if (!body_is(a, i, PCP_RECOVERED))
            continue;
        ok = split(tool_answer_body(a, i), f) >= NCOLUMNS;
        if (ok && (o->json || o->verbose))
            print_row(o, titles, keys, f, NCOLUMNS, nprinted++ == 0);
        else if (ok)
            print_line((struct slice[]){f[0], f[1], f[2], f[3], f[STATE], f[STARTED], f[STEP]}, 7);
    }
    if (o->json)
        printf("]\n");
    return ok ? true : not_understood();
}
