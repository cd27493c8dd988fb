#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/failures.sh NAME STATUS LOG [MOST]: prints what failed in a test program or a part of CI, one line "FAIL: NAME: ..." for each line
# "FAIL: ..." of its log, at most MOST (10). For a log without such lines it prints the report of a sanitizer or compiler, or the last line.
# Runners print these lines last, so the end of a long output names what failed.
set -u
grep -aE '^FAIL: ' "$3" | awk -v name="$1" -v most="${4:-10}" '
    NR <= most { sub(/^FAIL: /, ""); print "FAIL: " name ": " $0 }
    END { if (NR > most) print "FAIL: " name ": " NR - most " more"; exit NR == 0 }' && exit
last=$(grep -aE -m 1 'SUMMARY: .*Sanitizer|runtime error: |: error: ' "$3" || grep -av '^ *$' "$3" | tail -n 1)
echo "FAIL: $1: status $2: $last"
