# bash completion for pgpool, pgpool top, pcp_*, the set-ups and the password tools. Options are read from each
# program's --help, so that none has to be listed here.

_pgpool_options() {
    "$@" --help 2>&1 | grep -oE -- '(^|[[ ,])--?[A-Za-z0-9][A-Za-z-]*' | tr -d '[ ,' | sort -u
}

# Views of pgpool top: the line of its help.
_pgpool_views() {
    "$1" top --help 2>/dev/null | sed -n 's/^Views: *//p'
}

_pgpool() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]} words=
    local -a run=("$program")
    COMPREPLY=()
    # --name=value is three words to bash.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = && $COMP_CWORD -gt 1 ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    [[ ${program##*/} == pgpool && ${COMP_WORDS[1]-} == top && $COMP_CWORD -gt 1 ]] && run+=(top)
    case ${program##*/}:$prev in
    *:-f | *:--config-file | *:--hba-file | *:--pcp-file | *:--key-file | *:--input-file | *:--import-pgbouncer | *:--into | \
        pgpool:-a | pgpool:-F | pgpool:-k | pg_enc:-k | pg_*:-i | pgpool_setup:--*-conf | pgpool_setup:--pg-hba | pgpool_setup:--sql | *:-s | *:--socket-dir)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    pgpool:-m | pcp_*:-m | *:--mode) words='smart fast immediate' ;;
    *:--describe) words='sample man roff json' ;;
    pg_enc:--format) words='aes gcm scram' ;;
    wd_cli:-I | wd_cli:--inform) words='DEAD ALIVE' ;;
    pgpool_setup:-m) words='s r l n i' ;;
    watchdog_setup:-m) words='s l n' ;;
    *)
        if [[ $cur == -* ]]; then
            words=$(_pgpool_options "${run[@]}")
        elif [[ ${#run[@]} -gt 1 ]]; then
            words=$(_pgpool_views "$program")
        elif [[ ${program##*/} == pgpool ]]; then
            words='stop reload top'
        fi
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _pgpool pgpool pg_md5 pg_enc wd_cli pgpool_setup watchdog_setup pcp_attach_node pcp_detach_node pcp_drain \
    pcp_health_check_stats pcp_invalidate_query_cache pcp_log_rotate pcp_node_count pcp_node_info pcp_pause pcp_pool_status \
    pcp_proc_count pcp_proc_info pcp_promote_node pcp_reconnect pcp_recovery_node pcp_reload_config pcp_resume pcp_stop_pgpool \
    pcp_watchdog_info
