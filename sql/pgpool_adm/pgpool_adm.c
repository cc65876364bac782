/* SPDX-License-Identifier: PostgreSQL
 * pgpool_adm.c: the SQL functions that administer pgpool over PCP.
 * Runs in: a backend of PostgreSQL. Each call is one connection. */
#include "postgres.h"

#include <time.h>

#include "access/htup_details.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "adm_link.h"

#if PG_VERSION_NUM >= 160000
#define CHECK_SERVER(...) object_aclcheck(ForeignServerRelationId, __VA_ARGS__)
#else
#define CHECK_SERVER(...) pg_foreign_server_aclcheck(__VA_ARGS__)
#endif

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(adm_node_info);
PG_FUNCTION_INFO_V1(adm_health_check_stats);
PG_FUNCTION_INFO_V1(adm_pool_status);
PG_FUNCTION_INFO_V1(adm_node_count);
PG_FUNCTION_INFO_V1(adm_attach_node);
PG_FUNCTION_INFO_V1(adm_detach_node);
PG_FUNCTION_INFO_V1(adm_proc_info);

#define DEFAULT_PORT    9898
#define COMPLETE        "CommandComplete"
#define WHOLE_WEIGHT    2147483647.0
#define NODE_COLUMNS    11
#define HEALTH_COLUMNS  20
#define PROCESS_COLUMNS 20
#define SETTING_COLUMNS 3

/* --- whom to ask --- */

static const char *option(List *options, const char *name)
{
    ListCell *cell;

    foreach (cell, options) {
        DefElem *def = lfirst(cell);

        if (strcmp(def->defname, name) == 0)
            return defGetString(def);
    }
    return NULL;
}

/* A mapping for all roles is for those alone who may use the server. */
static ForeignServer *find_server(const char *name)
{
    ForeignServer *server = GetForeignServerByName(name, false);
    AclResult allowed = CHECK_SERVER(server->serverid, GetUserId(), ACL_USAGE);

    if (allowed != ACLCHECK_OK)
        aclcheck_error(allowed, OBJECT_FOREIGN_SERVER, server->servername);
    return server;
}

static void target_of_server(const char *name, struct adm_target *out)
{
    ForeignServer *server = find_server(name);
    UserMapping *mapping = GetUserMapping(GetUserId(), server->serverid);
    const char *port = option(server->options, "port");

    out->host = option(server->options, "host");
    out->port = port == NULL ? DEFAULT_PORT : pg_strtoint32(port);
    out->user = option(mapping->options, "user");
    out->password = option(mapping->options, "password");
    if (out->host == NULL)
        ereport(ERROR, (errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
                           errmsg("foreign server \"%s\" has no option \"host\"", name)));
    if (out->user == NULL || out->password == NULL)
        ereport(ERROR, (errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
                           errmsg("the user mapping of foreign server \"%s\" needs the options "
                                  "\"user\" and \"password\"",
                               name)));
}

/* Connects as the arguments from `first` on say: host, port, user, password, or a foreign server.
 */
static struct adm_link *open_link(FunctionCallInfo fcinfo, int first)
{
    struct adm_target to = {0};

    if (PG_NARGS() - first == 1) {
        target_of_server(text_to_cstring(PG_GETARG_TEXT_PP(first)), &to);
    } else {
        to.host = text_to_cstring(PG_GETARG_TEXT_PP(first));
        to.port = PG_GETARG_INT32(first + 1);
        to.user = text_to_cstring(PG_GETARG_TEXT_PP(first + 2));
        to.password = text_to_cstring(PG_GETARG_TEXT_PP(first + 3));
    }
    if (to.port < 1 || to.port > 65535)
        ereport(
            ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid port %d", to.port)));
    return adm_open(&to);
}

/* --- values --- */

static void not_understood(void)
{
    ereport(ERROR,
        (errcode(ERRCODE_PROTOCOL_VIOLATION), errmsg("the answer of pgpool was not understood")));
}

static bool is_word(const struct adm_packet *p, char type, const char *word)
{
    if (p->type != type || p->nfields < 1)
        not_understood();
    return strcmp(p->field[0], word) == 0;
}

static void send_int(struct adm_link *link, char type, int value)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%d", value);

    adm_send(link, type, text, (size_t)n + 1);
}

