/* SPDX-License-Identifier: PostgreSQL
 * hba_gate.c: regular expressions of pg_ident.conf for tests: reads lines "expression name name
 * ...", all in hexadecimal, and prints for each expression one line: "error text", or for each name
 * "-" (no match), "?" (a match without \1), "=" and what \1 is in hexadecimal. "vague " stands in
 * front when \1 is not to be had; then each match is "?". Without arguments it is skipped.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "hba_int.h"

#define LINE_MAX_BYTES 65536

static void on_report(const char *file, unsigned line, const char *text, void *ctx)
{
    (void)file;
    (void)line;
    (void)ctx;
    printf("error %s", text);
}

static size_t undo_hex(const char *hex, char *out)
{
    unsigned v;
    size_t n = 0;

    for (; hex[0] != '\0' && hex[1] != '\0' && sscanf(hex, "%2x", &v) == 1; hex += 2)
        out[n++] = (char)v;
    out[n] = '\0';
    return n;
}

static void ask(const struct hba_are *re, const char *hex)
{
    static char name[LINE_MAX_BYTES];
    struct slice caught;
    size_t i;

    if (hba_are_match(re, slice_of(name, undo_hex(hex, name)), &caught) != HBA_YES) {
        printf("- ");
        return;
    }
    printf("%c", re->is_vague || caught.p == NULL ? '?' : '=');
    for (i = 0; !re->is_vague && i < caught.n; i++)
        printf("%02x", (unsigned char)caught.p[i]);
    printf(" ");
}

static void take_line(char *line)
{
    static char text[LINE_MAX_BYTES];
    struct hba_raw raw = {.file = "x", .line = 1};
    struct hba_token t = {.text = text};
    struct hba_lex lx;
    char *save = NULL;
    char *word = strtok_r(line, " \n", &save);

    text[0] = '/';
    (void)undo_hex(word == NULL ? "" : word + 1, text + 1);
    hba_lex_init(&lx, 0, on_report, NULL);
    if (hba_compile(&lx, &raw, &t) == 0) {
        if (t.regex->is_vague)
            printf("vague ");
        while ((word = strtok_r(NULL, " \n", &save)) != NULL)
            ask(t.regex, word + 1);
    }
    printf("\n");
    arena_free(&lx.arena);
}

int main(int argc, char **argv)
{
    static char line[LINE_MAX_BYTES];

    (void)argv;
    if (argc < 2)
        return 77;
    while (fgets(line, sizeof line, stdin) != NULL)
        take_line(line);
    return 0;
}
