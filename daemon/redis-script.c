/* SPDX-License-Identifier: MIT */
#include "daemon/redis-script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct text {
    const char *name, *text;
};

static const struct text scripts[REDIS_SCRIPTS] = {
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
    [REDIS_SCRIPT_RELEASE] = {"release",
#include "daemon/lua/release.lua.inc"
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
    [REDIS_SCRIPT_GRACE] = {"grace",
#include "daemon/lua/grace.lua.inc"
    },
    [REDIS_SCRIPT_INSPECT] = {"inspect",
#include "daemon/lua/inspect.lua.inc"
    },
};

static const struct text parts[] = {
    {"core",
#include "daemon/lua/core.lua.inc"
    },
    {"queue",
#include "daemon/lua/queue.lua.inc"
    },
    {"session",
#include "daemon/lua/session.lua.inc"
    },
    {"limits",
#include "daemon/lua/limits.lua.inc"
    },
    {"wipe",
#include "daemon/lua/wipe.lua.inc"
    },
};

#define INCLUDE "--#include "

static const char *find_part(const char *name, size_t length) {
    for (size_t i = 0; i < ELEMENTSOF(parts); i++)
        if (strlen(parts[i].name) == length && strncmp(parts[i].name, name, length) == 0)
            return parts[i].text;
    return "";
}

const char *redis_script_name(enum redis_script script) {
    return scripts[script].name;
}

char *redis_script_text(enum redis_script script) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    for (const char *line = scripts[script].text; *line;) {
        size_t length = strcspn(line, "\n");
        const size_t prefix = strlen(INCLUDE);

        if (length > prefix && strncmp(line, INCLUDE, prefix) == 0)
            fputs(find_part(line + prefix, length - prefix), out);
        else
            fprintf(out, "%.*s\n", (int) length, line);
        line += length + (line[length] == '\n');
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
