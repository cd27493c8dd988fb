#!/bin/bash
# SPDX-License-Identifier: MIT
# Checks the model of the permit protocol (berth.pml) with spin. The true rules must hold in several
# configurations, each searched to its last state. Each mutation of a rule must break. Ends with one line "N
# passed, N failed, 0 skipped".
#   tests/prove/run.sh           all, two at a time (JOBS=n)
#   tests/prove/run.sh WORD ...  those whose name contains one of these words; the trail of a violation is build/prove/NAME/trail
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
source=$PWD/tests/prove/berth.pml
out=${BUILD:-build}/prove
jobs=${JOBS:-2}
wanted=("$@")
command -v spin >/dev/null || {
    echo "tests/prove/run.sh: spin is not installed (package spin)" >&2
    exit 1
}

# name, what is expected (holds|breaks), then macros
table() {
    cat <<'TABLE'
nothing-breaks       holds  LEASE=3 COUNTS=7
answers-are-slow     holds  LEASE=3 COUNTS=6 DELAYS=1
connections-break    holds  LEASE=2 COUNTS=5 CUTS=1 LATES=1
berthd-dies          holds  LEASE=2 COUNTS=6 CRASHES=1
redis-restarts       holds  LEASE=2 COUNTS=6 RESTARTS=2
redis-is-wiped       holds  LEASE=2 COUNTS=5 WIPES=1
copy-once            holds  LEASE=2 COUNTS=5 SAVES=1 RESTORES=1
copy-twice           holds  LEASE=2 COUNTS=4 SAVES=1 RESTORES=2
memory-back          holds  LEASE=2 COUNTS=5 SAVES=1 ROLLBACKS=1
tokens-grow          holds  LEASE=2 COUNTS=4 TICKS=4 CLOCK WIPES=1 SETBACKS=1
all-are-served       holds  LEASE=2 COUNTS=5 CALM=14 CUTS=1
all-served-after     holds  LEASE=2 COUNTS=4 CALM=16 SAVES=1 RESTORES=1
epochs-numbered      breaks LEASE=2 COUNTS=7 SAVES=1 RESTORES=2 CRASHES=2 M_NUMBER M_UNNOTICED
unnoticed            breaks LEASE=2 COUNTS=6 SAVES=1 ROLLBACKS=1 M_UNNOTICED
score-unlooked       breaks LEASE=2 COUNTS=6 SAVES=1 ROLLBACKS=1 M_SCORE
grace-halved         breaks LEASE=2 COUNTS=8 SAVES=1 RESTORES=1 GRACE=1
expiry-early         breaks LEASE=4 COUNTS=8 EXPIRY=3
lease-from-answer    breaks LEASE=3 COUNTS=7 DELAYS=1 M_FROM_ANSWER
heartbeats-any-epoch breaks LEASE=2 COUNTS=8 SAVES=1 RESTORES=1 M_ANY_EPOCH
replid-unlooked      breaks LEASE=2 COUNTS=6 SAVES=1 RESTORES=1 M_NO_REPLID
any-connection       breaks LEASE=2 COUNTS=8 LATES=1 CUTS=1 M_CONNECTIONS
clock-untaught       breaks LEASE=2 COUNTS=6 CLOCK WIPES=1 SETBACKS=1 M_UNTAUGHT
unsynced-kept        breaks LEASE=2 COUNTS=5 CALM=14 CUTS=1 M_SYNC_KEEPS
TABLE
}

is_wanted() {
    local word
    [ ${#wanted[@]} -eq 0 ] && return 0
    for word in "${wanted[@]}"; do
        [[ $1 == *$word* ]] && return 0
    done
    return 1
}

# Writes "passed" or "failed" to $out/NAME/result, then the text to show.
check() {
    local name=$1 expected=$2 begin=$SECONDS macro found states
    local dir=$out/$name
    local -a macros=()
    shift 2
    for macro; do macros+=("-D$macro"); done
    rm -rf "$dir"
    mkdir -p "$dir"
    cd "$dir" || return
    if ! spin -a "${macros[@]}" "$source" >spin.log 2>&1 || ! gcc -O2 -w -DSAFETY -DNOFAIR -DCOLLAPSE -DMEMLIM=3500 -o pan pan.c 2>gcc.log; then
        echo "failed $name: does not compile, see $dir" >result
        return
    fi
    # -E: a process with nothing left to do is no error. A search that is cut short (memory, depth) is an error.
    timeout 900 ./pan -E -m100000 -w24 >pan.log 2>&1
    states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log)
    if grep -q 'errors: 0$' pan.log && ! grep -q 'Search not completed\|max search depth\|memory' <(grep -v 'memory usage\|memory used\|Memory' pan.log); then
        found=holds
    elif grep -q 'assertion violated' pan.log; then
        found=breaks
        ./pan -r berth.pml.trail -n 2>/dev/null | sed '/^spin: trail/,$d' >trail
    else
        found="was not searched to its end"
    fi
    if [ "$found" = "$expected" ]; then
        printf 'passed %-20s %-6s %10s states %4d s   %s\n' "$name" "$found" "$states" $((SECONDS - begin)) "$*" >result
    else
        printf 'failed %-20s %s, but it should be: %s   %s states, %d s; see %s\n' "$name" "$found" "$expected" "$states" \
            $((SECONDS - begin)) "$dir" >result
    fi
}

[[ $out == /* ]] || out=$PWD/$out
names=()
while read -r name expected macros; do
    is_wanted "$name" || continue
    names+=("$name")
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    # shellcheck disable=SC2086
    (check "$name" "$expected" $macros; cat "$out/$name/result") &
done < <(table)
wait
passed=0 failed=0
for name in "${names[@]}"; do
    if grep -q '^passed' "$out/$name/result"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    sed -n 's/^failed /FAIL: /p' "$out/$name/result"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
