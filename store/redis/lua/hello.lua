#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- hello: opens a session or continues it on a new connection (R6), and declares its limits (R14). Repeated on the same
-- connection it declares its limits again (reload). A sync must follow it. It alone begins an epoch (R10).
--
-- KEYS  berth:{ns}:meta
-- ARGV  session connection
--       replaced   the session that this one replaces, "" if none: it ends here
--       host machine version lease-µs
--       drawn      the highest ticket or token that this host has heard of
--       latest     no number drawn so far can be higher, as far as this host remembers; heard in grace (R10)
--       epoch      that it knew last, 0 if none;  own: as in beat, 0 if that call was sent a lease ago;  dead: as in beat
--       lost       1: Redis has lost data of that epoch;  2: a script ended with an error in it, half of its work may be done;  0
--       fresh      the id of the epoch that begins here if there is none: random, never used before
--       limits     how many, then for each: pool limit; limit "host": there it is of scope host
--       then overrides that it remembers, for each: pool version limit until-µs by restore reason
-- Reply {'ok', epoch, more, grace, count, known(1: the session was there), latest, overrides, differing, undeclared, ended,
--         reclaimed, limits_effective_after}
--         differing: {pool, lowest, highest, host_scoped} of its pools that live sessions declare differently; host_scoped: so many
--           have it with scope host, and others share it
--         the rest as in beat
--         limits_effective_after: the last number drawn before what is declared here took effect
--       {'lease-differs', epoch, more, count, lease-µs, latest, ended, reclaimed, undeclared}: a session lives by another lease (R4)
--       {'name-taken', the same}: a live session of this host name on another machine
--       {'again'}: what was there is being thrown away, this call's bound was reached
--       {'gone'}: the session is another machine's;  {'stale', connection}: a newer connection was there
--       {'schema', n}: the data is newer than this script
-- Cost  about 15 calls and 6 a pool declared
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
if call('TYPE', meta)['ok'] ~= 'hash' then call('UNLINK', meta) end
local schema, broken = unpack(call('HMGET', meta, 'schema', 'broken'))
if schema and tonumber(schema) > 1 then return {'schema', schema} end
--#include core
--#include queue
--#include session
--#include limits
local s, connection, host = ARGV[1], ARGV[2], ARGV[4]
local old_connection, last = string.match(call('HGET', meta, 'c:' .. s) or '', '^(%d+) (%d+)$')
if old_connection and tonumber(old_connection) > tonumber(connection) then return {'stale', old_connection} end

