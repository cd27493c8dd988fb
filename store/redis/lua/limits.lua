-- SPDX-License-Identifier: MIT
-- Part of scripts that know overrides (R14). Expects core.lua and queue.lua.
--
-- overrides  zset  pool -> version of its override, also of one that was cleared: a late resend must not bring it back
-- meta o:P   the override itself;  override_version: the newest;  override_expiry: the earliest

local function write_override(pool, o)
    call('HSET', meta, 'o:' .. pool, table.concat({o.version, o.limit, o.until_usec, o.by, o.restore, o.reason}, '\t'))
    call('ZADD', at .. 'overrides', o.version, pool)
    if tonumber(o.version) > tonumber(call('HGET', meta, 'override_version') or 0) then
        call('HSET', meta, 'override_version', o.version)
    end
    change_limit(pool)
end

-- What a resume, or the end of a pause, brings back: the override that it replaced, if that is not over by now.
local function restore_override(o)
    local limit, until_usec, reason = string.match(o.restore, '^(%d+) (%d+) (.*)$')
    if limit and (until_usec == '0' or tonumber(until_usec) > now()) then
        o.limit, o.until_usec, o.reason = limit, until_usec, reason
    else
        o.limit, o.until_usec, o.reason = '-', '0', ''
    end
    o.restore = ''
end

-- A cleared override stays, because a late resend of the call before it must find its version; not for ever (R16): a day, and as long
-- as somebody declares its pool. Hosts forget it, too.
local function is_forgotten(pool, o)
    return o.limit == '-' and o.restore == '' and tonumber(o.version) < clock - 86400000000
        and call('EXISTS', at .. 'pool:' .. pool .. ':limits') == 0
end

-- The earliest end among overrides in force; those that are over now are cleared. Not in grace: an end is a new version, and a host
-- may still come that knows a newer one than this.
local function end_overrides()
    local first
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

-- What a host that knows all up to this version does not know yet, oldest first.
local function newer_overrides(version)
    local list = {}
    for _, pool in ipairs(call('ZRANGEBYSCORE', at .. 'overrides', '(' .. fmt(version), '+inf', 'LIMIT', 0, 128)) do
        local o = parse_override(call('HGET', meta, 'o:' .. pool) or '0\t-\t0\t\t\t')
        list[#list + 1] = {pool, o.version, o.limit, o.until_usec, o.by, o.restore, o.reason}
    end
    return list
end
