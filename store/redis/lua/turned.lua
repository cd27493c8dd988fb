#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- turned: commits, ends, opens, lists and reports turns (R18).
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial, then one of:
--       commit CLAIM AGAIN CHAIN    before its command is started. AGAIN: ms from the loss of this host to the next attempt, "-": the
--                                turn is over then; CHAIN: a word for the host that makes it. Reply: ok serial 0;  lost serial 0: another
--                                host may have the turn, or nobody;  waits serial 0: the claim is not granted
--       over CLAIM               ends the turn and releases its claim: the run is over, or will not begin. Reply: that of release
--       back CLAIM ATTEMPT DELAY-MS CHAIN    does the same, and opens the turn as this attempt after the delay. Reply: that of release
--       pass JOB DUE CLAIM       decides that all due times up to this one are missed, if they were not decided before. CLAIM: an id
--                                that makes the call unique. Reply: missed serial 0 MARK: this host logs it; MARK: the latest due time
--                                decided before, 0: none;  taken serial 0 MARK HOST, early serial 0 MS, grace serial 0: as of turn
--       stop JOB                 ends every open turn of the job. Reply: {'ok', serial, 0, {{due, attempt, chain}, ...}, {{run, host,
--                                held(0|1)}, ...}}: these turns, and claims of the job that other sessions have (16 held, 16 queued and
--                                16 parked at most);  grace serial 0: not all hosts have reported
--       hosts JOB                Reply: {'ok', serial, 0, {host, version, ...}, {{due, attempt, ms}, ...}}: sessions that define the job, 100 at
--                                most, and its open turns
--       look JOB...              Reply: {'ok', serial, 0, {job, mark, {due, attempt, ms, chain, why}, ...}, ...}: marks and open turns of these
--                                jobs. A host looks once a lease, because hosts that were notified of a turn may not take it
--       report CLAIM STATE JOB DUE ATTEMPT AGAIN CHAIN ...    after a sync: turns of this session, 100 at most. Reply: ok serial 0
--       marks JOB DUE ...        after a sync: the latest due times that this host knows to be decided, 200 at most. Reply: ok serial 0
--       {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  commit: 5 calls; over: that of release and 3; back: 3 more for each session that defines the job; stop: 6, one more for each
--       open turn and 2 for each claim; hosts: 3
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, own_connection, own_epoch, serial, what, c = unpack(ARGV, 1, 6)
--#include core
if epoch ~= own_epoch then return {'epoch', epoch or ''} end
local connection = string.match(call('HGET', meta, 'c:' .. s) or '', '^%d+')
if not connection then return {'gone'} end
if connection ~= own_connection then return {'stale'} end
--#include queue
--#include turns
local KEPT = 400 * 86400 -- s after which the marks of jobs that no host defines are deleted (R16)

local function line_of(word, ...)
    return table.concat({word, serial, 0, ...}, ' ')
end

local verbs = {}

function verbs.commit()
    local t, r = parse_turn(call('HGET', turns_of(s), c)), read_claim(c)
    if not in_epoch() then return {'epoch', ''} end
    if not t or t.epoch ~= epoch or not r or r.session ~= s or r.reason ~= '' then return line_of('lost') end
    if r.state ~= 'H' then return line_of('waits') end
    if t.state == 'T' then
        t.state, t.again, t.chain = 'C', ARGV[7], ARGV[8]
        write_turn(s, c, t)
    end
    return line_of('ok')
end

local function release()
    local r = read_claim(c)
    if not r and call('SISMEMBER', claims_of(s), c) == 1 then
        call('HSET', meta, 'broken', '1') -- its permits are unknown: see hello.lua
        end_epoch()
        return {'epoch', ''}
    end
    if not r or r.session ~= s then return line_of('ok') end
    local before = fmt(clock)
    call('SREM', claims_of(s), c)
    drop(c, r)
    settle()
    save_clock()
    if not epoch then return {'epoch', ''} end
    return table.concat({'ok', serial, more, before, r.state == 'H' and r.token or '0'}, ' ')
end

function verbs.over()
    call('HDEL', turns_of(s), c)
    return release()
end

function verbs.back()
    local t = parse_turn(call('HGET', turns_of(s), c))
    call('HDEL', turns_of(s), c)
    local reply = release()
    if t and t.epoch == epoch then
        open_turn(t.job, t.due, ARGV[7], ARGV[8], ARGV[9], t.attempt == ARGV[7] and 'given-back' or 'retry', s)
        save_clock()
    end
    return epoch and reply or {'epoch', ''}
end

function verbs.pass()
    local job, due, id = c, ARGV[7], ARGV[8]
    if not in_epoch() then return {'epoch', ''} end
    local missed = recall(job, id)
    if missed then return line_of('missed', missed) end
    if grace then return line_of('grace') end
    local early, mark = ms_early(due), fmt(mark_of(job))
    if early > 0 then return line_of('early', fmt(early)) end
    if tonumber(due) <= tonumber(mark) and not read_open(job)[due] then return line_of('taken', mark, decider(job, due)) end
    decide(job, due, string.match(call('HGET', at .. 'sessions', s) or '', '^%S+') or '-')
    keep_reply(job, id, mark)
    return line_of('missed', mark)
end

-- Returns the number of ms until an open turn may be taken.
local function ms_until(open)
    return fmt(math.max(0, math.ceil((tonumber(open.not_before) - now()) / 1000)))
end

local HOSTS = 100 -- sessions that `hosts` names

function verbs.hosts()
    local hosts, turns, sessions = {}, {}, call('ZRANGE', at .. 'pool:' .. c .. ':limits', 0, HOSTS - 1)
    for _, record in ipairs(#sessions > 0 and call('HMGET', at .. 'sessions', unpack(sessions)) or {}) do
        local host, version = string.match(record or '', '^(%S+) %S+ (%S+)')
        if host then hosts[#hosts + 1], hosts[#hosts + 2] = host, version end
    end
    for due, o in pairs(read_open(c)) do turns[#turns + 1] = {due, o.attempt, ms_until(o)} end
    return {'ok', serial, 0, hosts, turns}
end

local STOPS = 16 -- claims of a kind that `stop` names

function verbs.stop()
    local job, ended, others, base = c, {}, {}, at .. 'pool:' .. c
    if not in_epoch() then return {'epoch', ''} end
    if grace then return line_of('grace') end
    for due, o in pairs(read_open(job)) do
        call('HDEL', open_of(job), due)
        ended[#ended + 1] = {due, o.attempt, o.chain}
    end
    local function add(claims, is_held)
        for _, claim in ipairs(claims) do
            local r = read_claim(is_held and string.match(claim, '^(.*)#') or claim)
            if r and r.session ~= s then
                others[#others + 1] = {r.run, string.match(call('HGET', at .. 'sessions', r.session) or '', '^%S+') or '-', is_held and 1 or 0}
            end
        end
    end
    add(call('SRANDMEMBER', base .. ':held', STOPS), true)
    add(call('ZRANGE', base .. ':queue', 0, STOPS - 1))
    add(call('ZRANGE', base .. ':parked', 0, STOPS - 1))
    return {'ok', serial, 0, ended, others}
end

function verbs.look()
    local list, oldest = {'ok', serial, 0}, fmt(math.floor(now() / 1000000) - KEPT)
    for i = 6, #ARGV do
        local of_job = {ARGV[i], fmt(mark_of(ARGV[i]))}
        for due, o in pairs(read_open(ARGV[i])) do
            of_job[#of_job + 1] = {due, o.attempt, ms_until(o), o.chain, o.why}
        end
        list[#list + 1] = of_job
    end
    for _, job in ipairs(call('ZRANGEBYSCORE', at .. 'marks', '-inf', oldest, 'LIMIT', 0, 16)) do
        if call('EXISTS', at .. 'pool:' .. job .. ':limits') == 0 then
            call('ZREM', at .. 'marks', job)
            call('UNLINK', open_of(job))
        end
    end
    return list
end

function verbs.report()
    for i = 6, #ARGV, 7 do
        local t, claim, r = {epoch = epoch}, ARGV[i], read_claim(ARGV[i])
        t.state, t.job, t.due, t.attempt, t.again, t.chain = unpack(ARGV, i + 1, i + 6)
        if grace and r and r.session == s then write_turn(s, claim, t) end -- later its session may have lost the turn
    end
    return line_of('ok')
end

function verbs.marks()
    for i = 6, #ARGV, 2 do
        local job, due = ARGV[i], tonumber(ARGV[i + 1])
        if due > mark_of(job) and due <= now() / 1000000 + AHEAD_MAX then call('ZADD', at .. 'marks', ARGV[i + 1], job) end
    end
    return line_of('ok')
end

return verbs[what]()
