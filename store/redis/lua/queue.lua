-- SPDX-License-Identifier: MIT
-- Part of scripts that enqueue, remove or grant claims. Expects core.lua.
--
-- pool:P:held    set   one member per permit; used = SCARD (R5)
-- pool:P:queue   zset  waiting claim -> ticket minus head start
-- pool:P:parked  zset  claim parked at this pool -> permits it wants of the pool
-- unsettled      set   pools to settle later, after grace or after a bound was reached (R16)
--
-- A claim is in the queues of all its pools with the same score. The first claim of a queue is parked at a pool whose limit is
-- below its demand, because it would keep other claims waiting. The queue of a paused pool stays as it is, because no claim in
-- it can be granted.

local moves = 128    -- claims that this call may still requeue
local grants = 128   -- claims that this call may still grant or park
local visits = 256   -- pools that this call may still visit
local touched, n_touched, is_touched = {}, 0, {} -- pools to settle at the end of the call
local has_unvisited = false -- the set `unsettled` has more pools than this call visits

local function touch(pool)
    if not is_touched[pool] then
        is_touched[pool] = true
        n_touched = n_touched + 1
        touched[n_touched] = pool
    end
end

local function push(session, ...)
    call('SPUBLISH', at .. 'to:' .. session, table.concat({...}, ' '))
end

-- Takes permits, even above the limit.
local function hold(c, r)
    for i = 1, #r.list, 2 do
        call('SADD', at .. 'pool:' .. r.list[i] .. ':held', unpack(members(c, r.list[i + 1])))
        use_key(r.list[i])
    end
    r.state = 'H'
end

-- Puts a claim into its queues, or moves it to its place there.
local function enqueue(c, r)
    local score = fmt(score_of(r))
    for i = 1, #r.list, 2 do
        local queue = at .. 'pool:' .. r.list[i] .. ':queue'
        call('ZADD', queue, score, c)
        if call('ZCARD', queue) == 1 then cache_limit(r.list[i]) end
        use_key(r.list[i])
    end
    r.state = 'W'
end

-- Returns whether a claim was granted in an earlier epoch, to a host that does not know the grant. Redis may have lost that another
-- claim got these permits afterwards (R10).
local function is_doubtful(r)
    return r.state == 'H' and tonumber(r.token) < began
end

-- Returns the highest of a claim's positions in its queues, from 1; 0: it is in no queue.
local function position_of(c, r)
    local position = 0
    if r.state == 'W' then
        for i = 1, #r.list, 2 do
            position = math.max(position, (call('ZRANK', at .. 'pool:' .. r.list[i] .. ':queue', c) or -1) + 1)
        end
    end
    return position
end

-- Removes a claim from the keys of its state, and marks its pools to be settled.
local function dequeue(c, r)
    for i = 1, #r.list, 2 do
        local base = at .. 'pool:' .. r.list[i]
        if r.state == 'H' then
            call('SREM', base .. ':held', unpack(members(c, r.list[i + 1])))
            touch(r.list[i])
        elseif r.state == 'W' then
            call('ZREM', base .. ':queue', c)
            touch(r.list[i])
        else
            call('ZREM', base .. ':parked', c)
        end
    end
end

local function leave_keys(r)
    for i = 1, #r.list, 2 do leave_key(r.list[i]) end
end

local function drop(c, r)
    dequeue(c, r)
    leave_keys(r)
    call('HDEL', at .. 'claims', c)
end

local function push_place(c, r)
    push(r.session, r.state == 'P' and 'parked' or 'queued', epoch, position_of(c, r), r.ticket, c, r.ticket, r.since)
end

-- Returns the first of a claim's pools whose limit is below its demand, and that demand, or nil.
local function find_low_limit(r)
    for i = 1, #r.list, 2 do
        if r.list[i + 1] > limit_of(r.list[i]) then return r.list[i], r.list[i + 1] end
    end
end

-- Parks a claim that is the first of a queue. The caller writes its record.
local function park(c, r, pool, permits)
    dequeue(c, r)
    call('ZADD', at .. 'pool:' .. pool .. ':parked', permits, c)
    leave_keys(r)
    r.state = 'P'
end

-- Requeues parked claims that no longer exceed the limit, `share` at most. False: more are left. Then this pool must grant nothing,
-- or other claims would overtake those that are not requeued yet (R2).
local function unpark(pool, share)
    local parked = at .. 'pool:' .. pool .. ':parked'
    local list = call('ZRANGEBYSCORE', parked, '-inf', fmt(limit_of(pool)), 'LIMIT', 0, share)
    for _, c in ipairs(list) do
        call('ZREM', parked, c)
        local r = read_claim(c)
        moves = moves - 1
        if r and r.state == 'P' then
            enqueue(c, r)
            write_claim(c, r)
            push_place(c, r)
            for i = 1, #r.list, 2 do touch(r.list[i]) end
        else
            leave_key(pool)
        end
    end
    if #list == 0 and share > 0 and not unsettled then return true end
    cache_limit(pool)
    return not is_unsettled(pool)
end

