#!/bin/sh
# SPDX-License-Identifier: MIT
# The demo of `make demo`: a private Redis and three hosts (ant, bee, cow) on this machine, whose jobs compete for two pools for about
# 20 seconds. Shows pools, holders and queues meanwhile, then the records of the commands themselves. Leaves nothing behind.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
build=$(cd "${BUILD:-build}" && pwd) || exit 1
seconds=${DEMO_SECONDS:-20}
hosts="ant bee cow"
umask 022
folder=$(mktemp -d /tmp/berth-demo-XXXXXX) || exit 1
redis='' daemons='' runs=''

# --- begin and end ---

# Another process may get the id of one that has ended, so checks the parent.
is_ours() {
    [ "$(sed 's/.*) [A-Z] \([0-9]*\) .*/\1/' "/proc/$1/stat" 2>/dev/null)" = $$ ]
}

# Ends the processes with these ids, all started here: TERM, and after 10 seconds KILL.
end() {
    for pid in "$@"; do
        is_ours "$pid" && kill -TERM "$pid" 2>/dev/null
    done
    tries=100
    for pid in "$@"; do
        while is_ours "$pid" && ! grep -q ') Z ' "/proc/$pid/stat" 2>/dev/null; do
            [ "$tries" -gt 0 ] || kill -KILL "$pid" 2>/dev/null
            tries=$((tries - 1))
            sleep 0.1
        done
        wait "$pid" 2>/dev/null
    done
}

clean_up() {
    trap '' INT TERM HUP
    # shellcheck disable=SC2086
    end $runs
    # shellcheck disable=SC2086
    end $daemons
    # shellcheck disable=SC2086
    end $redis
    runs='' daemons='' redis=''
}

