/* SPDX-License-Identifier: MIT */
#include "store/redis/client/script.h"

/* store/redis/lua/assemble.sh writes SHA-1 and text. */
static const struct {
    const char *name, *sha, *text;
} scripts[REDIS_SCRIPTS] = {
    [REDIS_SCRIPT_HELLO] = {"hello",
#include "store/redis/lua/hello.lua.inc"
    },
    [REDIS_SCRIPT_BYE] = {"bye",
#include "store/redis/lua/bye.lua.inc"
    },
    [REDIS_SCRIPT_HEARTBEAT] = {"heartbeat",
#include "store/redis/lua/heartbeat.lua.inc"
    },
    [REDIS_SCRIPT_CLAIM] = {"claim",
#include "store/redis/lua/claim.lua.inc"
    },
    [REDIS_SCRIPT_CLAIMS] = {"claims",
#include "store/redis/lua/claims.lua.inc"
    },
    [REDIS_SCRIPT_RELEASE] = {"release",
#include "store/redis/lua/release.lua.inc"
    },
    [REDIS_SCRIPT_RELEASES] = {"releases",
#include "store/redis/lua/releases.lua.inc"
    },
    [REDIS_SCRIPT_SYNC] = {"sync",
#include "store/redis/lua/sync.lua.inc"
    },
    [REDIS_SCRIPT_VERIFY] = {"verify",
#include "store/redis/lua/verify.lua.inc"
    },
    [REDIS_SCRIPT_OVERRIDE] = {"override",
#include "store/redis/lua/override.lua.inc"
    },
    [REDIS_SCRIPT_REVOKE] = {"revoke",
#include "store/redis/lua/revoke.lua.inc"
    },
    [REDIS_SCRIPT_MOVE] = {"move",
#include "store/redis/lua/move.lua.inc"
    },
    [REDIS_SCRIPT_TURN] = {"turn",
#include "store/redis/lua/turn.lua.inc"
    },
    [REDIS_SCRIPT_TURNED] = {"turned",
#include "store/redis/lua/turned.lua.inc"
    },
    [REDIS_SCRIPT_INSPECT] = {"inspect",
#include "store/redis/lua/inspect.lua.inc"
    },
    [REDIS_SCRIPT_PROBE] = {"probe",
#include "store/redis/lua/probe.lua.inc"
    },
};

const char *redis_script_name(enum redis_script script) {
    return scripts[script].name;
}

const char *redis_script_sha(enum redis_script script) {
    return scripts[script].sha;
}

const char *redis_script_text(enum redis_script script) {
    return scripts[script].text;
}
