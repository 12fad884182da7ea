"""A Markdown extension for mkdocs.yml: names of headings and nested lists as on the forge."""

import re

import markdown


def slug(heading, separator):
    """The name of a heading, as in tools/check_links.py."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


class Forge(markdown.extensions.Extension):
    """A list inside a list is indented by two columns."""

    def extendMarkdown(self, md):  # noqa: N802, the name is markdown's
        md.tab_length = 2


def makeExtension(**options):  # noqa: N802, the name is markdown's
    return Forge(**options)
