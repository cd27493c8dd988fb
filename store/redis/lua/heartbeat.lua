#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- heartbeat: keeps a session alive, at a cost that does not depend on its number of claims (R15). Also ends grace (R10), expires
-- dead sessions (R4), settles pools and ends overrides. `berth grace --end` sends a known-µs of a lease or more.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial
--       dead       the highest count that this host received at least a lease ago in this epoch, 0 if none
--       own        the highest count that a reply gave this session in this epoch
--       overrides  the newest version of an override that its host knows
--       given      the highest number given to this session that its host has received in this epoch
--       then, in grace, or to get the latest number:
--       known-µs   how long its host has known this epoch
--       latest     as in hello
--       times      if they changed: how long this host's last runs held their permits, for people (daemon/times-table.h)
-- Reply, one line: ok serial more grace(0|1) count last-token claims clock [latest]
--         clock: the last number drawn;  latest: no number drawn so far is higher
--       or with news: {that line, overrides, ended, reclaimed, undeclared}
--         overrides: {pool, version, limit('-': none), until-µs, by, restore, reason} of each one changed since (128 at most)
--         ended: {session, host, clock} of each expired session;  reclaimed: {claim, host, name, run, pools, token, clock} of each
--         claim that they held;  undeclared: {pool, lowest, clock}: see session.lua
--       {'epoch', epoch}: another epoch, nothing was done;  {'gone'};  {'stale'}
-- Cost  5 calls
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, own_connection, own_epoch, serial, expired_count, own_count, override_version, highest_token, known_usec, remembered_clock,
    times = unpack(ARGV)
local m = call('HMGET', meta, 'epoch', 'c:' .. s, 'grace', 'unsettled', 'override_version', 'override_expiry', 'clock')
if m[1] ~= own_epoch then return {'epoch', m[1] or ''} end
if not m[2] then return {'gone'} end
local connection, last = own_connection, highest_token
if m[2] ~= connection .. ' ' .. last then
    connection, last = string.match(m[2], '^(%d+) (%d+)$')
    if connection ~= own_connection then return {'stale'} end
    if tonumber(last) < tonumber(highest_token) then -- the same Redis has older data
        call('HDEL', meta, 'epoch')
        return {'epoch', ''}
    end
end

local heartbeats, count = at .. 'heartbeats', string.format('%d', call('HINCRBY', meta, 'heartbeat_count', '1'))
local claims = call('SCARD', at .. 'session:' .. s .. ':claims')
local override_over = m[6] and call('TIME')[1] * 1000000 >= tonumber(m[6]) - 1000000
if not m[3] and not m[4] and not override_over and (m[5] or '0') == override_version and not known_usec
    and call('ZCOUNT', heartbeats, '0', expired_count) == 0 then
    call('ZADD', heartbeats, count, s)
    return 'ok ' .. serial .. ' 0 0 ' .. count .. ' ' .. last .. ' ' .. claims .. ' ' .. m[7]
end
--#include core
--#include queue
--#include turns
--#include session
--#include limits
-- This check comes first: if Redis has older data than this host has received, the sessions to be expired may be alive.
local score = tonumber(call('ZSCORE', heartbeats, s) or 0)
if score < tonumber(own_count) or tonumber(expired_count) >= tonumber(count) then
    end_epoch()
    return {'epoch', ''}
end
call('ZADD', heartbeats, count, s)
if grace then
    observe_clock(tonumber(remembered_clock)) -- at the end of grace, above all numbers drawn before it, even those that no host received (R7)
    local known = tonumber(known_usec or 0)
    if known >= tonumber(lease) and in_epoch() then
        call('HDEL', meta, 'grace', 'grace_elapsed')
        grace = false
        for _, other in ipairs(call('ZRANGE', heartbeats, '+inf', '(0', 'BYSCORE', 'REV', 'LIMIT', 0, 129)) do
            if other ~= s then push(other, 'grace-over', epoch, 0, 0, '-') end
        end
    elseif known > tonumber(call('HGET', meta, 'grace_elapsed') or 0) then
        call('HSET', meta, 'grace_elapsed', known_usec)
    end
end
if override_over and epoch then end_overrides() end
if epoch then expire(math.max(tonumber(expired_count), 0), s) end
settle()
save_clock()
if not epoch then return {'epoch', ''} end
if times and type(redis.pcall('HSET', at .. 'times', s, times)) == 'table' then call('UNLINK', at .. 'times') end -- of a wrong type
connection, last = string.match(call('HGET', meta, 'c:' .. s), '^(%d+) (%d+)$')
return {table.concat({'ok', serial, more, grace and 1 or 0, count, last, claims, fmt(clock), latest()}, ' '),
    newer_overrides(tonumber(override_version)), ended, reclaimed, undeclared}
