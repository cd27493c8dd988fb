/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* The known name nearest to what was written, for "did you mean ...?": the fewest insertions, deletions,
 * replacements and swaps of neighbours (Damerau, optimal string alignment). NULL if none is nearer than a third of
 * the longer one's length, plus one. More than one step is near only if both begin with the same letter (dashes
 * before it do not count): a hint that has little in common with the word misleads. The answer is one of `known`.
 * Names longer than 64 are never near. */
const char *nearest(const char *written, const char *const *known, size_t n_known);
