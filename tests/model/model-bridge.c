/* SPDX-License-Identifier: MIT */

/* The scripts on a private redis-server. A prelude replaces TIME and INFO by values of the test, and notes
 * what SPUBLISH would send. The bridge calls the scripts with berth's rights (BERTH_TEST_ACL). Faults of
 * Redis use the server's own connection. */

#include <string.h>

#include "tests/harness/redis/script.h"
#include "tests/model/model-internal.h"

static const char prelude[] =
    "local model_sec, model_usec, model_id = string.match(KEYS[2], ' (%d+) (%d+) (%w+)$')\n"
    "local model_redis, model_pushes = redis, {}\n"
    "local redis = setmetatable({call = function(name, ...)\n"
    "    if name == 'TIME' then\n"
    "        model_usec = string.format('%d', model_usec + 1)\n" /* two TIME in one script can differ */
    "        return {model_sec, model_usec}\n"
    "    elseif name == 'INFO' then\n"
    "        return 'role:master\\r\\nmaster_replid:' .. model_id .. '\\r\\n'\n"
    "    elseif name == 'SPUBLISH' then\n"
    "        local channel, text = ...\n"
    "        model_pushes[#model_pushes + 1] = channel\n"
    "        model_pushes[#model_pushes + 1] = text\n"
    "        return 0\n"
    "    elseif name == 'SMEMBERS' or name == 'SRANDMEMBER' then\n" /* the same each time */
    "        local key, count = ...\n"
    "        local members, some = model_redis.call('SMEMBERS', key), {}\n"
    "        table.sort(members)\n"
    "        for i = 1, math.min(#members, count or #members) do some[i] = members[i] end\n"
    "        return some\n"
    "    end\n"
    "    return model_redis.call(name, ...)\n"
    "end}, {__index = model_redis})\n"
    "local function model_script()\n";

static const char epilogue[] =
    "\nend\n"
    "local model_reply = model_script()\n"
    "local function model_words(line)\n" /* words become elements, as in other answers */
    "    local words = {}\n"
    "    for word in string.gmatch(line, '%S+') do words[#words + 1] = word end\n"
    "    return words\n"
    "end\n"
    "if type(model_reply) == 'string' then\n"
    "    model_reply = model_words(model_reply)\n"
    "elseif string.find(model_reply[1], ' ') and type(model_reply[2]) == 'string' then\n" /* a line for each claim */
    "    for i, line in ipairs(model_reply) do model_reply[i] = model_words(line) end\n"
    "elseif string.find(model_reply[1], ' ') then\n"
    "    local words = model_words(model_reply[1])\n"
    "    for i = 2, #model_reply do words[#words + 1] = model_reply[i] end\n"
    "    model_reply = words\n"
    "end\n"
    "return {model_reply, model_pushes, model_redis.call('HMGET', KEYS[1], 'epoch', 'grace', 'clock', 'heartbeat_count',\n"
    "    'unsettled', 'began', 'lead', 'o:a', 'o:b', 'o:c', 'o:t/x', 'o:t/y', 'o:t/*')}\n";

