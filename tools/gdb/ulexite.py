"""The fibers of a program that uses ulexite, in gdb: in a live process and in a core file, with or without debug
information.

  (gdb) source /usr/local/share/ulexite/gdb/ulexite.py
  (gdb) info fibers                  every fiber, a line each
  (gdb) info fibers TEXT             those with TEXT in their line: a name, "waits", "mutex", a file
  (gdb) info fibers where            how many wait for the same kind of thing and were spawned at the same place
  (gdb) fiber 12                     the backtrace of fiber 12
  (gdb) fiber 12 COMMAND             COMMAND, as if fiber 12 were the current thread
  (gdb) fiber apply all COMMAND      for each fiber
  (gdb) info fiber-events [N]        the last N events (20) of each worker, if a trace was being recorded

A fiber that waits runs on no thread. Its frames are the callers of the current thread's innermost function, and have
the numbers that follow. bt leaves out that function, and those by which the library waits; bt -no-filters shows all.
Nothing is written to the process.
"""

import itertools
import os
import re
import sys

import gdb
import gdb.FrameIterator
import gdb.unwinder

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from ulexite_layout import RESUMABLE, RUNNING, Table, find_fiber, list_events, list_fibers


class Process:
    error = gdb.GdbError

    @staticmethod
    def read(address, size):
        return gdb.selected_inferior().read_memory(address, size).tobytes()

    @staticmethod
    def find_table():
        """By the note .note.ulexite, whose description is the distance from itself to the table."""
        found = re.search(r"(0x[0-9a-f]+) - 0x[0-9a-f]+ is \.note\.ulexite", gdb.execute("info files", to_string=True))
        if not found:
            raise gdb.GdbError("no ulexite in this program: it has no section .note.ulexite")
        description = int(found.group(1), 16) + 20
        return description + int.from_bytes(Process.read(description, 8), "little", signed=True)

    @staticmethod
    def symbol(address):
        symbol = gdb.execute("info symbol 0x%x" % address, to_string=True).strip().split(" in section")[0]
        return None if symbol.startswith("No symbol") else symbol


process = Process()


def thread_of(fiber):
    """The thread that stands on the stack of a running fiber."""
    low, high = fiber.stack()
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        if low <= int(gdb.parse_and_eval("(unsigned long)$sp")) < high:
            return thread
    return None


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class FiberUnwinder(gdb.unwinder.Unwinder):
    """Lets the caller of one thread's innermost frame be the frame at which a fiber was left."""

    def __init__(self):
        super().__init__("ulexite")
        self.fiber = None
        self.sp = 0

    def select(self, fiber):
        self.fiber = fiber
        self.sp = int(gdb.parse_and_eval("(unsigned long)$sp")) if fiber else 0
        frames_of_fiber.enabled = fiber is not None  # otherwise bt is gdb's own
        gdb.invalidate_cached_frames()

    def __call__(self, pending):
        arm = "aarch64" in gdb.selected_inferior().architecture().name() if self.fiber else False
        if not self.fiber or int(pending.read_register("sp" if arm else "rsp")) != self.sp:
            return None
        table, frame = self.fiber.table, self.fiber.frame
        number = gdb.lookup_type("long")
        sp = frame + table.resumed_sp
        # The id must be below the fiber's frames. Otherwise gdb takes the step to another stack for a corrupt stack.
        info = pending.create_unwind_info(FrameId(gdb.Value(sp - 256).cast(number), pending.read_register("pc")))
        names = ("pc", "x29", "sp") if arm else ("rip", "rbp", "rsp")
        values = (table.read_word(frame + table.saved_pc), table.read_word(frame + table.saved_fp), sp)
        for name, value in zip(names, values):
            info.add_saved_register(name, gdb.Value(value).cast(number))
        return info


unwinder = FiberUnwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


class FiberFrames:
    """The filter of bt: a chosen fiber's frames begin where the program, or the public part of the library, waits."""

    name, priority = "ulexite", 100

    def __init__(self):
        self.enabled = False
        gdb.frame_filters[self.name] = self

    @staticmethod
    def shown(frames, frame_of):
        if not unwinder.fiber:  # the user has enabled it
            return frames
        low, high = unwinder.fiber.stack()

        def is_left_out(item):
            frame = frame_of(item)
            foreign = not low <= int(frame.read_register("sp")) < high  # the thread's, with callers that are inlined
            return foreign or (frame.name() or "").startswith("ulexite::detail::")

        return itertools.dropwhile(is_left_out, frames)

    def filter(self, frames):
        return self.shown(frames, lambda decorated: decorated.inferior_frame())


frames_of_fiber = FiberFrames()


def select_first_frame():
    frames = gdb.FrameIterator.FrameIterator(gdb.newest_frame())
    first = next(frames_of_fiber.shown(frames, lambda frame: frame), None)
    if not first:
        raise gdb.GdbError("its stack cannot be read")
    first.select()


def run_in(fiber, command):
    print(fiber.line())
    before = gdb.selected_thread()
    try:
        if fiber.phase == RESUMABLE:
            unwinder.select(fiber)
            select_first_frame()
            gdb.execute(command)
        elif fiber.phase == RUNNING:
            if thread_of(fiber):
                gdb.execute(command)
            else:
                print("no thread stands on its stack: it is about to be resumed, or to wait")
        elif fiber.is_coroutine:
            print("a coroutine, which has no stack while it waits:")
            for number, resume in enumerate(fiber.coroutines()):
                print("#%d  %s" % (number, gdb.execute("info symbol %d" % resume, to_string=True).strip()))
    finally:
        unwinder.select(None)
        before.switch()


class InfoFibers(gdb.Command):
    """List the fibers of every ulexite runtime: all, those with a text in their line, or "where": in groups."""

    def __init__(self):
        super().__init__("info fibers", gdb.COMMAND_STATUS)

    def invoke(self, argument, tty):
        print("\n".join(list_fibers(Table(process), argument)))


class FiberCommand(gdb.Command):
    """fiber N [COMMAND]: COMMAND (bt) in fiber N. fiber apply all [COMMAND]: in each fiber."""

    def __init__(self):
        super().__init__("fiber", gdb.COMMAND_STACK)

    def invoke(self, argument, tty):
        table = Table(process)
        every = re.match(r"apply\s+all\b\s*(.*)", argument)
        if every:
            for fiber in table.fibers():
                run_in(fiber, every.group(1) or "bt")
            return
        one = re.match(r"#?(\d+)\s*(.*)", argument)
        if not one:
            raise gdb.GdbError("fiber N [COMMAND], or fiber apply all [COMMAND]; N is a number of info fibers")
        run_in(find_fiber(table, int(one.group(1))), one.group(2) or "bt")


class InfoFiberEvents(gdb.Command):
    """The last events of each worker, as far as a trace was being recorded: info fiber-events [N]."""

    def __init__(self):
        super().__init__("info fiber-events", gdb.COMMAND_STATUS)

    def invoke(self, argument, tty):
        print("\n".join(list_events(Table(process), int(argument or 20))))


InfoFibers()
FiberCommand()
InfoFiberEvents()
