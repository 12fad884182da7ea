#!/usr/bin/env python3
"""Makes tests of the C++ blocks in a page of the documentation, so that no page shows what does not work.

extract_snippets.py generate PAGE.md OUT.cpp   writes a program with one function for each ```cpp block
extract_snippets.py run PAGE.md PROGRAM        runs each, and compares what it prints with the page

A block with `int main(` is taken as it stands; any other is the body of a main fiber, and has `ux` and the chrono
literals. If a ```text block follows at once, it is what the program prints; else that is not looked at. Either way it
must end with status 0. A block that is opened by "```cpp ignore" is left alone: only for what must not compile or run.
"""

import difflib
import hashlib
import os
import re
import subprocess
import sys

FENCE = re.compile(r"^```(.*)$")
SECONDS = 120  # a page has 300: one that hangs is named before ctest ends them all
WORKERS = ("1", "2", "4")

HEAD = """\
// Made from {page} by tools/extract_snippets.py.
{includes}
namespace ux = ulexite;
using namespace std::chrono_literals;
"""

# The headers that a block without a main may use.
INCLUDES = """algorithm array atomic chrono csignal cstdio exception filesystem functional iostream map memory mutex numeric optional
ranges shared_mutex span stdexcept stop_token string string_view system_error thread tuple utility variant vector
unistd.h ulexite.hpp""".split()


class Snippet:
    def __init__(self, line, text, expected):
        self.line = line  # of its first line in the page
        self.text = text
        self.expected = expected


def blocks(page):
    """(first line, what the fence says, text, line after the block) of each fenced block."""
    with open(page, encoding="utf-8") as file:
        lines = file.read().split("\n")
    opened = None
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if fence and opened is None:
            opened = (number + 1, fence[1].strip())
        elif fence:
            yield opened[0], opened[1], "\n".join(lines[opened[0] - 1 : number - 1]) + "\n", number + 1
            opened = None
    if opened:
        sys.exit(f"{page}:{opened[0]}: a block without an end")


def snippets(page):
    found, after = [], None
    for line, kind, text, next_line in blocks(page):
        if kind == "text" and after is not None and after <= line - 1 <= after + 1:  # at most one empty line between
            found[-1].expected = text
        after = None
        if kind == "cpp":
            found.append(Snippet(line, text, None))
            after = next_line
    return found


def digest(found):
    """By which a program tells from which snippets it was made: one that failed to compile leaves an older program."""
    return hashlib.sha256(repr([(each.line, each.text) for each in found]).encode()).hexdigest()


def function_of(snippet, page, includes):
    """The snippet in a namespace of its own, as int snippet_LINE::program()."""
    lines = snippet.text.split("\n")
    for index, line in enumerate(lines):
        if include := re.match(r"#include <(.*)>", line):
            includes.add(include[1])
            lines[index] = ""
    whole = next((index for index, line in enumerate(lines) if line.startswith("int main(")), None)
    if whole is None:
        lines.insert(0, f'int program() {{ ulexite::run([] {{\n#line {snippet.line} "{page}"')
        lines.append("}); return 0; }")
    else:
        lines[whole] = lines[whole].replace("int main(", "int program(")
        end = lines.index("}", whole)
        lines[end] = "return 0; }"  # which only main does without saying so
        lines.insert(0, f'#line {snippet.line} "{page}"')
    return "\n".join([f"namespace snippet_{snippet.line} {{", *lines, "}"])


def generate(page, out):
    found = snippets(page)
    includes = set(INCLUDES)
    functions = [function_of(each, page, includes) for each in found]
    calls = [f'  if (which == "{each.line}") return snippet_{each.line}::program();' for each in found]
    text = "\n".join([
        HEAD.format(page=page, includes="\n".join(f"#include <{name}>" for name in sorted(includes))),
        *functions,
        "int main(int count, char** arguments) {",
        '  const std::string_view which = count == 2 ? arguments[1] : "";',
        *calls,
        f'  std::puts("{digest(found)}");',
        "  return 0;",
        "}",
        "",
    ])
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)


def failure(program, snippet, workers):
    """What is wrong with a run of the snippet; None if nothing is."""
    try:
        done = subprocess.run([program, str(snippet.line)], env={**os.environ, "ULEXITE_THREADS": workers},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"has not ended after {SECONDS} seconds"
    if done.returncode != 0:
        return f"ended with status {done.returncode}, printed:\n{done.stdout}{done.stderr}"
    if snippet.expected is None or done.stdout == snippet.expected:
        return None
    diff = difflib.unified_diff(snippet.expected.splitlines(), done.stdout.splitlines(), "the page", "the program",
                                lineterm="")
    return "prints something else:\n" + "\n".join(diff)


def run(page, program):
    failed = 0
    found = snippets(page)
    if subprocess.run([program], stdout=subprocess.PIPE, text=True).stdout.strip() != digest(found):
        sys.exit(f"{page}: the program was not made from this page as it stands: build it")
    for each in found:
        for workers in WORKERS:
            if wrong := failure(program, each, workers):
                print(f"{page}:{each.line}: with {workers} workers the snippet {wrong}")
                failed += 1
    print(f"{len(found)} snippets, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("generate", "run"):
        sys.exit(__doc__)
    sys.exit((generate if sys.argv[1] == "generate" else run)(*sys.argv[2:]))
