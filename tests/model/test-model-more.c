/* SPDX-License-Identifier: MIT */

/* More of what test-model runs, beside it. */

#include "tests/model/model.h"

int main(int argc, char **argv) {
    return model_main(argc, argv, 501, 140);
}
