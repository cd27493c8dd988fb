/* SPDX-License-Identifier: MIT */
#pragma once

/* Hosts that share a job (`on = "any"`): ant, bee and cat, or more. The test sets their clocks, at times that
 * are past for Redis. The job is due each minute, from SHARING_FIRST on. */

#include <stdint.h>

#include "tests/harness/host/host.h"

#define SHARING_HOSTS 3
#define SHARING_HOSTS_MAX 5
#define SHARING_FIRST INT64_C(1735693200) /* 2025-01-01T01:00:00Z */
#define SHARING_MINUTE INT64_C(60)
/* The options of such a job. */
#define SHARED "schedule = {\"* * * * *\"} zone = \"UTC\" on = \"any\" "

extern struct host *sharing_hosts[SHARING_HOSTS_MAX];
extern const char *sharing_way; /* the socket by which ant reaches Redis; NULL: as the others */

/* Adds the hosts, 30 s before the first due time, and starts them. */
void sharing_up(const char *config);
/* The same with so many hosts, SHARING_HOSTS_MAX at most. */
void sharing_up_many(const char *config, size_t n);
/* Sets all clocks to so many ms after this due time. */
void sharing_clocks_at(int64_t due, int64_t msec);
/* The text of a due time, until the next call. */
const char *sharing_text(int64_t due);
/* Count these events on all hosts; await this number of them. */
unsigned sharing_count(const char *event, const char *fields);
void sharing_await_count(const char *event, const char *fields, unsigned n);
/* Awaits the event on any host. Returns that host; fatal if none comes. */
struct host *sharing_await(const char *event, const char *fields);
