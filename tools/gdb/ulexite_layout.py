"""What gdb's and lldb's scripts share: the fibers of a process or of a core file, by the table that the library keeps for
debuggers (runtime/task/debug_table.cpp).

A script gives an object `process` with find_table(), the table's address; read(address, size), bytes; symbol(address),
a text or None; and error, the exception that its debugger shows as a message.
"""

import collections
import struct

VERSION = 3
KINDS, POOLS, RINGS = 32, 256, 256
NUMBERS = """version slab_size pool_slabs slab_next slab_block_size slab_carved first_block agent_size agent_phase
agent_in_use task_object task_frame task_state task_wait_bits task_wait_since task_stack task_id task_name task_where
stack_low stack_high saved_pc saved_fp resumed_sp ring_words ring_mask ring_next ring_worker ring_scale""".split()
# recorder.hpp: trace_kind
DISPATCH, LEFT, PLACE, NAME, WAKE, PARK, UNPARK, STEAL, QUEUE, SPAN_BEGIN, SPAN_END, SPAWN = range(12)
FRESH, RUNNING, RESUMABLE, DEAD = range(4)
WAITING_PHASES = range(2, 4)  # wait_word.hpp: waiting, shielded


def word_at(memory, offset):
    return struct.unpack_from("<Q", memory, offset)[0]


class Table:
    """What the library tells of its layout, with the texts that many fibers share read once."""

    def __init__(self, process):
        self.process = process
        address = process.find_table()
        numbers = struct.unpack("<%dI" % len(NUMBERS), self.process.read(address, 4 * len(NUMBERS)))
        for name, number in zip(NUMBERS, numbers):
            setattr(self, name, number)
        if self.version != VERSION:
            raise process.error(
                "this script is for version %d of ulexite's table, the program has version %d: "
                "use the script that was installed with its library" % (VERSION, self.version))
        pointers = address + (4 * len(NUMBERS) + 7) // 8 * 8
        self.kinds = [self.read_text(word) for word in self.read_words(pointers, KINDS)]
        self.pools = [pool for pool in self.read_words(pointers + 8 * KINDS, POOLS) if pool]
        self.rings = pointers + 8 * KINDS + 8 * POOLS
        self.places = {}

    def place(self, where):
        if where not in self.places:
            self.places[where] = self.describe_place(where)
        return self.places[where]

    def describe_place(self, where):
        if where == 0:
            return "an unknown place"
        if where & 1:
            return self.process.symbol(where >> 1) or "0x%x" % (where >> 1)
        file, _, line = struct.unpack("<QQI", self.process.read(where, 20))  # libstdc++'s source_location
        return "%s:%d" % (self.read_text(file), line)

    def fibers(self):
        for pool in self.pools:
            slab = self.read_word(pool + self.pool_slabs)
            while slab:
                header = self.process.read(slab, self.first_block)
                size, count = word_at(header, self.slab_block_size), word_at(header, self.slab_carved)
                blocks = self.process.read(slab + self.first_block, size * count) if count else b""
                for i in range(count):
                    if blocks[i * size + self.agent_in_use] & 1:
                        fiber = Fiber(self, slab + self.first_block + i * size, blocks[i * size:(i + 1) * size])
                        if fiber.phase != DEAD and fiber.id:
                            yield fiber
                slab = word_at(header, self.slab_next)

    def recorders(self):
        """For each worker that records: its number, the nanoseconds of a tick, its events, the oldest first."""
        for ring in self.read_words(self.rings, RINGS):
            if not ring:
                continue
            words, mask, end, worker, scale = (
                self.read_word(ring + at)
                for at in (self.ring_words, self.ring_mask, self.ring_next, self.ring_worker, self.ring_scale))
            memory = self.process.read(words, 16 * (mask + 1))
            events = [struct.unpack_from("<QQ", memory, 16 * (i & mask)) for i in range(max(0, end - mask - 1), end)]
            yield worker, scale / 2**32, [(ticks, word >> 8 & 0xff, word >> 16, word & 0xff) for ticks, word in events]

    def describe_event(self, kind, value, detail):
        """In words, or None if that is of no interest here."""
        which, wait = detail & 0xc0, self.kinds[min(detail & 0x3f, KINDS - 1)]
        before = {0x40: "waits " + wait, 0x80: "yields", 0xc0: "has ended"}.get(which, "")
        if kind == DISPATCH:
            return ("runs #%d" % value if value else "runs a job") + (" (the one before %s)" % before if before else "")
        if kind in (SPAN_BEGIN, SPAN_END):
            return ('begins "%s"' if kind == SPAN_BEGIN else 'ends "%s"') % self.read_text(value)
        return {LEFT: "leaves it: it " + before if before else "leaves it", WAKE: "wakes #%d" % value, PARK: "sleeps",
                UNPARK: "sleeps no longer", STEAL: "takes from others", SPAWN: "spawns #%d" % value}.get(kind)

    def read_word(self, address):
        return self.read_words(address, 1)[0]

    def read_words(self, address, count):
        return struct.unpack("<%dQ" % count, self.process.read(address, 8 * count))

    def read_text(self, address):
        text = b""
        while address and b"\0" not in text and len(text) < 4096:
            # Not over the end of a page, behind which there may be nothing.
            text += self.process.read(address + len(text), 64 - (address + len(text)) % 64)
        return text.split(b"\0")[0].decode(errors="replace")


