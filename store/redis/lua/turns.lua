-- SPDX-License-Identifier: MIT
-- Part of scripts that decide, end or open turns (R18). Expects core.lua and queue.lua. A job is named by its implicit pool.
--
-- marks            zset  job -> the latest due time that was decided, in seconds since 1970
-- pool:P:turns     hash  of the job with pool P. last: "due host" of its latest decision; replies: "id reply" of
--                  the latest calls that skipped or missed a due time, a line each, newest first;
--                  DUE: "attempt not-before-µs epoch chain why" of each open turn; not-before: 0: at once, also if TIME is set back;
--                  why: host-lost, given-back, retry
-- session:S:turns  hash  claim -> "state job due attempt again epoch chain" of each turn of session S. state: T(aken), C(ommitted);
--                  again: ms from the loss of its host to the next attempt, "-": no further attempt; chain: a word that hosts pass on
--
-- A turn, taken or open, belongs to the epoch that it names. In a later epoch it is void unless its host reports it, because Redis
-- may have lost that another host had it since (R10).

local AHEAD_MAX = 3 * 3600 -- s: a mark that is further ahead of TIME was decided by a wrong clock, and is void
local tells = 128          -- sessions that this call may still notify of open turns
local REPLIES = 8          -- calls of each job whose replies are kept (R6)

local function turns_of(session)
    return at .. 'session:' .. session .. ':turns'
end

local function open_of(job)
    return at .. 'pool:' .. job .. ':turns'
end

local function parse_turn(text)
    local t = {}
    t.state, t.job, t.due, t.attempt, t.again, t.epoch, t.chain =
        string.match(text or '', '^([TC]) (%S+) (%d+) (%d+) (%S+) (%S+) (%S+)$')
    return t.state and t
end

local function write_turn(session, c, t)
    call('HSET', turns_of(session), c, table.concat({t.state, t.job, t.due, t.attempt, t.again, t.epoch, t.chain}, ' '))
end

-- Moves the turn of a claim to a later session of the same host.
local function move_turn(c, from, to)
    local text = call('HGET', turns_of(from), c)
    if text then
        call('HDEL', turns_of(from), c)
        call('HSET', turns_of(to), c, text)
    end
end

-- Returns the latest due time of a job that was decided; 0: none.
local function mark_of(job)
    local mark = tonumber(call('ZSCORE', at .. 'marks', job) or 0)
    return mark <= now() / 1000000 + AHEAD_MAX and mark or 0
end

-- Returns the number of ms until a due time may be decided; 0 or less: it may be.
local function ms_early(due)
    return math.ceil(tonumber(due) * 1000 - now() / 1000 - 60000)
end

-- Returns the reply to the call with this id if that skipped or missed a due time, else nil. The reply may have been
-- lost, and no other host logs the decision.
local function recall(job, id)
    for line in string.gmatch(call('HGET', open_of(job), 'replies') or '', '[^\n]+') do
        local own, reply = string.match(line, '^(%S+) (.*)$')
        if own == id then return reply end
    end
end

local function keep_reply(job, id, reply)
    local lines = {id .. ' ' .. reply}
    for line in string.gmatch(call('HGET', open_of(job), 'replies') or '', '[^\n]+') do
        if #lines < REPLIES then lines[#lines + 1] = line end
    end
    call('HSET', open_of(job), 'replies', table.concat(lines, '\n'))
end

-- Decides a due time, so its turn is not open any more. A due time before the mark does not change the mark.
local function decide(job, due, host)
    call('HDEL', open_of(job), due)
    if tonumber(due) < mark_of(job) then return end
    call('ZADD', at .. 'marks', due, job)
    call('HSET', open_of(job), 'last', due .. ' ' .. host)
end

-- Returns the host of the latest decision, if that decided this due time, else "-". In a new epoch Redis may lack that
-- decision, and know the mark only from the reports of hosts.
local function decider(job, due)
    local decided_due, host = string.match(call('HGET', open_of(job), 'last') or '', '^(%d+) (%S+)$')
    return tonumber(decided_due or 0) >= tonumber(due) and host or '-'
end

-- Returns the open turns of a job as {due = {attempt, not_before, chain, why}}; deletes those of earlier epochs.
local function read_open(job)
    local list, fields = {}, call('HGETALL', open_of(job))
    for i = 1, #fields, 2 do
        if string.find(fields[i], '^%d') then
            local o, own = {}, nil
            o.attempt, o.not_before, own, o.chain, o.why = string.match(fields[i + 1], '^(%d+) (%d+) (%S+) (%S+) (%S+)$')
            if own == epoch then
                list[fields[i]] = o
            else
                call('HDEL', open_of(job), fields[i])
            end
        end
    end
    return list
end

-- Opens a turn, and notifies all sessions that define the job except `but`. The push has a number of the clock and names its
-- predecessor, so that a host detects its loss (R12).
local function open_turn(job, due, attempt, delay_ms, chain, why, but)
    if not in_epoch() then return end -- this Redis may have older data
    local not_before = tonumber(delay_ms) > 0 and fmt(now() + tonumber(delay_ms) * 1000) or '0'
    call('HSET', open_of(job), due, table.concat({attempt, not_before, epoch, chain, why}, ' '))
    for _, s in ipairs(call('ZRANGE', at .. 'pool:' .. job .. ':limits', 0, 127)) do
        local connection, last = string.match(call('HGET', meta, 'c:' .. s) or '', '^(%d+) (%d+)$')
        if connection and s ~= but and tells > 0 then
            local number = fmt(tick())
            tells = tells - 1
            call('HSET', meta, 'c:' .. s, connection .. ' ' .. number)
            push(s, 'turn', epoch, last, number, job, due, attempt, delay_ms, why)
        end
    end
end

-- Handles that a turn has lost its host: opens it if no process can have begun, or as the next attempt if its job has one.
local function lose_turn(t, but)
    if t.epoch ~= epoch or (t.state == 'C' and t.again == '-') then return end
    local committed = t.state == 'C'
    open_turn(t.job, t.due, fmt(tonumber(t.attempt) + (committed and 1 or 0)), committed and t.again or '0', t.chain, 'host-lost', but)
end

-- Handles the turns of a session that ends as lost. Of a session that lives, handles those whose claims it no longer has: such a
-- turn is over if it was committed, because its host has noted the end of the run.
local function lose_turns(session, ends)
    local fields = call('HGETALL', turns_of(session))
    for i = 1, #fields, 2 do
        local t, r = parse_turn(fields[i + 1]), not ends and read_claim(fields[i])
        if not (r and r.session == session) then
            call('HDEL', turns_of(session), fields[i])
            if t and (ends or t.state == 'T') then lose_turn(t, session) end
        end
    end
end
