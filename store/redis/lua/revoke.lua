#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- revoke: tells a claim's host to stop it, or frees the claim if its session is gone. The push has a number of the clock and
-- names its predecessor, as that of a grant does, so that the host detects its loss. A sync reports revoked claims.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial claim reason
-- Reply {'ok', serial, more, 'sent'|'freed'};  {'unknown', serial};  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  about 10 calls
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, own_connection, own_epoch, serial, c, reason = unpack(ARGV)
--#include core
--#include queue
if epoch ~= own_epoch then return {'epoch', epoch or ''} end
local current = string.match(call('HGET', meta, 'c:' .. s) or '', '^%d+')
if not current then return {'gone'} end
if current ~= own_connection then return {'stale'} end
local r = read_claim(c)
if not r then return {'unknown', serial} end
local connection, last = string.match(call('HGET', meta, 'c:' .. r.session) or '', '^(%d+) (%d+)$')
if not connection then
    call('SREM', claims_of(r.session), c)
    drop(c, r)
    settle()
    save_clock()
    return {'ok', serial, more, 'freed'}
end
local number = fmt(tick())
r.reason = reason == '' and 'revoked' or reason
if r.state ~= 'H' then -- it must not be granted
    dequeue(c, r)
    leave_keys(r)
end
write_claim(c, r)
call('HSET', meta, 'c:' .. r.session, connection .. ' ' .. number)
push(r.session, 'revoked', epoch, last, number, c, r.reason)
settle()
save_clock()
return {'ok', serial, more, 'sent'}
