#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""gen_route_builtin: writes route_builtin.def from the pg_proc of a running PostgreSQL.

Usage: gen_route_builtin.py [psql's connection options] > src/core/route/route_builtin.def
A name is listed when somebody might call it: no support, input, output or trigger functions, and not
the functions behind operators. It READS when none of its overloads in pg_catalog is volatile.
"""
import subprocess
import sys

QUERY = r"""
SELECT proname, bool_or(provolatile = 'v')
FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_description d
    ON d.objoid = p.oid AND d.classoid = 'pg_catalog.pg_proc'::regclass
WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind <> 'p'
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_type t
    WHERE t.oid = ANY (p.proargtypes::oid[] || p.prorettype) AND t.typname IN ('internal', 'trigger',
    'event_trigger', 'language_handler', 'cstring', 'fdw_handler', 'index_am_handler',
    'table_am_handler', 'tsm_handler'))
  AND (d.description IS NULL OR d.description !~ '^(implementation of|less-equal-greater|hash$|I/O$|.*selectivity)')
  AND proname !~ '^(binary_upgrade_|RI_FKey)'
GROUP BY 1 ORDER BY proname COLLATE "C"
"""

# Not volatile for PostgreSQL, and yet of the primary: they take a transaction id, fail on a standby, or speak of the
# server, or of the very process of it, that the client believes it is connected to. Those behind the views of
# statistics and of the session are here because the views, being catalogues, go to the primary.
PRIMARY = {"pg_backend_pid", "pg_conf_load_time", "pg_current_xact_id", "pg_cursor", "pg_get_replication_slots",
           "pg_is_other_temp_schema", "pg_listening_channels", "pg_my_temp_schema", "pg_postmaster_start_time",
           "pg_prepared_statement", "pg_show_all_settings",
           "pg_walfile_name", "pg_walfile_name_offset", "txid_current"}
PRIMARY_BEGIN = ("database_to_xml", "pg_stat_get_", "schema_to_xml", "table_to_xml")  # the XML of unlogged tables, too
HEAD = """/* SPDX-License-Identifier: PostgreSQL
 * route_builtin.def: functions of pg_catalog. ROUTE_BUILTIN(name, READS or WRITES), sorted by bytes.
 * Written by gen_route_builtin.py, which says what is listed and why. */
"""


def main() -> int:
    run = subprocess.run(["psql", "-XAtq", "-F", " ", *sys.argv[1:], "-c", QUERY],
                         check=True, capture_output=True, text=True)
    sys.stdout.write(HEAD)
    out = ""
    for line in run.stdout.splitlines():
        name, volatile = line.split(" ")
        word = "WRITES" if volatile == "t" or name in PRIMARY or name.startswith(PRIMARY_BEGIN) else "READS"
        item = f'ROUTE_BUILTIN("{name}", {word})'
        if out and len(out) + len(item) > 110:
            print(out)
            out = ""
        out += (" " if out else "") + item
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
