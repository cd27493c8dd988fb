-- SPDX-License-Identifier: MIT
-- Part of scripts, behind their fast path ("--#include core" inserts this text): the namespace's state, the hybrid clock, epochs,
-- records of claims, limits. Expects `call`, `meta` (KEYS[1]) and `at` (its prefix).
--
-- meta    hash  id schema epoch began replid grace grace_elapsed clock lead heartbeat_count lease unsettled
--               override_version override_expiry broken(a key was deleted);
--               epoch: the random id of this epoch; began: the clock when it began; lead: how far the clock runs ahead of TIME, µs
--               c:SESSION = "connection last-token", h:HOST = session, o:POOL = override;
--               l:POOL = limit in force, followed by "+" if claims may be waiting (a script that finds none removes the "+"),
--               or by "!" if parked claims must be requeued. That of a pattern and of a key always ends in "/". A key
--               without an override or a declaration of its own has no l:KEY; its limit is in l:PATTERN;
--               replid: as INFO prints it, "master_replid:...";
--               about: a text for people, so long that Redis stores this hash as a hash table from the first host on
-- waiting set   pools whose l:POOL ends in "+" or "!", and each key with waiting or parked claims
-- pool:PATTERN:keys  set  keys with claims
-- Tickets and tokens are numbers of the hybrid clock. They are stored and compared as text, because `..` and tostring() lose
-- digits of 16-digit numbers.

local f = call('HMGET', meta, 'epoch', 'replid', 'grace', 'unsettled', 'clock', 'lease', 'lead', 'began')
local epoch, replid, grace, unsettled, lease = f[1], f[2], f[3] == '1', f[4], f[6]
local clock, lead, began = tonumber(f[5]) or 0, tonumber(f[7]) or 0, tonumber(f[8]) or 0
local clock_read, lead_read, time_read = clock, lead, nil
local more = 0        -- 1: this call reached its bound, and a host must call again
local trusted = nil   -- whether Redis is still in this epoch; nil: not checked yet
local limits = {}     -- pool -> limit in force, a cache

local function fmt(number)
    return string.format('%d', number) -- a 64-bit integer; %.0f takes four times as long
end

-- Returns Redis's time in µs, the same during a call. For tickets and tokens, for people, and for the end of overrides (R7).
local function now()
    if not time_read then
        local t = call('TIME')
        time_read = t[1] * 1000000 + t[2]
    end
    return time_read
end

-- Forgets some of the pools without waiting claims. Returns whether no pool is left.
local function nobody_waits()
    for _, pool in ipairs(call('SRANDMEMBER', at .. 'waiting', 64)) do
        if call('EXISTS', at .. 'pool:' .. pool .. ':queue', at .. 'pool:' .. pool .. ':parked') > 0 then return false end
        call('SREM', at .. 'waiting', pool)
    end
    return call('EXISTS', at .. 'waiting') == 0
end

-- Returns the next ticket or token. After TIME was set back the clock follows TIME with a lead, so that two tickets still differ
-- by the time between them, as head starts require (R2). The lead shrinks when no claim with a ticket from it waits.
local function tick()
    if lead > 0 and not grace and nobody_waits() then lead = math.max(0, clock + 1 - now()) end
    local next_number = now() + lead
    if next_number <= clock then
        if clock - next_number > 1000 then lead = clock + 1 - now() end -- a smaller difference comes from several numbers in one call
        next_number = clock + 1
    end
    clock = next_number
    return clock
end

-- Returns the highest number that can have been drawn so far.
local function latest()
    return fmt(math.max(clock, now() + lead))
end

-- A number ten years ahead of TIME (of 2026, if TIME is earlier) was never drawn. Hosts accept two days more, so they accept
-- whatever this accepts.
local function is_plausible(number)
    return number < math.max(now(), 1767225600000000) + 315360000000000
end

-- Advances the clock to the number that a host remembers, which outlives a loss of data (R10).
local function observe_clock(number)
    if number and number > clock and is_plausible(number) then clock = number end
end

-- To be called at the end of each call that may have drawn numbers.
local function save_clock()
    if clock ~= clock_read or lead ~= lead_read then
        call('HSET', meta, 'clock', fmt(clock), 'lead', fmt(lead))
        clock_read, lead_read = clock, lead
    end
end

-- Ends the epoch: every call but hello is refused until a hello begins the next one.
local function end_epoch()
    call('HDEL', meta, 'epoch')
    epoch, trusted = nil, false
end

-- Returns whether Redis is still the one of this epoch's begin. If not, ends the epoch (R10).
local function in_epoch()
    if trusted == nil then
        trusted = epoch and replid and string.find(call('INFO', 'replication'), replid, 1, true) ~= nil
        if not trusted then end_epoch() end
    end
    return trusted
end

