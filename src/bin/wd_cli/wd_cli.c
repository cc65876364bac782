/* SPDX-License-Identifier: PostgreSQL
 * wd_cli.c: asks the watchdog of a pgpool on this machine, and tells it what a life check outside
 * has found. Options, outputs and exit codes are those of pgpool-II's program. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cluster/wd_ipc.h"
#include "cluster/wd_json.h"
#include "config/conf.h"
#include "config/wd_id.h"
#include "sys/fd.h"

#define DEFAULT_PORT 9898
#define NO_NODE      (-1)
#define WAIT_S       10
#define HEADER       5

struct options {
    bool asks;     /* -i */
    int status;    /* -I: enum of NodeStatus; 0: not given */
    bool all;      /* -a */
    int node;      /* -n; NO_NODE */
    int node_port; /* -P; NO_NODE */
    const char *node_name;
    const char *node_host;
    char key[1024]; /* wd_authkey */
    bool has_key;   /* by -k */
    const char *conf_file;
    const char *folder;
    int port; /* 0: not given */
    const char *message;
    bool verbose;
};

/* One pgpool, as the answer has it. */
struct node {
    int id;
    int state;
    int wd_port;
    int pgpool_port;
    char state_name[64];
    char name[256];
    char host[256];
};

static void usage(FILE *to)
{
    fputs("wd_cli asks pgpool's watchdog about the pgpools of its cluster, and tells it whether "
          "they live.\n\n"
          "Usage:\n"
          "  wd_cli [OPTION]... -i [NODE]\n"
          "  wd_cli [OPTION]... -I DEAD|ALIVE NODE\n\n"
          "  -i, --info                 show the pgpools\n"
          "  -I, --inform=DEAD|ALIVE    say that a pgpool is dead, or alive (needs\n"
          "                             wd_lifecheck_method = external)\n"
          "  -m, --message=TEXT         why, for the log\n"
          "NODE is one of\n"
          "  -a, --all                  all (with -i only)\n"
          "  -n, --node-id=NUMBER       pgpool_node_id\n"
          "  -N, --node-name=NAME       as -i shows it\n"
          "  -H, --node-host=HOST       hostnameN, with -P where several have the same\n"
          "  -P, --node-port=PORT       pgpool_portN\n"
          "Where the watchdog is\n"
          "  -f, --config-file=FILE     pgpool.conf, which says all that follows\n"
          "  -s, --socket-dir=FOLDER    wd_ipc_socket_dir (default: /tmp)\n"
          "  -p, --ipc-port=PORT        its wd_portN (default: 9898)\n"
          "  -k, --auth-key=KEY         wd_authkey\n"
          "Others\n"
          "  -v, --verbose              one line for each value\n"
          "  -d, --debug                accepted\n"
          "  -V, --version              the version\n"
          "  -h, --help                 this text\n",
        to);
}

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "ERROR: %s%s%s\n", what, why[0] == '\0' ? "" : ": ", why);
    return EXIT_FAILURE;
}

/* What the settings say, where the command line does not. */
static void use_conf(struct options *o, char folder[], size_t room)
{
    struct conf_report report;
    struct conf_gen *gen;
    struct err err = {0};
    int self;

    if (o->conf_file == NULL)
        return;
    conf_report_init(&report);
    gen = conf_load(o->conf_file, NULL, &report);
    conf_report_fini(&report);
    if (gen == NULL) {
        fprintf(stderr, "WARNING: could not use configuration file \"%s\"\n", o->conf_file);
        return;
    }
    if (o->folder == NULL) {
        snprintf(folder, room, "%s", conf_of(gen)->wd_ipc_socket_dir);
        o->folder = folder;
    }
    if (!o->has_key)
        snprintf(o->key, sizeof o->key, "%s", conf_of(gen)->wd_authkey);
    if (o->port == 0 && wd_id_read(gen, &self, &err) == 0)
        o->port = conf_of(gen)->wd_nodes[self].wd_port;
    conf_gen_free(&gen);
}

/* The socket */

static int open_socket(const struct options *o)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = WAIT_S};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(addr.sun_path, sizeof addr.sun_path, "%s/%s%d",
        o->folder == NULL ? "/tmp" : o->folder, WD_IPC_SOCKET_NAME,
        o->port == 0 ? DEFAULT_PORT : o->port);

    if (n < 0 || (size_t)n >= sizeof addr.sun_path)
        errno = ENAMETOOLONG;
    else if (fd != -1 && connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        return fd;
    }
    fprintf(stderr, "ERROR: could not connect to the watchdog's socket \"%s\": %s\n", addr.sun_path,
        strerror(errno));
    if (fd != -1)
        close(fd);
    return -1;
}

static bool read_all(int fd, char *p, size_t n)
{
    ssize_t got;

    for (; n > 0; p += got, n -= (size_t)got) {
        got = read(fd, p, n);
        if (got <= 0)
            return false;
    }
    return true;
}

