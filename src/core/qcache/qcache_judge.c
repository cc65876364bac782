/* SPDX-License-Identifier: PostgreSQL
 * qcache_judge.c: what the catalogue's answer about the names of a statement means. Runs in:
 * workers. Pure. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "qcache_int.h"

struct oids {
    uint32_t *p;
    size_t n;
    size_t cap;
};

struct qcache_judge {
    const struct qcache_rules *rules;
    struct slice question;
    struct oids reads;
    struct oids writes;
    uint64_t found_tables; /* by number, as are: */
    uint64_t found_functions;
    uint64_t safe_views; /* listed: what is in it does not matter */
    uint64_t odd_views;  /* it calls what it should not */
    enum qcache_reason reason;
    enum qcache_reason forced_reason;
    uint64_t db;
    int64_t expire_s;
    uint16_t ntables;
    struct qcache_table *tables;
    struct qcache_named named[QCACHE_ROW_TABLES];
    uint16_t nrelations[QCACHE_ROW_TABLES]; /* that are read with it */
    uint16_t nown[QCACHE_ROW_TABLES];       /* columns of it */
    uint16_t ncolumns;
    struct qcache_column *columns;
    bool has_db;
    bool is_bad;
    bool writes_more;
    bool runs_code;
};

_Static_assert(QCACHE_MAX_NAMES <= 64, "a bit for each");

struct qcache_judge *qcache_judge_new(struct slice question, const struct qcache_rules *rules)
{
    struct qcache_judge *j = mem_alloc_zero(sizeof *j);

    j->question = question;
    j->rules = rules;
    return j;
}

static void add_oid(struct oids *o, uint64_t oid)
{
    if (o->n == o->cap) {
        o->cap = o->cap == 0 ? 8 : 2 * o->cap;
        o->p = mem_resize(o->p, o->cap * sizeof o->p[0]);
    }
    o->p[o->n++] = (uint32_t)oid;
}

/* The first reason is the one that is told. */
static void object(struct qcache_judge *j, enum qcache_reason r)
{
    if (j->reason == QCACHE_R_NONE)
        j->reason = r;
}

/* Not even FORCE QUERY CACHE helps. */
static void object_always(struct qcache_judge *j, enum qcache_reason r)
{
    object(j, r);
    if (j->forced_reason == QCACHE_R_NONE)
        j->forced_reason = r;
}

/* What its results are counted and kept under. */
static void note_table(struct qcache_judge *j, uint64_t oid, struct slice name)
{
    const char *dot = memchr(name.p, '.', name.n);
    int64_t expire_s = qcache_rules_expire_s(j->rules, name);
    struct qcache_table *t;
    uint16_t i;

    if (expire_s > 0 && (j->expire_s == 0 || expire_s < j->expire_s))
        j->expire_s = expire_s;
    for (i = 0; i < j->ntables; i++)
        if (j->tables[i].oid == oid)
            return;
    if (dot == NULL || j->ntables == CACHE_ENTRY_TABLES || name.n - 1 > sizeof t->text)
        return;
    if (j->tables == NULL)
        j->tables = mem_alloc(CACHE_ENTRY_TABLES * sizeof j->tables[0]);
    t = &j->tables[j->ntables++];
    t->oid = (uint32_t)oid;
    t->number = 0;
    t->schema_len = (uint8_t)(dot - name.p);
    t->name_len = (uint8_t)(name.n - t->schema_len - 1);
    memcpy(t->text, name.p, t->schema_len);
    memcpy(t->text + t->schema_len, dot + 1, t->name_len);
}

static void judge_relation(
    struct qcache_judge *j, unsigned i, uint64_t oid, uint64_t bits, struct slice name)
{
    bool is_safe = qcache_rules_table_is_safe(j->rules, name);

