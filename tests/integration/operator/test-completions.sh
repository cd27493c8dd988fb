#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # other shells' programs
# The completions in bash, zsh and fish, with a fake `berth` that prints fixed JSON. Each shell offers the
# same names, and none of holders, queues or descriptions. A shell that is not installed is skipped.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0 skipped=0
completions=$PWD/packaging/completions

cat >"$folder/berth" <<'END'
#!/bin/sh
[ "$1" = --socket ] && { [ "$2" = /x ] || exit 1; shift 2; here=far-; }
keys=
[ "$2" = 'tenant/*' ] && keys=', {"name": "tenant/acme"}'
case $1 in
pools) cat <<JSON
{"schema": 1, "host": "ant", "pools": [{"name": "${here}db", "scope": "cluster",
 "description": "a, \"name\": \"trap\", {\"name\": \"trap2\"", "holders": [{"claim": "c1", "name": "holder", "pid": 1}],
 "queue": [{"claim": "c2", "name": "waiter"}]}, {"queue": [], "holders": [],"name":"net"}, {"name": "tenant/*", "pattern": null}$keys]}
JSON
    ;;
jobs) echo '{"schema": 1, "jobs": [{"name": "dump", "pools": {"db": 2}}, {"name": "load", "instance_of": null, "pools": {"net": 1}},
 {"name": "backup@a", "instance_of": "backup@"}]}' ;;
runs) echo '{"schema": 1, "runs": [{"run": "0123456789abcdef0123456789abcdef", "name": "dump"}]}' ;;
esac
END
chmod +x "$folder/berth"
export PATH="$folder:$PATH" HOME="$folder" XDG_CONFIG_HOME="$folder" XDG_DATA_HOME="$folder"

fails() {
    failed=$((failed + 1))
    echo "FAIL: $*"
}

# All that is offered behind the words "berth $@" (the last is what was typed of it), one a line.
with_bash() {
    bash --norc -c '
        . "$0/berth.bash"
        COMP_WORDS=(berth "$@") COMP_CWORD=$#
        _berth
        printf "%s\n" "${COMPREPLY[@]}"' "$completions" "$@"
}
with_fish() {
    fish --no-config -c 'source $argv[1]/berth.fish; set -l n $argv[2..-1]; complete -C "berth "(string join " " -- $n)' \
        "$completions" "$@" | cut -f 1
}
# zsh completes in an interactive shell alone: one on a pseudo-terminal, whose compadd writes down what it is given.
cat >"$folder/zshrc" <<'END'
PS1= fpath=($COMPLETIONS $fpath)
autoload -Uz compinit && compinit -C -d $COMPDUMP
unset zle_bracketed_paste
compadd() {
    local -a offered
    if ! (( ${@[(I)-(O|A|D)*]} )); then
        builtin compadd -A offered "$@"
        print -rl -- $offered >>$OFFERED
    fi
    builtin compadd "$@"
}
offer() { zle list-choices; print end >>$OFFERED; }
zle -N offer
bindkey '^T' offer
print ready >>$OFFERED
END
with_zsh() {
    rm -f "$folder/offered"
    COMPDUMP=$folder/compdump COMPLETIONS=$completions OFFERED=$folder/offered timeout 20 zsh -f -c '
        zmodload zsh/zpty zsh/zselect
        zpty -b z "zsh -f -i"
        await() { until [[ -e $OFFERED ]] && grep -qx $1 $OFFERED; do zpty -r -t z unused; zselect -t 2; done; }
        zpty -w z ". ${OFFERED:h}/zshrc"
        await ready
        zpty -n -w z "berth $*"$'"'\x14'"'
        await end
        zpty -d z' zsh "$@" >/dev/null
    sed 's/\\//g' "$folder/offered"
}

