/* SPDX-License-Identifier: MIT */

/* Random sequences of calls and faults against the rules of doc/protocol.md. By hand: SEED=N SEQUENCES=N build/tests/model/test-model */

#include "tests/model/model.h"

int main(int argc, char **argv) {
    return model_main(argc, argv, 1, 200);
}
