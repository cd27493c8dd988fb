/* SPDX-License-Identifier: MIT */

/* Tests the model: it must notice when a rule is taken out of the scripts or of the virtual hosts. If the text of a
 * mutation is in no script any more, the test fails with "its text is in no script". A mutation that is seldom found
 * names a seed that finds it; the test tries that seed first, then all from 1 on. Seeds find other things once the model
 * draws more numbers; a mutation that few sequences find has a scene (model-scenes.c). By hand: MUTATION=part-of-a-name
 * prints what was found, SEED=N begins there. */

#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "tests/model/model.h"
#include "tests/harness/test.h"

#define SEQUENCES_MAX 800

static const struct model_mutation mutations[] = {
    {.name = "an idle host skips two heartbeats", .seed = 28, .idle_skips = true},
    {.name = "expiry after 3/4 of a lease", .seed = 15, .early_expiry = true},
    {.name = "grace halved", .from = "if known >= tonumber(lease) and", .to = "if known >= tonumber(lease) / 2 and"},
    {.name = "a grant does not check all of a claim's queues", .from = "or call('ZRANGE', base .. ':queue', '0', '0')[1] ~= c\n",
     .to = "\n"},
    /* model-failover-expiry */
    {.name = "expiry without the replication id", .seed = 180, .from = "if not in_epoch() or not end_session(s)",
     .to = "if not end_session(s)"},
    {.name = "connection numbers ignored in heartbeats", .seed = 25, .from = "if connection ~= own_connection then return {'stale'} end", .to = ""},
    {.name = "deadline counted from the reply", .seed = 60, .deadline_from_answer = true},

    {.name = "tokens follow Redis' clock alone", .from = "clock = next_number\n", .to = "clock = now()\n"},
    /* model-debts */
    {.name = "unsettled pools forgotten", .from = "for i = 1, #remaining do call('SADD', at .. 'unsettled', remaining[i]) end", .to = ""},
    {.name = "a claim in the grace period leaves no unsettled pool", .seed = 15,
     .from = "for i = 1, #r.list, 2 do call('SADD', at .. 'unsettled', r.list[i]) end", .to = ""},
    /* model-override-resent */
    {.name = "versions of overrides ignored", .seed = 14, .from = "if o.version ~= version then", .to = "if false then"},
    {.name = "older overrides win after a wipe", .from = "if not stored or tonumber(stored) < tonumber(o.version) then",
     .to = "if true then"},
    /* model-beat-epoch */
    {.name = "heartbeats of another epoch count", .from = "if m[1] ~= own_epoch then return {'epoch', m[1] or ''} end\n", .to = ""},
    {.name = "grants without the replication id", .seed = 18, .from = "if not in_epoch() then return false end", .to = ""},
    {.name = "claims granted in the grace period", .from = "local free = not grace\n", .to = "local free = true\n"},
    {.name = "a claim does not check the limit", .from = "<= limit_of(d.list[i])\nend\nreturn free", .to = "<= 99\nend\nreturn free"},
    {.name = "a claim does not check its queue position", .from = "not (head[2] and tonumber(head[2]) <= score)", .to = "true"},
    {.name = "claims that a sync does not name stay", .from = "if r and r.session == s then drop(c, r) end", .to = ""},
    {.name = "a grant is not published", .from = "push(r.session, 'granted'", .to = "push('nobody', 'granted'"},
    /* model-lost-push */
    {.name = "grants do not name their predecessor", .from = "push(r.session, 'granted', epoch, last,",
     .to = "push(r.session, 'granted', epoch, r.token,"},
    {.name = "a release grants nothing", .from = "for k = 1, #queues do touch(queues[k]) end", .to = ""},
    {.name = "a changed limit is not cached", .from = "local function cache_limit(pool)\n",
     .to = "local function cache_limit(pool)\nif call('HEXISTS', meta, 'l:' .. pool) == 1 then return end\n"},
    {.name = "a fast grant's token follows Redis' clock alone",
     .from = "#m[5] == #since and m[5] < since and since or string.format('%d', math.max(m[5] + 1, since))", .to = "since"},
    {.name = "a heartbeat does not search dead sessions", .from = "and call('ZCOUNT', heartbeats, '0', expired_count) == 0", .to = ""},
    {.name = "dead sessions are not expired", .from = "call('ZRANGEBYSCORE', at .. 'heartbeats', '-inf', dead,",
     .to = "call('ZRANGEBYSCORE', at .. 'heartbeats', '-inf', 0,"},
    {.name = "permits of dead sessions stay", .from = "call('SREM', base .. ':held', unpack(members(c, r.list[i + 1])))", .to = ""},
    {.name = "a raised limit returns no parked claim", .seed = 12, .from = "call('ZRANGEBYSCORE', parked, '-inf', fmt(limit_of(pool)),",
     .to = "call('ZRANGEBYSCORE', parked, '-inf', -1,"},
    {.name = "an oversized claim is not parked when it becomes first", .seed = 9, .from = "if limit_of(pool) == 0 then return true end",
     .to = "if lowest then return true end"},
    {.name = "an oversized new claim is not parked", .seed = 93, .from = "if lowest and blocks_others(c, r) then park(",
     .to = "if false then park("},
    {.name = "a pause parks all waiting claims", .from = "if limit_of(pool) == 0 then return true end", .to = ""},
    {.name = "a pause parks new claims", .from = "if lowest and blocks_others(c, r) then park(", .to = "if lowest then park("},
    {.name = "a waiting claim is not cached", .from = "if call('ZCARD', queue) == 1 then cache_limit(r.list[i]) end", .to = ""},
    {.name = "a changed limit forgets waiting claims", .from = "call('EXISTS', base .. ':queue') == 1 and '+' or ''", .to = "''"},
    {.name = "a claim assumes an empty queue", .from = "== 43 and call('ZCARD', base .. ':queue') == 0 then", .to = "== 43 then"},
    /* model-raised-limit */
    {.name = "grants before all parked claims have returned", .seed = 463, .from = "return not is_unsettled(pool)", .to = "return true"},
    {.name = "limits of dead sessions stay", .from = "call('ZREM', key, s)\nchange_limit(pool)", .to = "change_limit(pool)"},
    {.name = "a limit that is no longer declared stays", .from = "function undeclare(s, pool, limit)\n",
     .to = "function undeclare(s, pool, limit)\nif call('EXISTS', claims_of(s)) == 1 then return end\n"},
    {.name = "grants of lost writes are trusted", .seed = 10, .from = "return r.state == 'H' and tonumber(r.token) < began", .to = "return false"},
    {.name = "runs beyond their lease keep their token", .seed = 65, .from = "if kind == 'K' then", .to = "if false then"},
    {.name = "the clock that hosts remember is ignored", .seed = 5,
     .from = "if number and number > clock and is_plausible(number) then clock = number end", .to = ""},
    /* model-token-after-wipe */
    {.name = "remembered clocks do not age", .seed = 163, .no_ageing = true},
    {.name = "the age of a number counts from when it was received", .scene = "a reply that is received late", .age_from_hearing = true},
    /* model-old-push */
    {.name = "hosts accept pushes of any epoch", .seed = 10, .any_epoch = true},
    {.name = "hosts do not miss pushes", .no_chain = true},
    {.name = "a full queue accepts more claims", .from = ">= d.queue_limits[(i + 1) / 2] then", .to = ">= 9999 then"},
    {.name = "parked claims do not count for the queue limit", .seed = 96, .from = " + call('ZCARD', base .. ':parked') >=", .to = " >="},
    {.name = "a full queue refuses a claim with a ticket", .seed = 115, .from = "if ticket == '0' and call('ZCARD'",
     .to = "if call('ZCARD'"},
    {.name = "a nowait claim waits", .from = "if nowait then", .to = "if false then"},
    {.name = "another lease is accepted", .seed = 6, .from = "if lease and others > 0 or bound then", .to = "if bound then"},
    {.name = "a host's own session blocks another lease", .seed = 6, .from = "if own > 0 then others = others - 1 end", .to = ""},
    {.name = "claims under a longer lease do not bind", .seed = 28, .from = "others > 0 or bound then", .to = "others > 0 then"},
    {.name = "a session that is being ended binds to its lease", .seed = 504783,
     .from = "local bound = own > 0 and lease and", .to = "local bound = lease and"},
    {.name = "refused hosts expire by their own lease", .seed = 296, .own_expiry = true},
    {.name = "a refused host expires without a log", .seed = 28, .from = "latest(), ended, reclaimed, undeclared}", .to = "latest(), {}, {}, {}}"},
    {.name = "two machines share a name", .from = "refusal = is_name_taken() and 'name-taken' or", .to = "refusal ="},
    {.name = "a machine's own sessions block its name", .from = " and is_of_another_machine(namesake)\n", .to = "\n"},
    {.name = "an abandoned name stays taken", .seed = 28, .from = "call('HDEL', meta, 'h:' .. name) end", .to = "end"},
    {.name = "a full Redis refuses all calls", .seed = 16, .from = "#!lua flags=allow-oom\n", .to = "#!lua\n"},
    {.name = "a full Redis accepts claims", .seed = 16, .from = "#!lua\n", .to = "#!lua flags=allow-oom\n"},
    {.name = "limits that differ are not reported", .from = "if lowest ~= highest or (lowest", .to = "if (lowest"},
    {.name = "another scope is not reported", .seed = 5, .from = "(lowest and host_scoped > 0)", .to = "false"},
    {.name = "another scope stays for ever", .seed = 5, .from = "(limit == 'host' and ':host_scoped' or ':limits')", .to = "':limits'"},
    {.name = "permits of an expired host are granted without a log", .seed = 6, .from = "if r.state == 'H' then\nreclaimed", .to = "if false then\nreclaimed"},
    {.name = "limits of an expired host end without a log", .from = "if lowest ~= limit then undeclared", .to = "if false then undeclared"},
    {.name = "a sync's reply names its own grants", .seed = 100, .from = "return {'ok', serial, unfinished,",
     .to = "last = string.match(call('HGET', meta, 'c:' .. s), ' (%d+)$')\nreturn {'ok', serial, unfinished,"},

    /* requests of several scripts, and several claims in one call */
    {.name = "a claim's grant without the replication id", .seed = 10, .from = "is_free(score_of(r), d) and in_epoch() then",
     .to = "is_free(score_of(r), d) then"},
    {.name = "claims of another epoch get a reply", .seed = 10, .from = "if epoch ~= own_epoch then return nil end", .to = ""},
    {.name = "a resend leaves the claim to the session before", .seed = 290, .from = "if r.session ~= s or is_doubtful(r) then",
     .to = "if is_doubtful(r) then"},
    {.name = "claims: no check whether there is room for all", .from = "if room and call('SCARD', base .. ':held') + n <= room and",
     .to = "if room and"},
    {.name = "claims: granted without the replication id", .seed = 390,
     .from = "<= room and string.find(call('INFO', 'replication'), m[4], 1, true)\nand (not pattern or call('SADD', at .. 'pool:' .. pattern .. ':keys', pool) == 1\n"
             "or call('EXISTS', base .. ':queue', base .. ':parked') == 0) then\nlocal is_resent",
     .to = "<= room\nand (not pattern or call('SADD', at .. 'pool:' .. pattern .. ':keys', pool) == 1\n"
             "or call('EXISTS', base .. ':queue', base .. ':parked') == 0) then\nlocal is_resent"},
    {.name = "claims: no check for resent claims", .seed = 48, .from = "if not is_resent then", .to = "if true then"},
    {.name = "claims: the slow path forgets resent claims",
     .from = "for _, c in ipairs(ids) do again[c] = find_resent(c) and true end", .to = ""},
    {.name = "claims: one token for all", .seed = 6, .from = "token + k - 1)", .to = "token)"},
    {.name = "claims: tokens follow Redis' clock alone", .seed = 14, .from = "local token, records, held = math.max(m[5] + 1, since)",
     .to = "local token, records, held = tonumber(since)"},
    {.name = "claims: grants do not name their predecessors", .seed = 6, .from = "' ' .. last .. ' 0 ' .. since\nlast = text",
     .to = "' ' .. text .. ' 0 ' .. since\nlast = text"},
    {.name = "claims: the slow path forgets what it granted last", .from = "clock_read, last = clock, r.token", .to = "clock_read = clock"},
    {.name = "claims: the clock is not saved", .seed = 6, .from = "call('HSET', meta, 'clock', last, 'c:' .. s, connection",
     .to = "call('HSET', meta, 'c:' .. s, connection"},
    {.name = "claims: the last token is not saved", .seed = 6, .from = "'clock', last, 'c:' .. s, connection .. ' ' .. last)", .to = "'clock', last)"},
    {.name = "claims: the slow path does not save the clock", .from = "request(c, details[k], '0', false, d)\nend\nsave_clock()",
     .to = "request(c, details[k], '0', false, d)\nend"},
    {.name = "claims: granted in the grace period", .from = "local room = not m[3] and", .to = "local room ="},
    {.name = "claims: an empty queue is assumed", .from = "== 43 and call('EXISTS', base .. ':queue') == 0 then", .to = "== 43 then"},
    {.name = "claims: missing in their session's set", .seed = 6, .from = "call('SADD', at .. 'session:' .. s .. ':claims', unpack(ids))", .to = ""},
    {.name = "claims and releases: another epoch is not reported", .seed = 70, .from = "return epoch and lines or {'epoch', ''}",
     .to = "return lines"},
    {.name = "claims: the queue limit is ignored", .from = "queue_limits = {tonumber(queue_limit)}", .to = "queue_limits = {9999}"},

    /* several releases in one call */
    {.name = "releases: no check for waiting claims",
     .from = "if call('EXISTS', at .. 'pool:' .. pool .. ':queue') == 0 then\nif string.find(pool, '/'",
     .to = "do\nif string.find(pool, '/'"},
    {.name = "releases: no check for one pool", .seed = 280, .from = "session ~= s or (pool and of_pool ~= pool)",
     .to = "session ~= s"},
    {.name = "releases: their session keeps them", .from = "call('SREM', at .. 'session:' .. s .. ':claims', unpack(ids))", .to = ""},
    {.name = "releases: their permits stay", .from = "call('SREM', at .. 'pool:' .. pool .. ':held', unpack(held))", .to = ""},
    {.name = "releases: their records stay", .from = "call('HDEL', at .. 'claims', unpack(ids))", .to = ""},
    {.name = "releases: the slow path forgets their session", .from = "call('SREM', claims_of(s), c)\ndrop(c, r)\nlines",
     .to = "drop(c, r)\nlines"},
    {.name = "releases: grants before all have left", .seed = 53, .from = "drop(c, r)\nlines[k] =",
     .to = "drop(c, r)\nsettle()\nlines[k] ="},
    {.name = "releases: free permits are not granted", .from = "settle()\nif more > 0 then lines[1]", .to = "if more > 0 then lines[1]"},
    {.name = "releases: the released token is not reported", .from = "lines[k] = reply .. (r.state == 'H' and r.token or '0')",
     .to = "lines[k] = reply .. '0'"},
    {.name = "releases: the clock is not saved", .from = "'%1 1') end\nsave_clock()", .to = "'%1 1') end"},
    {.name = "a withdrawn claim stays parked", .seed = 36, .from = "else\ncall('ZREM', base .. ':parked', c)", .to = "else"},

    /* epochs, and Redis's memory that goes back */
    {.name = "an epoch's id is the clock's next number", .seed = 46, .from = "fresh_epoch, true, true", .to = "fmt(clock + 1), true, true"},
    {.name = "hello: no check of its own count", .seed = 254,
     .from = "count_of(s) < tonumber(own_count)", .to = "false"},
    {.name = "hello: the count of a session that is being ended proves nothing",
     .scene = "a late hello of a session that is being ended",
     .from = "count_of(s) < tonumber(own_count)",
     .to = "count_of(s) < tonumber(own_count) and call('ZSCORE', at .. 'heartbeats', s) ~= '0'"},
    {.name = "hello: no check of the highest number", .seed = 85, .from = "or clock < tonumber(highest_number) and (named or not grace) then",
     .to = "then"},
    {.name = "heartbeat: no check of the highest token", .seed = 107,
     .from = "if tonumber(last) < tonumber(highest_token) then", .to = "if false then"},
    {.name = "an epoch begins at no number of its own", .from = "began = tick()", .to = "began = clock"},

    /* the clock */
    {.name = "hello: the remembered clock is used outside of the grace period", .from = "if grace then observe_clock(tonumber(remembered_clock)) end\nif named",
     .to = "observe_clock(tonumber(remembered_clock))\nif named"},
    {.name = "sync: the remembered clock is used outside of the grace period", .from = "if grace then observe_clock(tonumber(remembered_clock)) end\n\nlocal own_claims",
     .to = "observe_clock(tonumber(remembered_clock))\n\nlocal own_claims"},
    {.name = "tickets do not keep the pace of time", .from = "local next_number = now() + lead", .to = "local next_number = now()"},
    {.name = "the lead never shrinks", .from = "if lead > 0 and not grace and nobody_waits() then", .to = "if false then"},
    {.name = "the lead shrinks while claims wait", .from = "if lead > 0 and not grace and nobody_waits() then",
     .to = "if lead > 0 and not grace then"},
    {.name = "the lead is not saved", .from = "call('HSET', meta, 'clock', fmt(clock), 'lead', fmt(lead))",
     .to = "call('HSET', meta, 'clock', fmt(clock))"},
    {.name = "a release's grant follows Redis' clock alone",
     .from = "#clock == #since and clock < since and since or string.format('%d', math.max(clock + 1, since))", .to = "since"},
    {.name = "a fast grant without the replication id", .seed = 10, .from = "string.find(call('INFO', 'replication'), m[4], 1, true)\nand (not pattern or call('SADD', at .. 'pool:' .. pattern .. ':keys', pool) == 1\n"
             "or call('EXISTS', base .. ':queue', base .. ':parked') == 0) then\nlocal t =",
     .to = "true\nand (not pattern or call('SADD', at .. 'pool:' .. pattern .. ':keys', pool) == 1\n"
             "or call('EXISTS', base .. ':queue', base .. ':parked') == 0) then\nlocal t ="},
    {.name = "a release's grant without the replication id", .seed = 88, .from = "and string.find(call('INFO', 'replication'), o[3], 1, true) then",
     .to = "then"},
    {.name = "a release grants in the grace period", .seed = 8, .from = "if limit_text and not o[1] and connection", .to = "if limit_text and connection"},

    /* parking */
    {.name = "a changed limit settles its own pool only", .seed = 9,
     .from = "for _, other in ipairs(call('SMEMBERS', at .. 'waiting')) do touch(other) end", .to = ""},
    /* turns (R18) */
    {.name = "turn: the mark itself is not taken", .turns = true,
     .from = "if not turn and not is_start and tonumber(due) <= mark then", .to = "if not turn and tonumber(due) < mark then"},
    {.name = "turn: decides in grace", .turns = true, .from = "if grace then return line_of('grace', serial, 0) end", .to = ""},
    {.name = "turn: decides what is far ahead of Redis' clock", .turns = true,
     .from = "if early > 0 then return line_of('early', serial, 0, fmt(early)) end", .to = ""},
    {.name = "turn: an earlier due time lowers the mark", .seed = 8, .turns = true,
     .from = "if tonumber(due) < mark_of(job) then return end", .to = ""},
    {.name = "turn: a skip is not answered again", .turns = true,
     .from = "keep_reply(job, c, reply)\n", .to = ""},
    {.name = "turn: only the latest skip is answered again", .turns = true,
     .from = "if #lines < REPLIES then", .to = "if false then"},
    {.name = "turn: an open turn stays open when it is taken", .seed = 5, .turns = true,
     .from = "call('HDEL', open_of(job), due)\nif tonumber(due) < mark_of(job)", .to = "if tonumber(due) < mark_of(job)"},
    {.name = "turn: what waits for its delay may be taken", .turns = true,
     .from = "if turn and tonumber(turn.not_before) > now() then", .to = "if false then"},
    {.name = "a committed turn is opened again", .turns = true, .seed = 31,
     .from = "if t.epoch ~= epoch or (t.state == 'C' and t.again == '-')", .to = "if t.epoch ~= epoch"},
    {.name = "a committed turn is opened as the same attempt", .turns = true, .seed = 18,
     .from = "fmt(tonumber(t.attempt) + (committed and 1 or 0))", .to = "t.attempt"},
    {.name = "the end of a session opens no turn", .turns = true, .seed = 18, .from = "lose_turns(s, true)", .to = ""},
    {.name = "a sync opens no turn", .turns = true, .seed = 133, .from = "lose_turns(s, false)", .to = ""},
    {.name = "turned: commit changes nothing", .turns = true, .seed = 18,
     .from = "t.state, t.again, t.chain = 'C', ARGV[7], ARGV[8]\nwrite_turn(s, c, t)", .to = ""},
    {.name = "turned: what is given back is over", .turns = true, .seed = 300157,
     .from = "open_turn(t.job, t.due, ARGV[7], ARGV[8], ARGV[9], t.attempt == ARGV[7] and 'given-back' or 'retry', s)",
     .to = ""},
    {.name = "turned: what is given back keeps its permits", .turns = true,
     .from = "drop(c, r)\nsettle()\nsave_clock()\nif not epoch", .to = "settle()\nsave_clock()\nif not epoch"},
    {.name = "turned: what is given back is given back again", .turns = true,
     .from = "call('HDEL', turns_of(s), c)\nlocal reply = release()", .to = "local reply = release()"},
    {.name = "a turn without a delay waits until Redis' clock is back",
     .scene = "a clock that is set back after a turn was given back",
     .from = "tonumber(delay_ms) > 0 and fmt(", .to = "fmt("},
    {.name = "turned: marks are not noted", .turns = true, .seed = 161,
     .from = "then call('ZADD', at .. 'marks', ARGV[i + 1], job) end", .to = "then end"},
    {.name = "a push of an open turn has no number", .turns = true,
     .from = "call('HSET', meta, 'c:' .. s, connection .. ' ' .. number)\npush(s, 'turn'", .to = "push(s, 'turn'"},
    {.name = "a host commits after it has started", .seed = 18, .turns = true, .commit_late = true},
    {.name = "stop leaves open turns", .seed = 71, .turns = true,
     .from = "call('HDEL', open_of(job), due)\nended[#ended + 1]", .to = "ended[#ended + 1]"},
    {.name = "stop in grace", .turns = true,
     .from = "if grace then return line_of('grace') end\nfor due, o in pairs(read_open(job)) do",
     .to = "for due, o in pairs(read_open(job)) do"},
    {.name = "stop does not name the host that has a run", .turns = true,
     .from = "add(call('SRANDMEMBER', base .. ':held', STOPS), true)\n", .to = ""},
    {.name = "stop names claims of the host that asks", .turns = true,
     .from = "if r and r.session ~= s then\nothers", .to = "if r then\nothers"},
    {.name = "hosts leaves a host out", .turns = true, .from = "':limits', 0, HOSTS - 1)",
     .to = "':limits', 1, HOSTS - 1)"},
    {.name = "a host does not report its marks", .seed = 13, .turns = true, .no_marks = true},

    {.name = "claims parked at a pool that no config has do not wait",
     .scene = "parked where no host declares the pool",
     .from = "if mark == '' and call('EXISTS', base .. ':parked') == 0 then", .to = "if mark == '' then"},
    {.name = "a release leaves an oversized claim in the way", .seed = 307, .from = "if used > limit and n + 0 <= limit then return",
     .to = "if used > limit then return"},

    /* moves */
    {.name = "a move changes one queue alone", .moves = true, .from = "if r.state == 'W' then\nenqueue(c, r)",
     .to = "if r.state == 'W' then\ncall('ZADD', at .. 'pool:' .. r.list[1] .. ':queue', fmt(score_of(r)), c)"},
    {.name = "a move is not pushed", .moves = true, .from = "push(r.session, 'moved', epoch, last, number, c, fmt(given))\n", .to = ""},
    {.name = "a move's push has no number in the chain", .moves = true,
     .from = "call('HSET', meta, 'c:' .. r.session, connection .. ' ' .. number)\npush(r.session, 'moved'", .to = "push(r.session, 'moved'"},
    {.name = "a move is not recorded", .moves = true, .from = "write_claim(c, r)\ncall('HSET', meta, 'c:' .. r.session, connection .. ' ' .. number)\npush(r.session, 'moved'",
     .to = "call('HSET', meta, 'c:' .. r.session, connection .. ' ' .. number)\npush(r.session, 'moved'"},
    {.name = "a sync loses a moved head start", .seed = 64, .moves = true, .from = "if reported > known then r.head = head end", .to = ""},
    {.name = "a sync's reply lacks a moved head start", .moves = true, .from = "known > reported and r.head or ''", .to = "''"},
    {.name = "a sync leaves a moved claim at its old place", .seed = 64, .moves = true,
     .from = "elseif not was or was == 'W' and reported > known and r.reason == '' then", .to = "elseif not was then"},
    {.name = "a move in grace", .moves = true, .from = "if grace then return {'grace', serial} end", .to = ""},
    {.name = "a move grants nothing", .moves = true, .from = "for i = 1, #r.list, 2 do touch(r.list[i]) end\nend\nwrite_claim", .to = "end\nwrite_claim"},
    {.name = "a move to the front of one queue", .seed = 14, .moves = true, .from = "bound = math.min(bound or math.huge, tonumber(first[2]))",
     .to = "bound = bound or tonumber(first[2])"},
    {.name = "a claim that asks again forgets its moves", .seed = 27, .moves = true, .from = "string.match(details, '^(%S+) (%d+) (%S+) (%S+)$')",
     .to = "string.match(string.gsub(details, '%+%d+@%d+', ''), '^(%S+) (%d+) (%S+) (%S+)$')"},

    /* keyed pools */
    {.name = "keys: a pattern has the mark of a plain pool", .has_keys = true,
     .from = "if string.find(pool, '/', 1, true) then mark = '/' end\n",
     .to = ""},
    {.name = "keys: a claim counts the permits of the pattern, not of the key", .has_keys = true,
     .from = "if room and call('SCARD', base .. ':held') + n <= room and",
     .to = "if room and call('SCARD', at .. 'pool:' .. (pattern or pool) .. ':held') + n <= room and"},
    {.name = "keys: the keys of a pattern share its limit", .has_keys = true,
     .from = "call('SCARD', base .. ':held') + d.list[i + 1] <= limit_of(d.list[i])",
     .to = "call('SCARD', base .. ':held') + d.list[i + 1] <= limit_of(pattern_of(d.list[i]) or d.list[i])"},
    {.name = "keys: a claim does not look at the key's queue", .has_keys = true,
     .from = "or call('EXISTS', base .. ':queue', base .. ':parked') == 0)",
     .to = "or true)"},
    {.name = "keys: a claim does not note its key", .has_keys = true,
     .from = "call('SADD', at .. 'pool:' .. pattern .. ':keys', pool) == 1",
     .to = "false"},
    {.name = "keys: a grant does not note its key", .has_keys = true, .from = "use_key(r.list[i])\nend\nr.state = 'H'",
     .to = "end\nr.state = 'H'"},
    {.name = "keys: a waiting claim does not note its key", .has_keys = true, .from = "use_key(r.list[i])\nend\nr.state = 'W'",
     .to = "end\nr.state = 'W'"},
    {.name = "keys: a release does not forget an idle key", .has_keys = true,
     .from = "call('SREM', at .. 'pool:' .. string.match(pool, '^[^/]+/') .. '*:keys', pool)\n",
     .to = ""},
    {.name = "keys: a release does not forget where nobody waits", .has_keys = true,
     .from = "call('SREM', at .. 'pool:' .. string.match(pool, '^[^/]+/') .. '*:keys', pool)\ncall('SREM', at .. 'waiting', pool)\n",
     .to = "call('SREM', at .. 'pool:' .. string.match(pool, '^[^/]+/') .. '*:keys', pool)\n"},
    {.name = "keys: an expired claim does not forget its key", .seed = 8, .has_keys = true,
     .from = "dequeue(c, r)\nleave_keys(r)\ncall('HDEL', at .. 'claims', c)",
     .to = "dequeue(c, r)\ncall('HDEL', at .. 'claims', c)"},
    {.name = "keys: a parked claim does not forget its other keys", .seed = 6, .has_keys = true, .from = "leave_keys(r)\nr.state = 'P'",
     .to = "r.state = 'P'"},
    {.name = "keys: a revoked claim does not forget its key", .has_keys = true, .seed = 746,
     .from = "dequeue(c, r)\nleave_keys(r)\nend",
     .to = "dequeue(c, r)\nend"},
    {.name = "keys: a key is forgotten while claims are parked", .seed = 5, .has_keys = true,
     .from = "call('EXISTS', base .. ':held', base .. ':queue', base .. ':parked') == 0 then\ncall('SREM', at .. 'pool:' .. pattern",
     .to = "call('EXISTS', base .. ':held', base .. ':queue') == 0 then\ncall('SREM', at .. 'pool:' .. pattern"},
    {.name = "keys: the pattern's override is ignored", .seed = 5, .has_keys = true,
     .from = "limit = override_of(pool) or pattern and override_of(pattern) or",
     .to = "limit = override_of(pool) or"},
    {.name = "keys: the pattern's override goes before the key's", .seed = 16, .has_keys = true,
     .from = "limit = override_of(pool) or pattern and override_of(pattern) or",
     .to = "limit = pattern and override_of(pattern) or override_of(pool) or"},
    {.name = "keys: a key that is named in full has its pattern's limit", .seed = 5, .has_keys = true,
     .from = "or lowest_limit(pool)\nor pattern and lowest_limit(pattern) or 0",
     .to = "or pattern and lowest_limit(pattern)\nor lowest_limit(pool) or 0"},
    {.name = "keys: keys do not follow the override of their pattern", .seed = 5, .has_keys = true,
     .from = "if string.sub(pool, -2) == '/*' then cache_keys(pool) end\n",
     .to = ""},
    {.name = "keys: a call remembers the limits of keys before its change", .seed = 40, .has_keys = true, .from = "limits = {}\ncache_limit(pool)",
     .to = "limits[pool] = nil\ncache_limit(pool)"},
    {.name = "keys: a key's own override is not noted", .has_keys = true, .from = "or pattern and override_of(pool) then",
     .to = "then"},
    {.name = "keys: a release takes the limit of the pattern", .seed = 5, .has_keys = true,
     .from = "limit_text = limit_text or call('HGET', meta, 'l:'",
     .to = "limit_text = call('HGET', meta, 'l:'"},
};

