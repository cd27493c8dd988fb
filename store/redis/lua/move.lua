#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- move: changes the head start of a waiting or parked claim, and so its place in all its queues (R2). A move to the place that the
-- claim has changes nothing and draws no number. The push has a number of the clock and names its predecessor, as that of a grant
-- does. A sync reports the last move of each claim, in both directions.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial claim kind value
--       first -       before all others of its queues
--       before CLAIM  right before this one, in the queues that both are in
--       by µs         this much more; a negative number undoes moves, down to the claim's own head start
-- Reply {'ok', serial, more, number(0: it was at that place), state-now(H W P), ticket, head-start-µs, host, name,
--         pools("db:2,net:1"), places, passed}
--         places: {pool, place, claims passed} each, before any grant; none if it is parked
--         passed: {host, name} of some of the claims passed in the queue with the most
--       {'unknown', serial, claim}: it neither waits nor holds;  {'held', serial, claim}: it holds its permits
--       {'apart', serial}: the two claims share no queue;  {'grace', serial}: not all hosts have reported
--       {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  about 20 calls, and 8 a pool
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, own_connection, own_epoch, serial, c, kind, value = unpack(ARGV)
local MSEC, GIVEN_MAX, NAMES = 1000, 315360000000000, 4
local SPARE = 1000000 -- µs left before a claim, so that later moves before it find room
--#include core
--#include queue
if epoch ~= own_epoch then return {'epoch', epoch or ''} end
local current = string.match(call('HGET', meta, 'c:' .. s) or '', '^%d+')
if not current then return {'gone'} end
if current ~= own_connection then return {'stale'} end
if grace then return {'grace', serial} end

-- Returns the record of a claim that waits or is parked, else nil and the reply.
local function read_waiting(id)
    local r = read_claim(id)
    if not r or not call('HGET', meta, 'c:' .. r.session) then return nil, {'unknown', serial, id} end
    if r.state == 'H' then return nil, {'held', serial, id} end -- also a revoked one, until its host releases it
    if r.reason ~= '' then return nil, {'unknown', serial, id} end
    return r
end

local r, failure = read_waiting(c)
if not r then return failure end
local own, given, _ = parse_head(r.head)
local queues, bound, lower = {}, nil, nil -- its new score is below bound, and above lower if there is room
for i = 1, #r.list, 2 do queues[#queues + 1] = at .. 'pool:' .. r.list[i] .. ':queue' end

if kind == 'first' then
    for _, queue in ipairs(queues) do
        local first = call('ZRANGE', queue, '0', '0', 'WITHSCORES')
        if first[1] and first[1] ~= c then bound = math.min(bound or math.huge, tonumber(first[2])) end
    end
elseif kind == 'before' then
    local other, why = read_waiting(value)
    if not other then return why end
    local is_common, wanted = {}, false
    for i = 1, #other.list, 2 do is_common[at .. 'pool:' .. other.list[i] .. ':queue'] = true end
    for _, queue in ipairs(queues) do
        local rank = is_common[queue] and call('ZRANK', queue, value)
        wanted = wanted or is_common[queue]
        for _, k in ipairs(rank and {rank - 1, rank - 2} or {}) do -- the claim itself may be one of the two before it
            local near = k >= 0 and call('ZRANGE', queue, k, k, 'WITHSCORES') or {}
            if near[1] and near[1] ~= c then
                lower = math.max(lower or -math.huge, tonumber(near[2]))
                break
            end
        end
    end
    if not wanted or c == value then return {'apart', serial} end
    bound = score_of(other)
end

-- Rounds up to milliseconds, the unit of events.
local function rounded(usec)
    return math.ceil(usec / MSEC) * MSEC
end

local base, want = tonumber(r.ticket) - own, given
if kind == 'by' then
    want = rounded(math.min(math.max(given + tonumber(value), 0), GIVEN_MAX))
elseif bound and base - given >= bound then
    want = rounded(base - bound + 1)
    local room = kind == 'before' and math.min((bound - (lower or -math.huge)) / 2, SPARE) or 0
    local middle = rounded(base - bound + room)
    if room > 0 and base - middle > (lower or -math.huge) and base - middle < bound then want = middle end
end

-- Returns whether another claim has the score: then ids would decide the order of the two.
local function is_taken(score)
    for _, queue in ipairs(queues) do
        if call('ZCOUNT', queue, score, score) > 0 then return true end
    end
    return false
end

local number, places, passed = '0', {}, {}
local hosts = {} -- of sessions
local function host_of(session)
    hosts[session] = hosts[session] or string.match(call('HGET', at .. 'sessions', session) or '', '^%S+') or ''
    return hosts[session]
end
local function finish(state)
    return {'ok', serial, more, number, state, r.ticket, fmt(own + given), host_of(r.session), r.name, r.pools, places, passed}
end

local before = {}
for i, queue in ipairs(queues) do
    before[i] = r.state == 'W' and call('ZRANK', queue, c)
    if before[i] and want == given then places[#places + 1] = {r.list[2 * i - 1], before[i] + 1, 0} end
end
if want == given then return finish(r.state) end
for _ = 1, 16 do
    if not is_taken(fmt(base - want)) then break end
    want = want + MSEC
end
local connection, last = string.match(call('HGET', meta, 'c:' .. r.session), '^(%d+) (%d+)$')
number, given = fmt(tick()), want
r.head = fmt(own) .. '+' .. fmt(given) .. '@' .. number
if r.state == 'W' then
    enqueue(c, r)
    for i = 1, #r.list, 2 do touch(r.list[i]) end
end
write_claim(c, r)
call('HSET', meta, 'c:' .. r.session, connection .. ' ' .. number)
push(r.session, 'moved', epoch, last, number, c, fmt(given))

local most = 0
for i, queue in ipairs(queues) do
    local rank = before[i] and call('ZRANK', queue, c)
    if rank then
        places[#places + 1] = {r.list[2 * i - 1], rank + 1, math.max(before[i] - rank, 0)}
        if before[i] - rank > most then
            most = before[i] - rank
            passed = call('ZRANGE', queue, rank + 1, rank + math.min(most, NAMES))
        end
    end
end
local records = passed[1] and call('HMGET', at .. 'claims', unpack(passed)) or {}
for i = 1, #passed do
    local other = records[i] and parse_claim(records[i])
    passed[i] = {other and host_of(other.session) or '', other and other.name or ''}
end
settle()
save_clock()
local now_there = read_claim(c)
return finish(now_there and now_there.state or r.state)
