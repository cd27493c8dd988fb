#!/bin/bash
# SPDX-License-Identifier: MIT
# berth import-crontab as users call it: the exit statuses, the crontabs of Debian packages (tests/data/crontabs) and random lines against
# cron's meaning (tests/oracle/crontabs.py), and the five commands of its manual, from a crontab to a job that has run.
set -u
. tests/harness/check.sh
folder=$(mktemp -d /tmp/crontab-XXXXXX) || exit 1
build=$(realpath "${BERTH_BUILD:-build}")
export PATH=$folder/bin:$build:$PATH PYTHONDONTWRITEBYTECODE=1
berthd=
trap '[ -z "$berthd" ] || { kill "$berthd"; wait "$berthd"; }; rm -rf "$folder"' EXIT
umask 022

# ends STATUS WORDS...: what berth import-crontab prints goes to $folder/out and $folder/err.
ends() {
    local status=$1
    shift
    berth import-crontab "$@" >"$folder/out" 2>"$folder/err"
    check "import-crontab $*: exit status is not $status" [ $? -eq "$status" ]
}

# ---- exit statuses ----
mkdir -p "$folder/cron.d" "$folder/crontabs" "$folder/bin"
echo '0 1 * * * root true' >"$folder/cron.d/good"
printf '0 1 * * * root true\nnonsense\n' >"$folder/cron.d/bad.1"
echo '0 1 * * * true' >"$folder/crontabs/$(id -un)"
printf '0 1 * * * a\0b\n' >"$folder/nul"
ends 0 "$folder/cron.d/good" "$folder/crontabs/$(id -un)"
check "two files: not two jobs" [ "$(grep -c '^job ' "$folder/out")" = 2 ]
check "no summary" grep -q '^2 lines: 2 jobs, 0 not converted; ' "$folder/err"
ends 65 "$folder/cron.d/bad.1"
check "a bad line: no comment" grep -qx '# bad.1:2: not converted: fewer than five fields' "$folder/out"
check "a bad line: the others are gone" grep -q '^job "bad.1-true" {' "$folder/out"
ends 64
ends 64 "$folder/nul"
check "an unknown owner is not reported" grep -q 'whose crontab is it' "$folder/err"
ends 64 --system --user root "$folder/nul"
ends 64 --prefix 'a b' "$folder/cron.d/good"
ends 65 --user root "$folder/nul"
ends 65 --user root "$folder/cron.d/good" "$folder/none"
check "a part of the config is printed" [ ! -s "$folder/out" ]
ends 0 --user root --prefix x - <"$folder/crontabs/$(id -un)"
check "a prefix is not used" grep -q '^job "x-true" {' "$folder/out"
if [ -e /dev/full ]; then
    berth import-crontab "$folder/cron.d/good" >/dev/full 2>/dev/null
    check "a full disk: exit status is not 70" [ $? -eq 70 ]
fi

# ---- crontabs of packages, and random ones ----
for file in tests/data/crontabs/*; do
    kind=--system
    case $file in *anacrontab)
        kind=
        cp "$file" "$folder/anacrontab"
        file=$folder/anacrontab
        ;;
    *.user) kind="--user $(id -un)" ;;
    esac
    # shellcheck disable=SC2086
    ends 0 $kind "$file"
    # This machine need not have the packages' users.
    sed 's/^    user = ".*"$/    user = "'"$(id -un)"'"/' "$folder/out" >"$folder/package.conf"
    berthd --check -c "$folder/package.conf" >"$folder/checked" 2>&1 || cat "$folder/checked"
    check "$file: berthd --check refuses what was made of it" grep -q ' ok$' "$folder/checked"
done
python=/usr/bin/python3
[ -x "$python" ] || python=python3
check "due times are not cron's" "$python" tests/oracle/crontabs.py

# ---- the manual's five commands ----
cat >"$folder/bin/crontab" <<'END'
#!/bin/sh
case $1 in
-l) cat "$(dirname "$0")/../crontab" ;;
-r) rm "$(dirname "$0")/../crontab" ;;
esac
END
chmod +x "$folder/bin/crontab"
printf '%s\n' '# as a newcomer has it' "GREETING='good morning'" '*/5 * * * * true' \
    "@reboot sort >$folder/greeted; echo \"\$GREETING\" >>$folder/greeted%two%one 100\\%" >"$folder/crontab"
mkdir "$folder/berth.conf.d"
echo "runtime-directory = \"$folder/run\"" >"$folder/berth.conf"
export BERTH_SOCKET=$folder/run/control.sock
# Now there is a berthd without jobs, then one with them.
start_berthd() {
    berthd -c "$folder/berth.conf" --with-runner 2>>"$folder/log" &
    berthd=$!
    timeout 20 sh -c 'until berth version 2>/dev/null | grep -q berthd; do sleep 0.05; done'
}
start_berthd
check "berthd does not start" berth jobs
# The imported job runs in the home of its user, and nobody has none.
home=$(getent passwd "$(id -un)" | cut -d: -f6)
awk '/^```/ { inside = !inside; next } inside' packaging/man/berth-import-crontab.1.scd |
    sed "s|/etc/berth/|$folder/|; s|^berth check-config|& $folder/berth.conf|" >"$folder/commands"
check "the manual has not five commands" [ "$(wc -l <"$folder/commands")" -eq 5 ]
sh -e "$folder/commands" >"$folder/out" 2>&1
status=$?
check "the five commands fail: $(cat "$folder/out")" [ "$status" -eq 0 ]
check "no job of the crontab" grep -qE "^$(id -un)-true +idle" "$folder/out"
check "the crontab is still there" [ ! -e "$folder/crontab" ]
said=$(berth start --wait "$(id -un)-sort" 2>&1)
if [ -d "$home" ]; then
    check "the job does not run as the line did" [ "$(paste -sd, "$folder/greeted")" = "one 100%,two,good morning" ]
else
    check "a home that is not there is not named: $said" grep -q 'not-started: directory /.*: No such file' <<<"$said"
fi

finish
