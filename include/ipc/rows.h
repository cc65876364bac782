/* SPDX-License-Identifier: PostgreSQL
 * rows.h: what a worker tells everybody about its clients and server links: the regions CLIENTS and
 * LINKS of shared memory.
 * Written by: each worker, its own range only. Read by: whoever answers SHOW, PCP or metrics, and a
 * worker that looks for the owner of a cancel key. Plain data: no pointers.
 *
 * A region is a header, one struct rows_worker per worker, the rows, the starts of their last
 * statements, what more is kept of long ones, and names. Thousands of clients have the same names,
 * so a row says where they stand; and a page of statements costs nothing until one of its rows has
 * run one, that of their second parts until one was long. A zeroed row is free. A
 * writer brackets changes with shm_write_begin / shm_write_end of the row, what belongs to it
 * elsewhere included; a reader takes a copy with client_row_copy / link_row_copy and looks at
 * `state` of the copy only. */
#ifndef PGP_IPC_ROWS_H
#define PGP_IPC_ROWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hot.h"
#include "base/slice.h"
#include "ipc/shm.h"

/* CLIENT_STATE(symbol, text in SHOW POOL_CLIENTS, status in SHOW POOL_PROCESSES) */
#define CLIENT_STATES(X)                                                                           \
    X(FREE, "", "Wait for connection")                                                             \
    X(LOGIN, "login", "Connecting")                                                                \
    X(IDLE, "idle", "Idle")                                                                        \
    X(ACTIVE, "active", "Execute command")                                                         \
    X(WAITING, "waiting", "Execute command")                                                       \
    X(IDLE_TX, "idle in transaction", "Idle in transaction")                                       \
    X(FAILED_TX, "idle in transaction (aborted)", "Idle in transaction")                           \
    X(CLOSING, "closing", "Idle")

/* LINK_STATE(symbol, text, status in SHOW POOL_POOLS) */
#define LINK_STATES(X)                                                                             \
    X(FREE, "", "Wait for connection")                                                             \
    X(CONNECTING, "connecting", "Connecting")                                                      \
    X(IDLE, "idle", "Wait for connection")                                                         \
    X(LENT, "lent", "Idle")                                                                        \
    X(ACTIVE, "active", "Execute command")                                                         \
    X(IDLE_TX, "idle in transaction", "Idle in transaction")                                       \
    X(CLEANING, "cleaning", "Execute command")                                                     \
    X(CLOSING, "closing", "Wait for connection")

/* Why a client waits: X(symbol, text in SHOW POOL_CLIENTS and SHOW POOL_QUEUE) */
#define WAIT_REASONS(X)                                                                            \
    X(NONE, "")                                                                                    \
    X(NODE_LIMIT, "node limit")                                                                    \
    X(POOL_LIMIT, "pool limit")                                                                    \
    X(USER_LIMIT, "user limit")                                                                    \
    X(DATABASE_LIMIT, "database limit")                                                            \
    X(CONNECTING, "connecting")                                                                    \
    X(NO_PRIMARY, "no primary")                                                                    \
    X(NO_NODE, "no node")                                                                          \
    X(PAUSED, "paused")                                                                            \
    X(RECOVERY, "recovery")                                                                        \
    X(REPLAY, "replay")                                                                            \
    X(RESULT, "result")                                                                            \
    X(SNAPSHOT, "snapshot")                                                                        \
    X(COMMIT, "commit")

/* Why a client keeps its link between transactions, a bit each: X(symbol, text in SHOW
 * POOL_CLIENTS)
 */
#define PIN_REASONS(X)                                                                             \
    X(NONE, "")                                                                                    \
    X(SESSION_MODE, "session mode")                                                                \
    X(TEMP_TABLE, "temporary table")                                                               \
    X(LISTEN, "listen")                                                                            \
    X(ADVISORY_LOCK, "advisory lock")                                                              \
    X(HOLD_CURSOR, "cursor with hold")                                                             \
    X(LOAD, "load")                                                                                \
    X(SETTING, "setting")                                                                          \
    X(PREPARED, "prepared statement")                                                              \
    X(REPLICATION, "replication")                                                                  \
    X(UNKNOWN, "session state")

