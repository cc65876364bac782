/* SPDX-License-Identifier: PostgreSQL
 * client_said.c: log_per_node_statement and its like for the extended protocol: Bind and Execute
 * are logged with the text of their statement. Runs in: workers.
 *
 * Texts are kept here and only while statements are logged, whoever else keeps them: nobody does
 * for portals, nor for anything where nothing is balanced. What was parsed before that has no text.
 * Must never: cost anything while nothing is logged. */
#include "config.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "wire/proto.h"
#include "wire/reader.h"

#include "client_int.h"

/* As pgpool-II. */
#define SAID_TEXT_MAX 1023
/* A client that keeps more names than this loses the oldest. */
#define SAID_MAX 512

struct said_name {
    struct list node;
    char what; /* 'S' a statement, 'P' a portal */
    struct slice name;
    struct slice text;
    char bytes[];
};

/* Of one client. */
struct said_book {
    struct hash_node node;
    const struct client *client;
    struct list names; /* the newest first */
    unsigned count;
};

static uint64_t hash_of(const struct client *c)
{
    return hash_bytes(&c, sizeof c, 0);
}

static int is_book_of(const struct hash_node *node, const void *client)
{
    return ((const struct said_book *)(const void *)node)->client == client;
}

static struct said_book *find_book(const struct client *c)
{
    return (struct said_book *)(void *)hash_table_find(&c->ss->said, hash_of(c), is_book_of, c);
}

static struct said_book *book_of(struct client *c)
{
    struct said_book *book = find_book(c);

    if (book != NULL)
        return book;
    book = mem_alloc_zero(sizeof *book);
    book->client = c;
    list_init(&book->names);
    hash_table_add(&c->ss->said, &book->node, hash_of(c));
    return book;
}

static void remove_name(struct said_book *book, struct said_name *n)
{
    list_remove(&n->node);
    mem_free(n);
    book->count--;
}

static struct said_name *find_name(const struct said_book *book, char what, struct slice name)
{
    struct said_name *n;
    struct list *at;

    LIST_FOREACH(at, &book->names)
    {
        n = LIST_ENTRY(at, struct said_name, node);
        if (n->what == what && slice_eq(n->name, name))
            return n;
    }
    return NULL;
}

/* The text becomes that of the name; `text` may be another name's. */
static void put_name(struct said_book *book, char what, struct slice name, struct slice text)
{
    struct said_name *old = find_name(book, what, name);
    struct said_name *n;

    if (text.n > SAID_TEXT_MAX)
        text.n = SAID_TEXT_MAX;
    n = mem_alloc(sizeof *n + name.n + text.n + 1);
    n->what = what;
    n->name = slice_of(memcpy(n->bytes, name.p, name.n), name.n);
    n->text = slice_of(memcpy(n->bytes + name.n, text.p, text.n), text.n);
    list_push_front(&book->names, &n->node);
    book->count++;
    if (old == NULL && book->count > SAID_MAX)
        old = LIST_ENTRY(list_last(&book->names), struct said_name, node);
    if (old != NULL)
        remove_name(book, old);
}

static struct slice text_of(const struct said_book *book, char what, struct slice name)
{
    const struct said_name *n = find_name(book, what, name);

    return n == NULL ? slice_of("", 0) : n->text;
}

/* Of a message that has not arrived as a whole: what is there. */
static struct slice rest_of(struct wire_reader *r, struct slice body, struct slice behind)
{
    struct slice text = wire_get_cstr(r);
    const char *begin = behind.p + behind.n + 1;

    if (!r->bad)
        return text;
    return begin <= body.p + body.n ? slice_of(begin, (size_t)(body.p + body.n - begin))
                                    : slice_of("", 0);
}

void client_said(struct client *c, char type, struct slice body)
{
    struct said_book *book = book_of(c);
    struct wire_reader r;
    struct slice name;
    struct slice text;

    wire_reader_init(&r, body);
    switch (type) {
    case FE_PARSE:
        name = wire_get_cstr(&r);
        text = r.bad ? slice_of("", 0) : rest_of(&r, body, name);
        put_name(book, 'S', name, text);
        client_log_statement(c, "Parse: ", text);
        break;
    case FE_BIND:
        name = wire_get_cstr(&r);
        put_name(book, 'P', name, text_of(book, 'S', wire_get_cstr(&r)));
        client_log_statement(c, "Bind: ", text_of(book, 'P', name));
        break;
    case FE_EXECUTE:
        client_log_statement(c, "Execute: ", text_of(book, 'P', wire_get_cstr(&r)));
        break;
    case FE_DESCRIBE:
        client_log_statement(c, "D message", slice_of("", 0));
        break;
    case FE_CLOSE:
        client_log_statement(c, "C message", slice_of("", 0));
        break;
    default:
        break; /* Sync and Flush are not statements */
    }
    if (type == FE_CLOSE) {
        char what = (char)wire_get_u8(&r);
        struct said_name *n = find_name(book, what, wire_get_cstr(&r));

        if (n != NULL)
            remove_name(book, n);
    }
}

void client_said_end(struct client *c)
{
    struct said_book *book = c->ss->said.count == 0 ? NULL : find_book(c);
    struct list *first;

    if (book == NULL)
        return;
    while ((first = list_first(&book->names)) != NULL)
        remove_name(book, LIST_ENTRY(first, struct said_name, node));
    hash_table_del(&c->ss->said, &book->node);
    mem_free(book);
}
