#!/usr/bin/env python3
"""Checks the links between the project's Markdown pages: each must name an existing file, and an existing heading of it.

Paths in backticks, as `net/tcp.hpp`, must exist too; in a table with the columns "function" and "file" each function
must occur in one of the files of its row; and in a column "proven by" a `Suite.Test` must be in tests/, and a
`function_of_a_script` in one of the row's files. Addresses of other sites are not looked up. Prints what is
wrong, and then ends with status 1.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATH = re.compile(r"`((?:base|fiber|evloop|runtime|sync|net|os|interop|tests|tools|packaging|bench|examples|cmake|docs)/[\w./*-]+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page):
    """The lines of a page without its code: (number, text)."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(page):
    """The names that GitHub gives to the headings of a page."""
    headings = (re.match(r"#+ (.*)$", line) for _, line in prose(page))
    return {re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-") for heading in headings if heading}


def misplaced(page):
    """Of tables with the columns "function" and "file": the functions that are not in the files."""
    columns = None
    for number, line in prose(page):
        cells = [cell.strip() for cell in line.split("|")]
        if "function" in cells and "file" in cells:
            columns = cells.index("function"), cells.index("file")
        elif not line.startswith("|"):
            columns = None
        elif columns:
            files = [ROOT / path for path in PATH.findall(cells[columns[1]])]
            text = "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
            for name in re.findall(r"`([\w:~]+)`", cells[columns[0]]):
                if files and not re.search(rf"{re.escape(name.split('::')[-1])}\b", text):
                    yield f"{page.relative_to(ROOT)}:{number}: {name} is not in {cells[columns[1]]}"


def unproven(page):
    """Of columns "proven by": the tests that do not exist."""
    column = None
    for number, line in prose(page):
        cells = [cell.strip() for cell in line.split("|")]
        if "proven by" in cells:
            column = cells.index("proven by")
            tests = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").glob("*/*.cpp"))
        elif not line.startswith("|"):
            column = None
        elif column:
            scripts = "".join((ROOT / path).read_text(encoding="utf-8") for path in PATH.findall(cells[column]) if path.endswith(".py"))
            for suite, test in re.findall(r"`(\w+)\.(\w+)`", cells[column]):
                if not re.search(rf"TEST(_F|_P)?\({suite}, {test}\)", tests):
                    yield f"{page.relative_to(ROOT)}:{number}: no test {suite}.{test}"
            for name in re.findall(r"`([a-z]\w*)`", cells[column]) if scripts else []:
                if f"def {name}(" not in scripts:
                    yield f"{page.relative_to(ROOT)}:{number}: no function {name}"


def broken(page):
    yield from misplaced(page)
    yield from unproven(page)
    for number, line in prose(page):
        for path in PATH.findall(line):
            if not page.name.startswith("CHANGELOG") and not [*ROOT.glob(path.rstrip("/.")), *ROOT.glob(path + ".cpp")] and "/x" not in path:
                yield f"{page.relative_to(ROOT)}:{number}: no such path: {path}"
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                yield f"{page.relative_to(ROOT)}:{number}: no such file: {target}"
            elif anchor and anchor not in anchors(file):
                yield f"{page.relative_to(ROOT)}:{number}: no such heading: {target}"


def main():
    pages = [*ROOT.glob("*.md"), *(page for folder in ROOT.iterdir() if folder.is_dir() and folder.name not in ("build", ".git")
                                   for page in folder.rglob("*.md"))]
    complaints = [each for page in sorted(pages) for each in broken(page)]
    print(*complaints, sep="\n", end="\n" if complaints else "")
    print(f"{len(pages)} pages, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
