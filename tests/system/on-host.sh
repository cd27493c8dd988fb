# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The beginning of each script that runs on a host (hosts.sh: script).

fail() {
    echo "FAIL: on $(hostname): $*"
    exit 1
}
# exits STATUS COMMAND...: checks the exit status of a command. The output is in /run/said.
exits() {
    local expected=$1 status=0
    shift
    timeout 60 "$@" >/run/said 2>&1 || status=$?
    [ "$status" -eq "$expected" ] || {
        cat /run/said
        fail "$* exits with $status, not $expected"
    }
}
says() { # PATTERN: checks the output of the last exits()
    grep -q -- "$1" /run/said || {
        cat /run/said
        fail "the output lacks: $1"
    }
}
# await COMMAND...: repeats a command until it succeeds, for 15 s at most.
await() {
    for _ in $(seq 150); do
        "$@" && return
        read -rt 0.1 <> <(:) || :
    done
    fail "not in time: $*"
}
# not COMMAND...: fails if the command succeeds. "! COMMAND" would not end a script of -e.
not() {
    if "$@"; then fail "succeeds, but must not: $*"; fi
}
active() {
    [ "$(systemctl is-active "$1")" = active ]
}
pid() {
    systemctl show -P MainPID "$1"
}
events() { # NAME [FIELD=VALUE...]: prints how many of these events berthd logged
    local name=$1
    shift
    journalctl -q -t berthd -o cat BERTH_EVENT="$name" "$@" | wc -l
}
used() { # POOL: prints how many permits are held
    berth pools --json "$1" | tr -d ' \n' | sed 's/.*"used":\([0-9]*\).*/\1/'
}

# get_page PATH: asks berth-web over TCP. The reply is in /run/said.
get_page() {
    exec 3<>/dev/tcp/127.0.0.1/9737
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$1" >&3
    timeout 30 cat <&3 >/run/said
    exec 3>&-
}
page_is_well() { get_page /healthz && grep -q '^HTTP/1.1 200' /run/said; }
