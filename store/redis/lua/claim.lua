#!lua
-- SPDX-License-Identifier: MIT
-- claim: requests permits, all or none (R2, R3). Without allow-oom: a full Redis takes no new claims (R13).
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial(the number of this call, which its reply names) claim
--       details "head-start pid run name", as in its record
--       ticket  0, or the one that it had before: it gets its old place even if the queue is full
--       nowait(0|1), then for each pool: pool permits queue-limit
-- Reply, one line: ok serial more state ticket token last-token-before position time-µs      state: H(eld) W(aiting) P(arked)
--                  refused serial more busy|queue-full pool
--       {'epoch', epoch}: another epoch, without any effect;  {'gone'}: no such session;  {'stale'}: there is a newer connection
-- Cost  granted: 8 calls for one pool, 9 or 10 for a key; waiting: about 15; O(log n)
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local FIRST_POOL = 9
local s, own_connection, own_epoch, serial, c, details, ticket, nowait, pool, n, _, second_pool = unpack(ARGV)
local pattern = string.find(pool, '/', 1, true) and string.match(pool, '^[^/]+/') .. '*' -- of a key
local m = pattern and call('HMGET', meta, 'epoch', 'c:' .. s, 'grace', 'replid', 'clock', 'l:' .. pool, 'l:' .. pattern)
    or call('HMGET', meta, 'epoch', 'c:' .. s, 'grace', 'replid', 'clock', 'l:' .. pool)
if m[1] ~= own_epoch then return {'epoch', m[1] or ''} end
if not m[2] then return {'gone'} end
local connection, last = string.match(m[2], '^(%d+) (%d+)$')
if connection ~= own_connection then return {'stale'} end

-- Fast path: one pool, no claim waits, no unusual state.
local limit = m[6] or m[7]
if limit and not m[3] and not second_pool and ticket == '0' then
    local base = at .. 'pool:' .. pool
    local room = tonumber(limit)
    if not room and string.byte(limit, -1) == 43 and call('ZCARD', base .. ':queue') == 0 then -- a plus
        limit = string.sub(limit, 1, -2)
        room = tonumber(limit)
        call('HSET', meta, 'l:' .. pool, limit)
        if call('EXISTS', base .. ':parked') == 0 then call('SREM', at .. 'waiting', pool) end
    elseif pattern then
        room = tonumber(string.match(limit, '^%d+'))
    end
    -- A key that is new in :keys has no other claims.
    if room and call('SCARD', base .. ':held') + n <= room and string.find(call('INFO', 'replication'), m[4], 1, true)
        and (not pattern or call('SADD', at .. 'pool:' .. pattern .. ':keys', pool) == 1
            or call('EXISTS', base .. ':queue', base .. ':parked') == 0) then
        local t = call('TIME')
        local since = t[1] .. string.sub('00000' .. t[2], -6)
        local text = #m[5] == #since and m[5] < since and since or string.format('%d', math.max(m[5] + 1, since))
        if call('HSETNX', at .. 'claims', c, 'H ' .. text .. ' ' .. s .. ' ' .. pool .. ':' .. n .. ' ' .. text .. ' '
                .. since .. ' ' .. details .. ' ') == 1 then
            if n == '1' then
                call('SADD', base .. ':held', c .. '#1')
            else
                local list = {}
                for i = 1, n do list[i] = c .. '#' .. i end
                call('SADD', base .. ':held', unpack(list))
            end
            call('SADD', at .. 'session:' .. s .. ':claims', c)
            call('HSET', meta, 'clock', text, 'c:' .. s, connection .. ' ' .. text)
            return 'ok ' .. serial .. ' 0 H ' .. text .. ' ' .. text .. ' ' .. last .. ' 0 ' .. since
        end
    end
end
--#include core
--#include queue
--#include request
local r = find_resent(c)
if r then return answer(c, r, last) end
local d, texts = {list = {}, queue_limits = {}}, {}
for i = FIRST_POOL, #ARGV, 3 do
    local name, permits, queue_limit = unpack(ARGV, i, i + 2)
    d.list[#d.list + 1], d.list[#d.list + 2] = name, tonumber(permits)
    d.queue_limits[#d.queue_limits + 1] = tonumber(queue_limit)
    texts[#texts + 1] = name .. ':' .. permits
end
d.pools = table.concat(texts, ',')
local line = request(c, details, ticket, nowait == '1', d)
save_clock()
return line or {'epoch', ''}
