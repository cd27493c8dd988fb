/* SPDX-License-Identifier: MIT */
#pragma once

/* The one place that knows how hiredis 0.14 (Debian 12) and 1.x (Debian 13) differ. */

#include <hiredis/hiredis.h>

#if HIREDIS_MAJOR >= 1
typedef size_t redis_elements; /* of createArray() */
#else
typedef int redis_elements;
#endif
