"""The steps of the ledger in Redis: each checks the fence and writes in one script, which Redis runs alone.

Scripts find some keys in what they read, so they need one Redis: no cluster.
"""

from __future__ import annotations

ALIVE_SECONDS = 4.0
"""A writer that has not been heard of for so long is dead, and what it had sent is unknown."""

FENCE = """
local function goes_on(run, start)
  local found = redis.call('HMGET', run, 'starts', 'ending')
  return found[1] == start and not found[2]
end
"""
LIFE = f"""
local function alive(writers, writer) return redis.call('EXISTS', writers .. writer) == 1 end
local function lives(writers, writer) redis.call('SET', writers .. writer, '1', 'PX', {ALIVE_SECONDS * 1000:.0f}) end
local function living(writers, effects)
  local asked, found = {{}}, {{}}
  for _, value in ipairs(effects) do
    local writer = value:match('^%x+|(%x+)|')
    if writer and not asked[writer] then
      asked[writer] = true
      if alive(writers, writer) then table.insert(found, writer) end
    end
  end
  return found
end
"""
"""By keys that expire: Redis has one clock, and those of its clients may differ."""

FINISH = """
local function finish(run, effects, open_runs, id, prefix, state, ending, keep)
  local who = redis.call('HGET', run, 'who')
  redis.call('HSET', run, 'state', state, 'ending', ending)
  redis.call('HDEL', run, 'question', 'number', 'answer')
  redis.call('SREM', prefix .. 'open-runs:' .. who, id)
  redis.call('ZREM', open_runs, id)
  redis.call('EXPIRE', run, keep)
  redis.call('EXPIRE', effects, keep)
end
"""

SEND = (
    FENCE
    + LIFE
    + """
local effects, open, writers, run = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local field, entry, ref, now, again, start, writer, keep, same_seconds, note, tried = unpack(ARGV)
if start ~= '0' and not goes_on(run, start) then return {'fenced'} end
if again == '' then
  local latest, at_latest
  for k = 5, #KEYS do
    local found = redis.call('HGETALL', KEYS[k])
    for i = 1, #found, 2 do
      local state, by, at = found[i + 1]:match('^(%a)|(%x+)|([%d.]+)|')
      at = found[i] ~= ref and tonumber(at)
      local open_still = at and at > now - same_seconds and (state == 'u' or not alive(writers, by))
      if open_still and (not latest or at > at_latest) then latest, at_latest = found[i + 1], at end
    end
  end
  if latest then return {'unknown', latest} end
end
local known = redis.call('HGET', effects, field)
if known and (tried == '' or known ~= entry) then return {'twice'} end
-- Written anew where it arrived before and nobody heard of it: whoever waits for replicas waits for a write.
redis.call('HSET', effects, field, entry)
lives(writers, writer)
redis.call('ZADD', open, now, ref)
redis.call('HSET', KEYS[5], ref, note)
redis.call('EXPIRE', KEYS[5], same_seconds)
redis.call('ZREMRANGEBYSCORE', open, '-inf', now - keep)
redis.call('EXPIRE', open, keep)
-- What a run in the background did is known until it has ended, however long that takes.
if start == '0' then redis.call('EXPIRE', effects, keep) end
return {'sent'}
"""
)
ENDED = """
local prefix = KEYS[1]
for i = 0, (#KEYS - 1) / 2 - 1 do
  local effects, open = KEYS[2 * i + 2], KEYS[2 * i + 3]
  local field, ending, ref, how, who = unpack(ARGV, 5 * i + 1, 5 * i + 5)
  local entry = redis.call('HGET', effects, field)
  if entry then
    local same = prefix .. who .. ':' .. entry:match('^%x+')
    redis.call('HSET', effects, field .. ':end', ending)
    if how == 'unknown' then
      local known = redis.call('HGET', same, ref)
      if known then redis.call('HSET', same, ref, 'u' .. known:sub(2)) end
    else
      redis.call('HDEL', same, ref)
      redis.call('ZREM', open, ref)
    end
  end
end
return 1
"""
OPEN = (
    LIFE
    + """
local prefix, most, found = ARGV[1], tonumber(ARGV[2]), {}
for _, ref in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, -1)) do
  if #found >= most then break end
  local field, name = ref:match('^([^:]*:[^:]*):(.*)$')
  local entry, ending = unpack(redis.call('HMGET', prefix .. name, field, field .. ':end'))
  if not entry then redis.call('ZREM', KEYS[1], ref)
  elseif ending or not alive(KEYS[2], entry:match('^%x+|(%x+)|')) then
    table.insert(found, {prefix .. name, {field, entry, field .. ':end', ending or ''}})
  end
end
return found
"""
)
READ = (
    LIFE
    + """
local effects = redis.call('HGETALL', KEYS[1])
return {effects, living(KEYS[2], effects)}
"""
)
ALIVE = LIFE + "lives(KEYS[1], ARGV[1]) return 1"
GONE = "return redis.call('DEL', KEYS[1] .. ARGV[1])"

