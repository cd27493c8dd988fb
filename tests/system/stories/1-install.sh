# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Installs the package on each Debian, uses it at once, checks its files and rights, and removes it.

each_up
cp packaging/debian/tests/smoke "$shared/"
# Maps memory that is writable and executable, as a JIT compiler does. Exits with 3 on success.
cat >"$shared/jit.pl" <<'END'
use POSIX;
my $mmap = {x86_64 => 9, aarch64 => 222}->{(POSIX::uname())[4]} // exit 3;
exit(syscall($mmap, 0, 4096, 7, 34, -1, 0) == -1 ? 4 : 3);
END
script_each <<'END'
    # autopkgtest runs this
    /shared/smoke || fail "the package's own test fails"

    set -x
    systemctl is-active berthd.service berthd.socket berthd-look.socket berth-runner.service berth-runner.socket
    systemctl is-enabled berthd.service berthd.socket berthd-look.socket berth-runner.service berth-runner.socket
    [ "$(systemctl show -P User berthd.service)" = berth ]
    [ "$(ps -o user= -C berthd)" = berth ]

    # the first minute
    [ "$(berth run -p heavy -- echo done)" = done ]
    exits 7 berth run -p heavy -- sh -c 'exit 7'
    exits 127 berth run -p heavy -- /does/not/exist
    exits 65 berth run -p heavi -- true
    exits 64 berth run -p heavy:3 -- true
    berth jobs
    berth pools
    berth pools --json | grep -q '"name": *"heavy"'
    berth pools heavy
    berthd --check

    # two permits, not three; a nested run uses the permits of the outer one
    mkfifo /tmp/started
    berth run -p heavy:2 --name holder -- sh -c 'berth run -n -p heavy -- echo nested >/tmp/started; exec sleep 1000' &
    [ "$(cat /tmp/started)" = nested ]
    exits 75 berth run -n -p heavy -- true
    berth runs
    berth stop "$(berth runs | awk '$2 == "holder" { print $1 }')"
    status=0
    wait $! || status=$?
    [ $status -eq 143 ] || fail "stopped, and exits with $status"

    # a job, as another user
    useradd --create-home worker
    cat >/etc/berth/berth.conf.d/jobs.conf <<'CONF'