/* Sends {fields} and takes the answer; its type, or 0 after saying what went wrong. */
static char ask(const struct options *o, char type, const struct buf *fields, struct buf *reply)
{
    struct buf body = {0};
    struct buf out = {0};
    char head[HEADER];
    char kind = 0;
    int fd = open_socket(o);

    if (fd == -1)
        return 0;
    buf_put_byte(&body, '{');
    wd_json_put_text(&body, "IPCAuthKey", o->key);
    buf_put(&body, fields->data, fields->len);
    buf_put_byte(&body, '}');
    buf_put_byte(&out, type);
    buf_put_u32(&out, (uint32_t)body.len);
    buf_put(&out, body.data, body.len);
    if (fd_write_all(fd, out.data, out.len) == 0 && read_all(fd, head, sizeof head)) {
        size_t len = (size_t)(uint8_t)head[1] << 24 | (size_t)(uint8_t)head[2] << 16 |
                     (size_t)(uint8_t)head[3] << 8 | (uint8_t)head[4];
        char *p = len <= 16 * WD_IPC_MAX_BYTES ? mem_alloc(len + 1) : NULL;

        if (p != NULL && read_all(fd, p, len)) {
            buf_put(reply, p, len);
            kind = head[0];
        }
        mem_free(p);
    }
    if (kind == 0)
        (void)complain("the watchdog did not answer", "");
    close(fd);
    buf_free(&body);
    buf_free(&out);
    return kind;
}

/* The answer to all but WD_IPC_OK. */
static int fail(char kind, const struct buf *reply)
{
    char why[256];

    if (kind == 0)
        return EXIT_FAILURE;
    (void)wd_json_text(buf_slice(reply), "Error", why, sizeof why);
    return complain(
        kind == WD_IPC_TRANSITION ? "the cluster is in transition" : "the watchdog refuses", why);
}

/* Pgpools */

static bool read_node(struct slice element, struct node *n)
{
    memset(n, 0, sizeof *n);
    return wd_json_int(element, "ID", &n->id) && wd_json_int(element, "State", &n->state) &&
           wd_json_int(element, "WdPort", &n->wd_port) &&
           wd_json_int(element, "PgpoolPort", &n->pgpool_port) &&
           wd_json_text(element, "StateName", n->state_name, sizeof n->state_name) &&
           wd_json_text(element, "NodeName", n->name, sizeof n->name) &&
           wd_json_text(element, "HostName", n->host, sizeof n->host);
}

static bool is_meant(const struct options *o, const struct node *n)
{
    return (o->node == NO_NODE || o->node == n->id) &&
           (o->node_name == NULL || strcasecmp(o->node_name, n->name) == 0) &&
           (o->node_host == NULL || strcasecmp(o->node_host, n->host) == 0) &&
           (o->node_port == NO_NODE || o->node_port == n->pgpool_port);
}

static void show(const struct options *o, const struct node *n)
{
    if (!o->verbose) {
        printf("%d %d \"%s\" \"%s\" \"%s\" %d %d\n", n->id, n->state, n->state_name, n->name,
            n->host, n->wd_port, n->pgpool_port);
        return;
    }
    printf("Node ID:           %d\n"
           "Node Status code:  %d\n"
           "Node Status:       %s\n"
           "Node Name:         %s\n"
           "Node Host:         %s\n"
           "Node WD Port:      %d\n"
           "Node Pgpool Port:  %d\n\n",
        n->id, n->state, n->state_name, n->name, n->host, n->wd_port, n->pgpool_port);
}

/* Fills *found with the last one meant; returns how many are, -1 after saying what went wrong. */
static int look(const struct options *o, bool prints, struct node *found)
{
    struct buf fields = {0};
    struct buf reply = {0};
    struct slice rest = {0};
    struct slice element;
    struct node n;
    int total = 0;
    int nmeant = 0;
    char kind = ask(o, WD_IPC_NODES, &fields, &reply);

    if (kind != WD_IPC_OK || !wd_json_find(buf_slice(&reply), "WatchdogNodes", &rest)) {
        (void)fail(kind, &reply);
        buf_free(&reply);
        return -1;
    }
    (void)wd_json_int(buf_slice(&reply), "NodeCount", &total);
    if (prints)
        printf("Total Watchdog nodes configured for lifecheck:    %d\n*****************\n", total);
    while (wd_json_next(&rest, &element)) {
        if (!read_node(element, &n) || !is_meant(o, &n))
            continue;
        nmeant++;
        *found = n;
        if (prints)
            show(o, &n);
    }
    buf_free(&reply);
    return nmeant;
}

