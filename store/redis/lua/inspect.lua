#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- inspect: the state, for people. Reads only. It never fails on keys that were changed by hand: it returns values that it
-- cannot parse as malformed, and the others as usual. Numbers are the texts found in Redis; the caller parses them.
--
-- KEYS  berth:{ns}:meta
-- ARGV  sessions
-- Reply {'ok', epoch, grace(0|1), known-µs, time-µs, sessions, malformed}
--         sessions: {session, record, beat-count, claims} each, 1000 at most
-- ARGV  pool NAME, then at most 1000 claims whose places in its queue are requested
-- Reply {'ok', limit, lowest, highest, override, used, waiting, parked, holders, queue, positions,
--        host_scoped: sessions that declare it with scope host, lowest-session, malformed}
--         lowest, highest: of the declared limits;  lowest-session: a session that declares the lowest; '' if there is none
--         override: {} or {limit, until-µs, reason}
--         holders: {claim, session, name, permits, token, since-µs, pid} each, 1000 at most
--         queue: {claim, session, name, permits, since-µs, position(0: parked)} each, 1000 at most
--         positions: of the requested claims, 0: not in this queue
--         malformed: {key, id, text} each, 100 at most: a value of this key (of this id) that is no valid record
-- ARGV  keys PATTERN, then a cursor, "0" at first
-- Reply {'ok', next-cursor("0": that was all), key, limit, used, waiting, parked, key, ...} of some keys with claims; a key may come twice
-- Cost  one call a session, claim and holder; at most some 5000
local meta, what, pool = KEYS[1], ARGV[1], ARGV[2]
local FIRST_CLAIM = 3
local at = string.sub(meta, 1, -5)
local malformed, nothing = {}, {HMGET = {}, ZRANGE = {}, SSCAN = {'0', {}}, SRANDMEMBER = {}, SMEMBERS = {}, SCARD = 0, ZCARD = 0, ZCOUNT = 0}

local function tell(key, id, text)
    if #malformed < 100 then malformed[#malformed + 1] = {key, id, string.sub(text, 1, 100)} end
end

-- Treats a key of a wrong type as empty.
local function call(command, ...)
    local r = redis.pcall(command, ...)
    if type(r) == 'table' and r.err then
        tell((...) or command, '', r.err)
        return nothing[command] or false
    end
    return r
end
--#include core
if what == 'sessions' then
    local list = {}
    for _, s in ipairs(call('ZRANGE', at .. 'heartbeats', 0, 999)) do
        list[#list + 1] = {s, call('HGET', at .. 'sessions', s) or '', call('ZSCORE', at .. 'heartbeats', s) or '',
            call('SCARD', claims_of(s))}
    end
    return {'ok', epoch or '', grace and 1 or 0, tonumber(call('HGET', meta, 'grace_elapsed') or 0) or 0, fmt(now()), list, malformed}
end

local base, pattern = at .. 'pool:' .. pool, pattern_of(pool)

if what == 'keys' then
    local page = call('SSCAN', base .. ':keys', ARGV[3], 'COUNT', 250)
    local list = {'ok', page[1]}
    for _, key in ipairs(page[2]) do
        local of_key = at .. 'pool:' .. key
        for _, value in ipairs({key, fmt(limit_of(key)), call('SCARD', of_key .. ':held'), call('ZCARD', of_key .. ':queue'),
            call('ZCARD', of_key .. ':parked')}) do list[#list + 1] = value end
    end
    return list
end

-- Returns a claim found in a key of this pool; nil: it has no valid record, and may not even be a claim's id.
local function see(c, key)
    local text = call('HGET', at .. 'claims', c)
    local r = text and parse_claim(text)
    for i = 1, r and #r.list or 0, 2 do
        if r.list[i] == pool then
            r.wants = fmt(r.list[i + 1])
            return r
        end
    end
    tell(key, c, text or 'no record')
end

local holders, seen = {}, {}
for _, member in ipairs(call('SRANDMEMBER', base .. ':held', 4000)) do
    local c = string.match(member, '^(.*)#') or member
    if not seen[c] and #holders < 1000 then
        seen[c] = true
        local r = see(c, base .. ':held')
        if r then holders[#holders + 1] = {c, r.session, r.name, r.wants, r.token, r.since, r.pid} end
    end
end

local queue = {}
for position, c in ipairs(call('ZRANGE', base .. ':queue', 0, 999)) do
    local r = see(c, base .. ':queue')
    if r then queue[#queue + 1] = {c, r.session, r.name, r.wants, r.since, position} end
end
for _, c in ipairs(call('ZRANGE', base .. ':parked', 0, 999 - #queue)) do
    local r = see(c, base .. ':parked')
    if r and #queue < 1000 then queue[#queue + 1] = {c, r.session, r.name, r.wants, r.since, 0} end
end

local positions = {}
for i = FIRST_CLAIM, math.min(#ARGV, FIRST_CLAIM + 999) do
    positions[#positions + 1] = (call('ZRANK', base .. ':queue', ARGV[i]) or -1) + 1
end

local override = {}
local text = call('HGET', meta, 'o:' .. pool)
if text then
    local o = parse_override(text)
    if o.limit and o.limit ~= '-' then
        override = {o.limit, o.until_usec, o.reason}
    elseif not o.limit then
        tell(meta, 'o:' .. pool, text)
    end
end
local lowest = call('ZRANGE', base .. ':limits', 0, 0, 'WITHSCORES')
local highest = call('ZRANGE', base .. ':limits', -1, -1, 'WITHSCORES')
local limit = override[1] or pattern and (override_of(pattern) or lowest[2] or lowest_limit(pattern)) or lowest[2] or '0'
return {'ok', tostring(limit), lowest[2] or '', highest[2] or '', override, call('SCARD', base .. ':held'),
    call('ZCARD', base .. ':queue'), call('ZCARD', base .. ':parked'), holders, queue,
    positions, call('ZCARD', base .. ':host_scoped'), lowest[1] or '', malformed}
