#!/usr/bin/env python3
"""Joins test files into one source, because parsing the same headers for each of a hundred files takes minutes.

join_tests.py OUT.cpp FILE...

Each file's unnamed namespace gets the name of the file, so that two files may use the same name for a helper. Messages
of the compiler and of GoogleTest name the file and line that were written.
"""

import os
import re
import sys


def joined(path):
    name = re.sub(r"\W", "_", os.path.basename(path))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return f'#line 1 "{path}"\n' + re.sub(r"^namespace \{", f"namespace {name} {{", text, flags=re.MULTILINE)


def main():
    out, *files = sys.argv[1:]
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(joined(path) for path in files))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main()
