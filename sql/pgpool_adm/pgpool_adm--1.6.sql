/* SPDX-License-Identifier: PostgreSQL
 * pgpool_adm--1.6.sql: what CREATE EXTENSION pgpool_adm makes. */
\echo Use "CREATE EXTENSION pgpool_adm" to load this file. \quit

-- Each function has two forms: one is told host, port, user and password of pgpool's PCP server, the
-- other the name of a foreign server with the options host and port, whose user mapping has the
-- options user and password.

CREATE FUNCTION pcp_node_info(node_id integer, pcp_host text, pcp_port integer, username text, password text,
    OUT host text,
    OUT port integer,
    OUT status text,
    OUT pg_status text,
    OUT weight float4,
    OUT role text,
    OUT pg_role text,
    OUT replication_delay bigint,
    OUT replication_state text,
    OUT replication_sync_state text,
    OUT last_status_change timestamp)
RETURNS record AS 'MODULE_PATHNAME', 'adm_node_info' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_node_info(node_id integer, pcp_server text,
    OUT host text,
    OUT port integer,
    OUT status text,
    OUT pg_status text,
    OUT weight float4,
    OUT role text,
    OUT pg_role text,
    OUT replication_delay bigint,
    OUT replication_state text,
    OUT replication_sync_state text,
    OUT last_status_change timestamp)
RETURNS record AS 'MODULE_PATHNAME', 'adm_node_info' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_health_check_stats(pcp_node_id integer, pcp_host text, pcp_port integer, username text, password text,
    OUT node_id integer,
    OUT host text,
    OUT port integer,
    OUT status text,
    OUT role text,
    OUT last_status_change timestamp,
    OUT total_count bigint,
    OUT success_count bigint,
    OUT fail_count bigint,
    OUT skip_count bigint,
    OUT retry_count bigint,
    OUT average_retry_count float4,
    OUT max_retry_count bigint,
    OUT max_health_check_duration bigint,
    OUT minimum_health_check_duration bigint,
    OUT average_health_check_duration float4,
    OUT last_health_check timestamp,
    OUT last_successful_health_check timestamp,
    OUT last_skip_health_check timestamp,
    OUT last_failed_health_check timestamp)
RETURNS record AS 'MODULE_PATHNAME', 'adm_health_check_stats' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_health_check_stats(pcp_node_id integer, pcp_server text,
    OUT node_id integer,
    OUT host text,
    OUT port integer,
    OUT status text,
    OUT role text,
    OUT last_status_change timestamp,
    OUT total_count bigint,
    OUT success_count bigint,
    OUT fail_count bigint,
    OUT skip_count bigint,
    OUT retry_count bigint,
    OUT average_retry_count float4,
    OUT max_retry_count bigint,
    OUT max_health_check_duration bigint,
    OUT minimum_health_check_duration bigint,
    OUT average_health_check_duration float4,
    OUT last_health_check timestamp,
    OUT last_successful_health_check timestamp,
    OUT last_skip_health_check timestamp,
    OUT last_failed_health_check timestamp)
RETURNS record AS 'MODULE_PATHNAME', 'adm_health_check_stats' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_pool_status(host text, port integer, username text, password text,
    OUT item text,
    OUT value text,
    OUT description text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'adm_pool_status' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_pool_status(pcp_server text,
    OUT item text,
    OUT value text,
    OUT description text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'adm_pool_status' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_node_count(host text, port integer, username text, password text)
RETURNS integer AS 'MODULE_PATHNAME', 'adm_node_count' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_node_count(pcp_server text)
RETURNS integer AS 'MODULE_PATHNAME', 'adm_node_count' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_attach_node(node_id integer, host text, port integer, username text, password text)
RETURNS bool AS 'MODULE_PATHNAME', 'adm_attach_node' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_attach_node(node_id integer, pcp_server text)
RETURNS bool AS 'MODULE_PATHNAME', 'adm_attach_node' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_detach_node(node_id integer, gracefully bool, host text, port integer, username text, password text)
RETURNS bool AS 'MODULE_PATHNAME', 'adm_detach_node' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_detach_node(node_id integer, gracefully bool, pcp_server text)
RETURNS bool AS 'MODULE_PATHNAME', 'adm_detach_node' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_proc_info(host text, port integer, pcp_username text, password text,
    OUT database text,
    OUT username text,
    OUT start_time text,
    OUT client_connection_count text,
    OUT major text,
    OUT minor text,
    OUT backend_connection_time text,
    OUT client_connection_time text,
    OUT client_idle_duration text,
    OUT client_disconnection_time text,
    OUT pool_counter text,
    OUT backend_pid text,
    OUT connected text,
    OUT pid text,
    OUT backend_id text,
    OUT status text,
    OUT load_balance_node text,
    OUT client_host text,
    OUT client_port text,
    OUT statement text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'adm_proc_info' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION pcp_proc_info(pcp_server text,
    OUT database text,
    OUT username text,
    OUT start_time text,
    OUT client_connection_count text,
    OUT major text,
    OUT minor text,
    OUT backend_connection_time text,
    OUT client_connection_time text,
    OUT client_idle_duration text,
    OUT client_disconnection_time text,
    OUT pool_counter text,
    OUT backend_pid text,
    OUT connected text,
    OUT pid text,
    OUT backend_id text,
    OUT status text,
    OUT load_balance_node text,
    OUT client_host text,
    OUT client_port text,
    OUT statement text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'adm_proc_info' LANGUAGE C VOLATILE STRICT;

-- They reach other hosts with the server's own address: superusers, and whom they GRANT it to.
REVOKE ALL ON FUNCTION pcp_node_info(integer, text, integer, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_node_info(integer, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_health_check_stats(integer, text, integer, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_health_check_stats(integer, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_pool_status(text, integer, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_pool_status(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_node_count(text, integer, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_node_count(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_attach_node(integer, text, integer, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_attach_node(integer, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_detach_node(integer, bool, text, integer, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_detach_node(integer, bool, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_proc_info(text, integer, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pcp_proc_info(text) FROM PUBLIC;
