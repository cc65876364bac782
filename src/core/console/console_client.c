/* SPDX-License-Identifier: PostgreSQL
 * console_client.c: what there is of one client, and how it is answered. Runs in: workers. */
#include "config.h"

#include "base/mem.h"
#include "wire/writer.h"

#include "console_int.h"

struct console *console_of(struct client *c)
{
    struct console *console = client_console(c);

    if (console != NULL)
        return console;
    console = mem_alloc_zero(sizeof *console);
    list_init(&console->objects);
    client_set_console(c, console);
    return console;
}

bool console_is_alone(const struct client *c)
{
    const struct console *console = client_console(c);

    return console != NULL && console->right != CONSOLE_NOT_IN;
}

bool console_ends_tx(const struct admin_cmd *cmd)
{
    return cmd->kind == ADMIN_KIND_COMMIT || cmd->kind == ADMIN_KIND_ROLLBACK;
}

void console_note(struct client *c, const struct admin_cmd *cmd, struct admin_result *res)
{
    struct console *console = client_console(c);

    if (!console_is_alone(c))
        return;
    if (cmd == NULL && console->tx == 'T')
        console->tx = 'E';
    if (cmd != NULL && cmd->kind == ADMIN_KIND_BEGIN)
        console->tx = 'T';
    if (cmd == NULL || !console_ends_tx(cmd))
        return;
    if (console->tx == 'E')
        res->tag = "ROLLBACK";
    console->tx = 'I';
}

enum local_verdict console_tell(struct client *c, struct buf *out)
{
    client_send(c, out);
    return LOCAL_DONE;
}

void console_put_failure(struct client *c, const struct err *err, struct buf *out)
{
    console_note(c, NULL, NULL);
    wire_put_err(out, err);
}

enum local_verdict console_fail(struct client *c, const struct err *err)
{
    struct buf out = {0};

    console_put_failure(c, err, &out);
    client_send(c, &out);
    client_fail_part(c);
    return LOCAL_DONE;
}
