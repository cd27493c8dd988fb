# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# memory-max, cpu-weight and tasks-max are in force where the kernel has the controllers; elsewhere
# berth-runner logs that they are not. systemd can restart berth-runner while cgroups of runs exist:
# version 252 is critical.

each_up
script_each <<'END'
    useradd --create-home worker
    mkfifo -m 666 /run/go
    cat >/etc/berth/berth.conf.d/bounds.conf <<'CONF'
job "bounded" {
    command = {"/bin/sh", "-c", "read x </run/go; exit 3"}
    user = "worker"
    memory-max = "64M"
    cpu-weight = 50
    tasks-max = 16
}
job "greedy" { command = {"/bin/sh", "-c", "exec tail /dev/zero"}  user = "worker"  memory-max = "32M" }
job "forks" { command = {"/bin/sh", "-c", "for n in 1 2 3 4 5 6 7 8; do sleep 7401 & done; wait"}  user = "worker"  tasks-max = 4  timeout = "2s" }
CONF
    systemctl reload berthd.service
    service=/sys/fs/cgroup/berth.slice/berth-runner.service
    berth start bounded
    await pgrep -f '^/bin/sh -c read x </run/go'
    job=$(pgrep -f '^/bin/sh -c read x </run/go')
    group=/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$job/cgroup")
    case $group in $service/?*) ;; *) fail "its group is $group" ;; esac
    controllers=no
    if grep -qw memory "$service/cgroup.controllers" && grep -qw cpu "$service/cgroup.controllers" && grep -qw pids "$service/cgroup.controllers"; then
        controllers=yes
    fi
    echo "controllers: $controllers ($(cat "$service/cgroup.controllers"))"
    in_force() {
        [ $controllers = yes ] || return 0
        [ "$(cat "$group/memory.max") $(cat "$group/cpu.weight") $(cat "$group/pids.max")" = "67108864 50 16" ] || fail "$1: not in force"
    }
    in_force start
    # berth-runner restarts repeatedly while cgroups of its runs exist, however it ended.
    for how in restart kill restart; do
        old=$(pid berth-runner.service)
        if [ $how = kill ]; then kill -9 "$old"; else systemctl restart berth-runner.service; fi
        await sh -c "[ \"\$(systemctl show -P MainPID berth-runner.service)\" != $old ] && [ \"\$(systemctl is-active berth-runner.service)\" = active ]"
        [ -d "/proc/$job" ] || fail "$how: the job is gone"
        await sh -c 'berth runs | grep -q "bounded.*running"'
        in_force "$how"
    done
    systemctl stop berth-runner.socket berth-runner.service
    [ -d "/proc/$job" ] || fail "stop of berth-runner: the job is gone"
    systemctl start berth-runner.service
    await sh -c 'berth runs | grep -q "bounded.*running"'
    in_force stop
    echo >/run/go
    await sh -c '[ "$(journalctl -q -t berthd -o cat --output-fields=BERTH_EXIT_CODE BERTH_EVENT=exited BERTH_JOB=bounded)" = 3 ]'
    await sh -c "! [ -d $group ]"
    if [ $controllers = yes ]; then
        exits 137 berth start --wait greedy
        exits 124 berth start --wait forks
        journalctl -q -t forks -o cat | grep -qi 'fork' || fail "forks was not bounded"
    else
        # berth-runner logs the missing bounds of each run by name.
        journalctl -q -t berth-runner -o cat | grep -x 'bounded runs without the bounds that its config asks for: no cgroup controller here for cpu, memory, pids'
    fi
    active berthd.service && active berth-runner.service
    # journald drops none of berthd's events, also where it accepts few.
    mkdir -p /etc/systemd/journald.conf.d
    printf '[Journal]\nRateLimitIntervalSec=1h\nRateLimitBurst=1\n' >/etc/systemd/journald.conf.d/few.conf
    systemctl restart systemd-journald.service
    for n in $(seq 30); do berth run -p heavy --name many -- true; done
    all_exited() { journalctl --sync && [ "$(events exited BERTH_JOB=many)" = 30 ]; }
    await all_exited
END
for suite in $suites; do
    # A kernel without the controllers is no failure: LEGAL SKIP in the log.
    on "$suite" grep -qw memory /sys/fs/cgroup/berth.slice/cgroup.controllers ||
        echo "LEGAL SKIP on $suite: no cgroup controllers on this machine; tests/system/in-vm.sh tests the bounds"
done
