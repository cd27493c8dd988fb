#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs missing packages for building and testing with apt, and prints the command first. PACKAGE=deb or PACKAGE=rpm: those for building
# that package. redis-tools has the server, too (redis-check-rdb, called as redis-server), without a service that would start on port 6379.
set -eu
packages="gcc make pkg-config libc6-dev libsystemd-dev libhiredis-dev libconfuse-dev libjansson-dev libsmartcols-dev libmicrohttpd-dev
    libssl-dev openssl libcunit1-dev redis-tools scdoc systemd-journal-remote iproute2 nftables
    python3-croniter python3-jsonschema python3-prometheus-client tzdata jq"
# For systemd in containers (make check-system); for linters, spin (make prove) and the shells whose completions are tested.
[ "${SYSTEM_DEPS:-}" = yes ] && packages="$packages mmdebstrap systemd-container iproute2 git"
[ "${LINT_DEPS:-}" = yes ] && packages="$packages clang libclang-rt-dev clang-tidy cppcheck shellcheck zsh fish spin"
# Only for `.ci/run full`: the page of berth-web in a browser (tests/page; its pictures have these fonts), promtool, and the proxies of
# web/proxy. Some of these packages start a service.
[ "${PAGE_DEPS:-}" = yes ] && packages="$packages chromium fonts-dejavu-core prometheus nginx caddy apache2-bin"
# The package nodejs of nodesource.com has npm itself, and conflicts with Debian's package npm.
[ "${PAGE_DEPS:-}" != yes ] || command -v npm >/dev/null || packages="$packages nodejs npm"
case ${PACKAGE:-} in
deb) packages="dpkg-dev git" ;; # the rest is in debian/control, below
rpm) packages="rpm git gcc make pkg-config libc6-dev libsystemd-dev libhiredis-dev libconfuse-dev libjansson-dev libsmartcols-dev libmicrohttpd-dev libssl-dev scdoc" ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    [ -z "${PACKAGE:-}" ] || exit 0 # its own tools say what they lack
    missing=
    for p in libsystemd hiredis libconfuse jansson smartcols libmicrohttpd openssl cunit; do
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

sudo=
updated=
# install WHAT-FOR-PEOPLE APT-GET-WORDS...
install() {
    what=$1
    shift
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            echo "make deps: needs root to install: $what" >&2
            exit 1
        }
        sudo=sudo
    fi
    echo "make deps: ${sudo:+sudo }apt-get $*" >&2
    [ -n "$updated" ] || $sudo apt-get update -qq
    updated=yes
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -y -qq "$@" >&2
}

# shellcheck disable=SC2086
[ -z "$missing" ] || install "$missing" install --no-install-recommends $missing
if [ "${PACKAGE:-}" = deb ] && ! unmet=$(dpkg-checkbuilddeps packaging/debian/control 2>&1); then
    install "$unmet" build-dep --no-install-recommends ./packaging
fi
