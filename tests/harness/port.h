/* SPDX-License-Identifier: MIT */
#pragma once

/* Returns a free port of 127.0.0.1 that no other test gets while this process lives. */
unsigned port_reserve(void);
