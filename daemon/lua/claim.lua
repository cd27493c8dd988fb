#!lua
-- SPDX-License-Identifier: MIT
-- claim: asks for permits, all or none (R2, R3). Without allow-oom: a full Redis takes no new claims (R13).
--
-- KEYS  berth:{ns}:meta
-- ARGV  session connection epoch claim
--       who     "head-start-µs pid run name", as in its record
--       ticket  0, or the one it had before: it gets its old place, whatever the queue's limit
--       nowait(0|1), then for each pool: pool permits queue-limit
-- Reply, one line: ok epoch more state ticket token last-token-before position time-µs      state: H(eld) W(aiting) P(arked)
--                  refused epoch more busy|queue-full pool
--       {'epoch', epoch} not of this epoch, nothing was done;  {'gone'} no such session;  {'stale'} a newer connection is there
-- Cost  granted: 8 calls for one pool; waiting: about 15; O(log n)
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, c, who, pools = ARGV[1], ARGV[4], ARGV[5], ARGV[8]
local m = call('HMGET', meta, 'epoch', 'c:' .. s, 'grace', 'debt', 'replid', 'clock', 'l:' .. pools)
if m[1] ~= ARGV[3] then return {'epoch', m[1] or ''} end
if not m[2] then return {'gone'} end
local connection, last = string.match(m[2], '^(%d+) (%d+)$')
if connection ~= ARGV[2] then return {'stale'} end

-- One pool, nobody waits, nothing is odd: grant.
local limit = m[7]
if limit and not m[3] and not m[4] and not ARGV[11] and ARGV[6] == '0' then
    local base, n = at .. 'pool:' .. pools, ARGV[9]
    local room = tonumber(limit)
    if not room and call('ZCARD', base .. ':queue') == 0 then
        limit = string.sub(limit, 1, -2)
        room = tonumber(limit)
        call('HSET', meta, 'l:' .. pools, limit)
    end
    if room and call('SCARD', base .. ':held') + n <= room and string.find(call('INFO', 'replication'), m[5], 1, true) then
        local t = call('TIME')
        local since = t[1] .. string.sub('00000' .. t[2], -6)
        local text = #m[6] == #since and m[6] < since and since or string.format('%d', math.max(m[6] + 1, since))
        if call('HSETNX', at .. 'claims', c, 'H ' .. text .. ' ' .. s .. ' ' .. pools .. ':' .. n .. ' ' .. text .. ' '
                .. since .. ' ' .. who .. ' ') == 1 then
            if n == '1' then
                call('SADD', base .. ':held', c .. '#1')
            else
                local list = {}
                for i = 1, n do list[i] = c .. '#' .. i end
                call('SADD', base .. ':held', unpack(list))
            end
            call('SADD', at .. 'of:' .. s, c)
            call('HSET', meta, 'clock', text, 'c:' .. s, connection .. ' ' .. text)
            return 'ok ' .. m[1] .. ' 0 H ' .. text .. ' ' .. text .. ' ' .. last .. ' 0 ' .. since
        end
    end
end
--#include core
--#include queue
local function answer(r)
    return table.concat({'ok', epoch, more, r.state, r.ticket, r.token, last, position_of(c, r), r.since}, ' ')
end

-- Sent again: say what became of it (R6).
local r = read_claim(c)
if r and is_doubtful(r) then
    call('SREM', at .. 'of:' .. r.session, c)
    call('SREM', at .. 'unnamed:' .. r.session, c)
    drop(c, r)
    r = nil
end
if r then
    if r.session ~= s then -- a late call of this host's session before; as in sync
        call('SREM', at .. 'of:' .. r.session, c)
        call('SREM', at .. 'unnamed:' .. r.session, c)
        call('SADD', at .. 'of:' .. s, c)
        r.session = s
        write_claim(c, r)
    end
    return answer(r)
end
if n_touched > 0 or (debt and not grace) then
    settle() -- what is owed to others comes first
    last = string.match(call('HGET', meta, 'c:' .. s), ' (%d+)$')
end

r = {token = '0', session = s, reason = '', list = {}}
r.head, r.pid, r.run, r.name = string.match(who, '^(%d+) (%d+) (%S+) (%S+)$')
local queue_limits, texts = {}, {}
for i = 8, #ARGV, 3 do
    r.list[#r.list + 1], r.list[#r.list + 2] = ARGV[i], tonumber(ARGV[i + 1])
    queue_limits[ARGV[i]] = tonumber(ARGV[i + 2])
    texts[#texts + 1] = ARGV[i] .. ':' .. ARGV[i + 1]
end
r.pools = table.concat(texts, ',')
hear_clock(tonumber(ARGV[6]))
r.ticket, r.since = ARGV[6] ~= '0' and ARGV[6] or fmt(tick()), fmt(now())

-- Granted at once if it is first everywhere and all is free.
local score, free = tonumber(r.ticket) - tonumber(r.head), not grace and not debt
for i = 1, #r.list, 2 do
    local base = at .. 'pool:' .. r.list[i]
    local head = call('ZRANGE', base .. ':queue', '0', '0', 'WITHSCORES')
    free = free and not (head[2] and tonumber(head[2]) <= score)
        and call('SCARD', base .. ':held') + r.list[i + 1] <= limit_of(r.list[i])
end
if free and in_epoch() then
    r.token = ARGV[6] == '0' and r.ticket or fmt(tick())
    hold(c, r)
    write_claim(c, r)
    call('SADD', at .. 'of:' .. s, c)
    call('HSET', meta, 'clock', fmt(clock), 'c:' .. s, connection .. ' ' .. r.token)
    return answer(r)
end
if epoch ~= ARGV[3] then
    save_clock()
    return {'epoch', epoch}
end

if ARGV[7] == '1' then
    save_clock()
    return table.concat({'refused', epoch, more, 'busy', r.list[1]}, ' ')
end
for i = 1, #r.list, 2 do
    local base = at .. 'pool:' .. r.list[i]
    if ARGV[6] == '0' and call('ZCARD', base .. ':queue') + call('ZCARD', base .. ':parked') >= queue_limits[r.list[i]] then
        save_clock()
        return table.concat({'refused', epoch, more, 'queue-full', r.list[i]}, ' ')
    end
end
place(c, r)
write_claim(c, r)
call('SADD', at .. 'of:' .. s, c)
if grace or debt then -- nobody else looks at these pools on its own
    for i = 1, #r.list, 2 do call('SADD', at .. 'debt', r.list[i]) end
    if not debt then call('HSET', meta, 'debt', 1) end
end
save_clock()
return answer(r)
