# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The package of the live page. Its installation starts nothing. Its socket starts the service, as an own
# user that may only look. The page works after a restart of berthd. The service ends when the package is
# purged.

each_up
for suite in $suites; do
    deb=$(make_package "$suite" 1 | tail -n 1)
    cp "${deb%/*}"/berth-web_*-1_*.deb "$shared/$suite.deb"
done
script_each <<'END'
    exits 0 env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install "/shared/$(hostname).deb"
    not active berth-web.socket
    not active berth-web.service
    man -w berth-web >/dev/null
    systemctl start berth-web.socket
    not active berth-web.service
    await page_is_well # the first request starts the service
    active berth-web.service
    get_page /api/1/overview
    says '"heavy"'
    get_page /
    says '<html'
    user=$(ps -o user= -p "$(pid berth-web.service)")
    case $user in root | berth) fail "berth-web runs as $user" ;; esac
    not grep -q '[1-9a-f]' <(sed -n 's/^Cap...:[[:space:]]*//p' "/proc/$(pid berth-web.service)/status")
    [ "$(stat -c '%a %U:%G' /run/berth-web/web.sock)" = "660 root:root" ] || fail "web.sock"
    # 1.1 at most: newer versions of systemd have more criteria.
    score=$(systemd-analyze security --no-pager berth-web.service | sed -n 's/.*Overall exposure level[^:]*: \([0-9.]*\) .*/\1/p')
    awk "BEGIN { exit !($score <= 1.1) }" || fail "systemd-analyze security: $score"
    systemctl restart berthd.service
    await page_is_well
    get_page /api/1/overview
    says '"heavy"'
    exits 0 env DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge berth-web
    not active berth-web.service
    not active berth-web.socket
    active berthd.service
END
