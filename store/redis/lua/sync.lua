#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- sync: reports all claims of a session, in parts of at most 200, held ones first, then by ticket (R11). The last part, which is
-- repeated while `more`, drops the session's claims that no part listed, opens their turns (R18), and grants what is possible.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- ARGV  session connection epoch serial latest(as in hello) first(0|1) last(0|1), then for each claim:
--       claim kind token ticket head-start(as in a record) since-µs pid run name pools("db:2,net:1")
--       kind: H  held, with this token
--             B  as H, while the host gives its turn back. If it is missing outside of grace, that call has released it
--             K  held beyond a lost lease: counted even above the limit, gets a new token
--             W  waits, with this ticket
--             A  was requested, and no reply came
-- Reply {'ok', serial, more, grace, last-token, clock, claims, overcommitted}
--         claims: {claim, state(H W P, or '-': A or B, and missing), ticket, token, position, since-µs, reason-of-revocation,
--           head-start('' : as reported; else that of a later move)} each
--         overcommitted: {pool, used, limit} of pools in which restored claims exceed the limit
--       {'epoch', epoch}, {'gone'}, {'stale'} as in claim
-- Cost  about 5 calls a claim
local call, meta = redis.call, KEYS[1]
local at = string.sub(meta, 1, -5)
local FIRST_CLAIM, WORDS_A_CLAIM = 8, 10
local s, own_connection, own_epoch, serial, remembered_clock, first, last_part = unpack(ARGV, 1, 7)
--#include core
--#include queue
--#include turns
--#include session
if epoch ~= own_epoch or not in_epoch() then return {'epoch', epoch or ''} end
local connection, last = string.match(call('HGET', meta, 'c:' .. s) or '', '^(%d+) (%d+)$')
if not connection then return {'gone'} end
if connection ~= own_connection then return {'stale'} end
if grace then observe_clock(tonumber(remembered_clock)) end

local own_claims, unsynced = claims_of(s), unsynced_of(s)
if first == '1' and call('EXISTS', own_claims) == 1 then
    if call('EXISTS', unsynced) == 1 then -- an earlier sync was cut off
        call('SUNIONSTORE', unsynced, unsynced, own_claims)
        call('DEL', own_claims)
    else
        call('RENAME', own_claims, unsynced)
    end
end

local claims, restored = {}, {}
for i = FIRST_CLAIM, #ARGV, WORDS_A_CLAIM do
    local c, kind, token, ticket, head, since, pid, run, name, pools = unpack(ARGV, i, i + WORDS_A_CLAIM - 1)
    local r = read_claim(c)
    local was, moved = r and r.state, false
    if not r and (kind == 'A' or kind == 'B' and not grace) then
        claims[#claims + 1] = {c, '-', '0', '0', 0, '0', '', ''}
    else
        if not r then
            r = {token = token, session = s, pools = pools, ticket = ticket, head = head,
                since = since ~= '0' and since or ticket, pid = pid, run = run, name = name, reason = ''}
            r.list = parse_pools(r.pools)
        elseif r.session ~= s then
            call('SREM', claims_of(r.session), c)
            call('SREM', unsynced_of(r.session), c)
            move_turn(c, r.session, s)
            r.session, moved = s, true
        end
        local _, _, reported = parse_head(head)
        local _, _, known = parse_head(r.head)
        if reported > known then r.head = head end -- Redis has lost that move
        observe_clock(reported)
        observe_clock(tonumber(token))
        observe_clock(tonumber(ticket))
        if kind ~= 'W' and kind ~= 'A' then
            if kind == 'K' then
                r.token = fmt(tick())
                last = r.token
            else
                r.token = token
            end
            r.pid = pid
            if was ~= 'H' then
                if was then dequeue(c, r) end
                hold(c, r)
                for p = 1, #r.list, 2 do restored[r.list[p]] = true end
            end
        elseif not was or was == 'W' and reported > known and r.reason == '' then
            enqueue(c, r)
        elseif is_doubtful(r) then
            dequeue(c, r)
            r.token = '0'
            enqueue(c, r)
        end
        if r.state == 'W' and r.reason == '' then
            for p = 1, #r.list, 2 do touch(r.list[p]) end
        end
        write_claim(c, r)
        if call('SMOVE', unsynced, own_claims, c) == 0 and call('SADD', own_claims, c) == 1 and was and not moved then
            call('HSET', meta, 'broken', '1') -- the set of this session's claims was deleted: see verify.lua
        end
        claims[#claims + 1] = {c, r.state, r.ticket, r.token, position_of(c, r), r.since, r.reason,
            known > reported and r.head or ''}
    end
end
call('HSET', meta, 'c:' .. s, connection .. ' ' .. last)

local overcommitted = {}
for pool in pairs(restored) do
    local used = call('SCARD', at .. 'pool:' .. pool .. ':held')
    if used > limit_of(pool) then overcommitted[#overcommitted + 1] = {pool, used, limit_of(pool)} end
end

local unfinished = 0
if last_part == '1' then
    for _, c in ipairs(call('SRANDMEMBER', unsynced, 128)) do
        local r = read_claim(c)
        if r and r.session == s then drop(c, r) end
        if not r then call('HSET', meta, 'broken', '1') end -- its permits are unknown: see verify.lua
        call('SREM', unsynced, c)
    end
    unfinished = call('EXISTS', unsynced)
end
if last_part == '1' and unfinished == 0 then
    lose_turns(s, false)
    settle()
else -- no grants before the report is complete
    for i = 1, n_touched do call('SADD', at .. 'unsettled', touched[i]) end
    if n_touched > 0 then call('HSET', meta, 'unsettled', 1) end
end
save_clock()
if not epoch then return {'epoch', ''} end
-- `last` is not the newest token: the host receives the grants of settle() by pushes (R12).
return {'ok', serial, unfinished, grace and 1 or 0, last, fmt(clock), claims, overcommitted}
