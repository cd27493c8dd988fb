/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* Returns the known name nearest to the given one, for "did you mean ...?": the fewest insertions,
 * deletions, replacements and swaps of neighbours (Damerau, optimal string alignment). NULL: none is nearer
 * than a third of the longer name's length, plus one. Names that differ by more than one step must begin
 * with the same letter (leading dashes do not count), because a hint that has little in common with the word
 * misleads. The result is one of `known`. Names above 64 characters have no hint. */
const char *nearest(const char *written, const char *const *known, size_t n_known);
