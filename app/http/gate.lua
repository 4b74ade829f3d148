-- Checks the session and charges the rate limit of a request, in one round trip.
--
-- KEYS  1 session copy   2 grants version copy   3 plan copy (1-3 only with ARGV[3] = '1')
--       4 state hash     5 minute list           6 hour list            7 day list
-- ARGV  1 now in seconds, 0 = this server's clock   2 units that the request costs
--       3 '1' = check the session                   4 plan, unless the session is checked
--       5-7 session, grants, plan to cache (or '')  8 seconds to cache them
--
-- A plan is "minute,hour,day,burst multiplier,burst seconds"; 0 = no such limit.
-- A list holds "second:amount", oldest first. The hash holds each window's sum, so that the time of
-- a request does not grow with the usage.
--
-- Returns {session, grants, allowed, window, limit, remaining, reset, retry_after}

local session, grants, plan = '', '', ARGV[4]
if ARGV[3] == '1' then
  if ARGV[5] == 'ended' then
    redis.call('SET', KEYS[1], 'ended', 'EX', ARGV[8])
    return {'ended'}
  end
  if ARGV[5] ~= '' then
    for i = 1, 3 do redis.call('SET', KEYS[i], ARGV[4 + i], 'NX', 'EX', ARGV[8]) end
  end
  local copies = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
  session, grants, plan = copies[1], copies[2], copies[3]
  if session == 'ended' then return {'ended'} end
  if not session or not grants or not plan then return {'unknown'} end
end

local now = tonumber(ARGV[1])
if now == 0 then now = tonumber(redis.call('TIME')[1]) end
local units = tonumber(ARGV[2])
local parts = {}
for part in string.gmatch(plan, '[^,]+') do parts[#parts + 1] = tonumber(part) end
local minute, hour, day, times, burst = parts[1], parts[2], parts[3], parts[4], parts[5]

local stored = redis.call('HMGET', KEYS[4], 'minute', 'hour', 'day', 'burst', 'last')
local last = tonumber(stored[5] or '0')
if last > now + 60 then
  -- The clock once ran far ahead. Reset, rather than refuse requests until that time is reached.
  redis.call('DEL', KEYS[4], KEYS[5], KEYS[6], KEYS[7])
  stored, last = {}, 0
end
now = math.max(now, last)
local burst_start = tonumber(stored[4] or '0')

local function split(item)
  local colon = string.find(item, ':', 1, true)
  return tonumber(string.sub(item, 1, colon - 1)), tonumber(string.sub(item, colon + 1))
end

-- Removes the entries that left the window and returns the sum of the others.
local function expire(list, sum, span)
  sum = tonumber(sum or '0')
  while true do
    local oldest = redis.call('LRANGE', list, 0, 31)
    if #oldest == 0 then return 0 end
    local expired = 0
    for _, item in ipairs(oldest) do
      local second, amount = split(item)
      if second > now - span then break end
      sum = sum - amount
      expired = expired + 1
    end
    if expired == 0 then return sum end
    redis.call('LTRIM', list, expired, -1)
    if expired < 32 then return sum end
  end
end

local used_minute = expire(KEYS[5], stored[1], 60)
local used_hour = hour > 0 and expire(KEYS[6], stored[2], 3600) or 0
local used_day = day > 0 and expire(KEYS[7], stored[3], 86400) or 0

-- Returns the limit of the minute at a time, and the start of the burst, given the usage.
local function ceiling(at, used)
  if times <= 1 or burst <= 0 then return minute, 0 end
  local start = burst_start
  if start > 0 and at >= start + burst and used < minute then start = 0 end
  if start == 0 or at < start + burst then return minute * times, start end
  return minute, start
end

local top, start = ceiling(now, used_minute)
local fits_minute = used_minute + units <= top
local fits_hour = hour == 0 or used_hour + 1 <= hour
local fits_day = day == 0 or used_day + 1 <= day

-- Returns the seconds until enough entries leave the window for `amount` more to fit.
local function wait_in(list, used, limit, amount, span)
  for _, item in ipairs(redis.call('LRANGE', list, 0, used + amount - limit)) do
    local second, left = split(item)
    used = used - left
    if used + amount <= limit then return second + span - now end
  end
  return span
end

local function wait_in_minute()
  local items, used, best = redis.call('LRANGE', KEYS[5], 0, -1), used_minute, 60
  local moments, index = {}, 1
  for _, item in ipairs(items) do moments[#moments + 1] = split(item) + 60 end
  if burst_start + burst > now then moments[#moments + 1] = burst_start + burst end
  table.sort(moments)
  for _, at in ipairs(moments) do
    while index <= #items do
      local second, amount = split(items[index])
      if second > at - 60 then break end
      used = used - amount
      index = index + 1
    end
    if used + units <= ceiling(at, used) then return at - now end
  end
  return best
end

local function first(list, span)
  local item = redis.call('LINDEX', list, 0)
  return item and split(item) + span or now + span
end

if not (fits_minute and fits_hour and fits_day) then
  local window, limit, retry = 60, minute, 0
  if not fits_minute then retry = wait_in_minute() end
  if not fits_hour then
    local wait = wait_in(KEYS[6], used_hour, hour, 1, 3600)
    if wait > retry then window, limit, retry = 3600, hour, wait end
  end
  if not fits_day then
    local wait = wait_in(KEYS[7], used_day, day, 1, 86400)
    if wait > retry then window, limit, retry = 86400, day, wait end
  end
  redis.call('HSET', KEYS[4], 'minute', used_minute, 'hour', used_hour, 'day', used_day,
    'burst', start, 'last', now)
  redis.call('EXPIRE', KEYS[4], 90000)
  return {session, grants, 0, window, limit, 0, now + retry, retry}
end

local function add(list, amount, span)
  local newest = redis.call('LINDEX', list, -1)
  local second, before = 0, 0
  if newest then second, before = split(newest) end
  if second == now then
    redis.call('LSET', list, -1, now .. ':' .. (before + amount))
  else
    redis.call('RPUSH', list, now .. ':' .. amount)
  end
  redis.call('EXPIRE', list, span + 60)
end

used_minute = used_minute + units
if start == 0 and used_minute > minute then start = now end
if units > 0 then add(KEYS[5], units, 60) end
if hour > 0 then used_hour = used_hour + 1; add(KEYS[6], 1, 3600) end
if day > 0 then used_day = used_day + 1; add(KEYS[7], 1, 86400) end
redis.call('HSET', KEYS[4], 'minute', used_minute, 'hour', used_hour, 'day', used_day,
  'burst', start, 'last', now)
redis.call('EXPIRE', KEYS[4], 90000)

-- The headers show the tightest window; the minute when none is tighter.
local minute_limit = minute
if start > 0 and now < start + burst then minute_limit = minute * times end
local window, limit, left, list = 60, minute, math.max(0, minute_limit - used_minute), KEYS[5]
if hour > 0 and hour - used_hour < left then
  window, limit, left, list = 3600, hour, hour - used_hour, KEYS[6]
end
if day > 0 and day - used_day < left then
  window, limit, left, list = 86400, day, day - used_day, KEYS[7]
end
return {session, grants, 1, window, limit, left, first(list, window), 0}
