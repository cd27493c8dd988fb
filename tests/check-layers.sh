#!/bin/sh
# SPDX-License-Identifier: MIT
# Holds the arrows of ARCHITECTURE.md: which folder may include which, and which file may use which library.
set -u
bad=0
complain() {
    echo "layers: $*"
    bad=1
}

# folder  folders it may include
while read -r folder allowed; do
    for file in "$folder"/*.[ch]; do
        [ -f "$file" ] || continue
        # shellcheck disable=SC2013
        for used in $(sed -n 's|^#include "\([a-z]*\)/.*|\1|p' "$file" | sort -u); do
            case " $allowed " in
            *" $used "*) ;;
            *) complain "$file includes $used/, which $folder/ may not" ;;
            esac
        done
    done
done <<EOF
base base
conf conf base
daemon daemon conf base
runner runner conf base
cli cli conf base
EOF

# library header  files that may include it
while read -r header allowed; do
    # shellcheck disable=SC2013
    for file in $(grep -lE "#include <$header" base/*.[ch] conf/*.[ch] daemon/*.[ch] runner/*.[ch] cli/*.[ch] 2>/dev/null); do
        ok=no
        for pattern in $allowed; do
            # shellcheck disable=SC2254
            case $file in $pattern) ok=yes ;; esac
        done
        [ $ok = yes ] || complain "$file uses <$header>: that belongs to $allowed"
    done
done <<EOF
confuse conf/parser*
hiredis daemon/redis-*
jansson daemon/control* daemon/verb* cli/*
systemd/sd-journal base/journal*.c
systemd/sd-daemon daemon/manager*.c runner/main.c base/journal.c base/activation.c
libsmartcols cli/table*
EOF

# daemon/: core knows no fd, no clock read, no library
for file in daemon/claim.[ch] daemon/run.[ch] daemon/job.[ch] daemon/rights.[ch] daemon/pool*.[ch]; do
    [ -f "$file" ] || continue
    if grep -nE 'clock_(boottime|realtime)\(|#include <(systemd|hiredis|jansson)' "$file"; then
        complain "$file is core: no clock read, no library"
    fi
done
# daemon/: edges do not know the manager, the manager does not know the verbs
for file in daemon/store*.[ch] daemon/redis-*.[ch] daemon/control*.[ch] daemon/hold.[ch] daemon/runner-link.[ch] \
    daemon/guard-link.[ch] daemon/event.[ch] daemon/pool*.[ch] daemon/job.[ch] daemon/run.[ch] daemon/rights.[ch]; do
    [ -f "$file" ] || continue
    grep -nE '#include "daemon/(manager|verb)' "$file" && complain "$file is below the manager"
done
grep -nE '#include "daemon/verb' daemon/manager*.[ch] && complain "the manager is below the verbs"

# A newcomer finds each file: by name in ARCHITECTURE.md, or in the header that lists a module's files.
for folder in base conf daemon runner cli; do
    map=$(cat ARCHITECTURE.md "$folder"/*-internal.h "$folder"/store-redis.h "$folder"/verbs.h 2>/dev/null | grep -v '^#include')
    for file in "$folder"/*.c; do
        name=$(basename "$file" .c)
        printf '%s\n' "$map" | grep -qE "(^|[^a-z-])(${name#redis-}|$name)(\\.c)?([^a-z-]|\$)" ||
            complain "$file stands in no map: name it in ARCHITECTURE.md or in the header that lists its module's files"
    done
done
exit $bad
