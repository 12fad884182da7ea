-- A chat: each line of a client goes to all others. The clients' fibers share one machine, and so the table of clients
-- without a lock. Other machines count the words, on other cores.
debug.sethook() -- no fiber here computes for long, so only a wait shall let another one run

local listener, port = tcp.listen(tonumber(arg[1] or 0))
print("listening on port " .. port)
io.stdout:flush()

local clients, counted = {}, channel(64) -- clients: socket -> the channel of its writer
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

-- Each socket has one writer, because the parts of two long writes at the same time would mix.
local function write(socket, texts, done)
  for text in texts:values() do
    if not pcall(socket.write, socket, text .. "\n") then break end
  end
  socket:close()
  done:close()
end

-- Waits for no client. One that does not read has a full channel at some time, and it is dropped. After many sends even
-- select lets other fibers run, and they may change the table: so a copy of it is walked.
local function tell_others(from, text)
  local others = {}
  for socket, texts in pairs(clients) do
    if socket ~= from then others[socket] = texts end
  end
  for socket, texts in pairs(others) do
    if not select({{texts, text}}, 0) then
      clients[socket] = nil
      socket:close() -- its reader and its writer get an error
    end
  end
end

local function serve(socket)
  local texts, done = channel(1024), channel() -- room for a burst of all others; closed by the writer
  spawn(write, socket, texts, done)
  texts:send("your name?")
  local good, name = pcall(socket.line, socket)
  if good and name then
    clients[socket] = texts
    tell_others(socket, name .. " has come")
    while true do
      local good, line = pcall(socket.line, socket)
      if not good or not line or line == "/quit" then break end
      counted:send(line)
      tell_others(socket, name .. ": " .. line)
    end
    clients[socket] = nil
    tell_others(socket, name .. " has gone")
  end
  texts:close()
  select({done}, 5) -- the writer first says what is left, if the client reads it in this time
  socket:close()
end

while true do spawn(serve, listener:accept()) end
