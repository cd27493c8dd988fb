#!lua
-- SPDX-License-Identifier: MIT
-- claims: requests one permit of one pool for each of several claims, in their order.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial pool queue-limit, then for each claim: claim details(as in claim)
-- Reply {line, ...}: the reply of claim for each;  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  all granted: 9 calls; else that of as many calls of claim
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local FIRST_CLAIM = 7
local s, own_connection, own_epoch, serial, pool, queue_limit = unpack(ARGV, 1, 6)
local pattern = string.find(pool, '/', 1, true) and string.match(pool, '^[^/]+/') .. '*' -- of a key
local m = pattern and call('HMGET', meta, 'epoch', 'c:' .. s, 'grace', 'replid', 'clock', 'l:' .. pool, 'l:' .. pattern)
    or call('HMGET', meta, 'epoch', 'c:' .. s, 'grace', 'replid', 'clock', 'l:' .. pool)
if m[1] ~= own_epoch then return {'epoch', m[1] or ''} end
if not m[2] then return {'gone'} end
local connection, last = string.match(m[2], '^(%d+) (%d+)$')
if connection ~= own_connection then return {'stale'} end
local n, ids, details, lines = 0, {}, {}, {}
for i = FIRST_CLAIM, #ARGV, 2 do
    n = n + 1
    ids[n], details[n] = ARGV[i], ARGV[i + 1]
end

-- Fast path: no claim waits, no unusual state, and there is room for all.
local base, limit = at .. 'pool:' .. pool, m[6] or m[7]
if limit and string.byte(limit, -1) == 43 and call('EXISTS', base .. ':queue') == 0 then -- a plus
    limit = string.sub(limit, 1, -2)
    call('HSET', meta, 'l:' .. pool, limit)
    if call('EXISTS', base .. ':parked') == 0 then call('SREM', at .. 'waiting', pool) end
elseif limit and pattern then
    limit = string.match(limit, '^%d+')
end
local room = not m[3] and tonumber(limit or '')
-- A key that is new in :keys has no other claims.
if room and call('SCARD', base .. ':held') + n <= room and string.find(call('INFO', 'replication'), m[4], 1, true)
    and (not pattern or call('SADD', at .. 'pool:' .. pattern .. ':keys', pool) == 1
        or call('EXISTS', base .. ':queue', base .. ':parked') == 0) then
    local is_resent = false
    for _, record in ipairs(call('HMGET', at .. 'claims', unpack(ids))) do is_resent = is_resent or record end
    if not is_resent then
        local t = call('TIME')
        local since = t[1] .. string.sub('00000' .. t[2], -6)
        local token, records, held = math.max(m[5] + 1, since), {}, {}
        for k = 1, n do
            local text = string.format('%d', token + k - 1)
            records[2 * k - 1] = ids[k]
            records[2 * k] = 'H ' .. text .. ' ' .. s .. ' ' .. pool .. ':1 ' .. text .. ' ' .. since .. ' ' .. details[k] .. ' '
            held[k] = ids[k] .. '#1'
            lines[k] = 'ok ' .. serial .. ' 0 H ' .. text .. ' ' .. text .. ' ' .. last .. ' 0 ' .. since
            last = text
        end
        call('HSET', at .. 'claims', unpack(records))
        call('SADD', base .. ':held', unpack(held))
        call('SADD', at .. 'session:' .. s .. ':claims', unpack(ids))
        call('HSET', meta, 'clock', last, 'c:' .. s, connection .. ' ' .. last)
        return lines
    end
end
--#include core
--#include queue
--#include request
local again = {} -- claims that were sent before
for _, c in ipairs(ids) do again[c] = find_resent(c) and true end
local d = {pools = pool .. ':1', list = {pool, 1}, queue_limits = {tonumber(queue_limit)}}
for k, c in ipairs(ids) do
    lines[k] = again[c] and answer(c, read_claim(c), last) or request(c, details[k], '0', false, d)
end
save_clock()
return epoch and lines or {'epoch', ''}
