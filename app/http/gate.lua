-- Checks the session and charges the rate limits of a request, in one round trip.
--
-- KEYS  1 session copy   2 grants version copy   3 plan copy (1-3 only in the mode 'session')
--       then of each subject: its state hash, minute list, hour list, day list
-- ARGV  1 now in seconds, 0 = this server's clock; of a refund, when the units were charged
--       2 'session' = check the session and charge its tenant, 'charge' = charge the subjects,
--         'refund' = give units of the minute back to the subjects
--       3-5 session, grants, plan to cache (or '')  6 seconds to cache them
--       then of each subject: units, plan (of a session's tenant the copy counts)
--
-- A plan is "minute,hour,day,burst multiplier,burst seconds"; 0 = no such limit.
-- A list holds "second:amount", oldest first. The hash holds each window's sum, so that the time of
-- a request does not grow with the usage.
--
-- All subjects are charged, or none: the first one that is over its limit refuses the request.
--
-- Returns {session, grants, allowed, window, limit, remaining, reset, retry_after, subject, now};
-- the limits are those of the subject that refused, or of the one with the least remaining. During a
-- burst, the limit of the minute is that of the burst. Nothing is charged with {'unknown'}, {'ended'}
-- or {'unverified', grants}.

local FIRST_KEY, FIRST_ARGUMENT = 4, 7

local function split(item)
  local colon = string.find(item, ':', 1, true)
  return tonumber(string.sub(item, 1, colon - 1)), tonumber(string.sub(item, colon + 1))
end

local now, subjects = tonumber(ARGV[1]), {}
for key = FIRST_KEY, #KEYS, 4 do
  local argument = FIRST_ARGUMENT + 2 * #subjects
  subjects[#subjects + 1] = {
    hash = KEYS[key],
    lists = {KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]},
    units = tonumber(ARGV[argument]),
    plan = ARGV[argument + 1],
  }
end

if ARGV[2] == 'refund' then
  for _, subject in ipairs(subjects) do
    local list = subject.lists[1]
    for index, item in ipairs(redis.call('LRANGE', list, 0, -1)) do
      local second, amount = split(item)
      if second == now then
        local units = math.min(subject.units, amount)
        redis.call('LSET', list, index - 1, second .. ':' .. (amount - units))
        redis.call('HINCRBY', subject.hash, 'minute', -units)
      end
    end
  end
  return {}
end

local session, grants = '', ''
if ARGV[2] == 'session' then
  if ARGV[3] == 'ended' then
    redis.call('SET', KEYS[1], 'ended', 'EX', ARGV[6])
    return {'ended'}
  end
  if ARGV[3] ~= '' then
    for i = 1, 3 do redis.call('SET', KEYS[i], ARGV[2 + i], 'NX', 'EX', ARGV[6]) end
  end
  local copies = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
  session, grants, subjects[1].plan = copies[1], copies[2], copies[3]
  if session == 'ended' then return {'ended'} end
  if not session or not grants or not copies[3] then return {'unknown'} end
  if session == 'unverified' then return {session, grants} end
end

if now == 0 then now = tonumber(redis.call('TIME')[1]) end

