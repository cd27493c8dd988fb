-- SPDX-License-Identifier: MIT
-- Part of scripts that end sessions. Expects core.lua, queue.lua and turns.lua.
--
-- sessions   hash  session -> "host machine version pool=limit,..."; limit "1xHEX": of a job that hosts share, see hello.lua
-- heartbeats zset  session -> heartbeat_count at its last heartbeat; 0: it is being ended, which each heartbeat continues
-- times      hash  session -> how long its host's last runs held their permits; no rule depends on it
-- session:S:claims  set  its claims;  session:S:unsynced: those that a sync under way has not listed yet
-- pool:P:limits  zset  session -> its declared limit;  pool:P:host_scoped  zset  sessions that declare it with scope host

local ends = 128                -- claims and sessions that this call may still end
-- Parts of the reply: {session, host, clock}; {claim, host, name, run, pools, token, clock}; {pool, lowest, clock} of pools
-- whose lowest declared limit has changed (-1: no session declares it). clock: the last number drawn before the change.
local ended, reclaimed, undeclared = {}, {}, {}

-- Returns the limits declared in a session's record, as {pool, limit or 'host', ...}
local function parse_declared(text)
    local list = {}
    for pool, limit in string.gmatch(text, '([^=,]+)=(%w+)') do
        list[#list + 1] = pool
        list[#list + 1] = string.match(limit, '^%d+') or limit
    end
    return list
end

local function undeclare(s, pool, limit)
    local key = at .. 'pool:' .. pool .. (limit == 'host' and ':host_scoped' or ':limits')
    call('ZREM', key, s)
    change_limit(pool)
    if limit ~= 'host' then
        local lowest = call('ZRANGE', key, '0', '0', 'WITHSCORES')[2]
        if lowest ~= limit then undeclared[#undeclared + 1] = {pool, tonumber(lowest or -1), fmt(clock)} end
    end
end

-- Removes a session's claims and limits. False: this call reached its bound before the end.
local function end_session(s)
    local record = call('HGET', at .. 'sessions', s)
    local host, _, _, declared = string.match(record or '', '^(%S+) (%S+) (%S+) (%S*)$')
    if not record then call('HSET', meta, 'broken', '1') end -- its limits are unknown: see verify.lua
    ends = ends - 1
    call('HDEL', meta, 'c:' .. s) -- so that it gets no grants
    for _, key in ipairs({claims_of(s), unsynced_of(s)}) do
        while ends > 0 do
            local list = call('SRANDMEMBER', key, ends)
            if #list == 0 then break end
            for _, c in ipairs(list) do
                local r = read_claim(c)
                call('SREM', key, c)
                ends = ends - 1
                if not r then call('HSET', meta, 'broken', '1') end -- its permits are unknown: see verify.lua
                if r and r.session == s then
                    drop(c, r)
                    if r.state == 'H' then
                        reclaimed[#reclaimed + 1] = {c, host or '', r.name, r.run, r.pools, r.token, fmt(clock)}
                    end
                end
            end
        end
    end
    if ends <= 0 and call('EXISTS', claims_of(s), unsynced_of(s)) > 0 then
        call('ZADD', at .. 'heartbeats', 0, s)
        more = 1
        return false
    end
    local list = parse_declared(declared or '')
    for i = 1, #list, 2 do undeclare(s, list[i], list[i + 1]) end
    lose_turns(s, true)
    call('HDEL', at .. 'sessions', s)
    call('ZREM', at .. 'heartbeats', s)
    redis.pcall('HDEL', at .. 'times', s)
    if host and call('HGET', meta, 'h:' .. host) == s then call('HDEL', meta, 'h:' .. host) end
    ended[#ended + 1] = {s, host or '', fmt(clock)}
    return true
end

-- Expires sessions without a heartbeat since a count that some host received a whole lease ago (R4). Continues the ends of sessions
-- that reached a bound.
local function expire(dead, but)
    for _, s in ipairs(call('ZRANGEBYSCORE', at .. 'heartbeats', '-inf', dead, 'LIMIT', 0, 129)) do
        if s ~= but then
            if ends <= 0 then
                more = 1
                return
            end
            if not in_epoch() or not end_session(s) then return end
        end
    end
end