-- Parses "db:2,net:1" into {'db', 2, 'net', 1}; nil: not a valid request
local function parse_pools(text)
    local list = {}
    for pool, n in string.gmatch(text or '', '([^:,]+):(%d+)') do
        if tonumber(n) > 1000 then return nil end
        list[#list + 1] = pool
        list[#list + 1] = tonumber(n)
    end
    return #list > 0 and list or nil
end

-- Parses a claim's record: state token session pools ticket since head-start pid run name reason, separated by spaces. state:
-- W(aiting), P(arked), H(eld). since: when it was queued, or granted. head-start: µs; of a moved claim OWN+GIVEN@NUMBER: its own
-- head start, that by moves, the number of the last move. reason: of a revocation; "": none. Returns nil if it is invalid, which
-- callers treat as missing.
local function parse_claim(text)
    local r = {}
    r.state, r.token, r.session, r.pools, r.ticket, r.since, r.head, r.pid, r.run, r.name, r.reason =
        string.match(text, '^(%a) (%d+) (%S+) (%S+) (%d+) (%d+) (%d[%d+@]*) (%d+) (%S+) (%S+) ?(.*)$')
    r.list = parse_pools(r.pools)
    return r.list and r
end

-- Returns the three numbers of a head start; 0 for a missing one.
local function parse_head(text)
    local own, given, number = string.match(text, '^(%d+)%+(%d+)@(%d+)$')
    return tonumber(own or text), tonumber(given or 0), tonumber(number or 0)
end

-- Returns a claim's place in all its queues: ticket minus head start (R2).
local function score_of(r)
    local own, given = parse_head(r.head)
    return tonumber(r.ticket) - own - given
end

-- Return the keys of a session's claims, and of those that a sync under way has not listed yet.
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

-- Parses an override: version, limit ("-": cleared), until (µs; 0: no end), id of the call that made it, the override that a
-- resume restores ("": this is no pause; "-": none; else "limit until reason"), reason; separated by tabs.
local function parse_override(text)
    local o = {}
    o.version, o.limit, o.until_usec, o.by, o.restore, o.reason =
        string.match(text, '^(%d+)\t([%d-]+)\t(%d+)\t([^\t]*)\t([^\t]*)\t(.*)$')
    return o
end

-- Returns the pattern of a key, "tenant/*" for "tenant/acme"; nil: the pool is no key.
local function pattern_of(pool)
    local name, key = string.match(pool, '^([^/]+/)(.*)$')
    return name and key ~= '*' and name .. '*' or nil
end

-- Returns the limit of an override, or nil.
local function override_of(pool)
    local o = call('HGET', meta, 'o:' .. pool)
    return o and tonumber(parse_override(o).limit)
end

-- Returns the lowest limit that a live session declares, or nil. call() formats numbers with 17 digits, which takes longer than a
-- look-up in this table of texts.
local function lowest_limit(pool)
    return tonumber(call('ZRANGE', at .. 'pool:' .. pool .. ':limits', '0', '0', 'WITHSCORES')[2])
end

-- Returns the override, or else the lowest limit that a live session declares (R14). A key uses those of its pattern where it has
-- none of its own. An override stays in force until a heartbeat ends it, so that the claims that it parked are requeued before
-- other claims are granted the permits (R2).
local function limit_of(pool)
    local limit = limits[pool]
    if not limit then
        local pattern = pattern_of(pool)
        limit = override_of(pool) or pattern and override_of(pattern) or lowest_limit(pool)
            or pattern and lowest_limit(pattern) or 0
        limits[pool] = limit
    end
    return limit
end

-- Returns whether claims that were parked at this pool must be requeued, because its limit allows them again.
local function is_unsettled(pool)
    return call('ZCOUNT', at .. 'pool:' .. pool .. ':parked', '-inf', fmt(limit_of(pool))) > 0
end

-- Stores the result of limit_of() in l:POOL for the fast paths. To be called after each change of it, and by each hello.
local function cache_limit(pool)
    local base, pattern = at .. 'pool:' .. pool, pattern_of(pool)
    local mark = is_unsettled(pool) and '!' or call('EXISTS', base .. ':queue') == 1 and '+' or ''
    if mark ~= '' then call('SADD', at .. 'waiting', pool) end
    if string.find(pool, '/', 1, true) then mark = '/' end
    if call('EXISTS', base .. ':limits') == 1 or pattern and override_of(pool) then
        call('HSET', meta, 'l:' .. pool, fmt(limit_of(pool)) .. mark)
    else
        call('HDEL', meta, 'l:' .. pool)
        if mark == '' and call('EXISTS', base .. ':parked') == 0 then call('SREM', at .. 'waiting', pool) end
    end
end

-- Notes that a key has claims. To be called when a claim enters a pool.
local function use_key(pool)
    local pattern = pattern_of(pool)
    if pattern then call('SADD', at .. 'pool:' .. pattern .. ':keys', pool) end
end

-- Forgets a key without claims, and a pool that no host declares and no claim awaits (R16). To be called when a claim has left a
-- pool for good.
local function leave_key(pool)
    local pattern, base = pattern_of(pool), at .. 'pool:' .. pool
    if pattern and call('EXISTS', base .. ':held', base .. ':queue', base .. ':parked') == 0 then
        call('SREM', at .. 'pool:' .. pattern .. ':keys', pool)
        call('SREM', at .. 'waiting', pool)
    elseif not pattern and call('HEXISTS', meta, 'l:' .. pool) == 0 and call('EXISTS', base .. ':queue', base .. ':parked') == 0 then
        call('SREM', at .. 'waiting', pool)
    end
end

-- Returns the members of a pool's held set for n permits of claim c.
local function members(c, n)
    local list = {}
    for i = 1, n do list[i] = c .. '#' .. i end
    return list
end
