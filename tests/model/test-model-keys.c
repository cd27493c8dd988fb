/* SPDX-License-Identifier: MIT */

/* Sequences with a plain pool, a pattern, and two of its keys. */

#include "tests/model/model.h"

int main(int argc, char **argv) {
    return model_main(argc, argv, MODEL_KEYS | 1, 60);
}
