#!/bin/bash
# SPDX-License-Identifier: PostgreSQL
# failover.sh: promotes the new primary when the old one is lost. Only for those who want it by a
# script, to do more than this one does: with auto_promote = on pgpool does it itself, by SQL.
#   failover_command = '/etc/pgpool/failover.sh %d %h %p %D %m %H %M %P %r %R %N %S'
# pgpool obeys the exit status.
set -euo pipefail

failed=$1 new_host=$6 old_primary=$8 new_port=$9
bin=${PGBIN:-$(pg_config --bindir)}
user=${PGPOOL_SUPERUSER:-postgres} # or a role that may execute pg_promote(); its password is in ~/.pgpass

say() { printf 'failover.sh: %s\n' "$*"; }

if [[ $new_host = '""' || -z $new_host ]]; then
    say "no server is left to be promoted"
    exit 0
fi
if [[ $failed != "$old_primary" ]]; then
    say "node $failed was a standby: nothing to do"
    exit 0
fi
say "promoting the server on $new_host, port $new_port"
[[ $("$bin/psql" -XAtqw -v ON_ERROR_STOP=1 -h "$new_host" -p "$new_port" -U "$user" -d postgres \
    -c 'SELECT pg_promote(true, 60)') = t ]]
