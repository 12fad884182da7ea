#!/usr/bin/env python3
"""Keeps the blocks of a page the same as the code that they quote, which tests compile and run.

quotes.py PAGE.md...            fails if a block differs from its file
quotes.py --write PAGE.md...    writes the blocks anew

A block is quoted by the comment `<!-- quotes FILE -->` in the line before it. FILE is a path from the project's folder. It
is quoted from its first line to its last; or, if it has them, between the lines `// quote begins` and `// quote ends`. The
next block that quotes the same file has the next such part.
"""

import collections
import pathlib
import re
import sys
import textwrap

QUOTE = re.compile(r"(<!-- quotes (\S+) -->\n```cpp ignore\n)(.*?)(```\n)", re.DOTALL)
PART = re.compile(r"^ *// quote begins\n(.*?)^ *// quote ends\n", re.DOTALL | re.MULTILINE)
project = pathlib.Path(__file__).resolve().parent.parent


def quoted(page):
    """The text that each block of the page must have, in the order of the blocks."""
    seen = collections.Counter()
    for match in QUOTE.finditer(page):
        text = (project / match[2]).read_text(encoding="utf-8")
        parts = PART.findall(text)
        yield textwrap.dedent(parts[seen[match[2]]]) if parts else text
        seen[match[2]] += 1


def main(arguments):
    write = arguments[:1] == ["--write"]
    pages = arguments[1:] if write else arguments
    if not pages:
        sys.exit(__doc__)
    differ = 0
    for page in map(pathlib.Path, pages):
        old = page.read_text(encoding="utf-8")
        found = QUOTE.findall(old)
        if old.count("<!-- quotes ") != len(found):
            sys.exit(f"{page}: a comment `quotes` without a block ```cpp ignore in the next line")
        right = quoted(old)
        if write:
            page.write_text(QUOTE.sub(lambda match: match[1] + next(right) + match[4], old), encoding="utf-8")
            continue
        for (_, file, text, _), wanted in zip(found, right):
            if text != wanted:
                print(f"{page}: differs from {file}, which it quotes: run tools/quotes.py --write {page}")
                differ += 1
        print(f"{page}: {len(found)} quotes, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
