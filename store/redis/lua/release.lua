#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- release: returns a claim's permits, or withdraws it while it waits. Grants the next claims in the same call.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial claim
-- Reply, one line: ok serial more clock token   clock: the last number drawn before this; token: 0 if it waited
--                  ok serial more   there is no such claim (R6);  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  6 calls for one pool, 9 for a key; 16 with a grant
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, own_connection, own_epoch, serial, c = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local m = call('HMGET', meta, 'epoch', 'c:' .. s, 'clock')
if m[1] ~= own_epoch then return {'epoch', m[1] or ''} end
if not m[2] then return {'gone'} end
if string.match(m[2], '^%d+') ~= own_connection then return {'stale'} end
local claims = at .. 'claims'
local record = call('HGET', claims, c)
local state, given, session, pool, n, stop = string.match(record or '', '^(%a) (%d+) (%S+) ([^:,]+):(%d+)()')
if not session then
    if call('SISMEMBER', at .. 'session:' .. s .. ':claims', c) == 0 then return 'ok ' .. serial .. ' 0' end
    call('HDEL', meta, 'epoch') -- its permits are unknown: see hello.lua
    call('HSET', meta, 'broken', '1')
    return {'epoch', ''}
end
if session ~= s then return 'ok ' .. serial .. ' 0' end

call('SREM', at .. 'session:' .. s .. ':claims', c)
call('HDEL', claims, c)
local held, queue, first, queues -- queues: pools with waiting claims; first: the first claim in the last of them
while true do
    held, queue = at .. 'pool:' .. pool .. ':held', at .. 'pool:' .. pool .. ':queue'
    if state == 'H' then
        if n == '1' then
            call('SREM', held, c .. '#1')
        else
            local list = {}
            for k = 1, tonumber(n) do list[k] = c .. '#' .. k end
            call('SREM', held, unpack(list))
        end
    elseif state == 'W' then
        call('ZREM', queue, c)
    else
        call('ZREM', at .. 'pool:' .. pool .. ':parked', c)
    end
    local head = state ~= 'P' and call('ZRANGE', queue, '0', '0')[1]
    if head then
        queues = queues or {}
        queues[#queues + 1] = pool
        first = head
    elseif string.find(pool, '/', 1, true) and call('EXISTS', held, queue, at .. 'pool:' .. pool .. ':parked') == 0 then -- a key
        call('SREM', at .. 'pool:' .. string.match(pool, '^[^/]+/') .. '*:keys', pool)
        call('SREM', at .. 'waiting', pool)
    elseif state ~= 'H' and call('HEXISTS', meta, 'l:' .. pool) == 0 and call('EXISTS', queue, at .. 'pool:' .. pool .. ':parked') == 0 then
        call('SREM', at .. 'waiting', pool) -- no host declares it any more
    end
    if string.byte(record, stop) ~= 44 then break end -- a comma
    pool, n, stop = string.match(record, '^([^:,]+):(%d+)()', stop + 1)
end
local reply = 'ok ' .. serial .. ' 0 ' .. (m[3] or '0') .. ' ' .. (state == 'H' and given or '0')
if not queues then return reply end

-- Fast path, which takes half of the time: one pool, and the next claim wants this pool alone. The part below handles unusual
-- states, and further claims that may fit.
if #queues == 1 and queues[1] == pool then
    local text = call('HGET', claims, first)
    local owner, middle, of_pool, n, ticket, queued, rest = string.match(text or '',
        '^W %d+ (%S+)( ([^:,]+):(%d+)( %d+) )(%d+)(.*)$')
    if of_pool == pool then
        local session = 'c:' .. owner
        local o = call('HMGET', meta, 'grace', 'l:' .. pool, 'replid', session)
        local connection, last = string.match(o[4] or '', '^(%d+ )(%d+)$')
        local limit_text, mark = o[2], o[2] and string.byte(o[2], -1)
        if (not mark or mark == 47) and string.find(pool, '/', 1, true) then -- a key
            limit_text = limit_text or call('HGET', meta, 'l:' .. string.match(pool, '^[^/]+/') .. '*')
            if call('EXISTS', at .. 'pool:' .. pool .. ':parked') == 1 then limit_text = nil end
        end
        if limit_text and not o[1] and connection and mark ~= 33 then -- no exclamation mark
            local limit, used = string.match(limit_text, '^%d+') + 0, call('SCARD', held) + n
            if used > limit and n + 0 <= limit then return reply end -- else it is parked: see queue.lua
            if used <= limit and n == '1' and string.find(call('INFO', 'replication'), o[3], 1, true) then
                local t, clock = call('TIME'), m[3]
                local since = t[1] .. string.sub('00000' .. t[2], -6)
                local token = #clock == #since and clock < since and since or string.format('%d', math.max(clock + 1, since))
                call('ZREM', queue, first)
                call('SADD', held, first .. '#1')
                call('HSET', claims, first, 'H ' .. token .. ' ' .. owner .. middle .. since .. rest)
                call('HSET', meta, 'clock', token, session, connection .. token)
                call('SPUBLISH', at .. 'to:' .. owner, 'granted ' .. m[1] .. ' ' .. last .. ' ' .. token .. ' ' .. first .. ticket .. ' '
                    .. queued .. (token == since and ' 0' or ' ' .. string.format('%d', token - since)))
                if used == limit then return reply end
            end
        end
    end
end
--#include core
--#include queue
for k = 1, #queues do touch(queues[k]) end
settle()
save_clock()
return epoch and string.gsub(reply, '^(%S+ %S+) 0', '%1 ' .. more) or {'epoch', ''}
