# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# systemd owns the control socket. The socket stays while berthd restarts, so clients wait instead of
# failing. A stop of berthd closes the socket. A berthd that cannot start replies so to its clients. Each
# user has only the rights of their groups.

each_up
script_each <<'END'
    [ "$(stat -c '%a %U:%G' /run/berth/control.sock)" = "660 root:berth" ] || fail "control.sock is $(stat -c '%a %U:%G' /run/berth/control.sock)"
    [ "$(stat -c '%a %U:%G' /run/berth)" = "755 root:root" ] || fail "/run/berth"
    [ "$(stat -c '%a %U:%G' /run/berth/runner/runner.sock)" = "600 berth:berth" ] || fail "runner.sock is $(stat -c "%a %U:%G" /run/berth/runner/runner.sock)"
    active berthd.socket && active berth-runner.socket

    # A restart takes as long as the gate is closed. Clients of all kinds wait, and get their replies.
    mkfifo /run/gate /run/go
    mkdir -p /etc/systemd/system/berthd.service.d
    printf '[Service]\nExecStartPre=+/bin/sh -c "read x </run/gate"\n' >/etc/systemd/system/berthd.service.d/gate.conf
    systemctl daemon-reload
    berth run -p heavy:2 -- sh -c 'read x </run/go; exit 3' &
    holder=$!
    await pgrep -f '^sh -c read x </run/go'
    inode=$(stat -c %i /run/berth/control.sock)
    systemctl restart --no-block berthd.service
    await pgrep -f 'read x </run/gate'
    pids=
    for n in 1 2 3 4 5; do
        berth pools --json >"/run/pools-$n" &
        pids="$pids $!"
    done
    berth run -p heavy -- sh -c 'exit 4' &
    waiter=$!
    # The connections of all six are in the socket's queue (ss: Recv-Q), and that of the running `berth run`.
    await sh -c '[ "$(ss -xlH src /run/berth/control.sock | awk "{ print \$3 }")" -ge 6 ]'
    for p in $pids $waiter $holder; do [ -d "/proc/$p" ] || fail "a client has given up"; done
    echo >/run/gate
    for p in $pids; do wait "$p" || fail "a client fails"; done
    grep -q '"heavy"' /run/pools-5
    [ "$(stat -c %i /run/berth/control.sock)" = "$inode" ] || fail "the restart made another socket"
    echo >/run/go
    status=0; wait $holder || status=$?
    [ $status -eq 3 ] || fail "the run exits with $status"
    status=0; wait $waiter || status=$?
    [ $status -eq 4 ] || fail "the waiting run exits with $status"
    rm /etc/systemd/system/berthd.service.d/gate.conf
    systemctl daemon-reload

    # After a kill of berthd, its successor replies to the next caller.
    kill -9 "$(pid berthd.service)"
    exits 0 berth pools
    [ "$(stat -c %i /run/berth/control.sock)" = "$inode" ] || fail "another socket after kill -9"
    kill -9 "$(pid berth-runner.service)"
    exits 0 berth run -p heavy -- true

    # After a stop no client starts berthd again.
    systemctl stop berthd.service
    await sh -c '! systemctl is-active --quiet berthd.socket'
    exits 69 berth pools
    says 'berthd'
    not active berthd.service
    systemctl start berthd.service
    active berthd.socket
    exits 0 berth pools
    # The socket starts berthd at the first client.
    systemctl stop berthd.service
    await sh -c '! systemctl is-active --quiet berthd.socket'
    systemctl start berthd.socket
    not active berthd.service
    exits 0 berth pools
    active berthd.service
    # A restart of the socket restarts berthd, and leaves runs alone.
    berth run -p heavy -- sh -c 'read x </run/go; exit 5' &
    holder=$!
    await pgrep -f '^sh -c read x </run/go'
    systemctl restart berthd.socket
    await active berthd.service
    exits 0 berth runs
    echo >/run/go
    status=0; wait $holder || status=$?
    [ $status -eq 5 ] || fail "a restart of the socket: the run exits with $status"

    # berthd replies after repeated stops and starts of sockets and services.
    for n in $(seq 10); do
        systemctl stop berthd.service
        systemctl start berthd.service
        exits 0 berth pools
        systemctl restart berthd.socket
        exits 0 berth pools
        systemctl restart berthd.service berth-runner.service
        exits 0 berth run -p heavy -- true
    done 2>/dev/null

    # A berthd with a wrong config replies with an error, and works again once the config is right.
    cp /etc/berth/berth.conf /run/good.conf
    echo 'pool "x" { limt = 1 }' >>/etc/berth/berth.conf
    not systemctl restart berthd.service
    exits 69 berth pools
    says 'its config is wrong'
    [ "$(systemctl show -P ExecMainStatus berthd.service)" = 78 ] || fail "status $(systemctl show -P ExecMainStatus berthd.service)"
    cp /run/good.conf /etc/berth/berth.conf
    exits 0 berth pools
    # systemd starts a berthd that fails a bounded number of times, however many clients call.
    echo 'pool "x" { limt = 1 }' >>/etc/berth/berth.conf
    not systemctl restart berthd.service
    for n in $(seq 40); do exits 69 berth pools; done
    [ "$(systemctl is-active berthd.socket)" = failed ] || fail "the socket is $(systemctl is-active berthd.socket)"
    says 'berthd'
    tries=$(journalctl -q --no-pager -t berthd | grep -c limt)
    [ "$tries" -le 35 ] || fail "tried $tries times"
    cp /run/good.conf /etc/berth/berth.conf
    systemctl start berthd.service
    active berthd.socket && exits 0 berth pools

    # A client of a berthd that exits at each start does not wait for ever.
    printf '[Service]\nExecStart=\nExecStart=/bin/false\n' >/etc/systemd/system/berthd.service.d/false.conf
    systemctl daemon-reload
    not systemctl restart berthd.service
    exits 69 berth pools
    cat /run/said
    says /run/berth/control.sock
    rm /etc/systemd/system/berthd.service.d/false.conf
    systemctl daemon-reload
    systemctl start berthd.service
    exits 0 berth pools

    # berth-runner also recovers by itself, because berthd connects each second.
    echo 'pool "x" { limt = 1 }' >>/etc/berth/berth.conf
    not systemctl restart berth-runner.service
    cp /run/good.conf /etc/berth/berth.conf
    await active berth-runner.service
    active berth-runner.socket
    printf 'job "true" { command = {"/bin/true"} }\n' >/etc/berth/berth.conf.d/true.conf
    systemctl reload berthd.service
    exits 0 berth start --wait true

    # Rights of users and groups.
    useradd --groups berth ann
    useradd --groups berth,berth-admin ops
    useradd --groups berth-admin outside
    useradd other
    chmod o+x /root
    exits 77 runuser -u nobody -- berth pools
    exits 77 runuser -u other -- berth run -p heavy -- true
    useradd --groups berth-look watcher
    [ "$(stat -c '%a %U:%G' /run/berth/look.sock)" = "660 root:berth-look" ] || fail "look.sock is $(stat -c '%a %U:%G' /run/berth/look.sock)"
    for verb in pools jobs runs hosts; do exits 0 runuser -u watcher -- berth $verb; done
    for verb in "run -p heavy -- true" "start true" "pause heavy"; do exits 77 runuser -u watcher -- berth $verb; done
    says 'you may only look'
    exits 77 runuser -u outside -- berth pools
    exits 0 runuser -u ann -- berth run -p heavy -- true
    exits 0 runuser -u ops -- berth pools
    exits 0 runuser -u ops -- berth run -p heavy -- true
    exits 0 runuser -u ops -- berth start --wait true
    exits 0 runuser -u ops -- berth pause heavy
    exits 0 runuser -u ops -- berth resume heavy
    mkdir -p /etc/systemd/system/berthd.socket.d
    printf '[Socket]\nSocketMode=0666\n' >/etc/systemd/system/berthd.socket.d/look.conf
    systemctl daemon-reload
    systemctl restart berthd.socket
    await active berthd.service
    for verb in pools jobs runs hosts; do exits 0 runuser -u nobody -- berth $verb; done
    exits 77 runuser -u nobody -- berth run -p heavy -- true
    says 'you need the right to run; root, members of group berth-admin and members of group berth have it'
    for verb in "start true" "stop true" "pause heavy" "resume heavy" "limit heavy 1" "drain" "undrain" "reload" "grace --end" \
        "revoke 0123456789abcdef0123456789abcdef"; do
        for user in nobody ann; do
            exits 77 runuser -u $user -- berth $verb
            says 'you need the right to operate.*; root and members of group berth-admin have it'
        done
    done
    exits 0 runuser -u outside -- berth undrain
    exits 0 runuser -u ops -- berth run -p heavy -- true
END
