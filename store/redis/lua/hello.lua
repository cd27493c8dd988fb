#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- hello: opens a session or continues it on a new connection (R6), and declares its limits (R14). Repeated on the same
-- connection it declares its limits again (reload). A sync must follow. No other script begins an epoch (R10).
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection
--       replaced   the session that this one replaces, which this call ends; "": none
--       host machine version lease-µs
--       drawn      the highest ticket or token that this host has received
--       latest     an upper bound of all numbers drawn so far, as this host knows it; used in grace (R10)
--       epoch      the last one that the host knew, 0: none
--       own        as in heartbeat; 0 if that heartbeat was sent a lease ago
--       dead       as in heartbeat
--       lost       1: Redis lost data of that epoch;  2: a script failed and may have done half of its work;  0: neither
--       fresh      a new random id, for an epoch that this call begins. The id of a namespace may follow: ",=ID" is the one that
--                  this host was in, ",+ID" a new one. A namespace without an id gets it. In grace it does not get a new one,
--                  because a host that was in the namespace before may still come. "!" behind it: the session must be there
--       limits     their number, then for each: pool limit. limit: "host": a pool of scope host on this host; "1xHEX": of a job that
--                  hosts share, whose due times have this hash
--       then the overrides that it knows, for each: pool version limit until-µs by restore reason
-- Reply {'ok', epoch, more, grace, count, known(1: the session was there), latest, overrides, differing, undeclared, ended,
--         reclaimed, limits_effective_after}
--         differing: {pool, lowest, highest, host_scoped, other} of its pools that live sessions declare differently; host_scoped: how
--           many declare it with scope host while others share it; other: a host on which the pool's job has other due times
--         limits_effective_after: the last number drawn before these limits took effect
--         the id of the namespace follows ('': it has none yet); the rest as in heartbeat
--       {'lease-differs', epoch, more, count, lease-µs, latest, ended, reclaimed, undeclared}: a live session has another lease (R4)
--       {'name-taken', the same}: a live session of this host name on another machine
--       {'again'}: this call reached its bound while it removed old data
--       {'other', id}: the host was in a namespace of another id, or its session is not there; the call had no effect
--       {'gone'}: the session belongs to another machine;  {'stale', connection}: there was a newer connection
--       {'schema', n}: the data is newer than this script;  {'none'}: the key of that name exists (R17)
-- Cost  about 15 calls and 6 a pool declared
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local FIRST_LIMIT = 16
local s, connection, replaced, host, machine, version, own_lease, highest_number, remembered_clock, own_epoch, own_count,
    expired_count, lost, fresh, n_limits = unpack(ARGV, 1, FIRST_LIMIT - 1)
