-- Scripts are made in the data folder of the server under test. Paths are never printed.
CREATE EXTENSION pgpool_recovery;
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid WHERE e.extname = 'pgpool_recovery' ORDER BY 1::text;

CREATE FUNCTION make_script(name text, body text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('COPY (SELECT unnest(string_to_array(%L, E''\n''))) TO PROGRAM %L', E'#!/bin/sh\n' || body,
        format('f="%s/%s"; cat > "$f"; chmod 755 "$f"', current_setting('data_directory'), name));
END $$;
-- What a script wrote down, a line per argument.
CREATE FUNCTION script_said() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT replace(line, current_setting('data_directory'), 'PGDATA')
    FROM regexp_split_to_table(rtrim(pg_read_file('rec_out'), E'\n'), E'\n') line $$;

SELECT make_script('rec_stage1', E'cd "$1" || exit 9\nfor a in "$@"; do echo "<$a>"; done >rec_out');
SELECT make_script('pgpool_remote_start', E'cd "$2" || exit 9\nfor a in "$@"; do echo "<$a>"; done >rec_out');
SELECT make_script('rec_fails', E'echo the disk is full >&2\nexit 3');
SELECT make_script('rec_hangs', E'cd "$1" || exit 9\necho $$ >rec_out\nexec tail -f /dev/null');
SELECT make_script('rec_killed', E'kill -9 $$');

-- Every overload, and arguments that a shell would take apart.
SELECT pgpool_recovery('rec_stage1', 'host1', '/data dir');
SELECT replace(script_said(), current_setting('port'), 'PORT');
SELECT pgpool_recovery('rec_stage1', 'h; touch pwned', '$(touch pwned)', '5433');
SELECT script_said();
SELECT pgpool_recovery('rec_stage1', 'host1', '/data', '5433', 1);
SELECT script_said();
SELECT pgpool_recovery('rec_stage1', 'host1', '/data', '5433', 1, '5434');
SELECT script_said();
SELECT pgpool_recovery('rec_stage1', 'host1', '/data', '5433', 1, '5434', 'host"0');
SELECT script_said();
SELECT pg_stat_file('pwned', true) IS NULL AS nothing_was_run;

-- Failures are errors, and show what the script said.
DO $$ DECLARE said text; BEGIN PERFORM pgpool_recovery('rec_fails', 'host1', '/data');
EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL; RAISE NOTICE '% % (%)', SQLSTATE,
    replace(SQLERRM, current_setting('data_directory'), 'PGDATA'), said; END $$;
SELECT pgpool_recovery('../bin/true', 'host1', '/data');
SELECT pgpool_recovery('', 'host1', '/data');
DO $$ BEGIN PERFORM pgpool_recovery('rec_missing', 'host1', '/data');
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE,
    replace(SQLERRM, current_setting('data_directory'), 'PGDATA'); END $$;
DO $$ BEGIN PERFORM pgpool_recovery('rec_killed', 'host1', '/data');
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLSTATE,
    replace(SQLERRM, current_setting('data_directory'), 'PGDATA'); END $$;

-- A cancelled query ends the script.
SET statement_timeout = '1s';
SELECT pgpool_recovery('rec_hangs', 'host1', '/data');
RESET statement_timeout;
SELECT make_script('rec_lives', E'cd "$1" || exit 9\nif kill -0 "$(cat rec_out)" 2>/dev/null; then echo lives; else echo ended; fi >rec_said');
SELECT pgpool_recovery('rec_lives', 'host1', '/data');
SELECT trim(pg_read_file('rec_said'), E'\n') AS script;

SELECT current_setting('data_directory') AS datadir \gset
SELECT pgpool_remote_start('host1', :'datadir');
SELECT script_said();

SELECT pgpool_pgctl('reload', '');
SELECT pgpool_pgctl('promote', 'fast');
SELECT pgpool_pgctl('stop', 'gently');

-- Who may.
CREATE ROLE rec_nobody;
SET ROLE rec_nobody;
SELECT pgpool_recovery('rec_stage1', 'host1', '/data');
SELECT pgpool_remote_start('host1', '/data');
SELECT pgpool_pgctl('reload', '');
SELECT pgpool_switch_xlog('/tmp');
SET pgpool.pg_ctl = '/bin/true';
RESET ROLE;
GRANT EXECUTE ON FUNCTION pgpool_recovery(text, text, text) TO rec_nobody;
SET ROLE rec_nobody;
SELECT pgpool_recovery('rec_stage1', 'host1', '/data');
RESET ROLE;

DROP OWNED BY rec_nobody;
DROP ROLE rec_nobody;
DROP FUNCTION make_script(text, text), script_said();
DROP EXTENSION pgpool_recovery;
