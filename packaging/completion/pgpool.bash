# bash completion for pgpool, pcp_* and the password tools. Options are read from each program's --help, so that
# none has to be listed here.

_pgpool_options() {
    "$1" --help 2>&1 | grep -oE -- '(^|[ ,])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}

_pgpool() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]}
    COMPREPLY=()
    case $prev in
    -f | --config-file | -a | --hba-file | -F | --pcp-file | -k | --key-file | --import-pgbouncer | --into)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    -m | --mode)
        mapfile -t COMPREPLY < <(compgen -W 'smart fast immediate' -- "$cur")
        return
        ;;
    --describe)
        mapfile -t COMPREPLY < <(compgen -W 'sample man roff json' -- "$cur")
        return
        ;;
    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_pgpool_options "$program")" -- "$cur")
    elif [[ ${program##*/} == pgpool ]]; then
        mapfile -t COMPREPLY < <(compgen -W 'stop reload' -- "$cur")
    fi
}

complete -F _pgpool pgpool pg_md5 pg_enc wd_cli pcp_attach_node pcp_detach_node pcp_drain pcp_health_check_stats \
    pcp_invalidate_query_cache pcp_log_rotate pcp_node_count pcp_node_info pcp_pause pcp_pool_status pcp_proc_count \
    pcp_proc_info pcp_promote_node pcp_reconnect pcp_recovery_node pcp_reload_config pcp_resume pcp_stop_pgpool pcp_watchdog_info
