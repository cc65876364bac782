#!/bin/bash
# SPDX-License-Identifier: PostgreSQL
# failover.sh: promotes the new primary when the old one is lost. Only for those who want it by a
# script: with auto_promote = on pgpool does it itself, by SQL.
#   failover_command = '/etc/pgpool/failover.sh %d %h %p %D %m %H %M %P %r %R %N %S'
# pgpool obeys the exit status.
set -euo pipefail

failed=$1 new_host=$6 old_primary=$8 new_dir=${10}
ssh=${PGPOOL_SSH:-ssh -o BatchMode=yes -o ConnectTimeout=10}
bin=${PGBIN:-$(pg_config --bindir)}

say() { printf 'failover.sh: %s\n' "$*"; }

if [[ $new_host = '""' || -z $new_host ]]; then
    say "no server is left to be promoted"
    exit 0
fi
if [[ $failed != "$old_primary" ]]; then
    say "node $failed was a standby: nothing to do"
    exit 0
fi
promote="exec $(printf '%q' "$bin/pg_ctl") -D $(printf '%q' "$new_dir") -w -t 60 promote"
say "promoting $new_dir on $new_host"
case $new_host in
/* | localhost | 127.0.0.1 | ::1 | "$(hostname)" | "$(hostname -f 2>/dev/null)") bash -c "$promote" ;;
*) $ssh "postgres@$new_host" "$promote" ;;
esac