class Fiber:
    def __init__(self, table, address, block):
        task = table.agent_size
        self.table = table
        self.phase = block[task + table.task_state] & 3
        self.frame = word_at(block, task + table.task_frame)
        # A coroutine that waits has no stack, as a fiber that has not begun; its frame is a stackless_wait.
        self.is_coroutine = self.phase == FRESH and self.frame != 0
        suspended = self.phase == RESUMABLE or self.is_coroutine
        self.waits = suspended and block[table.agent_phase] in WAITING_PHASES
        self.kind = table.kinds[min(block[task + table.task_wait_bits] >> 2, KINDS - 1)]
        self.object = word_at(block, task + table.task_object)
        self.stack_descriptor = word_at(block, task + table.task_stack)
        self.id = word_at(block, task + table.task_id)
        self.name_address = word_at(block, task + table.task_name)
        self.where = word_at(block, task + table.task_where)
        self.since = struct.unpack_from("<I", block, task + table.task_wait_since)[0]

    @property
    def name(self):
        return self.table.read_text(self.name_address)

    @property
    def state(self):
        if self.waits:
            return "waits " + self.kind
        if self.is_coroutine:
            return "could run"
        return {FRESH: "not started", RUNNING: "runs"}.get(self.phase, "could run")

    def coroutines(self):
        """The functions in which the coroutines of a chain continue, the innermost first."""
        at = self.table.read_word(self.frame + 8)  # stackless_wait::continues, behind its table of virtual functions
        while at:
            resume, _, at = self.table.read_words(at, 3)  # coroutine_frame
            yield resume

    def line(self):
        state = self.state
        if self.waits and self.object:
            state += " " + self.describe_object()
        name = ' "%s"' % self.name if self.name_address else ""
        return "#%d%s: %s; spawned at %s" % (self.id, name, state, self.table.place(self.where))

    def describe_object(self):
        if self.kind.endswith("of fiber"):
            return "#%d" % self.table.read_word(self.object + self.table.task_id)
        return "0x%x" % self.object if self.object > 0xffff else "%d" % self.object  # a descriptor

    def stack(self):
        descriptor = self.table.process.read(self.stack_descriptor, 64)
        return word_at(descriptor, self.table.stack_low), word_at(descriptor, self.table.stack_high)


def list_fibers(table, argument):
    """What `info fibers` shows: all fibers, those with that text in their line, or, for "where", their groups."""
    if argument == "where":
        groups = collections.Counter((fiber.state, table.place(fiber.where)) for fiber in table.fibers())
        return ["%6d  %s; spawned at %s" % (count, state, place) for (state, place), count in groups.most_common()]
    lines = [fiber.line() for fiber in table.fibers()]
    shown = [line for line in lines if argument in line]
    return shown + ["%d of %d fibers" % (len(shown), len(lines))]


def list_events(table, most):
    """The last events of each worker that has recorded some."""
    recorders = [recorder for recorder in table.recorders() if recorder[2]]
    if not recorders:
        raise table.process.error("no worker has recorded anything: see runtime::start_trace and ULEXITE_TRACE")
    last = max(events[-1][0] for _, _, events in recorders)
    lines = []
    for worker, nanoseconds, events in recorders:
        described = ((ticks, table.describe_event(*event)) for ticks, *event in events)
        lines.append("worker %d" % worker)
        for ticks, text in [each for each in described if each[1]][-most:]:
            lines.append("%14.3f us  %s" % ((ticks - last) * nanoseconds / 1000, text))
    return lines


def find_fiber(table, number):
    for fiber in table.fibers():
        if fiber.id == number:
            return fiber
    raise table.process.error("there is no fiber %d" % number)
