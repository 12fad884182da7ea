-- The primes below arg[1] by a chain of filters, each in a machine of its own.
local function generate(out, limit)
  for n = 2, limit do out:send(n) end
  out:close()
end

local function filter(from, to, prime)
  for n in from:values() do
    if n % prime ~= 0 then to:send(n) end
  end
  to:close()
end

local first = channel(16)
go(generate, first, tonumber(arg[1] or 2000))
local count, last = 0, nil
while true do
  local prime, open = first:receive()
  if not open then break end
  count, last = count + 1, prime
  local rest = channel(16)
  go(filter, first, rest, prime)
  first = rest
end
print(count .. " primes, the last is " .. tostring(last))
