"""What tests/examples/tcp_proxy.sh checks with sockets of its own: python3 tcp_proxy.py PROGRAM

Each function check_... starts a proxy, and is client and upstream to it.
"""

import asyncio
import contextlib
import faulthandler
import hashlib
import random
import socket
import sys
import time
import traceback

from tcp_proxy_kit import *

# ---- transfers ----
def check_a_large_transfer_and_an_answer_after_its_end():
    def answer(server):
        server.sendall(receive(server))
        server.close()

    with listen() as upstream, Proxy(upstream) as proxy, proxy.connect() as client:
        task = Task(lambda: answer(accept(upstream)))
        digest = send(client, 200 * MB)
        assert client.recv(32, socket.MSG_WAITALL) == digest
        assert client.recv(1) == b""
        task.result()
        line = proxy.closed(1, "both sides ended")
        assert "bytes_to_upstream=200000000 bytes_to_client=32 " in line, line
        assert 'peer="127.0.0.1:%d"' % client.getsockname()[1] in line, line
        assert 'upstream="127.0.0.1:%d"' % upstream.getsockname()[1] in line, line
        assert "served 1 connections, 200000032 bytes" in proxy.stop()


def check_both_directions_at_once():
    with connected() as (proxy, client, server):
        sending = [Task(send, each, 64 * MB) for each in (client, server)]
        receiving = [Task(receive, each) for each in (server, client)]
        assert [t.result() for t in sending] == [t.result() for t in receiving]
        line = proxy.closed(1, "both sides ended")
        assert "bytes_to_upstream=64000001 bytes_to_client=64000001 " in line, line


def check_the_upstream_may_end_first():
    with connected() as (proxy, client, server):
        sent = Task(send, server, 3 * MB)
        assert receive(client) == sent.result()
        assert proxy.text().count(" closed ") == 0
        sent = Task(send, client, 3 * MB)
        assert receive(server) == sent.result()
        proxy.closed(1, "both sides ended")


async def echo(reader, writer):
    while part := await reader.read(1 << 16):
        writer.write(part)
        await writer.drain()
    writer.close()


async def exchange(port):
    data = random.randbytes(random.randrange(1, 300_000))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def sender():
        for begin in range(0, len(data), 50_000):
            writer.write(data[begin : begin + 50_000])
            await writer.drain()
        writer.write_eof()

    sending = asyncio.create_task(sender())
    assert await reader.read(-1) == data, "not what was sent"
    await sending
    writer.close()


async def exchange_many(upstream, port, count, serve):
    async with await asyncio.start_server(serve, sock=upstream, backlog=512):
        await asyncio.wait_for(asyncio.gather(*(exchange(port) for _ in range(count))), patience)


def check_many_at_a_time():
    for threads in "124":
        with listen() as upstream, Proxy(upstream, "--threads", threads) as proxy:
            before = proxy.descriptors()
            asyncio.run(exchange_many(upstream, proxy.port, 200, echo))
            proxy.closed(200, "both sides ended")
            wait_until(lambda: proxy.descriptors() == before, f"{before} descriptors")
            assert "served 200 connections" in proxy.stop()


def check_no_more_than_max_connections_at_a_time():
    now = peak = 0

    async def count(reader, writer):
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        while part := await reader.read(1 << 16):
            writer.write(part)
            await writer.drain()
        now -= 1
        writer.close()

    with listen() as upstream, Proxy(upstream, "--max-connections", "3") as proxy:
        asyncio.run(exchange_many(upstream, proxy.port, 50, count))
        assert 1 <= peak <= 3, f"{peak} at a time"
        proxy.closed(50, "both sides ended")


# ---- a reader that stalls ----
def check_a_stalled_reader_stops_the_sender():
    def limit_of(name):
        with open(f"/proc/sys/net/ipv4/{name}") as limits:
            return int(limits.read().split()[2])

    # More than all the sockets can hold. Of the bytes that were pushed, the kernel tells where they are: in the queues
    # of four sockets, and the rest is in the proxy.
    size = 2 * (limit_of("tcp_rmem") + limit_of("tcp_wmem")) + 16 * MB
    pushed = 0

    def push(client):
        nonlocal pushed
        digest = hashlib.sha256()
        for block in blocks(size):
            digest.update(block)
            while block:
                sent = client.send(block)
                pushed += sent
                block = block[sent:]
        client.shutdown(socket.SHUT_WR)
        return digest.digest()

    def snapshot(client, server, proxy):
        to_proxy, to_server = connections_of(proxy.port), connections_of(server.getsockname()[1])
        here, there = client.getsockname()[1], server.getpeername()[1]
        return (pushed,
                to_proxy[here, proxy.port][1], to_proxy[proxy.port, here][2],
                to_server[there, server.getsockname()[1]][1], to_server[server.getsockname()[1], there][2])

    with connected() as (proxy, client, server):
        sending = Task(push, client)
        steady = [None]

        def stuck():  # the sender cannot send and the proxy has not read all, over and over
            now = snapshot(client, server, proxy)
            if steady[-1] != now or not now[1] or not now[2]:
                steady.clear()
            steady.append(now)
            return len(steady) >= 10 or not sending.is_alive()

        wait_until(stuck, "the sender to be stopped")
        assert sending.is_alive(), "all was taken, though nobody read it"
        total, *queues = steady[-1]
        assert total - sum(queues) <= 32 * 1024, f"{total - sum(queues)} bytes are in the proxy: {steady[-1]}"
        assert receive(server) == sending.result()
        server.close()
        proxy.closed(1, "both sides ended")


