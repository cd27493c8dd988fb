#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- verify: checks whether some of a session's claims are in all keys in which they must be. A host calls it once a lease, with other
-- claims each time, so that a deleted key blocks no claim for ever. It also settles the pools of a claim at the head of its queue,
-- and checks some of the claims that block a waiting one.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial, then claims that Redis has confirmed
-- Reply, one line: ok serial more incomplete   incomplete 1: limits or claims of this session are missing; its host sends hello and sync
--       {'epoch', '', 'broken'}: keys are missing, see hello.lua;  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  4 calls, 2 to 5 a claim, 1 more a key, 6 more a pool in which it waits
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local FIRST_CLAIM = 5
local s, own_connection, own_epoch, serial = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local m = call('HMGET', meta, 'epoch', 'c:' .. s, 'grace', 'broken')
if m[1] ~= own_epoch then return {'epoch', m[1] or ''} end
if not m[2] then return {'gone'} end
if string.match(m[2], '^%d+') ~= own_connection then return {'stale'} end

local broken = m[4] or call('HLEN', at .. 'sessions') ~= call('ZCARD', at .. 'heartbeats')
local own = call('HGET', at .. 'sessions', s)
local declared, incomplete, heads, queued = ',' .. string.match(own or '', '(%S*)$'), not own, nil, nil
for i = FIRST_CLAIM, #ARGV do
    local c = ARGV[i]
    local state, owner, pools, reason = string.match(call('HGET', at .. 'claims', c) or '',
        '^(%a) %d+ (%S+) (%S+) %d+ %d+ %S+ %d+ %S+ %S+ ?(.*)$')
    if not state then
        incomplete = true
        broken = broken or call('SISMEMBER', at .. 'session:' .. s .. ':claims', c) == 1
    elseif owner == s and reason == '' then -- a claim that was revoked while it waited is in no queue
        local parked = false
        for pool, n in string.gmatch(pools, '([^:,]+):(%d+)') do
            local base = at .. 'pool:' .. pool
            if state == 'H' then
                broken = broken or call('SISMEMBER', base .. ':held', c .. '#' .. n) == 0
            elseif state == 'P' then
                parked = parked or call('ZSCORE', base .. ':parked', c)
            elseif not call('ZSCORE', base .. ':queue', c) then
                broken = true
            else
                queued = queued or {}
                queued[#queued + 1] = pool
                if call('ZRANGE', base .. ':queue', '0', '0')[1] == c then
                    heads = heads or {}
                    heads[#heads + 1] = pool
                end
            end
            if state ~= 'P' and string.find(pool, '/', 1, true) then -- its :keys may have been deleted
                call('SADD', at .. 'pool:' .. string.match(pool, '^[^/]+/') .. '*:keys', pool)
            end
            local _, stop = string.find(declared, ',' .. pool .. '=', 1, true)
            if not stop and string.find(pool, '/', 1, true) then -- a key of a pattern
                pool = string.match(pool, '^[^/]+/') .. '*'
                _, stop = string.find(declared, ',' .. pool .. '=', 1, true)
            end
            incomplete = incomplete or stop and string.find(declared, '^%d', stop + 1)
                and not call('ZSCORE', at .. 'pool:' .. pool .. ':limits', s)
        end
        broken = broken or state == 'P' and not parked
    end
end

-- Returns whether a claim has no session that exists. If the set of a dead session's claims was deleted, no other call would free
-- the claims.
local function is_nobodys(c)
    local owner = string.match(call('HGET', at .. 'claims', c) or '', '^%a %d+ (%S+)')
    return not owner or not call('ZSCORE', at .. 'heartbeats', owner)
end
for i = 1, queued and #queued or 0 do
    local base = at .. 'pool:' .. queued[i]
    local member, first = call('SRANDMEMBER', base .. ':held', '1')[1], call('ZRANGE', base .. ':queue', '0', '0')[1]
    broken = broken or member and is_nobodys(string.match(member, '^(.*)#')) or is_nobodys(first)
end
broken = broken and not m[3] -- in grace all hosts report again; keys that are missing afterwards are found later
if not broken and not heads then return 'ok ' .. serial .. ' 0 ' .. (incomplete and 1 or 0) end
--#include core
--#include queue
if broken then
    call('HSET', meta, 'broken', '1')
    end_epoch()
    return {'epoch', '', 'broken'}
end
for i = 1, #heads do touch(heads[i]) end
settle()
save_clock()
if not epoch then return {'epoch', ''} end
return table.concat({'ok', serial, more, incomplete and 1 or 0}, ' ')
