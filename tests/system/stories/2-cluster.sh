# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2034,SC2086
# Four hosts, both Debians, and a Redis, later a Valkey, with only the rights of packaging/redis.acl. 40
# runs of jobs of four users with a limit of 3: at most three at once, and at times three. `berth audit`
# proves it from the journals, but not if an entry of one is missing.

boot ant trixie
boot bee trixie
boot cow trixie
boot dog "${suites##* }"
boot redis trixie
hosts="ant bee cow dog"
up $hosts
await_boot redis
users="alice bob carol dave"

redis_installed redis
redis_serve redis redis

for host in $hosts; do
    script "$host" <<'END'
        cat >/etc/berth/berth.conf.d/cluster.conf <<'CONF'
lease = "6s"
redis { url = "redis://berth@redis:6379" }
pool "db" { limit = 3 }
CONF
        for user in alice bob carol dave; do
            useradd --create-home $user
            cat >>/etc/berth/berth.conf.d/cluster.conf <<CONF
job "work-$user" {
    command = {"/bin/sh", "-c", "date +'%s%N 1' >/shared/\$BERTH_RUN; sleep 1.2; date +'%s%N -1' >>/shared/\$BERTH_RUN; echo ran on \$BERTH_HOST; exit 5"}
    pools = {"db"}
    user = "$user"
    overlap = "allow"
}
CONF
        done
        install -d -m 700 /etc/credstore
        echo secret >/etc/credstore/redis-password
        systemctl restart berthd.service
END
done

# Prints how many runs there were at once and in all, from the files of the jobs. All hosts have one clock.
most() {
    sort -n "$shared"/????????????????????????????????  | awk '{ n += $2; if (n > most) most = n } END { print most, NR / 2 }'
}
# await_graces N: waits until N grace periods are over. In them the audit cannot check places in queues.
await_graces() {
    local host
    for host in $hosts; do
        script "$host" <<END
            await sh -c '[ "\$(journalctl -q -t berthd BERTH_EVENT=grace-ended -o cat | wc -l)" -ge $1 ]'
END
    done
}
work() { # PART GRACES: makes 40 runs after so many grace periods
    local host user n pids='' pid
    await_graces "$2"
    for host in $hosts; do
        for user in $users; do
            for n in 1 2 3; do
                case $user$n in dave[23]) continue ;; esac # ten on each host
                script "$host" <<END &
                    status=0
                    berth start --wait work-$user || status=\$?
                    [ \$status -eq 5 ] || { echo "work-$user on $host: \$status"; exit 1; }
END
                pids="$pids $!"
            done
        done
    done
    for pid in $pids; do wait "$pid" || fail "$1: a run went wrong"; done
    [ "$(most)" = "3 40" ] || fail "$1: most at once and how many: $(most)"
    [ "$(stat -c %u "$shared"/???????????????????????????????? | sort | uniq | wc -l)" -eq 4 ] || fail "$1: not of four users"
    rm -f "$shared"/????????????????????????????????
}

# Each host gets a grant at once, so the audit knows how far the clocks may differ. Then three claims follow:
# dog holds all permits, a second claim of dog waits, and a claim of ant waits behind it.
await_graces 1
for host in $hosts; do on $host berth run -p db -- true; done
script dog <<'END'
    systemd-run --quiet --unit=holder berth run -p db:3 -- sleep 600
    await sh -c 'journalctl -q -t berthd BERTH_EVENT=started -o cat | grep -q .'
    systemd-run --quiet --unit=ahead berth run -p db -- true
    await sh -c 'journalctl -q -t berthd BERTH_EVENT=queued BERTH_POSITION=1 -o cat | grep -q .'
END
script ant <<'END'
    systemd-run --quiet --unit=behind berth run -p db -- true
    await sh -c 'journalctl -q -t berthd BERTH_EVENT=queued BERTH_POSITION=2 -o cat | grep -q .'
END
on dog systemctl stop holder
for host in ant dog; do
    script $host <<'END'
        await sh -c '! systemctl is-active --quiet ahead behind'
END
done

work redis 1
on ant berth hosts
on ant berth pools
[ "$(on dog berth pools --json db | tr -d ' \n' | sed 's/.*"used":\([0-9]*\).*/\1/')" = 0 ]

# The cluster is healthy: doctor has notes at most, on both Debians.
for host in $hosts; do
    script $host <<'END'
        exits 0 berth doctor
        cat /run/said
        not grep -q '^WARN \|^CRIT ' /run/said
END
done

# An empty server replaces Redis: a new epoch begins with a grace period, and then jobs run again.
on redis redis-cli --user berth --pass secret --no-auth-warning dbsize 2>&1 | grep -q NOPERM
script redis <<'END'
    pid=$(pgrep -f '^redis-server')
    kill "$pid"
    while [ -e "/proc/$pid" ]; do read -rt 0.1 <> <(:) || :; done
END
redis_serve redis valkey
work valkey 2
for host in $hosts; do
    on "$host" journalctl --no-pager -q -t berthd BERTH_EVENT=grace-begun -o cat
    [ "$(on "$host" journalctl --no-pager -q -t berthd BERTH_EVENT=exited -o cat | grep -c 'failed with exit status 5')" -eq 20 ] || fail "not 20 runs on $host"
    ! on "$host" journalctl --no-pager -q -t berthd -o cat --output-fields=BERTH_EVENT,MESSAGE BERTH_EVENT=overcommitted | grep . ||
        fail "overcommitted on $host"