/* Checks that all records of a claim agree, and lists keys besides those of a namespace at rest. */
static const char inspect_text[] =
    "local call, at, bad, out, extra = redis.call, 'berth:{m}:', {}, {'', ''}, {}\n"
    "local expected = {}\n"
    "local function add(key, n) expected[key] = (expected[key] or 0) + n end\n"
    "local function want(c, condition, text) if not condition then bad[#bad + 1] = c .. ' ' .. text end end\n"
    "local used, n_used = {}, {}\n" /* keys of a pattern with claims */
    "local function pattern_of(pool)\n"
    "    local name, key = string.match(pool, '^([^/]+/)(.*)$')\n"
    "    return name and key ~= '*' and name .. '*'\n"
    "end\n"
    "local function override_of(pool) return string.match(call('HGET', at .. 'meta', 'o:' .. pool) or '', '^%d+\\t(%d+)\\t') end\n"
    "local claims = call('HGETALL', at .. 'claims')\n"
    "for i = 1, #claims, 2 do\n"
    "    local c, text = claims[i], claims[i + 1]\n"
    "    local state, token, session, pools, ticket, head, reason =\n"
    "        string.match(text, '^(%a) (%d+) (%S+) (%S+) (%d+) %d+ (%S+) %d+ %S+ %S+ ?(.*)$')\n"
    "    local own, given = string.match(head, '^(%d+)%+(%d+)@%d+$')\n"
    "    for _, v in ipairs({c, state, token, session, ticket, head}) do out[#out + 1] = v end\n"
    "    want(c, call('SISMEMBER', at .. 'session:' .. session .. ':claims', c)\n"
    "        + call('SISMEMBER', at .. 'session:' .. session .. ':unsynced', c) == 1, 'of its session')\n"
    "    add('session:' .. session .. ':claims', 1)\n"
    "    local parked = 0\n"
    "    for pool, n in string.gmatch(pools, '([^:,]+):(%d+)') do\n"
    "        local base = at .. 'pool:' .. pool .. ':'\n"
    "        for k = 1, n do want(c, call('SISMEMBER', base .. 'held', c .. '#' .. k) == (state == 'H' and 1 or 0), 'held ' .. pool) end\n"
    "        if state == 'H' then add('pool:' .. pool .. ':held', n) end\n"
    "        local score = call('ZSCORE', base .. 'queue', c)\n"
    "        if state == 'W' and reason == '' then\n"
    "            want(c, score and tonumber(score) == ticket - (own or head) - (given or 0), 'queue ' .. pool)\n"
    "            add('pool:' .. pool .. ':queue', 1)\n"
    "        end\n"
    "        if call('ZSCORE', base .. 'parked', c) then\n"
    "            parked = parked + 1\n"
    "            add('pool:' .. pool .. ':parked', 1)\n"
    "        end\n"
    "        if pattern_of(pool) and (state == 'H' or state == 'W' and reason == '' or call('ZSCORE', base .. 'parked', c)) then\n"
    "            used[pool] = true\n"
    "        end\n"
    "    end\n"
    "    want(c, parked == (state == 'P' and reason == '' and 1 or 0), 'parked')\n"
    "end\n"
    "for key in pairs(used) do\n"
    "    n_used[pattern_of(key)] = (n_used[pattern_of(key)] or 0) + 1\n"
    "    want(key, call('SISMEMBER', at .. 'pool:' .. pattern_of(key) .. ':keys', key) == 1, 'has claims, and its pattern does not know it')\n"
    "end\n"
    "for _, pool in ipairs(call('SMEMBERS', at .. 'waiting')) do\n"
    "    want(pool, not pattern_of(pool) or used[pool], 'is a key without claims, noted as one where somebody waits')\n"
    "end\n"
    "for _, field in ipairs(call('HKEYS', at .. 'meta')) do\n"
    "    local pool = string.match(field, '^o:(.*)$')\n"
    "    if pool and pattern_of(pool) and override_of(pool) then\n"
    "        want(pool, call('HGET', at .. 'meta', 'l:' .. pool) == override_of(pool) .. '/', 'is noted without its override')\n"
    "        expected['l:' .. pool] = true\n"
    "    end\n"
    "end\n"
    "for _, key in ipairs(call('KEYS', at .. '*')) do\n"
    "    local name = string.sub(key, #at + 1)\n"
    "    if string.find(name, '^pool:.*:held$') then\n"
    "        want(name, call('SCARD', key) == (expected[name] or 0), 'has others')\n"
    "    elseif string.find(name, '^pool:.*:queue$') or string.find(name, '^pool:.*:parked$') then\n"
    "        want(name, call('ZCARD', key) == (expected[name] or 0), 'has others')\n"
    "    end\n"
    "    local pool = string.match(name, '^pool:(.*):limits$')\n"
    "    if pool then\n"
    "        local limit = call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]\n"
    "        local over = override_of(pool) or pattern_of(pool) and override_of(pattern_of(pool))\n"
    "        local noted, waits = string.match(call('HGET', at .. 'meta', 'l:' .. pool) or '', '^(%d+)([+!/]?)$')\n"
    "        want(pool, noted == (over or limit), 'is noted with another limit')\n"
    "        want(pool, (waits == '/') == (string.find(pool, '/', 1, true) ~= nil), 'is noted with the mark of another kind')\n"
    "        want(pool, waits == '+' or waits == '!' or waits == '/' or call('EXISTS', at .. 'pool:' .. pool .. ':queue') == 0, 'is noted as if nobody waited')\n"
    "        expected['l:' .. pool] = true\n"
    "    end\n"
    "    pool = string.match(name, '^pool:(.*):keys$')\n"
    "    if pool then want(pool, call('SCARD', key) == n_used[pool], 'knows keys without claims') end\n"
    "    pool = string.match(name, '^pool:(.*/.*):parked$') or string.match(name, '^pool:(.*):queue$')\n"
    "    if pool then want(pool, call('SISMEMBER', at .. 'waiting', pool) == 1, 'is not noted as one where somebody waits') end\n"
    "    if name ~= 'meta' and name ~= 'waiting' and name ~= 'sessions' and name ~= 'heartbeats' and name ~= 'overrides'\n"
    "        and name ~= 'marks' and not string.find(name, '^pool:.*:turns$') and not string.find(name, '^pool:.*:limits$') then extra[#extra + 1] = name end\n"
    "end\n"
    "local sessions, fields = call('HLEN', at .. 'sessions'), 0\n"
    "for _, field in ipairs(call('HKEYS', at .. 'meta')) do\n"
    "    if string.find(field, '^[ch]:') then fields = fields + 1 end\n"
    "    if string.find(field, '^l:') then want(field, expected[field], 'is noted, and nobody declares it') end\n"
    "    if field == 'unsettled' or field == 'grace' then extra[#extra + 1] = 'meta ' .. field end\n"
    "end\n"
    "if fields > 2 * sessions then extra[#extra + 1] = 'meta: ' .. fields .. ' fields of ' .. sessions .. ' sessions' end\n"
    "out[1], out[2] = table.concat(bad, ', '), table.concat(extra, ', ')\n"
    "return out\n";

