#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- override: sets, clears, pauses or resumes a pool's limit over what hosts declare (R14).
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial pool
--       version   of the override that this one replaces; 0: none
--       id        of this call, by which a repeated call is recognized (R6)
--       kind      set | clear | pause | resume
--       limit for-µs(0: until cleared) reason     (set and pause)
-- Reply {'ok', serial, more, version}
--       {'conflict', serial, version}: that version is not in force
--       {'unknown', serial}: no session declares that pool;  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  about 20 calls, and those for the claims that it parks, requeues and grants
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local s, own_connection, own_epoch, serial, pool, version, id, kind, limit, for_usec, reason = unpack(ARGV)
--#include core
--#include queue
--#include limits
if epoch ~= own_epoch then return {'epoch', epoch or ''} end
local connection = string.match(call('HGET', meta, 'c:' .. s) or '', '^%d+')
if not connection then return {'gone'} end
if connection ~= own_connection then return {'stale'} end

local text = call('HGET', meta, 'o:' .. pool)
local o = parse_override(text or '0\t-\t0\t\t\t')
if not text and not lowest_limit(pool) and not lowest_limit(pattern_of(pool) or '') then return {'unknown', serial} end
if o.by == id then return {'ok', serial, 0, o.version} end
if o.version ~= version then return {'conflict', serial, o.version} end
if o.until_usec ~= '0' and tonumber(o.until_usec) <= now() then restore_override(o) end

local until_usec = for_usec ~= '0' and fmt(now() + tonumber(for_usec)) or '0'
if kind == 'set' then
    o.limit, o.until_usec, o.restore, o.reason = limit, until_usec, '', reason
elseif kind == 'clear' then
    clear_override(o)
elseif kind == 'pause' then
    if o.restore == '' then
        o.restore = (o.limit == '-' or o.limit == '0') and '-' or table.concat({o.limit, o.until_usec, o.reason}, ' ')
    end
    o.limit, o.until_usec, o.reason = '0', until_usec, reason
elseif o.restore ~= '' or o.limit == '0' then -- an override of 0 is a pause that replaced none
    restore_override(o)
else -- not paused
    return {'ok', serial, 0, o.version}
end
o.version, o.by = fmt(tick()), id
write_override(pool, o)
note_end(o)
settle()
save_clock()
return {'ok', serial, more, o.version}
