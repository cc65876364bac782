/* SPDX-License-Identifier: PostgreSQL
 * oracle_walk.c: walks libpg_query's tree and collects what the parser under test must say too.
 * Runs in: the test program oracle_dump only. The walk is generic (every member of every node), and
 * only nodes that mean something are named; so a node forgotten here still has its tables found. */
#include "config.h"

#include "oracle_walk.h"

#include <string.h>

#include "base/arena.h"
#include "oracle_json.h"
#include "oracle_kind.h"

#include <stdlib.h>
#include <strings.h>

/* Names of common table expressions in scope, innermost first. */
struct scope {
    const char *name;
    const struct scope *outer;
};

struct walk {
    struct arena *arena;
    const char *sql;
    struct oracle_facts *facts;
};

static void walk_value(struct walk *w, const struct oracle_json *v, const struct scope *sc);
static void walk_typed(
    struct walk *w, const char *type, const struct oracle_json *body, const struct scope *sc);

static void names_add(struct arena *a, struct oracle_names *names, const char *name)
{
    if (names->n == names->cap) {
        size_t cap = names->cap == 0 ? 8 : names->cap * 2;
        const char **v = arena_alloc(a, cap * sizeof *v);

        if (names->n > 0) {
            memcpy(v, names->v, names->n * sizeof *v);
        }
        names->v = v;
        names->cap = cap;
    }
    names->v[names->n++] = name;
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void names_finish(struct oracle_names *names)
{
    size_t n = 0;

    if (names->n == 0) {
        return;
    }
    qsort(names->v, names->n, sizeof *names->v, compare_names);
    for (size_t i = 0; i < names->n; i++) {
        if (n == 0 || strcmp(names->v[n - 1], names->v[i]) != 0) {
            names->v[n++] = names->v[i];
        }
    }
    names->n = n;
}

/* A node is printed as {"TypeName":{…}}; members of a node begin with a small letter. */
static const struct oracle_json *wrapped_node(const struct oracle_json *v)
{
    if (v == NULL || v->type != ORACLE_JSON_OBJECT || v->child == NULL || v->child->next != NULL) {
        return NULL;
    }
    return v->child->key[0] >= 'A' && v->child->key[0] <= 'Z' ? v->child : NULL;
}

static void walk_members(
    struct walk *w, const struct oracle_json *body, const struct scope *sc, const char *except)
{
    if (body == NULL) {
        return;
    }
    for (const struct oracle_json *m = body->child; m != NULL; m = m->next) {
        if (except == NULL || strcmp(m->key, except) != 0) {
            walk_value(w, m, sc);
        }
    }
}

/* Adds a relation; `sc` is NULL where a CTE's name means nothing (targets). */
static void walk_range_var(struct walk *w, const struct oracle_json *body, const struct scope *sc)
{
    const char *database = oracle_json_str(body, "catalogname");
    const char *schema = oracle_json_str(body, "schemaname");
    const char *name = oracle_json_str(body, "relname");

    if (strcmp(oracle_json_str(body, "relpersistence"), "t") == 0) {
        w->facts->temp = true;
    }
    if (schema[0] == '\0' && database[0] == '\0') {
        for (; sc != NULL; sc = sc->outer) {
            if (strcmp(sc->name, name) == 0) {
                return;
            }
        }
        names_add(w->arena, &w->facts->tables, name);
        return;
    }
    names_add(w->arena, &w->facts->tables,
        arena_printf(
            w->arena, "%s%s%s.%s", database, database[0] == '\0' ? "" : ".", schema, name));
}

static const struct scope *scope_push(struct arena *a, const char *name, const struct scope *outer)
{
    struct scope *sc = arena_alloc(a, sizeof *sc);

    sc->name = name;
    sc->outer = outer;
    return sc;
}

static bool is_dml(const char *type)
{
    return strcmp(type, "InsertStmt") == 0 || strcmp(type, "UpdateStmt") == 0 ||
           strcmp(type, "DeleteStmt") == 0 || strcmp(type, "MergeStmt") == 0;
}

static void walk_cte(struct walk *w, const struct oracle_json *cte, const struct scope *sc)
{
    const struct oracle_json *query = wrapped_node(oracle_json_get(cte, "ctequery"));

    if (query != NULL && is_dml(query->key)) {
        w->facts->dml_in_cte = true;
    }
    walk_members(w, cte, sc, NULL);
}

/* Walks the queries of WITH; returns the scope of the statement that has it. Without RECURSIVE a
 * query sees those before it, with RECURSIVE all of them. */
static const struct scope *walk_with(
    struct walk *w, const struct oracle_json *with, const struct scope *outer)
{
    const struct oracle_json *ctes = oracle_json_get(with, "ctes");
    bool recursive = oracle_json_int(with, "recursive") != 0;
    const struct scope *all = outer;
    const struct scope *seen = outer;

    if (ctes == NULL) {
        return outer;
    }
    for (const struct oracle_json *m = ctes->child; m != NULL; m = m->next) {
        all = scope_push(w->arena, oracle_json_str(wrapped_node(m), "ctename"), all);
    }
    for (const struct oracle_json *m = ctes->child; m != NULL; m = m->next) {
        const struct oracle_json *cte = wrapped_node(m);

        walk_cte(w, cte, recursive ? all : seen);
        seen = scope_push(w->arena, oracle_json_str(cte, "ctename"), seen);
    }
    return all;
}

static void walk_query(struct walk *w, const struct oracle_json *body, const struct scope *sc)
{
    sc = walk_with(w, oracle_json_get(body, "withClause"), sc);
    for (const struct oracle_json *m = body->child; m != NULL; m = m->next) {
        if (strcmp(m->key, "larg") == 0 || strcmp(m->key, "rarg") == 0) {
            walk_query(w, m, sc);
        } else if (strcmp(m->key, "intoClause") == 0) {
            w->facts->into = true;
            walk_value(w, m, NULL);
        } else if (strcmp(m->key, "withClause") != 0) {
            walk_value(w, m, sc);
        }
    }
}

static void walk_dml(struct walk *w, const struct oracle_json *body, const struct scope *sc)
{
    sc = walk_with(w, oracle_json_get(body, "withClause"), sc);
    for (const struct oracle_json *m = body->child; m != NULL; m = m->next) {
        if (strcmp(m->key, "relation") == 0) {
            walk_range_var(w, m, NULL);
        } else if (strcmp(m->key, "withClause") != 0) {
            walk_value(w, m, sc);
        }
    }
}

/* Joins a list of String nodes by dots. */
static const char *join_name(struct arena *a, const struct oracle_json *list)
{
    const char *name = "";

    for (const struct oracle_json *m = list == NULL ? NULL : list->child; m != NULL; m = m->next) {
        const char *part = oracle_json_str(wrapped_node(m), "sval");

        name = name[0] == '\0' ? part : arena_printf(a, "%s.%s", name, part);
    }
    return name;
}

/* TREAT(a AS t) is printed as an ordinary call of t; only the text tells. */
static bool is_treat(const char *sql, long location)
{
    return location >= 0 && (size_t)location < strlen(sql) &&
           strncasecmp(sql + location, "treat", 5) == 0;
}

static void walk_call(struct walk *w, const struct oracle_json *body, const struct scope *sc)
{
    const char *name = join_name(w->arena, oracle_json_get(body, "funcname"));
    bool written = strcmp(oracle_json_str(body, "funcformat"), "COERCE_EXPLICIT_CALL") == 0;

    if (written && strncmp(name, "pg_catalog.", 11) == 0 &&
        is_treat(w->sql, oracle_json_int(body, "location"))) {
        written = false;
    }
    if (written) {
        names_add(w->arena, &w->facts->functions, name);
    }
    walk_members(w, body, sc, "funcname");
}

/* LIKE … ESCAPE and SIMILAR TO call a function that nobody wrote: it stands at the operator. */
static bool is_pattern_call(const struct oracle_json *expr, const struct oracle_json *right)
{
    const char *kind = oracle_json_str(expr, "kind");

    if (right == NULL || strcmp(right->key, "FuncCall") != 0) {
        return false;
    }
    return (strcmp(kind, "AEXPR_LIKE") == 0 || strcmp(kind, "AEXPR_ILIKE") == 0 ||
               strcmp(kind, "AEXPR_SIMILAR") == 0) &&
           oracle_json_int(expr, "location") == oracle_json_int(right, "location");
}

static void walk_expr(struct walk *w, const struct oracle_json *body, const struct scope *sc)
{
    const struct oracle_json *right = wrapped_node(oracle_json_get(body, "rexpr"));

    if (is_pattern_call(body, right)) {
        walk_members(w, body, sc, "rexpr");
        walk_members(w, right, sc, "funcname");
    } else {
        walk_members(w, body, sc, NULL);
    }
}

/* The member in which a RangeVar is the name of a type or constraint, not of a relation. */
static const char *foreign_member(const char *type, const struct oracle_json *body)
{
    if (strcmp(type, "CompositeTypeStmt") == 0) {
        return "typevar";
    }
    if (strcmp(type, "ConstraintsSetStmt") == 0) {
        return "constraints";
    }
    if (strcmp(type, "AlterTableStmt") == 0 &&
        strcmp(oracle_json_str(body, "objtype"), "OBJECT_TYPE") == 0) {
        return "relation";
    }
    if (strcmp(type, "RenameStmt") == 0 &&
        (strcmp(oracle_json_str(body, "renameType"), "OBJECT_ATTRIBUTE") == 0 ||
            strcmp(oracle_json_str(body, "relationType"), "OBJECT_TYPE") == 0)) {
        return "relation";
    }
    return NULL;
}

static void walk_typed(
    struct walk *w, const char *type, const struct oracle_json *body, const struct scope *sc)
{
    if (strcmp(type, "RangeVar") == 0) {
        walk_range_var(w, body, sc);
    } else if (strcmp(type, "SelectStmt") == 0) {
        walk_query(w, body, sc);
    } else if (is_dml(type)) {
        walk_dml(w, body, sc);
    } else if (strcmp(type, "FuncCall") == 0) {
        walk_call(w, body, sc);
    } else if (strcmp(type, "A_Expr") == 0) {
        walk_expr(w, body, sc);
    } else if (strcmp(type, "LockingClause") == 0) {
        w->facts->locking = true;
    } else if (strcmp(type, "ParamRef") == 0) {
        long number = oracle_json_int(body, "number");

        w->facts->params = number > w->facts->params ? number : w->facts->params;
    } else {
        walk_members(w, body, sc, foreign_member(type, body));
    }
}

static void walk_value(struct walk *w, const struct oracle_json *v, const struct scope *sc)
{
    const struct oracle_json *node = wrapped_node(v);

    if (node != NULL) {
        walk_typed(w, node->key, node, sc);
    } else if (v->type == ORACLE_JSON_OBJECT) {
        if (v->key != NULL && strcmp(v->key, "funccall") == 0) {
            walk_call(w, v, sc);
        } else if (oracle_json_get(v, "relpersistence") != NULL) {
            walk_range_var(w, v, sc);
        } else {
            walk_members(w, v, sc, NULL);
        }
    } else if (v->type == ORACLE_JSON_ARRAY) {
        for (const struct oracle_json *m = v->child; m != NULL; m = m->next) {
            walk_value(w, m, sc);
        }
    }
}

struct oracle_facts oracle_walk(struct arena *a, const char *sql, const struct oracle_json *stmt)
{
    struct oracle_facts facts = {.kind = "other"};
    struct walk w = {a, sql, &facts};
    const struct oracle_json *node = wrapped_node(stmt);

    if (node == NULL) {
        return facts;
    }
    walk_typed(&w, node->key, node, NULL);
    names_finish(&facts.tables);
    names_finish(&facts.functions);
    facts.kind = oracle_kind(node->key, node);
    facts.read_only = oracle_kind_read_only(node->key, node) && !facts.into && !facts.locking &&
                      !facts.dml_in_cte;
    if (oracle_kind_is_plain_explain(node->key, node)) {
        facts.read_only = true;
    }
    return facts;
}
