-- SPDX-License-Identifier: MIT
-- Part of scripts that handle overrides (R14). Expects core.lua and queue.lua.
--
-- overrides  zset  pool -> version of its override; a cleared one stays, so that a late resend does not set it again
-- meta o:P   the override itself;  override_version: the newest;  override_expiry: the earliest

local function write_override(pool, o)
    call('HSET', meta, 'o:' .. pool, table.concat({o.version, o.limit, o.until_usec, o.by, o.restore, o.reason}, '\t'))
    call('ZADD', at .. 'overrides', o.version, pool)
    if tonumber(o.version) > tonumber(call('HGET', meta, 'override_version') or 0) then
        call('HSET', meta, 'override_version', o.version)
    end
    change_limit(pool)
end

-- Turns a pause into the override that its end restores: the replaced one if its time is not over, else none.
local function restore_override(o)
    local limit, until_usec, reason = string.match(o.restore, '^(%d+) (%d+) (.*)$')
    if limit and (until_usec == '0' or tonumber(until_usec) > now()) then
        o.limit, o.until_usec, o.reason = limit, until_usec, reason
    else
        o.limit, o.until_usec, o.reason = '-', '0', ''
    end
    o.restore = ''
end

-- Returns whether an override has been the same for a day.
local function is_old(o)
    return tonumber(o.version) < clock - 86400000000
end

-- Returns whether a cleared override can be removed (R16): after a day, if no session declares its pool. Until then a late resend
-- of an earlier call must find its version. Hosts forget it as well.
local function is_forgotten(pool, o)
    return o.limit == '-' and o.restore == '' and is_old(o) and call('EXISTS', at .. 'pool:' .. pool .. ':limits') == 0
end

local function clear_override(o)
    o.limit, o.until_usec, o.restore, o.reason = '-', '0', '', ''
end

-- Clears overrides whose time is over, 128 at most, and stores the earliest end of the others. Clears none in grace, because each end
-- is a new version, and a host that reports later may know a newer one.
local function end_overrides()
    local first
    local n_ended = 0
    for _, pool in ipairs(call('ZRANGE', at .. 'overrides', 0, -1)) do
        local o = call('HGET', meta, 'o:' .. pool)
        o = o and parse_override(o)
        if o and is_forgotten(pool, o) then
            call('HDEL', meta, 'o:' .. pool)
            call('ZREM', at .. 'overrides', pool)
        end
        if o and o.until_usec ~= '0' then
            local ends_at = tonumber(o.until_usec)
            if ends_at <= now() and not grace then
                if n_ended == 128 then
                    first, more = ends_at, 1
                    break
                end
                n_ended = n_ended + 1
                restore_override(o)
                o.version = fmt(tick())
                write_override(pool, o)
                ends_at = o.until_usec ~= '0' and tonumber(o.until_usec) or nil
            end
            if ends_at and (not first or ends_at < first) then first = ends_at end
        end
    end
    if first then call('HSET', meta, 'override_expiry', fmt(first)) else call('HDEL', meta, 'override_expiry') end
end

-- Lets heartbeats end an override in time. A call for one pool does not look at all overrides (R15).
local function note_end(o)
    local first = tonumber(call('HGET', meta, 'override_expiry') or '')
    local ends_at = tonumber(o.until_usec)
    if ends_at > 0 and (not first or ends_at < first) then call('HSET', meta, 'override_expiry', o.until_usec) end
end

-- Returns the overrides that are newer than this version, oldest first.
local function newer_overrides(version)
    local list = {}
    for _, pool in ipairs(call('ZRANGEBYSCORE', at .. 'overrides', '(' .. fmt(version), '+inf', 'LIMIT', 0, 128)) do
        local o = parse_override(call('HGET', meta, 'o:' .. pool) or '0\t-\t0\t\t\t')
        list[#list + 1] = {pool, o.version, o.limit, o.until_usec, o.by, o.restore, o.reason}
    end
    return list
end
