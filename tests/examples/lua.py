#!/usr/bin/python3
"""lua_fibers: its scripts, and small ones for each thing that it adds to Lua."""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(sys.argv[1]) / "lua_fibers"
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "lua"


def run(script, *arguments, workers=4):
    """The output of a script, given as a path or as text."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        if isinstance(script, str):
            file.write(script)
            file.flush()
            script = file.name
        done = subprocess.run([PROGRAM, script, *arguments], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "ULEXITE_THREADS": str(workers)})
    return done.stdout, done.stderr, done.returncode


def expect(script, wanted, *arguments):
    for workers in (1, 2, 4, 8):
        out, err, code = run(script, *arguments, workers=workers)
        assert (out, code) == (wanted, 0), f"with {workers} workers: {out!r}, {err!r}, {code}; wanted {wanted!r}"


def expect_error(script, words):
    out, err, code = run(script)
    assert code == 1 and words in err, f"{out!r}, {err!r}, {code}; wanted {words!r}"


expect(SCRIPTS / "sieve.lua", "303 primes, the last is 1999\n")
expect(SCRIPTS / "sieve.lua", "25 primes, the last is 97\n", "100")

# What is copied to another machine, and comes back.
expect("""
local function same(x, y)
  if type(x) ~= "table" then return x == y end
  for k, v in pairs(x) do if not same(v, y[k]) then return false end end
  for k in pairs(y) do if x[k] == nil then return false end end
  return true
end
local all = {1, 2.5, "text\\0with zero", true, false, {nested = {1, 2, {}}}, [100] = -1, [1.5] = math.huge}
local back = go(function(v) return v end, all):join()
print(same(all, back), math.type(back[1]), math.type(back[2]), back ~= all)
local factor = 7
print(go(function(n, ...) return n * factor, select and "globals", ... end, 6, nil, "x"):join())
local c = channel(1)
print(go(function(c) c:send("through") return c end, c):join():receive())
""", "true\tinteger\tfloat\ttrue\n42\tglobals\tnil\tx\nthrough\ttrue\n")

# Fibers of one machine share its variables, and are never in it at the same time.
expect("""
local count, inside, fibers = 0, 0, {}
for i = 1, 20 do
  fibers[i] = spawn(function(n)
    for _ = 1, n do
      inside = inside + 1
      assert(inside == 1)
      local seen = count
      count = seen + 1
      inside = inside - 1
      if i % 2 == 0 then yield() else sleep(1e-6) end
    end
    return i
  end, 50)
end
local sum = 0
for _, f in ipairs(fibers) do sum = sum + f:join() end
print(count, sum)
""", "1000\t210\n")

# Work in several machines.
expect("""
local results = channel(8)
for i = 1, 8 do go(function(i, out) local s = 0 for k = 1, 200000 do s = s + k % i end out:send({i, s}) end, i, results) end
local total = 0
for _ = 1, 8 do total = total + results:receive()[2] end
print(total)
""", "%d\n" % sum(k % i for i in range(1, 9) for k in range(1, 200001)))

# Select, errors, cancelling.
out, err, code = run("""
local a, b = channel(), channel(1)
print(select({a, b}, 0))
print(select({a, b}, 0.001))
print(select({a, {b, "sent"}}))
print(select({a, b}))
b:close()
print(select({a, b}))
go(function(a) sleep(0.001) a:send("late") end, a)
print(select({a}, 60))
print(pcall(go(function() error("over there", 0) end).join, go(function() error("over there", 0) end)))
local sleeper = go(function() sleep(3600) end)
print(sleeper:cancel(), sleeper:cancel())
local _, error = pcall(sleeper.join, sleeper)
print(error:match(": (.*)"))
""")
assert out == """

2\tnil\ttrue
2\tsent\ttrue
2\tnil\tfalse
1\tlate\ttrue
false\tover there
true\tfalse
the fiber was asked to stop
""" and code == 0, (out, err, code)

# Lua's own select, and no case is lost to the collector or leaks when a later one raises an error.
expect("""
print(select("#", 1, nil), select(2, "a", "b", "c"))
print(select(-1, "a", "b"), (pcall(select, 0)), (pcall(select, nil)))
local kept = channel()
local cases = {channel(), kept}
spawn(function() cases[1] = nil collectgarbage() collectgarbage() kept:send("kept") end)
print(select(cases))
local big = ("x"):rep(1 << 20)
collectgarbage("stop")
for i = 1, 300 do assert(not pcall(select, {{kept, big}, {kept, print}}, 0)) end
for i = 1, 300 do assert(not select({{kept, big}}, 0)) end
for line in io.lines("/proc/self/status") do
  local used = line:match("^VmRSS:%s*(%d+)")
  if used then print(tonumber(used) < 200 * 1024) end
end
""", "2\tb\tc\nb\tfalse\tfalse\n2\tkept\ttrue\ntrue\n")

# The results of spawn are the values themselves; those of go are copies, or join tells why not.
expect("""
local listener = spawn(function() return tcp.listen(0) end):join()
listener:close()
print(select("#", spawn(function() return nil, 1, nil end):join()))
local thrown = {print}
local fiber = spawn(function() error(thrown) end)
local good, error = pcall(fiber.join, fiber)
print(good, error == thrown, select(2, pcall(fiber.join, fiber)))
local other = go(function() return tcp.listen(0) end)
print(pcall(other.join, other))
print(select(2, pcall(other.join, other)))
""", """3
false\ttrue\tthe results of this fiber were taken already
false\ta userdata cannot go to another machine
the results of this fiber were taken already
""")

# Nested calls of C have room on a fiber's stack up to Lua's own limit.
expect("""
local function run()
  local function inner(text) return (text:gsub("%b()", function(p) return "[" .. inner(p:sub(2, -2)) .. "]" end)) end
  local function nest(n) return inner(("("):rep(n) .. (")"):rep(n)) end
  return nest(160) == ("["):rep(160) .. ("]"):rep(160), select(2, pcall(nest, 1000)):match("stack overflow")
