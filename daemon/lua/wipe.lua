-- SPDX-License-Identifier: MIT
-- Part of scripts that may find that somebody deleted keys. Expects core.lua.
--
-- A script changes all places of a claim at once. Where one of them is missing, somebody else took it, and no counting of what is left
-- tells what is held (R5). So all of it goes, and a new epoch begins: in its grace hosts tell what they hold and wait for, as after
-- a loss of data (R10). What is kept: the clocks, and overrides as far as they are there.
local function wipe()
    local pools, sessions = {}, {}
    for _, field in ipairs(call('HKEYS', meta)) do
        local kind, name = string.match(field, '^([chl]):(.*)$')
        if kind == 'c' then sessions[name] = true end
        if kind == 'l' then pools[name] = true end
        if kind then call('HDEL', meta, field) end
    end
    for _, record in ipairs(call('HVALS', at .. 'sessions')) do
        for pool in string.gmatch(record, '([^ =,]+)=%w+') do pools[pool] = true end
    end
    for _, s in ipairs(call('ZRANGE', at .. 'beats', 0, -1)) do sessions[s] = true end
    for pool in pairs(pools) do
        local base = at .. 'pool:' .. pool
        call('UNLINK', base .. ':held', base .. ':queue', base .. ':wants', base .. ':parked', base .. ':limits', base .. ':elsewhere')
    end
    for s in pairs(sessions) do call('UNLINK', at .. 'of:' .. s, at .. 'unnamed:' .. s) end
    call('UNLINK', at .. 'claims', at .. 'sessions', at .. 'beats', at .. 'debt')
    call('HDEL', meta, 'debt', 'broken')
    debt, limits, trusted, epoch = false, {}, nil, nil
    in_epoch()
end
