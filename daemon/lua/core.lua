-- SPDX-License-Identifier: MIT
-- Part of scripts that do more than their fast path (a line "--#include core" stands for this text): the namespace's state,
-- the hybrid clock, epochs, claims' records, limits. Expects `call`, `meta` (KEYS[1]) and `at` (its prefix).
--
-- meta    hash  schema epoch replid grace known clock beat lease debt over over-end broken(a record was deleted);
--               c:SESSION = "connection last-token", h:HOST = session, o:POOL = override;
--               l:POOL = limit in force, with "+" behind it if somebody may wait (who finds nobody takes the "+" away);
--               replid: as INFO says it, "master_replid:...";
--               what: says what this is, in so many bytes that Redis keeps a hash table from the first host on
-- Epochs, tickets and tokens are numbers of the hybrid clock; all are kept and compared as text where they are not reckoned with,
-- because `..` and tostring() lose digits of 16-digit numbers.

local f = call('HMGET', meta, 'epoch', 'replid', 'grace', 'debt', 'clock', 'lease')
local epoch, replid, grace, debt, lease = f[1], f[2], f[3] == '1', f[4], f[6]
local clock = tonumber(f[5]) or 0
local clock_read, time_read = clock, nil
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

-- The next ticket or token.
local function tick()
    clock = math.max(clock + 1, now())
    return clock
end

-- What hosts remember of the clock outlives a wipe (R10).
local function hear_clock(number)
    if number and number > clock then clock = number end
end

-- To be called at the end of each call that may have ticked.
local function save_clock()
    if clock ~= clock_read then
        call('HSET', meta, 'clock', fmt(clock))
        clock_read = clock
    end
end

-- Whether Redis still is who this epoch began with; if not, a new epoch begins here, in grace (R10).
local function in_epoch()
    if trusted == nil then
        local info = call('INFO', 'replication')
        trusted = epoch and replid and string.find(info, replid, 1, true) ~= nil
        if not trusted then
            replid = string.match(info, 'master_replid:%w+')
            epoch, grace = fmt(tick()), true
            call('HSET', meta, 'what', 'a namespace of berth, changed by its scripts alone: see PROTOCOL.md there',
                'schema', 1, 'epoch', epoch, 'replid', replid, 'grace', 1, 'known', 0)
        end
    end
    return trusted
end

-- "db:2,net:1" as {'db', 2, 'net', 1}
local function parse_pools(text)
    local list = {}
    for pool, n in string.gmatch(text, '([^:,]+):(%d+)') do
        list[#list + 1] = pool
        list[#list + 1] = tonumber(n)
    end
    return list
end

-- A claim's record: state token session pools ticket since head-start pid run name reason, separated by spaces. state: W(aiting),
-- P(arked), H(eld). since: when it was queued, or granted. reason: of a revocation, "" if there was none.
local function parse_claim(text)
    local r = {}
    r.state, r.token, r.session, r.pools, r.ticket, r.since, r.head, r.pid, r.run, r.name, r.reason =
        string.match(text, '^(%a) (%d+) (%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) ?(.*)$')
    r.list = parse_pools(r.pools)
    return r
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

-- What limit_of() finds is noted for the fast paths, which read it with all else: by whatever changes that, and by each hello.
local function note_limit(pool)
    local base = at .. 'pool:' .. pool
    if call('EXISTS', base .. ':limits') == 1 then
        call('HSET', meta, 'l:' .. pool, fmt(limit_of(pool)) .. (call('EXISTS', base .. ':queue') == 1 and '+' or ''))
    else
        call('HDEL', meta, 'l:' .. pool)
    end
end

-- The members of a pool's held set that stand for n permits of claim c.
local function members(c, n)
    local list = {}
    for i = 1, n do list[i] = c .. '#' .. i end
    return list
end
