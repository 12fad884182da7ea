#!/usr/bin/env python3
"""pages.py OUT: copies the pages of the project to OUT, for mkdocs, in the folders that they have here.

A source file, or a folder, to which a page links becomes a page too, so every link stays inside the site.
"""

import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Code in a line, which may look like a link; or the target of a link.
LINK = re.compile(r"`[^`\n]*`|\]\(([^)\s]+)\)")
FENCE = re.compile(r"^( *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".h": "c", ".c": "c", ".py": "python", ".sh": "bash", ".lua": "lua", ".scm": "scheme",
             ".txt": "text", "": "text"}


class Site:
    def __init__(self, out):
        self.out = out
        self.made = set()
        self.waiting = [path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *(ROOT / "docs").iterdir())]
        self.waiting.append(pathlib.Path("examples"))

    def make(self):
        menu = (ROOT / "tools/site/mkdocs.yml").read_text(encoding="utf-8")
        missing = [str(page) for page in self.waiting if page.suffix == ".md" and not re.search(rf"\s{page}$", menu, re.MULTILINE)]
        if missing:
            sys.exit(f"tools/site/mkdocs.yml does not list {', '.join(missing)}")
        while self.waiting:
            path = self.waiting.pop()
            if path in self.made:
                continue
            self.made.add(path)
            target = self.out / self.place(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / path).suffix in (".svg", ".png"):
                shutil.copyfile(ROOT / path, target)
            else:
                target.write_text(self.text(path), encoding="utf-8")

    @staticmethod
    def place(path):
        """Where the page of that file or folder is."""
        if (ROOT / path).is_dir():
            return path / "README.md"
        return path if path.suffix in (".md", ".svg", ".png") else path.with_name(path.name + ".md")

    def text(self, path):
        if (ROOT / path).is_dir():
            return self.listing(path)
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.suffix == ".md":
            pieces = FENCE.split(text)
            pieces[::2] = [LINK.sub(lambda link: self.linked(path, link), piece) for piece in pieces[::2]]
            pieces[1::2] = [re.sub(r"^( *```\w+) .*", r"\1", piece, count=1) for piece in pieces[1::2]]  # the language alone
            return "".join(pieces)
        return f"# {path}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"

    def listing(self, folder):
        if (ROOT / folder / "README.md").exists():
            return self.text(folder / "README.md")
        entries = sorted(each for each in (ROOT / folder).iterdir() if not each.name.startswith(("__", ".")))
        self.waiting += [each.relative_to(ROOT) for each in entries]
        lines = [f"- [{each.name}]({self.place(each.relative_to(ROOT)).relative_to(folder)})" for each in entries]
        return f"# {folder}\n\n" + "\n".join(lines) + "\n"

    def linked(self, page, link):
        target = link[1]
        if target is None:
            return link[0].replace(r"\|", "|")  # as a cell of a table has it on the forge
        if re.match(r"#|[a-z]+:", target):
            return link[0]
        path, hash_, anchor = target.partition("#")
        there = pathlib.Path(os.path.normpath(page.parent / path))
        self.waiting.append(there)
        return f"]({os.path.relpath(self.place(there), page.parent)}{hash_}{anchor})"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    Site(pathlib.Path(sys.argv[1])).make()
