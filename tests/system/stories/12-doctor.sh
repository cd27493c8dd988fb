# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The commands that doctor names for units and files of the system end its findings.

each_up
script_each <<'END'
    finds() { # CHECK TEXT
        berth doctor --only "$1" | tr -s ' \n' ' ' >/run/said
        says "$2"
    }
    # obey CHECK: runs the commands of the check's findings as they are printed, and awaits that the check is fine.
    obey() {
        berth doctor --only "$1" >/run/said || :
        sed -n 's/^ \{23\}\(\(systemctl\|journalctl\|mkdir\|chmod\|chown\) .*\)/\1/p' /run/said >/run/commands
        [ -s /run/commands ] || fail "no command: $(cat /run/said)"
        sh -e /run/commands || fail "$(cat /run/commands)"
        await sh -c "berth doctor --only $1 | grep -qx '1 check fine'"
    }
    echo 'job "long" { command = {"/bin/sleep", "7401"} }' >/etc/berth/berth.conf.d/doctor.conf
    systemctl restart berthd.service
    berth start long
    await pgrep -f '^/bin/sleep 7401'

    systemctl stop berth-runner.socket berth-runner.service
    finds daemon 'berth-runner does not run'
    obey daemon

    # the guard dies while berth-runner hangs, and long ago for doctor
    await sh -c 'systemctl start berth-runner.service'
    systemctl kill --signal=STOP berth-runner.service
    job=$(pgrep -f '^/bin/sleep 7401')
    guard=$(ps -o ppid= -p "$job" | tr -d ' ')
    kill -KILL "$guard"
    for file in /run/berth/runner/runs/*.guard; do touch -d '-5 minutes' "$file"; done
    finds guard 'its guard is gone'
    obey guard
    await sh -c '! pgrep -f "^/bin/sleep 7401"'

    mkdir -p /etc/systemd/system/berth-runner.service.d
    printf '[Service]\nKillMode=control-group\n' >/etc/systemd/system/berth-runner.service.d/kill.conf
    systemctl daemon-reload
    finds unit 'an upgrade of berth-runner would kill all runs'
    rm /etc/systemd/system/berth-runner.service.d/kill.conf # corrected
    obey unit

    chown 0 /run/berth/holds
    chmod 0777 /run/berth/waiting
    finds files 'others may write there'
    says 'belongs to user 0'
    obey files

    # an upgrade without a restart
    program=$(readlink "/proc/$(pid berthd.service)/exe")
    version=$(berth version | sed -n 's/^berthd \([0-9.]*\).*/\1/p')
    cp -a "$program" /run/berthd.kept
    sed "s/$version/${version//[0-9]/7}/g" /run/berthd.kept >/run/berthd.other
    mv "$program" "$program.old" && cp /run/berthd.other "$program" && chmod 755 "$program"
    systemctl restart berthd.service
    mv "$program.old" "$program"
    finds version-skew 'berthd is 7'
    obey version-skew

    journalctl --relinquish-var
    umount /var/log/journal
    rmdir /var/log/journal
    finds journal 'does not survive a reboot'
    obey journal
    ls /var/log/journal/*/system.journal >/dev/null
END
