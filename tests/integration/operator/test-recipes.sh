#!/bin/bash
# SPDX-License-Identifier: MIT
# The commands of berth-events(7), NOTIFICATIONS, as they stand, with a mail and a notify-send of this test's own.
set -u
. tests/harness/check.sh
folder=$(mktemp -d /tmp/recipes-XXXXXX) || exit 1
build=$(realpath "${BERTH_BUILD:-build}")
children=
# A pipeline is a process group of its own.
# shellcheck disable=SC2317
clean_up() {
    exec 2>/dev/null # the shell reports each job that it ends
    # shellcheck disable=SC2086
    [ -z "$children" ] || kill -- $children 2>/dev/null
    wait
    rm -rf "$folder"
}
trap clean_up EXIT
unset BERTH_SOCKET BERTH_RUN BERTH_HOLD

# Each notes its arguments, a line for each call.
mkdir "$folder/bin" "$folder/run"
for program in mail notify-send; do
    printf '#!/bin/sh\necho "$*" >>"%s/%s"\n' "$folder" "$program" >"$folder/bin/$program"
done
chmod +x "$folder"/bin/*
ln -s "$build/berth" "$folder/bin/berth"
export PATH="$folder/bin:$PATH" BERTH_SOCKET="$folder/run/control.sock"
umask 022
printf 'host = "ant"\nruntime-directory = "%s/run"\npool "here" { limit = 1 scope = "host" }\n' "$folder" >"$folder/berth.conf"

# shellcheck disable=SC2317
# await COMMAND...: until it succeeds, 30 s at most.
await() {
    local until=$((SECONDS + 30))
    until "$@"; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.1
    done 2>/dev/null
}
# shellcheck disable=SC2317
watchers() { [ "$(berth metrics | sed -n 's/^berth_watchers //p')" = "$1" ]; }

# recipe WORD: the command below a comment that begins so.
recipe() {
    sed -n '/^# NOTIFICATIONS/,/^# PRIORITIES/p' packaging/man/berth-events.7.scd |
        awk -v word="# $1" '/^#|^```/ { inside = index($0, word) == 1; next } inside'
}

set -m
"$build/berthd" -c "$folder/berth.conf" --with-runner 2>"$folder/log" &
children="$children -$!"
check "berthd does not answer" await berth version >/dev/null
sh -c "$(recipe 'a mail')" &
children="$children -$!"
sh -c "$(recipe 'a note')" &
children="$children -$!"
check "berth watch does not read" await watchers 2
berth run --wait 20s -p here --name good -- true
berth run --wait 20s -p here --name bad -- sh -c 'exit 3'
check "no note" await grep -qxF "berth bad failed with exit status 3" "$folder/notify-send"
check "no note of success" grep -qxF "berth good succeeded" "$folder/notify-send"
check "no mail" await grep -qxF -- "-s bad failed with exit status 3 ops@example.org" "$folder/mail"
check "a mail about a run that succeeded" [ "$(wc -l <"$folder/mail")" = 1 ]
check "not the id of exited" [ "$(recipe 'the same event' | sed -n 's/.*MESSAGE_ID=//p')" = \
    "$(sed -n 's/^EVENT(EXITED, .*"\([0-9a-f]*\)",$/\1/p' base/journal/events.def)" ]
finish