# ---------------------------------------------------------------- runs in the background

ADD = """
local run, runs, open, open_runs = unpack(KEYS)
local id, record, who, created, most = unpack(ARGV)
if redis.call('SCARD', open) >= tonumber(most) then return 'many' end
if redis.call('EXISTS', run) == 1 then return 'twice' end
redis.call('HSET', run, 'run', record, 'who', who, 'state', 'waiting', 'starts', '0')
redis.call('ZADD', runs, created, id)
redis.call('SADD', open, id)
redis.call('ZADD', open_runs, created, id)
return 'added'
"""
CARRIED = (
    LIFE
    + """
local function carried_by(run, beat, writers)
  local writer = redis.call('HGET', run, 'writer')
  return writer and redis.call('EXISTS', beat) == 1 and alive(writers, writer) and writer
end
"""
)
BEGIN = (
    CARRIED
    + """
local run, writers, effects, beat = unpack(KEYS)
local writer, lease = unpack(ARGV)
local record, ending, cancelled = unpack(redis.call('HMGET', run, 'run', 'ending', 'cancelled'))
if not record then return false end
if ending then return {'ended', record, ending} end
local by = carried_by(run, beat, writers)
if by and by ~= writer then return {'alive', record} end
lives(writers, writer)
redis.call('SET', beat, '1', 'PX', lease)
redis.call('HSET', run, 'state', 'running', 'writer', writer)
redis.call('HDEL', run, 'question', 'number', 'answer')
local number = redis.call('HINCRBY', run, 'starts', 1)
local done = redis.call('HGETALL', effects)
return {'begun', record, number, cancelled or '', done, living(writers, done)}
"""
)
BEAT = (
    FENCE
    + LIFE
    + """
local run, writers, beat = unpack(KEYS)
local start, writer, lease = unpack(ARGV)
if not goes_on(run, start) then return false end
lives(writers, writer)
redis.call('SET', beat, '1', 'PX', lease)
return redis.call('HMGET', run, 'cancelled', 'answer')
"""
)
ASK = (
    FENCE
    + """
local run, start, number, question = KEYS[1], unpack(ARGV)
if not goes_on(run, start) then return 0 end
redis.call('HDEL', run, 'question', 'number', 'answer')
redis.call('HSET', run, 'state', question == '' and 'running' or 'asks')
if question ~= '' then redis.call('HSET', run, 'number', number, 'question', question) end
return 1
"""
)
ANSWER = """
local who, number, answer = unpack(ARGV)
local found = redis.call('HMGET', KEYS[1], 'who', 'state', 'number')
if found[1] ~= who or found[2] ~= 'asks' or found[3] ~= number then return 0 end
redis.call('HDEL', KEYS[1], 'question', 'number')
redis.call('HSET', KEYS[1], 'answer', answer, 'state', 'running')
return 1
"""
PACKS = (
    FENCE
    + """
if not goes_on(KEYS[1], ARGV[1]) then return false end
redis.call('HSETNX', KEYS[1], 'packs', ARGV[2])
return redis.call('HGET', KEYS[1], 'packs')
"""
)
END = (
    FENCE
    + FINISH
    + """
local id, prefix, start, state, ending, keep = unpack(ARGV)
if not goes_on(KEYS[1], start) then return 0 end
finish(KEYS[1], KEYS[2], KEYS[3], id, prefix, state, ending, keep)
return 1
"""
)
CANCEL = (
    FINISH
    + """
local id, prefix, who, ending, keep = unpack(ARGV)
local found = redis.call('HMGET', KEYS[1], 'who', 'state', 'ending')
if found[1] ~= who or found[3] then return 0 end
redis.call('HSET', KEYS[1], 'cancelled', '1')
if found[2] == 'waiting' then finish(KEYS[1], KEYS[2], KEYS[3], id, prefix, 'cancelled', ending, keep) end
return 1
"""
)
STATUS = "'run', 'who', 'state', 'starts', 'question', 'cancelled', 'ending'"
RUN = f"return redis.call('HMGET', KEYS[1], {STATUS})"
RUNS = f"""
local prefix, most, found = ARGV[1], tonumber(ARGV[2]), {{}}
for _, id in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, -1)) do
  local known = redis.call('HMGET', prefix .. 'run:' .. id, {STATUS})
  if known[1] then table.insert(found, {{id, known}}) else redis.call('ZREM', KEYS[1], id) end
  if #found >= most then break end
end
return found
"""
LEFT_BEHIND = (
    CARRIED
    + """
local prefix, found = ARGV[1], {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local run = prefix .. 'run:' .. id
  if redis.call('EXISTS', run) == 0 then redis.call('ZREM', KEYS[1], id)
  elseif not carried_by(run, prefix .. 'beat:' .. id, KEYS[2]) then table.insert(found, id) end
end
return found
"""
)
