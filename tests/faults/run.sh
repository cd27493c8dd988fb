#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the assumptions of the limit, clocks that jump (of a slice one), restarts with fifty jobs, grants during stalls of each length (not of
# a slice) and the faults (arguments: see test-faults.c). Ends with one line "N passed, N failed, N skipped", the sum.
set -u
programs=${BERTH_BUILD:-build}/tests/faults
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
status=0
clocks=
case " $* " in *" --slice "*) clocks=guards ;; esac
{
    "$programs/test-assumptions"
    "$programs/test-clocks" ${clocks:+"$clocks"}
    "$programs/test-restarts"
    [ -n "$clocks" ] || GRANT_STALLS=all "$programs/../integration/test-grant-stalls"
    "$programs/test-faults" "$@" # a failed case's own last line is indented
} >"$log" 2>&1 || status=1
grep -vE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log"
sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$log" |
    awk -v least="$([ -n "$clocks" ] && echo 4 || echo 5)" '{ n++; p += $1; f += $2; s += $3 } END { if (n < least) f++; printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' && [ "$status" -eq 0 ]