-- Returns whether the first claim of one queue is first in all its queues and all its permits are free (R3). left_out: pools
-- that must grant nothing yet.
local function can_grant(c, r, left_out)
    for i = 1, #r.list, 2 do
        local base = at .. 'pool:' .. r.list[i]
        if left_out[r.list[i]] or has_unvisited and is_unsettled(r.list[i])
            or call('ZRANGE', base .. ':queue', '0', '0')[1] ~= c
            or call('SCARD', base .. ':held') + r.list[i + 1] > limit_of(r.list[i]) then
            return false
        end
    end
    return true
end

-- Records the grant, then publishes it to its session together with the session's token before (R12). The last word is how far the
-- token is ahead of TIME, in µs.
local function grant(c, r)
    local connection, last = string.match(call('HGET', meta, 'c:' .. r.session) or '', '^(%d+) (%d+)$')
    dequeue(c, r)
    if not connection then -- the session is being expired
        leave_keys(r)
        call('HDEL', at .. 'claims', c)
        call('SREM', claims_of(r.session), c)
        call('SREM', unsynced_of(r.session), c)
        return
    end
    local queued = r.since
    r.token, r.since = fmt(tick()), fmt(now())
    hold(c, r)
    write_claim(c, r)
    call('HSET', meta, 'c:' .. r.session, connection .. ' ' .. r.token)
    push(r.session, 'granted', epoch, last, r.token, c, r.ticket, queued, fmt(clock - now()))
end

-- Grants or parks claims until the first of the queue must wait, `share` at most. False: more are left.
local function grant_from(pool, left_out, share)
    local rest = grants - share
    while grants > rest do
        local c = call('ZRANGE', at .. 'pool:' .. pool .. ':queue', '0', '0')[1]
        if not c then return true end
        local r = read_claim(c)
        if not r or r.state ~= 'W' then -- keys were deleted: repair the queue, never hang
            call('ZREM', at .. 'pool:' .. pool .. ':queue', c)
            leave_key(pool)
        else
            local lowest, permits = find_low_limit(r)
            if limit_of(pool) == 0 then return true end
            if not lowest and not can_grant(c, r, left_out) then return true end
            if not in_epoch() then return false end
            is_touched[pool] = true -- this loop continues with this pool; the calls below touch the claim's other pools
            if lowest then
                park(c, r, lowest, permits)
                write_claim(c, r)
                push_place(c, r)
            else
                grant(c, r)
            end
            grants = grants - 1
        end
    end
    return false
end

-- Returns the part of a bound for touched pool i, so that a pool with many claims delays no other pool.
local function share_of(bound, i)
    return math.min(bound, math.ceil(bound / (n_touched - i + 1)))
end

-- Grants what has become possible in the touched and the unsettled pools. Notes pools that it may not or cannot settle yet.
local function settle()
    local remaining, left_out, taken = {}, {}, {}
    if n_touched == 0 and not unsettled then return end
    if not grace then
        if unsettled then
            local most = math.max(visits, 0)
            taken = call('SRANDMEMBER', at .. 'unsettled', fmt(most))
            has_unvisited = #taken == most
            for _, pool in ipairs(taken) do touch(pool) end
        end
        -- First requeue in all pools, then grant. Both may touch more pools.
        local i = 1
        while i <= n_touched do
            visits = visits - 1
            if visits < 0 or not unpark(touched[i], share_of(moves, i)) then left_out[touched[i]] = true end
            i = i + 1
        end
        local sorted = n_touched
        i = 1
        while i <= n_touched do
            local pool = touched[i]
            if i > sorted then visits = visits - 1 end -- the others were counted above
            is_touched[pool] = nil
            if left_out[pool] or (i > sorted and visits < 0) or not grant_from(pool, left_out, share_of(grants, i)) then
                remaining[#remaining + 1] = pool
            end
            is_touched[pool] = nil
            i = i + 1
        end
        if #taken > 0 then call('SREM', at .. 'unsettled', unpack(taken)) end
        if #remaining > 0 or has_unvisited then more = 1 end
    else
        remaining = touched
    end
    if #remaining > 0 then
        for i = 1, #remaining do call('SADD', at .. 'unsettled', remaining[i]) end
        if not unsettled then call('HSET', meta, 'unsettled', 1) end
        unsettled = '1'
    elseif unsettled and not grace and not has_unvisited then
        call('HDEL', meta, 'unsettled')
        unsettled = false
    end
end

-- Stores the limits of a pattern's keys that have one of their own in meta. The glob that finds them is the pattern.
local function cache_keys(pattern)
    local cursor = '0'
    repeat
        local page = call('HSCAN', meta, cursor, 'MATCH', 'l:' .. pattern, 'COUNT', 1000)
        cursor = page[1]
        for i = 1, #page[2], 2 do
            local key = string.sub(page[2][i], 3)
            if key ~= pattern then cache_limit(key) end
        end
    until cursor == '0'
end

-- Handles a changed limit of a pool: it may require the first claim of any queue to be parked.
local function change_limit(pool)
    limits = {} -- that of a pattern is that of its keys
    cache_limit(pool)
    if string.sub(pool, -2) == '/*' then cache_keys(pool) end
    touch(pool)
    if call('SCARD', at .. 'waiting') <= visits then
        for _, other in ipairs(call('SMEMBERS', at .. 'waiting')) do touch(other) end
    else -- too many for this call: keys of patterns
        call('SUNIONSTORE', at .. 'unsettled', at .. 'unsettled', at .. 'waiting')
        call('HSET', meta, 'unsettled', 1)
        unsettled = '1'
    end
end
