/* SPDX-License-Identifier: MIT */
#pragma once

/* For cppcheck alone, which does not read the libraries' headers: their macros that look like statements. */
#define json_array_foreach(array, index, value) for (index = 0; (value = json_array_get(array, index)); index++)
#define json_object_foreach(object, key, value) for (key = ""; (value = json_object_get(object, key));)
