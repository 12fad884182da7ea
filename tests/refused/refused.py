#!/usr/bin/env python3
"""refused.py COMPILER INCLUDE_DIRECTORIES: mistakes that the compiler should explain in our words.

Compiles refused.cpp, whose lines with `// REFUSED: WORDS` must each be named by an error that has these words, and
those with `// ACCEPTED` by none. Then includes <ulexite.hpp> in C++17, which must end in one sentence, and sees that
every header would, because each begins by including another, down to base/standard.hpp. INCLUDE_DIRECTORIES are
separated by semicolons.
"""
import pathlib
import re
import subprocess
import sys

here = pathlib.Path(__file__).parent
compiler, directories = sys.argv[1], sys.argv[2].split(";")
includes = [f"-I{each}" for each in directories]
failures = []


def compile_text(standard, path, *more, text=None):
    done = subprocess.run([compiler, f"-std={standard}", "-fsyntax-only", *more, *includes, path], input=text,
                          capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False)
    return done.returncode, done.stderr


def errors_of(output):
    """Each error with the lines around it that tell where it comes from."""
    output = re.sub(r"^(In file included|  +)from .*\n|^In file included from .*\n", "", output, flags=re.M)
    if "clang" in compiler:  # the notes follow
        return re.split(r"^(?=\S+: error: )", output, flags=re.M)[1:]
    return re.split(r"^(?=\S+ In )", output, flags=re.M)


source = here / "refused.cpp"
warnings = [f"-Werror={each}" for each in ("unused-result", "unused-value", "deprecated-declarations")]
status, output = compile_text("c++20", str(source), *warnings, "-fmax-errors=0" if "clang" not in compiler else "-ferror-limit=0")
if status == 0:
    failures.append("refused.cpp compiles")
for number, line in enumerate(source.read_text().splitlines(), 1):
    words = re.search(r"// REFUSED: (.*)", line)
    named = [each for each in errors_of(output) if re.search(rf"refused\.cpp:{number}:", each)]
    if "// ACCEPTED" in line and named:
        failures.append(f"refused.cpp:{number}: {line.strip()}\n    met: {named[0]}")
    elif words and not any(words[1] in each for each in named):
        met = re.findall("error: .*", "".join(named)) or ["nothing"]
        failures.append(f"refused.cpp:{number}: {line.strip()}\n    met: {met[0]}")

status, output = compile_text("c++17", "-", "-xc++", text="#include <ulexite.hpp>\n")
errors = re.findall(r"error: .*", output)
if len(errors) != 2 or "Ulexite needs C++20 or later: compile with -std=c++20" not in errors[0]:
    failures.append(f"<ulexite.hpp> in C++17 gives {len(errors)} errors: {errors[:3]}")
for header in sorted(here.parent.parent.glob("*/*.hpp")):
    if header.parent.name in ("build", "bench", "docs", "examples") or header.name == "standard.hpp":
        continue
    if "#include <ulexite/" not in header.read_text():
        failures.append(f"{header}: includes no header of ours; <ulexite/base/standard.hpp> is the least")

print("\n".join(failures) or "refused as they should be")
sys.exit(bool(failures))
