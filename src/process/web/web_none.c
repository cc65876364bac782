/* SPDX-License-Identifier: PostgreSQL
 * web_none.c: what stands for the web process in a build without libmicrohttpd. The supervisor does
 * not start it: with http_port it refuses to start. Runs in: nobody. */
#include "config.h"

#include "process/web/web.h"

int web_main(struct proc_env *env)
{
    return 1;
}
