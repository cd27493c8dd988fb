# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# An attacker has taken over berthd. Its user can start only jobs of the config through berth-runner's
# socket, and cannot read or write files of other users, outside and inside berthd's sandbox.

each_up
cp tests/system/speak.pl "$shared/"
script_each <<'END'
    useradd --create-home worker
    chmod 700 /home/worker
    echo private >/home/worker/private && chown worker /home/worker/private && chmod 600 /home/worker/private
    install -d -m 700 /etc/credstore
    echo secret >/etc/credstore/redis-password
    cat >/etc/berth/berth.conf.d/jobs.conf <<'CONF'
job "long" { command = {"/bin/sh", "-c", "echo of-worker >/home/worker/made; exec sleep 7201"}  user = "worker"  environment = {"SECRET=of-a-job"} }
job "as-root" { command = {"/bin/sh", "-c", "id -u >/root/was-here"}  user = "root" }
CONF
    # only root and berthd read the config, which may have passwords in a job's environment
    chown root:berth /etc/berth/berth.conf.d/jobs.conf && chmod 640 /etc/berth/berth.conf.d/jobs.conf
    systemctl restart berthd.service
    berth start long
    await pgrep -f '^sleep 7201'
    job=$(pgrep -f '^sleep 7201')
    guard=$(ps -o ppid= -p "$job" | tr -d ' ')
    runner=$(pid berth-runner.service)
    [ "$(ps -o user= -p "$job")" = worker ] && [ "$(ps -o user= -p "$guard")" = root ]
    run=$(berth runs | awk '$2 == "long" { print $1 }')

    # --- runner.sock ---
    sock=/run/berth/runner/runner.sock
    r=0123456789abcdef0123456789abcdef
    rest="token=1 ticket=1 pools= scopes= namespace=berth host=x queued=1 queued-boot=1"
    systemctl kill --signal=STOP berthd.service # or else berthd connects to the runner again in the middle
    ask() { runuser -u berth -- perl /shared/speak.pl $sock "$@" >/run/said || fail "speak.pl: $*"; tail -n 1 /run/said; }
    # The runner refuses a job that is not in the config, one with another definition, and another command.
    ask "start run=$r job=mine hash=0123456789abcdef claim= $rest" | grep -q 'refused .*reason=unknown-job' || fail "$(cat /run/said)"
    ask "start run=$r job=as-root hash=0123456789abcdef claim= $rest" | grep -q 'refused .*reason=config-differs' || fail "$(cat /run/said)"
    ask "start run=$r job=as-root hash=0123456789abcdef claim= command=/bin/sh $rest" | grep -q refused || fail "$(cat /run/said)"
    ask "start run=$r job=as-root hash=0123456789abcdef claim= cgroup=/ $rest" | grep -q 'refused .*reason=bad-request' || fail "$(cat /run/said)"
    ask "start run=$r job=as-root claim= $rest" | grep -q 'refused .*reason=bad-request' || fail "$(cat /run/said)"
    for name in ../../../etc/passwd ../runner.sock "${r}0" 0123; do
        ask "start run=$name job=as-root hash=0123456789abcdef claim= $rest" | grep -qx closed || fail "$name: $(cat /run/said)"
        ask "forget run=$name" | grep -qx closed || fail "forget $name: $(cat /run/said)"
    done
    ask "exec run=$r command=/bin/sh" | grep -qx closed || fail "$(cat /run/said)"
    [ ! -e /root/was-here ] || fail "a job was started"
    [ -d /proc/$job ] || fail "the job is gone"
    # Other users cannot connect.
    guard_sock=/run/berth/runner/runs/$run.sock
    [ "$(stat -c '%a %U' "$guard_sock")" = "600 berth" ] || fail "guard's socket: $(stat -c '%a %U' "$guard_sock")"
    for user in nobody worker; do
        for path in $sock "$guard_sock"; do
            runuser -u $user -- perl /shared/speak.pl "$path" 2>/run/said && fail "$user is connected to $path"
            grep -q 'Permission denied' /run/said || fail "$user at $path: $(cat /run/said)"
        done
    done
    systemctl kill --signal=CONT berthd.service
    await sh -c 'berth runs | grep -q long'

    # --- files, processes ---
    cat >/run/try.sh <<'TRY'
