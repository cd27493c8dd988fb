/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

/* Prints an item of "explained" of `berth explain --json` for people. */
void explain_print(const json_t *explained);
