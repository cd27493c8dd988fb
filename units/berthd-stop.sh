#!/bin/sh
# SPDX-License-Identifier: MIT
# ExecStop= of berthd.service: tells berthd whether this is a stop, which stops its runs and gives their permits back, or a restart, which
# leaves them running. Both end in SIGTERM, so a stop is announced by SIGUSR1 before. Where it cannot be told it counts as a
# restart: nothing is stopped that should not be, and runs that hold permits of the cluster end at their deadline anyway.
# A stop is meant: its socket goes with berthd, else the next client would start it again.
set -u
pid=${MAINPID:-}
[ -n "$pid" ] || exit 0

# UNIT JOB-ID TYPE STATE of what the service manager is about to do; needs no D-Bus daemon.
jobs=$(systemctl list-jobs --no-legend --no-pager --plain 2>/dev/null) || exit 0
unit=${BERTH_UNIT:-berthd.service}
case $(printf '%s\n' "$jobs" | awk -v unit="$unit" '{for (i = 1; i <= NF; i++) if ($i == unit) print $(i + 1), $(i + 2)}') in
*restart*) exit 0 ;;
*stop*)
    kill -USR1 "$pid"
    systemctl stop --no-block "${unit%.service}.socket" 2>/dev/null
    ;;
*)
    # A shutdown of the host brings many jobs; the unit's own may not be listed any more.
    case $(systemctl is-system-running 2>/dev/null) in stopping) kill -USR1 "$pid" ;; esac
    ;;
esac
exit 0
