#!/bin/sh
# SPDX-License-Identifier: MIT
# ExecStop= of berthd.service. A stop ends runs and gives their permits back; a restart leaves them running. Both send SIGTERM, so this
# script announces a stop by SIGUSR1 before. If it cannot find out, it assumes a restart: then no run is stopped by mistake, and runs
# that hold permits of the cluster end at their deadline. On a stop it also closes the sockets, else the next client would start berthd.
set -u
pid=${MAINPID:-}
[ -n "$pid" ] || exit 0

# The service manager's jobs: UNIT JOB-ID TYPE STATE; this needs no D-Bus daemon.
jobs=$(systemctl list-jobs --no-legend --no-pager --plain 2>/dev/null) || exit 0
unit=${BERTH_UNIT:-berthd.service}
case $(printf '%s\n' "$jobs" | awk -v unit="$unit" '{for (i = 1; i <= NF; i++) if ($i == unit) print $(i + 1), $(i + 2)}') in
*restart*) exit 0 ;;
*stop*)
    kill -USR1 "$pid"
    systemctl stop --no-block "${unit%.service}.socket" "${unit%.service}-look.socket" 2>/dev/null
    ;;
*)
    # At shutdown the job of this unit may not be listed any more.
    case $(systemctl is-system-running 2>/dev/null) in stopping) kill -USR1 "$pid" ;; esac
    ;;
esac
exit 0
