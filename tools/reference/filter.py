#!/usr/bin/env python3
"""filter.py FOLDER HEADER...: copies headers into the folder with their plain comments as documentation comments.

Doxygen reads the copies. The headers have `//` comments only. This script reads them as people do, and keeps each line
in its place:

- A comment block directly above a public declaration documents it. It also documents the overloads, and the sister
  forms (send_for and receive_for, notify_one and notify_all), that follow without a blank line or a comment of their own.
- What is deprecated says by itself what to use instead.
- A comment behind a member, an enumerator or a declaration documents that.
- All else stays as it is: comments above includes, State and Pairings blocks, bodies of functions.
- Namespaces called detail, private and protected parts, deleted functions, defaulted ones without a comment, and
  definitions outside of their class or namespace are hidden. But a class in detail that is the base of a public one is
  not, because its members are those of that class.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# The group of the headers of a layer; of some headers a smaller group (both are described in reference.dox).
GROUPS = {
    "sync": {
        "channels": "channel channel_ends broadcast watch select select_case selector ticker",
        "groups": "task_group join_set when wait_group fiber_local",
        "stopping": "cancellation",
        "locks": "mutex timed_mutex recursive_mutex shared_mutex condition_variable condition_variable_any synchronized",
        "meeting": "semaphore latch barrier event auto_reset_event call_once future packaged_task",
        "parallel": "parallel_range parallel_for parallel_invoke parallel_reduce parallel_sort parallel_transform",
        "blocking": "blocking",
        "contexts": "isolated_context",
    },
    "runtime": {
        "calling": "this_fiber",
        "stopping": "time",
        "blocking": "block_in_place",
        "jobs": "jobs",
        "contexts": "concurrent_context parallel_context migration_guard no_suspend on_thread_stack",
        "embedding": "stopped_world fiber_view",
    },
    "base": {"jobs": "job"},
}

STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'')
REQUIRES = r"\brequires\s*(?:\((?:[^()]|\([^()]*\))*\)|[\w:]+(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>)?(?:\s*(?:&&|\|\|)\s*[\w:]+<[^<>]*>)*)"
# Members that the standard's concepts need, and that no user calls by name: they need no comment.
CONVENTIONAL = re.compile(r"(value_type|difference_type|iterator_concept|duration|rep|period|time_point|is_steady|lowest_layer_type|executor_type|end|operator(\*|->|\+\+|==))$")
LETTERS = re.compile(r"// (?:[A-Z](?:, [A-Z])*|hint|counter|owner-written|published by .*|pairs with .*)$")


def group_of(path):
    try:
        layer, *_, file = path.resolve().relative_to(ROOT).parts
    except ValueError:
        return "base"
    stem = pathlib.Path(file).stem
    return next((group for group, stems in GROUPS.get(layer, {}).items() if stem in stems.split()), layer)


def escaped(text):
    """What Doxygen would take for a command, a tag or a link is text; what stands in backticks is code."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"([<>@\\#%])", r"\\\1", parts[index])
    return "`".join(parts)


def bare(declaration):
    """Without what stands around the name: a template's parameters, attributes, constraints."""
    return re.sub(rf"^template <.*?>\s+(?=[\w\[:])|\[\[.*?\]\]|{REQUIRES}", "", declaration)


def name_of(declaration):
    """The name that a declaration declares, as far as overloads and sister forms need it."""
    text = bare(declaration)
    found = re.match(r"using (\w+)", text) or re.search(r"(operator\W+|[\w~]+)\s*\(", text) or re.search(r"(\w+)\s*[={;]", text)
    return found[1] if found else ""


def sisters(one, other):
    """The same name, or names of which the first or the last word is the same."""
    words, others = one.split("_"), other.split("_")
    if one == other or len(words) == 1 or len(others) == 1:
        return one == other != ""
    return words[0] == others[0] or words[-1] == others[-1]


def is_defined_outside(declaration):
    """A member of a class, or a specialization of another library's template."""
    text = bare(declaration)
    return bool(re.match(r"class boost::|[^(=]*\w::~?\w+\(", text))


def bases(texts):
    """The classes of a namespace detail from which a class at namespace scope derives publicly."""
    derives = r"^class \w+(?:<\w+>)?(?: final)? : public (?:\w+::)?detail::(\w+)"
    return {found[1] for text in texts for found in re.finditer(derives, text, re.MULTILINE)}


class Scope:
    def __init__(self, kind, visible, public):
        self.kind = kind  # namespace, class, enum or body
        self.visible = visible  # its members, where they are public
        self.public = public
        self.condition = False  # inside it a \cond is open
        self.shows_base = False  # a class of a namespace detail that is shown is open in it
        self.hidden = False  # a \cond is open before it


class Filter:
    def __init__(self, path, bases):
        self.group = group_of(path)
        self.bases = bases
        self.scopes = [Scope("namespace", True, True)]
        self.hides = False  # a \cond is open before the current declaration
        self.statement = ""  # what there is of the current declaration
        self.block = []  # comment lines that wait for what follows them
        self.documented = None  # the names that share the last comment, and its text
        self.trailing_at = None  # where the comment behind the line before began
        self.out = []

    def documentable(self):
        top = self.scopes[-1]
        return top.kind != "body" and top.visible and top.public

    def run(self, lines):
        declarations = self.declarations(lines)
        for number, line in enumerate(lines):
            bare = line.strip()
            if bare.startswith("//"):
                self.comment(line)
            elif not bare:
                self.flush()
                self.documented = self.trailing_at = None
                self.out.append("")
            else:
                self.code(line, declarations[number])
        self.flush()
        return self.out

    @staticmethod
    def declarations(lines):
        """For each line the text from there to the end of the declaration, roughly."""
        found = [""] * len(lines)
        for number in reversed(range(len(lines))):
            code = lines[number].split("//")[0].strip()
            more = found[number + 1] if number + 1 < len(lines) else ""
            found[number] = code if re.search(r"[;{}]$", code) else (code + " " + more)[:1000]
        return found

    def comment(self, line):
        at = line.index("//")
        if self.trailing_at == at and not self.block:
            self.out.append(line[:at] + "///< " + escaped(line[at + 2 :].strip()))
        else:
            self.trailing_at = None
            self.block.append(line)

    def flush(self):
        self.out += self.block
        self.block = []

    def code(self, line, declaration):
        code, trailing, at = self.split(line)
        fresh = not self.statement
        self.trailing_at = None
        top = self.scopes[-1]
        if fresh and top.kind == "namespace" and top.condition and self.declares_base(declaration):
            top.visible, top.condition, top.shows_base = True, False, True
            self.out.append(self.out.pop() + " /** \\endcond */")
        if fresh and self.documentable() and not re.match(r"\s*(#|}|(public|private|protected):)", code):
            before, after = self.document(code, trailing, declaration)
        else:
            self.flush()
            before = after = ""
        if trailing and self.documentable() and (re.search(r"[;,]$", code.rstrip()) or self.scopes[-1].kind == "enum"):
            if not LETTERS.match(trailing):
                trailing = "///< " + escaped(trailing[2:].strip())
                self.trailing_at = at
        self.out.append(before + self.scan(code) + after + ("  " + trailing if trailing else ""))

    def declares_base(self, declaration):
        found = re.match(r"(?:template <.*?> )?class (\w+)(?: final)?(?: :[^;]*)? \{", declaration)
        return found and found[1] in self.bases

    @staticmethod
    def split(line):
        masked = STRING.sub(lambda found: "x" * len(found[0]), line)
        at = masked.find("//")
        return (line, "", None) if at < 0 else (line[:at].rstrip(), line[at:], at)

    def document(self, code, trailing, declaration):
        """What to put before and behind the first line of a public declaration."""
        hide = ("/** \\cond */ ", " /** \\endcond */")
        block, self.block = self.block, []
        name = name_of(declaration)
        if self.scopes[-1].kind == "namespace" and is_defined_outside(declaration):
            self.out += block
            self.hides = True
            return hide[0], ""
        if re.match(r"\s*(static_assert|friend (class|struct))\b", code) or "= delete" in declaration:
            self.out += block
            hidden = declaration.endswith(";") and len(declaration) <= len(code)
            return hide if hidden else ("", "")
        if not block and re.search(r"\b(\w+)( \1& operator=)?\(\1&&|operator=\(\w+&&", declaration) and not trailing:
            return "/** Takes over what the other object has. */ ", ""
        if not block and CONVENTIONAL.match(name.strip()):
            return hide if declaration[-1] in ";}" and len(declaration) <= len(code) else ("/** As the standard asks for. */ ", "")
        if not block and (former := re.search(r'\[\[.*?deprecated\("([^"]*)"\)\]\]', declaration)):
            return f"/** The former form: {escaped(former[1])}. */ ", ""
        if block:
            self.documented = ([name], self.one_line(block))
            self.out += self.as_documentation(block)
        elif "= default" in declaration and not trailing and declaration[-1] in ";}" and len(declaration) <= len(code):
            return hide
        elif self.documented and not trailing and any(sisters(each, name) for each in self.documented[0]):
            self.documented[0].append(name)
            return f"/** {self.documented[1]} */ ", ""
        return "", ""

    @staticmethod
    def one_line(block):
        return escaped(" ".join(line.strip()[2:].strip() for line in block)).replace("*/", "* /")

    @staticmethod
    def as_documentation(block):
        """Indented lines after an empty one are an example, unless they are a list."""
        out, example = [], False
        for index, line in enumerate(block):
            at = line.index("//")
            text = line[at + 2 :]
            following = block[index + 1].strip()[2:] if index + 1 < len(block) else ""
            if not text.strip() and following.startswith("   ") and following.strip()[:1] != "-" and not example:
                example = True
                out.append(line[:at] + "/// \\code{.cpp}")
                continue
            last = example and not following.startswith("   ")
            out.append(line[:at] + "///" + (text if example else escaped(text)) + (" \\endcode" if last else ""))
            example = example and not last
        return out

    def scan(self, code):
        """Follows the braces of a line of code; hides and groups what is to be."""
        if re.match(r"\s*#", code):
            return code
        top = self.scopes[-1]
        if found := re.match(r"\s*(public|private|protected):", code):
            top.public = found[1] == "public"
            self.documented = None
            before, after = ("/** \\endcond */ ", "") if top.public else ("", " /** \\cond */")
            changed = top.condition == top.public
            top.condition = not top.public
            return before * changed + code + after * changed
        code = re.sub(r"\[\[.*?\]\] ?", "", code)
        prefix, suffix = "", ""
        for character in STRING.sub('""', code):
            if character == "{":
                suffix += self.open()
            elif character == "}":
                suffix += " /** \\endcond */" * self.scopes[-1].hidden
                prefix += self.close()
                if self.scopes and self.scopes[-1].shows_base:  # this was its end
                    self.scopes[-1] = Scope("namespace", False, True)
                    self.scopes[-1].condition = True
                    suffix += " /** \\cond */"
            elif character == ";" and self.scopes[-1].kind != "body":
                self.statement = ""
            elif character == "," and self.scopes[-1].kind == "enum":
                self.statement = ""
            elif not character.isspace() or self.statement:
                self.statement += character
        if self.statement:
            self.statement += " "
        return prefix + code + suffix

    def open(self):
        head = re.sub(r"^template\s*<.*?>\s*(?=class|struct|union|requires)", "", self.statement.strip())
        top = self.scopes[-1]
        visible = self.documentable()
        suffix = ""
        if found := re.match(r"(inline )?namespace\b\s*([\w:]*)", head):
            detail = "detail" in found[2].split("::") or not found[2]
            scope = Scope("namespace", visible and not detail, True)
            if visible and detail:
                scope.condition = True
                suffix = " /** \\cond */"
            elif visible and top is self.scopes[0]:
                suffix = f" /** \\addtogroup {self.group} */ /** @{{ */"
                scope.grouped = True
        elif head.startswith("enum"):
            scope = Scope("enum", visible, True)
        elif found := re.match(r"(?:requires .*?)?(class|struct|union)\b", head):
            scope = Scope("class", visible, found[1] != "class")
        else:
            scope = Scope("body", False, True)
        self.scopes.append(scope)
        scope.hidden, self.hides = self.hides, False
        if scope.kind != "body":
            self.statement = ""
        return suffix

    def close(self):
        scope = self.scopes.pop()
        self.statement = "" if scope.kind != "class" else "x"  # a class needs its semicolon
        if scope.kind == "body" and self.scopes[-1].kind == "body":
            self.statement = "x"
        if scope.kind == "namespace" and getattr(scope, "grouped", False):
            return "/** @} */ "
        return "/** \\endcond */ " if scope.condition else ""


def main():
    folder = pathlib.Path(sys.argv[1])
    texts = {header: header.read_text(encoding="utf-8") for header in map(pathlib.Path, sys.argv[2:])}
    shown = bases(texts.values())
    for header, text in texts.items():
        copy = folder / header
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("\n".join(Filter(header, shown).run(text.split("\n"))), encoding="utf-8")


if __name__ == "__main__":
    main()
