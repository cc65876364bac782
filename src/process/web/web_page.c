/* SPDX-License-Identifier: PostgreSQL
 * web_page.c: gives out the files of the console, which are part of the program.
 * Runs in: web. No file system is looked at, so no path can lead anywhere. */
#include "config.h"

#include "web_page.h"

#include <string.h>

#include "web_int.h"

#define STATUS_NOT_FOUND 404
#define FIRST_PAGE       "console.html"

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {{".html", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"}, {".js", "text/javascript; charset=utf-8"},
        {".svg", "image/svg+xml"}};
    const char *end = strrchr(name, '.');
    size_t i;

    for (i = 0; end != NULL && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(end, types[i][0]) == 0)
            return types[i][1];
    return WEB_TYPE_TEXT;
}

void web_page_static(const struct web_request *r, struct web_answer *a)
{
    const char *name = strcmp(r->path, "/") == 0 ? FIRST_PAGE : r->path + 1;
    const struct web_file *f;

    for (f = web_files; f->name != NULL; f++) {
        if (strcmp(f->name, name) != 0)
            continue;
        a->type = type_of(name);
        buf_put(&a->body, f->bytes, f->n);
        return;
    }
    web_answer_text(a, STATUS_NOT_FOUND, "there is nothing here\n");
}
