# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion of berth-web(8) for bash.
_berth_web() {
    local current=${COMP_WORDS[COMP_CWORD]}
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    --unix | --berth) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    --listen) mapfile -t COMPREPLY < <(compgen -W 127.0.0.1:9737 -- "$current") ;;
    --host | --path | --title | --user-header) COMPREPLY=() ;;
    *)
        mapfile -t COMPREPLY < <(compgen -W "--listen --unix --berth --host --path --title --actions --user-header
            --metrics-only --version --help" -- "$current")
        ;;
    esac
}
complete -F _berth_web berth-web
