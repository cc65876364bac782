#!/bin/bash
# SPDX-License-Identifier: PostgreSQL
# follow_primary.sh: lets a standby stream from the new primary; one that cannot is rebuilt. Only for
# those who want it by a script: with auto_promote = on pgpool does it itself, by SQL.
#   follow_primary_command = '/etc/pgpool/follow_primary.sh %d %h %p %D %m %H %M %P %r %R'
# PCP: user PGPOOL_PCP_USER (pgpool), port PGPOOL_PCP_PORT (9898), password in ~/.pcppass.
set -euo pipefail

node=$1 host=$2 port=$3 new_host=$6 new_port=$9
bin=${PGBIN:-$(pg_config --bindir)}
user=${PGPOOL_SUPERUSER:-postgres}
repl_user=${PGPOOL_REPL_USER:-replicator}
pcp=(-h "${PGPOOL_PCP_HOST:-localhost}" -p "${PGPOOL_PCP_PORT:-9898}" -U "${PGPOOL_PCP_USER:-pgpool}" -w)

say() { printf 'follow_primary.sh: %s\n' "$*"; }
at_node() { "$bin/psql" -XAtqw -v ON_ERROR_STOP=1 -h "$host" -p "$port" -U "$user" -d postgres -c "$1"; }
at_new() { "$bin/psql" -XAtqw -v ON_ERROR_STOP=1 -h "$new_host" -p "$new_port" -U "$user" -d postgres -c "$1"; }

[[ $new_host != /* ]] || new_host=localhost
[[ $node =~ ^[0-9]+$ ]] || { say "the node is not a number" >&2; exit 1; }
at_new "SELECT pg_create_physical_replication_slot('pgpool_node$node')
    WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'pgpool_node$node')" >/dev/null

if [[ $(at_node 'SELECT pg_is_in_recovery()' 2>/dev/null || true) = t ]]; then
    at_node "ALTER SYSTEM SET primary_conninfo =
        'host=$new_host port=$new_port user=$repl_user application_name=server$node'"
    at_node "ALTER SYSTEM SET primary_slot_name = 'pgpool_node$node'"
    at_node 'SELECT pg_reload_conf()' >/dev/null
    # One that has received more of the old primary streams, too, for moments, but never on the new timeline.
    timeline=$((16#$(at_new 'SELECT substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)')))
    for ((i = 0; i < 150; i++)); do
        [[ $(at_node "SELECT count(*) FROM pg_stat_wal_receiver
            WHERE status = 'streaming' AND received_tli = $timeline") != 1 ]] || break
        read -r -t 0.1 <> <(:) || true # a pause of a loop with an end
    done
    if ((i < 150)); then
        say "node $node streams from $new_host:$new_port"
        pcp_attach_node "${pcp[@]}" -n "$node" || true # it may have returned by itself
        exit 0
    fi
    say "node $node does not stream from the new primary: it is rebuilt"
    pcp_detach_node "${pcp[@]}" -n "$node" || true
fi
exec pcp_recovery_node "${pcp[@]}" -n "$node"
