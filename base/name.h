/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Names of pools, jobs, hosts, namespaces and labels: 1 to NAME_MAX_LENGTH of A-Z a-z 0-9 . _ -, not
 * beginning with '.' or '-' (berth.conf(5)). */
#define NAME_MAX_LENGTH 64
bool name_is_valid(const char *text);

/* Returns an error text for an invalid name: "is empty", "has a space", ... */
const char *name_explain(const char *text);

/* Copies the first `length` bytes, the name before a separator. A name that is too long is cut, but stays too long. */
#define NAME_FIRST_SIZE (NAME_MAX_LENGTH + 2)
void name_copy_first(const char *text, size_t length, char ret[static NAME_FIRST_SIZE]);

/* Ids of sessions and of runs with their claims: 128 random bits as 32 lowercase hex digits (R6). */
#define ID_TEXT_SIZE 33
bool id_is_valid(const char *text);
/* Returns whether the text can be an abbreviated id: its first ID_PREFIX_MIN to 32 digits. */
#define ID_PREFIX_MIN 4
bool id_prefix_is_valid(const char *text);
/* Returns whether the text abbreviates this id. */
bool id_begins_with(const char *id, const char *text);
/* Makes a random id. Exits with 70 if the kernel gives no random number, which it does only for a filter of system calls. */
void id_make(char ret[static ID_TEXT_SIZE]);
