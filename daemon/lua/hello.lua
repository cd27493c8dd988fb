#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- hello: opens a session or continues it on a new connection (R6), and declares its limits (R14). Said again on the same
-- connection it declares anew (reload). A sync must follow it.
--
-- KEYS  berth:{ns}:meta
-- ARGV  session connection
--       replaced   the session that this one replaces, "" if none: it ends here
--       host machine version lease-µs
--       clock      the highest ticket or token that this host remembers, aged (R10)
--       epoch      that it knew last, 0 if none;  dead: as in beat, of that epoch
--       limits     how many, then for each: pool limit; limit "host": there it is of scope host
--       then overrides that it remembers, for each: pool version limit until-µs by restore reason
-- Reply {'ok', epoch, more, grace, count, known(1: the session was there), clock, overrides, differing, undeclared, ended,
--         reclaimed, cut}
--         differing: {pool, lowest, highest, elsewhere} of its pools that live sessions declare differently; elsewhere: so many
--           have it with scope host, and others share it
--         the rest as in beat
--         cut: the last number drawn before what is declared here took effect
--       {'lease-differs', epoch, more, count, lease-µs, clock, ended, reclaimed, undeclared}: a session lives by another lease (R4)
--       {'name-taken', the same}: a live session of this host name on another machine
--       {'stale', connection}: a newer connection was there;  {'schema', n}: the data is newer than this script
-- Cost  about 15 calls and 5 a pool declared
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local schema = call('HGET', meta, 'schema')
if schema and tonumber(schema) > 1 then return {'schema', schema} end
--#include core
--#include queue
--#include session
--#include limits
--#include wipe
local s, connection, host = ARGV[1], ARGV[2], ARGV[4]
local old_connection, last = string.match(call('HGET', meta, 'c:' .. s) or '', '^(%d+) (%d+)$')
if old_connection and tonumber(old_connection) > tonumber(connection) then return {'stale', old_connection} end
hear_clock(tonumber(ARGV[8]))
hear_clock(tonumber(ARGV[9])) -- an epoch is a number of the same clock: a new one is another one
if not schema and call('EXISTS', at .. 'claims', at .. 'sessions', at .. 'beats') > 0 then
    call('UNLINK', at .. 'overrides') -- hosts remember them
    wipe()
end
if in_epoch() and epoch == ARGV[9] then bury(tonumber(ARGV[10]), s) end
if ARGV[3] ~= '' and ARGV[3] ~= s and call('HEXISTS', at .. 'sessions', ARGV[3]) == 1 then end_session(ARGV[3]) end

local refusal
local namesake = call('HGET', meta, 'h:' .. host)
if namesake and namesake ~= s and (tonumber(call('ZSCORE', at .. 'beats', namesake) or 0)) > 0 then
    local machine = string.match(call('HGET', at .. 'sessions', namesake) or '', '^%S+ (%S+)')
    if machine and machine ~= ARGV[5] then refusal = 'name-taken' end
end
if not refusal and lease ~= ARGV[7] then
    local others, own = call('ZCOUNT', at .. 'beats', 1, '+inf'), tonumber(call('ZSCORE', at .. 'beats', s) or 0)
    if own > 0 then others = others - 1 end
    -- What a session held under a longer lease may be in use until that is over (R8): so long it is bound to it as others are.
    local bound = own > 0 and lease and tonumber(lease) > tonumber(ARGV[7]) and not (epoch == ARGV[9] and own <= tonumber(ARGV[10]))
        and call('EXISTS', at .. 'of:' .. s, at .. 'unnamed:' .. s) > 0
    if lease and others > 0 or bound then
        refusal = 'lease-differs'
    else
        call('HSET', meta, 'lease', ARGV[7])
    end
end
if refusal then
    settle()
    save_clock()
    return {refusal, epoch, more, tonumber(call('HGET', meta, 'beat') or 0), lease or ARGV[7], fmt(math.max(clock, now())), ended, reclaimed,
        undeclared}
end

call('HSET', meta, 'c:' .. s, connection .. ' ' .. (last or '0'), 'h:' .. host, s)
local count = call('HINCRBY', meta, 'beat', 1)
call('ZADD', at .. 'beats', count, s)

local declared, kind, first_override = {}, {}, 12 + 2 * tonumber(ARGV[11])
for i = 12, first_override - 1, 2 do kind[ARGV[i]] = ARGV[i + 1] == 'host' and 'host' or 'limit' end
local name, before = string.match(call('HGET', at .. 'sessions', s) or '', '^(%S+) %S+ %S+ (%S*)$')
if name and name ~= host and call('HGET', meta, 'h:' .. name) == s then call('HDEL', meta, 'h:' .. name) end -- it has another now
before = parse_declared(before or '')
for i = 1, #before, 2 do
    if kind[before[i]] ~= (before[i + 1] == 'host' and 'host' or 'limit') then undeclare(s, before[i], before[i + 1]) end
end
for i = 12, first_override - 1, 2 do
    declared[#declared + 1] = ARGV[i] .. '=' .. ARGV[i + 1]
    local key = at .. 'pool:' .. ARGV[i] .. ':limits'
    if ARGV[i + 1] == 'host' then
        call('ZADD', at .. 'pool:' .. ARGV[i] .. ':elsewhere', 0, s)
    else
        if call('ZADD', key, 'CH', ARGV[i + 1], s) == 1 then
            limits[ARGV[i]] = nil
            touch(ARGV[i])
        end
        note_limit(ARGV[i])
    end
end
call('HSET', at .. 'sessions', s, table.concat({host, ARGV[5], ARGV[6], table.concat(declared, ',')}, ' '))

local cut = fmt(clock)
for i = first_override, #ARGV, 7 do
    local known = call('ZSCORE', at .. 'overrides', ARGV[i])
    hear_clock(tonumber(ARGV[i + 1]))
    if not known or tonumber(known) < tonumber(ARGV[i + 1]) then
        write_override(ARGV[i], {version = ARGV[i + 1], limit = ARGV[i + 2], until_usec = ARGV[i + 3], by = ARGV[i + 4],
            restore = ARGV[i + 5], reason = ARGV[i + 6]})
    end
end
if first_override <= #ARGV then end_overrides() end

local differing = {}
for i = 12, first_override - 1, 2 do
    local base = at .. 'pool:' .. ARGV[i]
    local lowest = call('ZRANGE', base .. ':limits', 0, 0, 'WITHSCORES')[2]
    local highest = call('ZRANGE', base .. ':limits', -1, -1, 'WITHSCORES')[2]
    local elsewhere = call('ZCARD', base .. ':elsewhere')
    if lowest ~= highest or (lowest and elsewhere > 0) then differing[#differing + 1] = {ARGV[i], lowest, highest, elsewhere} end
end
settle()
save_clock()
-- The time, if that is later: a host that hears the clock for the first time would else believe it to be as old as the last number.
return {'ok', epoch, more, grace and 1 or 0, count, old_connection and 1 or 0, fmt(math.max(clock, now())), newer_overrides(0), differing, undeclared,
    ended, reclaimed, cut}
