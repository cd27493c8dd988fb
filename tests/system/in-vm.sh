#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs story 8-bounds in a virtual machine of each Debian. Where this machine's cgroup controllers belong to
# cgroup v1, its containers have none, so the story cannot check memory-max, cpu-weight and tasks-max there.
# The image of a host is the initial file system of the machine. qemu runs it with Debian's kernel and
# without KVM, three minutes each. Arguments: Debians. Needs root, qemu-system-x86, cpio and what
# check-system.sh needs. Ends with "N passed, N failed, N skipped".
# shellcheck disable=SC2154,SC2034,SC2317,SC1090 # variables and a story of files that are sourced
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
cache=${BERTH_SYSTEM_CACHE:-/var/cache/berth-system}
packages=$cache/packages
results=$PWD/build/system/in-vm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache" "$results"
say() {
    echo "in-vm: $*" >&2
}
. tests/system/images.sh

for tool in qemu-system-x86_64 cpio mmdebstrap systemd-nspawn; do
    command -v $tool >/dev/null || {
        say "skipped, without $tool (apt-get install qemu-system-x86 cpio mmdebstrap systemd-container)"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    }
done

# Prints the path of Debian's kernel for cloud machines. It is small, and its console is a serial line.
kernel() {
    local name
    name=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-\)/\1/p' | head -n 1)
    [ -f "$cache/$name" ] || (
        cd "$work"
        apt-get -qq download "$name" 2>/dev/null
        dpkg-deb -x "$name"_*.deb kernel
        cp kernel/boot/vmlinuz-* "$cache/$name"
    ) >&2
    echo "$cache/$name"
}

# Saves the story's script for the machine instead of running it.
suites=''
each_up() { :; }
script_each() {
    cat tests/system/on-host.sh - >"$work/story"
}
. tests/system/stories/8-bounds.sh

in_vm() { # SUITE
    local suite=$1 included downloads image tree=$work/tree
    make_image "$suite" build
    make_image "$suite" host
    image "$suite" host
    rm -rf "$tree"
    cp -a "$image" "$tree"
    cp "$(make_package "$suite" 1 | tail -n 1)" "$tree/root/berth.deb"
    cp "$work/story" "$tree/root/story"
    cat >"$tree/root/all" <<'END'
exec >/dev/ttyS0 2>&1
export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
ip link set lo up
apt-get -qq -y install /root/berth.deb >/root/apt 2>&1 || cat /root/apt
bash -eu /root/story
echo "the story exits with $?"
systemctl poweroff --force --force
END
    printf '%s\n' '[Service]' 'Type=oneshot' 'ExecStart=/bin/bash /root/all' '[Install]' 'WantedBy=multi-user.target' \
        >"$tree/etc/systemd/system/story.service"
    ln -s ../story.service "$tree/etc/systemd/system/multi-user.target.wants/"
    (cd "$tree" && find . | cpio --quiet -o -H newc >"$work/initrd")
    timeout 900 qemu-system-x86_64 -accel tcg,thread=multi -smp 2 -m 3G -nographic -no-reboot -kernel "$(kernel)" -initrd "$work/initrd" \
        -append 'console=ttyS0 rdinit=/sbin/init systemd.unified_cgroup_hierarchy=1 quiet' >"$results/$suite.log" 2>&1 </dev/null || :
    tr -d '\r' <"$results/$suite.log" | grep -x 'the story exits with 0' && grep '^controllers: yes' "$results/$suite.log"
}

passed=0 failed=0
[ $# -gt 0 ] || set -- trixie bookworm
for suite; do
    if (in_vm "$suite"); then passed=$((passed + 1)); else
        failed=$((failed + 1))
        say "$suite: FAILED, see $results/$suite.log"
        tail -n 25 "$results/$suite.log"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
