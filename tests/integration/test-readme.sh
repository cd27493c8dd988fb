#!/bin/bash
# SPDX-License-Identifier: MIT
# The tour of the README: its commands as they stand, one after the other in a fresh shell, in a folder of its own instead of /tmp/tour.
# What the README says that they print is printed, and nothing that runs in the background writes into the reader's terminal.
set -u
passed=0 failed=0 skipped=0
folder=$(mktemp -d /tmp/tour-XXXXXX) || exit 1
trap 'rm -rf "$folder"' EXIT
build=$(realpath "${BERTH_BUILD:-build}")

finish() {
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
    exit
}
# check WHAT COMMAND...
check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$what"
    fi
}
# As in the harness: redis-tools has the server, too, by another name.
server=$(command -v "${BERTH_REDIS_SERVER:-redis-server}" || command -v redis-check-rdb || command -v valkey-server) ||
    { echo "there is no redis-server"; failed=1; finish; }
mkdir "$folder/bin"
ln -s "$server" "$folder/bin/redis-server"

# blocks KIND: the lines of the tour's blocks of commands ("sh"), or of what these print ("").
blocks() {
    sed -n '/^## Five minutes/,/^## On a server/p' README.md | awk -v kind="$1" '
        /^```/ { inside = !inside; wanted = ($0 == "```" kind); next }
        inside && wanted' | sed "s|/tmp/tour|$folder|g"
}
{
    # A shell that ends early leaves nothing behind.
    # shellcheck disable=SC2016
    echo 'trap '\''kill $(jobs -p) 2>/dev/null'\'' EXIT'
    blocks sh
    echo 'echo "the end of the tour"'
} >"$folder/tour.sh"
mkdir "$folder/checkout"
ln -s "$build" "$folder/checkout/build"
# What the tour does not set must not come from here. The shell has job control, as the reader's has.
(cd "$folder/checkout" && exec env -u BERTH_SOCKET -u BERTH_RUN -u BERTH_HOLD PATH="$folder/bin:$PATH" timeout 120 bash -m ../tour.sh) \
    >"$folder/printed" 2>&1 </dev/null
status=$?

check "the tour exits with $status" [ "$status" -eq 0 ]
check "the tour does not come to its end" grep -qx "the end of the tour" "$folder/printed"
# Errors, word for word.
while read -r line; do
    case $line in
    berth:* | bad.conf:*) check "the tour does not print: $line" grep -qxF -e "$line" "$folder/printed" ;;
    esac
done < <(blocks "")
check "bad.conf has other errors, too" [ "$(grep -c '^bad.conf:' "$folder/printed")" = "$(blocks "" | grep -c '^bad.conf:')" ]
check "the exit statuses of berth run are not 75 and 65" [ "$(grep -xE '75|65' "$folder/printed" | paste -sd ' ')" = "75 65" ]
check "bee is not found" grep -q '^bee ' "$folder/printed"
check "both runs of the job are not seen" grep -qE '^db +cluster +5 .* ends in .* ant:report x2.*bee:report x2' "$folder/printed"
check "the limit is not told" grep -qE '^override: 5, ends in .* \(quiet night\)$' "$folder/printed"
check "no event is shown" grep -q '^granted: report may start ' "$folder/printed"
check "the run is not found again" grep -qE '^[0-9a-f]{32} +report +job +(starting|running)' "$folder/printed"
check "something is left running" [ -z "$(pgrep -f "$folder/" || true)" ]
# Every berthd says this once, into its log.
check "a berthd writes into the terminal" [ "$(grep -c '^ready: ' "$folder/printed")" = 0 ]
[ "$failed" -eq 0 ] || cat "$folder/printed"
finish
