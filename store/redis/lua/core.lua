-- SPDX-License-Identifier: MIT
-- Part of scripts that do more than their fast path (a line "--#include core" stands for this text): the namespace's state,
-- the hybrid clock, epochs, claims' records, limits. Expects `call`, `meta` (KEYS[1]) and `at` (its prefix).
--
-- meta    hash  schema epoch began replid grace grace_elapsed clock lead heartbeat_count lease unsettled
--               override_version override_expiry broken(a key was deleted);
--               epoch: the random id of this epoch; began: the clock when it began; lead: how far the clock runs ahead of TIME, µs
--               c:SESSION = "connection last-token", h:HOST = session, o:POOL = override;
--               l:POOL = limit in force, with "+" behind it if somebody may wait (who finds nobody takes the "+" away), with "!"
--               if parked claims are still to come back;
--               replid: as INFO prints it, "master_replid:...";
--               about: tells people what this is, in so many bytes that Redis keeps a hash table from the first host on
-- waiting set   pools whose limit is noted with "+" or "!"
-- Tickets and tokens are numbers of the hybrid clock. All are kept and compared as text where nothing is computed with them,
-- because `..` and tostring() lose digits of 16-digit numbers.

local f = call('HMGET', meta, 'epoch', 'replid', 'grace', 'unsettled', 'clock', 'lease', 'lead', 'began')
local epoch, replid, grace, unsettled, lease = f[1], f[2], f[3] == '1', f[4], f[6]
local clock, lead, began = tonumber(f[5]) or 0, tonumber(f[7]) or 0, tonumber(f[8]) or 0
local clock_read, lead_read, time_read = clock, lead, nil
local more = 0        -- 1: this call's bound was reached, somebody should call again
local trusted = nil   -- whether Redis was found to be still in this epoch
local limits = {}     -- pool -> limit in force, as far as it was asked for

local function fmt(number)
    return string.format('%d', number) -- a 64-bit integer; %.0f costs four times as much
end

-- Redis's time in µs, one value a call. Used for tickets and tokens, for people, and for the end of overrides (R7).
local function now()
    if not time_read then
        local t = call('TIME')
        time_read = t[1] * 1000000 + t[2]
    end
    return time_read
end

-- Forgets pools where nobody waits any more. Whether that were all.
local function nobody_waits()
    local none = true
    for _, pool in ipairs(call('SMEMBERS', at .. 'waiting')) do
        if call('EXISTS', at .. 'pool:' .. pool .. ':queue', at .. 'pool:' .. pool .. ':parked') > 0 then
            none = false
        else
            call('SREM', at .. 'waiting', pool)
        end
    end
    return none
end

-- The next ticket or token. After TIME was set back the clock goes on at the pace of TIME, with a lead: two tickets differ by the time
-- between them, as head starts need it (R2). The lead shrinks when nobody waits whose ticket was drawn with it.
local function tick()
    if lead > 0 and not grace and nobody_waits() then lead = math.max(0, clock + 1 - now()) end
    local next_number = now() + lead
    if next_number <= clock then
        if clock - next_number > 1000 then lead = clock + 1 - now() end -- less than that is several numbers in one call
        next_number = clock + 1
    end
    clock = next_number
    return clock
end

-- The highest number that can have been drawn so far.
local function latest()
    return fmt(math.max(clock, now() + lead))
end

-- A number ten years ahead of TIME (of 2026, where TIME is behind) was never drawn: hosts refuse it, too.
local function is_plausible(number)
    return number < math.max(now(), 1767225600000000) + 315576000000000
end

-- Takes over what a host remembers of the clock, which outlives a loss of data (R10).
local function observe_clock(number)
    if number and number > clock and is_plausible(number) then clock = number end
end

-- To be called at the end of each call that may have ticked.
local function save_clock()
    if clock ~= clock_read or lead ~= lead_read then
        call('HSET', meta, 'clock', fmt(clock), 'lead', fmt(lead))
        clock_read, lead_read = clock, lead
    end
end

-- Nothing is granted before a hello begins another epoch: every other call is refused until then.
local function end_epoch()
    call('HDEL', meta, 'epoch')
    epoch, trusted = nil, false
end