leave() {
    status=$1
    clean_up
    [ "$status" -eq 0 ] || [ "$status" -ge 128 ] || tail -n 20 "$folder"/*.log >&2
    rm -rf "$folder"
    exit "$status"
}
trap 'leave 130' INT
trap 'leave 143' TERM
trap 'leave 129' HUP

fail() {
    echo "demo: $*" >&2
    leave 1
}

# Tries a command until it works, for up to 10 seconds.
await() {
    tries=100
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

berth() {
    host=$1
    shift
    "$build/berth" --socket "$folder/$host/control.sock" "$@"
}

# With Debian's redis-tools alone the server is named redis-check-rdb; under the name redis-server it is a server.
start_redis() {
    ln -s "$(command -v redis-server || command -v redis-check-rdb || command -v valkey-server)" "$folder/redis-server" ||
        fail "no redis-server"
    "$folder/redis-server" --port 0 --unixsocket "$folder/redis.sock" --dir "$folder" --save '' --appendonly no >"$folder/redis.log" 2>&1 &
    redis=$!
    await test -S "$folder/redis.sock" || fail "redis-server does not start"
}

start_host() {
    mkdir "$folder/$1.conf.d"
    for file in "$1.conf" "$1.conf.d/shared.conf"; do
        sed "s|/tmp/berth-demo|$folder|g" "$here/$(basename "$file")" >"$folder/$file" || fail "cannot write below $folder"
    done
    "$build/berthd" -c "$folder/$1.conf" --with-runner >"$folder/$1.log" 2>&1 </dev/null &
    daemons="$daemons $!"
    await berth "$1" version || fail "berthd of host $1 does not start"
}

# Runs without a config: `berth run` on each host at once.
start_runs() {
    for host in $hosts; do
        for kind in db net; do
            berth "$host" run -p "$kind" --name "by-hand" -- sh "$folder/work.sh" "$folder" 0.5 >/dev/null 2>>"$folder/runs.log" &
            runs="$runs $!"
        done
    done
}

# --- output ---

# Reads the JSON of `berth pools`, one object a line; writes "pool NAME USED LIMIT WAITING", "holder HOST NAME PERMITS", "waiter ...".
read_pools() {
    berth ant pools --json 2>/dev/null | tr -d ' \n' | tr '{' '\n' | awk '
        function get(key) {
            if (!match($0, "\"" key "\":\"?[^,\"}]*")) return "-"
            text = substr($0, RSTART, RLENGTH)
            sub(/^"[^"]*":"?/, "", text)
            return text
        }
        /"scope":/ { print "pool", get("name"), get("used"), get("limit"), get("waiting") }
        /"claim":.*"token":/ { print "holder", get("host"), get("name"), get("permits") }
        /"claim":.*"position":/ { print "waiter", get("host"), get("name"), get("permits") }'
}

draw() {
    read_pools | awk -v second="$1" -v seconds="$seconds" '
        BEGIN { printf "berth: three hosts, two pools, one Redis       %2d s of %d s\n", second, seconds }
        $1 == "pool" {
            finish()
            bar = ""
            for (i = 0; i < $4; i++) bar = bar (i < $3 ? "#" : ".")
            printf "\n%-5s [%s]  %d of %d in use, %d waiting\n", $2, bar, $3, $4, $5
            open = 1
        }
        $1 == "holder" { printf "    runs   %s  %-8s %d\n", $2, $3, $4; lines++ }
        $1 == "waiter" { if (waiting++ < 6) printf "    waits  %s  %-8s %d\n", $2, $3, $4; lines++ }
        function finish() {
            if (open && waiting > 6) printf "    ... and %d more\n", waiting - 6
            waiting = 0
        }
        END { finish() }'
}

tell() {
    read_pools | awk -v second="$1" '
        function flush_pool() { if (name) line = line "  " name " " use (runs ? " [" runs "]" : "") (n ? " " n " waiting" : "") }
        $1 == "pool" { flush_pool(); name = $2; use = $3 "/" $4; n = $5; runs = "" }
        $1 == "holder" { runs = runs (runs ? ", " : "") $2 " " $3 ($4 > 1 ? ":" $4 : "") }
        END { flush_pool(); printf "%2d s%s\n", second, line }'
}

show() {
    if [ -t 1 ]; then
        view=$(draw "$1")
        printf '\033[H\033[J%s\n' "$view"
    else
        tell "$1"
    fi
}

# Prints "POOL MOST RUNS", by the records of the commands: the most permits in use at once, and the number of runs. At one instant an
# end counts before a start.
judge() {
    sort -k1,1n -k2,2 "$folder/witness" 2>/dev/null | awk '
        {
            n = split($4, claims, ",")
            for (i = 1; i <= n; i++) {
                split(claims[i], claim, ":")
                used[claim[1]] += $2 == "start" ? claim[2] : -claim[2]
                if ($2 == "start") runs[claim[1]]++
                if (used[claim[1]] > most[claim[1]]) most[claim[1]] = used[claim[1]]
            }
        }
        END { for (pool in most) print pool, most[pool], runs[pool] }' | sort
}

limit_of() {
    sed -n "/^pool \"$1\"/,/^}/s/^ *limit = //p" "$here/shared.conf"
}

# Shows a job that begins at a time of day, and one that needs a second attempt.
show_jobs() {
    echo
    echo "What begins next on host cow (berth next):"
    berth cow next --count 1 nightly reindex | sed 's/^/  /'
    tries=$(awk '$2 == "start" && $6 == "flaky"' "$folder/witness" | wc -l)
    echo "Job flaky of host cow failed at its first attempt, and was tried again: $tries attempts."
    [ "$tries" -eq 2 ]
}

report() {
    bad=0
    echo
    echo "What the commands wrote down themselves when they started and ended:"
    judge >"$folder/judged"
    [ -s "$folder/judged" ] || { echo "  nothing"; bad=1; }
    while read -r pool most count; do
        limit=$(limit_of "$pool")
        verdict=kept
        [ "$most" -le "$limit" ] || { verdict=BROKEN bad=1; }
        printf '  pool %-4s %3d runs, at most %d permits in use at once, limit %d: %s\n' "$pool" "$count" "$most" "$limit" "$verdict"
    done <"$folder/judged"
    return $bad
}

# With DEMO_PICTURE=FILE: draws the records of the commands as an SVG (the README has one).
picture() {
    [ -n "${DEMO_PICTURE:-}" ] || return 0
    sort -k1,1n -k2,2 "$folder/witness" | awk -v pools="db:$(limit_of db) net:$(limit_of net)" -f "$here/picture.awk" >"$DEMO_PICTURE"
}

# --- the demo ---

cp "$here/work.sh" "$folder/work.sh" || fail "cannot write below $folder"
start_redis
start_host ant
await berth ant grace --end || fail "no Redis"
start_host bee
start_host cow
second=0
while [ "$second" -lt "$seconds" ]; do
    case $second in 2 | 7 | 12) start_runs ;; esac
    show "$second"
    sleep 1
    second=$((second + 1))
done
shown=0
show_jobs || shown=1
clean_up
picture
report || leave 1
[ "$shown" -eq 0 ] || fail "job flaky was not tried again"
leave 0
