#!/usr/bin/env python3
"""Checks that every atomic operation names its memory order and says why.

In the sources of the library (base fiber evloop runtime sync net os interop), each call of .load( .store( .exchange(
.fetch_*( .compare_exchange_*( .test_and_set( on an atomic must

  1. name a memory order anywhere in its arguments: std::memory_order_x, Atomics::x, or a constant of the file that was
     given one (`constexpr auto strength = fifo ? Atomics::acquire : Atomics::seq_cst;`);
  2. carry a // comment: on a line of the call, at the end of its statement, or alone on the line just above it:
       ordered operations: `// A` or `// A, B` with each letter a line `//   A  ...` under "Pairings" in the file's
                           head comment, or in the comment directly above an atomic data member (for x.cpp also in
                           those of x.hpp), or `// pairs with ...`;
       relaxed operations: a reason in words, or a letter as above.

x.hpp and x.cpp share their pairings. Each of those letters must stand on both of its sides: at two operations, fences or
other lines of these files at least, or at one if the letter's text names the file of the other side.

Each atomic data member of a class must have a line `//   name  ...` in a State block of the file or of its header, or
a comment `// State: ...` on its own line or just above.

Prints file:line of each operation, letter or member that does not, and exits with 1. There is no way to opt out.

  check_atomics.py [FILE...]      these files instead of the library's
  check_atomics.py --self-test    checks the checker
"""

import re
import sys
from pathlib import Path

LAYERS = ["base", "fiber", "evloop", "runtime", "sync", "net", "os", "interop"]
OPERATION = re.compile(
    r"(?:\.|->)\s*(?:template\s+)?"
    r"(load|store|exchange|fetch_(?:add|sub|and|or|xor)|compare_exchange_(?:weak|strong)|test_and_set)\s*\("
)
ORDER = re.compile(r"(?:\bmemory_order(?:_|::)|::)(relaxed|consume|acquire|release|acq_rel|seq_cst)\b")
# A call that passes on an order it was given names one too: `order`, `success`, `failure` and the like as a parameter.
FORWARDED = re.compile(r"\b(?:\w+_)?(?:order|success|failure)\b")
LETTERS = re.compile(r"^([A-Z][0-9]?)(?:(?:\s*,\s*|\s+(?:and|to)\s+)([A-Z][0-9]?))*(?=$|[\s.:;,(])")
LETTER = re.compile(r"\b[A-Z][0-9]?\b")
CONSTANT = re.compile(r"\bconst(?:expr)?\s+(?:auto|std::memory_order)\s+(\w+)\s*=([^;]*);")
PAIRING_LINE = re.compile(r"^\s*//\s{2,}([A-Z][0-9]?)\s{2,}\S")
STATE_LINE = re.compile(r"^\s*//\s{2,}((?:\w+(?:::|\.))?\w+(?:, (?:\w+(?:::|\.))?\w+)*)(?:\s{2,}|$)")
# A type with atomic in it, and the names that it declares.
DECLARATION = re.compile(r"\b(?:atomic|atomic_flag)\b\s*(<[^;(){}=]*>)?(?:\[\]>)?\s+(\w+)([^;()]*);")
FILE_NAME = re.compile(r"\b(\w+)\.(?:hpp|cpp|h)\b")


