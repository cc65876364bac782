/* SPDX-License-Identifier: PostgreSQL
 * pgpool_recovery--1.4.sql: what CREATE EXTENSION pgpool_recovery makes. */
\echo Use "CREATE EXTENSION pgpool_recovery" to load this file. \quit

-- Each function runs programs as the account of the server: superusers, and whom they GRANT it to.

CREATE FUNCTION pgpool_recovery(script_name text, remote_host text, remote_data_directory text)
RETURNS bool AS 'MODULE_PATHNAME', 'pgpool_recovery' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pgpool_recovery(script_name text, remote_host text, remote_data_directory text,
    primary_port text)
RETURNS bool AS 'MODULE_PATHNAME', 'pgpool_recovery' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pgpool_recovery(script_name text, remote_host text, remote_data_directory text,
    primary_port text, remote_node integer)
RETURNS bool AS 'MODULE_PATHNAME', 'pgpool_recovery' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pgpool_recovery(script_name text, remote_host text, remote_data_directory text,
    primary_port text, remote_node integer, remote_port text)
RETURNS bool AS 'MODULE_PATHNAME', 'pgpool_recovery' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pgpool_recovery(script_name text, remote_host text, remote_data_directory text,
    primary_port text, remote_node integer, remote_port text, primary_host text)
RETURNS bool AS 'MODULE_PATHNAME', 'pgpool_recovery' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pgpool_remote_start(remote_host text, remote_data_directory text)
RETURNS bool AS 'MODULE_PATHNAME', 'pgpool_remote_start' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pgpool_pgctl(action text, stop_mode text)
RETURNS bool AS 'MODULE_PATHNAME', 'pgpool_pgctl' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pgpool_switch_xlog(archive_dir text)
RETURNS text AS 'MODULE_PATHNAME', 'pgpool_switch_xlog' LANGUAGE C VOLATILE STRICT;

REVOKE ALL ON FUNCTION pgpool_recovery(text, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pgpool_recovery(text, text, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pgpool_recovery(text, text, text, text, integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION pgpool_recovery(text, text, text, text, integer, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pgpool_recovery(text, text, text, text, integer, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pgpool_remote_start(text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pgpool_pgctl(text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pgpool_switch_xlog(text) FROM PUBLIC;
