/* SPDX-License-Identifier: MIT */
#pragma once

#include "conf/settings.h"

/* The hash of a job's canonical text: its name and every option as it is in force, defaults included. Where it stands and how it was
 * written do not matter. 64-bit FNV-1a: it tells two versions of a config apart, it is no seal (the runner starts nothing but
 * what its own config defines). */
void job_hash(const struct job_settings *job, char ret[static 17]);
