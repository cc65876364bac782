/* SPDX-License-Identifier: PostgreSQL
 * wd_addr_words.h: the operator's words about the virtual address, made ready for use.
 * Runs in: watchdog. */
#ifndef PGP_WATCHDOG_WD_ADDR_WORDS_H
#define PGP_WATCHDOG_WD_ADDR_WORDS_H

#include <stdbool.h>

#include "net/ifaddr.h"

#include "wd_place.h"

struct conf;
struct conf_list;

struct wd_addr_words {
    char *up;
    char *down;
    char *arping;
    char *ping; /* the program itself */
    char *up_hook;
    char *down_hook;
    struct wd_place_words place;
    bool up_is_default;
};

/* A command for the shell: the address for $_IP_$, and `folder` in front of one that does not begin
 * with a slash. The caller frees it. */
char *wd_words_command(const char *folder, const char *command, const char *address);
void wd_words_init(struct wd_addr_words *w, const struct conf *conf, const char *address);
/* The hooks anew: they may change at a reload. */
void wd_words_hooks(struct wd_addr_words *w, const struct conf *conf);
void wd_words_fini(struct wd_addr_words *w);
/* False when none of the interfaces that `list` names is up; "any" names all but the loopback. */
bool wd_words_links_are_up(const struct conf_list *list, const struct iflink *link, int n);

#endif
