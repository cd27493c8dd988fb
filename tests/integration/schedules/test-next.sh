#!/bin/bash
# SPDX-License-Identifier: MIT
# berth next: of entries without a berthd, of the jobs of a real one, the same times from both; the exit statuses.
set -u
. tests/harness/check.sh
folder=$(mktemp -d /tmp/next-XXXXXX) || exit 1
build=$(realpath "${BERTH_BUILD:-build}")
export PATH=$build:$PATH BERTH_SOCKET=$folder/run/control.sock
berthd=
trap '[ -z "$berthd" ] || { kill "$berthd"; wait "$berthd"; }; rm -rf "$folder"' EXIT
umask 022

# ends STATUS WORDS...: what berth next prints goes to $folder/out and $folder/err.
ends() {
    local status=$1
    shift
    berth next "$@" >"$folder/out" 2>"$folder/err"
    check "berth next $*: exit status is not $status" [ $? -eq "$status" ]
}
# due: the due times that JSON has.
due() {
    grep -o '"due":"[^"]*"' "$folder/out" | cut -d '"' -f 4 | paste -sd ' '
}

# ---- entries ----
berlin="-z Europe/Berlin --count 3 --json"
# shellcheck disable=SC2086
ends 0 -e "30 2 * * *" $berlin --from 2027-03-27T00:00:00Z
check "a time in a gap" [ "$(due)" = "2027-03-27T02:30:00+01:00 2027-03-28T03:00:00+02:00 2027-03-29T02:30:00+02:00" ]
check "a gap is not shown" [ "$(grep -o '"shift":"gap","wanted":"2027-03-28T02:30:00"' "$folder/out" | wc -l)" = 1 ]
# shellcheck disable=SC2086
ends 0 -e "0 * * * *" $berlin --from 2027-10-30T23:00:00Z
check "every hour of a fold, later than --from" \
    [ "$(due)" = "2027-10-31T02:00:00+02:00 2027-10-31T02:00:00+01:00 2027-10-31T03:00:00+01:00" ]
# shellcheck disable=SC2086
ends 0 -e "0 3 * * * A=1" -e "0 4 * * *" --except "2027-01-02" $berlin --from 2027-01-01T02:30:00Z
check "two entries and an exception" [ "$(due)" = "2027-01-01T04:00:00+01:00 2027-01-03T03:00:00+01:00 2027-01-03T04:00:00+01:00" ]
check "what an entry sets" grep -q '"set":{"A":"1"}' "$folder/out"
ends 0 -e "30 2 * * *" -z Europe/Berlin --from 2027-03-27T12:00:00Z --count 1
check "the note of a gap" grep -qE '^2027-03-28 03:00:00 \+02 .* for 02:30, which the clock leaves out$' "$folder/out"
ends 0 -e "30 2 * * *" -z Asia/Kolkata --from 2027-03-27T12:00:00Z --count 1
check "an offset with minutes" grep -qE '^2027-03-28 02:30:00 \+05:30 ' "$folder/out"
ends 0 -e "@daily" --count 10000
check "not 10000 times" [ "$(wc -l <"$folder/out")" -eq 10001 ]
ends 65 -e "30 25 * * *"
check "an error is another than the config's" grep -qx 'berth next: schedule "30 25 \* \* \*": hour 25; hours are 0 to 23' "$folder/err"
ends 65 -e "@daily" --except 2026-02-30
ends 65 -e "@daily" --except "* * * * *"
check "exceptions that leave nothing have another error" \
    grep -qx 'berth next: except leaves none of the next 10000 times of schedule' "$folder/err"
ends 65 -e "@daily" --except "* * * * *" --json
ends 65 -e "@daily" -z Europe/Berln
check "no hint of the right zone" grep -qx 'berth next: zone "Europe/Berln" is not in /usr/share/zoneinfo; did you mean "Europe/Berlin"?' "$folder/err"
ends 65 -e "@daily" -z ../etc/passwd
ends 64 -e "@daily" job
ends 64 -z UTC
ends 64 --except 2026-01-01
ends 64 --count 0
ends 64 --count 10001
ends 64 --from never
ends 69

# ---- jobs ----
cat >"$folder/berth.conf" <<END
runtime-directory = "$folder/run"
zone = "UTC"
job "early" { command = {"/bin/true"} schedule = {"0 * * * *"} zone = "Europe/Berlin" }
job "late" { command = {"/bin/true"} schedule = {"30 2 1 * *", "@daily"} except = {"2027-01-01"} }
job "never" { command = {"/bin/true"} }
END
berthd -c "$folder/berth.conf" --with-runner 2>"$folder/log" &
berthd=$!
timeout 20 sh -c 'until berth version 2>/dev/null | grep -q berthd; do sleep 0.05; done'
ends 0
check "not ten begins" [ "$(wc -l <"$folder/out")" -eq 11 ]
check "wider than a terminal: next" [ "$(wc -L <"$folder/out")" -le 80 ]
berth jobs >"$folder/out"
check "wider than a terminal: jobs" [ "$(wc -L <"$folder/out")" -le 80 ]
ends 0
check "no column ON" grep -qE '^WHEN +IN +JOB +ON +NOTE' "$folder/out"
check "a job is missing" grep -qE ' early +each ' "$folder/out"
ends 0 never
check "a job without a schedule has a time" grep -q 'nothing is due' "$folder/err"
ends 0 late --from 2026-12-30T00:00:00Z --count 40 --json
of_job=$(due)
ends 0 -e "30 2 1 * *" -e "@daily" --except 2027-01-01 -z UTC --from 2026-12-30T00:00:00Z --count 40 --json
check "berthd and berth differ" [ "${of_job:-none}" = "$(due)" ]
keys() { grep -o '"[a-z_]*":' "$folder/out" | sort -u; }
of_entry=$(keys)
ends 0 late --count 3 --json
check "berthd and berth have other members" [ "$of_entry" = "$(keys)" ]
ends 65 nobody
berth drain >/dev/null
ends 0 early
check "a drained host is not shown" grep -q 'drained' "$folder/err"
check "a drained host shows no times" grep -qE ' early +each ' "$folder/out"

finish
