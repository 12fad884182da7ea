"""jobs.py FOLDER [--storm COUNT]: workers of examples/jobs are killed again and again, and the engines too, and each job
still has its effect once. --storm: only that, with so many jobs, and a kill each second."""

import argparse
import concurrent.futures
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from jobs_kit import BOUND, Postgres, Redis, Worker, await_true, ended, folder, start

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--storm", type=int, default=0)
given = parser.parse_args()
program = given.folder.resolve() / "jobs"


def put(redis, lines, *arguments):
    return subprocess.run([program, "put", redis.where, *arguments], input="".join(f"{line}\n" for line in lines),
                          capture_output=True, text=True, timeout=BOUND)


def dead_letters(redis, *arguments):
    done = subprocess.run([program, "dead", redis.where, *arguments], capture_output=True, text=True, timeout=BOUND)
    assert done.returncode == 0, done
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def kind_of(number):
    if number in (10, 20):
        return "crash"
    return "fail" if number % 300 == 7 else "flaky" if number % 97 == 5 else "ok"


class Storm:
    """The kills wait for progress, so that a slow machine only takes longer."""

    count = given.storm or 500
    longest_job = 120 if given.storm else 400  # milliseconds
    between_kills = 1 if given.storm else 0.5
    bound = 240 + count / 20

    def __init__(self, redis, book, crash):
        self.redis, self.book, self.crash = redis, book, crash
        self.kills = self.crashes = 0
        self.longest_stay = 0.0
        self.names = {f"j{number}": (1 + 7 * number % self.longest_job, kind_of(number)) for number in range(1, self.count + 1)}
        self.workers = [self.worker() for _ in range(3)]

    def worker(self):
        return Worker(program, self.redis, "--silence", "1000", *self.book.arguments)

    def run(self):
        jobs = folder / f"jobs.{id(self)}"
        jobs.write_text("".join(f"{name} {longest} {kind}\n" for name, (longest, kind) in self.names.items()))
        producer = start(program, "put", self.redis.where, "--backlog", 200, stdin=open(jobs), stdout=subprocess.DEVNULL)
        await_true("the first job", lambda: self.redis("XLEN", "jobs") > 0)
        begin = next_kill = time.monotonic()
        progress = 0
        engines = [self.restart_redis, *([self.restart_book] if self.book is not self.redis else [])]
        while producer.poll() is None or engines or self.redis.state() != (0, 0, 0):
            assert time.monotonic() < begin + self.bound, (self.redis.state(), self.longest_stay)
            self.replace_the_dead()
            done = self.redis.ended_entries()
            if time.monotonic() > next_kill and done > progress + 50:
                if self.kill_one():
                    progress, next_kill = done, time.monotonic() + self.between_kills
            if engines and done > self.count / (len(engines) + 1):
                engines.pop()()
            self.note_the_oldest()
            time.sleep(0.05)
        took = time.monotonic() - begin
        assert ended(producer) == 0
        if self.book is not self.redis:
            await_true("the ledger has forgotten the old job",
                       lambda: self.book("SELECT count(*) FROM ledger WHERE job = 'old'") == "0")
        for each in self.workers:
            last = each.await_ready().stop()
            assert "others will take" not in last, last
        assert self.redis.state() == (0, 0, 0)
        self.check(took)

    def restart_redis(self):
        self.redis.stop(self.crash)
        time.sleep(0.3)  # so that there are attempts to connect
        self.redis.start()

    def restart_book(self):
        self.book.crash()
        self.book("INSERT INTO ledger VALUES ('old', 1, now() - interval '8 days')")

    def replace_the_dead(self):
        for number, worker in enumerate(self.workers):
            if worker.has_died():
                worker.ends(-signal.SIGKILL)  # by a job
                self.crashes += 1
                self.workers[number] = self.worker()

    def kill_one(self):
        """Spares a worker with a job that runs alone: a job whose workers died five times would be given up rightly."""
        victim = random.choice(self.workers)
        victim.process.send_signal(signal.SIGSTOP)
        for _, consumer, _, deliveries in self.redis("XPENDING", "jobs", "workers", "-", "+", 1000):
            if f".{victim.process.pid}." in consumer and deliveries > 2:
                victim.process.send_signal(signal.SIGCONT)
                return False
        if victim.has_died():
            return False
        victim.kill()
        self.kills += 1
        self.workers[self.workers.index(victim)] = self.worker()
        return True

    def note_the_oldest(self):
        """The longest time for which a job that kills nothing was in the stream."""
        for entry, fields in self.redis("XRANGE", "jobs", "-", "+", "COUNT", 3):
            if self.names[fields[1]][1] != "crash":
                self.longest_stay = max(self.longest_stay, time.time() - int(entry.split("-")[0]) / 1000)

    def check(self, took):
        ledger, total = self.book.ledger()
        dead = dead_letters(self.redis)
        given_up = {name for name, (_, kind) in self.names.items() if kind in ("fail", "crash")}
        lost = set(self.names) - given_up - set(ledger)
        right_total = sum(self.names[name][0] for name in ledger)
        print(f"  {self.count} jobs in {took:.1f} s; killed: {self.book.what_is_killed}; {self.kills} kills, {self.crashes} crashes; "
              f"lost {len(lost)}, effects twice {'none' if total == right_total else f'{total - right_total} ms'}, "
              f"done again {sum(times > 1 for times in ledger.values())}, dead {len(dead)}, wrongly {len(set(dead) - given_up)}, "
              f"longest in the stream {self.longest_stay:.1f} s", flush=True)
        assert not lost, sorted(lost)
        assert total == right_total, (total, right_total)
        assert set(dead) == given_up, (dead, given_up)
        assert not set(ledger) & given_up
        for name, why in dead.items():
            assert ("its worker died" if self.names[name][1] == "crash" else "it always fails") in why, (name, why)
        assert self.kills >= 2 and self.crashes >= 2, (self.kills, self.crashes)


