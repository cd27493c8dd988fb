#!/bin/bash
# SPDX-License-Identifier: MIT
# The commands of README.md and doc/tour.md as they stand, each in a fresh shell, in a folder of its own instead of /tmp/tour. They print what
# the document shows, and nothing that runs in the background writes into the reader's terminal.
set -u
. tests/harness/check.sh
folder=$(mktemp -d /tmp/tour-XXXXXX) || exit 1
trap 'rm -rf "$folder"' EXIT
build=$(realpath "${BERTH_BUILD:-build}")

# As in the harness: redis-tools has the server, too, by another name.
server=$(command -v "${BERTH_REDIS_SERVER:-redis-server}" || command -v redis-check-rdb || command -v valkey-server) ||
    { echo "FAIL: there is no redis-server"; failed=1; finish; }
mkdir "$folder/bin"
ln -s "$server" "$folder/bin/redis-server"

# blocks FILE KIND: the lines of its blocks of commands ("sh"), or of what these print ("").
blocks() {
    awk -v kind="$2" '
        /^```/ { inside = !inside; wanted = ($0 == "```" kind); next }
        inside && wanted' "$1" | sed "s|/tmp/tour|$folder|g"
}
mkdir "$folder/checkout"
ln -s "$build" "$folder/checkout/build"

generalise() {
    sed -E -e 's/\b[0-9a-f]{8}\b/ID/g' -e "s/\b(web-07|$(hostname)):/HOST:/g" -e 's/[0-9.]+m?s ago/AGO/' -e 's/ +/ /g' -e 's/^ | $//g'
}

# walk FILE: runs its commands; $status and $folder/printed are what came of them.
walk() {
    {
        # A shell that ends early leaves nothing behind.
        # shellcheck disable=SC2016
        echo 'trap '\''kill $(jobs -p) 2>/dev/null'\'' EXIT'
        blocks "$1" sh
        echo 'echo "the end of the tour"'
    } >"$folder/tour.sh"
    # Without the environment of this shell. The shell has job control, as the reader's has.
    (cd "$folder/checkout" && exec env -u BERTH_SOCKET -u BERTH_RUN -u BERTH_HOLD PATH="$folder/bin:$PATH" timeout 120 bash -m ../tour.sh) \
        >"$folder/printed" 2>&1 </dev/null
    status=$?
    check "$1: exits with $status" [ "$status" -eq 0 ]
    check "$1: does not come to its end" grep -qx "the end of the tour" "$folder/printed"
    check "$1: something is left running" [ -z "$(pgrep -f "$folder/" || true)" ]
    check "$1: a berthd writes into the terminal" [ "$(grep -c '^ready: ' "$folder/printed")" = 0 ]
    # Messages and output, word for word. Host, ids and times differ, and with them the widths of columns.
    generalise <"$folder/printed" >"$folder/general"
    while read -r line; do
        case $line in
        berth:* | bad.conf:* | my* | POOL* | db* | wants* | blocked* | holders* | start* | sooner*)
            check "$1: does not print: $line" grep -qxF -e "$(generalise <<<"$line")" "$folder/general"
            ;;
        esac
    done < <(blocks "$1" "")
}

walk README.md
check "README.md: no row of import" grep -qE '^db +cluster +2 +2 .*:import x2' "$folder/printed"
check "README.md: berth run -n does not exit with 75, or the other does not run" [ "$(grep -xE '75|my turn|never' "$folder/printed" | paste -sd ' ')" = "75 my turn" ]
[ "$failed" -eq 0 ] || cat "$folder/printed"
rm -rf "$folder"/redis.* "$folder"/*.log "$folder"/run

walk doc/tour.md
check "bad.conf has other errors, too" [ "$(grep -c '^bad.conf:' "$folder/printed")" = "$(blocks doc/tour.md "" | grep -c '^bad.conf:')" ]
check "the exit statuses of berth run are not 75 and 65" [ "$(grep -xE '75|65' "$folder/printed" | paste -sd ' ')" = "75 65" ]
check "bee is not found" grep -q '^bee ' "$folder/printed"
check "both runs of the job are not seen" grep -qE '^db +cluster +5 .* ends in .* ant:report x2.*bee:report x2' "$folder/printed"
check "the limit is not shown" grep -qE '^override: 5, ends in .* \(quiet night\)$' "$folder/printed"
check "no event is shown" grep -q '^granted: report may start ' "$folder/printed"
check "the run is not found again" grep -qE '^[0-9a-f]{32} +report +[a-z-]+ +- +- +(starting|running)' "$folder/printed"
[ "$failed" -eq 0 ] || cat "$folder/printed"
finish