/* Seconds since 1970 as a local time, empty for 0. */
static char *time_text(const char *epoch)
{
    time_t at = (time_t)strtoll(epoch, NULL, 10);
    struct tm tm;
    char text[32];

    if (at == 0 || localtime_r(&at, &tm) == NULL)
        return NULL;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    return pstrdup(text);
}

static const char *status_text(const char *number, const char *quarantine)
{
    static const char *const names[] = {"unused", "waiting", "up", "down"};
    int i = atoi(number);

    if (quarantine[0] == '1')
        return "quarantine";
    return i >= 0 && i < (int)lengthof(names) ? names[i] : "unknown";
}

static const char *role_text(const char *number)
{
    static const char *const names[] = {"main", "replica", "primary", "standby"};
    int i = atoi(number);

    return i >= 0 && i < (int)lengthof(names) ? names[i] : "unknown";
}

/* One row from texts; NULL and empty become null. */
static HeapTuple make_row(FunctionCallInfo fcinfo, char **values, int n)
{
    TupleDesc desc;
    int i;

    if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != n)
        ereport(ERROR, (errmsg("the function's result is not what its program returns")));
    for (i = 0; i < n; i++) {
        if (values[i] != NULL && values[i][0] == '\0')
            values[i] = NULL;
    }
    return BuildTupleFromCStrings(TupleDescGetAttInMetadata(BlessTupleDesc(desc)), values);
}

/* --- functions --- */

/* NodeInfo host port status quarantine pg_status weight role pg_role is_time delay state sync time;
 * pgpool-II before 4.4 had no is_time. */
static HeapTuple node_row(FunctionCallInfo fcinfo, const struct adm_packet *p)
{
    char *v[NODE_COLUMNS];
    const char *const *tail;

    if (p->nfields < 13)
        not_understood();
    tail = p->field + (p->nfields == 13 ? 9 : 10);
    v[0] = pstrdup(p->field[1]);
    v[1] = pstrdup(p->field[2]);
    v[2] = pstrdup(status_text(p->field[3], p->field[4]));
    v[3] = pstrdup(p->field[5]);
    v[4] = psprintf("%f", atof(p->field[6]) / WHOLE_WEIGHT);
    v[5] = pstrdup(role_text(p->field[7]));
    v[6] = pstrdup(p->field[8]);
    v[7] = pstrdup(tail[0]);
    v[8] = pstrdup(tail[1]);
    v[9] = pstrdup(tail[2]);
    v[10] = time_text(tail[3]);
    return make_row(fcinfo, v, NODE_COLUMNS);
}

Datum adm_node_info(PG_FUNCTION_ARGS)
{
    struct adm_link *link = open_link(fcinfo, 1);
    HeapTuple row = NULL;
    struct adm_packet p;

    send_int(link, 'I', PG_GETARG_INT32(0));
    for (adm_receive(link, &p); !is_word(&p, 'i', COMPLETE); adm_receive(link, &p)) {
        if (is_word(&p, 'i', "NodeInfo") && row == NULL)
            row = node_row(fcinfo, &p);
    }
    adm_close(link);
    if (row == NULL)
        not_understood();
    PG_RETURN_DATUM(HeapTupleGetDatum(row));
}

Datum adm_health_check_stats(PG_FUNCTION_ARGS)
{
    struct adm_link *link = open_link(fcinfo, 1);
    char *v[HEALTH_COLUMNS];
    struct adm_packet p;
    HeapTuple row;
    int i;

    send_int(link, 'H', PG_GETARG_INT32(0));
    adm_receive(link, &p);
    if (!is_word(&p, 'h', COMPLETE) || p.nfields < 1 + HEALTH_COLUMNS)
        not_understood();
    for (i = 0; i < HEALTH_COLUMNS; i++)
        v[i] = pstrdup(p.field[i + 1]);
    row = make_row(fcinfo, v, HEALTH_COLUMNS);
    adm_close(link);
    PG_RETURN_DATUM(HeapTupleGetDatum(row));
}

