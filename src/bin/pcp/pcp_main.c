/* SPDX-License-Identifier: PostgreSQL
 * pcp_main.c: the tools of administrators: one program, which does what its name says. Its exit
 * status tells the truth: 0 only when the command succeeded. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcp_tool.h"

/* Sends the request and prints the answer: the exit status. */
static int run_command(const struct tool *t, const struct tool_options *o, struct tool_link *l)
{
    struct tool_answer answer = {0};
    struct buf body = {0};
    int status = EXIT_FAILURE;
    char type;
    int rc = -1;

    type = tool_put_request(t, o, &body);
    l->tells = l->tells || t->request == PCP_ORDER;
    if (tool_link_send(l, type, &body))
        rc = tool_link_answer(l, pcp_answer_type(type), &answer);
    if (rc == 1 &&
        (o->recovery == TOOL_RECOVERY_SHOWS ? tool_print_recoveries : t->print)(t, o, &answer))
        status = EXIT_SUCCESS;
    if (rc == 0)
        status = o->refused_status;
    if (rc != -1 && t->request != PCP_STOP)
        (void)tool_link_send(l, PCP_DISCONNECT, NULL);
    buf_free(&body);
    tool_answer_free(&answer);
    return status;
}

static int run(const struct tool *t, const struct tool_options *o)
{
    struct secret password = {0};
    struct tool_link link = {.fd = -1};
    int status = EXIT_FAILURE;

    if (!tool_pass_get(o, &password))
        return EXIT_FAILURE;
    if (tool_link_open(&link, o, secret_slice(&password)))
        status = run_command(t, o, &link);
    secret_free(&password);
    tool_link_close(&link);
    if (fflush(stdout) == EOF)
        status = EXIT_FAILURE;
    return status;
}

static int unknown(const char *name)
{
    const struct tool *t;

    fprintf(stderr, "%s: no such tool; there are:", name);
    for (t = tool_list(); t->name != NULL; t++)
        fprintf(stderr, " pcp_%s", t->name);
    fputs("\n", stderr);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "pcp";
    struct tool_options o;
    const struct tool *t;
    int status;

    /* "pcp node_info" is pcp_node_info. */
    if (strcmp(name, "pcp") == 0 && argc > 1) {
        name = argv[1];
        argc--;
        argv++;
    }
    t = tool_find(name);
    if (t == NULL)
        return unknown(name);
    if (tool_opts_parse(t, argc, argv, &o, &status) == -1)
        return status;
    return run(t, &o);
}