static const char save_text[] =
    "#!lua flags=allow-oom\n"
    "redis.call('SELECT', 1) redis.call('FLUSHDB') redis.call('SELECT', 0)\n"
    "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', 1) end\n";
static const char restore_text[] =
    "#!lua flags=allow-oom\n"
    "redis.call('FLUSHDB') redis.call('SELECT', 1)\n"
    "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', 0) end\n"
    "redis.call('SELECT', 0)\n";

/* The lowest possible bounds, so that few claims suffice for `more` and for unsettled pools. */
static const struct {
    const char *from, *to;
} tight_bounds[] = {
    {"local moves = 128", "local moves = 2"},
    {"local grants = 128", "local grants = 1"},
    {"local visits = 256", "local visits = 3"},
    {"local ends = 128", "local ends = 2"},
    {"{}, 500", "{}, 1"},
    {"keys_left, finished = 500,", "keys_left, finished = 1,"},
    {"'SRANDMEMBER', unsynced, 128", "'SRANDMEMBER', unsynced, 1"},
};

/* Returns the text with each `from` replaced, and counts these; frees the old text. */
static char *replace(char *text, const char *from, const char *to, unsigned *count) {
    _cleanup_free_ char *old = text;
    char *result = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&result, &size);
    const char *at = old, *next;

    if (!out)
        abort();
    for (; (next = strstr(at, from)); at = next + strlen(from)) {
        fprintf(out, "%.*s%s", (int) (next - at), at, to);
        (*count)++;
    }
    fputs(at, out);
    if (fclose(out) != 0)
        abort();
    return result;
}

/* Returns the script with prelude and changes; the caller frees it. */
static char *compose(enum redis_script script, const struct model_mutation *mutation, bool tight, unsigned *mutated) {
    char *body = strdup(redis_script_text(script)), *text;
    unsigned ignored = 0;
    const char *rest;

    if (!body)
        abort();
    if (mutation && mutation->from)
        body = replace(body, mutation->from, mutation->to, mutated);
    for (size_t i = 0; tight && i < ELEMENTSOF(tight_bounds); i++)
        body = replace(body, tight_bounds[i].from, tight_bounds[i].to, &ignored);
    rest = strchr(body, '\n') + 1; /* the first line is #!lua and flags */
    if (asprintf(&text, "%.*s%s%s%s", (int) (rest - body), body, prelude, rest, epilogue) < 0)
        abort();
    free(body);
    return text;
}

static int load(struct bridge *b, const char *text, char sha[static REDIS_SHA_SIZE]) {
    _cleanup_reply_ redisReply *reply = redisCommand(b->client, "SCRIPT LOAD %s", text);

    if (!reply || reply->type != REDIS_REPLY_STRING || reply->len != REDIS_SHA_SIZE - 1) {
        printf("SCRIPT LOAD: %s\n", reply && reply->str ? reply->str : b->client->errstr);
        return -EIO;
    }
    memcpy(sha, reply->str, REDIS_SHA_SIZE);
    return 0;
}

