/* SPDX-License-Identifier: MIT */
#pragma once

/* io.berth (daemon/io.berth.varlink) on the control socket: what clients ask, translated to the manager and its stores, and back. */

#include "daemon/control.h"
#include "daemon/manager.h"

/* As control_new(). The control must be freed before the manager. */
int verbs_new_control(struct control **ret, sd_event *event, struct manager *m, const char *path, int listen_fd);