def storm_with_the_ledger_in_redis():
    redis = Redis()
    Storm(redis, redis, signal.SIGKILL).run()


def storm_with_the_ledger_in_postgresql():
    if not Postgres.programs:
        return print("  the one with PostgreSQL is skipped: it is not installed (Debian: postgresql)")
    Storm(Redis(), Postgres(), signal.SIGTERM).run()


def a_stopped_worker_gives_its_jobs_back():
    redis = Redis()
    start_one = lambda *more: Worker(program, redis, "--metrics", "0", "--silence", "100000", *more).await_ready()
    # So many that some have not begun at the stop. Without the give-back the others would wait for 100 s.
    first = start_one("--grace", "300", "--concurrency", "1000", "--threads", "1")
    put(redis, [f"long{number} 60000" for number in range(300)])
    first.await_metrics("jobs_in_flight 300")
    first.process.send_signal(signal.SIGHUP)  # of a terminal that closes; changes nothing
    last = first.stop()
    assert "given back 300; others will take what is pending" in last, last
    second = start_one("--grace", "0", "--concurrency", "300")
    second.await_metrics("jobs_in_flight 300")
    assert "given back 300" in second.stop()
    assert redis.state() == (300, 0, 300)
    assert all(each[3] == 0 for each in redis("XPENDING", "jobs", "workers", "-", "+", 300)), "it counts as a delivery"


def a_worker_stops_while_redis_is_away():
    redis = Redis()
    worker = Worker(program, redis, "--metrics", "0", "--grace", "100").await_ready()
    put(redis, ["long 60000"])
    worker.await_metrics("jobs_in_flight 1")
    redis.stop()
    await_true("it has seen that", lambda: "redis is away" in worker.err.read_text())
    worker.stop()
    assert "the consumer stays" in worker.err.read_text(), worker.err.read_text()
    starting = Worker(program, redis, "--metrics", "0")
    await_true("it has told that", lambda: "redis is away: " in starting.err.read_text())
    assert starting.get("/livez")[0] == 200 and starting.get("/readyz") == (503, "starting\n")
    starting.stop()
    assert "stopped before redis" in starting.err.read_text(), starting.err.read_text()