refused() { "$@" >/dev/null 2>&1 && { echo "allowed as $(id -un): $*"; bad=1; }; return 0; }
bad=0
for file in /etc/credstore/redis-password /etc/shadow /home/worker/private /root/.bashrc /proc/1/environ /proc/1/maps \
    /proc/$1/environ /proc/$1/maps /proc/$2/environ /proc/$3/environ /run/berth/runner/lock; do
    refused cat "$file"
done
for folder in /root /home/worker /run/berth/runner /run/berth/runner/runs /run/berth/runner/credentials /proc/1/fd /proc/$1/fd /proc/$2/fd /proc/$1/root/ /etc/credstore; do
    refused ls "$folder"
done
for file in /etc/berth/berth.conf /etc/berth/berth.conf.d/jobs.conf /etc/berth/x /run/berth/x /run/berth/runner/x /run/berth/runner/runs/x \
    /usr/sbin/berthd /sys/fs/cgroup/berth.slice/cgroup.procs /sys/fs/cgroup/berth.slice/berth-runner.service/cgroup.procs; do
    refused sh -c "echo x >>$file"
done
refused mv /run/berth/runner /run/berth/other
refused rm /run/berth/control.sock
refused rm /run/berth/runner/runner.sock
refused rm "/run/berth/runner/runs/$4.sock"
for p in "$1" "$2" "$3" 1; do refused kill -0 "$p"; done
refused setpriv --reuid 0 true
exit $bad
TRY
    runuser -u berth -- sh /run/try.sh "$runner" "$guard" "$job" "$run" || fail "berthd's user may do too much"
    # in berthd's sandbox, which forbids more
    sed -i 's/^exit .bad//' /run/try.sh
    cat >>/run/try.sh <<'TRY'
refused ls /home/worker
[ -z "$(ls -A /home 2>/dev/null)" ] || { echo "/home is seen"; bad=1; }
for file in /etc/x /opt/x /var/lib/x /var/log/x /usr/x /srv/x; do refused touch $file; done
touch /tmp/x && rm /tmp/x || bad=1
[ -w /run/berth/state ] || bad=1
exit $bad
TRY
    cp /run/try.sh /usr/local/try.sh
    nsenter --target "$(pid berthd.service)" --mount -- setpriv --reuid berth --regid berth --clear-groups --no-new-privs \
        --bounding-set=-all --inh-caps=-all sh /usr/local/try.sh "$runner" "$guard" "$job" "$run" || fail "the sandbox lets through"
    # Its privileges, as the kernel reports them.
    for cap in CapInh CapPrm CapEff CapBnd CapAmb; do
        grep -q "^$cap:.0000000000000000$" "/proc/$(pid berthd.service)/status" || fail "berthd has $cap"
    done
    grep -q '^NoNewPrivs:.1$' "/proc/$(pid berthd.service)/status"
    grep -q '^Seccomp:.2$' "/proc/$(pid berthd.service)/status"
    [ "$(awk '/^Groups:/ { print NF - 1 }' "/proc/$(pid berthd.service)/status")" -le 1 ] || fail "berthd has groups"
    # Other users cannot read a private config.
    not runuser -u nobody -- cat /etc/berth/berth.conf.d/jobs.conf
    not runuser -u nobody -- sh -c "cat /proc/$job/environ"
    # The config must be owned by root, or else its owner could write jobs that run as root.
    cp -p /etc/berth/berth.conf.d/jobs.conf /run/jobs.conf
    chown worker /etc/berth/berth.conf.d/jobs.conf
    echo 'job "evil" { command = {"/bin/sh", "-c", "id -u >/root/was-here"}  user = "root" }' >>/etc/berth/berth.conf.d/jobs.conf
    exits 78 berth check-config
    says 'must be owned by root'
    not systemctl reload berthd.service
    systemctl kill --signal=STOP berthd.service
    ask "start run=$r job=evil hash=0123456789abcdef claim= $rest" | grep -q 'refused .*reason=unknown-job' || fail "$(cat /run/said)"
    systemctl kill --signal=CONT berthd.service
    journalctl -q --no-pager -t berth-runner | grep -q 'must be owned by root' || fail "berth-runner does not say why"
    [ ! -e /root/was-here ] || fail "a job of worker's was started"
    cp -p /run/jobs.conf /etc/berth/berth.conf.d/jobs.conf
    await sh -c 'berth runs | grep -q long'
    berth stop long
    await sh -c '! pgrep -f "^sleep 7201"'
END
