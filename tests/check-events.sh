#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that each row of base/journal/events.def is reached by a test and explained in the catalog, and that berth-events(7) has each field.
set -u
bad=0
page=packaging/man/berth-events.7.scd

complain() {
    echo "events: $1"
    bad=1
}

events=$(sed -n 's/^EVENT(\([A-Z_]*\), "\([a-z-]*\)".*/\1 \2/p' base/journal/events.def)
[ -n "$events" ] || complain "base/journal/events.def has no rows"
while read -r constant event; do
    grep -rqsE "\"$event\"|EVENT_$constant" tests/integration tests/contract tests/harness || complain "no test reaches $event"
    grep -qx "# $event" units/berth.catalog || complain "$event is not explained in units/berth.catalog"
done <<END
$events
END
# shellcheck disable=SC2013
for field in $(grep -o '"BERTH_[A-Z_]*"' base/journal/event.c | tr -d '"'); do
    grep -q "\*$field\*" "$page" || complain "$field is not in $page"
done
exit $bad
