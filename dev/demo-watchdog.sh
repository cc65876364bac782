# SPDX-License-Identifier: PostgreSQL
# demo-watchdog.sh: what dev/demo --watchdog does besides: three pgpools as one in front of the three
# servers, and an address. Read by dev/demo, whose variables and functions it uses.
# Each pgpool is a machine of its own, as far as the kernel goes: a network namespace with one wire to a
# switch, which is another namespace; a wire from there to this machine makes the address reachable from
# here. Where that is not permitted the pgpools share the loopback address, and there is no address to take.
# shellcheck shell=bash disable=SC2154  # the variables are dev/demo's

pools=(0 1 2)
wd_mode=         # hosts, loopback; empty: no watchdog
wd_why=          # why there are no hosts
wd_net=          # first three numbers of the demo's network
wd_vip=          # the address that the leader holds
wd_switch=       # namespace of the switch; the hosts' have -0, -1, -2 behind it
wd_port=()       # clients' port of each pgpool
wd_pcp=()
wd_talk=()       # port on which the pgpools talk to each other
wd_host=()       # where each pgpool is

wd_ns() { printf '%s' "/run/netns/$wd_switch${1:+-$1}"; }
wd_folder() { printf '%s' "$dir/run/pgpool$1"; }

# What keeps us from making hosts; nothing when they can be made.
wd_find_obstacle() {
    local program
    [[ ${DEMO_HOSTS:-} != no ]] || { echo "DEMO_HOSTS is no"; return; }
    [[ $(id -u) -eq 0 ]] || { echo "network namespaces need root"; return; }
    for program in ip nsenter setpriv; do
        command -v "$program" >/dev/null || { echo "network namespaces need the program $program"; return; }
    done
    ip netns add "$wd_switch-try" 2>/dev/null || { echo "network namespaces are not permitted here"; return; }
    ip -n "$wd_switch-try" link add br0 type bridge 2>/dev/null || echo "a bridge is not permitted here"
    ip netns del "$wd_switch-try"
}

# How the pgpools are reached; needs dev/demo's ports.
wd_choose() {
    local i
    wd_switch=pgd$port
    wd_net=198.18.$((port % 250))
    wd_why=$(wd_find_obstacle)
    wd_mode=loopback
    [[ -n $wd_why ]] || wd_mode=hosts
    if [[ $wd_mode = hosts ]] && ip route get "$wd_net.254" 2>/dev/null | grep -q " dev ${wd_switch}up\\| dev lo "; then
        die "the network $wd_net.0/24 is in use on this machine; choose another port: DEMO_PORT=9990 dev/demo --watchdog"
    fi
    for i in "${pools[@]}"; do
        wd_host[i]=$wd_net.1$i
        wd_port[i]=$port
        wd_pcp[i]=$pcp_port
        wd_talk[i]=9000
        [[ $wd_mode = loopback ]] || continue
        wd_host[i]=127.0.0.1
        find_port $((node_port[0] + 20 + 10 * i))
        [[ $i = 0 ]] || wd_port[i]=$free_port
        find_port $((free_port + 1))
        [[ $i = 0 ]] || wd_pcp[i]=$free_port
        find_port $((free_port + 1))
        wd_talk[i]=$free_port
    done
    wd_vip=
    [[ $wd_mode = loopback ]] || wd_vip=$wd_net.100
    {
        printf 'wd_mode=%s\nwd_why=%q\nwd_switch=%s\nwd_net=%s\nwd_vip=%s\n' "$wd_mode" "$wd_why" "$wd_switch" "$wd_net" "$wd_vip"
        printf 'wd_host=(%s)\nwd_port=(%s)\nwd_pcp=(%s)\n' "${wd_host[*]}" "${wd_port[*]}" "${wd_pcp[*]}"
    } >>"$dir/state/ports"
}

wd_make_hosts() {
    local i
    [[ $wd_mode = hosts ]] || return 0
    ip netns add "$wd_switch"
    ip -n "$wd_switch" link add br0 type bridge
    ip -n "$wd_switch" link set br0 up
    ip link add "${wd_switch}up" type veth peer name outside netns "$wd_switch"
    ip -n "$wd_switch" link set outside master br0 up
    ip addr add "$wd_net.254/24" dev "${wd_switch}up"
    ip link set "${wd_switch}up" up
    for i in "${pools[@]}"; do
        ip netns add "$wd_switch-$i"
        ip -n "$wd_switch" link add "port$i" type veth peer name eth0 netns "$wd_switch-$i"
        ip -n "$wd_switch" link set "port$i" master br0 up
        ip -n "$wd_switch-$i" addr add "${wd_host[i]}/24" dev eth0
        ip -n "$wd_switch-$i" link set lo up
        ip -n "$wd_switch-$i" link set eth0 up
    done
}

