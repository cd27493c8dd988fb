#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs with apt what building and testing need and is missing; says what it does first. Of Redis it takes redis-tools, not
# redis-server: the server is in there, too (redis-check-rdb is it, when called redis-server), and no service comes with it that
# would start on port 6379 now or at the next boot.
set -eu
packages="gcc make pkg-config libc6-dev libsystemd-dev libhiredis-dev libconfuse-dev libjansson-dev libsmartcols-dev
    libcunit1-dev redis-tools scdoc systemd-journal-remote iproute2 nftables"
# What boots real systemd in containers (make check-system); linters, and shells whose completions are tested where they are there.
[ "${SYSTEM_DEPS:-}" = yes ] && packages="$packages mmdebstrap systemd-container iproute2 git"
[ "${LINT_DEPS:-}" = yes ] && packages="$packages clang libclang-rt-dev clang-tidy cppcheck shellcheck zsh fish"

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    missing=
    for p in libsystemd hiredis libconfuse jansson smartcols cunit; do
        pkg-config --exists "$p" 2>/dev/null || missing="$missing $p"
    done
    command -v redis-server >/dev/null || command -v valkey-server >/dev/null || command -v redis-check-rdb >/dev/null ||
        missing="$missing redis-server"
    [ -z "$missing" ] && exit 0
    echo "make deps: this is not Debian or Ubuntu. Install these, with their development files:$missing" >&2
    exit 1
fi

missing=
for p in $packages; do
    case $(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) in
    *"ok installed") ;;
    *) missing="$missing $p" ;;
    esac
done
[ -z "$missing" ] && exit 0

sudo=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "make deps: needs root to install:$missing" >&2
        exit 1
    }
    sudo=sudo
fi
echo "make deps: ${sudo:+sudo }apt-get install --no-install-recommends$missing" >&2
$sudo apt-get update -qq
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