    add_oid(&j->reads, oid);
    note_table(j, oid, name);
    if (i < QCACHE_ROW_TABLES && j->nrelations[i] < 2)
        j->nrelations[i]++;
    if ((bits & ROW_NAMED) != 0)
        j->found_tables |= UINT64_C(1) << i;
    if (is_safe && (bits & ROW_NAMED) != 0 && (bits & ROW_VIEW) != 0)
        j->safe_views |= UINT64_C(1) << i;
    if ((bits & ROW_TEMP) != 0)
        object_always(j, QCACHE_R_TEMP);
    else if (qcache_rules_table_is_unsafe(j->rules, name))
        object(j, QCACHE_R_UNSAFE);
    else if ((bits & ROW_CATALOG) != 0)
        object(j, QCACHE_R_CATALOG);
    else if ((bits & ROW_MOVES) != 0)
        object(j, QCACHE_R_CATALOG_NAME);
    else if ((bits & ROW_SEQUENCE) != 0)
        object(j, QCACHE_R_SEQUENCE);
    else if ((bits & ROW_UNLOGGED) != 0 && !is_safe)
        object(j, QCACHE_R_UNLOGGED);
    else if ((bits & ROW_FOREIGN) != 0 && !is_safe)
        object(j, QCACHE_R_FOREIGN);
}

static bool is_safe_function(const struct qcache_judge *j, uint64_t bits, struct slice name)
{
    return (bits & FUNC_VOLATILE) == 0 &&
           qcache_rules_function_is_safe(
               j->rules, name, (bits & FUNC_STABLE) == 0, (bits & FUNC_OF_USER) != 0);
}

static void judge_function(struct qcache_judge *j, unsigned i, uint64_t bits, struct slice name)
{
    j->found_functions |= UINT64_C(1) << i;
    j->runs_code =
        j->runs_code || (bits & (FUNC_VOLATILE | FUNC_OF_USER)) == (FUNC_VOLATILE | FUNC_OF_USER);
    if (!is_safe_function(j, bits, name))
        object(j, QCACHE_R_FUNCTION);
}

static void judge_tree(struct qcache_judge *j, unsigned i, uint64_t bits, struct slice name)
{
    j->runs_code =
        j->runs_code || (bits & (FUNC_VOLATILE | FUNC_OF_USER)) == (FUNC_VOLATILE | FUNC_OF_USER);
    if (!is_safe_function(j, bits, name))
        j->odd_views |= UINT64_C(1) << i;
}

/* What is too much is said as of no table. */
static void judge_column(
    struct qcache_judge *j, uint64_t i, uint64_t oid, uint64_t bits, struct slice name)
{
    struct qcache_named *t = &j->named[i];
    struct qcache_column *c;

    if (i >= QCACHE_ROW_TABLES)
        return;
    if ((j->nown[i] > 0 && oid != t->oid) || j->nown[i] >= QCACHE_COLUMNS_MAX ||
        name.n >= sizeof c->name) {
        j->nown[i] = QCACHE_COLUMNS_MAX + 1;
        return;
    }
    if (j->columns == NULL)
        j->columns =
            mem_alloc((size_t)QCACHE_ROW_TABLES * QCACHE_COLUMNS_MAX * sizeof j->columns[0]);
    j->nown[i]++;
    t->oid = (uint32_t)oid;
    t->has_triggers = (bits & COLUMN_TRIGGERS) != 0;
    t->is_partitioned = (bits & COLUMN_PARTITIONED) != 0;
    c = &j->columns[j->ncolumns++];
    c->type = (uint32_t)bits;
    c->attnum = (int16_t)(bits >> 32 & INT16_MAX);
    c->table = (uint8_t)i;
    c->name_len = (uint8_t)name.n;
    memcpy(c->name, name.p, name.n);
}