end
print(run())
print(spawn(run):join())
print(go(run):join())
""", "true\tstack overflow\n" * 3)

# Sockets. A close ends the waits of other fibers, and gives the descriptor back after them.
expect("""
local listener, port = tcp.listen(0)
local function pair() return tcp.connect("127.0.0.1", port), listener:accept() end
local near, far = pair()
near:write("a line\\n")
print(far:line())
local function descriptors()
  local pipe = io.popen("ls /proc/$PPID/fd | wc -l")
  local count = tonumber(pipe:read("a"))
  pipe:close()
  return count
end
local big = ("x"):rep(1 << 24)
local function closed_during(socket, first, second)
  local begun = 0
  local function wait(method)
    begun = begun + 1
    local good, words
    repeat good, words = pcall(socket[method], socket, big) until not good
    return not good and words:match("the socket is closed")
  end
  local fibers = {spawn(wait, first), spawn(wait, second)}
  while begun < 2 do yield() end
  socket:close()
  for _, fiber in ipairs(fibers) do assert(fiber:join()) end
end
local before
for round = 1, 40 do
  closed_during(tcp.listen(0), "accept", "accept")
  local near, far = pair()
  closed_during(near, "line", "write")
  far:close()
  before = before or descriptors()
end
print(descriptors() < before + 20, pcall(near.close, near), select(2, pcall(near.line, near)):match("closed"))
""", "a line\ntrue\ttrue\tclosed\n")

expect_error("error('told')", "told")
expect_error("local c = channel() c:close() c:send(1)", "the channel is closed")
expect_error("go(print)", "a function of C cannot go to another machine")
expect_error("local t = {} t.t = t channel(1):send(t)", "contains itself")
expect_error("channel(1):send(coroutine.create(print))", "a thread cannot go to another machine")
expect_error("channel(-1)", "a capacity below 0")
expect_error("tcp.connect('127.0.0.1', 70000)", "a port from 0 to 65535")
expect_error("tcp.connect('127.0.0.1', 1)", "connect: ")
# With one worker the other fiber runs at a yield.
out, err, code = run("go(function() error('nobody asks') end) collectgarbage() for _ = 1, 100 do yield() end", workers=1)
assert code == 0 and "nobody asks" in err, (out, err, code)
out, err, code = run("for i = 1, 100 do go(function() sleep(3600) end) spawn(function() sleep(3600) end) end")
assert (out, err, code) == ("", "", 0), (out, err, code)

# The chat, with real clients.
server = subprocess.Popen([PROGRAM, SCRIPTS / "chat.lua"], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "ULEXITE_THREADS": "4"})
try:
    port = int(server.stdout.readline().split()[-1])
    clients = []
    for number in range(10):
        connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        lines = connection.makefile("r")
        assert lines.readline() == "your name?\n"
        connection.sendall(f"client{number}\r\n".encode())
        # It is in once the others heard of it. Nobody hears of the first, so its first line must have been counted:
        # else the second may come in before it.
        for _, earlier in clients:
            assert earlier.readline() == f"client{number} has come\n"
        if not clients:
            connection.sendall(b"/words\n")
            assert server.stdout.readline() == "words: 1\n"
        clients.append((connection, lines))
    for number, (connection, _) in enumerate(clients):
        connection.sendall(f"hello from {number}\n".encode())
        for other, (_, lines) in enumerate(clients):
            if other != number:
                assert lines.readline() == f"client{number}: hello from {number}\n"
    clients[0][0].sendall(b"/words\n")
    assert server.stdout.readline() == "words: 32\n"
    for connection, lines in clients[1:]:
        assert lines.readline() == "client0: /words\n"
    clients[0][0].close()
    clients[0][1].close()
    for _, lines in clients[1:]:
        assert lines.readline() == "client0 has gone\n"

    # One that says all at once gets its answer nevertheless.
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as hasty:
            hasty.sendall(b"hasty\nhi\n/quit\n")
            assert hasty.makefile("r").read() == "your name?\n"
    for _ in range(20):
        for _, lines in clients[1:]:
            assert [lines.readline() for _ in range(3)] == ["hasty has come\n", "hasty: hi\n", "hasty has gone\n"]

    # One that does not read is dropped, and its full socket delays no other.
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.settimeout(20)
    deaf.connect(("127.0.0.1", port))
    deaf.sendall(b"deaf\n")
    for _, lines in clients[1:]:
        assert lines.readline() == "deaf has come\n"
    (speaker, of_speaker), *listeners = clients[1:]
    words, dropped = "x" * 8000, 0
    for _ in range(20000):
        speaker.sendall(f"{words}\n".encode())
        for _, lines in listeners:
            while (line := lines.readline()) == "deaf has gone\n":
                dropped += 1
            assert line == f"client1: {words}\n"
        if dropped == len(listeners):
            break
    assert dropped == len(listeners), dropped
    assert of_speaker.readline() == "deaf has gone\n"
finally:
    server.kill()
    server.wait()
print("passed")
