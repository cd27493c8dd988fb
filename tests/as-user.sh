#!/bin/bash
# SPDX-License-Identifier: MIT
# As root: runs the built tests of $BUILD as an ordinary user (nobody), with nice, umask 077 and a bare environment,
# in a copy of the source tree whose path has a space. Tests that need root are skipped. Arguments and output are those of tests/run.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
copy="$folder/a checkout"
umask 077
chown nobody "$folder"

as_user() {
    setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups \
        env -i PATH="$PATH" HOME="$folder" LC_ALL=C TZ=Asia/Kathmandu BUILD=build \
        ${CI:+CI="$CI"} ${TEST_WITHOUT:+TEST_WITHOUT="$TEST_WITHOUT"} ${SEQUENCES:+SEQUENCES="$SEQUENCES"} TEST_CHECKED=yes BERTH_TEST_ROOT=elsewhere ${BERTH_REDIS_SERVER:+BERTH_REDIS_SERVER="$BERTH_REDIS_SERVER"} "$@"
}
unpack() {
    as_user mkdir -p "$1"
    as_user tar -C "$1" -xf -
}
tar -cf - --exclude=./.git --exclude=./build . | unpack "$copy"
tar -C "$build" -cf - --exclude='*.[oad]' berth berth-verbs berthd berth-runner berth-web tests | unpack "$copy/build"
cd "$copy"
as_user nice tests/run.sh "$@"
