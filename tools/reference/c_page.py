#!/usr/bin/env python3
"""c_page.py HEADER PAGE [--check]: writes the reference of the C interface, from the comments of its header.

A comment directly above a declaration belongs to that and to those that follow without a comment or an empty line. With
--check nothing is written; it ends with status 1 if the page is not what the header says."""

import pathlib
import re
import sys

INTRODUCTION = """# The C interface

All of `<ulexite/interop/ulexite.h>`, version {version}: {functions} functions. [Embedding](embedding.md) leads through it, and
`tools/reference/c_page.py` writes this page from the header's comments. [Rules](#rules) hold for every function.

"""


def words(comment):
    """The text of a comment, as paragraphs of Markdown."""
    lines = [re.sub(r"^ ?\* ?", "", line).rstrip() for line in comment.removeprefix("/*").removesuffix("*/").strip().split("\n")]
    text = re.sub(r"(?<!\w)\*(?=\w)", r"\\*", "\n".join(lines))
    return re.sub(r"(?<![\w`/<])((?:ulx_|ULX_)\w+(?:\.\.\.)?(?:\(\))?(?:\.\w+)?)", r"`\1`", text)


def sentence(text):
    """Comments may leave out the subject, but a paragraph of a page begins with a capital."""
    return text[:1].upper() + text[1:]


def items(text):
    """The comments and declarations of the header in order: (kind, text, whether an empty line stands before)."""
    pattern = re.compile(r"(?P<section>/\* -{20,} ?(?P<title>[\w ]+?)\n?(?P<rest> \*[^/]*?)?\s*\*/)|(?P<comment>/\*.*?\*/)|"
                         r"(?P<code>#define ULX_\w+ .+?$|enum \{[^\n]*\};$|(?:typedef struct(?: \w+)? \{|enum \{).*?^\}.*?;[^\n]*$|"
                         r"(?:ULX_API|typedef)[^;]*;[^\n]*$)", re.S | re.M)
    end = 0
    for found in pattern.finditer(text):
        yield found.lastgroup, found, "\n\n" in text[end:found.start()]
        end = found.end()


def clean(code):
    return re.sub(r"\n {20,}", "\n    ", re.sub(r"\bULX_API | ULX_NOEXCEPT", "", code))


def page(header):
    rules = words("/*" + re.search(r"Rules for all of it\n(.*?)\*/", header, re.S)[1] + "*/")
    rules = re.sub(r"^ {2,}", "  ", re.sub(r"^ *- ", "- ", rules, flags=re.M), flags=re.M)
    body = header[header.index("/* The version of the interface in this header."):header.rindex("#ifdef __cplusplus")]
    functions = set(re.findall(r"^ULX_API [^;]*?\b(ulx_\w+)\(", header, re.M))
    out = [INTRODUCTION.format(version=re.search(r"ULX_ABI_VERSION (\d+)", header)[1], functions=len(functions)),
           "## Rules\n\n", rules + "\n",
           "\n## Versions, errors and time\n"]
    comment, code = None, []

    def flush():
        nonlocal comment, code
        if code:
            out.append("\n```c\n" + "\n".join(code) + "\n```\n")
            if comment:
                out.append("\n" + sentence(words(comment)) + "\n")
        elif comment:
            out.append("\n" + sentence(words(comment)) + "\n")
        comment, code = None, []

    for _, found, apart in items(body):
        if found["section"]:
            flush()
            title = found["title"].strip()
            out.append(f"\n## {title[0].upper()}{title[1:]}\n")
            if found["rest"]:
                out.append("\n" + sentence(words("/*" + found["rest"] + "*/")) + "\n")
        elif found["comment"]:
            flush()
            comment = found["comment"]
        else:
            if apart:
                flush()
            code.append(clean(found["code"]))
    flush()
    return "".join(out)


def main():
    header, target = map(pathlib.Path, sys.argv[1:3])
    wanted = page(header.read_text(encoding="utf-8"))
    if sys.argv[3:] != ["--check"]:
        target.write_text(wanted, encoding="utf-8")
    elif target.read_text(encoding="utf-8") != wanted:
        sys.exit(f"{target} is not what {header} says: run tools/reference/c_page.py {header} {target}")
    missing = set(re.findall(r"^ULX_API [^;]*?\b(ulx_\w+)\(", header.read_text(), re.M)) - set(re.findall(r"\b(ulx_\w+)\(", wanted))
    if missing:
        sys.exit(f"not on the page: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main()