for _, subject in ipairs(subjects) do
  local parts = {}
  for part in string.gmatch(subject.plan, '[^,]+') do parts[#parts + 1] = tonumber(part) end
  subject.minute, subject.hour, subject.day = parts[1], parts[2], parts[3]
  subject.times, subject.burst = parts[4], parts[5]
  subject.stored = redis.call('HMGET', subject.hash, 'minute', 'hour', 'day', 'burst', 'last')
  local last = tonumber(subject.stored[5] or '0')
  if last > now + 60 then
    -- The clock once ran far ahead. Reset, rather than refuse requests until that time is reached.
    redis.call('DEL', subject.hash, unpack(subject.lists))
    subject.stored, last = {}, 0
  end
  now = math.max(now, last)
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

-- Returns the limit of the minute at a time, and the start of the burst, given the usage.
local function ceiling(subject, at, used)
  if subject.times <= 1 or subject.burst <= 0 then return subject.minute, 0 end
  local start = subject.burst_start
  if start > 0 and at >= start + subject.burst and used < subject.minute then start = 0 end
  if start == 0 or at < start + subject.burst then return subject.minute * subject.times, start end
  return subject.minute, start
end

-- Returns the limit of the minute that is in force now: that of the burst while one runs.
local function minute_limit(subject)
  local is_burst = subject.start > 0 and now < subject.start + subject.burst
  return is_burst and subject.minute * subject.times or subject.minute
end

-- Returns the seconds until enough entries leave the window for one request more to fit.
local function wait_in(list, used, limit, span)
  for _, item in ipairs(redis.call('LRANGE', list, 0, used + 1 - limit)) do
    local second, left = split(item)
    used = used - left
    if used + 1 <= limit then return second + span - now end
  end
  return span
end

local function wait_in_minute(subject)
  local items, used = redis.call('LRANGE', subject.lists[1], 0, -1), subject.used_minute
  local moments, index, burst_end = {}, 1, subject.burst_start + subject.burst
  for _, item in ipairs(items) do moments[#moments + 1] = split(item) + 60 end
  if burst_end > now then moments[#moments + 1] = burst_end end
  table.sort(moments)
  for _, at in ipairs(moments) do
    while index <= #items do
      local second, amount = split(items[index])
      if second > at - 60 then break end
      used = used - amount
      index = index + 1
    end
    if used + subject.units <= ceiling(subject, at, used) then return at - now end
  end
  return 60
end

local function store(subject)
  redis.call('HSET', subject.hash, 'minute', subject.used_minute, 'hour', subject.used_hour,
    'day', subject.used_day, 'burst', subject.start, 'last', now)
  redis.call('EXPIRE', subject.hash, 90000)
end

local function refuse(index, subject)
  local hour, day = subject.hour, subject.day
  local window, limit, retry = 60, minute_limit(subject), 0
  if not subject.fits_minute then retry = wait_in_minute(subject) end
  if not subject.fits_hour then
    local wait = wait_in(subject.lists[2], subject.used_hour, hour, 3600)
    if wait > retry then window, limit, retry = 3600, hour, wait end
  end
  if not subject.fits_day then
    local wait = wait_in(subject.lists[3], subject.used_day, day, 86400)
    if wait > retry then window, limit, retry = 86400, day, wait end
  end
  return {session, grants, 0, window, limit, 0, now + retry, retry, index, now}
end

for index, subject in ipairs(subjects) do
  local stored, hour, day = subject.stored, subject.hour, subject.day
  subject.burst_start = tonumber(stored[4] or '0')
  subject.used_minute = expire(subject.lists[1], stored[1], 60)
  subject.used_hour = hour > 0 and expire(subject.lists[2], stored[2], 3600) or 0
  subject.used_day = day > 0 and expire(subject.lists[3], stored[3], 86400) or 0
  local top
  top, subject.start = ceiling(subject, now, subject.used_minute)
  subject.fits_minute = subject.used_minute + subject.units <= top
  subject.fits_hour = hour == 0 or subject.used_hour + 1 <= hour
  subject.fits_day = day == 0 or subject.used_day + 1 <= day
  if not (subject.fits_minute and subject.fits_hour and subject.fits_day) then
    for checked = 1, index do store(subjects[checked]) end
    return refuse(index, subject)
  end
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

local function charge(subject)
  subject.used_minute = subject.used_minute + subject.units
  if subject.start == 0 and subject.used_minute > subject.minute then subject.start = now end
  if subject.units > 0 then add(subject.lists[1], subject.units, 60) end
  if subject.hour > 0 then
    subject.used_hour = subject.used_hour + 1
    add(subject.lists[2], 1, 3600)
  end
  if subject.day > 0 then
    subject.used_day = subject.used_day + 1
    add(subject.lists[3], 1, 86400)
  end
  store(subject)
end

-- Returns the tightest window of a subject, the minute when none is tighter: its seconds, limit,
-- what remains, and its list.
local function tightest(subject)
  local window, limit, list = 60, minute_limit(subject), subject.lists[1]
  local left = math.max(0, limit - subject.used_minute)
  local hour_left, day_left = subject.hour - subject.used_hour, subject.day - subject.used_day
  if subject.hour > 0 and hour_left < left then
    window, limit, left, list = 3600, subject.hour, hour_left, subject.lists[2]
  end
  if subject.day > 0 and day_left < left then
    window, limit, left, list = 86400, subject.day, day_left, subject.lists[3]
  end
  return window, limit, left, list
end

local shown, window, limit, left, list
for index, subject in ipairs(subjects) do
  charge(subject)
  local new_window, new_limit, new_left, new_list = tightest(subject)
  if not left or new_left < left then
    shown, window, limit, left, list = index, new_window, new_limit, new_left, new_list
  end
end
local oldest = redis.call('LINDEX', list, 0)
local reset = (oldest and split(oldest) or now) + window
return {session, grants, 1, window, limit, left, reset, 0, shown, now}
