#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks which folder may include which (the arrows of ARCHITECTURE.md), where internal headers stay, and which file may
# use which library.
set -u
bad=0
complain() {
    echo "layers: $*"
    bad=1
}

# Prints "FOLDER FOLDER..." for each row of the table of folders in ARCHITECTURE.md: a folder, and those whose headers it
# may include. A name there is a path, or relative to the folder, to one above it, or to base/.
# shellcheck disable=SC2016
arrows=$(sed -n 's/^| `\([a-z/]*\)\/` |.*| \([a-z, /]*\)|$/\1 \2/p' ARCHITECTURE.md | while read -r folder names; do
    printf '%s' "$folder"
    for name in $(printf '%s' "$names" | tr ',' ' '); do
        above=$folder
        while [ ! -d "$above/$name" ] && [ "$above" != . ]; do above=$(dirname "$above"); done
        [ -d "$above/$name" ] || above=base
        printf ' %s' "$(printf '%s' "$above/$name" | sed 's|^\./||')"
    done
    echo
done)
for file in $(git ls-files 'base/*.[ch]' 'conf/*.[ch]' 'store/*.[ch]' 'daemon/*.[ch]' 'runner/*.[ch]' 'cli/*.[ch]' 'front/*.[ch]' 'web/*.[ch]' 2>/dev/null ||
    find base conf store daemon runner cli front web -name '*.[ch]'); do
    folder=${file%/*}
    allowed=$(printf '%s\n' "$arrows" | awk -v folder="$folder" '$1 == folder { $1 = "known"; print }')
    [ -n "$allowed" ] || complain "$folder/ has no row in the table of folders of ARCHITECTURE.md"
    # shellcheck disable=SC2013
    for used in $(sed -n 's|^#include "\(.*\)/[^/]*"|\1|p' "$file" | sort -u); do
        case " $allowed $folder " in
        *" $used "*) ;;
        *) complain "$file includes $used/, which $folder/ may not" ;;
        esac
    done
done

# An arrow that no file uses says too much.
printf '%s\n' "$arrows" | while read -r folder allowed; do
    for used in $allowed; do
        grep -qsE "^#include \"$used/[^/\"]*\"" "$folder"/*.[ch] || echo "layers: no file of $folder/ includes $used/"
    done
done | grep . && bad=1

# What an internal header declares belongs to its folder and those below; the unit tests of that folder may call it.
# shellcheck disable=SC2013
for file in $(grep -rlE --include='*.[ch]' '^#include ".*-internal\.h"' base conf store daemon runner cli front web tests); do
    for header in $(sed -n 's|^#include "\(.*-internal\.h\)"|\1|p' "$file"); do
        case ${file%/*} in
        "${header%/*}" | "${header%/*}"/* | tests/unit/"${header%/*}") ;;
        *) complain "$file includes $header, which belongs to ${header%/*}/" ;;
        esac
    done
done

# library header  files that may include it; a pattern names files of all folders below it
set -f
while read -r header allowed; do
    # shellcheck disable=SC2013
    for file in $(grep -rlE --include='*.[ch]' "#include <$header" base conf store daemon runner cli front web); do
        ok=no
        for pattern in $allowed; do
            # shellcheck disable=SC2254
            case $file in $pattern) ok=yes ;; esac
        done
        [ $ok = yes ] || complain "$file uses <$header>: that belongs to $allowed"
    done
done <<EOF
confuse conf/syntax/parser*
hiredis store/redis/client/*
openssl store/redis/client/tls*
jansson base/client/* base/explain/* base/json/* daemon/api/* daemon/control/* cli/* web/*
systemd/sd-journal base/journal/*.c
systemd/sd-daemon daemon/service.c runner/main.c base/activation.c base/memory.c web/main.c web/listen.c
microhttpd web/http*
libsmartcols cli/table*
EOF
set +f

# Parts of libmicrohttpd that had security holes: forms, passwords, TLS, sockets of another protocol.
grep -nE 'MHD_(create_post_processor|digest|basic|USE_TLS|upgrade|create_response_for_upgrade)' -r web && complain "web uses a part of libmicrohttpd that is ruled out"

# The core gets all it needs as arguments: it reads no clock and uses no library.
for file in store/claim.h base/schedule/*.[ch] daemon/runs/run.[ch] daemon/counters.[ch] daemon/jobs/job.[ch] daemon/jobs/due.[ch] daemon/runs/chain.[ch] daemon/jobs/health.[ch] daemon/rights.[ch] store/memory/pool*.[ch] web/request.[ch] web/users.[ch]; do
    if grep -nE 'clock_(boottime|realtime)\(|#include <(systemd|hiredis|jansson)' "$file"; then
        complain "$file is core: no clock read, no library"
    fi
done
# Parts that the manager calls do not know it, and the manager does not know the methods of the control interface.
for file in daemon/control/* daemon/adhoc/hold.[ch] daemon/executor/*-link.[ch] daemon/jobs/job.[ch] daemon/runs/run.[ch] daemon/rights.[ch]; do
    grep -nE '#include "daemon/(manager|api/verb)' "$file" && complain "$file is below the manager"
done
grep -rnE '#include "daemon/api/verb' daemon --include='*.[ch]' | grep -v -e '^daemon/api/' -e '^daemon/main.c' &&
    complain "the manager is below the methods of the control interface"
# Each part of `struct store_redis` is written by only one file.
while read -r part owner; do
    if grep -nE "store->$part\\.[a-z_.]+(\\[[^]]*\\][a-z_.]*)? *([-+|&]?= |\\+\\+|--)" store/redis/*.c store/redis/*/*.c | grep -v -e "^$owner.c:" -e "^store/redis/link/link-log.c:.*store->link\.log\."; then
        complain "store->$part belongs to $owner.c"
    fi
done <<EOF
link store/redis/link/link
stop store/redis/stop
renewal store/redis/link/renewal
handshake store/redis/link/handshake
session store/redis/session
hello store/redis/hello
sync store/redis/sync
heartbeat store/redis/heartbeat
samples store/redis/samples
epoch store/redis/epoch
clock store/redis/clock
table store/redis/claim-table
claims store/redis/claims
full store/redis/full
batches store/redis/batch
pushes store/redis/push
verify store/redis/verify
limits store/redis/limits
EOF
exit $bad