/* Clients that share links are told numbers from here on: no process has one. */
#define ROWS_FIRST_TOLD_PID                  0x40000000
#define ROWS_CLIENT_STATE(sym, text, status) CLIENT_STATE_##sym,
#define ROWS_LINK_STATE(sym, text, status)   LINK_STATE_##sym,
#define ROWS_WAIT_REASON(sym, text)          WAIT_REASON_##sym,
#define ROWS_PIN_REASON(sym, text)           PIN_REASON_##sym,

enum client_state { CLIENT_STATES(ROWS_CLIENT_STATE) CLIENT_STATE_COUNT };
enum link_state { LINK_STATES(ROWS_LINK_STATE) LINK_STATE_COUNT };
enum wait_reason { WAIT_REASONS(ROWS_WAIT_REASON) WAIT_REASON_COUNT };
enum pin_reason { PIN_REASONS(ROWS_PIN_REASON) PIN_REASON_COUNT };

#define ROWS_PIN(reason)            (1U << (reason))
#define ROWS_NAME_BYTES             64 /* a role or database name with its NUL */
#define ROWS_STATEMENT_START_BYTES  64 /* stand together; what is longer goes on elsewhere */
#define ROWS_CLIENT_STATEMENT_BYTES 64 /* kept of a statement, with its NUL */
#define ROWS_LINK_STATEMENT_BYTES   128
#define ROWS_NO_NAMES               0
#define ROWS_SECRET_BYTES           32
#define ROWS_NO_NODE                (-1)
#define ROWS_NO_ROW                 (-1)

/* Where a client's last statement is to be found. */
enum row_statement {
    ROW_STATEMENT_NONE,
    ROW_STATEMENT_OWN, /* rows_statement of its row */
    ROW_STATEMENT_LINK /* that of the row of its link, while that says that it has it */
};

/* How `addr` of a client row is to be read. */
enum row_addr { ROW_ADDR_LOCAL, ROW_ADDR_IPV4, ROW_ADDR_IPV6 };

/* What the rows of clients and of links begin with. */
struct row_head {
    struct shm_seq seq;
    int32_t names; /* ROWS_NO_NAMES, or 1 + where they stand; see row_alloc.h */
    uint8_t state; /* FREE: nothing below means anything */
};

/* One client. The first cache line changes with every statement, the rest hardly ever. Times are
 * wall clock microseconds since 1970; 0 is never. */
struct client_row {
    struct shm_seq seq;
    int32_t names;
    uint8_t state;            /* enum client_state */
    uint8_t wait_reason;      /* enum wait_reason, in state WAITING */
    char tx_status;           /* 'I', 'T', 'E' as last told to the client */
    uint8_t is_superuser : 1; /* at the server */
    uint8_t statement : 2;    /* enum row_statement */
    uint8_t addr_kind : 2;    /* enum row_addr */
    uint8_t pool_mode : 2;    /* enum conf_pool_mode, as the session has it */
    uint8_t lacks_login : 1;  /* reads stay at home: nothing logs in to a standby for it */
    int32_t server_pid;       /* of the link in use, 0 when none */
    int16_t node; /* of that link, ROWS_NO_NODE when none; in state WAITING the node wanted */
    int16_t balance_node; /* where this session's reads go, ROWS_NO_NODE when not chosen yet */
    uint32_t id;          /* given by the worker, unique among living clients */
    int64_t state_since_us;
    int64_t query_start_us; /* of the present or the last statement */
    int64_t connected_us;
    int32_t link_row; /* index in LINKS, ROWS_NO_ROW when none */
    int32_t told_pid; /* the process id we told the client, with its cancel key: its server
                         process's, or one from ROWS_FIRST_TOLD_PID on */
    uint8_t addr[16];
    uint8_t secret[ROWS_SECRET_BYTES]; /* the cancel key we told the client */
    uint32_t protocol;                 /* as PROTO_VERSION; 0 before the startup packet */
    uint16_t port;
    uint16_t worker;     /* ordinal */
    uint16_t pins;       /* ROWS_PIN of each reason */
    uint16_t tls_cipher; /* number of the cipher suite */
    uint8_t tls_version; /* 12 for TLS 1.2; 0: not encrypted */
    uint8_t secret_len;
    uint8_t tls_kernel; /* what the kernel does of TLS: 1 sends, 2 receives, 3 both */
} __attribute__((aligned(64)));

