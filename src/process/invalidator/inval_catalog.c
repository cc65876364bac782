/* SPDX-License-Identifier: PostgreSQL
 * inval_catalog.c: what the catalogue is asked, and what it answers.
 * Runs in: invalidator. The connection has an empty search_path but pg_catalog, and plain settings,
 * see inval_stream.c. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inval_int.h"

/* Slots and senders that are left to others: a standby, a backup. */
#define LEFT_TO_OTHERS 2
/* pg_attribute.attgenerated came with this version. */
#define VERSION_GENERATED 120000

static const char facts_sql[] =
    "select current_setting('wal_level'), pg_is_in_recovery(),"
    " (select rolreplication or rolsuper from pg_roles where rolname = current_user),"
    " current_setting('max_replication_slots')::int - (select count(*) from pg_replication_slots),"
    " current_setting('max_wal_senders')::int - (select count(*) from pg_stat_replication)";

/* All that decides about results, of what is no row of a table: as the catalogue's own tables are
 * not in the stream. Of tables the columns that matter, as TRUNCATE, VACUUM and ANALYZE change
 * their rows, too; of materialized views also the file, which REFRESH changes. Temporary things are
 * left out: nobody keeps results of them. */
static const char digest_sql[] =
    "with r as (select * from pg_class where relkind in ('r', 'p', 'v', 'm', 'f')"
    "  and relpersistence <> 't' and oid >= 16384)"
    " select concat_ws(' ', "
    "(select count(*) || '/' || coalesce(sum(hashtextextended(concat_ws(',', oid, relname,"
    "  relnamespace, relowner, relkind, relacl::text, relrowsecurity, relforcerowsecurity,"
    "  relreplident, relpersistence, reloptions::text,"
    "  case relkind when 'm' then relfilenode end), 0)), 0) from r),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', a.attrelid, a.attnum, a.xmin), 0)), 0)"
    "  from pg_attribute a join r on r.oid = a.attrelid where a.attnum > 0),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', i.indexrelid, i.indrelid,"
    "  i.indkey::text, i.indisprimary, i.indisreplident, i.indisvalid, i.indimmediate), 0)), 0)"
    "  from pg_index i join r on r.oid = i.indrelid),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', w.oid, w.xmin), 0)), 0)"
    "  from pg_rewrite w join r on r.oid = w.ev_class),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', oid, xmin), 0)), 0) from pg_policy),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', oid, xmin), 0)), 0) from pg_proc"
    "  where oid >= 16384),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', oid, nspname, nspacl::text), 0)), 0)"
    "  from pg_namespace where nspname !~ '^pg_(toast_)?temp_'),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', i.inhrelid, i.inhparent), 0)), 0)"
    "  from pg_inherits i join r on r.oid = i.inhrelid),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', oid, tgenabled, xmin), 0)), 0)"
    "  from pg_trigger where not tgisinternal),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', oid, xmin), 0)), 0) from pg_constraint"
    "  where contype = 'f'),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', oid, xmin), 0)), 0) from pg_enum),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', oid, xmin), 0)), 0) from"
    "  (select oid, xmin from pg_operator union all select oid, xmin from pg_cast"
    "   union all select oid, xmin from pg_collation"
    "   union all select oid, xmin from pg_type where typtype = 'd') x where oid >= 16384),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', mapcfg, maptokentype, mapseqno, xmin),"
    "  0)), 0) from pg_ts_config_map),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', oid, xmin), 0)), 0) from pg_ts_dict),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', setdatabase, setrole, xmin), 0)), 0)"
    "  from pg_db_role_setting), extract(epoch from pg_conf_load_time()),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', roleid, member, xmin), 0)), 0)"
    "  from pg_auth_members),"
    "(select coalesce(sum(hashtextextended(concat_ws(',', oid, rolname, rolsuper, rolinherit,"
    "  rolbypassrls), 0)), 0) from pg_roles))";

