#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that a test names each failure of other systems in tests/lessons.txt, or that its line has, after a bar,
# the reason why there is none. Run by `make faults`; with "table" it prints the list for doc/faults.md.
set -u
bad=0
while read -r lesson what; do
    case $lesson in '' | '#'*) continue ;; esac
    reason=
    case $what in *' | '*) reason=${what#* | } what=${what%% | *} ;; esac
    # Whole names: #24 is not #2450.
    files=$(grep -rlE --include='*.c' --include='*.sh' -e "(^|[^A-Za-z0-9_-])$(printf '%s' "$lesson" | sed 's/[.]/\\./g')([^0-9A-Za-z_-]|\$)" tests |
        grep -v check-lessons | sed 's|tests/||' | sort | tr '\n' ' ')
    if [ -n "$files" ] && [ -n "$reason" ]; then
        echo "lessons: $lesson has a test ($files) and a reason why it has none"
        bad=1
    elif [ -z "$files$reason" ]; then
        echo "lessons: no test names $lesson ($what), and no reason is given"
        bad=1
    elif [ "${1:-}" = table ]; then
        printf '| %s | %s | %s |\n' "$lesson" "$what" "${reason:-$(echo "$files" | sed 's/ $//; s/ /, /g')}"
    fi
done <tests/lessons.txt
exit $bad