-- A script changes all places of a claim at once. Where one of them is missing, or is no such key, somebody else changed it, and no
-- counting of what is left tells what is held (R5). So all of it goes before the next epoch begins, in whose grace hosts tell what they
-- hold and wait for, as after a loss of data (R10). What stays: the clock, and overrides as far as they are there. False if the
-- bound cut it short.
local function wipe()
    local sessions, budget = {}, 500
    call('UNLINK', at .. 'claims', at .. 'unsettled', at .. 'waiting')
    for _, key in ipairs({'heartbeats', 'sessions', 'overrides'}) do
        local kind = key == 'sessions' and 'hash' or 'zset'
        if call('TYPE', at .. key)['ok'] ~= kind then call('UNLINK', at .. key) end
    end
    local function unlink_pool(pool)
        local base = at .. 'pool:' .. pool
        call('UNLINK', base .. ':held', base .. ':queue', base .. ':parked', base .. ':limits', base .. ':host_scoped')
    end
    local cursor = '0'
    repeat
        local page = call('HSCAN', meta, cursor, 'COUNT', 200)
        cursor = page[1]
        for i = 1, #page[2], 2 do
            local kind, name = string.match(page[2][i], '^([chlo]):(.*)$')
            if kind == 'c' then sessions[#sessions + 1] = name end
            if kind == 'l' then unlink_pool(name) end
            if kind == 'o' then
                call('ZADD', at .. 'overrides', string.match(page[2][i + 1], '^%d+') or '0', name)
            elseif kind then
                call('HDEL', meta, page[2][i])
            end
        end
    until cursor == '0' or #sessions > budget
    for _, id in ipairs(call('ZRANGE', at .. 'heartbeats', 0, budget)) do sessions[#sessions + 1] = id end
    for _, id in ipairs(sessions) do
        for pool in string.gmatch(call('HGET', at .. 'sessions', id) or '', '([^ =,]+)=%w+') do unlink_pool(pool) end
        call('UNLINK', claims_of(id), unsynced_of(id))
        call('HDEL', at .. 'sessions', id)
        call('ZREM', at .. 'heartbeats', id)
    end
    if cursor ~= '0' or call('EXISTS', at .. 'heartbeats') == 1 then return false end
    call('UNLINK', at .. 'sessions')
    call('HDEL', meta, 'unsettled', 'broken')
    unsettled, limits = false, {}
    return true
end

-- Redis's memory may go back although it is the same Redis: a host has seen more than is there.
local named = epoch == ARGV[10]
if named and (ARGV[13] ~= '0' or tonumber(call('ZSCORE', at .. 'heartbeats', s) or 0) < tonumber(ARGV[11]))
    or clock < tonumber(ARGV[8]) and (named or not grace) then end_epoch() end
if ARGV[13] == '2' and (not epoch or named or grace or ARGV[10] == '0') then broken = '1' end -- grace: that script may have begun it
if not schema and call('EXISTS', at .. 'claims', at .. 'sessions', at .. 'heartbeats') > 0 then
    call('UNLINK', at .. 'overrides') -- hosts remember them
    broken = '1'
end
if broken then
    call('HSET', meta, 'broken', '1') -- a wipe that is cut short goes on with the next hello
    end_epoch()
    if not wipe() then return {'again'} end
    last, old_connection = nil, nil
end
if not is_plausible(clock) then clock = 0 end
observe_clock(tonumber(ARGV[8]))
if in_epoch() then
    if grace then observe_clock(tonumber(ARGV[9])) end
    if named then expire(tonumber(ARGV[12]), s) end
else
    named = false -- counts of another epoch mean nothing
    observe_clock(tonumber(ARGV[9]))
    replid, epoch, grace, trusted = string.match(call('INFO', 'replication'), 'master_replid:%w+'), ARGV[14], true, true
    began = tick()
    call('HSET', meta, 'about', 'a namespace of berth, changed by its scripts alone: see doc/protocol.md there',
        'schema', 1, 'epoch', epoch, 'began', fmt(began), 'replid', replid, 'grace', 1, 'grace_elapsed', 0)
end

-- Who copied a runtime directory, or a whole machine, neither takes over a session of another machine nor ends it.
local function is_of_another_machine(id)
    local machine = string.match(call('HGET', at .. 'sessions', id) or '', '^%S+ (%S+)')
    return machine and machine ~= ARGV[5]
end
if is_of_another_machine(s) then
    settle()
    save_clock()
    return {'gone'}
end
if ARGV[3] ~= '' and ARGV[3] ~= s and call('HEXISTS', at .. 'sessions', ARGV[3]) == 1 and not is_of_another_machine(ARGV[3]) then
    end_session(ARGV[3])
end

local refusal
local namesake = call('HGET', meta, 'h:' .. host)
if namesake and namesake ~= s and (tonumber(call('ZSCORE', at .. 'heartbeats', namesake) or 0)) > 0 then
    if is_of_another_machine(namesake) then refusal = 'name-taken' end
end
if not refusal and lease ~= ARGV[7] then
    local others, own = call('ZCOUNT', at .. 'heartbeats', 1, '+inf'), tonumber(call('ZSCORE', at .. 'heartbeats', s) or 0)
    if own > 0 then others = others - 1 end
    -- What a session held under a longer lease may be in use until that is over (R8): so long it is bound to it as others are.
    local bound = own > 0 and lease and tonumber(lease) > tonumber(ARGV[7]) and not (named and own <= tonumber(ARGV[12]))
        and call('EXISTS', claims_of(s), unsynced_of(s)) > 0
    if lease and others > 0 or bound then
        refusal = 'lease-differs'
    else
        call('HSET', meta, 'lease', ARGV[7])
    end
end
if refusal then
    settle()
    save_clock()
    return {refusal, epoch, more, tonumber(call('HGET', meta, 'heartbeat_count') or 0), lease or ARGV[7],
        latest(), ended, reclaimed, undeclared}
end

call('HSET', meta, 'c:' .. s, connection .. ' ' .. (last or '0'), 'h:' .. host, s)
local count = call('HINCRBY', meta, 'heartbeat_count', 1)
call('ZADD', at .. 'heartbeats', count, s)

local declared, kind, first_override = {}, {}, 16 + 2 * tonumber(ARGV[15])
for i = 16, first_override - 1, 2 do kind[ARGV[i]] = ARGV[i + 1] == 'host' and 'host' or 'limit' end
local name, before = string.match(call('HGET', at .. 'sessions', s) or '', '^(%S+) %S+ %S+ (%S*)$')
if name and name ~= host and call('HGET', meta, 'h:' .. name) == s then call('HDEL', meta, 'h:' .. name) end -- it has another now
before = parse_declared(before or '')
for i = 1, #before, 2 do
    if kind[before[i]] ~= (before[i + 1] == 'host' and 'host' or 'limit') then undeclare(s, before[i], before[i + 1]) end
end
for i = 16, first_override - 1, 2 do
    declared[#declared + 1] = ARGV[i] .. '=' .. ARGV[i + 1]
    local key = at .. 'pool:' .. ARGV[i] .. ':limits'
    if ARGV[i + 1] == 'host' then
        call('ZADD', at .. 'pool:' .. ARGV[i] .. ':host_scoped', 0, s)
    else
        if call('ZADD', key, 'CH', ARGV[i + 1], s) == 1 then
            change_limit(ARGV[i])
        else
            cache_limit(ARGV[i])
        end
    end
end
call('HSET', at .. 'sessions', s, table.concat({host, ARGV[5], ARGV[6], table.concat(declared, ',')}, ' '))

local limits_effective_after = fmt(clock)
for i = first_override, #ARGV, 7 do
    local known = call('ZSCORE', at .. 'overrides', ARGV[i])
    observe_clock(tonumber(ARGV[i + 1]))
    if not known or tonumber(known) < tonumber(ARGV[i + 1]) then
        write_override(ARGV[i], {version = ARGV[i + 1], limit = ARGV[i + 2], until_usec = ARGV[i + 3], by = ARGV[i + 4],
            restore = ARGV[i + 5], reason = ARGV[i + 6]})
    end
end
if first_override <= #ARGV then end_overrides() end

local differing = {}
for i = 16, first_override - 1, 2 do
    local base = at .. 'pool:' .. ARGV[i]
    local lowest = call('ZRANGE', base .. ':limits', 0, 0, 'WITHSCORES')[2]
    local highest = call('ZRANGE', base .. ':limits', -1, -1, 'WITHSCORES')[2]
    local host_scoped = call('ZCARD', base .. ':host_scoped')
    if lowest ~= highest or (lowest and host_scoped > 0) then differing[#differing + 1] = {ARGV[i], lowest, highest, host_scoped} end
end
settle()
save_clock()
return {'ok', epoch or '', more, grace and 1 or 0, count, old_connection and 1 or 0, latest(), newer_overrides(0), differing, undeclared,
    ended, reclaimed, limits_effective_after}
