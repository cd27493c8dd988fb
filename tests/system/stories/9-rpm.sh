# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The rpm package on the older systemd. Its scriptlets make the user, the folders and the catalog. Presets
# enable the units. An upgrade leaves a run and the administrator's config alone. An erase stops all runs. The
# package of the live page starts nothing by itself, and its page is served after an upgrade of berth.
# --nodeps: rpm does not know the packages that apt installed.

boot fred "${suites##* }"
make_rpm "${suites##* }" 1 >"$results/$story/rpm-1" &
first=$!
make_rpm "${suites##* }" 2 >"$results/$story/rpm-2" &
second=$!
await_boot fred
{ wait $first && wait $second; } || fail "no rpm"
cp "$(cat "$results/$story/rpm-1")" "$shared/1.rpm" && cp "$(cat "$results/$story/rpm-2")" "$shared/2.rpm"
for release in 1 2; do
    rpm=$(cat "$results/$story/rpm-$release")
    cp "${rpm%/*}"/berth-web-*-"$release".*.rpm "$shared/web-$release.rpm"
done
script fred <<'END'
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -y install rpm libconfuse2 'libhiredis[0-9]*' libjansson4 libmicrohttpd12 libsmartcols1 >/run/said 2>&1 || fail "$(cat /run/said)"
    rpm() { command rpm --force-debian --nodeps "$@" || fail "rpm $*"; }
    rpm -i /shared/1.rpm 2>&1 | tee /run/said
    not grep -v -e '^Creating ' -e '^Created symlink ' /run/said # a failed scriptlet prints an error
    getent passwd berth && getent group berth
    [ "$(stat -c '%a %U' /run/berth/state)" = "700 berth" ]
    for unit in berthd.service berthd.socket berthd-look.socket berth-runner.service berth-runner.socket; do
        [ "$(systemctl is-enabled $unit)" = enabled ] || fail "$unit is not enabled"
        not active $unit # the administrator starts services after rpm
    done
    [ "$(systemctl is-enabled berth-metrics.timer)" = disabled ] || fail "berth-metrics.timer is enabled"
    systemctl start berthd.service
    active berth-runner.service
    [ "$(ps -o user= -C berthd)" = berth ]
    [ "$(berth run -p heavy -- echo done)" = done ]
    journalctl -x --no-pager -q -t berthd BERTH_EVENT=granted | grep -q 'fencing token' || fail "no catalog"
    not grep -r '%{\|%systemd' /usr/lib/systemd/system/berth*
    test -f /usr/share/bash-completion/completions/berth

    # the live page
    rpm -i /shared/web-1.rpm
    not active berth-web.socket
    systemctl start berth-web.socket
    not active berth-web.service
    await page_is_well # the first request starts the service
    get_page /
    says '<html'
    user=$(ps -o user= -p "$(pid berth-web.service)")
    case $user in root | berth) fail "berth-web runs as $user" ;; esac

    # an upgrade, with a changed config and a running job
    useradd --create-home worker
    mkfifo -m 666 /run/go
    echo 'job "long" { command = {"/bin/sh", "-c", "read x </run/go; exit 5"}  user = "worker" }' >>/etc/berth/berth.conf
    systemctl reload berthd.service
    berth start --wait long >/run/status 2>&1 &
    waiting=$!
    await pgrep -f '^/bin/sh -c read x </run/go'
    job=$(pgrep -f '^/bin/sh -c read x </run/go') old=$(pid berthd.service) old_runner=$(pid berth-runner.service)
    inode=$(stat -c %i /run/berth/control.sock)
    rpm -U /shared/2.rpm
    command rpm -q berth | grep -x 'berth-.*-2.*'
    [ "$(pid berthd.service)" != "$old" ] && [ "$(pid berth-runner.service)" != "$old_runner" ] || fail "not restarted"
    active berthd.service && active berth-runner.service
    [ -d "/proc/$job" ] || fail "the upgrade stopped the job"
    [ "$(stat -c %i /run/berth/control.sock)" = "$inode" ] || fail "the upgrade made another socket"
    grep -q '^job "long"' /etc/berth/berth.conf || fail "the upgrade replaced the config"
    echo >/run/go
    status=0; wait $waiting || status=$?
    [ $status -eq 5 ] || fail "the run exits with $status: $(cat /run/status)"

    old=$(pid berth-web.service)
    rpm -U /shared/web-2.rpm
    [ "$(pid berth-web.service)" != "$old" ] || fail "berth-web was not restarted"
    await page_is_well
    get_page /api/1/overview
    says '"heavy"'
    rpm -e berth-web
    not active berth-web.service
    not active berth-web.socket
    [ ! -e /usr/bin/berth-web ] || fail "berth-web is left"

    # an erase also ends runs
    berth start long
    await pgrep -f '^/bin/sh -c read x </run/go'
    rpm -e berth
    not pgrep -f '^/bin/sh -c read x </run/go'
    not pgrep -x berthd
    for unit in berthd.service berthd.socket berthd-look.socket berth-runner.service berth-runner.socket; do not active $unit; done
    [ ! -e /usr/sbin/berthd ] && [ ! -e /usr/lib/systemd/system/berthd.service ] || fail "files are left"
    grep -q '^job "long"' /etc/berth/berth.conf.rpmsave || fail "the administrator's config is lost"
END