_Static_assert(ROWS_CLIENT_STATEMENT_BYTES >= ROWS_STATEMENT_START_BYTES &&
                   ROWS_LINK_STATEMENT_BYTES >= ROWS_CLIENT_STATEMENT_BYTES,
    "struct row_words");
_Static_assert(PIN_REASON_COUNT <= 16, "client_row.pins");
_Static_assert(sizeof(struct client_row) == 128, "an idle client has a budget");
_Static_assert(offsetof(struct client_row, state) == offsetof(struct row_head, state), "row_head");

/* One connection to a server, lent or cached. */
struct link_row {
    struct shm_seq seq;
    int32_t names; /* without an application_name */
    uint8_t state; /* enum link_state */
    char tx_status;
    uint8_t pin_reason; /* enum pin_reason of the client that keeps it */
    uint8_t is_tls : 1;
    uint8_t has_statement : 1; /* rows_statement has the last one sent on it */
    uint8_t tls_kernel : 2;    /* as in struct client_row */
    int32_t server_pid;
    int16_t node;
    uint16_t worker;     /* ordinal */
    uint32_t protocol;   /* as PROTO_VERSION */
    int64_t created_us;  /* connected and authenticated */
    int64_t acquired_us; /* the last client got it */
    int64_t released_us; /* the last client gave it back; 0 while it never did */
    uint64_t uses;       /* how many clients or transactions it has served */
    int32_t client_row;  /* index in CLIENTS of the client that has it, else ROWS_NO_ROW */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct link_row) == 64, "one cache line");
_Static_assert(offsetof(struct link_row, state) == offsetof(struct row_head, state), "row_head");

/* Names that rows of one worker share, one behind the other, no NUL between: read them with
 * row_user and the like. User and database always fit; application_name gets what is left. */
struct row_names {
    uint8_t user_len;
    uint8_t database_len;
    uint8_t application_len;
    char text[128];
};

/* What belongs to a row and does not stand in it, for readers. */
struct row_words {
    struct row_names names;
    char statement[ROWS_LINK_STATEMENT_BYTES]; /* start of it, NUL-ended; empty: none */
};

/* The part of a region that one worker writes. */
struct rows_worker {
    uint32_t first;
    uint32_t count;
    uint32_t high_water;     /* rows of the range ever taken: what is behind them is zero */
    _Atomic uint64_t served; /* rows taken since the worker started: clients, or links opened */
} __attribute__((aligned(64)));

/* The head of a region. Written once, by rows_init. */
struct rows_header {
    uint32_t capacity;
    uint32_t nworkers;
    uint32_t row_bytes;
    uint32_t text_bytes;       /* of one row's statement, both parts */
    uint32_t first_row_offset; /* from the header's start, as the others */
    size_t starts_offset;
    size_t rests_offset;
    size_t names_offset;
} __attribute__((aligned(64)));

static inline size_t rows_head_bytes(uint32_t nworkers)
{
    return sizeof(struct rows_header) + nworkers * sizeof(struct rows_worker);
}

/* Bytes of a region for `nworkers` ranges of `per_worker` rows, each with a statement of
 * `text_bytes`. */
static inline size_t rows_bytes(
    size_t row_bytes, size_t text_bytes, uint32_t nworkers, uint32_t per_worker)
{
    return rows_head_bytes(nworkers) +
           (size_t)nworkers * per_worker * (row_bytes + text_bytes + sizeof(struct row_names));
}

static inline struct rows_worker *rows_worker(const struct rows_header *h, uint32_t ordinal)
{
    return (struct rows_worker *)(uintptr_t)(h + 1) + ordinal;
}

