-- A chat: each line of a client goes to all others. The clients' fibers share one machine, and so the table of sockets
-- without a lock; counting the words goes on in other machines, on other cores.
local listener, port = tcp.listen(tonumber(arg[1] or 0))
print("listening on port " .. port)
io.stdout:flush()

local clients, counted = {}, channel(64)
go(function(lines)
  local words = 0
  for line in lines:values() do
    for _ in line:gmatch("%S+") do words = words + 1 end
    if line == "/words" then
      print("words: " .. words)
      io.stdout:flush()
    end
  end
end, counted)

-- A write may wait, and then others change the table: so who is there now is looked up first.
local function tell_others(from, text)
  local others = {}
  for socket in pairs(clients) do
    if socket ~= from then others[#others + 1] = socket end
  end
  for _, socket in ipairs(others) do pcall(socket.write, socket, text .. "\n") end
end

local function serve(socket)
  socket:write("your name?\n")
  local name = socket:line()
  if not name then return socket:close() end
  clients[socket] = name
  tell_others(socket, name .. " has come")
  while true do
    local good, line = pcall(socket.line, socket)
    if not good or not line or line == "/quit" then break end
    counted:send(line)
    tell_others(socket, name .. ": " .. line)
  end
  clients[socket] = nil
  tell_others(socket, name .. " has gone")
  socket:close()
end

while true do spawn(serve, listener:accept()) end
