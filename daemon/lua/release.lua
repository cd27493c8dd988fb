#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- release: gives a claim's permits back, or withdraws it while it waits. What becomes possible is granted in the same call.
--
-- KEYS  berth:{ns}:meta
-- ARGV  session connection epoch claim
-- Reply, one line: ok epoch more clock token   clock: the last number drawn before this; token: 0 if it only waited
--                  ok epoch more   there is no such claim (R6);  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
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
if not record then
    if call('SISMEMBER', at .. 'of:' .. s, c) == 0 then return 'ok ' .. m[1] .. ' 0' end
--#include core
--#include wipe
    wipe() -- what it held cannot be given back
    save_clock()
    return {'epoch', epoch}
end
local state, given, session, i = string.match(record, '^(%a) (%d+) (%S+) ()')
if session ~= s then return 'ok ' .. m[1] .. ' 0' end

call('SREM', at .. 'of:' .. s, c)
call('HDEL', claims, c)
local pool, base, first, queues -- first: of the queue of that pool, the last one that has any; queues: these pools
repeat
    local n, stop
    pool, n, stop = string.match(record, '^([^:,]+):(%d+)()', i)
    i = stop + 1
    base = at .. 'pool:' .. pool
    if state == 'H' then
        if n == '1' then
            call('SREM', base .. ':held', c .. '#1')
        else
            local list = {}
            for k = 1, tonumber(n) do list[k] = c .. '#' .. k end
            call('SREM', base .. ':held', unpack(list))
        end
    elseif state == 'W' then
        call('ZREM', base .. ':queue', c)
        call('ZREM', base .. ':wants', c)
    else
        call('ZREM', base .. ':parked', c)
    end
    if state ~= 'P' then
        local head = call('ZRANGE', base .. ':queue', '0', '0')[1]
        if head then
            queues = queues or {}
            queues[#queues + 1] = pool
            first = head
        end
    end
until string.byte(record, stop) ~= 44 -- a comma
local told = ' ' .. (m[3] or '0') .. (state == 'H' and ' ' .. given or ' 0')
if not queues then return 'ok ' .. m[1] .. ' 0' .. told end

-- One pool, and whoever is next wants this one alone, as nearly always: the same as below in half of the time. It goes on below where
-- anything is odd, and if there may be somebody else to grant to.
if #queues == 1 and queues[1] == pool then
    local text = call('HGET', claims, first)
    local owner, of_pool, n, ticket, head, queued, rest = string.match(text or '',
        '^W %d+ (%S+) ([^:,]+):(%d+) (%d+) (%d+) (%d+) (.*)$')
    if of_pool == pool then
        local o = call('HMGET', meta, 'grace', 'debt', 'l:' .. pool, 'replid', 'clock', 'c:' .. owner)
        local connection, last = string.match(o[6] or '', '^(%d+) (%d+)$')
        if o[3] and not o[1] and not o[2] and connection then
            local limit, used = o[3] + 0, call('SCARD', base .. ':held') + n
            if used > limit then return 'ok ' .. m[1] .. ' 0' .. told end
            if n == '1' and string.find(call('INFO', 'replication'), 'master_replid:' .. o[4], 1, true) then
                local t = call('TIME')
                local since = t[1] .. string.sub('00000' .. t[2], -6)
                local token = #o[5] == #since and o[5] < since and since or string.format('%d', math.max(o[5] + 1, since))
                call('ZREM', base .. ':queue', first)
                call('ZREM', base .. ':wants', first)
                call('SADD', base .. ':held', first .. '#1')
                call('HSET', claims, first, 'H ' .. token .. ' ' .. owner .. ' ' .. pool .. ':1 ' .. ticket .. ' ' .. head .. ' '
                    .. since .. ' ' .. rest)
                call('HSET', meta, 'clock', token, 'c:' .. owner, connection .. ' ' .. token)
                call('PUBLISH', at .. 'to:' .. owner, 'granted ' .. m[1] .. ' ' .. last .. ' ' .. token .. ' ' .. first .. ' '
                    .. ticket .. ' ' .. queued)
                if used == limit then return 'ok ' .. m[1] .. ' 0' .. told end
            end
        end
    end
end
--#include core
--#include queue
for k = 1, #queues do touch(queues[k]) end
settle()
save_clock()
return 'ok ' .. epoch .. ' ' .. more .. told
