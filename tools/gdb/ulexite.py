"""The fibers of a program that uses ulexite, in gdb: in a live process and in a core file, with or without debug
information.

  (gdb) source /usr/local/share/ulexite/gdb/ulexite.py
  (gdb) info fibers                  every fiber, a line each
  (gdb) info fibers TEXT             those with TEXT in their line: a name, "waits", "mutex", a file
  (gdb) info fibers where            how many wait for the same kind of thing and were spawned at the same place
  (gdb) fiber 12                     the backtrace of fiber 12
  (gdb) fiber 12 COMMAND             COMMAND, as if fiber 12 were the current thread
  (gdb) fiber apply all COMMAND      for each fiber

A fiber that waits runs on no thread. Its frames are shown as the callers of the current thread's frame 0, which is not
the fiber's: its own begin at 1. Nothing is written to the process.
"""

import collections
import re
import struct

import gdb
import gdb.unwinder

VERSION = 1
KINDS, POOLS = 32, 256
NUMBERS = """version slab_size pool_slabs slab_next slab_block_size slab_carved first_block agent_size agent_phase
agent_in_use task_object task_frame task_state task_wait_bits task_wait_since task_standing task_id task_name task_where
stack_low stack_high saved_pc saved_fp resumed_sp""".split()
FRESH, RUNNING, RESUMABLE, DEAD = range(4)
WAITING_PHASES = range(2, 6)  # wait_word.hpp: waiting, shielded, guarded, bare


def read(address, size):
    return gdb.selected_inferior().read_memory(address, size).tobytes()


def word_at(memory, offset):
    return struct.unpack_from("<Q", memory, offset)[0]


def read_word(address):
    return word_at(read(address, 8), 0)


def read_text(address):
    text = b""
    while address and b"\0" not in text and len(text) < 4096:
        # Not over the end of a page, behind which there may be nothing.
        text += read(address + len(text), 64 - (address + len(text)) % 64)
    return text.split(b"\0")[0].decode(errors="replace")


class Table:
    """What the library tells of its layout, with the texts that many fibers share read once."""

    def __init__(self):
        address = self.find()
        numbers = struct.unpack("<%dI" % len(NUMBERS), read(address, 4 * len(NUMBERS)))
        for name, number in zip(NUMBERS, numbers):
            setattr(self, name, number)
        if self.version != VERSION:
            raise gdb.GdbError(
                "this script is for version %d of ulexite's table, the program has version %d: "
                "use the script that was installed with its library" % (VERSION, self.version))
        pointers = address + (4 * len(NUMBERS) + 7) // 8 * 8
        self.kinds = [read_text(word) for word in struct.unpack("<%dQ" % KINDS, read(pointers, 8 * KINDS))]
        self.pools = [pool for pool in struct.unpack("<%dQ" % POOLS, read(pointers + 8 * KINDS, 8 * POOLS)) if pool]
        self.places = {}
        self.now = None

    @staticmethod
    def find():
        """By the note .note.ulexite, whose description is the distance from itself to the table."""
        found = re.search(r"(0x[0-9a-f]+) - 0x[0-9a-f]+ is \.note\.ulexite", gdb.execute("info files", to_string=True))
        if not found:
            raise gdb.GdbError("no ulexite in this program: it has no section .note.ulexite")
        description = int(found.group(1), 16) + 20
        return description + struct.unpack("<q", read(description, 8))[0]

    def place(self, where):
        if where not in self.places:
            self.places[where] = self.describe_place(where)
        return self.places[where]

    def describe_place(self, where):
        if where == 0:
            return "an unknown place"
        if where & 1:
            symbol = gdb.execute("info symbol 0x%x" % (where >> 1), to_string=True).strip().split(" in section")[0]
            return "0x%x" % (where >> 1) if symbol.startswith("No symbol") else symbol
        file, _, line = struct.unpack("<QQI", read(where, 20))  # libstdc++'s source_location
        return "%s:%d" % (read_text(file), line)

    def fibers(self):
        for pool in self.pools:
            slab = read_word(pool + self.pool_slabs)
            while slab:
                header = read(slab, self.first_block)
                size, count = word_at(header, self.slab_block_size), word_at(header, self.slab_carved)
                blocks = read(slab + self.first_block, size * count) if count else b""
                for i in range(count):
                    if blocks[i * size + self.agent_in_use] & 1:
                        fiber = Fiber(self, slab + self.first_block + i * size, blocks[i * size:(i + 1) * size])
                        if fiber.phase != DEAD and fiber.id:
                            yield fiber
                slab = word_at(header, self.slab_next)


