#!/bin/sh
# SPDX-License-Identifier: MIT
# Due times of base/schedule against their definition and against another cron, by programs in another language (tests/oracle). Some seconds;
# BERTH_TEST_ORACLE=histories: all clock changes of ten years; =all: of every zone, 1970 to 2024 of odd ones, and 20 000 expressions.
set -u
passed=0 failed=0 skipped=0
how=${BERTH_TEST_ORACLE:-}
expressions=400
[ "$how" = all ] && expressions=20000

# check WHAT COMMAND...
check() {
    what=$1
    shift
    if printed=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s\nFAIL: %s\n' "$printed" "$what"
    fi
}
# Debian's own Python: another one in PATH may lack croniter.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
export PYTHONDONTWRITEBYTECODE=1
# shellcheck disable=SC2086
check "due times around clock changes" "$python" tests/oracle/changes.py $how
if "$python" -c "import croniter" 2>/dev/null; then
    check "due times of plain days" "$python" tests/oracle/plain_days.py "$expressions"
elif [ "${CI:-}" = true ]; then
    check "python3-croniter is not installed" false
else
    skipped=1
    echo "SKIP: test-due-times: python3-croniter is not installed"
fi
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
