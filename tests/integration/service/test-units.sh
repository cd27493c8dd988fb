#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2317 # what check() calls
# Checks the units, sysusers, tmpfiles, presets and the catalog with systemd's own tools.
set -u
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
root=$folder/root

# check NAME COMMAND...: prints the output of a command that fails.
check() {
    local name=$1 out
    shift
    if out=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s\nFAIL: %s\n' "$out" "$name"
    fi
}
finish() {
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$1"
    [ "$failed" -eq 0 ]
    exit
}

if ! command -v systemd-analyze >/dev/null; then
    echo "SKIP: units: there is no systemd here"
    finish 1
fi

installed() {
    make --no-print-directory -s install-units BUILD="$folder/build" DESTDIR="$root" PREFIX=/usr || return
    # Examples are not installed as units, but are tested as such.
    cp conf/examples/systemd/* "$root/usr/lib/systemd/system"
    ! grep -rn '@[A-Z]*@' "$root/usr/lib/systemd/system"
}
# The programs are not installed here, so /bin/true stands in for them.
verified() {
    mkdir -p "$folder/verify"
    for unit in "$root"/usr/lib/systemd/system/*; do
        sed -E 's|^Exec(Start\|Stop\|Reload)=([+-]?)/[^ ]*|Exec\1=\2/bin/true|' "$unit" >"$folder/verify/${unit##*/}"
    done
    out=$(systemd-analyze verify --man=no --recursive-errors=no "$folder"/verify/* 2>&1)
    [ -z "$out" ] || { printf '%s\n' "$out" && false; }
}
score() { # unit, tenths at most
    systemd-analyze security --no-pager --offline=true --threshold="$2" "$root/usr/lib/systemd/system/$1" || return
}
# Each line that restricts the service has a comment before it, or before its group of lines.
explained() {
    awk '/^\[/ { section = $0 } /^#/ { commented = 1 } /^$/ { commented = 0 }
        (section == "[Service]" || section == "[Socket]" || section == "[Timer]") && /^[A-Z]/ && !commented && !/^(Type|Restart|RestartSec|ExecStart|NotifyAccess|User|Group)=/ {
            print FILENAME ": " $0; bad = 1 }
        END { exit bad }' "$root/usr/lib/systemd/system/$1"
}
# has UNIT LINE...: what bounds a service that hangs or is attacked.
has() {
    unit=$root/usr/lib/systemd/system/$1 && shift
    for line; do grep -q "^$line" "$unit" || { echo "no $line" && return 1; }; done
}
user_made() {
    mkdir -p "$root/etc" && : >"$root/etc/passwd" && : >"$root/etc/group"
    systemd-sysusers --root="$root" && grep -q '^berth:' "$root/etc/passwd" && grep -q '^berth:' "$root/etc/group" &&
        grep -q '^berth-admin:' "$root/etc/group"
}
# Only root can create directories of other users.
directories_made() {
    [ "$(id -u)" -eq 0 ] || return 0
    mkdir -p "$root/run"
    berth=$(awk -F: '$1 == "berth" { print $3 }' "$root/etc/passwd")
    systemd-tmpfiles --root="$root" --create --prefix=/run/berth || return
    systemd-tmpfiles --root="$root" --create --prefix=/run/berth || return # an upgrade does it again
    owned /run/berth 755 0 && owned /run/berth/runner 711 0 && owned /run/berth/runner/runs 711 0 &&
        owned /run/berth/runner/credentials 711 0 || return
    for own in holds waiting jobs state; do owned "/run/berth/$own" 700 "$berth" || return; done
    owned /run/berth/lock 600 "$berth" || return
    # An earlier version made this directory writable for berthd.
    chmod 1777 "$root/run/berth"
    systemd-tmpfiles --root="$root" --create --prefix=/run/berth || return
    owned /run/berth 755 0
}
owned() { # PATH MODE UID
    [ "$(stat -c '%a %u' "$root$1")" = "$2 $3" ] || { stat "$root$1" && false; }
}
preset() {
    systemctl --root="$root" preset berthd.service berthd.socket berthd-look.socket berth-runner.service berth-runner.socket berth-metrics.timer || return
    ! [ -e "$root/etc/systemd/system/timers.target.wants" ] || { echo "a timer is enabled" && return 1; }
    wanted multi-user.target berthd.service && wanted multi-user.target berth-runner.service &&
        wanted sockets.target berthd.socket && wanted sockets.target berthd-look.socket && wanted sockets.target berth-runner.socket
}
wanted() {
    [ -h "$root/etc/systemd/system/$1.wants/$2" ] || { echo "$1 does not want $2" && false; }
}
# The programs look for these names and places (daemon/main.c, runner/main.c).
sockets() {
    units=$root/usr/lib/systemd/system
    grep -qx 'FileDescriptorName=control' "$units/berthd.socket" && grep -qx 'FileDescriptorName=runner' "$units/berth-runner.socket" &&
        grep -qx 'ListenStream=/run/berth/control.sock' "$units/berthd.socket" &&
        grep -qx 'ListenSequentialPacket=/run/berth/runner/runner.sock' "$units/berth-runner.socket" &&
        grep -qx 'FileDescriptorName=look' "$units/berthd-look.socket" &&
        grep -qx 'ListenStream=/run/berth/look.sock' "$units/berthd-look.socket" &&
        grep -qx 'Service=berthd.service' "$units/berthd-look.socket" &&
        grep -q 'descriptor_names\[\] = {"control", "look"};' daemon/main.c &&
        grep -q '^#define SOCKET_NAME "runner"' runner/main.c
}
# root moves the file that berth-metrics writes, atomically, to the folder that node-exporter reads.
metrics_moved() {
    service=$root/usr/lib/systemd/system/berth-metrics.service
    written=$(sed -n 's/^ExecStart=.* --output //p' "$service") moved=$(sed -n 's/^ExecStopPost=+.* -T //p' "$service")
    folder_read=$(sed -n 's/^ConditionPathIsDirectory=//p' "$service")
    [ "$moved" = "$written $folder_read/berth.prom" ] && [ "$written" = "%S/$(sed -n 's/^StateDirectory=//p' "$service")/berth.prom" ]
}
catalog() {
    journalctl --root="$root" --update-catalog &&
        [ "$(journalctl --root="$root" --list-catalog | grep -c ' berth: ')" -eq "$(grep -c '^-- ' units/berth.catalog)" ]
}

check "install-units" installed
check "systemd-analyze verify" verified
check "berthd.service: exposure above 1.5" score berthd.service 15
check "berth-runner.service: exposure above 6.4" score berth-runner.service 64 # 0.3 of it: CAP_SYS_PTRACE, for frozen `berth run`
check "berth-metrics.service: exposure above 0.8" score berth-metrics.service 8
check "berthd.service: bounds" has berthd.service LogRateLimitIntervalSec=30s LogRateLimitBurst= MemoryMax= TasksMax= LimitCORE=0 WatchdogSec= '#   IPAddressDeny=any'
check "berth-runner.service: bounds" has berth-runner.service LimitCORE=0 WatchdogSec=
check "berthd.service: lines without a reason" explained berthd.service
check "berth-runner.service: lines without a reason" explained berth-runner.service
check "berthd.socket: lines without a reason" explained berthd.socket
check "berthd-look.socket: lines without a reason" explained berthd-look.socket
check "berth-runner.socket: lines without a reason" explained berth-runner.socket
check "berth-metrics.service: lines without a reason" explained berth-metrics.service
check "berth-metrics.timer: lines without a reason" explained berth-metrics.timer
check "berth-metrics.service: the file" metrics_moved
check "sysusers" user_made
check "tmpfiles" directories_made
check "preset" preset
check "sockets" sockets
check "catalog" catalog
finish 0