local fresh_epoch, how_known, own_id, must_be_there = string.match(fresh, '^(%w+),?([=+]?)(%w*)(!?)$')
local FIRST_OVERRIDE, OVERRIDE_WORDS = FIRST_LIMIT + 2 * tonumber(n_limits), 7
local declared, scope = {}, {} -- declared: {pool, limit or 'host', ...};  scope: pool -> 'host' or 'limit'
for i = FIRST_LIMIT, FIRST_OVERRIDE - 1, 2 do
    declared[#declared + 1], declared[#declared + 2] = ARGV[i], ARGV[i + 1]
    scope[ARGV[i]] = ARGV[i + 1] == 'host' and 'host' or 'limit'
end
if call('TYPE', meta)['ok'] ~= 'hash' then call('UNLINK', meta) end
local schema, broken, id = unpack(call('HMGET', meta, 'schema', 'broken', 'id'))
if schema and tonumber(schema) > 1 then return {'schema', schema} end
if KEYS[2] and call('EXISTS', KEYS[2]) == 1 then return {'none'} end
if id and how_known == '=' and own_id ~= id or must_be_there == '!' and call('HEXISTS', at .. 'sessions', s) == 0 then
    return {'other', id or ''}
end
--#include core
--#include queue
--#include turns
--#include session
--#include limits
local old_connection, last = string.match(call('HGET', meta, 'c:' .. s) or '', '^(%d+) (%d+)$')
if old_connection and tonumber(old_connection) > tonumber(connection) then return {'stale', old_connection} end

-- Removes all sessions, claims and queues, but not the clock, the overrides and the marks. A script changes all keys of a claim at
-- once. If one is missing or has a wrong type, another program changed it, and the rest no longer shows what is held (R5). In the
-- grace period of the next epoch hosts report what they hold and wait for, as after a loss of data (R10). False: this call reached
-- its bound before the end.
local function wipe()
    local sessions, budget = {}, 500
    local keys_left, finished = 500, true
    call('UNLINK', at .. 'claims', at .. 'unsettled', at .. 'waiting', at .. 'times')
    for _, key in ipairs({'heartbeats', 'sessions', 'overrides'}) do
        local kind = key == 'sessions' and 'hash' or 'zset'
        if call('TYPE', at .. key)['ok'] ~= kind then call('UNLINK', at .. key) end
    end
    local unlink_pool
    function unlink_pool(pool)
        local base = at .. 'pool:' .. pool
        call('UNLINK', base .. ':held', base .. ':queue', base .. ':parked', base .. ':limits', base .. ':host_scoped', base .. ':turns')
        if string.sub(pool, -2) ~= '/*' then return end
        if call('TYPE', base .. ':keys')['ok'] ~= 'set' then call('UNLINK', base .. ':keys') end
        for _, key in ipairs(call('SRANDMEMBER', base .. ':keys', fmt(keys_left))) do
            keys_left = keys_left - 1
            unlink_pool(key)
            call('SREM', base .. ':keys', key)
        end
        if call('EXISTS', base .. ':keys') == 1 then finished = false end
    end
    local cursor = '0'
    repeat
        local page = call('HSCAN', meta, cursor, 'COUNT', 200)
        cursor = page[1]
        for i = 1, #page[2], 2 do
            local kind, name = string.match(page[2][i], '^([chlo]):(.*)$')
            if kind == 'c' then sessions[#sessions + 1] = name end
            if kind == 'l' then unlink_pool(name) end
            if not finished then return false end
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
        if not finished then return false end
        call('UNLINK', claims_of(id), unsynced_of(id), turns_of(id))
        call('HDEL', at .. 'sessions', id)
        call('ZREM', at .. 'heartbeats', id)
    end
    if cursor ~= '0' or call('EXISTS', at .. 'heartbeats') == 1 then return false end
    call('UNLINK', at .. 'sessions')
    call('HDEL', meta, 'unsettled', 'broken')
    unsettled, limits = false, {}
    return true
end

local named = epoch == own_epoch -- this host's counts are from this epoch

-- Returns the heartbeat_count of a session's last heartbeat; 0: the session does not exist, or is being ended.
local function count_of(id)
    return tonumber(call('ZSCORE', at .. 'heartbeats', id) or 0)
end

-- Ends the epoch if the same Redis has older data than the host has received. A session whose end has begun counts as gone: a
-- host that expired it by an older count may have its permits.
local function end_forgotten_epoch()
    if named and (lost ~= '0' or count_of(s) < tonumber(own_count))
        or clock < tonumber(highest_number) and (named or not grace) then end_epoch() end
end

-- Returns whether keys are missing or a script did half of its work. In grace the failed script may have begun this epoch.
local function is_broken()
    if not schema and call('EXISTS', at .. 'claims', at .. 'sessions', at .. 'heartbeats') > 0 then
        call('UNLINK', at .. 'overrides') -- hosts remember them
        return true
    end
    return broken or lost == '2' and (not epoch or named or grace or own_epoch == '0')
end

local function begin_epoch()
    named = false -- counts of another epoch are meaningless
    observe_clock(tonumber(remembered_clock))
    replid, epoch, grace, trusted = string.match(call('INFO', 'replication'), 'master_replid:%w+'), fresh_epoch, true, true
    began = tick()
    call('HSET', meta, 'about', 'a namespace of berth, changed by its scripts alone: see doc/protocol.md there',
        'schema', 1, 'epoch', epoch, 'began', fmt(began), 'replid', replid, 'grace', 1, 'grace_elapsed', 0)
end

-- Returns whether a session belongs to another machine. A copy of a runtime directory must neither continue nor end it.
local function is_of_another_machine(id)
    local owner = string.match(call('HGET', at .. 'sessions', id) or '', '^%S+ (%S+)')
    return owner and owner ~= machine
end

local function is_name_taken()
    local namesake = call('HGET', meta, 'h:' .. host)
    return namesake and namesake ~= s and count_of(namesake) > 0 and is_of_another_machine(namesake)
end

-- Sets this host's lease, or returns true if the namespace is bound to another one. Claims that the session got under a longer
-- lease may be in use until that lease ends (R8), so they bind the namespace as other sessions do. A session that is being
-- ended binds no lease, because nobody uses its permits.
local function is_lease_refused()
    if lease == own_lease then return false end
    local others, own = call('ZCOUNT', at .. 'heartbeats', 1, '+inf'), count_of(s)
    if own > 0 then others = others - 1 end
    local bound = own > 0 and lease and tonumber(lease) > tonumber(own_lease) and not (named and own <= tonumber(expired_count))
        and call('EXISTS', claims_of(s), unsynced_of(s)) > 0
    if lease and others > 0 or bound then return true end
    call('HSET', meta, 'lease', own_lease)
    return false
end

-- Replaces the limits and the host name that the session declared before.
local function declare()
    local name, before = string.match(call('HGET', at .. 'sessions', s) or '', '^(%S+) %S+ %S+ (%S*)$')
    if name and name ~= host and call('HGET', meta, 'h:' .. name) == s then call('HDEL', meta, 'h:' .. name) end
    before = parse_declared(before or '')
    for i = 1, #before, 2 do
        if scope[before[i]] ~= (before[i + 1] == 'host' and 'host' or 'limit') then undeclare(s, before[i], before[i + 1]) end
    end
    local texts = {}
    for i = 1, #declared, 2 do
        local pool, limit = declared[i], declared[i + 1]
        texts[#texts + 1] = pool .. '=' .. limit
        local number = string.match(limit, '^%d+')
        if not number then
            call('ZADD', at .. 'pool:' .. pool .. ':host_scoped', 0, s)
        elseif call('ZADD', at .. 'pool:' .. pool .. ':limits', 'CH', number, s) == 1 then
            change_limit(pool)
        else
            cache_limit(pool)
        end
    end
    call('HSET', at .. 'sessions', s, table.concat({host, machine, version, table.concat(texts, ',')}, ' '))
end

-- Applies each override that is newer than the one in Redis. Outside of grace Redis has lost nothing. If it does not have an old
-- override, that one was cleared while this host was away, and then removed. The host receives that it is cleared.
local function merge_overrides()
    for i = FIRST_OVERRIDE, #ARGV, OVERRIDE_WORDS do
        local pool, o = ARGV[i], {}
        o.version, o.limit, o.until_usec, o.by, o.restore, o.reason = unpack(ARGV, i + 1, i + OVERRIDE_WORDS - 1)
        observe_clock(tonumber(o.version))
        local stored = call('ZSCORE', at .. 'overrides', pool)
        if not stored and not grace and o.limit ~= '-' and is_old(o) and call('HEXISTS', meta, 'o:' .. pool) == 0 then
            clear_override(o)
            o.version = fmt(tick())
        end
        if not stored or tonumber(stored) < tonumber(o.version) then write_override(pool, o) end
    end
    if FIRST_OVERRIDE <= #ARGV then end_overrides() end
end

-- Returns a host on which the job with this pool has other due times, or nil. It looks at one other session, to stay bounded.
local records = {} -- session -> {host, {pool -> text}}
local function find_other_job(pool, text)
    if not string.find(text, 'x', 1, true) then return nil end
    for _, other in ipairs(call('ZRANGE', at .. 'pool:' .. pool .. ':limits', 0, 1)) do
        if other ~= s then
            if not records[other] then
                local host, list = string.match(call('HGET', at .. 'sessions', other) or '', '^(%S+) %S+ %S+ (%S*)$')
                records[other] = {host or '', {}}
                for name, with in string.gmatch(list or '', '(@[^=,]+)=(%w+)') do records[other][2][name] = with end
            end
            local with = records[other][2][pool]
            return with and with ~= text and records[other][1] or nil
        end
    end
end

-- Returns the declared pools for which live sessions declare different limits or scopes.
local function find_differing()
    local differing = {}
    for i = 1, #declared, 2 do
        local base = at .. 'pool:' .. declared[i]
        local lowest = call('ZRANGE', base .. ':limits', 0, 0, 'WITHSCORES')[2]
        local highest = call('ZRANGE', base .. ':limits', -1, -1, 'WITHSCORES')[2]
        local host_scoped = call('ZCARD', base .. ':host_scoped')
        local other = find_other_job(declared[i], declared[i + 1])
        if lowest ~= highest or (lowest and host_scoped > 0) or other then
            differing[#differing + 1] = {declared[i], lowest, highest, host_scoped, other}
        end
    end
    return differing
end

end_forgotten_epoch()
if is_broken() then
    call('HSET', meta, 'broken', '1') -- the next hello continues a wipe that reached its bound
    end_epoch()
    if not wipe() then return {'again'} end
    last, old_connection = nil, nil
end
if not is_plausible(clock) then clock = 0 end
if not is_plausible(now() + lead) then lead = 0 end
observe_clock(tonumber(highest_number))
if in_epoch() then
    if grace then observe_clock(tonumber(remembered_clock)) end
    if named then expire(tonumber(expired_count), s) end
else
    begin_epoch()
end
if is_of_another_machine(s) then
    settle()
    save_clock()
    return {'gone'}
end
if replaced ~= '' and replaced ~= s and call('HEXISTS', at .. 'sessions', replaced) == 1
    and not is_of_another_machine(replaced) then end_session(replaced) end
local refusal = is_name_taken() and 'name-taken' or is_lease_refused() and 'lease-differs'
if refusal then
    settle()
    save_clock()
    return {refusal, epoch, more, tonumber(call('HGET', meta, 'heartbeat_count') or 0), lease or own_lease,
        latest(), ended, reclaimed, undeclared}
end

last = string.match(call('HGET', meta, 'c:' .. s) or '', ' (%d+)$') -- a session that ended may have opened turns
call('HSET', meta, 'c:' .. s, connection .. ' ' .. (last or '0'), 'h:' .. host, s)
local count = call('HINCRBY', meta, 'heartbeat_count', 1)
call('ZADD', at .. 'heartbeats', count, s)
declare()
local limits_effective_after = fmt(clock)
merge_overrides()
local differing = find_differing()
if not id and (how_known == '=' or how_known == '+' and not grace) then
    id = own_id
    call('HSET', meta, 'id', id)
end
settle()
save_clock()
return {'ok', epoch or '', more, grace and 1 or 0, count, old_connection and 1 or 0, latest(), newer_overrides(0), differing, undeclared,
    ended, reclaimed, limits_effective_after, id or ''}
