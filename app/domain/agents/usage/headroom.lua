-- Reads how much of its rate limit a subject has used. Writes nothing and charges nothing.
--
-- KEYS  1 state hash   2 minute list   3 hour list   4 day list, as in gate.lua
--
-- Returns {now, start of the burst, units in the minute, reset, requests in the hour, reset,
--          requests in the day, reset}

local now = tonumber(redis.call('TIME')[1])
local stored = redis.call('HMGET', KEYS[1], 'minute', 'hour', 'day', 'burst', 'last')
local last = tonumber(stored[5] or '0')
-- gate.lua resets such a state with the next request.
if last > now + 60 then stored, last = {}, 0 end
local is_empty = last == 0
now = math.max(now, last)

-- Adds the sum of the entries within the window, and when the oldest of them leaves it.
local function add_window(reply, list, sum, span)
  sum = tonumber(sum or '0')
  local first, page = 0, 128
  while not is_empty do
    local items = redis.call('LRANGE', list, first, first + page - 1)
    if #items == 0 then break end
    for _, item in ipairs(items) do
      local colon = string.find(item, ':', 1, true)
      local second = tonumber(string.sub(item, 1, colon - 1))
      if second > now - span then
        reply[#reply + 1], reply[#reply + 2] = sum, second + span
        return
      end
      sum = sum - tonumber(string.sub(item, colon + 1))
    end
    first = first + page
  end
  reply[#reply + 1], reply[#reply + 2] = 0, now + span
end

local reply = {now, tonumber(stored[4] or '0')}
add_window(reply, KEYS[2], stored[1], 60)
add_window(reply, KEYS[3], stored[2], 3600)
add_window(reply, KEYS[4], stored[3], 86400)
return reply
