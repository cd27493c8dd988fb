#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- probe: runs each command that the scripts use, without effect. A host calls it once a connection, before hello: a script that
-- fails because of a missing right would leave half of its work done.
--
-- KEYS  berth:{ns}:meta [berth:{ns}:none]
-- Reply {'ok', {command, ...}}: commands that this user may not run, or not with these keys and channels
-- Cost  some 40 calls
local key, refused = string.sub(KEYS[1], 1, -5) .. 'probe:', {}
local h, s, s2, z = key .. 'h', key .. 's', key .. 's2', key .. 'z'

-- Redis 7.0 writes "can't run this command" or "can't access at least one of the keys"; later ones write "ACL failure in script".
local function is_refusal(text)
    return string.find(text, "can't", 1, true) or string.find(text, 'ACL failure', 1, true) or string.find(text, 'NOPERM', 1, true)
end

local function try(name, ...)
    local reply = redis.pcall(name, ...)
    if type(reply) == 'table' and reply.err and is_refusal(reply.err) then refused[#refused + 1] = name end
end

try('HSET', h, 'a', 1)
try('HSETNX', h, 'a', 1)
try('HINCRBY', h, 'n', 1)
try('HGET', h, 'a')
try('HMGET', h, 'a')
try('HEXISTS', h, 'a')
try('HLEN', h)
try('HSCAN', h, 0)
try('HGETALL', h)
try('HDEL', h, 'a')
try('SADD', s, 'a')
try('SCARD', s)
try('SISMEMBER', s, 'a')
try('SMEMBERS', s)
try('SRANDMEMBER', s, 1)
try('SSCAN', s, 0)
try('SUNIONSTORE', s2, s)
try('SMOVE', s, s2, 'a')
try('SREM', s2, 'a')
try('ZADD', z, 1, 'a')
try('ZCARD', z)
try('ZCOUNT', z, 0, 1)
try('ZRANGE', z, 0, 0)
try('ZRANGEBYSCORE', z, 0, 1)
try('ZRANK', z, 'a')
try('ZSCORE', z, 'a')
try('RENAME', z, h)
try('ZREM', h, 'a')
try('TYPE', h)
try('EXISTS', h)
try('DEL', h)
try('UNLINK', h, s, s2, z)
try('TIME')
try('INFO', 'replication')
try('SPUBLISH', string.sub(KEYS[1], 1, -5) .. 'to:probe', 'probe')
return {'ok', refused}
