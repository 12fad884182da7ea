#!/usr/bin/env python3
"""mutants.py [NAME...]: puts one defect after the other into a copy of the library, and expects the explorations to find it.

Each defect is a text of a file and what stands there instead. The copy is build/mutants; it is built like dev. Found is a
defect if a test of the suite Library fails, crashes or hangs, or one of the worlds does. Prints which test failed, and in
which schedule. Ends with status 1 if a defect was not found, or its text is no longer in the file.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"

# (name, file, text, instead, program)
LIBRARY = "unit_testing"
MUTANTS = [
    ("a claim of a wait that is over counts", "sync/wait/wait_queue.hpp",
     "if (result == claim_result::lost) return {};", "if (result == claim_result::lost) return {&node, nullptr};", LIBRARY),
    ("a timed-out waiter stays in its queue", "sync/wait/wait_queue.hpp",
     "if (node.linked()) intrusive_list<wait_node>::remove(node);", "static_cast<void>(node);", LIBRARY),
    ("close wakes receivers only", "sync/channel.hpp",
     "{&senders_, &receivers_}", "{&receivers_, &receivers_}", LIBRARY),
    ("a waiter that gives up the mutex stays there", "sync/mutex.cpp",
     "    if (detail::suspend_and_unlock(*waiter.who, guard_, waiting(how), deadline) != detail::wake_reason::notified) {\n      unlink(waiter);",
     "    if (detail::suspend_and_unlock(*waiter.who, guard_, waiting(how), deadline) != detail::wake_reason::notified) {", LIBRARY),
    ("event::set wakes no earlier waiter", "sync/event.cpp",
     "  queue_.claim_all(woken);\n", "", LIBRARY),
    ("the last done of a wait_group wakes no waiter", "sync/wait_group.cpp",
     "if (zero) queue_.claim_all(woken);", "if (zero && queue_.empty()) queue_.claim_all(woken);", LIBRARY),
    ("a semaphore's release serves no waiter", "sync/semaphore.cpp",
     "    permits_ += n;\n    serve_oldest(woken);", "    permits_ += n;", LIBRARY),
    ("a semaphore keeps the permit that it gives", "sync/semaphore.cpp",
     "    permits_ -= n;\n    wait_queue::serve", "    wait_queue::serve", LIBRARY),
    ("a semaphore's waiter that leaves lets no other pass", "sync/semaphore.cpp",
     "  wait_queue::remove(node);\n  serve_oldest(woken);  // it may have wanted more than those behind it\n",
     "  wait_queue::remove(node);\n", LIBRARY),
    ("a writer that gives up lets no reader in", "sync/shared_mutex.cpp",
     "  unlock_and_let_in();  // lets readers in that wait behind the leaving writer", "  guard_.unlock();", LIBRARY),
    ("a writer is let in beside readers", "sync/shared_mutex.cpp",
     "    if (!admits(next->as)) {", "    if (writer_) {", LIBRARY),
    ("notify_all notifies one", "sync/condition_variable.cpp", "if (!all) break;", "break;", LIBRARY),
    ("notify_one of condition_variable_any notifies no waiter", "sync/condition_variable_any.cpp",
     "    (void)notify_oldest(woken);", "", LIBRARY),
    ("a child that is made after the stop gets no request", "sync/task_group.cpp",
     "  if (stop_) who.agent().word.request_stop();\n", "", LIBRARY),
    ("a stop of a group wakes no child", "sync/task_group.cpp", "  wake_stopped();\n  return true;", "  return true;", LIBRARY),
    ("the last child of a group wakes no waiter", "sync/task_group.cpp",
     "if (--size_ == 0) queue_.claim_all(woken);", "if (--size_ == 0 && queue_.empty()) queue_.claim_all(woken);", LIBRARY),
    ("the joiner is not woken", "runtime/task/task.cpp",
     "  if (joiner) resume(*joiner, here);\n  return here;", "  return here;", LIBRARY),
    ("a join that times out stays the joiner", "runtime/task/task.cpp",
     "  joiner_ = nullptr;\n  return has_ended();", "  return has_ended();", LIBRARY),
    ("a broken promise is not reported", "sync/future.cpp", "  broken_ = true;\n  ready_.set();", "  broken_ = true;", LIBRARY),
    ("a stopped fiber is not woken", "runtime/task/rare_task_state.cpp",
     "  if (agent().word.cancel()) resume(agent());\n  return first;", "  return first;", LIBRARY),
    ("a timed-out notification of a condition variable is lost", "sync/condition_variable.cpp",
     "  if (node.notified) return std::cv_status::no_timeout;\n", "", LIBRARY),
    ("a waiter that leaves stays in the mutex's queue", "sync/condition_variable.cpp",
     "  if (node.requeued) node.of.unlink(node);\n", "", LIBRARY),
    ("a deadline does not end with its scope", "sync/cancellation.hpp",
     "    self_.deadline = outer_;\n    self_.expired = expired_;", "", LIBRARY),
    ("call_once counts a call that threw", "sync/call_once.hpp",
     "    function();\n    done_.store(true, std::memory_order_release);  // A",
     "    done_.store(true, std::memory_order_release);  // A\n    function();", LIBRARY),
    ("kv_server forgets the beginning of a request", "examples/kv_server/request_parser.hpp",
     "bytes_.append(bytes);", "bytes_.assign(bytes);", "world_kv_server"),
    ("kv_server sends a part of its replies", "examples/kv_server/session.cpp",
     "    client_.write(replies_.text());", "    client_.write_some(replies_.text().data(), replies_.text().size());",
     "world_kv_server"),
    ("kv_server ends a connection with its last requests unanswered", "examples/kv_server/session.cpp",
     "    send();\n    return more;", "    if (more) return more;\n    send();\n    return more;", "world_kv_server"),
    ("redis_counter takes a command that was sent for one that was not", "interop/redis_connection.hpp",
     "    greeted_ = true;\n", "", "world_redis_counter"),
    ("redis_counter repeats a command after a lost reply", "interop/redis_pool.hpp",
     "if (why.sent() || attempt == most_attempts) throw;", "if (attempt == most_attempts) throw;", "world_redis_counter"),
    ("redis_counter does not give its connections back", "interop/redis_pool.hpp",
     "      connection_.reset();\n      from_.free_.release();", "      connection_.reset();", "world_redis_counter"),
    ("tcp_proxy begins again after a part", "examples/tcp_proxy/session.cpp",
     "buffer.data() + sent", "buffer.data()", "world_tcp_proxy"),
    ("tcp_proxy does not pass on the end", "examples/tcp_proxy/session.cpp",
     "  to.shutdown_write(error);\n", "", "world_tcp_proxy"),
    ("tcp_proxy takes a transfer that was cut for a whole one", "examples/tcp_proxy/session.cpp",
     "    if (error) return fail(from, error);\n    if (got == 0) break;", "    if (error || got == 0) break;", "world_tcp_proxy"),
    ("worker_pool ends while a job waits for another attempt", "examples/worker_pool/pool.cpp",
     "under_way_ > 0 || waiting_for_retry_ > 0 || has_next_", "under_way_ > 0 || has_next_", "world_worker_pool"),
    ("worker_pool accepts a retry while a job waits for a worker", "examples/worker_pool/pool.cpp",
     "running && !has_next_, ux::on_receive(again_", "running, ux::on_receive(again_", "world_worker_pool"),
    ("worker_pool cancels at the first signal", "examples/worker_pool/pool.cpp",
     "return phase_ == phase::draining && under_way_ > 0;", "return false;", "world_worker_pool"),
    ("chat does not end a message at its end", "examples/chat/session.cpp", " && !socket_.is_message_done()", "", "world_chat"),
    ("chat does not notice that the server stops", "examples/chat/session.cpp",
     "[&] { why = {websocket::going_away, \"the server is stopping\"}; }", "[] {}", "world_chat"),
    ("chat delivers without the lock of the rooms", "examples/chat/rooms.hpp",
     "lock(guard) {}\n    ulexite::shield to_the_end;\n    std::lock_guard<ulexite::mutex> lock;",
     "lock(guard, std::defer_lock) {}\n    ulexite::shield to_the_end;\n    std::unique_lock<ulexite::mutex> lock;", "world_chat"),
    ("chat keeps the room of members that were too slow", "examples/chat/rooms.cpp",
     "  if (found == rooms_.end()) return;\n  if (std::erase(found->second.here, &who) > 0) {",
     "  if (found == rooms_.end() || std::ranges::count(found->second.here, &who) == 0) return;\n"
     "  if (std::erase(found->second.here, &who) > 0) {", "world_chat"),
    ("chat lets a removed member talk", "examples/chat/rooms.cpp",
     "  if (found == rooms_.end() || std::ranges::count(found->second.here, &who) == 0) return;\n",
     "  if (found == rooms_.end()) return;\n", "world_chat"),
    ("a coroutine's timed-out notification is lost", "coroutine/locks.hpp",
     "        if (node_.notified) reason_ = wake_reason::notified;\n", "", LIBRARY),
    ("a coroutine takes a mutex without its turn", "coroutine/locks.hpp",
     "return taken_ || take_turn(self, queued_);", "return true;", LIBRARY),
    ("a select of a coroutine begins again after its choice", "coroutine/select.hpp",
     "if (chosen_ || reason == wake_reason::cancelled) return true;",
     "if (reason == wake_reason::cancelled) return true;", LIBRARY),
]


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def judge(program):
    """What has failed, or None."""
    target = COPY / "build" / "dev" / "tests" / program
    command = [str(target)]
    if program == LIBRARY:
        command += ["--gtest_filter=Library.*", "--gtest_brief=1"]
    try:
        done = run(*command, timeout=120)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"crashes (signal {-done.returncode})"
    text = done.stdout + done.stderr
    number = re.search(r"schedule (\d+) fails: (.*)", text)
    tests = list(dict.fromkeys(re.findall(r"FAILED  \] (Library\.\w+)", text)))
    return (f"schedule {number[1]}: {number[2][:70]}" if number else "fails") + (f" ({', '.join(tests)})" if tests else "")


def main():
    wanted = sys.argv[1:]
    COPY.mkdir(parents=True, exist_ok=True)
    for old in COPY.iterdir():
        if old.is_dir() and old.name != "build":
            shutil.rmtree(old)
    for name in filter(None, run("git", "-C", str(ROOT), "ls-files", "-z").stdout.split("\0")):
        (COPY / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, COPY / name)  # with its time, for ninja
    run("cmake", "--preset", "dev", "-DULEXITE_WERROR=OFF", cwd=COPY)
    missed = 0
    for name, file, text, instead, program in MUTANTS:
        if program is None or (wanted and name not in wanted):
            continue
        path = COPY / file
        original = path.read_text()
        if original.count(text) != 1:
            print(f"{name}: its text is in {file} {original.count(text)} times")
            missed += 1
            continue
        path.write_text(original.replace(text, instead))
        built = run("cmake", "--build", "build/dev", "--target", program, cwd=COPY)
        found = judge(program) if built.returncode == 0 else None
        path.write_text(original)
        if built.returncode != 0:
            print(f"{name}: does not compile\n{built.stdout[-2000:]}")
        print(f"{name}: {found or 'NOT FOUND'}", flush=True)
        missed += found is None
    return 1 if missed else 0


sys.exit(main())