# ---- what goes wrong ----
def check_an_upstream_that_refuses():
    with socket.socket() as nobody:  # bound, but it does not listen
        nobody.bind(("127.0.0.1", 0))
        with Proxy(nobody) as proxy:
            before = proxy.descriptors()
            for _ in range(5):
                with proxy.connect() as client:
                    assert client.recv(1) == b""
            line = proxy.closed(5, "cannot connect to the upstream: Connection refused")
            assert 'upstream="127.0.0.1:%d" bytes_to_upstream=0 bytes_to_client=0 ' % nobody.getsockname()[1] in line
            wait_until(lambda: proxy.descriptors() == before, f"{before} descriptors")
            assert len(proxy.text().splitlines()) == 5, proxy.text()


def check_a_reset_of_either_side_breaks_both():
    for breaks, breaker in ((0, "client"), (1, "upstream")):
        with connected() as (proxy, *ends):
            before = proxy.descriptors()
            reset(ends[breaks])
            expect_reset(ends[1 - breaks])
            proxy.closed(1, f"{breaker}: Connection reset by peer")
            wait_until(lambda: proxy.descriptors() == before - 2, "the descriptors to be closed")


def check_a_reset_behind_unread_data_is_no_end():
    with connected() as (proxy, client, server):
        client.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.send(bytes(65536))
        reset(client)
        expect_reset(server)
        proxy.closed(1, "client: ")


def check_a_client_that_resets_after_its_end():
    with connected() as (proxy, client, server):
        client.shutdown(socket.SHUT_WR)
        assert server.recv(1) == b""
        reset(client)
        try:
            while True:
                server.sendall(bytes(65536))
        except (ConnectionResetError, BrokenPipeError):
            pass
        proxy.closed(1, "client: ")


def check_an_idle_connection_is_reset():
    with listen() as upstream, Proxy(upstream, "--idle-timeout", "1") as proxy:
        with proxy.connect() as client, accept(upstream) as server:
            expect_reset(client)
            expect_reset(server)
            proxy.closed(1, "idle")


def check_a_direction_that_moves_keeps_the_other():
    with listen() as upstream, Proxy(upstream, "--idle-timeout", "1") as proxy:
        moved = time.monotonic()  # the proxy saw the last byte that came through no earlier
        try:
            with proxy.connect() as client, accept(upstream) as server:
                for _ in range(9):  # longer than the limit, in steps shorter than it
                    time.sleep(0.2)
                    begun = time.monotonic()
                    server.sendall(b"x")
                    assert client.recv(1) == b"x"
                    moved = begun
                client.sendall(b"y")
                assert server.recv(1) == b"y"
        except ConnectionError:  # right, if a slow machine made us idle
            idle = time.monotonic() - moved
            assert idle >= 1, f"cut, though idle for no more than {idle} s"


# ---- the stop ----
def check_a_transfer_finishes_after_sigterm():
    def all_and_answer(client):
        digest = send(client, 100 * MB)
        assert client.recv(32, socket.MSG_WAITALL) == digest
        assert client.recv(1) == b""

    with connected("--drain", "3600") as (proxy, client, server):
        transfer = Task(all_and_answer, client)
        first = server.recv(1)
        proxy.process.terminate()
        wait_until(lambda: not listening(proxy.port), "the listener's close")
        digest = hashlib.sha256(first)
        while part := server.recv(1 << 18):
            digest.update(part)
        server.sendall(digest.digest())
        server.close()
        transfer.result()
        assert "served 1 connections, 100000034 bytes" in proxy.ends()
        proxy.closed(1, "both sides ended")


def check_the_rest_is_reset_after_the_drain_or_a_second_signal():
    for options in (["--drain", "0"], ["--drain", "3600"]):
        with connected(*options) as (proxy, client, server):
            proxy.process.terminate()
            if "3600" in options:
                wait_until(lambda: not listening(proxy.port), "the listener's close")
                proxy.process.terminate()
            expect_reset(client)
            expect_reset(server)
            assert "served 1 connections, 2 bytes" in proxy.ends()
            proxy.closed(1, "stopped")


faulthandler.dump_traceback_later(110, exit=True)
failures = 0
for name, check in list(globals().items()):
    if not name.startswith("check_"):
        continue
    try:
        check()
    except Exception:
        failures += 1
        print(f"FAILED: {name}", file=sys.stderr)
        traceback.print_exc()
sys.exit(1 if failures else 0)