done

# The audit reads the four journals in one place.
for host in $hosts; do on "$host" journalctl --sync; done
script ant <<'END'
    where='--directory /shared/journals/ant --directory /shared/journals/bee --directory /shared/journals/cow --directory /shared/journals/dog'
    exits 0 berth audit $where
    cat /run/said
    says '^proved'
    exits 0 berth audit $where --json
    says '"hosts": *4,'
    says '"grants": *87,'
    # The journal of dog is missing: the place of ant's first claim shows it.
    exits 0 berth audit --directory /shared/journals/ant --directory /shared/journals/bee --directory /shared/journals/cow
    says '^NOT proved'
    says 'unproved no-journal: .* 1 claims were ahead of it, and the journals have 0'
    says 'pass the journals of all hosts'
    # With a limit of 2 there is a violation.
    exits 1 berth audit $where --limit db=2

    # One entry is missing from the journal of one host: each kind in turn.
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y install systemd-journal-remote >/run/said 2>&1 || fail "$(cat /run/said)"
    for event in granted released started queued; do
        rm -rf /tmp/cut && mkdir /tmp/cut
        journalctl -q --directory /shared/journals/bee -t berthd -o export |
            awk -v event="BERTH_EVENT=$event" '{ entry = entry $0 "\n" } $0 == event { is = 1 }
                /^$/ { if (is && ++n == 7) printf "%s", entry >"/tmp/cut/entry"; else printf "%s", entry; entry = ""; is = 0 }' |
            /usr/lib/systemd/systemd-journal-remote --output=/tmp/cut/bee.journal - 2>/dev/null
        run=$(sed -n 's/^BERTH_RUN=//p' /tmp/cut/entry) seq=$(sed -n 's/^BERTH_SEQ=//p' /tmp/cut/entry)
        [ -n "$run" ] && [ -n "$seq" ] || fail "nothing was cut out"
        exits 1 berth audit --directory /shared/journals/ant --directory /tmp/cut --directory /shared/journals/cow --directory /shared/journals/dog
        echo "without entry $seq of bee, $event of $run:"
        cat /run/said
        says "of bee.*BERTH_SEQ $((seq + 1)) follows $((seq - 1)): 1 missing"
    done
    # The same journal with all entries is proved.
    rm -rf /tmp/cut && mkdir /tmp/cut
    journalctl -q --directory /shared/journals/bee -t berthd -o export | /usr/lib/systemd/systemd-journal-remote --output=/tmp/cut/bee.journal - 2>/dev/null
    exits 0 berth audit --directory /shared/journals/ant --directory /tmp/cut --directory /shared/journals/cow --directory /shared/journals/dog
END

# Administrators collect journals on one machine: systemd sends them there, or they are copied beside its
# own.
script ant <<'END'
    mkdir -p /var/log/journal/remote
    /usr/lib/systemd/systemd-journal-remote --listen-http=19532 --output=/var/log/journal/remote >/run/remote.log 2>&1 &
    remote=$!
    echo $remote >/run/remote.pid
    await sh -c 'ss -tlnH sport = :19532 | grep -q . || ! [ -d /proc/'$remote' ]'
    [ -d /proc/$remote ] || fail "$(cat /run/remote.log)"
END
for host in bee cow; do
    script $host <<'END'
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y install systemd-journal-remote >/run/said 2>&1 || fail "$(cat /run/said)"
        exits 0 /usr/lib/systemd/systemd-journal-upload --follow=no --url=http://ant:19532
END
done
script ant <<'END'
    kill "$(cat /run/remote.pid)"
    while [ -e "/proc/$(cat /run/remote.pid)" ]; do read -rt 0.1 <> <(:) || :; done
    cp -r /shared/journals/dog/. /var/log/journal/
    ls /var/log/journal /var/log/journal/remote
    of() { tr '{' '\n' <"$1" | grep -c "\"host\": *\"$2\""; }
    berth history --json work-alice >/run/own
    berth history --json work-alice -m >/run/all
    for host in ant bee cow dog; do
        [ "$(of /run/all $host)" -eq 6 ] || fail "history -m has $(of /run/all $host) runs on $host"
        [ $host = ant ] || [ "$(of /run/own $host)" -eq 0 ] || fail "history has runs on $host without -m"
    done
    [ "$(of /run/own ant)" -eq 6 ] || fail "history has $(of /run/own ant) runs on ant"
    exits 0 berth audit --json
    says '"hosts": *1,'
    exits 0 berth audit -m --json
    says '"hosts": *4,'
    says '"grants": *87,'
    says '"proved": *true'
    # The output of the jobs, and of one run on another host.
    [ "$(berth logs work-alice -n 100 | grep -c 'ran on ant')" -eq 6 ] || fail "logs: $(berth logs work-alice -n 100)"
    for host in ant bee cow dog; do
        [ "$(berth logs work-alice -m -n 100 | grep -c "ran on $host")" -eq 6 ] || fail "logs -m lacks lines of $host"
    done
    run=$(tr '{' '\n' </run/all | sed -n '/"host": *"dog"/s/.*"run": *"\([0-9a-f]*\)".*/\1/p' | head -n 1)
    [ "$(berth logs "$run" -m | grep -c .)" -eq 1 ] || fail "logs of $run: $(berth logs "$run" -m)"
    berth logs "$run" -m | grep 'ran on dog'
    exits 65 berth logs "$run"
END
