#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- grace: an administrator knows that the namespace is new and ends its grace (R10).
--
-- KEYS  berth:{ns}:meta
-- ARGV  session connection epoch
-- Reply {'ok', epoch, more};  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  about 6 calls, and what it grants
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
--#include core
--#include queue
if epoch ~= ARGV[3] or not in_epoch() then
    save_clock()
    return {'epoch', epoch or ''}
end
local connection = string.match(call('HGET', meta, 'c:' .. ARGV[1]) or '', '^%d+')
if not connection then return {'gone'} end
if connection ~= ARGV[2] then return {'stale'} end
if grace then
    call('HDEL', meta, 'grace', 'known')
    grace = false
    settle()
end
save_clock()
return {'ok', epoch, more}