# The wires end with the namespaces that hold their other ends.
wd_remove_hosts() {
    local i
    [[ $wd_mode = hosts ]] || return 0
    for i in "${pools[@]}"; do
        ip netns del "$wd_switch-$i" 2>/dev/null || true
    done
    ip netns del "$wd_switch" 2>/dev/null || true
}

# Servers have to let the pgpools of other hosts in, and each other by the addresses the pgpools use.
wd_write_server_files() {
    (umask 077
     [[ $wd_mode = loopback ]] || printf "listen_addresses = '127.0.0.1,%s.254'\n" "$wd_net"
     :) >"$dir/run/servers.extra"
    (umask 077
     [[ $wd_mode = loopback ]] || printf 'host all all %s.0/24 scram-sha-256\nhost replication all %s.0/24 scram-sha-256\n' \
         "$wd_net" "$wd_net"
     :) >"$dir/run/hba.extra"
    [[ $(id -u) -ne 0 ]] || chown postgres: "$dir/run/servers.extra" "$dir/run/hba.extra"
}

wd_settings() { # wd_settings PGPOOL
    local i to
    to=$(wd_folder "$1")
    cat <<CONF

# What makes it one of three: see the manual, watchdog.md.
listen_addresses = '*'
port = ${wd_port[$1]}
unix_socket_directories = '$to'
pcp_listen_addresses = 'localhost'
pcp_port = ${wd_pcp[$1]}
pcp_socket_dir = '$to'
wd_ipc_socket_dir = '$to'
pid_file_name = '$to/pgpool.pid'
work_dir = '$to'
health_check_period = 1
health_check_max_retries = 1
sr_check_period = 1
use_watchdog = on
wd_authkey = '$check_pw'
CONF
    [[ -z $wd_vip ]] || printf "delegate_ip = '%s'\n" "$wd_vip"
    for i in "${pools[@]}"; do
        printf "hostname%d = '%s'\nwd_port%d = %d\npgpool_port%d = %d\n" \
            "$i" "${wd_host[i]}" "$i" "${wd_talk[i]}" "$i" "${wd_port[i]}"
        [[ $wd_mode = loopback ]] || printf "backend_hostname%d = '%s.254'\n" "$i" "$wd_net"
    done
}

