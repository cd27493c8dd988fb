# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2020
# Completion of berth(1) for bash: verbs, options, and the current names of pools, jobs, runs and claims.

# Prints KEY (name, run, claim, instance_of) of each object in `berth VERB --json`, with the caller's --socket. Each key is put on a
# line of its own; quotes inside a text have a backslash, so only keys begin a line. Holders and queue have names, too: they are removed.
_berth_live() {
    local key=$1 drop='s/^$//' i
    local -a command=(berth)
    shift
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == --socket ]] && command+=(--socket "${COMP_WORDS[i + 1]}")
    done
    [[ $key == name ]] && drop='s/"holders": *\[[^]]*\]//g; s/"queue": *\[[^]]*\]//g'
    timeout 2 "${command[@]}" "$@" --json 2>/dev/null | tr -d '\n' | sed -e "$drop" | tr ',{' '\n\n' |
        sed -n "s/^ *\"$key\": *\"\\([^\"]*\\)\".*/\\1/p" | sort -u
}

# Jobs, and templates (`backup@`), which mean the jobs of all their instances.
_berth_jobs() {
    _berth_live name jobs
    _berth_live instance_of jobs
}

_berth_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

# Pools for permits. For a pattern `tenant/*` first the begin of its keys, `tenant/`, and then the keys in use.
_berth_keys() {
    _berth_words "$(_berth_live name pools | sed 's|/\*$|/|')
        $([[ $current != */* ]] || _berth_live name pools "${current%%/*}/*" | grep -v '/\*$')"
    [[ ${COMPREPLY[*]} != */ ]] || compopt -o nospace 2>/dev/null
}

_berth_run() {
    local i
    for ((i = verb_at + 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if ((i + 1 == COMP_CWORD)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$current")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
            fi
            return
        fi
    done
    case $previous in
    -p) _berth_keys ;;
    --on-lease-lost) _berth_words "stop continue" ;;
    --wait | --timeout | --head-start | --stop-timeout) _berth_words "10s 1m 10m 1h" ;;
    --name | -E) ;;
    *) _berth_words "-p -n --wait --timeout --head-start --name --on-lease-lost --stop-timeout -E -v --help --" ;;
    esac
}

_berth() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local verbs="run start stop jobs next runs explain pools hosts redis metrics watch limit pause resume move steal revoke grace drain undrain reload logs history audit doctor import-crontab check-config version help"
    local verb='' verb_at i

    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --socket) i=$((i + 1)) ;;
        -*) ;;
        *)
            verb=${COMP_WORDS[i]} verb_at=$i
            break
            ;;
        esac
    done
    if [[ $previous == --socket && -z $verb ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
    fi
    case $verb in
    "") _berth_words "$verbs --socket --help" ;;
    run) _berth_run ;;
    start) _berth_words "$(_berth_live name jobs) --set --wait --help" ;;
    stop) _berth_words "$(_berth_jobs) $(_berth_live run runs) --wait --help" ;;
    jobs) _berth_words "$(_berth_jobs) --json --help" ;;
    hosts) _berth_words "--json --help" ;;
    redis) _berth_words "--json --accept --help" ;;
    metrics)
        case $previous in
        --format) _berth_words "prometheus openmetrics" ;;
        --output) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        *) _berth_words "--cluster --format --output --help" ;;
        esac
        ;;
    watch)
        case $previous in
        --events) _berth_words "queued granted started exited released withdrawn refused seen-held seen-freed seen-waiting seen-gone seen-limit seen-host seen-host-gone" ;;
        --pool) _berth_words "$(_berth_live name pools)" ;;
        --job) _berth_words "$(_berth_jobs)" ;;
        --timeout) _berth_words "10s 1m 10m 1h" ;;
        --since | -n) ;;
        *) _berth_words "--json --events --pool --job --cluster --since -n --timeout --help" ;;
        esac
        ;;
    next)
        case $previous in
        -e | -z | --except | --count) ;;
        --from) _berth_words "now tomorrow +1h +7d" ;;
        *) _berth_words "$(_berth_live name jobs) -e -z --except --count --from --json --help" ;;
        esac
        ;;
    explain) _berth_words "$(_berth_jobs) $(_berth_live run runs) --no-estimate --json --help" ;;
    runs) _berth_words "$(_berth_jobs) $(_berth_live run runs) --json --all --cluster --help" ;;
    pools) _berth_words "$(_berth_live name pools) --json --help" ;;
    limit)
        case $previous in
        limit) _berth_words "$(_berth_live name pools) --help" ;;
        --for) _berth_words "10m 1h 1d" ;;
        --reason) ;;
        *) _berth_words "--for --reason --clear" ;;
        esac
        ;;
    pause)
        case $previous in
        --for) _berth_words "10m 1h 1d" ;;
        --reason) ;;
        *) _berth_words "$(_berth_live name pools) --for --reason --help" ;;
        esac
        ;;
    resume) _berth_words "$(_berth_live name pools) --help" ;;
    move)
        case $previous in
        --by) _berth_words "1m 10m 1h -10m" ;;
        --reason) ;;
        *) _berth_words "$(_berth_live claim pools) --first --before --by --reason --json --help" ;;
        esac
        ;;
    steal) [[ $previous == --reason ]] || _berth_words "$(_berth_live claim pools) --for --reason --yes --help" ;;
    revoke) [[ $previous == --reason ]] || _berth_words "$(_berth_live claim pools) --reason --help" ;;
    grace) _berth_words "--end --help" ;;
    drain) _berth_words "--wait --help" ;;
    logs)
        case $previous in
        --since) _berth_words "today yesterday -1h -7d" ;;
        --directory) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        -n) _berth_words "10 100 1000" ;;
        --unit) ;;
        *) _berth_words "$(_berth_live name jobs) $(_berth_live run runs) -f -n --events --since --utc --directory -m --unit --help" ;;
        esac
        ;;
    history)
        case $previous in
        --pool) _berth_keys ;;
        --by) _berth_words "job pool host" ;;
        --step) _berth_words "5m 1h 1d" ;;
        --since | --until) _berth_words "today yesterday -1h -7d" ;;
        --directory) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        --unit) ;;
        *) _berth_words "$(_berth_jobs) $(_berth_live run runs) --stats --by --use --step --pool --since --until --utc --directory -m --unit --json --help" ;;
        esac
        ;;
    audit)
        case $previous in
        --since) _berth_words "today yesterday -1h -7d" ;;
        --directory) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        -c) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        --limit) mapfile -t COMPREPLY < <(compgen -S = -W "$(_berth_live name pools)" -- "$current") ;;
        --unit | --tolerance) ;;
        *) _berth_words "--since --directory -m --limit -c --tolerance --no-moves --unit --json --help" ;;
        esac
        ;;
    doctor)
        case $previous in
        --only | --skip) _berth_words "$(berth doctor --list 2>/dev/null | sed 's/ .*//')" ;;
        -c) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        *) _berth_words "--json --nagios --only --skip --list -c --help" ;;
        esac
        ;;
    import-crontab)
        case $previous in
        --user) mapfile -t COMPREPLY < <(compgen -u -- "$current") ;;
        --prefix) ;;
        *)
            _berth_words "--system --user --prefix --help"
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
            ;;
        esac
        ;;
    check-config)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        [[ $current != -* ]] || _berth_words "-c --help"
        ;;
    help) _berth_words "$verbs" ;;
    *) _berth_words "--help" ;;
    esac
}

complete -o filenames -o bashdefault -F _berth berth
