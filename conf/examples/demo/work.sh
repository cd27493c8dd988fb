#!/bin/sh
# SPDX-License-Identifier: MIT
# What each job of the demo runs: work.sh FOLDER SECONDS. It asks nobody for anything; it only writes down when it started and
# ended, and which permits it was told to have.
set -u
folder=$1
seconds=$2

record() {
    printf '%s %s %s %s %s %s\n' "$(date +%s%N)" "$1" "$$" "$BERTH_POOLS" "$BERTH_HOST" "$BERTH_JOB" >>"$folder/witness"
}
stop() {
    kill "$sleeping" 2>/dev/null
    record end
    exit 143
}

sleeping=
trap stop INT TERM HUP
record start
sleep "$seconds" &
sleeping=$!
wait "$sleeping"
record end