int bridge_open(struct bridge *b, const struct model_mutation *mutation) {
    unsigned mutated = 0;
    int k = redis_server_start(&b->server, NULL);

    if (k < 0)
        return k;
    b->client = redisConnectUnixWithTimeout(b->server.socket, (struct timeval) {.tv_sec = 20});
    if (!b->client || b->client->err)
        return -ENOTCONN;
    (void) redisSetTimeout(b->client, (struct timeval) {.tv_sec = 20});
    for (unsigned tight = 0; k >= 0 && tight < 2; tight++)
        for (enum redis_script i = 0; k >= 0 && i < REDIS_SCRIPTS; i++) {
            _cleanup_free_ char *text = compose(i, mutation, tight, &mutated);

            k = load(b, text, b->sha[tight][i]);
        }
    if (k >= 0 && mutation && mutation->from && mutated == 0)
        k = -ENOENT;
    if (k >= 0)
        k = load(b, inspect_text, b->look);
    if (k >= 0)
        k = load(b, save_text, b->save);
    return k < 0 ? k : load(b, restore_text, b->restore);
}

void bridge_close(struct bridge *b) {
    if (b->client)
        redisFree(b->client);
    b->client = NULL;
    redis_server_done(&b->server);
}

redisReply *bridge_call(struct bridge *b, enum redis_script script, bool tight, usec_t redis_time, unsigned replid,
                        const struct redis_command *arguments) {
    const char **words = calloc(arguments->n + 6, sizeof(*words));
    char injected[120], serial[24];
    redisReply *reply;
    int argc = 5;

    if (!words)
        abort();
    (void) snprintf(injected, sizeof(injected), MODEL_NOW " %" PRIu64 " %" PRIu64 " %040u", redis_time / USEC_PER_SEC, redis_time % USEC_PER_SEC,
                    replid);
    words[0] = "EVALSHA";
    words[1] = b->sha[tight][script];
    words[2] = "2";
    words[3] = MODEL_KEY;
    words[4] = injected;
    (void) snprintf(serial, sizeof(serial), "%" PRIu64, ++b->serial);
    for (size_t i = 0; i < arguments->n; i++) {
        if (i == 3 && script_has_serial(script)) /* behind session, connection and epoch */
            words[argc++] = serial;
        words[argc++] = arguments->items[i];
    }
    if (arguments->n == 3 && script_has_serial(script))
        words[argc++] = serial;
    reply = redisCommandArgv(b->client, argc, words, NULL);
    free(words);
    return reply;
}

static bool line_names(const redisReply *line, const char *serial) {
    const char *word = reply_word(reply_at(line, 0));

    return strcmp(word, "epoch") == 0 || strcmp(word, "gone") == 0 || strcmp(word, "stale") == 0 ||
           strcmp(reply_word(reply_at(line, 1)), serial) == 0;
}

bool bridge_reply_names_call(const struct bridge *b, enum redis_script script, const redisReply *reply) {
    const redisReply *answer = reply_at(reply, 0), *line = reply_at(answer, 0);
    char serial[24];
    bool all = true;
    size_t n;

    (void) snprintf(serial, sizeof(serial), "%" PRIu64, b->serial);
    if (!script_has_serial(script) || reply_error(reply))
        return true;
    if (reply_count(line, &n) < 0)
        return line_names(answer, serial);
    for (size_t i = 0; (line = reply_at(answer, i)); i++)
        all = all && line_names(line, serial);
    return all;
}

redisReply *bridge_inspect(struct bridge *b) {
    return redis_command(&b->server, "EVALSHA %s 0", b->look);
}

redisReply *bridge_keys(struct bridge *b) {
    return redis_command(&b->server, "KEYS *");
}

bool bridge_has_session(struct bridge *b, unsigned session) {
    return redis_number(&b->server, "HEXISTS " MODEL_KEY " c:s%u", session) == 1;
}

static void must(redisReply *reply) {
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        printf("Redis: %s\n", reply ? reply->str : "no answer");
        abort();
    }
    freeReplyObject(reply);
}

void bridge_set_full(struct bridge *b, bool full) {
    if (b->full != full)
        must(redis_command(&b->server, "CONFIG SET maxmemory %d", full));
    b->full = full;
}

void bridge_set_replica(struct bridge *b, bool replica) {
    if (b->replica != replica)
        must(redis_command(&b->server, replica ? "REPLICAOF 127.0.0.1 1" : "REPLICAOF NO ONE")); /* no server listens there */
    b->replica = replica;
}

/* Faults change Redis's data with rights that berth does not have. */
static void change(struct bridge *b, const char *format, const char *word) {
    bool replica = b->replica;

    bridge_set_replica(b, false);
    must(redis_command(&b->server, format, word));
    bridge_set_replica(b, replica);
}

void bridge_wipe(struct bridge *b) {
    change(b, "FLUSHDB", NULL); /* the copy stays */
}

void bridge_save(struct bridge *b) {
    change(b, "EVALSHA %s 0", b->save);
}

void bridge_restore(struct bridge *b) {
    change(b, "EVALSHA %s 0", b->restore);
}