-- Whether Redis is still the one that this epoch began with; if not, the epoch ends (R10).
local function in_epoch()
    if trusted == nil then
        trusted = epoch and replid and string.find(call('INFO', 'replication'), replid, 1, true) ~= nil
        if not trusted then end_epoch() end
    end
    return trusted
end

-- "db:2,net:1" as {'db', 2, 'net', 1}; nil if nobody can have asked for that
local function parse_pools(text)
    local list = {}
    for pool, n in string.gmatch(text or '', '([^:,]+):(%d+)') do
        if tonumber(n) > 1000 then return nil end
        list[#list + 1] = pool
        list[#list + 1] = tonumber(n)
    end
    return #list > 0 and list or nil
end

-- A claim's record: state token session pools ticket since head-start pid run name reason, separated by spaces. state: W(aiting),
-- P(arked), H(eld). since: when it was queued, or granted. reason: of a revocation, "" if there was none. A record that somebody else
-- wrote, and that makes no sense, is as good as none.
local function parse_claim(text)
    local r = {}
    r.state, r.token, r.session, r.pools, r.ticket, r.since, r.head, r.pid, r.run, r.name, r.reason =
        string.match(text, '^(%a) (%d+) (%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) ?(.*)$')
    r.list = parse_pools(r.pools)
    return r.list and r
end

-- Keys of the claims of a session, and of those that a sync under way has not named yet.
local function claims_of(session)
    return at .. 'session:' .. session .. ':claims'
end

local function unsynced_of(session)
    return at .. 'session:' .. session .. ':unsynced'
end

local function read_claim(c)
    local text = call('HGET', at .. 'claims', c)
    return text and parse_claim(text)
end

local function write_claim(c, r)
    call('HSET', at .. 'claims', c, table.concat(
        {r.state, r.token, r.session, r.pools, r.ticket, r.since, r.head, r.pid, r.run, r.name, r.reason}, ' '))
end

-- An override: version, limit ("-": cleared), until (µs, 0: no end), id of who made it, what a resume restores ("": it is no
-- pause; else "limit until", "-" for none), reason; separated by tabs.
local function parse_override(text)
    local o = {}
    o.version, o.limit, o.until_usec, o.by, o.restore, o.reason =
        string.match(text, '^(%d+)\t([%d-]+)\t(%d+)\t([^\t]*)\t([^\t]*)\t(.*)$')
    return o
end

-- Numbers given to call() are formatted with 17 digits, which costs more than the look-up: where they are known, they are texts.
local function lowest_limit(pool)
    return tonumber(call('ZRANGE', at .. 'pool:' .. pool .. ':limits', '0', '0', 'WITHSCORES')[2]) or 0
end

-- The lowest that a live session declares, or the override (R14). One whose time is over is in force until a heartbeat ends it: so
-- whom it parked is back in the queues before anybody is granted what it held back (R2).
local function limit_of(pool)
    local limit = limits[pool]
    if not limit then
        local o = call('HGET', meta, 'o:' .. pool)
        if o then limit = tonumber(parse_override(o).limit) end
        limit = limit or lowest_limit(pool)
        limits[pool] = limit
    end
    return limit
end

-- Whether claims that were parked because of this pool are to come back: its limit is no longer below what they want.
local function is_unsettled(pool)
    return call('ZCOUNT', at .. 'pool:' .. pool .. ':parked', '-inf', fmt(limit_of(pool))) > 0
end

-- Notes what limit_of() finds for the fast paths, which read it with all else: whatever changes it calls this, and each hello.
local function cache_limit(pool)
    local base = at .. 'pool:' .. pool
    local mark = is_unsettled(pool) and '!' or call('EXISTS', base .. ':queue') == 1 and '+' or ''
    if mark ~= '' then call('SADD', at .. 'waiting', pool) end
    if call('EXISTS', base .. ':limits') == 1 then
        call('HSET', meta, 'l:' .. pool, fmt(limit_of(pool)) .. mark)
    else
        call('HDEL', meta, 'l:' .. pool)
        if mark == '' then call('SREM', at .. 'waiting', pool) end
    end
end

-- The members of a pool's held set that stand for n permits of claim c.
local function members(c, n)
    local list = {}
    for i = 1, n do list[i] = c .. '#' .. i end
    return list
end
