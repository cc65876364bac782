/* SPDX-License-Identifier: PostgreSQL
 * said.c: texts of prepared statements and of portals, by client and name. Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "wire/proto.h"
#include "wire/reader.h"

#include "account/said.h"

/* How much of a text is logged, as pgpool-II does. */
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

/* The statements and portals of one client. */
struct said_book {
    struct hash_node node;
    const void *client;
    struct list names; /* the newest first */
    unsigned count;
};

static uint64_t hash_of(const void *client)
{
    return hash_bytes(&client, sizeof client, 0);
}

static int is_book_of(const struct hash_node *node, const void *client)
{
    return ((const struct said_book *)(const void *)node)->client == client;
}

static struct said_book *find_book(const struct hash_table *said, const void *client)
{
    return (struct said_book *)(void *)hash_table_find(said, hash_of(client), is_book_of, client);
}

static struct said_book *book_of(struct hash_table *said, const void *client)
{
    struct said_book *book = find_book(said, client);

    if (book != NULL)
        return book;
    book = mem_alloc_zero(sizeof *book);
    book->client = client;
    list_init(&book->names);
    hash_table_add(said, &book->node, hash_of(client));
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

/* What is there of a message that has not arrived as a whole. */
static struct slice rest_of(struct wire_reader *r, struct slice body, struct slice behind)
{
    struct slice text = wire_get_cstr(r);
    const char *begin = behind.p + behind.n + 1;

    if (!r->bad)
        return text;
    return begin <= body.p + body.n ? slice_of(begin, (size_t)(body.p + body.n - begin))
                                    : slice_of("", 0);
}

static void close_name(struct said_book *book, struct wire_reader *r)
{
    char what = (char)wire_get_u8(r);
    struct said_name *n = find_name(book, what, wire_get_cstr(r));

    if (n != NULL)
        remove_name(book, n);
}

bool said_note(struct hash_table *said, const void *client, char type, struct slice body,
    struct said_line *line)
{
    struct said_book *book = book_of(said, client);
    struct wire_reader r;
    struct slice name;

    wire_reader_init(&r, body);
    line->text = slice_of("", 0);
    switch (type) {
    case FE_PARSE:
        name = wire_get_cstr(&r);
        line->kind = "Parse: ";
        line->text = r.bad ? slice_of("", 0) : rest_of(&r, body, name);
        put_name(book, 'S', name, line->text);
        return true;
    case FE_BIND:
        name = wire_get_cstr(&r);
        put_name(book, 'P', name, text_of(book, 'S', wire_get_cstr(&r)));
        line->kind = "Bind: ";
        line->text = text_of(book, 'P', name);
        return true;
    case FE_EXECUTE:
        line->kind = "Execute: ";
        line->text = text_of(book, 'P', wire_get_cstr(&r));
        return true;
    case FE_DESCRIBE:
        line->kind = "D message";
        return true;
    case FE_CLOSE:
        line->kind = "C message";
        close_name(book, &r);
        return true;
    default:
        return false; /* Sync and Flush are not statements */
    }
}

void said_end(struct hash_table *said, const void *client)
{
    struct said_book *book = said->count == 0 ? NULL : find_book(said, client);
    struct list *first;

    if (book == NULL)
        return;
    while ((first = list_first(&book->names)) != NULL)
        remove_name(book, LIST_ENTRY(first, struct said_name, node));
    hash_table_del(said, &book->node);
    mem_free(book);
}