class Source:
    """A file as two texts of the same shape: `code` with comments and strings blanked, and the comment of each line."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.comments = [""] * len(self.lines)
        self.code = self._split(text)
        self.code_lines = self.code.split("\n")
        self.pairing_lines = set()
        self.pairings = self._pairings()
        self.letters = set(self.pairings)
        self.constants = {
            name: orders for name, value in CONSTANT.findall(self.code) if (orders := set(ORDER.findall(value)))
            if not OPERATION.search(value)
        }

    def orders_in(self, arguments):
        orders = set(ORDER.findall(arguments))
        for word in re.findall(r"(?<![.:>\w])\w+\b(?!\s*(?:\(|::))", arguments):
            orders |= self.constants.get(word, set())
        return orders

    def _split(self, text):
        code = list(text)
        token = re.compile(
            r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
            r"(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'",
            re.S,
        )
        for match in token.finditer(text):
            for i in range(match.start(), match.end()):
                if code[i] != "\n":
                    code[i] = " "
            if match.group().startswith("//"):
                self.comments[text.count("\n", 0, match.start())] = match.group()[2:].strip()
        return "".join(code)

    def _pairings(self):
        """Line and text of each letter: of the head comment, and of the comments directly above atomic data members."""
        found = {}
        for block in (self._head(), *(self._comment_above(line) for line, _ in self.atomic_members())):
            found |= self._letters_of_block(block)
        return found

    def _head(self):
        """The lines before the first line of code, except preprocessing."""
        end = 0
        while end < len(self.lines) and self.code_lines[end].strip()[:1] in ("", "#"):
            end += 1
        return range(end)

    def _comment_above(self, line):
        """The lines of the comment that ends directly above this line."""
        begin = line
        while begin > 0 and self.lines[begin - 1].lstrip().startswith("//"):
            begin -= 1
        return range(begin, line)

    def _letters_of_block(self, block):
        found, inside, letter = {}, False, None
        for number in block:
            line = self.lines[number]
            if re.match(r"^\s*//\s*Pairings\b", line):
                inside = True
            elif not re.match(r"^\s*//\s{2,}\S", line):
                letter = None
            elif inside and (match := PAIRING_LINE.match(line)):
                letter = match.group(1)
                found[letter] = (number, line)
                self.pairing_lines.add(number)
            elif letter:
                found[letter] = (found[letter][0], found[letter][1] + line)
                self.pairing_lines.add(number)
        return found

    def sides(self):
        """How often each letter is named in the code."""
        named = {}
        for number, comment in enumerate(self.comments):
            if not comment or number in self.pairing_lines:
                continue
            if not self.code_lines[number].strip() and not self._above_code(number):
                continue
            for letter in {*(letters_of(comment) or []), *(letters_of(re.split(r"[.:;] ", comment)[-1]) or [])}:
                named[letter] = named.get(letter, 0) + 1
        return named

    def _above_code(self, number):
        return number + 1 < len(self.lines) and self.code_lines[number + 1].strip() != ""

    def state(self):
        """The names in the State blocks."""
        names, inside = set(), False
        for line in self.lines:
            if re.match(r"^\s*// State\b", line):
                inside = True
            elif not re.match(r"^\s*//\s{2,}\S", line):
                inside = inside and line.strip() == "//" and False
            elif inside and (match := STATE_LINE.match(line)):
                names |= {re.split(r"::|\.", name)[-1] for name in match.group(1).split(", ")}
        return names

    def atomic_members(self):
        """(line, name) of each atomic data member of a class that has no State comment of its own; not of static ones."""
        scopes, start = [], 0
        for offset, character in enumerate(self.code):
            if character not in ";{}":
                continue
            text = self.code[start : offset + 1]
            if character == "{":
                if re.search(r"\b(?:class|struct|union)\s", text) and not re.search(r"\benum\b|\)\s*\{$", text):
                    scopes.append("class")
                elif scopes and scopes[-1] == "class" and DECLARATION.search(text[:-1].rstrip() + ";"):
                    scopes.append("initialiser")
                    continue
                else:
                    scopes.append("other")
            elif character == "}":
                if scopes and scopes.pop() == "initialiser":
                    continue
            elif scopes and scopes[-1] == "class" and not re.search(r"\bstatic\b|\busing\b|\bfriend\b", text):
                plain = re.sub(r"\{[^{}]*\}", "", text)
                if match := DECLARATION.search(plain):
                    names = [match.group(2)] + re.findall(r",\s*(\w+)", match.group(3))
                    line = self.line_of(offset)
                    if not any(re.match(r"State:\s+\S", about) for about in self.comments_about(line, line)):
                        yield from ((line, name) for name in names)
            start = offset + 1

    def line_of(self, offset):
        return self.code.count("\n", 0, offset)

    def end_of_call(self, opening):
        depth = 0
        for offset in range(opening, len(self.code)):
            if self.code[offset] == "(":
                depth += 1
            elif self.code[offset] == ")":
                depth -= 1
                if depth == 0:
                    return offset
        return len(self.code) - 1

    def end_of_statement(self, offset):
        """Where the statement that `offset` is part of ends, or opens a block; at most a few lines on."""
        for end in range(offset, len(self.code)):
            if self.code[end] in ";{}":
                return end
        return len(self.code) - 1

    def comments_about(self, start, end):
        """Comments that may explain what stands on lines start..end: theirs, and the whole lines just above."""
        found = [self.comments[line] for line in range(start, end + 1) if self.comments[line]]
        above = start - 1
        block = []
        while above >= 0 and self.comments[above] and not self.code_lines[above].strip():
            block.insert(0, self.comments[above])
            above -= 1
        if block:
            found.append(block[-1])
            found.append(" ".join(block))
        return found


def letters_of(comment):
    """The letters a comment begins with: "A", "A, B", "B to E", "A: reason". None when it is prose."""
    match = LETTERS.match(comment)
    return LETTER.findall(match.group()) if match else None


def explain(source, orders, comments):
    """None when some comment explains an operation of these orders, else what is wrong."""
    if not comments:
        return "has no comment"
    relaxed_only = orders == {"relaxed"}
    complaint = None
    for comment in comments:
        if re.search(r"\bpairs with\s+\S", comment):
            return None
        letters = letters_of(comment)
        if letters and all(letter in source.letters for letter in letters):
            return None
        if relaxed_only and re.search(r"[A-Za-z]{3,}", comment):
            return None
        if letters:
            unknown = ", ".join(letter for letter in letters if letter not in source.letters)
            complaint = f"names {unknown}, which is no line of Pairings in the head comment or above a member"
    if complaint:
        return complaint
    if relaxed_only:
        return "has a comment that gives no reason for relaxed"
    return "has a comment that names neither a letter of Pairings nor `pairs with ...`"


def check_text(text, header=None):
    """Yields (line, message), lines counted from 1. `header` is the text of the header whose pairings count too."""
    source = Source(text)
    if header is not None:
        source.letters |= Source(header).letters
    for match in OPERATION.finditer(source.code):
        name = match.group(1)
        opening = match.end() - 1
        end = source.end_of_call(opening)
        arguments = source.code[opening : end + 1]
        first, last = source.line_of(match.start(1)), source.line_of(end)
        orders = source.orders_in(arguments)
        if not orders and not FORWARDED.search(arguments):
            yield first + 1, f"{name} names no memory order"
            continue
        # One comment may close a statement of several lines; one alone on the line above may introduce it.
        statement = min(source.line_of(source.end_of_statement(end)), last + 2)
        begin = first
        while begin > 0 and first - begin < 3 and source.code_lines[begin - 1].strip() and \
                source.code_lines[begin - 1].rstrip()[-1] not in ";{}:":
            begin -= 1
        complaint = explain(source, orders, source.comments_about(first, statement))
        if complaint and begin < first:
            complaint = explain(source, orders, source.comments_about(begin, statement)) and complaint
        if complaint:
            yield first + 1, f"{name} {complaint}"


def check_pairings(text, others=(), stem=None):
    """Yields (line, message) for each letter that is not on both of its sides. `others`: texts that share the block."""
    source = Source(text)
    named = {}
    for each in [source] + [Source(other) for other in others]:
        for letter, count in each.sides().items():
            named[letter] = named.get(letter, 0) + count
    for letter, (line, words) in source.pairings.items():
        wanted = 1 if set(FILE_NAME.findall(words)) - {stem} else 2
        if named.get(letter, 0) < wanted:
            yield line + 1, f"{letter} is at {named.get(letter, 0)} lines of code, and must be at {wanted}"


def check_state(text, header=None):
    """Yields (line, message) for each atomic member without a line in a State block."""
    source = Source(text)
    names = source.state() | (Source(header).state() if header is not None else set())
    for line, name in source.atomic_members():
        if name not in names:
            yield line + 1, f"{name} is an atomic without a line in a State block"


def library_files(root):
    for layer in LAYERS:
        for pattern in ("*.hpp", "*.cpp", "*.h"):
            yield from sorted((root / layer).rglob(pattern))


SELF_TEST_HEAD = """#pragma once