/* Fills the header of a zeroed region. Supervisor, before the first fork. */
static inline void rows_init(struct rows_header *h, size_t row_bytes, size_t text_bytes,
    uint32_t nworkers, uint32_t per_worker)
{
    uint32_t i;

    h->capacity = nworkers * per_worker;
    h->nworkers = nworkers;
    h->row_bytes = (uint32_t)row_bytes;
    h->text_bytes = (uint32_t)text_bytes;
    h->first_row_offset = (uint32_t)rows_head_bytes(nworkers);
    h->starts_offset = h->first_row_offset + h->capacity * row_bytes;
    h->rests_offset = h->starts_offset + (size_t)h->capacity * ROWS_STATEMENT_START_BYTES;
    h->names_offset = h->starts_offset + h->capacity * text_bytes;
    for (i = 0; i < nworkers; i++) {
        rows_worker(h, i)->first = i * per_worker;
        rows_worker(h, i)->count = per_worker;
    }
}

/* Row `i` of a region; NULL when there is no such row (a stale index of another process). */
static inline void *rows_at(const struct rows_header *h, int64_t i)
{
    if (i < 0 || i >= (int64_t)h->capacity)
        return NULL;
    return (char *)(uintptr_t)h + h->first_row_offset + (size_t)i * h->row_bytes;
}

static inline struct client_row *client_row_at(const struct rows_header *h, int64_t i)
{
    return rows_at(h, i);
}

static inline struct link_row *link_row_at(const struct rows_header *h, int64_t i)
{
    return rows_at(h, i);
}

/* The two parts of the statement of row `i`, which exists; read only if the row has one. It ends
 * with a NUL: in the first part, or where that is full in the second. */
static inline char *rows_statement_start(const struct rows_header *h, int64_t i)
{
    return (char *)(uintptr_t)h + h->starts_offset + (size_t)i * ROWS_STATEMENT_START_BYTES;
}

static inline char *rows_statement_rest(const struct rows_header *h, int64_t i)
{
    return (char *)(uintptr_t)h + h->rests_offset +
           (size_t)i * (h->text_bytes - ROWS_STATEMENT_START_BYTES);
}

/* What stands in the first part. */
static inline struct slice rows_statement(const struct rows_header *h, int64_t i)
{
    const char *p = rows_statement_start(h, i);

    return slice_of(p, strnlen(p, ROWS_STATEMENT_START_BYTES));
}

/* Where the names of place `i` stand; there are as many places as rows. */
static inline struct row_names *rows_names_at(const struct rows_header *h, int64_t i)
{
    return (struct row_names *)(void *)((char *)(uintptr_t)h + h->names_offset) + i;
}

/* The names of a row, by its `names`; empty ones when it has none (or is torn). */
static inline const struct row_names *rows_names(const struct rows_header *h, int32_t names)
{
    static const struct row_names none;

    return names <= 0 || (uint32_t)names > h->capacity ? &none : rows_names_at(h, names - 1);
}

/* Copies what is elsewhere of a row: to be called while its sequence counter is watched, for the
 * places change with it. */
static inline void rows_copy_words(const struct rows_header *h, int64_t i, int32_t names,
    bool has_statement, struct row_words *words)
{
    words->names = *rows_names(h, names);
    words->statement[0] = '\0';
    if (has_statement)
        memcpy(words->statement, rows_statement_start(h, i), ROWS_STATEMENT_START_BYTES);
    if (h->text_bytes > ROWS_STATEMENT_START_BYTES &&
        strnlen(words->statement, ROWS_STATEMENT_START_BYTES) == ROWS_STATEMENT_START_BYTES)
        memcpy(words->statement + ROWS_STATEMENT_START_BYTES, rows_statement_rest(h, i),
            h->text_bytes - ROWS_STATEMENT_START_BYTES);
    words->statement[h->text_bytes - 1] = '\0';
}

/* Consistent copies of row `i` for readers; false when there is no such row. `words` may be NULL.
 */
static inline bool client_row_copy(
    const struct rows_header *h, int64_t i, struct client_row *out, struct row_words *words)
{
    const struct client_row *row = client_row_at(h, i);
    uint32_t n;

    if (row == NULL)
        return false;
    do {
        n = shm_read_begin(&row->seq);
        memcpy(out, row, sizeof *out);
        if (words != NULL)
            rows_copy_words(h, i, out->names, out->statement == ROW_STATEMENT_OWN, words);
    } while (shm_read_retry(&row->seq, n));
    return true;
}

