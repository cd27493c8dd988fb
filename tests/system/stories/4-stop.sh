# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# A stop of berthd stops all processes of its runs within their stop timeouts. So does a shutdown of the
# host. A stop of a frozen `berth run` stops its command.

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
    stop-timeout = "3s"
}
job "polite" {
    command = {"/bin/sh", "-c", "trap 'echo goodbye; echo $BERTH_HOST >>/shared/goodbye; exit 0' TERM; sleep 7104 & wait"}
    pools = {"two"}
    user = "worker"
}
CONF
    # less than the jobs need: berthd extends it
    mkdir -p /etc/systemd/system/berthd.service.d
    printf '[Service]\nTimeoutStopSec=1s\n' >/etc/systemd/system/berthd.service.d/short.conf
    systemctl daemon-reload
    systemctl reload berthd.service
    berth start stubborn polite
    await sh -c '[ "$(pgrep -fc "^sleep 710")" -ge 4 ]'
    cgroups=$(find /sys/fs/cgroup/berth.slice/berth-runner.service -mindepth 1 -type d | wc -l)
    [ "$cgroups" -ge 2 ] || fail "no cgroup for each run"

    # a restart first leaves them alone
    systemctl restart berthd.service
    [ "$(pgrep -fc '^sleep 710')" -ge 4 ] || fail "a restart stopped them"
    await sh -c '[ "$(systemctl show -P StatusText berthd.service)" = "2 running, 0 waiting" ]'

    # drained: running jobs go on, and no job starts, also after a restart
    berth drain
    systemctl restart berthd.service
    exits 75 berth start polite
    says 'this host is drained'
    exits 75 berth run -p heavy -- true
    [ "$(pgrep -fc '^sleep 710')" -ge 4 ] || fail "drain stopped them"
    await sh -c '[ "$(systemctl show -P StatusText berthd.service)" = "Drained; 2 running, 0 waiting" ]'
    berth undrain
    exits 0 berth run -p heavy -- true

    # the command of a user's frozen `berth run`: berth-runner finds it in the sandbox of its unit
    useradd --groups berth ann
    runuser -u ann -- berth run -p heavy --name frozen --stop-timeout 1s -- sh -c 'trap "" TERM; sleep 7201; sleep 7201' &
    await pgrep -f '^sleep 7201'
    pkill -STOP -u ann -x berth
    berth stop frozen
    await sh -c '! pgrep -f "^sleep 7201"'
    pkill -CONT -u ann -x berth
    wait $! || [ $? -eq 137 ] || fail "the frozen berth run: exit status $?"
    await sh -c '! berth runs | grep -q frozen'

    begun=$(date +%s%N)
    systemctl stop berthd.service
    took=$((($(date +%s%N) - begun) / 1000000))
    echo "the stop took $took ms"
    [ "$took" -ge 3000 ] && [ "$took" -lt 7000 ] || fail "the stop took $took ms"
    [ "$(systemctl show -P Result berthd.service)" = success ] || fail "the stop was cut short: $(systemctl show -P Result berthd.service)"
    not pgrep -f '^sleep 710'
    journalctl -q -t polite -o cat | grep -x goodbye
    [ "$(events exited BERTH_POOLS=two:1)" -eq 2 ] && [ "$(events released BERTH_POOLS=two:1)" -eq 2 ] || fail "not two ends and releases"
    await sh -c '[ -z "$(find /sys/fs/cgroup/berth.slice/berth-runner.service -mindepth 1 -type d)" ]'
    systemctl start berthd.service
    berth pools two

    # drain --wait waits for the end of the last run
    berth start polite
    await pgrep -f '^sleep 7104'
    berth drain --wait &
    draining=$!
    await sh -c 'systemctl show -P StatusText berthd.service | grep -q Drained'
    [ -d /proc/$draining ] || fail "drain --wait does not wait"
    berth stop polite
    wait $draining || fail "drain --wait fails"
    berth undrain

    # the shutdown of the host stops the next run
    berth start polite
    await pgrep -f '^sleep 7104'
END
for suite in $suites; do
    on "$suite" systemctl poweroff || : # fails without logind, but works
done
# The first process of the container ends with its systemd.
for suite in $suites; do
    for ((n = 0; n < 300; n++)); do
        [ -d "/proc/${host_pid[$suite]}" ] || break
        read -rt 0.1 <> <(:) || :
    done
    [ "$n" -lt 300 ] || fail "$suite does not go down"
    echo "$suite was down after $((n / 10)) s"
    unset "host_pid[$suite]"
    [ "$(grep -cx "$suite" "$shared/goodbye")" -eq 3 ] || fail "the job on $suite was not stopped in order at shutdown"
done
