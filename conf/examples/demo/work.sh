#!/bin/sh
# SPDX-License-Identifier: MIT
# The command of each job of the demo: work.sh FOLDER SECONDS. It only records when it started and ended, and its permits.
set -u
folder=$1
seconds=$2

# A stop signals all processes of a run, date(1) included; then calls it again.
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
