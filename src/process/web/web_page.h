/* SPDX-License-Identifier: PostgreSQL
 * web_page.h: the files of the console. Runs in: web. */
#ifndef PGP_PROCESS_WEB_PAGE_H
#define PGP_PROCESS_WEB_PAGE_H

#include <stddef.h>

struct web_request;
struct web_answer;

struct web_file {
    const char *name;
    const unsigned char *bytes;
    size_t n;
};

/* Made from src/process/web/page by the build; the last has no name. */
extern const struct web_file web_files[];

/* Answers with the file that the path names. They hold no facts about anything: who has not logged
 * in gets them, too. */
void web_page_static(const struct web_request *r, struct web_answer *a);

#endif
