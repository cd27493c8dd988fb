#!/bin/sh
# SPDX-License-Identifier: MIT
# Calls a dead man's switch elsewhere, which notices that this host is gone, too. The credentials are configs
# of curl, url = "https://...", one for each event.
#
#     job "ping" {
#         command = {"/usr/share/berth/hooks/ping.sh"}
#         credentials = {"ping-success", "ping-failure"}
#     }
#     job "backup" { ... on-success = {"ping"}  on-failure = {"ping"} }
set -eu
curl -fsS --retry 3 -m 20 -o /dev/null -K "$CREDENTIALS_DIRECTORY/ping-$BERTH_OF_EVENT"
