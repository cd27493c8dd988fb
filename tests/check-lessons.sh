#!/bin/sh
# SPDX-License-Identifier: MIT
# Every failure of other systems in tests/lessons.txt is named by a test, so that it is known which test looks for it; and FAULTS.md lists
# them. With "table" it prints that list.
set -u
bad=0
while read -r lesson what; do
    case $lesson in '' | '#'*) continue ;; esac
    files=$(grep -rlF --include='*.c' --include='*.sh' -e "$lesson" tests | grep -v check-lessons | sed 's|tests/||' | sort | tr '\n' ' ')
    if [ -z "$files" ]; then
        echo "lessons: no test names $lesson ($what)"
        bad=1
    elif [ "${1:-}" = table ]; then
        printf '| %s | %s | %s |\n' "$lesson" "$what" "$(echo "$files" | sed 's/ $//; s/ /, /g')"
    fi
done <tests/lessons.txt
exit $bad
