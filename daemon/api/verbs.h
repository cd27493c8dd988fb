/* SPDX-License-Identifier: MIT */
#pragma once

/* io.berth (io.berth.varlink) on the control socket: translates calls to the manager and its stores. */

#include "daemon/control/control.h"
#include "daemon/manager.h"

/* The methods of io.berth with their rights, and the interface's text. */
extern const struct control_service verbs_service;

/* Like control_new(). The control must be freed before the manager. */
int verbs_new_control(struct control **ret, sd_event *event, struct manager *m, const char *path, int listen_fd);
