#!lua flags=allow-oom,no-writes
-- SPDX-License-Identifier: MIT
-- inspect: returns the state, for people, in slices: one call takes as long as a few claims. It never fails on keys that were
-- changed by hand: it returns values that it cannot read as malformed, and the others as usual. The caller parses numbers and
-- records, which are the texts found in Redis. It reads lists of claims and their records by SSCAN, ZRANGE and HMGET; this script
-- reads records that HMGET did not have.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  sessions FROM                    sessions with a higher heartbeat count; "0" at first
-- Reply {'ok', malformed, epoch, grace(0|1), known-µs, time-µs, ids, heartbeat counts, records, numbers of claims}: 32, or all that are left
-- ARGV  pool POOL
-- Reply {'ok', malformed, limit, lowest, highest, override, used, waiting, parked, host-scoped, lowest-session}
--         lowest, highest: of the declared limits;  host-scoped: how many sessions declare it with scope host
--         lowest-session: a session that declares the lowest; '' if there is none
--         override: {} or {limit, until-µs, reason}
-- ARGV  records POOL held|queue|parked CLAIM...   100 at most, of such a list
-- Reply {'ok', malformed, records}: nil if a listed claim has no record, '' if the claim has left the list
-- ARGV  positions POOL CLAIM...          100 at most
-- Reply {'ok', malformed, position...}   1 first; 0: not in this queue
-- ARGV  keys PATTERN CURSOR              "0" at first
-- Reply {'ok', malformed, next cursor("0": no more follow), key, limit, used, waiting, parked, key, ...}: keys with claims; one may
--         come twice
-- ARGV  times HOST...                    20 at most
-- Reply {'ok', malformed, text...}       of the host's session; '': none
-- malformed: {key, id, text} each: a key of a wrong type and the error, or an override that cannot be read
-- Cost  at most 0.25 ms on a machine that needs 1 µs for an empty script
local meta, what, pool = KEYS[1], ARGV[1], ARGV[2]
local at = string.sub(meta, 1, -5)
local base = at .. 'pool:' .. (pool or '')
local malformed, nothing = {}, {HMGET = {}, ZRANGE = {}, SSCAN = {'0', {}}, SCARD = 0, ZCARD = 0}

-- Treats a key of a wrong type as empty.
local function call(command, ...)
    local r = redis.pcall(command, ...)
    if type(r) == 'table' and r.err then
        malformed[#malformed + 1] = {(...) or command, '', r.err}
        return nothing[command] or false
    end
    return r
end
--#include core

if what == 'sessions' then
    local ids, counts, claims = {}, {}, {}
    local list = call('ZRANGE', at .. 'heartbeats', '(' .. pool, '+inf', 'BYSCORE', 'LIMIT', '0', '32', 'WITHSCORES')
    for i = 1, #list, 2 do
        ids[#ids + 1], counts[#counts + 1] = list[i], list[i + 1]
        claims[#claims + 1] = call('SCARD', claims_of(list[i]))
    end
    return {'ok', malformed, epoch or '', grace and 1 or 0, tonumber(call('HGET', meta, 'grace_elapsed') or 0) or 0, fmt(now()), ids, counts,
        #ids > 0 and call('HMGET', at .. 'sessions', unpack(ids)) or {}, claims}
end

if what == 'records' then
    local key, list = base .. ':' .. ARGV[3], call('HMGET', at .. 'claims', unpack(ARGV, 4))
    for i = 4, #ARGV do
        if not list[i - 3] then
            local listed = ARGV[3] == 'held' and call('SISMEMBER', key, ARGV[i] .. '#1') == 1 or
                ARGV[3] ~= 'held' and call('ZSCORE', key, ARGV[i])
            if listed then list[i - 3] = false else list[i - 3] = '' end
        end
    end
    return {'ok', malformed, list}
end

if what == 'positions' then
    local list = {'ok', malformed}
    for i = 3, math.min(#ARGV, 102) do list[i] = (call('ZRANK', base .. ':queue', ARGV[i]) or -1) + 1 end
    return list
end

if what == 'times' then
    local list = {'ok', malformed}
    for i = 2, math.min(#ARGV, 21) do
        local s = call('HGET', meta, 'h:' .. ARGV[i])
        list[i + 1] = s and call('HGET', at .. 'times', s) or ''
    end
    return list
end

if what == 'keys' then
    local page = call('SSCAN', base .. ':keys', ARGV[3], 'COUNT', '20')
    local list = {'ok', malformed, page[1]}
    for _, key in ipairs(page[2]) do
        local of_key = at .. 'pool:' .. key
        for _, value in ipairs({key, fmt(limit_of(key)), call('SCARD', of_key .. ':held'), call('ZCARD', of_key .. ':queue'),
            call('ZCARD', of_key .. ':parked')}) do list[#list + 1] = value end
    end
    return list
end

local pattern, override = pattern_of(pool), {}
local text = call('HGET', meta, 'o:' .. pool)
if text then
    local o = parse_override(text)
    if o.limit and o.limit ~= '-' then
        override = {o.limit, o.until_usec, o.reason}
    elseif not o.limit then
        malformed[#malformed + 1] = {meta, 'o:' .. pool, string.sub(text, 1, 100)}
    end
end
local lowest = call('ZRANGE', base .. ':limits', '0', '0', 'WITHSCORES')
local highest = call('ZRANGE', base .. ':limits', '-1', '-1', 'WITHSCORES')
local limit = override[1] or pattern and (override_of(pattern) or lowest[2] or lowest_limit(pattern)) or lowest[2] or '0'
return {'ok', malformed, tostring(limit), lowest[2] or '', highest[2] or '', override, call('SCARD', base .. ':held'),
    call('ZCARD', base .. ':queue'), call('ZCARD', base .. ':parked'), call('ZCARD', base .. ':host_scoped'), lowest[1] or ''}
