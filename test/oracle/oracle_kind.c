/* SPDX-License-Identifier: PostgreSQL
 * oracle_kind.c: tables from node names to kinds, and the forms that only read.
 * Runs in: the test program oracle_dump only. */
#include "config.h"

#include "oracle_kind.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "oracle_json.h"

struct kind_of {
    const char *type;
    const char *kind;
};

/* What is not listed here is ddl. */
static const struct kind_of node_kinds[] = {
    {"InsertStmt", "insert"},
    {"UpdateStmt", "update"},
    {"DeleteStmt", "delete"},
    {"MergeStmt", "merge"},
    {"ExplainStmt", "explain"},
    {"ConstraintsSetStmt", "set"},
    {"VariableShowStmt", "show"},
    {"PrepareStmt", "prepare"},
    {"ExecuteStmt", "execute"},
    {"DeallocateStmt", "deallocate"},
    {"DeclareCursorStmt", "declare"},
    {"FetchStmt", "fetch"},
    {"ClosePortalStmt", "close"},
    {"ListenStmt", "listen"},
    {"NotifyStmt", "notify"},
    {"LockStmt", "lock"},
    {"TruncateStmt", "truncate"},
    {"CallStmt", "call"},
    {"DoStmt", "do"},
    {"UnlistenStmt", "other"},
    {"VacuumStmt", "other"},
    {"ClusterStmt", "other"},
    {"ReindexStmt", "other"},
    {"CheckPointStmt", "other"},
    {"DiscardStmt", "other"},
    {"LoadStmt", "other"},
    {"AlterSystemStmt", "other"},
};

static const struct kind_of transaction_kinds[] = {
    {"TRANS_STMT_BEGIN", "begin"},
    {"TRANS_STMT_START", "begin"},
    {"TRANS_STMT_COMMIT", "commit"},
    {"TRANS_STMT_ROLLBACK", "rollback"},
    {"TRANS_STMT_SAVEPOINT", "savepoint"},
    {"TRANS_STMT_RELEASE", "savepoint"},
    {"TRANS_STMT_ROLLBACK_TO", "savepoint"},
};

static const struct kind_of set_kinds[] = {
    {"VAR_RESET", "reset"},
    {"VAR_RESET_ALL", "reset"},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *look_up(
    const struct kind_of *table, size_t n, const char *type, const char *other)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(table[i].type, type) == 0) {
            return table[i].kind;
        }
    }
    return other;
}

static const char *query_kind(const struct oracle_json *body)
{
    return oracle_json_get(body, "valuesLists") != NULL ? "values" : "select";
}

const char *oracle_kind(const char *type, const struct oracle_json *body)
{
    if (strcmp(type, "SelectStmt") == 0) {
        return query_kind(body);
    }
    if (strcmp(type, "CopyStmt") == 0) {
        return oracle_json_int(body, "is_from") != 0 ? "copy_from" : "copy_to";
    }
    if (strcmp(type, "TransactionStmt") == 0) {
        return look_up(
            transaction_kinds, COUNT(transaction_kinds), oracle_json_str(body, "kind"), "other");
    }
    if (strcmp(type, "VariableSetStmt") == 0) {
        return look_up(set_kinds, COUNT(set_kinds), oracle_json_str(body, "kind"), "set");
    }
    return look_up(node_kinds, COUNT(node_kinds), type, "ddl");
}

/* The value of a boolean option as the server reads it; without a value it is on. */
static bool option_is_on(const struct oracle_json *option)
{
    const struct oracle_json *arg = oracle_json_get(option, "arg");
    const struct oracle_json *node = arg == NULL ? NULL : arg->child;

    if (node == NULL) {
        return true;
    }
    if (strcmp(node->key, "Integer") == 0) {
        return oracle_json_int(node, "ival") != 0;
    }
    return strcasecmp(oracle_json_str(node, "sval"), "false") != 0 &&
           strcasecmp(oracle_json_str(node, "sval"), "off") != 0;
}

/* The last ANALYZE of the options counts, as in the server. */
static bool explain_runs(const struct oracle_json *body)
{
    const struct oracle_json *options = oracle_json_get(body, "options");
    bool runs = false;

    if (options == NULL) {
        return false;
    }
    for (const struct oracle_json *m = options->child; m != NULL; m = m->next) {
        const struct oracle_json *option = oracle_json_get(m, "DefElem");

        if (strcmp(oracle_json_str(option, "defname"), "analyze") == 0) {
            runs = option_is_on(option);
        }
    }
    return runs;
}

bool oracle_kind_is_plain_explain(const char *type, const struct oracle_json *body)
{
    return strcmp(type, "ExplainStmt") == 0 && !explain_runs(body);
}

bool oracle_kind_read_only(const char *type, const struct oracle_json *body)
{
    const struct oracle_json *query = oracle_json_get(body, "query");

    if (strcmp(type, "SelectStmt") == 0 || strcmp(type, "VariableShowStmt") == 0) {
        return true;
    }
    if (strcmp(type, "ExplainStmt") == 0) {
        return query != NULL && strcmp(query->child->key, "SelectStmt") == 0;
    }
    if (strcmp(type, "CopyStmt") == 0) {
        return oracle_json_int(body, "is_from") == 0 && oracle_json_int(body, "is_program") == 0 &&
               oracle_json_get(body, "filename") == NULL &&
               (query == NULL || strcmp(query->child->key, "SelectStmt") == 0);
    }
    return false;
}
