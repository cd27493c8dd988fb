#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- override: sets, clears, pauses or resumes a pool's limit over what hosts declare (R14).
--
-- KEYS  berth:{ns}:meta
-- ARGV  session connection epoch pool
--       version   of the override that this one replaces, 0 if there was none
--       id        of this call: sent again it is known again (R6)
--       kind      set | clear | pause | resume
--       limit for-µs(0: until cleared) reason     (set and pause)
-- Reply {'ok', epoch, more, version}
--       {'conflict', epoch, version}: that version is not there (any more)
--       {'unknown', epoch}: nobody declares that pool;  {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  about 20 calls, and what it parks, brings back and grants
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
--#include core
--#include queue
--#include limits
local pool, kind = ARGV[4], ARGV[7]
if epoch ~= ARGV[3] then return {'epoch', epoch or ''} end
local connection = string.match(call('HGET', meta, 'c:' .. ARGV[1]) or '', '^%d+')
if not connection then return {'gone'} end
if connection ~= ARGV[2] then return {'stale'} end

local text = call('HGET', meta, 'o:' .. pool)
local o = parse_override(text or '0\t-\t0\t\t\t')
if not text and call('EXISTS', at .. 'pool:' .. pool .. ':limits') == 0 then return {'unknown', epoch} end
if o.by == ARGV[6] then return {'ok', epoch, 0, o.version} end
if o.version ~= ARGV[5] then return {'conflict', epoch, o.version} end
if o.until_usec ~= '0' and tonumber(o.until_usec) <= now() then restore_override(o) end

local until_usec = ARGV[9] ~= '0' and fmt(now() + tonumber(ARGV[9])) or '0'
if kind == 'set' then
    o.limit, o.until_usec, o.restore, o.reason = ARGV[8], until_usec, '', ARGV[10]
elseif kind == 'clear' then
    o.limit, o.until_usec, o.restore, o.reason = '-', '0', '', ''
elseif kind == 'pause' then
    if o.restore == '' then
        o.restore = o.limit == '-' and '-' or table.concat({o.limit, o.until_usec, o.reason}, ' ')
    end
    o.limit, o.until_usec, o.reason = '0', until_usec, ARGV[10]
elseif o.restore ~= '' then
    restore_override(o)
else -- not paused
    return {'ok', epoch, 0, o.version}
end
o.version, o.by = fmt(tick()), ARGV[6]
write_override(pool, o)
end_overrides()
settle()
save_clock()
return {'ok', epoch or '', more, o.version}
