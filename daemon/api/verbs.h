/* SPDX-License-Identifier: MIT */
#pragma once

/* io.berth (daemon/api/io.berth.varlink) on the control socket: what clients ask, translated to the manager and its stores, and back. */

#include "daemon/api/control.h"
#include "daemon/manager.h"

/* The methods of io.berth with their rights, and its text. */
extern const struct control_service verbs_service;

/* As control_new(). The control must be freed before the manager. */
int verbs_new_control(struct control **ret, sd_event *event, struct manager *m, const char *path, int listen_fd);
