/* SPDX-License-Identifier: PostgreSQL
 * wd_addr_words.c: the operator's words about the virtual address, made ready for use: commands
 * with the address in them, and which interfaces matter.
 * Runs in: watchdog. */
#include "config.h"

#include "wd_addr_words.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/conf_param.h"

#define PLACEHOLDER "$_IP_$"

char *wd_words_command(const char *folder, const char *command, const char *address)
{
    struct buf out = {0};
    const char *p = command;
    const char *at;
    char *line;

    if (command[0] != '\0' && command[0] != '/' && folder[0] != '\0')
        buf_printf(&out, "%s/", folder);
    while ((at = strstr(p, PLACEHOLDER)) != NULL) {
        buf_put(&out, p, (size_t)(at - p));
        buf_printf(&out, "%s", address);
        p = at + strlen(PLACEHOLDER);
    }
    buf_printf(&out, "%s", p);
    line = mem_strndup(buf_slice(&out).p, buf_slice(&out).n);
    buf_free(&out);
    return line;
}

static char *join(const char *folder, const char *name)
{
    struct buf out = {0};
    char *path;

    buf_printf(&out, "%s/%s", folder, name);
    path = mem_strndup(buf_slice(&out).p, buf_slice(&out).n);
    buf_free(&out);
    return path;
}

void wd_words_init(struct wd_addr_words *w, const struct conf *conf, const char *address)
{
    struct conf_ref up = {0};

    *w = (struct wd_addr_words){0};
    w->up = wd_words_command(conf->if_cmd_path, conf->if_up_cmd, address);
    w->down = wd_words_command(conf->if_cmd_path, conf->if_down_cmd, address);
    w->arping = wd_words_command(conf->arping_path, conf->arping_cmd, address);
    w->ping = join(conf->ping_path, "ping");
    w->up_is_default = conf_param_find("if_up_cmd", &up, NULL) == 0 &&
                       strcmp(conf->if_up_cmd, up.param->def_text) == 0;
    wd_place_read(conf->if_up_cmd, &w->place);
    wd_words_hooks(w, conf);
}

void wd_words_hooks(struct wd_addr_words *w, const struct conf *conf)
{
    mem_free(w->up_hook);
    mem_free(w->down_hook);
    w->up_hook = mem_strdup(conf->wd_escalation_command);
    w->down_hook = mem_strdup(conf->wd_de_escalation_command);
}

void wd_words_fini(struct wd_addr_words *w)
{
    mem_free(w->up);
    mem_free(w->down);
    mem_free(w->arping);
    mem_free(w->ping);
    mem_free(w->up_hook);
    mem_free(w->down_hook);
    *w = (struct wd_addr_words){0};
}

/* ---- wd_monitoring_interfaces_list ---- */

static bool is_watched(const struct conf_list *list, const struct iflink *link)
{
    int i;

    for (i = 0; i < list->n; i++)
        if (strcmp(list->item[i], link->name) == 0 ||
            (strcmp(list->item[i], "any") == 0 && !link->is_loopback))
            return true;
    return false;
}

bool wd_words_links_are_up(const struct conf_list *list, const struct iflink *link, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (link[i].is_up && is_watched(list, &link[i]))
            return true;
    return list->n == 0;
}