/* Returns the number of sequences that were run, or a negative errno. *ret_found: whether the last one failed. */
static int try_mutation(const struct model_mutation *m, uint64_t seed, bool tell, bool *ret_found) {
    uint64_t kind = m->has_keys ? MODEL_KEYS : m->turns ? MODEL_TURNS : m->moves ? MODEL_MOVES : 0;
    int k = 0;

    *ret_found = false;
    if (m->scene)
        return model_run_scene(m->scene, m, tell, ret_found);
    if (seed == 0 && m->seed > 0)
        k = model_run(kind | m->seed, 1, m, tell, ret_found);
    if (!*ret_found && k >= 0)
        k = model_run(kind | (seed > 0 ? seed : 1), SEQUENCES_MAX, m, tell, ret_found);
    return k;
}

static void fail(const struct model_mutation *m, const char *why) {
    CU_assertImplementation(CU_FALSE, __LINE__, m->name, __FILE__, why, CU_FALSE);
}

static void test_mutations(void) {
    const char *wanted = getenv("MUTATION"), *seed_text = getenv("SEED");
    uint64_t seed = 0;

    if (seed_text && number_parse(seed_text, UINT64_MAX, &seed) < 0)
        seed = 0;
    for (size_t i = 0; i < ELEMENTSOF(mutations); i++) {
        const struct model_mutation *m = &mutations[i];
        bool found = false, is_broken = false;
        int k;

        if (wanted && !strstr(m->name, wanted))
            continue;
        k = try_mutation(m, seed, wanted && *wanted, &found);
        if (wanted)
            printf("%4d sequences: %s%s\n", k, m->name, found ? "" : " (NOT FOUND)");
        if (!found)
            fail(m, k < 0 ? "its text is in no script" : "not found");
        if (m->scene)
            (void) model_run_scene(m->scene, NULL, true, &is_broken);
        if (is_broken)
            fail(m, "its scene fails without it");
    }
}

static CU_TestInfo tests[] = {
    {"model: each mutation is found", test_mutations},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
    {.pName = "mutations", .pTests = tests},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv) {
    return test_main(argc, argv, suites);
}
