#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- release: gives a claim's permits back, or withdraws it while it waits. What becomes possible is granted in the same call.
--
-- KEYS  berth:{ns}:meta
-- ARGV  session connection epoch claim
-- Reply {'ok', epoch, more}  also if there is no such claim (R6);  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  7 calls for one pool; with grants about 20 a grant
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, c = ARGV[1], ARGV[4]
local m = call('HMGET', meta, 'epoch', 'c:' .. s)
if m[1] ~= ARGV[3] then return {'epoch', m[1] or ''} end
if not m[2] then return {'gone'} end
if string.match(m[2], '^%d+') ~= ARGV[2] then return {'stale'} end
local record = call('HGET', at .. 'claims', c)
if not record then return {'ok', m[1], 0} end
local state, session, pools = string.match(record, '^(%a) %d+ (%S+) (%S+)')
if session ~= s then return {'ok', m[1], 0} end

call('SREM', at .. 'of:' .. s, c)
call('HDEL', at .. 'claims', c)
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
if #queues == 0 then return {'ok', m[1], 0} end
--#include core
--#include queue
for i = 1, #queues do touch(queues[i]) end
settle()
save_clock()
return {'ok', epoch, more}
