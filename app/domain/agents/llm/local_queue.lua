-- Gives the slots of the local model to requests, fairly between tenants.
--
-- KEYS  1 hash of tickets: "expiry:since:state:tenant", in ms; state w = waits, r = has a slot
-- ARGV  1 ticket                        2 its tenant             3 slots of the model
--       4 since when it waits, 0 = now  5 '1' = it has a slot, whose lease is renewed
--       6 lease of a slot in ms         7 lease of a place in ms
--       8 places of a tenant            9 places in all
--
-- The next slot is for the oldest ticket of the tenant with the fewest slots, so that no tenant gets
-- a second one while another waits for its first.
--
-- Returns {position, since}; position 0 = it has a slot, -1 = all places are taken

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local own, tenant, slots = ARGV[1], ARGV[2], tonumber(ARGV[3])
local since = tonumber(ARGV[4])
if since == 0 then since = now end

local function store(state, lease)
  local entry = string.format('%.0f:%.0f:%s:%s', now + lease, since, state, tenant)
  redis.call('HSET', KEYS[1], own, entry)
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
end

if ARGV[5] == '1' then
  store('r', ARGV[6])
  return {0, since}
end

local waiting, used, used_by, places_of_tenant = {}, 0, {}, 0
local entries = redis.call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
  local id = entries[i]
  local expiry, began, state, owner = string.match(entries[i + 1], '^(%d+):(%d+):(%a):(.*)$')
  if tonumber(expiry) < now then
    redis.call('HDEL', KEYS[1], id)
  elseif state == 'r' then
    used = used + 1
    used_by[owner] = (used_by[owner] or 0) + 1
  elseif id ~= own then
    table.insert(waiting, {id = id, since = tonumber(began), tenant = owner})
    if owner == tenant then places_of_tenant = places_of_tenant + 1 end
  end
end
local others = #waiting
table.insert(waiting, {id = own, since = since, tenant = tenant})

local function is_older(a, b)
  if a.since ~= b.since then return a.since < b.since end
  return a.id < b.id
end

-- `round` is how many slots the tenant has had when the ticket gets its own.
table.sort(waiting, is_older)
for _, ticket in ipairs(waiting) do
  ticket.round = used_by[ticket.tenant] or 0
  used_by[ticket.tenant] = ticket.round + 1
end
table.sort(waiting, function(a, b)
  if a.round ~= b.round then return a.round < b.round end
  return is_older(a, b)
end)

for position, ticket in ipairs(waiting) do
  if ticket.id == own then
    if position <= slots - used then
      store('r', ARGV[6])
      return {0, since}
    end
    local is_known = redis.call('HEXISTS', KEYS[1], own) == 1
    local is_full = places_of_tenant >= tonumber(ARGV[8]) or others >= tonumber(ARGV[9])
    if is_full and not is_known then return {-1, since} end
    store('w', ARGV[7])
    return {position, since}
  end
end
