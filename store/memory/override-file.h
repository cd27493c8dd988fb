/* SPDX-License-Identifier: MIT */
#pragma once

/* The overrides of a host's pools in a file, so that they outlive berthd, but not a reboot. */

#include "store/memory/pool.h"

/* Replaces the file; without an override removes it. boot: id of this boot. 0 or a negative errno. */
int override_file_save(const char *path, const char *boot, struct pools *pools);
/* Sets the overrides of the file in pools that are declared, and in keys of declared patterns. A file of another boot counts as
 * none. 0, -ENOENT: there is no file, -EBADMSG: a line is damaged, and those before it count; or another negative errno. */
int override_file_load(const char *path, const char *boot, struct pools *pools);