/* The rows of a function that returns a set are collected here. */
static Tuplestorestate *begin_set(FunctionCallInfo fcinfo, int columns, TupleDesc *desc)
{
    ReturnSetInfo *info = (ReturnSetInfo *)fcinfo->resultinfo;
    MemoryContext before;
    Tuplestorestate *store;

    if (info == NULL || !IsA(info, ReturnSetInfo) || (info->allowedModes & SFRM_Materialize) == 0)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                           errmsg("this function returns rows where none are accepted")));
    if (get_call_result_type(fcinfo, NULL, desc) != TYPEFUNC_COMPOSITE || (*desc)->natts != columns)
        ereport(ERROR, (errmsg("the function's result is not what its program returns")));
    before = MemoryContextSwitchTo(info->econtext->ecxt_per_query_memory);
    *desc = CreateTupleDescCopy(*desc);
    store = tuplestore_begin_heap(true, false, work_mem);
    info->returnMode = SFRM_Materialize;
    info->setResult = store;
    info->setDesc = *desc;
    MemoryContextSwitchTo(before);
    return store;
}

static void put_texts(Tuplestorestate *store, TupleDesc desc, const char *const *texts, int n)
{
    Datum values[PROCESS_COLUMNS];
    bool nulls[PROCESS_COLUMNS] = {false};
    int i;

    for (i = 0; i < n; i++)
        values[i] = CStringGetTextDatum(texts[i]);
    tuplestore_putvalues(store, desc, values, nulls);
}

Datum adm_pool_status(PG_FUNCTION_ARGS)
{
    TupleDesc desc;
    Tuplestorestate *store = begin_set(fcinfo, SETTING_COLUMNS, &desc);
    struct adm_link *link = open_link(fcinfo, 0);
    struct adm_packet p;

    adm_send(link, 'B', NULL, 0);
    for (adm_receive(link, &p); !is_word(&p, 'b', COMPLETE); adm_receive(link, &p)) {
        if (!is_word(&p, 'b', "ProcessConfig"))
            continue;
        if (p.nfields < 1 + SETTING_COLUMNS)
            not_understood();
        put_texts(store, desc, p.field + 1, SETTING_COLUMNS);
    }
    adm_close(link);
    return (Datum)0;
}

/* The order of the columns here, as positions in the packet. */
Datum adm_proc_info(PG_FUNCTION_ARGS)
{
    static const int order[PROCESS_COLUMNS] = {
        5, 6, 1, 2, 11, 12, 7, 8, 10, 9, 13, 14, 15, 0, 4, 16, 17, 18, 19, 20};
    TupleDesc desc;
    Tuplestorestate *store = begin_set(fcinfo, PROCESS_COLUMNS, &desc);
    struct adm_link *link = open_link(fcinfo, 0);
    struct adm_packet p;

    send_int(link, 'P', 0);
    for (adm_receive(link, &p); !is_word(&p, 'p', COMPLETE); adm_receive(link, &p)) {
        const char *texts[PROCESS_COLUMNS];
        int i;

        if (!is_word(&p, 'p', "ProcessInfo"))
            continue;
        if (p.nfields < 18)
            not_understood();
        for (i = 0; i < PROCESS_COLUMNS; i++)
            texts[i] = order[i] + 1 < p.nfields ? p.field[order[i] + 1] : "";
        put_texts(store, desc, texts, PROCESS_COLUMNS);
    }
    adm_close(link);
    return (Datum)0;
}

Datum adm_node_count(PG_FUNCTION_ARGS)
{
    struct adm_link *link = open_link(fcinfo, 0);
    struct adm_packet p;
    int n;

    adm_send(link, 'L', NULL, 0);
    adm_receive(link, &p);
    if (!is_word(&p, 'l', COMPLETE) || p.nfields < 2)
        not_understood();
    n = atoi(p.field[1]);
    adm_close(link);
    PG_RETURN_INT32(n);
}

/* A command without data: true, or an ERROR. */
static bool order(struct adm_link *link, char type, char answer, int node)
{
    struct adm_packet p;

    send_int(link, type, node);
    adm_receive(link, &p);
    if (!is_word(&p, answer, COMPLETE))
        not_understood();
    adm_close(link);
    return true;
}

Datum adm_attach_node(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(order(open_link(fcinfo, 1), 'C', 'c', PG_GETARG_INT32(0)));
}

Datum adm_detach_node(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(
        order(open_link(fcinfo, 2), PG_GETARG_BOOL(1) ? 'd' : 'D', 'd', PG_GETARG_INT32(0)));
}