#define TABLES_SQL(told)                                                                           \
    "select c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relreplident,"       \
    " a.attnum, a.atttypid, coalesce(a.attnum = any (i.indkey), false), " told ","                 \
    " quote_ident(a.attname)"                                                                      \
    " from pg_class c join pg_namespace n on n.oid = c.relnamespace"                               \
    " left join pg_index i on i.indrelid = c.oid and i.indisvalid and i.indimmediate"              \
    "  and case c.relreplident when 'd' then i.indisprimary when 'i' then i.indisreplident"        \
    "  else false end"                                                                             \
    " left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"      \
    "  and a.atttypid in (16, 20, 21, 23, 25, 1043, 1082, 2950)"                                   \
    " where c.relkind in ('r', 'p', 'm') and c.relpersistence = 'p' and c.oid >= 16384"            \
    " order by c.oid, a.attnum"

static const char above_sql[] =
    "with recursive up (child, above) as (select inhrelid, inhparent from pg_inherits"
    " union select u.child, i.inhparent from up u join pg_inherits i on i.inhrelid = u.above)"
    " select u.child, u.above from up u join pg_class c on c.oid = u.child"
    " where c.relkind in ('r', 'p')";

const char *inval_catalog_sql(enum inval_ask ask, int version)
{
    switch (ask) {
    case ASK_FACTS:
        return facts_sql;
    case ASK_DIGEST:
        return digest_sql;
    case ASK_TABLES:
        return version >= VERSION_GENERATED ? TABLES_SQL("a.attgenerated <> 'v'")
                                            : TABLES_SQL("true");
    case ASK_ABOVE:
        return above_sql;
    default:
        return "select txid_current_snapshot()";
    }
}

static bool is_true(const PGresult *res, int row, int column)
{
    return PQgetvalue(res, row, column)[0] == 't';
}

static uint32_t number(const PGresult *res, int row, int column)
{
    return (uint32_t)strtoul(PQgetvalue(res, row, column), NULL, 10);
}

bool inval_catalog_in_recovery(const PGresult *res)
{
    return is_true(res, 0, 1);
}

int inval_catalog_judge(const PGresult *res, char why[CACHE_STREAM_WHY_BYTES])
{
    const char *level = PQgetvalue(res, 0, 0);
    long nslots = strtol(PQgetvalue(res, 0, 3), NULL, 10);
    long nsenders = strtol(PQgetvalue(res, 0, 4), NULL, 10);

    if (strcmp(level, "logical") != 0)
        snprintf(
            why, CACHE_STREAM_WHY_BYTES, "wal_level of the primary is %.20s, not logical", level);
    else if (!is_true(res, 0, 2))
        snprintf(why, CACHE_STREAM_WHY_BYTES, "the role has not the attribute REPLICATION");
    else if (nslots <= LEFT_TO_OTHERS)
        snprintf(why, CACHE_STREAM_WHY_BYTES,
            "only %ld of max_replication_slots are free, %d are left to others", nslots,
            LEFT_TO_OTHERS);
    else if (nsenders <= LEFT_TO_OTHERS)
        snprintf(why, CACHE_STREAM_WHY_BYTES,
            "only %ld of max_wal_senders are free, %d are left to others", nsenders,
            LEFT_TO_OTHERS);
    else
        return 0;
    return -1;
}

void inval_catalog_tables(struct inval_map *m, const PGresult *res)
{
    uint32_t last = 0;
    int n = PQntuples(res);
    int i;

    for (i = 0; i < n; i++) {
        uint32_t oid = number(res, i, 0);

        if (oid != last)
            inval_map_add_table(
                m, oid, slice_of_str(PQgetvalue(res, i, 1)), PQgetvalue(res, i, 2)[0]);
        last = oid;
        if (!PQgetisnull(res, i, 3))
            inval_map_add_column(m, atoi(PQgetvalue(res, i, 3)), number(res, i, 4),
                slice_of_str(PQgetvalue(res, i, 7)), is_true(res, i, 5), is_true(res, i, 6));
    }
}

void inval_catalog_above(struct inval_map *m, const PGresult *res)
{
    int n = PQntuples(res);
    int i;

    for (i = 0; i < n; i++)
        inval_map_add_above(m, number(res, i, 0), number(res, i, 1));
}