def the_queue_pushes_back_and_is_measured():
    redis = Redis()
    producer = start(program, "put", redis.where, "--backlog", "20", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    producer.stdin.write("".join(f"j{number} 5\n" for number in range(100)) + "bad 1 fail\n")
    producer.stdin.close()
    calls = lambda: int((re.search(r"evalsha:calls=(\d+)", redis("INFO", "commandstats")) or [0, 0])[1])
    await_true("it has tried in vain", lambda: calls() > 100)
    assert redis("XLEN", "jobs") == 20
    worker = Worker(program, redis, "--metrics", "0", "--keep", "100").await_ready()
    assert ended(producer) == 0
    told = re.fullmatch(r"put 101 jobs, found the backlog full (\d+) times\n", producer.stdout.read())
    assert int(told[1]) > 0, told
    worker.await_metrics("jobs_done_total 100", "jobs_dead_total 1")
    worker.await_metrics("jobs_length 0", "jobs_lag 0", "jobs_pending 0", "jobs_later 0", "jobs_dead_letters 1",
                         "jobs_failed_total 5")
    assert [worker.get(each)[0] for each in ("/readyz", "/livez", "/other")] == [200, 200, 404]
    worker.stop()

    assert list(dead_letters(redis, "--again")) == ["bad"]
    assert dead_letters(redis) == {}
    assert [fields for _, fields in redis("XRANGE", "jobs", "-", "+")] == [["job", "bad", "ms", "1", "kind", "fail", "attempt", "1"]]
    assert 100 - BOUND <= redis("TTL", "jobs:done:j0") <= 100


def mistakes_are_told():
    redis = Redis()
    for line, why in (("b x", '"x" is no number of milliseconds from 0'), ("b -1", '"-1" is no number of milliseconds'),
                      ("b 1 odd", '"odd" is none of ok, fail, flaky, crash'), ("b 1 ok more", '"more" is one word too many')):
        redis("DEL", "jobs")
        done = put(redis, ["a", "", "a2 5", line, "after"])
        assert done.returncode == 1 and "put 2 jobs" in done.stdout, done
        assert f"jobs: line 4 of the input: {why}" in done.stderr, done
        assert redis("XLEN", "jobs") == 2
    for arguments, why in ((["work", "nowhere"], "nowhere"), (["work", "127.0.0.1:1", "--concurrency", "0"], "--concurrency"),
                           (["work", redis.where, "--database", "nonsense=1"], "nonsense"), ([], "subcommand")):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=BOUND)
        assert done.returncode > 0 and why in done.stderr, done
    redis("DEL", "jobs")
    redis("SET", "jobs", "taken by another program")
    for arguments in (["work", redis.where], ["put", redis.where]):
        done = subprocess.run([program, *arguments], input="a\n", capture_output=True, text=True, timeout=BOUND)
        assert done.returncode == 1 and "WRONGTYPE" in done.stderr, done


def passes(test):
    begin, said = time.monotonic(), "passed"
    try:
        test()
    except Exception:
        said = "failed: " + traceback.format_exc()
    print(f"{test.__name__.replace('_', ' ')}, {time.monotonic() - begin:.1f} s: {said}", flush=True)
    return said == "passed"


if not shutil.which("redis-server"):
    sys.exit(print("redis-server is not installed (Debian: redis-server): skipped"))
tests = [storm_with_the_ledger_in_postgresql, storm_with_the_ledger_in_redis]
if not given.storm:
    tests += [a_stopped_worker_gives_its_jobs_back, a_worker_stops_while_redis_is_away, the_queue_pushes_back_and_is_measured,
              mistakes_are_told]
with concurrent.futures.ThreadPoolExecutor(1 if given.storm else len(tests)) as at_once:  # they wait most of the time
    sys.exit(0 if all(list(at_once.map(passes, tests))) else 1)
