# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2086,SC2016
# Ten runs on each host, jobs and `berth run`, outlive restarts and kills of the services, a berthd that
# hangs, and an upgrade of the package. Each exits with its own status.

pids=''
each_up
for suite in $suites; do
    script "$suite" <<'END'
        mkfifo /run/go && chmod 666 /run/go
        {
            echo 'pool "ten" { limit = 10 scope = "host" }'
            for n in 1 2 3 4 5; do
                echo "job \"job-$n\" { command = {\"/bin/sh\", \"-c\", \"read x </run/go-$n; exit 4$n\"} pools = {\"ten\"} user = \"nobody\" }"
                mkfifo -m 666 "/run/go-$n" "/run/go-$((n + 5))"
            done
        } >/etc/berth/berth.conf.d/ten.conf
        # a shorter watchdog, to save time
        mkdir -p /etc/systemd/system/berthd.service.d
        printf '[Service]\nWatchdogSec=2s\n' >/etc/systemd/system/berthd.service.d/watchdog.conf
        systemctl daemon-reload
        systemctl restart berthd.service
END
    for n in 1 2 3 4 5; do
        on "$suite" berth start "job-$n"
        on "$suite" sh -c "berth run -p ten -- sh -c 'read x </run/go-$((n + 5)); exit 4$((n + 5))'; echo \$? >/run/status-$((n + 5))" &
        pids="$pids $!"
    done
    script "$suite" <<'END'
        ten() {
            local n
            for n in $(seq 100); do
                [ "$(used ten 2>/dev/null)" = 10 ] && [ "$(systemctl is-active berthd.service)" = active ] && break
                read -rt 0.1 <> <(:) || :
            done
            [ "$n" -lt 100 ] || { berth runs; berth pools; fail "$1: $(used ten) of 10 permits are held"; }
            [ "$(pgrep -fc 'read x </run/go')" -ge 10 ] || fail "$1: commands are gone"
            echo "after $1: ten runs"
        }
        ten start
        pgrep -f 'read x </run/go' | sort >/run/commands
        systemctl restart berthd.service
        ten "restart of berthd"
        systemctl restart berth-runner.service
        ten "restart of berth-runner"
        kill -9 "$(pid berthd.service)"
        ten "kill -9 of berthd"
        kill -9 "$(pid berth-runner.service)"
        ten "kill -9 of berth-runner"
        old=$(pid berthd.service)
        kill -STOP "$old"
        while [ "$(pid berthd.service)" = "$old" ]; do read -rt 0.1 <> <(:) || :; done
        ten "watchdog"
END
    # berthd replies to callers during the upgrade, because the sockets stay.
    on "$suite" sh -c 'stat -c %i /run/berth/control.sock >/run/inode'
    on "$suite" sh -c 'n=0; until [ -e /run/upgraded ]; do berth pools ten >/run/calls 2>&1 || exit 1; n=$((n + 1)); done; echo $n >/run/called' &
    caller=$!
    install_berth "$suite" 2
    on "$suite" touch /run/upgraded
    wait "$caller" || { on "$suite" cat /run/calls && fail "a client fails during the upgrade on $suite"; }
    script "$suite" <<'END'
        echo "$(cat /run/called) calls were answered during the upgrade"
        [ "$(stat -c %i /run/berth/control.sock)" = "$(cat /run/inode)" ] || fail "the upgrade made another socket"
        dpkg-query -W berth | grep -- -2
        for n in $(seq 100); do
            [ "$(systemctl is-active berthd.service berth-runner.service | sort -u)" = active ] && break
            read -rt 0.1 <> <(:) || :
        done
        pgrep -f 'read x </run/go' | sort | comm -13 - /run/commands >/run/gone
        [ ! -s /run/gone ] || fail "commands are gone after the upgrade: $(cat /run/gone)"
        berth runs
        for n in 1 2 3 4 5 6 7 8 9 10; do echo go >"/run/go-$n"; done
END
done
wait $pids
for suite in $suites; do
    # The journal has the exit status of each job.
    script "$suite" <<'END'
        for n in 1 2 3 4 5; do
            until journalctl -q -t berthd BERTH_EVENT=exited "BERTH_JOB=job-$n" | grep -q .; do read -rt 0.1 <> <(:) || :; done
            journalctl -q -t berthd -o cat --output-fields=BERTH_EXIT_CODE BERTH_EVENT=exited "BERTH_JOB=job-$n" >"/run/status-$n"
        done
END
    for n in 1 2 3 4 5 6 7 8 9 10; do
        status=$(on "$suite" cat "/run/status-$n")
        # 4N for run N; 410 is 154 in eight bits
        [ "$status" -eq $((4$n % 256)) ] || fail "run $n on $suite exits with $status"
    done
    on "$suite" berth pools
    [ "$(on "$suite" berth pools --json ten | tr -d ' \n' | sed 's/.*"used":\([0-9]*\).*/\1/')" = 0 ] || fail "permits are left on $suite"
done
