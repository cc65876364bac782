-- Needs a pgpool in front of this server as its only node 0, with a client of user postgres on it, whose
-- PCP server is told by these variables of the environment.
\getenv host PGPOOL_PCP_HOST
\getenv port PGPOOL_PCP_PORT
\getenv user PGPOOL_PCP_USER
\getenv password PGPOOL_PCP_PASSWORD
CREATE EXTENSION pgpool_adm;
SELECT p.proname, pronargs FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid WHERE e.extname = 'pgpool_adm' ORDER BY 1, 2;

SELECT pcp_node_count(:'host', :port, :'user', :'password');
SELECT port = current_setting('port')::int AS port_fits, status, pg_status, weight, role, pg_role,
    replication_delay, replication_state, last_status_change > '2020-01-01' AS has_time
    FROM pcp_node_info(0, :'host', :port, :'user', :'password');
SELECT node_id, status, role, total_count >= success_count AND success_count > 0 AS counts,
    last_health_check > '2020-01-01' AS has_time, last_failed_health_check
    FROM pcp_health_check_stats(0, :'host', :port, :'user', :'password');
SELECT count(*) > 100 AS has_settings, count(DISTINCT item) = count(*) AS distinct_items
    FROM pcp_pool_status(:'host', :port, :'user', :'password');
SELECT value, description <> '' AS described FROM pcp_pool_status(:'host', :port, :'user', :'password')
    WHERE item = 'backend_clustering_mode';
SELECT database, username, connected, backend_pid <> '0' AS has_pid
    FROM pcp_proc_info(:'host', :port, :'user', :'password') WHERE database <> '';

-- Functions that are given a foreign server.
CREATE FOREIGN DATA WRAPPER pgpool_fdw;
CREATE SERVER pool FOREIGN DATA WRAPPER pgpool_fdw OPTIONS (host :'host', port :'port');
SELECT pcp_node_count('pool');
CREATE USER MAPPING FOR CURRENT_USER SERVER pool OPTIONS (user :'user', password :'password');
SELECT pcp_node_count('pool');
SELECT status, role FROM pcp_node_info(0, 'pool');
SELECT node_id, status FROM pcp_health_check_stats(0, 'pool');
SELECT count(*) > 100 AS has_settings FROM pcp_pool_status('pool');
SELECT count(*) FROM pcp_proc_info('pool') WHERE username = 'postgres';
SELECT pcp_node_count('nowhere');

-- Orders.
SELECT pcp_detach_node(0, false, 'pool');
SELECT status FROM pcp_node_info(0, 'pool');
SELECT pcp_attach_node(0, 'pool');
SELECT status FROM pcp_node_info(0, 'pool');
-- It waits for the client that never leaves, and can be cancelled.
SET statement_timeout = '1s';
SELECT pcp_detach_node(0, true, :'host', :port, :'user', :'password');
RESET statement_timeout;
SELECT status FROM pcp_node_info(0, 'pool');
SELECT pcp_attach_node(0, :'host', :port, :'user', :'password');

-- What goes wrong is an error.
SELECT pcp_node_info(99, 'pool');
SELECT pcp_attach_node(99, 'pool');
SELECT pcp_node_count(:'host', 0, :'user', :'password');
SELECT pcp_node_count(:'host', :port, :'user', 'wrong');
DO $$ BEGIN PERFORM pcp_node_count('127.0.0.1', 1, 'a', 'b');
EXCEPTION WHEN sqlclient_unable_to_establish_sqlconnection THEN RAISE NOTICE '%', SQLERRM; END $$;
DO $$ BEGIN PERFORM pcp_node_count('/nonexistent', 9898, 'a', 'b');
EXCEPTION WHEN sqlclient_unable_to_establish_sqlconnection THEN RAISE NOTICE '%', SQLERRM; END $$;
SELECT pcp_node_count(NULL) IS NULL AS strict;

CREATE ROLE adm_nobody;
SET ROLE adm_nobody;
SELECT pcp_node_count('pool');
RESET ROLE;
-- Who may call them needs the right to use the server, too, where all have a mapping.
GRANT EXECUTE ON FUNCTION pcp_node_count(text) TO adm_nobody;
CREATE USER MAPPING FOR PUBLIC SERVER pool OPTIONS (user :'user', password :'password');
SET ROLE adm_nobody;
SELECT pcp_node_count('pool');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER pool TO adm_nobody;
SET ROLE adm_nobody;
SELECT pcp_node_count('pool');
RESET ROLE;
REVOKE USAGE ON FOREIGN SERVER pool FROM adm_nobody;
REVOKE EXECUTE ON FUNCTION pcp_node_count(text) FROM adm_nobody;
DROP ROLE adm_nobody;
DROP SERVER pool CASCADE;
DROP FOREIGN DATA WRAPPER pgpool_fdw;
DROP EXTENSION pgpool_adm;
