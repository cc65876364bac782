/* SPDX-License-Identifier: PostgreSQL
 * admin_kill.c: pg_terminate_backend(N) and pg_cancel_backend(N) where N is the number of a process
 * that pgpool told a client which has no process of its own. Runs in: workers. No server knows such
 * a number, so the call is an order about that client. Who may give it is the server's to say, in
 * the session that gives it: what a membership is worth depends on INHERIT and SET ROLE. Must
 * never: send anything. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "admin/kill.h"
#include "config/pools_conf.h"
#include "ipc/rows.h"
#include "ipc/shm.h"
#include "wire/errmsg.h"
#include "wire/proto.h"
#include "wire/reader.h"
#include "wire/writer.h"

#define BOOL_OID 16

static const char *const name_of[] = {"pg_terminate_backend", "pg_cancel_backend"};

static void skip_blanks(struct slice *s)
{
    while (s->n > 0 && (s->p[0] == ' ' || (s->p[0] >= '\t' && s->p[0] <= '\r')))
        *s = slice_of(s->p + 1, s->n - 1);
}

/* Takes `word`, in any case, and the blanks behind it. */
static bool take(struct slice *s, const char *word)
{
    size_t n = strlen(word);

    if (s->n < n || strncasecmp(s->p, word, n) != 0)
        return false;
    *s = slice_of(s->p + n, s->n - n);
    skip_blanks(s);
    return true;
}

static bool take_number(struct slice *s, int32_t *out)
{
    int64_t n = 0;
    size_t i;

    for (i = 0; i < s->n && i < 10 && s->p[i] >= '0' && s->p[i] <= '9'; i++)
        n = n * 10 + (s->p[i] - '0');
    if (i == 0 || n > INT32_MAX)
        return false;
    *out = (int32_t)n;
    *s = slice_of(s->p + i, s->n - i);
    skip_blanks(s);
    return true;
}

/* Takes a cast to integer, which the argument is anyhow. */
static void take_type(struct slice *s)
{
    struct slice rest = *s;

    if (take(&rest, "::") && (take(&rest, "integer") || take(&rest, "int4") || take(&rest, "int")))
        *s = rest;
}

bool admin_kill_read(struct slice sql, struct admin_kill *k)
{
    memset(k, 0, sizeof *k);
    skip_blanks(&sql);
    if (!take(&sql, "select"))
        return false;
    if (take(&sql, "pg_catalog") && !take(&sql, "."))
        return false;
    k->is_cancel = take(&sql, name_of[1]);
    if ((!k->is_cancel && !take(&sql, name_of[0])) || !take(&sql, "("))
        return false;
    k->is_bound = take(&sql, "$1");
    if (!k->is_bound && (!take_number(&sql, &k->pid) || k->pid < ROWS_FIRST_TOLD_PID))
        return false;
    take_type(&sql);
    if (!take(&sql, ")"))
        return false;
    (void)take(&sql, ";");
    return sql.n == 0;
}

/* The value of a parameter: as text, or an integer of four or eight bytes. */
static bool read_value(struct admin_kill *k, struct slice value, bool is_binary)
{
    struct wire_reader r;

    if (!is_binary)
        return take_number(&value, &k->pid) && value.n == 0;
    wire_reader_init(&r, value);
    if (value.n == 8 && wire_get_u32(&r) != 0)
        return false;
    k->pid = (int32_t)wire_get_u32(&r);
    return !r.bad && (value.n == 4 || value.n == 8);
}

bool admin_kill_bind(struct admin_kill *k, struct wire_reader *r)
{
    uint16_t nformats = wire_get_u16(r);
    uint16_t format = 0;
    uint16_t n;
    struct slice value;
    bool is_null = true;

    for (n = nformats; n > 0 && !r->bad; n--)
        format = wire_get_u16(r);
    n = wire_get_u16(r);
    if (r->bad || nformats > 1 || n != (k->is_bound ? 1 : 0))
        return false;
    if (k->is_bound) {
        value = wire_get_value(r, &is_null);
        if (r->bad || is_null || !read_value(k, value, format != 0))
            return false;
    }
    n = wire_get_u16(r);
    k->is_binary = n == 1 && wire_get_u16(r) == 1;
    return !r->bad && n <= 1 && k->pid >= ROWS_FIRST_TOLD_PID;
}

/* ---- whose number it is ---- */

static int place_of(int node)
{
    return node >= POOLS_FIRST_TARGET ? node : 0;
}

static bool is_named(const struct admin_kill *k, const struct client_row *row, int node)
{
    return row->state != CLIENT_STATE_FREE && row->secret_len > 0 && row->told_pid == k->pid &&
           place_of(row->node) == place_of(node);
}

bool admin_kill_find(const struct admin_kill *k, const struct shm *shm, int node,
    struct client_row *row, struct row_names *names)
{
    const struct rows_header *rows = shm_get(shm, SHM_CLIENTS);
    const struct rows_worker *range;
    struct row_words words;
    uint32_t w;
    uint32_t i;

    for (w = 0; w < rows->nworkers; w++) {
        range = rows_worker(rows, w);
        for (i = range->first; i < range->first + range->high_water; i++) {
            (void)client_row_copy(rows, i, row, NULL);
            if (!is_named(k, row, node))
                continue;
            (void)client_row_copy(rows, i, row, &words); /* of that moment, too */
            if (!is_named(k, row, node))
                continue;
            *names = words.names;
            return true;
        }
    }
    return false;
}

/* ---- who may ---- */

/* What no boolean looks like: the server's error repeats it. */
#define NOT_A_SUPERUSER "pgpool: of a superuser"
#define NOT_A_MEMBER    "pgpool: of another role"

/* The name of the statement and of the portal. */
static const char OWN_NAME[] = "pgp_kill";

