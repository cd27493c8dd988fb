#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- bye: ends a session at once (R14), in any epoch, because its host holds nothing any more.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection
-- Reply {'ok', epoch, more, undeclared}  undeclared: see session.lua;  more: the end is not complete, call again;  {'stale'}
-- Cost  about 10 calls, 6 a claim (128 claims a call)
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, own_connection = unpack(ARGV)
local connection = string.match(call('HGET', meta, 'c:' .. s) or '', '^%d+')
if connection and tonumber(connection) > tonumber(own_connection) then return {'stale'} end
--#include core
--#include queue
--#include turns
--#include session
if call('HEXISTS', at .. 'sessions', s) == 1 then end_session(s) end
local unfinished = more
settle()
if unsettled and unfinished == 0 and call('EXISTS', at .. 'sessions') == 0 then -- in grace: no claim is left to settle
    call('UNLINK', at .. 'unsettled')
    call('HDEL', meta, 'unsettled')
end
save_clock()
return {'ok', epoch or '', unfinished, undeclared}
