/* SPDX-License-Identifier: PostgreSQL
 * hba_class.c: classes of characters, by byte, as PostgreSQL has them where it authenticates: the
 * letters are those of ASCII whatever the locale of anybody is. Runs in: workers, supervisor. */
#include "config.h"

#include "hba_class.h"

static bool between(unsigned c, unsigned from, unsigned to)
{
    return c >= from && c <= to;
}

static bool is_digit(unsigned c)
{
    return between(c, '0', '9');
}

static bool is_upper(unsigned c)
{
    return between(c, 'A', 'Z');
}

static bool is_lower(unsigned c)
{
    return between(c, 'a', 'z');
}

static bool is_alpha(unsigned c)
{
    return is_upper(c) || is_lower(c);
}

static bool is_alnum(unsigned c)
{
    return is_alpha(c) || is_digit(c);
}

static bool is_word(unsigned c)
{
    return is_alnum(c) || c == '_';
}

static bool is_space(unsigned c)
{
    return c == ' ' || between(c, '\t', '\r');
}

static bool is_blank(unsigned c)
{
    return c == ' ' || c == '\t';
}

static bool is_print(unsigned c)
{
    return between(c, ' ', '~');
}

static bool is_graph(unsigned c)
{
    return between(c, '!', '~');
}

static bool is_punct(unsigned c)
{
    return is_graph(c) && !is_alnum(c);
}

static bool is_cntrl(unsigned c)
{
    return c < ' ' || between(c, 0x7f, 0x9f);
}

static bool is_xdigit(unsigned c)
{
    return is_digit(c) || between(c, 'a', 'f') || between(c, 'A', 'F');
}

static bool is_ascii(unsigned c)
{
    return c < 128;
}

static const struct {
    const char *name;
    bool (*has)(unsigned c);
} classes[] = {
    {"alnum", is_alnum},
    {"alpha", is_alpha},
    {"ascii", is_ascii},
    {"blank", is_blank},
    {"cntrl", is_cntrl},
    {"digit", is_digit},
    {"graph", is_graph},
    {"lower", is_lower},
    {"print", is_print},
    {"punct", is_punct},
    {"space", is_space},
    {"upper", is_upper},
    {"word", is_word},
    {"xdigit", is_xdigit},
};

void hba_set_add_range(struct hba_set *s, uint32_t from, uint32_t to)
{
    uint32_t c;

    for (c = from; c <= to && c < 256; c++)
        s->has[c] = true;
}

bool hba_set_add_class(struct hba_set *s, struct slice name, bool is_complement)
{
    unsigned c;
    size_t i;

    for (i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (!slice_eq_str(name, classes[i].name))
            continue;
        for (c = 0; c < 256; c++)
            if (classes[i].has(c) != is_complement)
                s->has[c] = true;
        return true;
    }
    return false;
}

void hba_set_ignore_case(struct hba_set *s)
{
    unsigned c;

    for (c = 'A'; c <= 'Z'; c++)
        s->has[c] = s->has[c + 32] = s->has[c] || s->has[c + 32];
}