# expect SHELL "WORDS" "must be offered" "must not be"
expect() {
    local shell=$1 offered word bad=
    if ! command -v "$shell" >/dev/null; then
        skipped=$((skipped + 1))
        echo "SKIP: $shell: $shell is not installed"
        return
    fi
    # shellcheck disable=SC2086
    set -- "$1" "$3" "$4" $2
    [ "${!#}" != EMPTY ] || set -- "${@:1:$#-1}" ""
    offered=$("with_$shell" "${@:4}" 2>&1)
    for word in $2; do grep -qxF -e "$word" <<<"$offered" || bad="$bad, without $word"; done
    for word in $3; do grep -qF -e "$word" <<<"$offered" && bad="$bad, with $word"; done
    if [ -z "$bad" ]; then
        passed=$((passed + 1))
    else
        fails "$shell: berth ${*:4}: offers$bad: $offered"
    fi
}

# Every verb that berth has, in each shell and in the man page.
verbs=$("${BERTH_BUILD:-build}/berth" help | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
for verb in $verbs; do
    if grep -q "^\*berth $verb\*\|^\*berth $verb " packaging/man/berth.1.scd || [ "$verb" = help ]; then
        passed=$((passed + 1))
    else
        fails "berth.1 has no berth $verb"
    fi
done
# Every option that a verb's help names, in each shell, and in what the man page says of the verb.
for verb in $verbs; do
    options=$("${BERTH_BUILD:-build}/berth" help "$verb" | sed -n -e 's/^  \(-[-a-zA-Z]*\) .*/\1/p' -e '/^berth /p' -e '/^ *\[/p' |
        grep -oE '(^|[[ ])--?[a-zA-Z][a-z-]*' | tr -d '[ ' | sort -u)
    [ -n "$options" ] || continue
    for option in $options; do
        grep -q -e "^\*berth ${verb}[* ].*$option\*" -e "^\s*\*$option\*" packaging/man/berth.1.scd || fails "berth.1 has no berth $verb $option"
    done
    for shell in bash zsh fish; do
        for kind in - --; do
            wanted=$(grep -- "^${kind}[a-zA-Z]" <<<"$options") && expect $shell "$verb $([ "$verb" != limit ] || echo db) $kind" "$wanted" "dump"
        done
    done
done
for shell in bash zsh fish; do
    expect $shell "EMPTY" "$verbs" "db dump"
    expect $shell "st" "start stop" "run pools"
    expect $shell "run -p EMPTY" "db net tenant/" "holder waiter trap dump far tenant/*"
    expect $shell "run -p tenant/" "tenant/ tenant/acme" "db tenant/*"
    expect $shell "start EMPTY" "backup@a" "tenant"
    for verb in stop jobs runs history; do expect $shell "$verb EMPTY" "backup@ backup@a" "tenant"; done
    expect $shell "pause EMPTY" "tenant/*" "tenant/acme"
    expect $shell "--socket /x pools EMPTY" "far-db net" "holder waiter trap"
    expect $shell "run --on-lease-lost EMPTY" "stop continue" "db"
    expect $shell "start EMPTY" "dump load" "db net trap"
    expect $shell "start d" "dump" "load"
    expect $shell "stop EMPTY" "dump load 0123456789abcdef0123456789abcdef" "db"
    expect $shell "pause EMPTY" "db net" "holder waiter trap"
    expect $shell "revoke EMPTY" "c1 c2" "db"
    expect $shell "grace --" "--end" "db"
    expect $shell "history EMPTY" "dump load 0123456789abcdef0123456789abcdef" "db"
    expect $shell "runs EMPTY" "dump load 0123456789abcdef0123456789abcdef" "db"
    expect $shell "pause --" "--for --reason" "--all"
    expect $shell "history --pool EMPTY" "db net" "holder trap"
    expect $shell "history --by EMPTY" "job pool host" "dump"
    expect $shell "history --" "--stats --by --pool --since --until --utc --directory" "db --job"
    expect $shell "audit --" "--since --limit --directory --tolerance" "--job"
    expect $shell "logs EMPTY" "dump load 0123456789abcdef0123456789abcdef" "db"
    expect $shell "runs --" "--json --all" "db"
    expect $shell "run -p db -- ber" "berth" "db"
done
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
