/* SPDX-License-Identifier: MIT */
#pragma once

#include <inttypes.h>

#define NUMBER_MAX ((UINT64_C(1) << 53) - 1) /* the highest that JSON and Lua keep to the last digit */

/* Decimal digits alone: no sign, no space, no leading zero but "0" itself (010 is 8 elsewhere). 0, -EINVAL, or
 * -ERANGE if it is above max. */
int number_parse(const char *text, uint64_t max, uint64_t *ret);

/* "512", "64K", "64M", "2G", "1T" in bytes, powers of 1024. 0, -EINVAL, -ERANGE. */
int size_parse(const char *text, uint64_t *ret_bytes);
/* The shortest such text: 1 << 20 is "1M". */
#define SIZE_TEXT_SIZE 24
const char *size_format(uint64_t bytes, char buffer[static SIZE_TEXT_SIZE]);
