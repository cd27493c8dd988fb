#!/bin/sh
# SPDX-License-Identifier: MIT
# Every event of base/journal/event.c (and berth-runner's `unbounded`) is reached by a test, and has its text in the catalog, its place in
# REFERENCE.md and in berth-events(7); every field is in both.
set -u
bad=0
reference=$(sed -n '/^## Events$/,$p' REFERENCE.md)
page=packaging/man/berth-events.7.scd

complain() {
    echo "events: $1"
    bad=1
}

# shellcheck disable=SC2013
for event in $(sed -n 's/^    \[EVENT_[A-Z_]*\] = {"\([a-z-]*\)".*/\1/p' base/journal/event.c) unbounded; do
    constant=EVENT_$(printf '%s' "$event" | tr 'a-z-' 'A-Z_')
    grep -rqsE "\"$event\"|$constant" tests/integration tests/contract tests/harness || complain "no test reaches $event"
    grep -qx "# $event" units/berth.catalog || complain "$event is not explained in the catalog"
    grep -qE "^\*(.*\*, \*)?$event\*" "$page" || complain "$event is not in $page"
    printf '%s\n' "$reference" | grep -qwe "$event" || complain "$event is not in REFERENCE.md"
done
for field in $(grep -o '"BERTH_[A-Z_]*"' base/journal/event.c | tr -d '"'); do
    grep -q "\*$field\*" "$page" || complain "$field is not in $page"
    printf '%s\n' "$reference" | grep -qw "$field" || complain "$field is not in REFERENCE.md"
done
[ "$(sed -n '/^    \[EVENT_/p' base/journal/event.c | wc -l)" -ge 30 ] || complain "their table is not found in base/journal/event.c"
exit $bad
