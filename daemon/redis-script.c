/* SPDX-License-Identifier: MIT */
#include "daemon/redis-script.h"

/* daemon/lua/assemble.sh writes the last two. */
static const struct {
    const char *name, *sha, *text;
} scripts[REDIS_SCRIPTS] = {
    [REDIS_SCRIPT_HELLO] = {"hello",
#include "daemon/lua/hello.lua.inc"
    },
    [REDIS_SCRIPT_BYE] = {"bye",
#include "daemon/lua/bye.lua.inc"
    },
    [REDIS_SCRIPT_BEAT] = {"beat",
#include "daemon/lua/beat.lua.inc"
    },
    [REDIS_SCRIPT_CLAIM] = {"claim",
#include "daemon/lua/claim.lua.inc"
    },
    [REDIS_SCRIPT_CLAIMS] = {"claims",
#include "daemon/lua/claims.lua.inc"
    },
    [REDIS_SCRIPT_RELEASE] = {"release",
#include "daemon/lua/release.lua.inc"
    },
    [REDIS_SCRIPT_RELEASES] = {"releases",
#include "daemon/lua/releases.lua.inc"
    },
    [REDIS_SCRIPT_SYNC] = {"sync",
#include "daemon/lua/sync.lua.inc"
    },
    [REDIS_SCRIPT_LOOK] = {"look",
#include "daemon/lua/look.lua.inc"
    },
    [REDIS_SCRIPT_OVERRIDE] = {"override",
#include "daemon/lua/override.lua.inc"
    },
    [REDIS_SCRIPT_REVOKE] = {"revoke",
#include "daemon/lua/revoke.lua.inc"
    },
    [REDIS_SCRIPT_INSPECT] = {"inspect",
#include "daemon/lua/inspect.lua.inc"
    },
    [REDIS_SCRIPT_PROBE] = {"probe",
#include "daemon/lua/probe.lua.inc"
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
