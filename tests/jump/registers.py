#!/usr/bin/env python3
"""Compiles values that live over the jump, and fails if a register is read after the jump before it is written.

    registers.py SOURCE_FOLDER COMPILER...

Each compiler compiles registers.cpp with each of the flags that it knows. So that the search is known to find something, it
also reads a jump.hpp that names no register: there each kind of register must be kept.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

FLAGS = [[], ["-mavx"], ["-mavx512f"], ["-mapxf"], ["-march=sapphirerapids"], ["-march=native"]]
SOURCE = pathlib.Path(__file__).with_name("registers.cpp")
REGISTER = re.compile(r"%(st\(\d\)|\w+)")
# These write their last operand without a read of it.
COPIES = re.compile(r"v?(movs?[bwlqsd]|movs?[sz][bw][lq]|movabsq|mov[au]p[sd]|movdq[au]\d*|kmov[bwdq]|lea[lq]|popp?[lq]?)$")


def whole(register):
    """The register of which this is a part."""
    if extended := re.match(r"(r\d+)[bwd]?$", register):
        return extended[1]
    if vector := re.match(r"[xyz]mm(\d+)$", register):
        return "xmm" + vector[1]
    if old := re.match(r"[er]?([abcd])[xlh]$", register):
        return f"r{old[1]}x"
    if old := re.match(r"[er]?(si|di|bp|sp)l?$", register):
        return "r" + old[1]
    return register


def x87_depth(name, operands, depth):
    """The depth of the x87 stack after the instruction. Negative: it used what was there before."""
    needed = max([int(i) + 1 for i in re.findall(r"st\((\d)\)", operands)] + [1])
    if name.startswith("fld"):
        return depth + 1 if "%st" not in operands or needed <= depth else -1
    if needed > depth:
        return -1
    return depth - 1 if name.startswith("fst") and name.endswith(("p", "pt")) else depth


def kept_after_jump(lines):
    """The registers of a function that are read after its jump before they are written."""
    written, kept, depth, jumped = {"rsp", "rdi", "rsi", "rip"}, set(), 0, False
    for line in lines:
        name, _, operands = line.partition("#")[0].strip().partition("\t" if "\t" in line.strip() else " ")
        operands = operands.strip()
        if not jumped:
            jumped = name.startswith("jmp") and operands == "*%rcx"
            continue
        if not name or name.startswith(".") or name.endswith(":"):
            continue
        if name.startswith("ret"):
            return kept
        if name.startswith("f"):
            depth = x87_depth(name, operands, depth)
            if depth < 0:
                kept.add("st")
                depth = 0
            operands = re.sub(r"%st(\(\d\))?", "", operands)
        inputs, target = operands, None
        if name.startswith("pop2"):
            written |= {whole(each) for each in REGISTER.findall(operands)}
            continue
        if COPIES.match(name) and re.search(r"(^|,\s*)%\w+$", operands):
            inputs, _, target = operands.rpartition("%")
        kept |= {whole(each) for each in REGISTER.findall(inputs)} - written
        if target:
            written.add(whole(target))
    raise SystemExit("a function without a jump, or without an end after it")


def functions(assembly):
    """The lines of each function keep_*."""
    for name, body in re.findall(r"^keep_(\w+):[^\n]*\n(.*?)^\t\.size\tkeep_\1,", assembly, re.M | re.S):
        yield name, body.splitlines()


def kept_of(compiler, flags, include):
    """For each function the registers that are kept, or None if the compiler does not know the flags."""
    command = [compiler, "-std=c++20", "-O2", "-w", *flags, "-S", "-o", "-", *[f"-I{each}" for each in include]]
    probe = subprocess.run([*command, "-x", "c++", "/dev/null"], capture_output=True, text=True)
    if probe.returncode != 0 or "unknown" in probe.stderr:
        return None
    made = subprocess.run([*command, str(SOURCE)], check=True, capture_output=True, text=True)
    return {name: kept_after_jump(lines) for name, lines in functions(made.stdout)}


def without_names(root, folder):
    """An include folder with a jump.hpp whose jump names no register."""
    text = (root / "fiber/jump.hpp").read_text()
    named = re.search(r':\n\s*: "rax".*?"cc", "memory"\);', text, re.S)
    (folder / "ulexite/fiber").mkdir(parents=True)
    (folder / "ulexite/fiber/jump.hpp").write_text(text.replace(named[0], ': : "rcx", "cc", "memory");'))
    return folder


def wanted(name, registers):
    """Whether the registers that are kept are those of the function's kind."""
    kinds = {"general": r"r(\w\w|\d+)$", "vector": "xmm", "upper_vector": r"xmm(1[6-9]|2|3)", "x87": "st", "mask": "k"}
    return any(re.match(kinds[name], each) for each in registers)


def check(compiler, flags, include, bare):
    """The number of faults with these flags, or None if the compiler does not know them."""
    kept = kept_of(compiler, flags, [include])
    if kept is None:
        return None
    faults = 0
    for name, registers in kept.items():
        if registers:
            print(f"{compiler} {' '.join(flags)}: {name}: {', '.join(sorted(registers))} kept over the jump")
            faults += 1
    blind = kept_of(compiler, flags, [bare, include])
    for name in kept:
        if not wanted(name, blind[name]):
            print(f"{compiler} {' '.join(flags)}: {name}: nothing is kept over a jump that names no register")
            faults += 1
    if "-mapxf" in flags and not any(re.match(r"r(1[6-9]|2\d|3[01])$", each) for each in blind["general"]):
        print(f"{compiler} {' '.join(flags)}: r16 to r31 are not kept over a jump that names no register")
        faults += 1
    return faults


def main():
    root, compilers = pathlib.Path(sys.argv[1]), sys.argv[2:]
    faults = checked = 0
    with tempfile.TemporaryDirectory() as folder:
        include, bare = pathlib.Path(folder, "include"), pathlib.Path(folder, "bare")
        include.mkdir()
        (include / "ulexite").symlink_to(root)
        without_names(root, bare)
        for compiler in compilers:
            for flags in FLAGS:
                found = check(compiler, flags, include, bare)
                if found is not None:
                    checked += 1
                    faults += found
    print(f"{checked} compilations, {faults} faults")
    if faults or checked < 2 * len(compilers):
        sys.exit(1)


main()
