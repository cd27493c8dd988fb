#!/bin/sh
# SPDX-License-Identifier: MIT
# What each job of the demo runs: work.sh FOLDER SECONDS. It asks nobody for anything; it only writes down when it started and
# ended, and which permits it got.
set -u
folder=$1
seconds=$2

# Who stops a run signals all its processes: date(1), too, which is asked again then.
record() {
    now=
    while [ -z "$now" ]; do
        now=$(date +%s%N)
    done
    printf '%s %s %s %s %s %s\n' "$now" "$1" "$$" "$BERTH_POOLS" "$BERTH_HOST" "$BERTH_JOB" >>"$folder/witness"
}
stop() {
    stopped=yes
    [ -z "$sleeping" ] || kill "$sleeping" 2>/dev/null
}

stopped='' sleeping=''
trap stop INT TERM HUP
record start
if [ -z "$stopped" ]; then
    sleep "$seconds" &
    sleeping=$!
    [ -z "$stopped" ] || kill "$sleeping" 2>/dev/null
    wait "$sleeping"
fi
record end
[ -z "$stopped" ] || exit 143