job "look" {
    command = {"/bin/sh", "-c", "id -un; id -G; pwd; umask; cat /proc/self/cgroup; grep -E 'Cap(Eff|Prm|Inh|Amb)' /proc/self/status; ls /proc/self/fd"}
    pools = {"heavy"}
    user = "worker"
    directory = "/home/worker"
}
job "adopt" {
    command = {"/bin/sh", "-c", "sudo -n true; nice -n 5 taskset -c 0 unshare --user --map-root-user id -u; echo kept >/home/worker/kept; exec perl /shared/jit.pl"}
    user = "worker"
}
CONF
    echo 'worker ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/worker
    systemctl reload berthd.service
    berth start look --wait
    await sh -c 'journalctl -q -t look -o cat | grep -qx 3' # the last line of the job: journald may be late
    journalctl -t look --no-pager -o cat | tee /tmp/look
    grep -qx worker /tmp/look && grep -qx /home/worker /tmp/look && grep -qx 0022 /tmp/look
    grep -q 'CapEff:.0000000000000000' /tmp/look
    grep -q '^0::/berth.slice/berth-runner.service/.' /tmp/look
    exits 3 berth start adopt --wait
    await sh -c 'journalctl -q -t adopt -o cat | grep -qx 0'
    journalctl -t adopt --no-pager -o cat | tee /tmp/adopt
    grep -qx 0 /tmp/adopt || fail "no user namespace"
    grep -qi 'sudo:' /tmp/adopt && fail "sudo does not work in a job"
    [ "$(stat -c %U /home/worker/kept)" = worker ] || fail "a job cannot write to its home"

    # each line of parallel runs is attributed to its run, also if the process ended before journald read
    # the line: journald is stopped meanwhile
    printf 'job "lines" { command = {"/bin/sh", "-c", "/bin/echo one; /bin/echo two; echo three"}  overlap = "allow"  user = "worker" }\n' \
        >/etc/berth/berth.conf.d/lines.conf
    systemctl reload berthd.service
    journald=$(systemctl show -P MainPID systemd-journald.service)
    kill -STOP "$journald"
    runs=$(for n in $(seq 20); do berth start lines; done)
    await sh -c '! berth runs | grep -q lines'
    kill -CONT "$journald"
    await sh -c '[ "$(journalctl -q -t berthd -o cat BERTH_EVENT=exited BERTH_JOB=lines | wc -l)" -eq 20 ]'
    journalctl --sync
    [ "$(journalctl -q -o cat -t lines | wc -l)" -eq 60 ] || fail "lines in the journal: $(journalctl -q -o cat -t lines | wc -l)"
    [ "$(journalctl -q -o cat -t lines -u 'berth-runner*' _UID="$(id -u worker)" | wc -l)" -eq 60 ] || fail "lines without their unit"
    [ "$(berth logs lines | wc -l)" -eq 60 ] || fail "berth logs shows $(berth logs lines | wc -l) lines of 60"
    for run in $runs; do
        [ "$(berth logs "$run" | sed 's/.*: //' | tr '\n' ' ')" = "one two three " ] || fail "of $run: $(berth logs "$run")"
    done

    # a bad config changes nothing and is reported
    echo 'pool "x" { limt = 1 }' >/etc/berth/berth.conf.d/bad.conf
    systemctl reload berthd.service && fail "reload of a bad config succeeds"
    exits 78 berth check-config
    rm /etc/berth/berth.conf.d/bad.conf
    [ "$(berth run -p heavy -- echo done)" = done ]

    # rights
    useradd --groups berth ann
    useradd --groups berth,berth-admin ops
    chmod o+x /root
    exits 77 runuser -u nobody -- berth run -p heavy -- true
    exits 0 runuser -u ann -- berth run -p heavy -- true
    exits 77 runuser -u ann -- berth limit heavy 9
    exits 0 runuser -u ops -- berth run -p heavy -- true
    exits 0 runuser -u ops -- berth undrain
    runuser -u berth -- ls /run/berth/runner && fail "berthd's user lists runner/"
    runuser -u berth -- mv /run/berth/runner /run/berth/other && fail "berthd's user moves runner/"
    runuser -u berth -- touch /etc/berth/berth.conf && fail "berthd's user writes the config"
    runuser -u nobody -- touch /run/berth/x && fail "nobody writes to /run/berth"

    # only berthd gets the password of Redis
    systemctl show -P LoadCredential berthd.service
    mkdir -p /etc/credstore && chmod 700 /etc/credstore && echo secret >/etc/credstore/redis-password
    systemctl restart berthd.service
    [ "$(cat /run/credentials/berthd.service/redis-password)" = secret ]
    runuser -u nobody -- cat /run/credentials/berthd.service/redis-password && fail "nobody reads the password"
    [ "$(berth run -p heavy -- echo done)" = done ]

    # systemd-analyze accepts the units
    systemd-analyze verify berthd.service berthd.socket berthd-look.socket berth-runner.service berth-runner.socket berth.slice \
        berth-metrics.service berth-metrics.timer
    systemd-analyze security --no-pager --threshold=15 berthd.service | tail -n 1
    systemd-analyze security --no-pager --threshold=61 berth-runner.service | tail -n 1

    # figures for node-exporter, while berthd is there and while it is not
    not systemctl is-enabled berth-metrics.timer
    mkdir -p /var/lib/prometheus/node-exporter
    figures=/var/lib/prometheus/node-exporter/berth.prom
    systemctl enable --now berth-metrics.timer
    await grep -qx 'berth_up 1' $figures
    [ "$(stat -c %a $figures)" = 644 ] || fail "$figures: $(stat -c '%a %U' $figures)"
    systemctl stop berth-metrics.timer berthd.service
    systemctl start berth-metrics.service
    grep -qx 'berth_up 0' $figures || fail "figures of a berthd that is away: $(cat $figures)"
    systemctl start berth-metrics.timer berthd.socket berthd-look.socket berthd.service
    [ -z "$(journalctl -q --no-pager -u berth-metrics.service)" ] || fail "$(journalctl -q --no-pager -u berth-metrics.service)"

    # the example of a timer for `berth doctor` (its folder may be excluded, as the pages)
    if [ -e /usr/share/doc/berth/examples/berth-doctor.service ]; then
        cp /usr/share/doc/berth/examples/berth-doctor.* /etc/systemd/system
        systemctl daemon-reload
        systemctl enable --now berth-doctor.timer
        systemctl start berth-doctor.service || fail "$(journalctl -q --no-pager -u berth-doctor.service)"
    fi

    # journalctl -x explains events
    journalctl -x --no-pager -t berthd | grep -q 'berthd has recovered the runs of this host'
    journalctl -x --no-pager -t berthd BERTH_EVENT=granted | grep -q 'fencing token'
    # journalctl -x shows the subject of each event, with its fields, and its text
    catalog=/usr/lib/systemd/catalog/berth.catalog
    awk '/^# / { event = $2 } /^-- / { print event, $2 }' "$catalog" >/tmp/events
    [ "$(wc -l </tmp/events)" -ge 30 ]
    while read -r event id; do
        printf '%s\n' "MESSAGE_ID=$id" "BERTH_EVENT=$event" "SYSLOG_IDENTIFIER=explained" "MESSAGE=message of $event" BERTH_JOB=the-job \
            BERTH_RUN=the-run BERTH_POOLS=the-pools BERTH_HOST=the-host BERTH_RESULT=the-result BERTH_NAMESPACE=the-namespace \
            BERTH_TOKEN=7 BERTH_REASON=the-reason | logger --journald
    done </tmp/events
    journalctl --sync
    while read -r event id; do
        journalctl -q --no-pager -x -t explained "MESSAGE_ID=$id" >/tmp/explained
        grep -q "message of $event" /tmp/explained && grep -q 'Subject: .' /tmp/explained || fail "journalctl -x does not explain $event"
        not grep '@BERTH' /tmp/explained
        # the last line of the event's text in the catalog, if that has no field
        text=$(awk -v id="$id" '/^-- / { on = $2 == id } on && /^[^#-]/ && !/^(Subject|Defined-By|Documentation):/ { last = $0 } END { print last }' "$catalog")
        case $text in *@*) ;; *) grep -qF "$text" /tmp/explained || fail "journalctl -x lacks the text of $event" ;; esac
    done </tmp/events
    [ -z "$(journalctl -p err --no-pager -q -t berthd -t berth-runner | grep -v -e bad.conf -e 'the config in force stays')" ] || fail "errors in the journal"

    for page in 'berth.1' 'berth-audit.1' 'berth-doctor.1' 'berth-import-crontab.1' 'berthd.8' 'berth-runner.8' 'berth.conf.5' 'berth-events.7'; do
        test -f "/usr/share/man/man${page##*.}/$page.gz" || echo "no $page (path-excluded)"
    done

    # A purge after a removal: dpkg no longer has the package's tmpfiles.d then.
    apt-get -qq -y remove berth
    [ -d /var/lib/berth ] && [ -e /etc/berth/berth.conf ]
    apt-get -qq -y purge berth
    [ ! -e /usr/sbin/berthd ] && [ ! -e /etc/berth/berth.conf ] && [ ! -e /var/lib/berth ] && [ ! -e /run/berth ]
    for unit in berthd.service berthd.socket berthd-look.socket berth-runner.service berth-runner.socket berth-metrics.timer; do not active $unit; done
    [ ! -e $figures ] || fail "figures remain without berth"
END
