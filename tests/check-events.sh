#!/bin/sh
# SPDX-License-Identifier: MIT
# Every event of daemon/event.c is reached by a test: a test program names it.
set -u
bad=0
# shellcheck disable=SC2013
for event in $(sed -n 's/^    \[EVENT_[A-Z_]*\] = {"\([a-z-]*\)".*/\1/p' daemon/event.c); do
    constant=EVENT_$(printf '%s' "$event" | tr 'a-z-' 'A-Z_')
    grep -rqsE "\"$event\"|$constant" tests/integration tests/contract tests/harness || {
        echo "events: no test reaches $event"
        bad=1
    }
done
[ "$(sed -n '/^    \[EVENT_/p' daemon/event.c | wc -l)" -ge 30 ] || {
    echo "events: their table is not found in daemon/event.c"
    bad=1
}
exit $bad
