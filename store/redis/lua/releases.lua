#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- releases: releases or withdraws several claims, all of them before the first grant.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial, then the claims
-- Reply {line, ...}: the reply of release for each;  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  all held with one permit of one pool: 6 calls; else about 5 a claim; and those for its grants
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local FIRST_CLAIM = 5
local s, own_connection, own_epoch, serial, ids, lines = ARGV[1], ARGV[2], ARGV[3], ARGV[4], {unpack(ARGV, FIRST_CLAIM)}, {}
local m = call('HMGET', meta, 'epoch', 'c:' .. s, 'clock')
if m[1] ~= own_epoch then return {'epoch', m[1] or ''} end
if not m[2] then return {'gone'} end
if string.match(m[2], '^%d+') ~= own_connection then return {'stale'} end

local reply, pool, held = 'ok ' .. serial .. ' 0 ' .. (m[3] or '0') .. ' ', nil, {}
for k, record in ipairs(call('HMGET', at .. 'claims', unpack(ids))) do
    local given, session, of_pool = string.match(record or '', '^H (%d+) (%S+) ([^:,]+):1 ')
    if session ~= s or (pool and of_pool ~= pool) then break end
    pool = of_pool
    held[k] = ids[k] .. '#1'
    lines[k] = reply .. given
end
local alike = #lines == #ids
if alike then
    call('SREM', at .. 'session:' .. s .. ':claims', unpack(ids))
    call('HDEL', at .. 'claims', unpack(ids))
    call('SREM', at .. 'pool:' .. pool .. ':held', unpack(held))
    if call('EXISTS', at .. 'pool:' .. pool .. ':queue') == 0 then
        if string.find(pool, '/', 1, true) and call('EXISTS', at .. 'pool:' .. pool .. ':held', at .. 'pool:' .. pool .. ':parked') == 0 then
            call('SREM', at .. 'pool:' .. string.match(pool, '^[^/]+/') .. '*:keys', pool)
            call('SREM', at .. 'waiting', pool)
        end
        return lines
    end
end
--#include core
--#include queue
if alike then touch(pool) end
for k = alike and #ids + 1 or 1, #ids do
    local c = ids[k]
    local r = read_claim(c)
    if r and r.session == s then
        call('SREM', claims_of(s), c)
        drop(c, r)
        lines[k] = reply .. (r.state == 'H' and r.token or '0')
    elseif r or call('SISMEMBER', claims_of(s), c) == 0 then
        lines[k] = 'ok ' .. serial .. ' 0'
    else
        call('HSET', meta, 'broken', '1') -- its permits are unknown: see hello.lua
        end_epoch()
        return {'epoch', ''}
    end
end
settle()
if more > 0 then lines[1] = string.gsub(lines[1], '^(%S+ %S+) 0', '%1 1') end
save_clock()
return epoch and lines or {'epoch', ''}