// Pairings (each ordered operation names its line)
//   A  push stores bottom_, release  ->  steal loads bottom_.
//   B  pop lowers bottom_; steal raises top_.
//      Continued here.

#include <atomic>

"""

SELF_TEST = [
    # (accepted, text after the head)
    (True, "x.store(1, std::memory_order_release);  // A"),
    (True, "x.store(1, std::memory_order::release);  // A, B"),
    (True, "x.load(Atomics::seq_cst);  // A, B: in their single order"),
    (True, "x.load(Atomics::acquire);  // A and B"),
    (True, "x->load(Policy::acquire);  // pairs with the release in unlock"),
    (True, "// pairs with the release in unlock\nx.load(Atomics::acquire);"),
    (True, "// A\nx.load(Atomics::acquire);"),
    (True, "x.load(Atomics::relaxed);  // owner-written"),
    (True, "// Only a hint, and\n// checked again under the lock.\nx.load(Atomics::relaxed);"),
    (True, "x.compare_exchange_strong(a, b,\n    Atomics::seq_cst,\n    Atomics::relaxed);  // B"),
    (True, "if (x.compare_exchange_weak(a, f(b, g(c)), Atomics::acq_rel,\n   Atomics::relaxed)) {  // A\n}"),
    (True, "return a.load(Atomics::acquire) == 0 &&  // A\n  b.load(Atomics::acquire) == 0;  // B"),
    (True, "x.load(order);  // pairs with the caller's partner"),
    (True, "constexpr auto strong = fifo ? Atomics::acquire : Atomics::seq_cst;\nx.load(strong);  // A"),
    (True, "// x.load() in a comment\nauto s = \"x.load()\";"),
    (True, "v.push_back(1); m.find(2); file.read(3); f.preload(); download(1);"),
    (True, "auto n = 1'000'000; x.load(Atomics::relaxed);  // a counter, after a digit separator"),
    (False, "x.load();  // A"),
    (False, "x.store(1);"),
    (False, "x.fetch_add(1);  // counter"),
    (False, "x.exchange(1, y.load());  // A"),
    (False, "const auto old = y.load(Atomics::acquire);  // A\nx.store(old);  // A"),
    (False, "constexpr auto strong = Atomics::seq_cst;\nx.load(strong);"),
    (False, "x.load(std::memory_order_acquire);"),
    (False, "x.load(std::memory_order_acquire);  // C"),
    (False, "x.load(std::memory_order_acquire);  // A, C"),
    (False, "x.load(std::memory_order_acquire);  // because"),
    (False, "x.load(std::memory_order_acquire);  // Acquire it"),
    (False, "x.load(Atomics::relaxed);"),
    (False, "x.load(Atomics::relaxed);  // ?"),
    (False, "f();  // A\nx.load(Atomics::acquire);"),
    (False, "x.load(Atomics::acquire);\n// A"),
    (False, "x.compare_exchange_strong(a, b,\n    Atomics::seq_cst,\n    Atomics::relaxed);"),
    (False, "x.store(1, std::memory_order_release);\nf();  // A"),
]

SELF_TEST_LETTER = "// Pairings\n//   A  push stores, release  ->  steal loads, acquire"
SELF_TEST_SIDES = [
    # (accepted, text behind the head)
    (True, ".\n\na.load(o);  // A\nb.store(1, o);  // A\n"),
    (True, ".\n\nlight_fence();  // A\nb.store(1, o);  // B: late. A\n"),
    (True, ", in y.cpp.\n\na.load(o);  // A\n"),
    (True, ",\n//      and y.cpp does.\n\na.load(o);  // A\n"),
    (False, ".\n\na.load(o);  // A\n"),
    (False, ".\n\na.load(o);  // A\n// A\n"),
    (False, ", in x.cpp.\n\na.load(o);  // A\n"),
    (False, ", in y.cpp.\n\na.load(o);  // B\n"),
    (False, ".\n//   B  in y.cpp.\n\na.load(o);  // A\nb.load(o);  // B\n"),
]

SELF_TEST_MEMBER = "class x {\n  // Pairings\n  //   A  push stores, release  ->  steal loads, acquire."
SELF_TEST_MEMBER_END = "  void f() {\n    a.store(1, std::memory_order_release);  // A\n    a.load(std::memory_order_acquire);  // A\n  }\n};"
SELF_TEST_ABOVE_MEMBERS = [
    # (accepted, text between the pairing and the operations)
    (True, "\n  std::atomic<int> a;\n"),
    (True, "\n  //      Continued here.\n  std::atomic<int> a;\n"),
    (True, "\n  // Checked by a model.\n  alignas(64) std::atomic<int> a{0};\n"),
    (False, "\n\n  std::atomic<int> a;\n"),
    (False, "\n  int b;\n  std::atomic<int> a;\n"),
    (False, "\n  static std::atomic<int> a;\n"),
]

SELF_TEST_STATE = [
    (True, "// State\n//   word_  its owner.\nclass x {\n  std::atomic<int> word_{0};\n};"),
    (True, "class x {\n  // State\n  //   a_, b_\n  //     counters\n  std::atomic<int> a_{0}, b_{0};\n};"),
    (True, "struct x {\n  std::atomic<int> word{0};  // State: a counter\n};"),
    (True, "struct x {\n  // State: a counter\n  typename Atomics::template atomic<int> word{0};\n};"),
    (True, "std::atomic<int> a;\nstruct x {\n  static std::atomic<int> b;\n  int f() {\n    std::atomic<int> c;\n  }\n};"),
    (True, "// State\n//   shard::word  its owner.\nstruct shard {\n  std::atomic<int> word;\n};"),
    (False, "class x {\n  std::atomic<int> word_{0};\n};"),
    (False, "class x : y<z> {\n  void f() const {}\n  alignas(64) std::atomic<T*> word_;\n};"),
    (False, "struct x {\n  typename Atomics::template atomic<int> word_[4]{};\n};"),
    (False, "struct x {\n  std::atomic_flag word_;\n};"),
    (False, "// State\n//   a_  its owner.\nclass x {\n  std::atomic<int> a_{0}, b_{0};\n};"),
    (False, "// State\n//   a_  its owner, not of\n//   word_\n\n// Another.\n//   b_  thing.\nclass x {\n  std::atomic<int> b_;\n};"),
    (False, "class x {\n  std::atomic<int> word_{0};  // a counter\n};"),
]


def self_test():
    failures = 0
    for accepted, text in SELF_TEST:
        complaints = list(check_text(SELF_TEST_HEAD + text + "\n"))
        if (not complaints) != accepted:
            failures += 1
            print(f"self-test: should be {'accepted' if accepted else 'refused'}: {text!r}: {complaints}")
    late = "int x;\n// Pairings\n//   A  not in the head.\nx.load(Atomics::acquire);  // A\n"
    if not list(check_text(late)):
        failures += 1
        print("self-test: a pairing outside of the head comment was accepted")
    if list(check_text("x.load(Atomics::acquire);  // A\n", SELF_TEST_HEAD)):
        failures += 1
        print("self-test: a pairing of the header was refused")
    for accepted, text in SELF_TEST_SIDES:
        if (not list(check_pairings(SELF_TEST_LETTER + text, (), "x"))) != accepted:
            failures += 1
            print(f"self-test: sides: should be {'accepted' if accepted else 'refused'}: {text!r}")
    for accepted, text in SELF_TEST_ABOVE_MEMBERS:
        whole = SELF_TEST_MEMBER + text + SELF_TEST_MEMBER_END
        if (not list(check_text(whole)) + list(check_pairings(whole, (), "x"))) != accepted:
            failures += 1
            print(f"self-test: above members: should be {'accepted' if accepted else 'refused'}: {whole!r}")
    one_sided = SELF_TEST_MEMBER + "\n  std::atomic<int> a;\n};\na.store(1, std::memory_order_release);  // A\n"
    if not list(check_pairings(one_sided, (), "x")):
        failures += 1
        print("self-test: a pairing above a member was counted as one of its own sides")
    for accepted, text in SELF_TEST_STATE:
        if (not list(check_state(text))) != accepted:
            failures += 1
            print(f"self-test: state: should be {'accepted' if accepted else 'refused'}: {text!r}: {list(check_state(text))}")
    if list(check_pairings(SELF_TEST_LETTER + ".\n\na.load(o);  // A\n", ["b.store(1, o);  // A\n"], "x")):
        failures += 1
        print("self-test: a letter with its other side in x.cpp was refused")
    cases = len(SELF_TEST) + len(SELF_TEST_SIDES) + len(SELF_TEST_ABOVE_MEMBERS) + len(SELF_TEST_STATE) + 4
    print(f"self-test: {cases} cases, {failures} failures")
    return 1 if failures else 0


def header_of(root, source):
    """The text of x.hpp for x.cpp, in whatever room of the layer it is; None for a header, and where there is none."""
    if source.suffix != ".cpp":
        return None
    found = list((root / source.relative_to(root).parts[0]).rglob(source.stem + ".hpp"))
    return found[0].read_text(encoding="utf-8") if found else None


def sources_of(root, header):
    """The texts of the x.cpp for x.hpp, in whatever room of the layer they are."""
    if header.suffix != ".hpp" or not header.resolve().is_relative_to(root):
        return []
    layer = root / header.resolve().relative_to(root).parts[0]
    return [file.read_text(encoding="utf-8") for file in layer.rglob(header.stem + ".cpp")]


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = Path(__file__).resolve().parent.parent
    files = [Path(argument) for argument in arguments] or list(library_files(root))
    complaints = operations = 0
    for file in files:
        text = file.read_text(encoding="utf-8")
        operations += len(OPERATION.findall(Source(text).code))
        name = file.resolve()
        name = name.relative_to(root) if name.is_relative_to(root) else file
        beside = header_of(root, file)
        found = list(check_text(text, beside)) + list(check_state(text, beside))
        found += check_pairings(text, sources_of(root, file), file.stem)
        for line, message in sorted(found):
            complaints += 1
            print(f"{name}:{line}: {message}")
    print(f"{len(files)} files, {operations} atomic operations, {complaints} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