/* The name goes as its bytes, as servers compare names at a login: nothing in the session decides
 * how it is read. Nor may a search_path decide whose functions and operators these are. */
static void put_sql(struct slice user, struct buf *out)
{
    size_t i;

    buf_printf(out, "SELECT CAST(CASE"
                    " WHEN (SELECT r.rolsuper FROM pg_catalog.pg_roles r"
                    " WHERE r.rolname OPERATOR(pg_catalog.=) CURRENT_USER) THEN 't'"
                    " WHEN t.rolsuper THEN '" NOT_A_SUPERUSER "'"
                    " WHEN pg_catalog.pg_has_role(t.oid, 'USAGE')"
                    " OR pg_catalog.pg_has_role('pg_signal_backend', 'USAGE') THEN 't'"
                    " ELSE '" NOT_A_MEMBER "' END AS pg_catalog.bool)"
                    " FROM (SELECT 1) one LEFT JOIN pg_catalog.pg_roles t ON t.rolname"
                    " OPERATOR(pg_catalog.=) CAST(pg_catalog.convert_from("
                    "pg_catalog.decode('");
    for (i = 0; i < user.n; i++)
        buf_printf(out, "%02x", (unsigned char)user.p[i]);
    buf_printf(out, "', 'hex'), pg_catalog.getdatabaseencoding()) AS pg_catalog.name)");
}

static void put_bind(struct buf *out)
{
    uint32_t at = wire_begin(out, FE_BIND);

    buf_put(out, OWN_NAME, sizeof OWN_NAME);
    buf_put(out, OWN_NAME, sizeof OWN_NAME);
    buf_put_u16(out, 0);
    buf_put_u16(out, 0);
    buf_put_u16(out, 0);
    wire_end(out, at);
}

/* One that failed has left its statement. */
void admin_kill_put_question(struct slice user, struct buf *out)
{
    struct slice name = slice_of_str(OWN_NAME);
    struct buf sql = {0};
    uint32_t at;

    put_sql(user, &sql);
    wire_put_close(out, 'S', name);
    wire_put_parse(out, name, buf_slice(&sql));
    buf_free(&sql);
    put_bind(out);
    at = wire_begin(out, FE_EXECUTE);
    buf_put(out, OWN_NAME, sizeof OWN_NAME);
    buf_put_u32(out, 0);
    wire_end(out, at);
    wire_put_close(out, 'P', name);
    wire_put_close(out, 'S', name);
}

static bool says(const struct errmsg *m, const char *words)
{
    return memmem(m->message.p, m->message.n, words, strlen(words)) != NULL;
}

/* PostgreSQL 16 put what it had said in the message into the detail. */
static void refuse(const struct admin_kill *k, bool is_of_superuser, struct err *err)
{
    const char *what = k->is_cancel ? "query" : "process";
    const char *how = k->is_cancel ? "cancel" : "terminate";

    err_set(err, "42501", "permission denied to %s %s", how, what);
    if (is_of_superuser)
        err_detail(err,
            "Only roles with the SUPERUSER attribute may %s %s of roles with the SUPERUSER "
            "attribute.",
            how, k->is_cancel ? "queries" : "processes");
    else
        err_detail(err,
            "Only roles with privileges of the role whose %s is being %s or with privileges of "
            "the \"pg_signal_backend\" role may %s this %s.",
            what, k->is_cancel ? "canceled" : "terminated", how, what);
}

static void refuse_as_before_16(const struct admin_kill *k, bool is_of_superuser, struct err *err)
{
    const char *what = k->is_cancel ? "query" : "process";

    if (is_of_superuser)
        err_set(err, "42501", "must be a superuser to %s superuser %s",
            k->is_cancel ? "cancel" : "terminate", what);
    else
        err_set(err, "42501",
            "must be a member of the role whose %s is being %s or member of pg_signal_backend",
            what, k->is_cancel ? "canceled" : "terminated");
}

bool admin_kill_refused(
    const struct admin_kill *k, const struct errmsg *m, struct slice version, struct err *err)
{
    bool is_of_superuser = says(m, NOT_A_SUPERUSER);
    int32_t major = 0;

    if (!slice_eq_str(m->sqlstate, "22P02") || (!is_of_superuser && !says(m, NOT_A_MEMBER)))
        return false;
    err_clear(err);
    if (take_number(&version, &major) && major >= 16)
        refuse(k, is_of_superuser, err);
    else
        refuse_as_before_16(k, is_of_superuser, err);
    err_hint(err, "The number is that of a client of pgpool; SHOW POOL_CLIENTS names its user.");
    return true;
}

/* ---- what the caller is told ---- */

void admin_kill_put_columns(const struct admin_kill *k, struct buf *out)
{
    uint32_t at = wire_begin(out, BE_ROW_DESCRIPTION);
    const char *name = name_of[k->is_cancel ? 1 : 0];

    buf_put_u16(out, 1);
    buf_put(out, name, strlen(name) + 1);
    buf_put_u32(out, 0);
    buf_put_u16(out, 0);
    buf_put_u32(out, BOOL_OID);
    buf_put_u16(out, 1);
    buf_put_u32(out, UINT32_MAX);
    buf_put_u16(out, k->is_binary ? 1 : 0);
    wire_end(out, at);
}

void admin_kill_put_row(const struct admin_kill *k, bool is_done, struct buf *out)
{
    uint32_t at = wire_begin(out, BE_DATA_ROW);

    buf_put_u16(out, 1);
    buf_put_u32(out, 1);
    if (k->is_binary)
        buf_put_byte(out, is_done ? 1 : 0);
    else
        buf_put_byte(out, is_done ? 't' : 'f');
    wire_end(out, at);
    wire_put_command_complete(out, "SELECT 1");
}