static int inform(const struct options *o)
{
    struct buf fields = {0};
    struct buf reply = {0};
    struct node n;
    int nmeant = look(o, false, &n);
    char kind;

    if (nmeant == -1)
        return EXIT_FAILURE;
    if (nmeant != 1)
        return complain(nmeant == 0 ? "no pgpool is the one that is meant"
                                    : "more than one pgpool is meant; say its number with -n",
            "");
    buf_printf(&fields, ",\"NodeID\":%d,\"NodeStatus\":%d,", n.id, o->status);
    wd_json_put_text(&fields, "Message", o->message == NULL ? "" : o->message);
    kind = ask(o, WD_IPC_NODE_STATUS, &fields, &reply);
    buf_free(&fields);
    if (kind != WD_IPC_OK) {
        (void)fail(kind, &reply);
        buf_free(&reply);
        return EXIT_FAILURE;
    }
    buf_free(&reply);
    fprintf(stderr, "INFO: informed watchdog about node id %d is %s\n", n.id,
        o->status == WD_IPC_DEAD ? "dead" : "alive");
    return EXIT_SUCCESS;
}

/* The command line */

static bool take_number(const char *text, int min, int max, int *out)
{
    char *end;
    long v = strtol(text, &end, 10);

    *out = (int)v;
    return *text != '\0' && *end == '\0' && v >= min && v <= max;
}

static bool take_status(const char *text, int *out)
{
    *out = strcasecmp(text, "DEAD") == 0    ? WD_IPC_DEAD
           : strcasecmp(text, "ALIVE") == 0 ? WD_IPC_ALIVE
                                            : 0;
    return *out != 0;
}

/* -1: go on; else the status to end with. */
static int take_option(int opt, struct options *o)
{
    switch (opt) {
    case 'i':
        o->asks = true;
        return -1;
    case 'I':
        return take_status(optarg, &o->status) ? -1 : complain("-I needs DEAD or ALIVE", "");
    case 'a':
        o->all = true;
        return -1;
    case 'n':
        return take_number(optarg, 0, WD_MAX_MEMBERS - 1, &o->node)
                   ? -1
                   : complain("invalid node id", optarg);
    case 'N':
        o->node_name = optarg;
        return -1;
    case 'H':
        o->node_host = optarg;
        return -1;
    case 'P':
        return take_number(optarg, 1, 65535, &o->node_port) ? -1 : complain("invalid port", optarg);
    case 'k':
        snprintf(o->key, sizeof o->key, "%s", optarg);
        o->has_key = true;
        mem_wipe(optarg, strlen(optarg)); /* it can be seen in the list of processes */
        return -1;
    case 'f':
        o->conf_file = optarg;
        return -1;
    case 's':
        o->folder = optarg;
        return -1;
    case 'p':
        return take_number(optarg, 1, 65535, &o->port) ? -1 : complain("invalid port", optarg);
    case 'm':
        o->message = optarg;
        return -1;
    case 'v':
        o->verbose = true;
        return -1;
    case 'd':
        return -1;
    case 'V':
        fprintf(stderr, "wd_cli (pgpool-II) %s (%s)\n", PACKAGE_VERSION, PGPOOL_CODENAME);
        return EXIT_SUCCESS;
    case 'h':
        usage(stdout);
        return EXIT_SUCCESS;
    default:
        fputs("Try \"wd_cli --help\" for more information.\n", stderr);
        return EXIT_FAILURE;
    }
}

static const struct option long_options[] = {{"all", no_argument, NULL, 'a'},
    {"auth-key", required_argument, NULL, 'k'}, {"config-file", required_argument, NULL, 'f'},
    {"debug", no_argument, NULL, 'd'}, {"help", no_argument, NULL, 'h'},
    {"info", no_argument, NULL, 'i'}, {"inform", required_argument, NULL, 'I'},
    {"ipc-port", required_argument, NULL, 'p'}, {"message", required_argument, NULL, 'm'},
    {"node-host", required_argument, NULL, 'H'}, {"node-id", required_argument, NULL, 'n'},
    {"node-name", required_argument, NULL, 'N'}, {"node-port", required_argument, NULL, 'P'},
    {"socket-dir", required_argument, NULL, 's'}, {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};

static bool is_any_named(const struct options *o)
{
    return o->node != NO_NODE || o->node_name != NULL || o->node_host != NULL ||
           o->node_port != NO_NODE;
}

int main(int argc, char **argv)
{
    struct options o = {.node = NO_NODE, .node_port = NO_NODE};
    struct node found;
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    int status;
    int opt;
    int n;

    while (
        (opt = getopt_long(argc, argv, "adf:hiI:k:m:n:N:H:p:P:s:vV", long_options, NULL)) != -1) {
        status = take_option(opt, &o);
        if (status != -1)
            return status;
    }
    if (optind < argc)
        return complain("too many arguments", argv[optind]);
    if (o.asks == (o.status != 0))
        return complain("say either -i or -I", "");
    if (o.status != 0 && (o.all || !is_any_named(&o)))
        return complain("-I needs one pgpool: -n, -N, or -H and -P", "");
    if (o.all && is_any_named(&o))
        return complain("-a is all pgpools; name none then", "");
    use_conf(&o, folder, sizeof folder);
    if (o.status != 0)
        return inform(&o);
    n = look(&o, true, &found);
    if (n == 0)
        (void)complain("no pgpool is the one that is meant", "");
    return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
