#!/bin/sh
# SPDX-License-Identifier: MIT
# Mails how a job ended, with its last lines. TO is the address. The group lets it read the journal:
#
#     job "mail" {
#         command = {"/usr/share/berth/hooks/mail.sh"}
#         environment = {"TO=ops@example.org"}
#         group = "systemd-journal"
#     }
set -eu
PATH=$PATH:/usr/sbin:/usr/lib
{
    printf 'To: %s\nSubject: [berth] %s %s on %s\n\n' "$TO" "$BERTH_OF_JOB" "$BERTH_OF_EVENT" "$BERTH_OF_HOST"
    env | grep '^BERTH_OF_' | sort
    if [ -n "${BERTH_OF_RUN:-}" ]; then
        printf '\n--- the last lines ---\n'
        berth logs "$BERTH_OF_RUN" -n 50 2>&1 || true
    fi
} | sendmail -t
