# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# A stop of berthd stops its runs, in their stop timeouts, with all that they left behind; so does the end of the host.

each_up
script_each <<'END'
    useradd --create-home worker
    cat >/etc/berth/berth.conf.d/stop.conf <<'CONF'
pool "two" { limit = 2 scope = "host" }
# forks twice, leaves its session, ignores TERM
job "stubborn" {
    command = {"/bin/sh", "-c", "trap '' TERM; (setsid setsid sleep 7101 & sleep 7102 & wait) & sleep 7103 & wait"}
    pools = {"two"}
    user = "worker"
    stop-timeout = "1s"
}
job "polite" {
    command = {"/bin/sh", "-c", "trap 'echo goodbye; uname -n >>/shared/goodbye; exit 0' TERM; sleep 7104 & wait"}
    pools = {"two"}
    user = "worker"
}
CONF
    systemctl reload berthd.service
    berth start stubborn polite
    await sh -c '[ "$(pgrep -fc "^sleep 710")" -ge 4 ]'
    cgroups=$(find /sys/fs/cgroup/berth.slice/berth-runner.service -mindepth 1 -type d | wc -l)
    [ "$cgroups" -ge 2 ] || fail "no cgroup for each run"

    # a restart first: nothing happens to them
    systemctl restart berthd.service
    [ "$(pgrep -fc '^sleep 710')" -ge 4 ] || fail "a restart stopped them"

    begun=$(date +%s%N)
    systemctl stop berthd.service
    took=$((($(date +%s%N) - begun) / 1000000))
    echo "the stop took $took ms"
    [ "$took" -lt 5000 ] || fail "the stop took $took ms"
    not pgrep -f '^sleep 710'
    journalctl -q -t polite -o cat | grep -x goodbye
    [ "$(events exited)" -eq 2 ] && [ "$(events released)" -eq 2 ] || fail "exited $(events exited), released $(events released)"
    await sh -c '[ -z "$(find /sys/fs/cgroup/berth.slice/berth-runner.service -mindepth 1 -type d)" ]'
    systemctl start berthd.service
    berth pools two

    # the next one is stopped with the host
    berth start polite
    await pgrep -f '^sleep 7104'
END
for suite in $suites; do
    on "$suite" systemctl poweroff || : # it says that there is no logind
done
# The container ends when its host has.
for suite in $suites; do
    for ((n = 0; n < 300; n++)); do
        [ -d "/proc/${host_pid[$suite]}" ] || break
        read -rt 0.1 <> <(:) || :
    done
    [ "$n" -lt 300 ] || fail "$suite does not go down"
    echo "$suite was down after $((n / 10)) s"
    unset "host_pid[$suite]"
    [ "$(grep -cx "$suite" "$shared/goodbye")" -eq 2 ] || fail "the job on $suite was not stopped in order at shutdown"
done