static bool read_number(struct slice s, uint64_t *v)
{
    size_t i;

    *v = 0;
    for (i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
        *v = *v * 10 + (uint64_t)(s.p[i] - '0');
    return s.n > 0 && s.n < 19 && i == s.n;
}

void qcache_judge_row(struct qcache_judge *j, const struct slice value[QCACHE_COLUMNS])
{
    uint64_t i;
    uint64_t a;
    uint64_t b;

    if (value[0].n != 1 || !read_number(value[1], &i) || !read_number(value[2], &a) ||
        !read_number(value[3], &b) || i >= QCACHE_MAX_NAMES) {
        j->is_bad = true;
        return;
    }
    switch (value[0].p[0]) {
    case 'r':
        judge_relation(j, (unsigned)i, a, b, value[4]);
        break;
    case 'w':
        add_oid(&j->writes, a);
        break;
    case 'x':
        j->writes_more = true;
        break;
    case 'f':
        judge_function(j, (unsigned)i, a, value[4]);
        break;
    case 'g':
        judge_tree(j, (unsigned)i, a, value[4]);
        break;
    case 'k':
        judge_column(j, i, a, b, value[4]);
        break;
    case 'd':
        j->has_db = true;
        j->db = a;
        break;
    default:
        j->is_bad = true;
        break;
    }
}

static int compare_oids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void sort_out(struct oids *o)
{
    size_t i;
    size_t n = 0;

    if (o->n > 1)
        qsort(o->p, o->n, sizeof o->p[0], compare_oids);
    for (i = 0; i < o->n; i++)
        if (n == 0 || o->p[i] != o->p[n - 1])
            o->p[n++] = o->p[i];
    o->n = n;
}

/* Names that no row speaks of. */
static void judge_missing(struct qcache_judge *j)
{
    const char *at = NULL;
    struct qcache_name n;
    unsigned tables = 0;
    unsigned functions = 0;

    while (qcache_question_next(j->question, &at, &n)) {
        bool is_function = n.kind == QCACHE_ASK_FUNCTION;
        uint64_t found = is_function ? j->found_functions : j->found_tables;
        unsigned i = is_function ? functions++ : tables++;

        if ((found & UINT64_C(1) << i) != 0 || n.is_field)
            continue;
        object_always(j, QCACHE_R_MISSING);
        /* The server may find it all the same, as it folds names its own way. */
        j->writes_more = j->writes_more || n.kind == QCACHE_ASK_WRITTEN;
    }
}

/* Rows are told apart in all tables that are named, or in none. */
static void put_columns(struct qcache_judge *j, struct qcache_judgement *out)
{
    unsigned n = qcache_question_tables(j->question);
    unsigned i;

    if (n > QCACHE_ROW_TABLES || j->ncolumns == 0)
        return;
    for (i = 0; i < n; i++) {
        if (j->nown[i] == 0 || j->nown[i] > QCACHE_COLUMNS_MAX)
            return;
        out->named[i] = j->named[i];
        out->named[i].has_heirs = j->nrelations[i] != 1 && !j->named[i].is_partitioned;
    }
    out->nnamed = (uint8_t)n;
    out->ncolumns = j->ncolumns;
    out->columns = mem_resize(j->columns, j->ncolumns * sizeof j->columns[0]);
    j->columns = NULL;
}

struct qcache_judgement *qcache_judge_end(struct qcache_judge **jp, struct slice key)
{
    struct qcache_judge *j = *jp;
    struct qcache_judgement *out = mem_alloc_zero(sizeof *out + key.n);

    sort_out(&j->reads);
    sort_out(&j->writes);
    judge_missing(j);
    if ((j->odd_views & ~j->safe_views) != 0)
        object(j, QCACHE_R_FUNCTION);
    if ((j->db & DB_ODD) != 0)
        object(j, QCACHE_R_ODD);
    if (j->reads.n > CACHE_DEPS_MAX - 2)
        object_always(j, QCACHE_R_MANY);
    if (j->is_bad || !j->has_db) {
        j->reason = j->forced_reason = QCACHE_R_UNKNOWN;
        j->writes_more = j->runs_code = true;
    }
    out->reason = (uint8_t)j->reason;
    out->forced_reason = (uint8_t)j->forced_reason;
    out->writes_more = j->writes_more || j->writes.n > UINT16_MAX;
    out->runs_code = j->runs_code;
    out->repeats_reads = (j->db & DB_REPEATABLE) != 0;
    out->nreads = (uint16_t)(j->reads.n > UINT16_MAX ? 0 : j->reads.n);
    out->nwrites = (uint16_t)(j->writes.n > UINT16_MAX ? 0 : j->writes.n);
    out->reads = j->reads.p;
    out->writes = j->writes.p;
    j->reads.p = j->writes.p = NULL;
    out->expire_s = j->expire_s;
    out->ntables = j->ntables;
    out->tables = j->tables;
    j->tables = NULL;
    put_columns(j, out);
    out->key_len = (uint32_t)key.n;
    memcpy(out->key, key.p, key.n);
    qcache_judge_free(jp);
    return out;
}

void qcache_judge_free(struct qcache_judge **jp)
{
    struct qcache_judge *j = *jp;

    *jp = NULL;
    if (j == NULL)
        return;
    mem_free(j->reads.p);
    mem_free(j->writes.p);
    mem_free(j->tables);
    mem_free(j->columns);
    mem_free(j);
}
