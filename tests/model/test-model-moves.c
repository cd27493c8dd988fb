/* SPDX-License-Identifier: MIT */

/* Sequences in which operators move waiting claims (R2). */

#include "tests/model/model.h"

int main(int argc, char **argv) {
    return model_main(argc, argv, MODEL_MOVES | 1, 80);
}
