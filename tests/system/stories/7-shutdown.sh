# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2034
# A host shuts down, and later the berthd of another stops. Each holds all permits of a pool for which a
# third host waits. Their runs end within their stop timeouts, and the third host gets the permits at once.
# The lease is a minute, so an expiry would take longer than this story.

boot ant trixie
boot bee "${suites##* }"
boot cow trixie
boot redis trixie
up ant bee cow
await_boot redis
redis_installed redis
redis_serve redis redis
for host in ant bee cow; do
    script "$host" <<'END'
        useradd --create-home worker
        cat >/etc/berth/berth.conf.d/cluster.conf <<'CONF'
lease = "60s"
redis { url = "redis://berth@redis:6379" }
pool "db" { limit = 3 }
job "polite" {
    command = {"/bin/sh", "-c", "trap 'sleep 0.3; date +%s%N >>/shared/over-$BERTH_HOST; exit 0' TERM; echo up >>/shared/up-$BERTH_HOST; sleep 7301 & wait"}
    pools = {"db"}
    user = "worker"
    overlap = "allow"
}
job "stubborn" {
    command = {"/bin/sh", "-c", "trap '' TERM; echo up >>/shared/up-$BERTH_HOST; (setsid setsid sleep 7302 & wait) & sleep 7303 & wait"}
    pools = {"db"}
    user = "worker"
    stop-timeout = "2s"
}
job "next" { command = {"/bin/sh", "-c", "exit 8"}  pools = {"db:3"}  user = "worker" }
CONF
        install -d -m 700 /etc/credstore
        echo secret >/etc/credstore/redis-password
        systemctl restart berthd.service
END
done
on cow berth grace --end

# holds HOST: starts two polite runs and a stubborn one there, and then a run on cow that waits for all
# permits.
holds() {
    on "$1" berth start polite polite stubborn
    script "$1" <<END
        await sh -c '[ "\$(wc -l </shared/up-$1)" -eq 3 ]'
        [ "\$(used db)" = 3 ]
END
    script cow <<'END'
        berth start next
        await sh -c 'berth runs | grep next | grep -q waiting'
        date +%s%N >/run/asked
END
}
# Prints the time at the head of the last line, in µs since 1970.
usec() { tail -n 1 | sed 's/^\([0-9]*\)\.\([0-9]\{6\}\) .*/\1\2/'; }
# granted_after USEC N: checks that cow got the permits soon after USEC, and that they were released, not
# reclaimed. N: number of runs of `next` so far.
granted_after() {
    script cow <<END
        await sh -c '[ "\$(journalctl -q -t berthd -o cat BERTH_EVENT=exited BERTH_JOB=next | wc -l)" -eq $2 ]'
        granted=\$(journalctl -q -t berthd -o short-unix BERTH_EVENT=granted BERTH_JOB=next | tail -n 1 | sed 's/^\([0-9]*\)\.\([0-9]*\) .*/\1\2/')
        late=\$(((granted - $1) / 1000))
        echo "granted to cow \$late ms after the last run was over"
        [ \$late -ge 0 ] && [ \$late -lt 1500 ] || fail "granted \$late ms after the last run was over"
        [ "\$(events reclaimed)" -eq 0 ] && [ "\$(events host-expired)" -eq 0 ] || fail "the permits were reclaimed, not released"
END
}

# The host goes down.
holds ant
begun=$(date +%s%N)
on ant systemctl poweroff || : # fails without logind, but works
for ((n = 0; n < 300; n++)); do
    [ -d "/proc/${host_pid[ant]}" ] || break
    read -rt 0.1 <> <(:) || :
done
[ "$n" -lt 300 ] || fail "ant does not go down"
down=$(date +%s%N)
unset "host_pid[ant]"
echo "ant was down after $(((down - begun) / 1000000)) ms"
[ "$(wc -l <"$shared/over-ant")" -eq 2 ] || fail "the polite runs were not stopped in order"
# Its journal is complete: berthd stopped all three runs and released their permits.
said() { on bee journalctl -q --no-pager --directory /shared/journals/ant -t berthd -o short-unix "$@"; }
[ "$(said BERTH_EVENT=exited BERTH_RESULT=stopped | wc -l)" -eq 3 ] || { said && fail "not three runs stopped"; }
[ "$(said BERTH_EVENT=released | wc -l)" -eq 3 ] || { said && fail "not three releases"; }
last=$(said BERTH_EVENT=exited | usec)
took=$((last / 1000 - begun / 1000000))
echo "its runs were over $took ms after the poweroff began"
[ "$took" -lt 4000 ] || fail "the runs took $took ms to stop"
granted_after "$last" 1
on cow berth hosts
[ "$(on cow berth hosts --json | tr -d ' \n' | grep -o '"host":"ant"' | wc -l)" -eq 0 ] || fail "the session of ant has not ended"

# berthd stops on another host.
holds bee
script bee <<'END'
    begun=$(date +%s%N)
    systemctl stop berthd.service
    took=$((($(date +%s%N) - begun) / 1000000))
    echo "the stop took $took ms"
    [ "$took" -ge 2000 ] && [ "$took" -lt 4000 ] || fail "the stop took $took ms"
    not pgrep -f '^sleep 730'
    await sh -c '[ -z "$(find /sys/fs/cgroup/berth.slice/berth-runner.service -mindepth 1 -type d)" ]'
    [ "$(events exited BERTH_RESULT=stopped)" -eq 3 ] && [ "$(events released)" -eq 3 ] || fail "not three runs stopped"
END
granted_after "$(on bee journalctl -q -t berthd -o short-unix BERTH_EVENT=exited | usec)" 2
