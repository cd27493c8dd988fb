-- SPDX-License-Identifier: MIT
-- Part of scripts that place, take away or grant claims. Expects core.lua.
--
-- pool:P:held    set   one member per permit; used = SCARD (R5)
-- pool:P:queue   zset  waiting claim -> ticket minus head start
-- pool:P:parked  zset  claim parked because of this pool -> permits wanted of it
-- unsettled      set   pools to settle later: it was grace, or a bound was reached (R16)
--
-- A claim stands in the queues of all its pools with the same score. One that is the first of a queue, and wants more than the limit of
-- one of its pools, is parked at that pool: it would keep others waiting. In a paused pool nobody can be granted anything, so
-- that one's own queue stays as it is, however long it is.

local moves = 128    -- claims that this call may still bring back
local grants = 128   -- claims that it may still grant or park
local visits = 256   -- pools that it may still look at
local touched, n_touched, is_touched = {}, 0, {} -- pools to settle at the end of the call

local function touch(pool)
    if not is_touched[pool] then
        is_touched[pool] = true
        n_touched = n_touched + 1
        touched[n_touched] = pool
    end
end

local function push(session, ...)
    call('PUBLISH', at .. 'to:' .. session, table.concat({...}, ' '))
end

-- Takes permits, whatever the limit.
local function hold(c, r)
    for i = 1, #r.list, 2 do
        call('SADD', at .. 'pool:' .. r.list[i] .. ':held', unpack(members(c, r.list[i + 1])))
    end
    r.state = 'H'
end

-- Puts a claim into its queues.
local function enqueue(c, r)
    local score = fmt(tonumber(r.ticket) - tonumber(r.head))
    for i = 1, #r.list, 2 do
        local queue = at .. 'pool:' .. r.list[i] .. ':queue'
        call('ZADD', queue, score, c)
        if call('ZCARD', queue) == 1 then cache_limit(r.list[i]) end
    end
    r.state = 'W'
end

-- Granted in an epoch before this one, to a host that does not know it: Redis may have lost what came after, when somebody else got
-- these permits (R10).
local function is_doubtful(r)
    return r.state == 'H' and tonumber(r.token) < began
end

-- Where it stands in the queue in which it stands last, 1 first; 0: in none.
local function position_of(c, r)
    local position = 0
    if r.state == 'W' then
        for i = 1, #r.list, 2 do
            position = math.max(position, (call('ZRANK', at .. 'pool:' .. r.list[i] .. ':queue', c) or -1) + 1)
        end
    end
    return position
end

-- Takes a claim out of wherever its state says that it is; its pools are to be settled.
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

local function drop(c, r)
    dequeue(c, r)
    call('HDEL', at .. 'claims', c)
end

local function push_place(c, r)
    push(r.session, r.state == 'P' and 'parked' or 'queued', epoch, position_of(c, r), r.ticket, c, r.ticket, r.since)
end

-- The first of its pools whose limit is below what it wants; nil: none is.
local function find_low_limit(r)
    for i = 1, #r.list, 2 do
        if r.list[i + 1] > limit_of(r.list[i]) then return r.list[i], r.list[i + 1] end
    end
end

-- Takes a claim that is the first of a queue out of the way of others. Its record is the caller's to write.
local function park(c, r, pool, permits)
    dequeue(c, r)
    call('ZADD', at .. 'pool:' .. pool .. ':parked', permits, c)
    r.state = 'P'
end

-- Brings back who no longer wants more than the limit. False if the bound cut it short: then nothing may be granted in this pool yet, or
-- somebody would overtake those who are still to come back (R2).
local function unpark(pool)
    local parked = at .. 'pool:' .. pool .. ':parked'
    local list = call('ZRANGEBYSCORE', parked, '-inf', fmt(limit_of(pool)), 'LIMIT', 0, moves)
    for _, c in ipairs(list) do
        call('ZREM', parked, c)
        local r = read_claim(c)
        moves = moves - 1
        if r and r.state == 'P' then
            enqueue(c, r)
            write_claim(c, r)
            push_place(c, r)
            for i = 1, #r.list, 2 do touch(r.list[i]) end
        end
    end
    if #list == 0 and not unsettled then return true end
    cache_limit(pool)
    return not is_unsettled(pool)
end

-- Whether the claim at the head of one queue is first in all of them and all its permits are free (R3). left_out: pools where
-- nothing may be granted yet.
local function can_grant(c, r, left_out)
    for i = 1, #r.list, 2 do
        local base = at .. 'pool:' .. r.list[i]
        if left_out[r.list[i]] or call('ZRANGE', base .. ':queue', '0', '0')[1] ~= c
            or call('SCARD', base .. ':held') + r.list[i + 1] > limit_of(r.list[i]) then
            return false
        end
    end
    return true
end

-- Records the grant, then tells its session, naming the token granted to it before (R12).
local function grant(c, r)
    local connection, last = string.match(call('HGET', meta, 'c:' .. r.session) or '', '^(%d+) (%d+)$')
    dequeue(c, r)
    if not connection then -- its session is being expired
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
    push(r.session, 'granted', epoch, last, r.token, c, r.ticket, queued)
end

-- Grants, and parks who stands in the way, until the first of the queue has to wait. False if a bound cut it short.
local function grant_from(pool, left_out)
    while grants > 0 do
        local c = call('ZRANGE', at .. 'pool:' .. pool .. ':queue', '0', '0')[1]
        if not c then return true end
        local r = read_claim(c)
        if not r or r.state ~= 'W' then -- somebody deleted keys: heal, never hang
            call('ZREM', at .. 'pool:' .. pool .. ':queue', c)
        else
            local lowest, permits = find_low_limit(r)
            if limit_of(pool) == 0 then return true end
            if not lowest and not can_grant(c, r, left_out) then return true end
            if not in_epoch() then return false end
            is_touched[pool] = true -- this loop goes on with it; its other pools are touched by what follows
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

-- Does what has become possible in the touched and the unsettled pools; what it may not or cannot do yet is remembered.
local function settle()
    local remaining, left_out = {}, {}
    if n_touched == 0 and not unsettled then return end
    if not grace then
        if unsettled then
            for _, pool in ipairs(call('SMEMBERS', at .. 'unsettled')) do touch(pool) end
        end
        -- First those who come back, everywhere; then grants. Both may touch more pools meanwhile.
        local i = 1
        while i <= n_touched do
            visits = visits - 1
            if visits < 0 or not unpark(touched[i]) then left_out[touched[i]] = true end
            i = i + 1
        end
        local sorted = n_touched
        i = 1
        while i <= n_touched do
            local pool = touched[i]
            if i > sorted then visits = visits - 1 end -- the others were counted above
            is_touched[pool] = nil
            if left_out[pool] or (i > sorted and visits < 0) or not grant_from(pool, left_out) then remaining[#remaining + 1] = pool end
            is_touched[pool] = nil
            i = i + 1
        end
        if unsettled then call('DEL', at .. 'unsettled') end
        if #remaining > 0 then more = 1 end
    else
        remaining = touched
    end
    if #remaining > 0 then
        for i = 1, #remaining do call('SADD', at .. 'unsettled', remaining[i]) end
        if not unsettled then call('HSET', meta, 'unsettled', 1) end
        unsettled = '1'
    elseif unsettled and not grace then
        call('HDEL', meta, 'unsettled')
        unsettled = false
    end
end

-- A pool has another limit: who is first of any queue may have to be parked because of it.
local function change_limit(pool)
    limits[pool] = nil
    cache_limit(pool)
    touch(pool)
    for _, other in ipairs(call('SMEMBERS', at .. 'waiting')) do touch(other) end
end
