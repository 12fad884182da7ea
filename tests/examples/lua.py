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
finally:
    server.kill()
    server.wait()
print("passed")
