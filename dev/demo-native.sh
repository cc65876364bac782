# SPDX-License-Identifier: PostgreSQL
# demo-native.sh: what dev/demo --native does: two servers that know nothing of each other, both written to by
# pgpool; one is killed and rebuilt while clients write, and what they hold is compared. Read by dev/demo, whose
# variables and functions it uses.
# shellcheck shell=bash disable=SC2154  # the variables are dev/demo's

nv_writers=()

# Who logs in by SCRAM needs the same secret on both servers: pgpool has no password, only what a client proves.
nv_share_secrets() {
    local role secret
    for role in "$super" "$checker" "$guest"; do
        secret=$(sql "${node_port[0]}" "$super" postgres "SELECT rolpassword FROM pg_authid WHERE rolname = '$role'")
        sql "${node_port[1]}" "$super" postgres "ALTER ROLE \"$role\" PASSWORD '$secret'" >/dev/null
    done
}

nv_pool() { sql "$port" "$guest" "$guest" "$1"; }
nv_nodes() { nv_pool 'SHOW POOL_NODES' | cut -d'|' -f1-4,7 | sed 's/^/      /'; }
nv_status_is() { [[ $(nv_pool 'SHOW POOL_NODES' | sed -n "$(($1 + 1))p" | cut -d'|' -f4) = "$2" ]]; }
nv_rows() { sql "${node_port[$1]}" "$super" "$guest" 'SELECT count(*) FROM demo_writes'; }
nv_digest() { sql "${node_port[$1]}" "$super" "$guest" "SELECT md5(string_agg(w::text, ' ' ORDER BY w.id)) FROM demo_writes w"; }

# A client that writes again and again; a line in its file for each write that was acknowledged.
nv_write() { # nv_write NUMBER
    while [[ -e $dir/state/writes ]]; do
        ! nv_pool "INSERT INTO demo_writes (writer) VALUES ($1)" >/dev/null 2>&1 || echo >>"$dir/state/acked$1"
    done
}

nv_stop_writers() {
    rm -f "$dir/state/writes"
    ((${#nv_writers[@]} == 0)) || wait "${nv_writers[@]}" 2>/dev/null || true
    nv_writers=()
}

nv_acked() { cat "$dir"/state/acked* 2>/dev/null | wc -l; }
nv_has_acked() { (($(nv_acked) >= $1)); }

nv_recover() {
    local tool=("$(dirname "$bin")/pcp" recovery_node)
    PCPPASSFILE=$cluster/etc/pcppass "${tool[@]}" -h 127.0.0.1 -p "$pcp_port" -U "$super" -w -v 1 2>&1 </dev/null |
        sed -n 's/^NOTICE: */      /p'
    return "${PIPESTATUS[0]}"
}

# Shows it; fails when the servers differ in the end.
nv_show() {
    local n
    step "the servers:"
    nv_nodes
    nv_pool 'CREATE TABLE IF NOT EXISTS demo_writes (id serial PRIMARY KEY, writer int, at timestamptz DEFAULT now())' >/dev/null
    : >"$dir/state/writes"
    for n in 1 2 3; do
        nv_write $n 9>&- &
        nv_writers+=($!)
    done
    wait_for 30 "the first writes" nv_has_acked 20
    step "three clients write; server 1 is killed"
    end node1 KILL
    wait_for 60 "pgpool to notice" nv_status_is 1 down
    nv_nodes
    n=$(($(nv_acked) + 20))
    wait_for 30 "writes without it" nv_has_acked "$n"
    step "they write on without it; it is rebuilt: pcp_recovery_node 1"
    nv_recover || die "pcp_recovery_node failed: see $cluster/log/pgpool.log"
    note node1 "$(run head -n 1 "$cluster/data1/postmaster.pid")"
    nv_nodes
    n=$(($(nv_acked) + 20))
    wait_for 30 "writes to both" nv_has_acked "$n"
    nv_stop_writers
    step "$(nv_acked) writes were acknowledged; server 0 holds $(nv_rows 0) rows, server 1 $(nv_rows 1)"
    [[ $(nv_digest 0) = "$(nv_digest 1)" ]] || die "the servers differ"
    (($(nv_rows 1) >= $(nv_acked))) || die "a write is lost"
    step "both hold the same"
}

nv_print_next() {
    local where=${DEMO_DIR:+DEMO_DIR=$dir }
    cat <<TEXT

pgpool listens on port $port in front of two servers (ports ${node_port[0]}, ${node_port[1]}), and writes to both.
Type next:

    export PGPASSWORD=demo
    psql -h localhost -p $port -U $guest                          # write through pgpool ...
    psql -h localhost -p ${node_port[1]} -U $guest                # ... and look at one server
    psql -h localhost -p $port -U $guest -c 'SHOW POOL_NODES'     # the servers
    psql -h localhost -p $port -U $guest -c 'SHOW POOL_RECOVERY'  # how server 1 was rebuilt

    less $cluster/etc/pgpool.conf              # pgpool's configuration
    tail -f $cluster/log/pgpool.log            # its log
    ${where}dev/demo status                                             # what is running
    ${where}dev/demo stop                                               # end it all, remove $dir
TEXT
}
