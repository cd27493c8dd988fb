#!/bin/bash
# SPDX-License-Identifier: MIT
# Installs the packages on real systemd, in containers, and runs stories of an administrator's work. Needs
# root, mmdebstrap and systemd-nspawn. Arguments: names of stories (default: all), or --prepare, which only
# builds images and packages for a later call. Tests the commit, not the work tree.
# Images and packages are kept in $BERTH_SYSTEM_CACHE (default: /var/cache/berth-system). Results, with the
# journal of each host, are in build/system/results.
# shellcheck disable=SC2154,SC1090 # variables and stories of files that are sourced
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
cache=${BERTH_SYSTEM_CACHE:-/var/cache/berth-system}
packages=$cache/packages
results=$PWD/build/system/results
suites=${BERTH_SYSTEM_SUITES:-trixie bookworm}

say() {
    echo "check-system: $*" >&2
}
fail() {
    echo "FAIL: $*"
    exit 1
}
for tool in mmdebstrap systemd-nspawn nsenter ip git dpkg-deb flock; do
    command -v $tool >/dev/null || missing="${missing:-} $tool"
done
[ "$(id -u)" -eq 0 ] || missing="${missing:-} root"
if [ -n "${missing:-}" ]; then
    say "skipped, without:$missing (apt-get install mmdebstrap systemd-container util-linux iproute2 git)"
    echo "0 passed, 0 failed, 1 skipped"
    # In CI a skip is a failure.
    [ "${CI:-}" != true ]
    exit
fi
. tests/system/images.sh
. tests/system/hosts.sh

# Ends processes and all that they have begun. A shell that waits for a program handles a signal later.
end_trees() {
    local pid children
    for pid; do
        children=$(pgrep -P "$pid")
        kill -TERM "$pid" 2>/dev/null
        # shellcheck disable=SC2086
        end_trees $children
    done
}

# Each story runs in its own process, which stops its hosts however it ends.
if [ "${1:-}" = --story ]; then
    story=$2
    set -e
    shared=$(mktemp -d)
    netns=''
    trap 'exit 143' TERM INT HUP
    trap 'status=$?; set +e; keep_journals; hosts_down; end_trees $(jobs -p); rm -rf "$shared"; exit $status' EXIT
    chmod 1777 "$shared"
    network_up
    . "tests/system/stories/$story.sh"
    exit
fi

trap 'exit 143' TERM INT HUP
trap 'status=$?; end_trees $(jobs -p); wait; exit $status' EXIT
mkdir -p "$cache"
exec 8>"$cache/lock"
flock 8
preparing=''
for suite in $suites; do
    { make_image "$suite" build && make_package "$suite" 1 >/dev/null; } &
    preparing="$preparing $!"
    make_image "$suite" host &
    preparing="$preparing $!"
done
for p in $preparing; do wait "$p" || failed=yes; done
flock --unlock 8
exec 8>&-
[ -z "${failed:-}" ] || exit 1
[ "${1:-}" != --prepare ] || exit 0
trap 'status=$?; kill -TERM $(jobs -p) 2>/dev/null; wait; exit $status' EXIT # the story ends its own processes
rm -rf "$results" && mkdir -p "$results"
if [ $# -eq 0 ]; then
    for story in tests/system/stories/*.sh; do set -- "$@" "$(basename "$story" .sh)"; done
fi
passed=0 failed=0
for story; do
    begun=$(date +%s)
    mkdir -p "$results/$story"
    timeout --kill-after=60 "${BERTH_SYSTEM_TIMEOUT:-300}" tests/system/check-system.sh --story "$story" \
        >"$results/$story/log" 2>&1 &
    if wait $!; then
        passed=$((passed + 1))
        say "$story: ok ($(($(date +%s) - begun)) s)"
    else
        failed=$((failed + 1))
        say "$story: FAILED ($(($(date +%s) - begun)) s), see $results/$story"
        tail -n 25 "$results/$story/log" | sed 's/^/    /'
        tests/failures.sh "$story" 1 "$results/$story/log" >>"$results/failures"
    fi
done
[ ! -e "$results/failures" ] || cat "$results/failures"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