class Fiber:
    def __init__(self, table, address, block):
        task = table.agent_size
        self.table = table
        self.phase = block[task + table.task_state] & 3
        self.waits = self.phase == RESUMABLE and block[table.agent_phase] in WAITING_PHASES
        self.kind = table.kinds[min(block[task + table.task_wait_bits] >> 2, KINDS - 1)]
        self.object = word_at(block, task + table.task_object)
        self.frame = word_at(block, task + table.task_frame)
        self.standing = word_at(block, task + table.task_standing)
        self.id = word_at(block, task + table.task_id)
        self.name_address = word_at(block, task + table.task_name)
        self.where = word_at(block, task + table.task_where)
        self.since = struct.unpack_from("<I", block, task + table.task_wait_since)[0]

    @property
    def name(self):
        return read_text(self.name_address)

    @property
    def state(self):
        if self.waits:
            return "waits " + self.kind
        return {FRESH: "not started", RUNNING: "runs"}.get(self.phase, "could run")

    def line(self):
        state = self.state
        if self.waits and self.object:
            state += " " + self.describe_object()
        name = ' "%s"' % self.name if self.name_address else ""
        return "#%d%s: %s; spawned at %s" % (self.id, name, state, self.table.place(self.where))

    def describe_object(self):
        if self.kind.endswith("of fiber"):
            return "#%d" % read_word(self.object + self.table.task_id)
        return "0x%x" % self.object if self.object > 0xffff else "%d" % self.object  # a descriptor

    def stack(self):
        descriptor = read(self.standing, 64)
        return word_at(descriptor, self.table.stack_low), word_at(descriptor, self.table.stack_high)

    def thread(self):
        """The thread that stands on the stack of a running fiber."""
        low, high = self.stack()
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
        gdb.invalidate_cached_frames()

    def __call__(self, pending):
        arm = "aarch64" in gdb.selected_inferior().architecture().name() if self.fiber else False
        if not self.fiber or int(pending.read_register("sp" if arm else "rsp")) != self.sp:
            return None
        table, frame = self.fiber.table, self.fiber.frame
        number = gdb.lookup_type("long")
        sp = frame + table.resumed_sp
        # The id lies below the fiber's frames, or gdb takes the step onto another stack for a corrupt one.
        info = pending.create_unwind_info(FrameId(gdb.Value(sp - 256).cast(number), pending.read_register("pc")))
        names = ("pc", "x29", "sp") if arm else ("rip", "rbp", "rsp")
        values = (read_word(frame + table.saved_pc), read_word(frame + table.saved_fp), sp)
        for name, value in zip(names, values):
            info.add_saved_register(name, gdb.Value(value).cast(number))
        return info


unwinder = FiberUnwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


def run_in(fiber, command):
    print(fiber.line())
    before = gdb.selected_thread()
    try:
        if fiber.phase == RESUMABLE:
            unwinder.select(fiber)
            gdb.execute("frame 1", to_string=True)
            gdb.execute(command)
        elif fiber.phase == RUNNING:
            if fiber.thread():
                gdb.execute(command)
            else:
                print("no thread stands on its stack: it is about to be resumed, or to wait")
    finally:
        unwinder.select(None)
        before.switch()


class InfoFibers(gdb.Command):
    """List the fibers of every ulexite runtime: all, those with a text in their line, or "where": in groups."""

    def __init__(self):
        super().__init__("info fibers", gdb.COMMAND_STATUS)

    def invoke(self, argument, tty):
        table = Table()
        if argument == "where":
            groups = collections.Counter((fiber.state, table.place(fiber.where)) for fiber in table.fibers())
            for (state, place), count in groups.most_common():
                print("%6d  %s; spawned at %s" % (count, state, place))
            return
        count = shown = 0
        lines = []
        for fiber in table.fibers():
            count += 1
            line = fiber.line()
            if argument in line:
                shown += 1
                lines.append(line)
        print("\n".join(lines + ["%d of %d fibers" % (shown, count)]))


class FiberCommand(gdb.Command):
    """fiber N [COMMAND]: COMMAND (bt) in fiber N. fiber apply all [COMMAND]: in each fiber."""

    def __init__(self):
        super().__init__("fiber", gdb.COMMAND_STACK)

    def invoke(self, argument, tty):
        table = Table()
        every = re.match(r"apply\s+all\b\s*(.*)", argument)
        if every:
            for fiber in table.fibers():
                run_in(fiber, every.group(1) or "bt")
            return
        one = re.match(r"#?(\d+)\s*(.*)", argument)
        if not one:
            raise gdb.GdbError("fiber N [COMMAND], or fiber apply all [COMMAND]; N is a number of info fibers")
        for fiber in table.fibers():
            if fiber.id == int(one.group(1)):
                return run_in(fiber, one.group(2) or "bt")
        raise gdb.GdbError("there is no fiber %s" % one.group(1))


InfoFibers()
FiberCommand()
