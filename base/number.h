/* SPDX-License-Identifier: MIT */
#pragma once

#include <inttypes.h>

#define NUMBER_MAX ((UINT64_C(1) << 53) - 1) /* the highest number that JSON and Lua represent exactly */

/* Parses decimal digits without sign, space or leading zeros ("010" is 8 in other programs). 0, -EINVAL, or
 * -ERANGE if it is above max. */
int number_parse(const char *text, uint64_t max, uint64_t *ret);

/* Parses "512", "64K", "64M", "2G", "1T" to bytes, in powers of 1024. 0, -EINVAL, -ERANGE. */
int size_parse(const char *text, uint64_t *ret_bytes);
/* Formats the shortest such text: 1 << 20 is "1M". */
#define SIZE_TEXT_SIZE 24
const char *size_format(uint64_t bytes, char buffer[static SIZE_TEXT_SIZE]);
