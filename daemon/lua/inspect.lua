#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- inspect: what people want to see. Reads only.
--
-- KEYS  berth:{ns}:meta
-- ARGV  sessions
-- Reply {'ok', epoch, grace(0|1), known-µs, time-µs, sessions}
--         sessions: {session, host, version, declared("db=4,net=2"), beat-count, claims} each, 1000 at most
-- ARGV  pool NAME, then claims whose place in its queue is wanted, 1000 at most
-- Reply {'ok', limit, lowest, highest, override, used, waiting, parked, holders, queue, positions,
--        elsewhere: sessions that have it with scope host}
--         lowest, highest: declared, -1 if by nobody;  override: {} or {limit, until-µs, reason}
--         holders: {claim, session, name, permits, token, since-µs, pid} each, 1000 at most
--         queue: {claim, session, name, permits, since-µs, position(0: parked)} each, 1000 at most
--         positions: of the claims asked for, 0: not in this queue
-- Cost  one call a session, claim and holder; at most some 5000
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
--#include core
if ARGV[1] == 'sessions' then
    local list = {}
    for _, s in ipairs(call('ZRANGE', at .. 'beats', 0, 999)) do
        local host, _, version, declared = string.match(call('HGET', at .. 'sessions', s) or '', '^(%S+) (%S+) (%S+) (%S*)$')
        if host then
            list[#list + 1] = {s, host, version, declared, tonumber(call('ZSCORE', at .. 'beats', s)), call('SCARD', at .. 'of:' .. s)}
        end
    end
    return {'ok', epoch or '', grace and 1 or 0, tonumber(call('HGET', meta, 'known') or 0), fmt(now()), list}
end

local pool = ARGV[2]
local base = at .. 'pool:' .. pool

local function wants(r)
    for i = 1, #r.list, 2 do
        if r.list[i] == pool then return r.list[i + 1] end
    end
    return 0
end

local holders, seen = {}, {}
for _, member in ipairs(call('SRANDMEMBER', base .. ':held', 4000)) do
    local c = string.match(member, '^(.*)#')
    if not seen[c] and #holders < 1000 then
        seen[c] = true
        local r = read_claim(c)
        if r then holders[#holders + 1] = {c, r.session, r.name, wants(r), r.token, r.since, tonumber(r.pid)} end
    end
end

local queue = {}
for position, c in ipairs(call('ZRANGE', base .. ':queue', 0, 999)) do
    local r = read_claim(c)
    if r then queue[#queue + 1] = {c, r.session, r.name, wants(r), r.since, position} end
end
for _, c in ipairs(call('ZRANGE', base .. ':parked', 0, 999 - #queue)) do
    local r = read_claim(c)
    if r and #queue < 1000 then queue[#queue + 1] = {c, r.session, r.name, wants(r), r.since, 0} end
end

local positions = {}
for i = 3, math.min(#ARGV, 1002) do
    positions[i - 2] = (call('ZRANK', base .. ':queue', ARGV[i]) or -1) + 1
end

local override = {}
local text = call('HGET', meta, 'o:' .. pool)
if text then
    local o = parse_override(text)
    if o.limit ~= '-' then
        override = {tonumber(o.limit), o.until_usec, o.reason}
    end
end
return {'ok', limit_of(pool), tonumber(call('ZRANGE', base .. ':limits', 0, 0, 'WITHSCORES')[2] or -1),
    tonumber(call('ZRANGE', base .. ':limits', -1, -1, 'WITHSCORES')[2] or -1), override, call('SCARD', base .. ':held'),
    call('ZCARD', base .. ':queue'), call('ZCARD', base .. ':parked'), holders, queue,
    positions, call('ZCARD', base .. ':elsewhere')}
