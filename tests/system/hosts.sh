# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2086,SC2034
# Hosts: systemd-nspawn containers with addresses on one bridge, in a network namespace without other links.
# Sourced.

subnet=10.77.7
declare -A host_pid=() nspawn_pid=() host_address=() host_suite=()

network_up() {
    netns=berth-system-$$
    ip netns add "$netns"
    ip -n "$netns" link add br0 type bridge
    ip -n "$netns" addr add $subnet.254/24 dev br0
    ip -n "$netns" link set br0 up
    ip -n "$netns" link set lo up
}

# boot NAME SUITE: starts a host. await_boot NAME...: waits until all units of the hosts are up.
boot() {
    local name=$1 suite=$2 group included downloads image
    image "$suite" host
    host_address[$name]=$subnet.$((${#host_address[@]} + 1))
    host_suite[$name]=$suite
    # Without own cgroups, all containers would share that of this process.
    for group in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
        [ -f $group/cgroup.procs ] && mkdir -p "$group/berth-system-$$-$name"
    done
    mkdir -p "$results/$story" "$shared/journals/$name"
    (
        for group in /sys/fs/cgroup/{.,unified,systemd}/"berth-system-$$-$name"; do
            [ -d "$group" ] && echo $BASHPID >"$group/cgroup.procs"
        done
        export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
        exec nsenter --net="/run/netns/$netns" systemd-nspawn --quiet --directory="$image" --boot --volatile=overlay \
            --register=no --keep-unit --machine="$name" --hostname="$name" --network-bridge=br0 --resolv-conf=off \
            --link-journal=no --bind-ro="$packages:/packages" --bind="$shared:/shared" \
            --bind="$shared/journals/$name:/var/log/journal" </dev/null
    ) >"$results/$story/$name.console" 2>&1 &
    nspawn_pid[$name]=$!
}

await_boot() {
    local name n
    for name in "$@"; do
        for ((n = 0; n < 300; n++)); do
            host_pid[$name]=$(cat "/proc/${nspawn_pid[$name]}/task/${nspawn_pid[$name]}/children" 2>/dev/null)
            host_pid[$name]=${host_pid[$name]%% *}
            [ -n "${host_pid[$name]}" ] && on "$name" test -S /run/systemd/private 2>/dev/null && break
            read -rt 0.1 <> <(:) || : # there is no event outside when systemd begins to listen
        done
        on "$name" systemctl is-system-running --wait >/dev/null || {
            on "$name" systemctl --failed --no-legend
            fail "$name did not come up"
        }
        on "$name" ip link set host0 up
        on "$name" ip addr add "${host_address[$name]}/24" dev host0
    done
    for name in "${!host_address[@]}"; do
        for other in "$@"; do on "$other" sh -c "echo ${host_address[$name]} $name >>/etc/hosts"; done
    done
}

# on NAME COMMAND...: runs a command as root on a host, in its own cgroup there.
on() {
    local name=$1 group
    shift
    (
        for group in /sys/fs/cgroup/{.,unified}/"berth-system-$$-$name"/payload; do
            [ -d "$group" ] || continue
            mkdir -p "$group/story"
            echo $BASHPID >"$group/story/cgroup.procs"
        done
        exec nsenter --target "${host_pid[$name]}" --all env -i --chdir=/ PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            LANG=C.UTF-8 TERM=dumb NO_COLOR=1 "$@"
    )
}
# script NAME: runs a script from standard input on a host, with the functions of on-host.sh.
script() {
    cat tests/system/on-host.sh - | on "$1" bash -eu -s
}

# install_berth NAME [REVISION]: installs the package with apt.
install_berth() {
    local deb
    deb=$(make_package "${host_suite[$1]}" "${2:-1}") || fail "no package for ${host_suite[$1]}"
    on "$1" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install "/packages/${deb#"$packages"/}" \
        >"$results/$story/$1.apt" 2>&1 || {
        cat "$results/$story/$1.apt"
        fail "apt does not install the package on $1"
    }
}

# up NAME...: waits until the hosts are up and installs berth on each.
up() {
    local name pids='' pid
    await_boot "$@"
    for name in "$@"; do
        install_berth "$name" &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid" || exit 1; done
}
# each_up: boots a host of each Debian, with the name of the suite.
each_up() {
    local suite
    for suite in $suites; do boot "$suite" "$suite"; done
    up $suites
}
# script_each: runs script() on all of these in parallel, and prints the outputs one after the other.
script_each() {
    local text suite failed=''
    local -A pids=()
    text=$(cat)
    for suite in $suites; do
        script "$suite" <<<"$text" >"$results/$story/$suite.output" 2>&1 &
        pids[$suite]=$!
    done
    for suite in $suites; do
        wait "${pids[$suite]}" || failed="$failed $suite"
        sed "s/^/$suite: /" "$results/$story/$suite.output"
    done
    [ -z "$failed" ] || fail "the script fails on$failed"
}

# redis_installed NAME: installs Redis and Valkey, but masks their services, which listen on loopback. A
# story starts its own server on the bridge.
redis_installed() {
    on "$1" systemctl mask redis-server.service valkey-server.service
    on "$1" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install redis-server valkey-server >"$results/$story/$1.apt" 2>&1
    cp packaging/redis.acl "$shared/"
}
# redis_serve NAME redis|valkey: starts a server for one user: berth, with the password "secret".
redis_serve() {
    script "$1" <<END
        printf '%s\n' 'port 6379' 'bind * -::*' 'dir /tmp' 'save ""' 'daemonize yes' 'aclfile /tmp/users.acl' >/tmp/server.conf
        echo 'user default off' >/tmp/users.acl
        sed -n 's/^user berth.*/& >secret/p' /shared/redis.acl >>/tmp/users.acl
        $2-server /tmp/server.conf
        await sh -c '$2-cli --user berth --pass secret --no-auth-warning info server >/dev/null'
END
}

# Saves the journal of each host, also of one that is down.
keep_journals() {
    local name
    for name in "${!host_address[@]}"; do
        [ -z "${host_pid[$name]:-}" ] || on "$name" journalctl --sync 2>/dev/null
        journalctl --no-pager --directory "$shared/journals/$name" -o short-precise >"$results/$story/$name.journal" 2>/dev/null
        journalctl --no-pager --directory "$shared/journals/$name" -o export -t berthd >"$results/$story/$name.export" 2>/dev/null
    done
}

hosts_down() {
    local name group
    # When the first process of a host ends, the kernel kills the others, and systemd-nspawn ends.
    for name in "${!host_pid[@]}"; do [ -z "${host_pid[$name]}" ] || kill -KILL "${host_pid[$name]}" 2>/dev/null; done
    for group in /sys/fs/cgroup/{.,unified,systemd}/"berth-system-$$-"*; do
        [ -d "$group" ] || continue
        [ ! -f "$group/cgroup.kill" ] || echo 1 >"$group/cgroup.kill"
        for _ in $(seq 100); do
            find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
            [ -d "$group" ] || break
            read -rt 0.05 <> <(:) || :
        done
    done
    for name in "${!nspawn_pid[@]}"; do wait "${nspawn_pid[$name]}" 2>/dev/null; done
    ip netns del "$netns" 2>/dev/null
}
