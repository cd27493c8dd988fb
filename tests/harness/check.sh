# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For tests that are shell scripts: `. tests/harness/check.sh`, check for each fact, finish at the end.
passed=0 failed=0 skipped=0

# check WHAT COMMAND...: WHAT says what is broken if the command fails. The last output is shown then ($folder/out, $folder/err).
check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        # shellcheck disable=SC2154
        cat "$folder/out" "$folder/err" 2>/dev/null
        echo "FAIL: $what"
    fi
}
# The last line, which tests/run.sh reads, and the exit status.
finish() {
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
    exit
}
