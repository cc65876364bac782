/* SPDX-License-Identifier: PostgreSQL
 * startup_options.c: the `options` parameter of a startup packet, split into settings.
 * Runs in: worker. The session must know which settings a client asked for, to keep them when its
 * statements move between servers. Switches that are not settings are handed on as they are. */
#include "config.h"

#include "wire/startup.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes the next word from *rest, without its backslashes; false when there is none. */
static bool next_word(struct slice *rest, struct buf *word)
{
    size_t i = 0;

    buf_clear(word);
    while (i < rest->n && is_blank(rest->p[i]))
        i++;
    if (i == rest->n)
        return false;
    while (i < rest->n && !is_blank(rest->p[i])) {
        if (rest->p[i] == '\\' && ++i == rest->n)
            break;
        buf_put_byte(word, rest->p[i++]);
    }
    *rest = slice_of(rest->p + i, rest->n - i);
    return true;
}

/* Reports "name=value" found at `text` in `word`; false when it is not of that form. */
static bool emit_setting(struct buf *word, size_t text, startup_option_fn *fn, void *ctx)
{
    char *name = word->data + text;
    size_t n = word->len - text;
    char *eq = memchr(name, '=', n);
    char *c;

    if (eq == NULL || eq == name)
        return false;
    for (c = name; c < eq; c++) {
        if (*c == '-')
            *c = '_';
    }
    fn(slice_of(name, (size_t)(eq - name)), slice_of(eq + 1, n - (size_t)(eq - name) - 1), ctx);
    return true;
}

void startup_split_options(struct slice options, startup_option_fn *fn, void *ctx)
{
    struct buf word = {0};
    bool after_c = false; /* the word before was "-c" */
    struct slice s;

    while (next_word(&options, &word)) {
        s = buf_slice(&word);
        if (after_c) {
            after_c = false;
            if (emit_setting(&word, 0, fn, ctx))
                continue;
            fn(slice_of("", 0), slice_of("-c", 2), ctx);
        } else if (slice_eq_str(s, "-c")) {
            after_c = true;
            continue;
        } else if (s.n > 2 && (memcmp(s.p, "-c", 2) == 0 || memcmp(s.p, "--", 2) == 0)) {
            if (emit_setting(&word, 2, fn, ctx))
                continue;
        }
        fn(slice_of("", 0), s, ctx);
    }
    if (after_c)
        fn(slice_of("", 0), slice_of("-c", 2), ctx);
    buf_free(&word);
}
