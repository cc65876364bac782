/* SPDX-License-Identifier: PostgreSQL
 * pcp_watchdog.c: prints the watchdog cluster. The answer is one text in JSON: only names and plain
 * values are looked for, and what is not there is printed as empty. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcp_tool.h"

/* Position behind the string that begins at `p` (at its quote). */
static const char *skip_string(const char *p)
{
    for (p++; *p != '\0' && *p != '"'; p++) {
        if (*p == '\\' && p[1] != '\0')
            p++;
    }
    return *p == '"' ? p + 1 : p;
}

/* Finds the value of `key` in the object that begins at `p`, at its own level; NULL: none. */
static const char *find(const char *p, const char *key)
{
    size_t n = strlen(key);
    int depth = 0;

    while (*p != '\0') {
        const char *at = p;

        if (*p == '{' || *p == '[')
            depth++;
        if ((*p == '}' || *p == ']') && --depth == 0)
            return NULL;
        p = *p == '"' ? skip_string(p) : p + 1;
        if (depth != 1 || *at != '"' || (size_t)(p - at) != n + 2 || strncmp(at + 1, key, n) != 0)
            continue;
        p += strspn(p, " \t\r\n");
        if (*p == ':')
            return p + 1 + strspn(p + 1, " \t\r\n");
    }
    return NULL;
}

/* The value as text, without the quotes of a string. */
static struct slice value(const char *object, const char *key)
{
    const char *v = find(object, key);
    const char *end;

    if (v == NULL)
        return slice_of("", 0);
    if (*v != '"')
        return slice_of(v, strcspn(v, ",}] \t\r\n"));
    end = skip_string(v);
    return slice_of(v + 1, end - v < 2 ? 0 : (size_t)(end - v) - 2);
}

static int number(const char *object, const char *key)
{
    return atoi(value(object, key).p);
}

static const char *yes(const char *object, const char *key)
{
    return number(object, key) != 0 ? "YES" : "NO";
}

static const char *quorum_text(int status)
{
    switch (status) {
    case 1:
        return "QUORUM EXIST";
    case 0:
        return "QUORUM IS ON THE EDGE";
    case -1:
        return "QUORUM ABSENT";
    case -2:
        return "NO LEADER NODE";
    default:
        return "UNKNOWN";
    }
}

static void put(const char *title, const char *object, const char *key)
{
    struct slice v = value(object, key);

    printf("%s : %.*s\n", title, (int)v.n, v.p);
}

static void print_cluster(const struct tool_options *o, const char *json)
{
    struct slice name = value(json, "LeaderNodeName");
    struct slice host = value(json, "LeaderHostName");

    if (!o->verbose) {
        printf("%d %d %s %.*s %.*s\n\n", number(json, "NodeCount"),
            number(json, "MemberRemoteNodeCount") + 1, yes(json, "Escalated"), (int)name.n, name.p,
            (int)host.n, host.p);
        return;
    }
    printf("Watchdog Cluster Information \n");
    put("Total Nodes             ", json, "NodeCount");
    put("Remote Nodes            ", json, "RemoteNodeCount");
    put("Member Remote Nodes     ", json, "MemberRemoteNodeCount");
    put("Alive Remote Nodes      ", json, "AliveNodeCount");
    put("Nodes required for quorum", json, "NodesRequireForQuorum");
    printf("Quorum state             : %s\n", quorum_text(number(json, "QuorumStatus")));
    printf("Local node escalation    : %s\n", yes(json, "Escalated"));
    printf("Leader Node Name         : %.*s\n", (int)name.n, name.p);
    printf("Leader Host Name         : %.*s\n\n", (int)host.n, host.p);
    printf("Watchdog Node Information \n");
}

/* A text without its escapes. */
static void put_text(const char *title, const char *object, const char *key)
{
    struct slice v = value(object, key);
    size_t i;

    fputs(title, stdout);
    for (i = 0; i < v.n; i++) {
        if (v.p[i] == '\\' && i + 1 < v.n)
            i++;
        putchar(v.p[i]);
    }
}

static void put_follows(const char *node)
{
    int id = number(node, "Follows");

    if (id < 0)
        printf("Follows           : nobody\n");
    else
        printf("Follows           : pgpool %d\n", id);
}

static void print_member(const struct tool_options *o, const char *node)
{
    static const char *const keys[] = {"NodeName", "HostName", "PgpoolPort", "WdPort", "State",
        "StateName", "Membership", "MembershipString"};
    size_t i;

    if (!o->verbose) {
        for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            struct slice v = value(node, keys[i]);

            printf("%.*s ", (int)v.n, v.p);
        }
        printf("%s\n", yes(node, "LifecheckStarted"));
        return;
    }
    put("Node Name        ", node, "NodeName");
    put("Host Name        ", node, "HostName");
    put("Delegate IP      ", node, "DelegateIP");
    put("Pgpool port      ", node, "PgpoolPort");
    put("Watchdog port    ", node, "WdPort");
    put("Node priority    ", node, "Priority");
    put("Status           ", node, "State");
    put("Status Name      ", node, "StateName");
    put("Membership Status", node, "MembershipString");
    if (find(node, "Follows") != NULL)
        put_follows(node);
    printf("Lifecheck Started : %s\n\n", yes(node, "LifecheckStarted"));
}

/* Steps from one object of an array to the next; NULL behind the last. */
static const char *next_object(const char *p)
{
    int depth = 0;

    while (*p != '\0') {
        if (*p == '"') {
            p = skip_string(p);
            continue;
        }
        if (*p == '{')
            depth++;
        if (*p == '}' && --depth == 0)
            break;
        p++;
    }
    p += strcspn(p, "{]");
    return *p == '{' ? p : NULL;
}

/* What an answer of pgpool-II does not have. */
static void print_history(const char *json)
{
    const char *leads = find(json, "Leads");
    const char *event = find(json, "Events");

    if (leads == NULL || event == NULL)
        return;
    printf("Watchdog History \n");
    put("Leader since             ", leads, "Time");
    put_text("Leader because           : ", leads, "Why");
    if (number(json, "LeaseLeft") >= 0)
        printf("\nLease of the address     : %d ms left", number(json, "LeaseLeft"));
    put_text("\nAddress here             : ", json, "AddressWhy");
    printf("\n\n");
    event += strcspn(event, "{]");
    for (; event != NULL && *event == '{'; event = next_object(event)) {
        put_text("", event, "Time");
        put_text("  ", event, "Text");
        putchar('\n');
    }
}

bool tool_print_watchdog(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a)
{
    struct slice body = tool_answer_body(a, 0);
    struct slice word;
    struct slice json;
    const char *node;

    if (!pcp_take_str(&body, &word) || !pcp_take_str(&body, &json)) {
        fprintf(stderr, "ERROR: the server's answer was not understood\n");
        return false;
    }
    if (o->json) {
        printf("%s\n", json.p);
        return true;
    }
    print_cluster(o, json.p);
    node = find(json.p, "WatchdogNodes");
    node = node == NULL ? NULL : node + strcspn(node, "{]");
    for (; node != NULL && *node == '{'; node = next_object(node))
        print_member(o, node);
    if (o->verbose)
        print_history(json.p);
    return true;
}
