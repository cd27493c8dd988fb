#!/bin/sh
# SPDX-License-Identifier: MIT
# The lines that tests/run.sh and .ci/run print last: what failed in a log (tests/failures.sh).
set -u
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# check WHAT EXPECTED ARGUMENTS...: the log is standard input.
check() {
    what=$1 expected=$2
    shift 2
    cat >"$folder/log"
    printed=$(tests/failures.sh a-test 1 "$folder/log" "$@")
    if [ "$printed" = "$expected" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s\nFAIL: %s\n' "$printed" "$what"
    fi
}

check "two failures are not two lines" "FAIL: a-test: one / b: b.c:3: x
FAIL: a-test: two: y" <<'END'
berthd: skipped: a run of it is not over
    FAIL: an indented line belongs to another program
FAIL: one / b: b.c:3: x
    more of it
FAIL: two: y
1 passed, 2 failed, 0 skipped
END
check "many failures are not bounded" "FAIL: a-test: 1
FAIL: a-test: 2
FAIL: a-test: 1 more" 2 <<'END'
FAIL: 1
FAIL: 2
FAIL: 3
END
check "a finding of a sanitizer is not printed" "FAIL: a-test: status 1: SUMMARY: AddressSanitizer: heap-use-after-free x.c:3 in f" <<'END'
==1==ERROR
SUMMARY: AddressSanitizer: heap-use-after-free x.c:3 in f
1 passed, 0 failed, 0 skipped
END
check "the last words are not printed" "FAIL: a-test: status 1: Killed" <<'END'
something
Killed

END
check "an empty log" "FAIL: a-test: status 1: " </dev/null
printf '%s passed, %s failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
