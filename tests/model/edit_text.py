#!/usr/bin/env python3
"""edit_text.py FOLDER MUTANT MODEL...: writes the texts of the library that a model's build changes to FOLDER/ulexite.

The models' sources and headers name the changes: below a line `// EDIT: why`, for every build, and below a line
`// MUTANT: name  why`, for that mutant's, lines

  //   sync/mutex.cpp: the text => what is there instead

The text must be in the file once. `\\n` means the end of a line, and what may be empty. Ends with status 1 otherwise.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def edits_of(models, mutant):
    for model in models:
        wanted = False
        for line in pathlib.Path(model).read_text().split("\n"):
            if head := re.match(r"// (EDIT|MUTANT): *(\w+)", line):
                wanted = head[1] == "EDIT" or head[2] == mutant
            elif not re.match(r"//\s", line):
                wanted = False
            elif wanted and (edit := re.match(r"//   ([\w/]+\.[hc]pp): (.*?) =>(?: (.*))?$", line)):
                yield edit[1], edit[2].replace("\\n", "\n"), (edit[3] or "").replace("\\n", "\n")


def main(folder, mutant, *models):
    texts = {}
    for name, old, new in edits_of(models, mutant):
        text = texts.setdefault(name, (ROOT / name).read_text())
        if text.count(old) != 1:
            sys.exit(f"{name} has {text.count(old)} times, not once: {old}")
        texts[name] = text.replace(old, new)
    for name, text in texts.items():
        path = pathlib.Path(folder, "ulexite", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


main(*sys.argv[1:])
