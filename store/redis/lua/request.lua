-- SPDX-License-Identifier: MIT
-- Part of scripts that request permits, behind their fast path. Expects core.lua, queue.lua, and of the calling session `s`,
-- `own_epoch`, `connection` and `last`, its last token; `serial`, the call's number.

local function answer(c, r, before)
    return table.concat({'ok', serial, more, r.state, r.ticket, r.token, before, position_of(c, r), r.since}, ' ')
end

-- Returns the record of a claim that was sent before (R6), or nil. A doubtful grant does not count.
local function find_resent(c)
    local r = read_claim(c)
    if not r then return nil end
    if r.session ~= s or is_doubtful(r) then -- of another session: a late call of this host's earlier one, as in sync
        call('SREM', claims_of(r.session), c)
        call('SREM', unsynced_of(r.session), c)
        if is_doubtful(r) then
            drop(c, r)
            return nil
        end
        call('SADD', claims_of(s), c)
        r.session = s
        write_claim(c, r)
    end
    return r
end

-- Returns whether a claim with this score would be the first in all its pools, and all its permits are free.
local function is_free(score, d)
    local free = not grace
    for i = 1, #d.list, 2 do
        local base = at .. 'pool:' .. d.list[i]
        local head = call('ZRANGE', base .. ':queue', '0', '0', 'WITHSCORES')
        free = free and not (head[2] and tonumber(head[2]) <= score) and not is_unsettled(d.list[i])
            and call('SCARD', base .. ':held') + d.list[i + 1] <= limit_of(d.list[i])
    end
    return free
end

-- Returns whether a claim above a limit is the first of a queue in which other claims could be granted.
local function blocks_others(c, r)
    for i = 1, #r.list, 2 do
        if limit_of(r.list[i]) > 0 and call('ZRANGE', at .. 'pool:' .. r.list[i] .. ':queue', '0', '0')[1] == c then return true end
    end
    return false
end

-- Grants, queues or refuses a new claim. Returns its line of the reply; nil: the caller's epoch is over.
-- d: {list = {pool, permits, ...}, pools = the same as text, queue_limits}
local function request(c, details, ticket, nowait, d)
    local r, before = {token = '0', session = s, reason = '', list = d.list, pools = d.pools}, last
    r.head, r.pid, r.run, r.name = string.match(details, '^(%S+) (%d+) (%S+) (%S+)$')
    observe_clock(tonumber(ticket))
    r.ticket, r.since = ticket ~= '0' and ticket or fmt(tick()), fmt(now())

    if is_free(score_of(r), d) and in_epoch() then -- first in all its queues
        r.token = ticket == '0' and r.ticket or fmt(tick())
        hold(c, r)
        write_claim(c, r)
        call('SADD', claims_of(s), c)
        call('HSET', meta, 'clock', fmt(clock), 'c:' .. s, connection .. ' ' .. r.token)
        clock_read, last = clock, r.token
        return answer(c, r, before)
    end
    if epoch ~= own_epoch then return nil end
    if nowait then return table.concat({'refused', serial, more, 'busy', d.list[1]}, ' ') end
    for i = 1, #d.list, 2 do
        local base = at .. 'pool:' .. d.list[i]
        if ticket == '0' and call('ZCARD', base .. ':queue') + call('ZCARD', base .. ':parked') >= d.queue_limits[(i + 1) / 2] then
            return table.concat({'refused', serial, more, 'queue-full', d.list[i]}, ' ')
        end
    end
    enqueue(c, r)
    local lowest, permits = find_low_limit(r)
    if lowest and blocks_others(c, r) then park(c, r, lowest, permits) end
    write_claim(c, r)
    call('SADD', claims_of(s), c)
    if grace then -- no later call would touch these pools
        for i = 1, #r.list, 2 do call('SADD', at .. 'unsettled', r.list[i]) end
        if not unsettled then call('HSET', meta, 'unsettled', 1) end
    end
    return answer(c, r, before)
end
