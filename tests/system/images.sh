# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2086
# Images of Debian, made once by mmdebstrap and kept in $cache, and the packages under test, built in them. Sourced.
#
#   $cache/SUITE-host-*    a small system. The dependencies of berth are in apt's cache, but not installed:
#                          apt resolves and installs them without a network, as it would with one
#   $cache/SUITE-build-*   with all that building berth needs

mirror=${BERTH_SYSTEM_MIRROR:-http://deb.debian.org/debian}
host_packages="systemd systemd-sysv iproute2 procps sudo man-db libcap2-bin"
build_packages="build-essential debhelper libconfuse-dev libcunit1-dev libhiredis-dev libjansson-dev libsmartcols-dev libmicrohttpd-dev libssl-dev
    libsystemd-dev openssl pkgconf redis-tools rpm scdoc"

runtime_packages() { # SUITE: the packages in apt's cache
    case $1 in
    bookworm) echo libconfuse2 libhiredis0.14 libjansson4 libmicrohttpd12 libsmartcols1 redis-server rpm ;;
    trixie) echo libconfuse2 libhiredis1.1.0 libjansson4 libmicrohttpd12t64 libsmartcols1 redis-server valkey-server systemd-journal-remote ;;
    esac
}

# image SUITE host|build: sets $included, $downloads (for apt's cache) and $image, the path. The path has a
# hash of the ingredients, so that trees with other ingredients use another image.
image() {
    included=$build_packages downloads=''
    case $2-$1 in
    host-*) included=$host_packages downloads=$(runtime_packages "$1") ;;
    build-bookworm) included="$included systemd" ;;
    *) included="$included systemd-dev" ;;
    esac
    image=$cache/$1-$2-$(echo "$mirror $included $downloads 3" | sha256sum | cut -c 1-16)
}

# make_image SUITE host|build
make_image() {
    local suite=$1 kind=$2 included downloads image old
    image "$suite" "$kind"
    if [ -e "$image.made" ]; then
        touch "$image.made" # so that it is not removed
        return
    fi
    find "$cache" -maxdepth 1 -name "$suite-$kind-*.made" -mtime +14 | while read -r old; do rm -rf "${old%.made}" "$old"; done
    say "making the image $suite-$kind"
    rm -rf "$image"
    mkdir -p "$cache"
    mmdebstrap --quiet --mode=root --variant=minbase --skip=cleanup/apt \
        --aptopt='APT::Install-Recommends "false"' --aptopt='Binary::apt::APT::Keep-Downloaded-Packages "true"' \
        --include="$(echo $included | tr ' ' ',')" \
        ${downloads:+--customize-hook="chroot \"\$1\" apt-get -qq -y install --download-only $downloads"} \
        "$suite" "$image" "$mirror" >"$image.log" 2>&1 || {
        tail -n 20 "$image.log" >&2
        return 1
    }
    # A new machine id and name at each boot.
    : >"$image/etc/machine-id"
    rm -f "$image/etc/hostname" "$image/etc/resolv.conf"
    touch "$image.made"
}

# make_package SUITE REVISION: prints the path of the .deb of the commit. A revision above 1 is the same
# package with a higher number, so that apt upgrades to it.
make_package() {
    local suite=$1 revision=$2 version commit out
    version=$(sed -n '1s/^berth \([^ ]*\).*/\1/p' NEWS.md)
    commit=$(git rev-parse --short HEAD)
    out=$cache/packages/$commit-$suite
    if ! ls "$out/berth_$version-$revision"_*.deb 2>/dev/null; then
        if [ "$revision" -gt 1 ]; then
            rebuild_package "$out" "$version-1" "$version-$revision" || return
        else
            build_package || return
        fi
        ls "$out/berth_$version-$revision"_*.deb
    fi
}

build_package() {
    say "building berth $version-$revision of $commit for $suite"
    built deb --setenv=DEB_REVISION="$revision"
}

# make_rpm SUITE RELEASE: the same for the .rpm; each release is built.
make_rpm() {
    local suite=$1 version commit out
    version=$(sed -n '1s/^berth \([^ ]*\).*/\1/p' NEWS.md)
    commit=$(git rev-parse --short HEAD)
    out=$cache/packages/$commit-$suite-rpm-$2
    ls "$out/berth-$version-$2".*.rpm 2>/dev/null || { built rpm --setenv=RPM_RELEASE="$2" && ls "$out/berth-$version-$2".*.rpm; }
}

built() { # deb|rpm OPTION...: builds packages of the commit with packaging/build-*.sh, into $out
    local kind=$1 included downloads image
    shift
    image "$suite" build
    mkdir -p "$out"
    git archive HEAD >"$out/source.tar"
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn --quiet --directory="$image" --volatile=overlay \
        --register=no --keep-unit --private-network --bind="$out:/out" "$@" --chdir=/out \
        -- sh -c "mkdir /tmp/berth && tar -x -C /tmp/berth -f source.tar packaging && \
            /tmp/berth/packaging/build-$kind.sh $version /out /out/source.tar" </dev/null >"$out/log" 2>&1 || {
        tail -n 30 "$out/log" >&2
        return 1
    }
}

rebuild_package() { # FOLDER OLD NEW
    local tree
    tree=$(mktemp -d)
    dpkg-deb --raw-extract "$1/berth_$2"_*.deb "$tree/berth" && sed -i "s/^Version: .*/Version: $3/" "$tree/berth/DEBIAN/control" &&
        dpkg-deb --root-owner-group -Zxz --build "$tree/berth" "$1" >/dev/null
    rm -rf "$tree"
    ls "$1/berth_$3"_*.deb >/dev/null
}