wd_make_pgpool() { # wd_make_pgpool PGPOOL
    local to
    to=$(wd_folder "$1")
    (umask 077
     mkdir "$to"
     cp "$cluster"/etc/* "$to"
     # Of a setting that is there twice, the last counts; here each is there once.
     grep -vE '^(listen_addresses|port|unix_socket_directories|pcp_[a-z_]*|pid_file_name|work_dir|health_check_period|sr_check_period) ' \
         "$cluster/etc/pgpool.conf" | { [[ $wd_mode = loopback ]] && cat || grep -v '^backend_hostname'; } >"$to/pgpool.conf"
     wd_settings "$1" >>"$to/pgpool.conf"
     printf '%d\n' "$1" >"$to/pgpool_node_id"
     cat >"$to/start" <<TEXT
#!/bin/bash
# Starts pgpool $1 of dev/demo --watchdog again.
exec $(wd_enter "$1")setsid "$bin" -n -f "$to/pgpool.conf" -F "$to/pcp.conf" </dev/null >>"$to/log" 2>&1 9>&- &
TEXT
     chmod 700 "$to/start")
    [[ $(id -u) -ne 0 ]] || chown -R postgres: "$to"
}

# What goes in front of a command that is to run on the host of a pgpool, with the rights to hold an address.
wd_enter() {
    if [[ $wd_mode = hosts ]]; then
        printf 'nsenter --net=%s setpriv --reuid=postgres --regid=postgres --init-groups %s %s -- ' "$(wd_ns "$1")" \
            --inh-caps=+net_admin,+net_raw --ambient-caps=+net_admin,+net_raw
    elif [[ $(id -u) -eq 0 ]]; then
        printf 'setpriv --reuid=postgres --regid=postgres --init-groups -- '
    fi
}

wd_has_pid() { [[ -s $(wd_folder "$1")/pgpool.pid ]]; }

wd_start_pgpool() { # wd_start_pgpool PGPOOL
    "$(wd_folder "$1")/start"
    wait_for 60 "pgpool $1 to start" wd_has_pid "$1"
    note "pgpool$1" "$(head -n 1 "$(wd_folder "$1")/pgpool.pid" | tr -d '\0')"
}

wd_ask() { host=${wd_host[$1]} sql "${wd_port[$1]}" "$guest" "$guest" "$2"; }
wd_leader() { # prints who leads, as pgpool $1 knows it
    wd_ask "$1" 'SHOW POOL_WATCHDOG' | awk -F'|' '$6 == "LEADER" { print $1 }'
}
wd_agree() {
    local i first
    first=$(wd_leader 0) && [[ -n $first ]] || return 1
    for i in "${pools[@]}"; do
        [[ $(wd_leader "$i") = "$first" ]] || return 1
    done
}
wd_vip_answers() { [[ $(host=$wd_vip sql "$port" "$guest" "$guest" 'SELECT 1') = 1 ]]; }

wd_start_all() {
    local i
    end pgpool INT QUIT KILL # pgpool_setup's; its settings are the base of the three
    for i in "${pools[@]}"; do
        wd_make_pgpool "$i"
        wd_start_pgpool "$i"
    done
    wait_for 60 "the pgpools to agree on a leader" wd_agree
    step "pgpool $(wd_leader 0) leads"
    [[ -n $wd_vip ]] || return 0
    wait_for 60 "the address $wd_vip to answer" wd_vip_answers
    step "SELECT 1 through the address $wd_vip works"
}

wd_stop_all() {
    local i
    [[ -n $wd_mode ]] || return 0
    for i in "${pools[@]}"; do
        find_unwritten "pgpool$i" "$(wd_folder "$i")/pgpool.pid" "$(wd_folder "$i")/pgpool.conf"
        end "pgpool$i" INT QUIT KILL
    done
    wd_remove_hosts
}

wd_all_alive() {
    local i
    for i in "${pools[@]}"; do
        alive "pgpool$i" || return 1
    done
}

wd_print_status() {
    local i ok=0 what
    for i in "${pools[@]}"; do
        what="not running"
        if alive "pgpool$i"; then
            what=$(wd_ask "$i" 'SHOW POOL_WATCHDOG' | awk -F'|' -v me="$i" '$1 == me { print $6 }') || what=
            what=${what:-does not answer}
        else
            ok=1
        fi
        [[ $what != "does not answer" ]] || ok=1
        printf '%-7s port %-6s pid %-8s %s\n' "pgpool$i" "${wd_port[i]}" "$(alive "pgpool$i" && pid_of "pgpool$i" || echo -)" "$what"
    done
    return $ok
}

wd_print_next() {
    local where=${DEMO_DIR:+DEMO_DIR=$dir } leader at entry i
    leader=$(wd_leader 0)
    at=${wd_vip:-${wd_host[0]}}
    say
    if [[ $wd_mode = hosts ]]; then
        say "Three pgpools, each on a host of its own (${wd_host[*]}, port $port), in front of a primary"
        say "(port ${node_port[0]}) and two standbys (ports ${node_port[1]}, ${node_port[2]}). Clients connect to $wd_vip, which the leader holds: pgpool $leader."
    else
        say "Three pgpools (ports ${wd_port[*]}) in front of a primary (port ${node_port[0]}) and two standbys (ports ${node_port[1]}, ${node_port[2]})."
        say "They share the loopback address, and there is no address to take: $wd_why."
    fi
    cat <<TEXT
Type next:

    export PGPASSWORD=demo
    psql -h $at -p $port -U $guest -c 'SHOW POOL_WATCHDOG'          # the pgpools: who leads
    psql -h $at -p $port -U $guest -c 'SHOW POOL_WATCHDOG_EVENTS'   # what they agreed on
    while sleep 0.3; do psql -h $at -p $port -U $guest -XAtc 'SELECT now(), 1'; done   # a client, in another window

What to kill, while that client goes on:

TEXT
    for i in "${pools[@]}"; do
        entry="kill -9 -- -$(pid_of "pgpool$i")"
        printf '    %-38s # pgpool %d%s: as if its machine had died\n' "$entry" "$i" \
            "$([[ $i != "$leader" ]] || echo ', who leads')"
    done
    cat <<TEXT
    kill -STOP -- -$(pid_of "pgpool$leader")               # or let it hang; then kill -CONT
    kill -QUIT $(pid_of node0)                       # the primary: one of the standbys is promoted, once
    $(wd_folder 0)/start   # pgpool 0 again, when it was killed
    ${where}dev/demo status                                            # what is running
    ${where}dev/demo stop                                              # end it all, remove $dir
TEXT
}
