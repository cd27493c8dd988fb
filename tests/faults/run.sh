#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the faults (arguments: see test-faults.c), and beside them two rows of other programs: what happens to hosts (assumptions of the
# limit, clocks that jump, restarts with fifty jobs, deaths of berthd around due times, moves of claims), and what happens to servers of
# Redis (partitions behind sentinels, a cluster's moves and failovers). Without --slice also grants during stalls of each length. All of
# them mostly wait. Ends with the lines "FAIL: ..." of all and one line "N passed, N failed, N skipped", the sum.
set -u
programs=${BERTH_BUILD:-build}/tests/faults
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
clocks='' least=10 deaths=${DUE_DEATHS:-60x2}
case " $* " in *" --slice "*) clocks=guards least=9 deaths=${DUE_DEATHS:-20} ;; esac

hosts() {
    status=0
    "$programs/test-assumptions" || status=1
    "$programs/test-clocks" ${clocks:+"$clocks"} || status=1
    "$programs/test-restarts" || status=1
    DUE_DEATHS=$deaths "$programs/test-due-deaths" || status=1
    "$programs/test-claim-moves" || status=1
    [ -n "$clocks" ] || BERTH_TEST_GRANT_STALLS=all "$programs/../integration/run/test-grant-stalls" || status=1
    return $status
}
servers() {
    status=0
    "$programs/test-sentinel-partition" || status=1
    "$programs/test-cluster-moves" || status=1
    "$programs/test-cluster-failovers" || status=1
    return $status
}
hosts >"$folder/hosts" 2>&1 &
hosts=$!
servers >"$folder/servers" 2>&1 &
servers=$!
failed=0
"$programs/test-faults" "$@" >"$folder/faults" 2>&1 || failed=1 # a failed case's own last line is indented
wait $hosts || failed=1
wait $servers || failed=1
cat "$folder/hosts" "$folder/servers" "$folder/faults" | grep -avE '^([0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$|FAIL: )'
cat "$folder/hosts" "$folder/servers" "$folder/faults" | grep -a '^FAIL: '
sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$folder/hosts" "$folder/servers" "$folder/faults" |
    awk -v least="$least" '
        { n++; p += $1; f += $2; s += $3 }
        END { if (n < least) f++; printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' && [ "$failed" -eq 0 ]
