#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- release: gives a claim's permits back, or withdraws it while it waits. What becomes possible is granted in the same call.
--
-- KEYS  berth:{ns}:meta
-- ARGV  session connection epoch claim
-- Reply {'ok', epoch, more, clock, token}  clock: the last number drawn before this; token: 0 if it only waited
--       {'ok', epoch, more}  there is no such claim (R6);  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  7 calls for one pool; with grants about 20 a grant
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, c = ARGV[1], ARGV[4]
local m = call('HMGET', meta, 'epoch', 'c:' .. s, 'clock')
if m[1] ~= ARGV[3] then return {'epoch', m[1] or ''} end
if not m[2] then return {'gone'} end
if string.match(m[2], '^%d+') ~= ARGV[2] then return {'stale'} end
local claims = at .. 'claims'
local record = call('HGET', claims, c)
if not record then return {'ok', m[1], 0} end
local state, given, session, pools = string.match(record, '^(%a) (%d+) (%S+) (%S+)')
if session ~= s then return {'ok', m[1], 0} end

call('SREM', at .. 'of:' .. s, c)
call('HDEL', claims, c)
local queues = {}
for pool, n in string.gmatch(pools, '([^:,]+):(%d+)') do
    local base = at .. 'pool:' .. pool
    if state == 'H' then
        if n == '1' then
            call('SREM', base .. ':held', c .. '#1')
        else
            local list = {}
            for i = 1, tonumber(n) do list[i] = c .. '#' .. i end
            call('SREM', base .. ':held', unpack(list))
        end
    elseif state == 'W' then
        call('ZREM', base .. ':queue', c)
        call('ZREM', base .. ':wants', c)
    else
        call('ZREM', base .. ':parked', c)
    end
    if state ~= 'P' and call('ZCARD', base .. ':queue') > 0 then queues[#queues + 1] = pool end
end
local before = m[3] or '0'
if state ~= 'H' then given = '0' end
if #queues == 0 then return {'ok', m[1], 0, before, given} end

-- One pool, and whoever is next wants this one alone, as nearly always: the same as below in half of the time. It goes on below where
-- anything is odd, and if there may be somebody else to grant to.
if #queues == 1 then
    local pool = queues[1]
    local base = at .. 'pool:' .. pool
    local next_claim = call('ZRANGE', base .. ':queue', '0', '0')[1]
    local text = call('HGET', claims, next_claim)
    local owner, of_pool, n, ticket, head, queued, rest = string.match(text or '',
        '^W %d+ (%S+) ([^:,]+):(%d+) (%d+) (%d+) (%d+) (.*)$')
    if of_pool == pool then
        local o = call('HMGET', meta, 'grace', 'debt', 'o:' .. pool, 'replid', 'clock', 'c:' .. owner)
        local connection, last = string.match(o[6] or '', '^(%d+) (%d+)$')
        if not o[1] and not o[2] and not o[3] and connection then
            local limit = tonumber(call('ZRANGE', base .. ':limits', '0', '0', 'WITHSCORES')[2]) or 0
            local used = call('SCARD', base .. ':held') + n
            if used > limit then return {'ok', m[1], 0, before, given} end
            if n == '1' and string.find(call('INFO', 'replication'), 'master_replid:' .. o[4], 1, true) then
                local t = call('TIME')
                local time, last_clock = t[1] * 1000000 + t[2], tonumber(o[5])
                local since = string.format('%d', time)
                local token = last_clock < time and since or string.format('%d', last_clock + 1)
                call('ZREM', base .. ':queue', next_claim)
                call('ZREM', base .. ':wants', next_claim)
                call('SADD', base .. ':held', next_claim .. '#1')
                call('HSET', claims, next_claim, 'H ' .. token .. ' ' .. owner .. ' ' .. pool .. ':1 ' .. ticket .. ' ' .. head .. ' '
                    .. since .. ' ' .. rest)
                call('HSET', meta, 'clock', token, 'c:' .. owner, connection .. ' ' .. token)
                call('PUBLISH', at .. 'to:' .. owner, 'granted ' .. m[1] .. ' ' .. last .. ' ' .. token .. ' ' .. next_claim .. ' '
                    .. ticket .. ' ' .. queued)
                if used == limit then return {'ok', m[1], 0, before, given} end
            end
        end
    end
end
--#include core
--#include queue
for i = 1, #queues do touch(queues[i]) end
settle()
save_clock()
return {'ok', epoch, more, before, given}
