"""The fibers of a program that uses ulexite, in lldb: in a live process and in a core file, with or without debug
information.

  (lldb) command script import /usr/local/share/ulexite/lldb/ulexite_lldb.py
  (lldb) fibers                  every fiber, a line each
  (lldb) fibers TEXT             those with TEXT in their line: a name, "waits", "mutex", a file
  (lldb) fibers where            how many wait for the same kind of thing and were spawned at the same place
  (lldb) fiber 12                the backtrace of fiber 12
  (lldb) fiber-events [N]        the last N events (20) of each worker, if a trace was being recorded

A fiber that waits runs on no thread. lldb makes a thread of it, of the same number, which stays selected: so commands
as `frame select` and `frame variable` are that fiber's, until the process runs on. Nothing is written to the process.
"""

import os
import struct
import sys

import lldb

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "gdb"))
from ulexite_layout import RESUMABLE, RUNNING, Table, find_fiber, list_events, list_fibers


FIRST_THREAD = 1 << 32  # above the kernel's numbers
# The fiber that is a thread, if there is one: its number, and lldb's of the stop. lldb loads this file twice, so that
# is kept elsewhere.
chosen = lldb.__dict__.setdefault("ulexite_chosen", [])


class Error(Exception):
    pass


class Process:
    """Of lldb what the table needs."""

    error = Error

    def __init__(self, process):
        self.process, self.target = process, process.GetTarget()

    def read(self, address, size):
        error = lldb.SBError()
        memory = self.process.ReadMemory(address, size, error) if size else b""
        if error.Fail():  # a core file lacks what does not change: that is in the program
            error = lldb.SBError()
            memory = self.target.ReadMemory(lldb.SBAddress(address, self.target), size, error)
        if error.Fail():
            raise Error(str(error))
        return memory

    def find_table(self):
        """By the note .note.ulexite, whose description is the distance from itself to the table."""
        for module in self.target.module_iter():
            section = module.FindSection(".note.ulexite")
            if section.IsValid():
                description = section.GetLoadAddress(self.target) + 20
                return description + struct.unpack("<q", self.read(description, 8))[0]
        raise Error("no ulexite in this program: it has no section .note.ulexite")

    def symbol(self, address):
        place = self.target.ResolveLoadAddress(address)
        if not place.GetSymbol().IsValid():
            return None
        offset = address - place.GetSymbol().GetStartAddress().GetLoadAddress(self.target)
        return "%s + %d" % (place.GetSymbol().GetName(), offset)


# The registers that a switch keeps, in the order of the data below. lldb asks for these names.
X86 = [("rip", "pc", 16), ("rbp", "fp", 6), ("rsp", "sp", 7)]
ARM = [("pc", "pc", 32), ("fp", "fp", 29), ("sp", "sp", 31)]


class OperatingSystemPlugIn:
    """The fiber that was asked for, as a thread: lldb asks for it when the path of this file is set."""

    def __init__(self, process):
        self.process = process

    def get_thread_info(self):
        return [{"tid": FIRST_THREAD + number, "name": "fiber %d" % number, "state": "stopped", "stop_reason": "none"}
                for number, stop in chosen if stop == self.process.GetStopID()]

    def get_register_info(self):
        names = ARM if "aarch64" in self.process.GetTarget().GetTriple() else X86
        return {"sets": ["general"], "registers": [
            {"name": name, "bitsize": 64, "offset": 8 * i, "encoding": "uint", "format": "hex", "set": 0, "gcc": dwarf,
             "dwarf": dwarf, "generic": generic} for i, (name, generic, dwarf) in enumerate(names)]}

    def get_register_data(self, number):
        table = Table(Process(self.process))
        frame = find_fiber(table, number - FIRST_THREAD).frame
        return struct.pack("<QQQ", table.read_word(frame + table.saved_pc), table.read_word(frame + table.saved_fp),
                           frame + table.resumed_sp)


def command(function):
    """Called with the process and the argument; it returns lines, or raises Error."""

    def run(debugger, argument, context, result, internal):
        process = context.process
        try:
            if not process or not process.IsValid():
                raise Error("there is no process")
            for line in function(process, argument.strip()):
                result.PutCString(line)
        except Error as error:
            result.SetError(str(error))

    return run


@command
def fibers(process, argument):
    return list_fibers(Table(Process(process)), argument)


@command
def fiber_events(process, argument):
    return list_events(Table(Process(process)), int(argument or 20))


@command
def fiber(process, argument):
    if not argument.lstrip("#").isdigit():
        raise Error("fiber N; N is a number of fibers")
    found = find_fiber(Table(Process(process)), int(argument.lstrip("#")))
    if found.is_coroutine:
        resolve = process.GetTarget().ResolveLoadAddress
        return [found.line(), "a coroutine, which has no stack while it waits:"] + [
            "#%d  %s" % (number, resolve(resume)) for number, resume in enumerate(found.coroutines())]
    thread = thread_of(process, found)
    if thread is None:
        return [found.line(), "it has no frames"]
    process.SetSelectedThread(thread)
    return [found.line()] + [str(frame) for frame in thread]


def thread_of(process, found):
    if found.phase == RUNNING:
        low, high = found.stack()
        on_it = [thread for thread in process if low <= thread.GetFrameAtIndex(0).GetSP() < high]
        return on_it[0] if on_it else None
    if found.phase != RESUMABLE:
        return None
    chosen[:] = [(found.id, process.GetStopID())]
    debugger = process.GetTarget().GetDebugger()
    debugger.HandleCommand("settings set target.process.python-os-plugin-path '%s'" % os.path.realpath(__file__))
    thread = process.GetThreadByID(FIRST_THREAD + found.id)
    return thread if thread.IsValid() else None


def __lldb_init_module(debugger, internal):
    for name, function in ("fibers", "fibers"), ("fiber", "fiber"), ("fiber-events", "fiber_events"):
        debugger.HandleCommand("command script add -o -f %s.%s %s" % (__name__, function, name))
