#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the built tests of contract/ against one server in four ways: plain, by TLS, as a cluster of one node, and
# both. $BERTH_REDIS_SERVER names the server, $BUILD the folder of the tests. Prints a line for each way, after what
# failed. Exits with 1 if a test failed. Tests that a cluster cannot have are skipped, also in CI.
set -u
names=$(find tests/contract -name 'test-*.c' | sed 's|.*/||; s|\.c$||')
out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
for way in "" BERTH_TEST_TLS=yes BERTH_TEST_CLUSTER=yes "BERTH_TEST_TLS=yes BERTH_TEST_CLUSTER=yes"; do
    begun=$(date +%s)
    # shellcheck disable=SC2086
    env -u CI $way tests/run.sh $names >"$out" 2>&1 || {
        status=1
        grep '^FAIL: ' "$out"
    }
    echo "${way:-plain}: $(tail -n 1 "$out"), $(($(date +%s) - begun)) s"
done
exit $status
