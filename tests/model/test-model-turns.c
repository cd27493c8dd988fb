/* SPDX-License-Identifier: MIT */

/* Sequences in which hosts share the due times of a job (R18). */

#include "tests/model/model.h"

int main(int argc, char **argv) {
    return model_main(argc, argv, MODEL_TURNS | 1, 30);
}