static inline bool link_row_copy(
    const struct rows_header *h, int64_t i, struct link_row *out, struct row_words *words)
{
    const struct link_row *row = link_row_at(h, i);
    uint32_t n;

    if (row == NULL)
        return false;
    do {
        n = shm_read_begin(&row->seq);
        memcpy(out, row, sizeof *out);
        if (words != NULL)
            rows_copy_words(h, i, out->names, out->has_statement, words);
    } while (shm_read_retry(&row->seq, n));
    return true;
}

/* Where to cut `n` bytes at `p` to fit in `max`, not in the middle of a UTF-8 character. */
static inline size_t rows_clip(const char *p, size_t n, size_t max)
{
    if (n <= max)
        return n;
    n = max;
    while (n > 0 && max - n < 4 && ((unsigned char)p[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* memcpy of what is mostly some dozen bytes: two moves that overlap instead of a loop. */
static inline void rows_copy(char *dst, const char *p, size_t n)
{
    char head[32];
    char tail[32];

    if (n < sizeof head || n > sizeof head + sizeof tail) {
        memcpy(dst, p, n);
        return;
    }
    memcpy(head, p, sizeof head);
    memcpy(tail, p + n - sizeof tail, sizeof tail);
    memcpy(dst, head, sizeof head);
    memcpy(dst + n - sizeof tail, tail, sizeof tail);
}

/* Copies text into a NUL-ended field of `cap` bytes, cut when too long. */
static inline void rows_set_text(char *dst, size_t cap, const char *p, size_t n)
{
    n = rows_clip(p, n, cap - 1);
    if (n > 0)
        rows_copy(dst, p, n);
    dst[n] = '\0';
}

/* Keeps the start of a statement for row `i`, which exists. */
HOT static inline void rows_set_statement(const struct rows_header *h, int64_t i, struct slice sql)
{
    size_t n = rows_clip(sql.p, sql.n, h->text_bytes - 1);
    char *start = rows_statement_start(h, i);
    char *rest;

    /* The first half is for the compiler, which else believes in reading beyond short literals. */
    if (sql.n < ROWS_STATEMENT_START_BYTES || n < ROWS_STATEMENT_START_BYTES) {
        rows_copy(start, sql.p, n);
        start[n] = '\0';
        return;
    }
    memcpy(start, sql.p, ROWS_STATEMENT_START_BYTES);
    rest = rows_statement_rest(h, i);
    n -= ROWS_STATEMENT_START_BYTES;
    memcpy(rest, sql.p + ROWS_STATEMENT_START_BYTES, n);
    rest[n] = '\0';
}

/* Fills `names`. Longer ones than the server's own limit are cut. */
static inline void row_names_set(
    struct row_names *names, struct slice user, struct slice database, struct slice application)
{
    size_t at;

    user.n = rows_clip(user.p, user.n, ROWS_NAME_BYTES - 1);
    database.n = rows_clip(database.p, database.n, ROWS_NAME_BYTES - 1);
    at = user.n + database.n;
    application.n = rows_clip(application.p, application.n, sizeof names->text - at);
    if (user.n > 0)
        memcpy(names->text, user.p, user.n);
    if (database.n > 0)
        memcpy(names->text + user.n, database.p, database.n);
    if (application.n > 0)
        memcpy(names->text + at, application.p, application.n);
    names->user_len = (uint8_t)user.n;
    names->database_len = (uint8_t)database.n;
    names->application_len = (uint8_t)application.n;
}

/* Views into `names`. The lengths are bounded here because a copy may be torn when its writer died
 * in the middle. */
static inline struct slice row_user(const struct row_names *names)
{
    return slice_of(names->text, names->user_len < ROWS_NAME_BYTES ? names->user_len : 0U);
}

static inline struct slice row_database(const struct row_names *names)
{
    return slice_of(names->text + row_user(names).n,
        names->database_len < ROWS_NAME_BYTES ? names->database_len : 0U);
}

static inline struct slice row_application(const struct row_names *names)
{
    size_t at = row_user(names).n + row_database(names).n;
    size_t max = sizeof names->text - at;

    return slice_of(names->text + at, names->application_len < max ? names->application_len : max);
}

#endif
