/* SPDX-License-Identifier: MIT */
#pragma once

/* What a POSIX extended regular expression costs. regcomp(3) of glibc copies repeated parts, and takes exponential time for some
 * repeats of repeats; regexec(3) takes time that grows with the square of what was copied. So an expression of 256 bytes can
 * stop a process for minutes. No I/O. */

struct regex_cost {
    unsigned length; /* characters, with repeats written out; REGEX_LENGTH_MAX + 1: more than that */
    unsigned depth;  /* 1: a part is repeated; 2: a repeated group has a repeated part; ... */
};

/* Expressions within these bounds took at most 0.3 s to compile and to match 1024 characters. */
#define REGEX_LENGTH_MAX 512
#define REGEX_DEPTH_MAX 2

/* Returns the cost of any text, also of one that is no expression. */
struct regex_cost regex_cost(const char *regex);
