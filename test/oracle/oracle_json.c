/* SPDX-License-Identifier: PostgreSQL
 * oracle_json.c: a recursive reader of JSON, strict enough to notice a broken tree.
 * Runs in: the test program oracle_dump only. Why our own: the tests then need no JSON library. */
#include "config.h"

#include "oracle_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define ORACLE_JSON_DEPTH_MAX 20000

struct reader {
    struct arena *arena;
    const char *p;
    int depth;
};

static struct oracle_json *read_value(struct reader *r);

static void skip_space(struct reader *r)
{
    r->p += strspn(r->p, " \t\r\n");
}

static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (*r->p != c) {
        return false;
    }
    r->p++;
    return true;
}

static size_t put_utf8(char *out, unsigned long c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | (c >> 6));
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    out[0] = (char)(0xE0 | (c >> 12));
    out[1] = (char)(0x80 | ((c >> 6) & 0x3F));
    out[2] = (char)(0x80 | (c & 0x3F));
    return 3;
}

/* Unescapes what follows a backslash at r->p into `out`; returns the bytes written, 0 on error. */
static size_t read_escape(struct reader *r, char *out)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *at;
    char hex[5] = {0};

    if (*r->p == 'u') {
        if (strspn(r->p + 1, "0123456789abcdefABCDEF") < 4) {
            return 0;
        }
        memcpy(hex, r->p + 1, 4);
        r->p += 5;
        return put_utf8(out, strtoul(hex, NULL, 16));
    }
    at = *r->p == '\0' ? NULL : strchr(from, *r->p);
    if (at == NULL) {
        return 0;
    }
    *out = to[at - from];
    r->p++;
    return 1;
}

static const char *read_string(struct reader *r)
{
    const char *end;
    char *out;
    size_t n = 0;

    if (!take(r, '"')) {
        return NULL;
    }
    end = r->p;
    while (*end != '"' && *end != '\0') {
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    }
    out = arena_alloc(r->arena, (size_t)(end - r->p) + 1);
    while (*r->p != '"') {
        size_t step = 1;

        if (*r->p == '\0') {
            return NULL;
        }
        if (*r->p == '\\') {
            r->p++;
            step = read_escape(r, out + n);
        } else {
            out[n] = *r->p++;
        }
        if (step == 0) {
            return NULL;
        }
        n += step;
    }
    r->p++;
    out[n] = '\0';
    return out;
}

/* Reads members up to `close`; `v` is already typed as array or object. */
static bool read_members(struct reader *r, struct oracle_json *v, char close)
{
    struct oracle_json **tail = &v->child;

    if (take(r, close)) {
        return true;
    }
    do {
        const char *key = NULL;

        if (v->type == ORACLE_JSON_OBJECT) {
            key = read_string(r);
            if (key == NULL || !take(r, ':')) {
                return false;
            }
        }
        *tail = read_value(r);
        if (*tail == NULL) {
            return false;
        }
        (*tail)->key = key;
        tail = &(*tail)->next;
    } while (take(r, ','));
    return take(r, close);
}

static bool read_word(struct reader *r, struct oracle_json *v)
{
    static const struct {
        const char *word;
        enum oracle_json_type type;
        long number;
    } words[] = {{"true", ORACLE_JSON_BOOL, 1}, {"false", ORACLE_JSON_BOOL, 0},
        {"null", ORACLE_JSON_NULL, 0}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strncmp(r->p, words[i].word, strlen(words[i].word)) == 0) {
            v->type = words[i].type;
            v->number = words[i].number;
            r->p += strlen(words[i].word);
            return true;
        }
    }
    return false;
}

static bool read_scalar(struct reader *r, struct oracle_json *v)
{
    size_t n;

    if (*r->p == '"') {
        v->type = ORACLE_JSON_STRING;
        v->text = read_string(r);
        return v->text != NULL;
    }
    n = strspn(r->p, "-+.eE0123456789");
    if (n == 0) {
        return read_word(r, v);
    }
    v->type = ORACLE_JSON_NUMBER;
    v->number = strtol(r->p, NULL, 10);
    r->p += n;
    return true;
}

static struct oracle_json *read_value(struct reader *r)
{
    struct oracle_json *v = arena_alloc_zero(r->arena, sizeof *v);
    bool ok;

    skip_space(r);
    if (++r->depth > ORACLE_JSON_DEPTH_MAX) {
        return NULL;
    }
    if (take(r, '{')) {
        v->type = ORACLE_JSON_OBJECT;
        ok = read_members(r, v, '}');
    } else if (take(r, '[')) {
        v->type = ORACLE_JSON_ARRAY;
        ok = read_members(r, v, ']');
    } else {
        ok = read_scalar(r, v);
    }
    r->depth--;
    return ok ? v : NULL;
}

struct oracle_json *oracle_json_parse(struct arena *a, const char *text)
{
    struct reader r = {a, text, 0};
    struct oracle_json *v = read_value(&r);

    skip_space(&r);
    return *r.p == '\0' ? v : NULL;
}

const struct oracle_json *oracle_json_get(const struct oracle_json *v, const char *key)
{
    if (v == NULL || v->type != ORACLE_JSON_OBJECT) {
        return NULL;
    }
    for (const struct oracle_json *m = v->child; m != NULL; m = m->next) {
        if (strcmp(m->key, key) == 0) {
            return m;
        }
    }
    return NULL;
}

const char *oracle_json_str(const struct oracle_json *v, const char *key)
{
    const struct oracle_json *m = oracle_json_get(v, key);

    return m != NULL && m->type == ORACLE_JSON_STRING ? m->text : "";
}

long oracle_json_int(const struct oracle_json *v, const char *key)
{
    const struct oracle_json *m = oracle_json_get(v, key);

    return m == NULL ? 0 : m->number;
}
