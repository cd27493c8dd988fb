#!lua
-- SPDX-License-Identifier: MIT
-- turn: asks for the turn of a job at a due time (R18). If the turn is this host's, its claim is queued or granted in the same
-- call. Without allow-oom: a full Redis takes no new turn (R13).
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial claim
--       details  "head-start pid run name", as in its record
--       due      in seconds since 1970; 0: `berth start`, which has no turn, and is decided by overlap alone
--       overlap  skip | queue | allow
--       then for each pool, the job's own one first: pool permits queue-limit
-- Reply, one line: ok serial more state ticket token last-token-before position time-µs attempt chain    as of claim; chain: "-", or
--         the word that the host of the attempt before gave. Or {that line, {due, attempt, chain}, ...}: open turns that this one
--         supersedes
--       taken serial 0 mark host: decided before;  skipped serial 0 overlap run host, or skipped serial 0 queue-full pool -
--       later serial 0 ms attempt: open after ms;  early serial 0 ms: more than 60 s ahead of Redis's clock;  grace serial 0
--       {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  about 20 calls
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local FIRST_POOL = 9
local s, own_connection, own_epoch, serial, c, details, due, overlap, job = unpack(ARGV)
--#include core
if epoch ~= own_epoch then return {'epoch', epoch or ''} end
local connection, last = string.match(call('HGET', meta, 'c:' .. s) or '', '^(%d+) (%d+)$')
if not connection then return {'gone'} end
if connection ~= own_connection then return {'stale'} end
--#include queue
--#include request
--#include turns
if not in_epoch() then return {'epoch', ''} end

local function line_of(...)
    return table.concat({...}, ' ')
end

local is_start = due == '0'
local sent = parse_turn(call('HGET', turns_of(s), c))
local r = (sent or is_start) and read_claim(c)
if r and r.session == s then -- it was sent before (R6)
    if not sent then return line_of(answer(c, r, last), '1', '-') end
    sent.epoch = epoch
    write_turn(s, c, sent)
    return line_of(answer(c, r, last), sent.attempt, sent.chain)
end
local skipped = not is_start and recall(job, c)
if skipped then return line_of('skipped', serial, 0, skipped) end
if grace then return line_of('grace', serial, 0) end
local early = ms_early(due)
if early > 0 then return line_of('early', serial, 0, fmt(early)) end

-- Finds the open turn of this due time, or replies why it cannot be taken.
local open, mark = read_open(job), mark_of(job)
local turn = open[due]
if turn and tonumber(turn.not_before) > now() then
    return line_of('later', serial, 0, fmt(math.ceil((tonumber(turn.not_before) - now()) / 1000)), turn.attempt)
end
if not turn and not is_start and tonumber(due) <= mark then
    return line_of('taken', serial, 0, fmt(mark), decider(job, due))
end
local host = string.match(call('HGET', at .. 'sessions', s) or '', '^%S+') or '-'

-- Returns a claim that holds the job's permit or waits for it.
local function find_run()
    local base = at .. 'pool:' .. job
    local member = call('SRANDMEMBER', base .. ':held', '1')[1]
    local other = member and string.match(member, '^(.*)#') or call('ZRANGE', base .. ':queue', '0', '0')[1]
        or call('ZRANGE', base .. ':parked', '0', '0')[1]
    return other and read_claim(other)
end

local function skip(...)
    local reply = line_of(...)
    if not is_start then
        decide(job, due, host)
        keep_reply(job, c, reply)
    end
    return line_of('skipped', serial, 0, reply)
end

-- Counts the job's claims, and for a new due time the turns that are open now. Turns whose delay is not over are superseded.
local present, superseded = 0, {}
if overlap ~= 'allow' then
    local base = at .. 'pool:' .. job
    present = call('SCARD', base .. ':held') + call('ZCARD', base .. ':queue') + call('ZCARD', base .. ':parked')
end
for other, o in pairs(open) do
    if tonumber(o.not_before) > now() then
        superseded[#superseded + 1] = {other, o.attempt, o.chain}
    elseif not turn and overlap ~= 'allow' then
        present = present + 1
    end
end
if present >= (overlap == 'queue' and 2 or 1) then
    local run = find_run()
    local on = run and string.match(call('HGET', at .. 'sessions', run.session) or '', '^%S+')
    return skip('overlap', run and run.run or '-', on or '-')
end

local d, texts = {list = {}, queue_limits = {}}, {}
for i = FIRST_POOL, #ARGV, 3 do
    local name, permits, queue_limit = unpack(ARGV, i, i + 2)
    d.list[#d.list + 1], d.list[#d.list + 2] = name, tonumber(permits)
    d.queue_limits[#d.queue_limits + 1] = tonumber(queue_limit)
    texts[#texts + 1] = name .. ':' .. permits
end
d.pools = table.concat(texts, ',')
local line = request(c, details, '0', false, d)
local full = string.match(line, '^refused %S+ %S+ queue%-full (%S+)')
if full then
    save_clock()
    if is_start then return line end
    return skip('queue-full', full, '-')
end
if not is_start then
    decide(job, due, host)
end
for _, o in ipairs(superseded) do call('HDEL', open_of(job), o[1]) end
if not is_start then
    write_turn(s, c, {state = 'T', job = job, due = due, attempt = turn and turn.attempt or '1', again = '-', epoch = epoch,
        chain = turn and turn.chain or '-'})
end
save_clock()
line = line_of(line, turn and turn.attempt or '1', turn and turn.chain or '-')
if #superseded == 0 then return line end
return {line, unpack(superseded)}
