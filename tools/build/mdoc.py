#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mdoc.py FILE MACRO [SECTION...]: prints a document as text of a manual page.

Without SECTION all of its sections, without what stands before the first; else these. MACRO, Sh or Ss,
is what their headings become; text leaves them out. It knows the Markdown of our documents: paragraphs,
lists, tables, code, links, bold and italic. A table becomes a list with an entry a row; one of scripts
is left out, since the page describes each script by itself. Marks of `make doc` are left out too.
"""
import re
import sys
from pathlib import Path

# a star beside a space is a multiplication
INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*(?! )([^*]+)(?<! )\*|\[([^\]]+)\]\([^)]*\)")
ITEM = re.compile(r"(- |\d+\. )(.*)")
# what a formatter would draw as another character
SIGNS = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}


def guarded(line):
    """A line of text that might look like one of macros."""
    return r"\&" + line if line.startswith((".", "'")) else line


def code(text):
    return "".join(SIGNS.get(sign, sign) for sign in text)


def prose(text):
    """Text without marks of Markdown."""
    return text.replace("\\", r"\e").replace('"', r"\(dq")


def unmarked(text):
    return INLINE.sub(lambda found: next(filter(None, found.groups())), text)


def inline(text):
    """Text of a paragraph or of a cell."""
    out, at = "", 0
    for found in INLINE.finditer(text):
        out += prose(text[at : found.start()])
        if found[1]:
            out += rf"\fB{code(found[1])}\fR"
        elif found[4]:
            out += inline(found[4])
        else:
            out += rf"\fI{prose(found[2] or found[3])}\fR"
        at = found.end()
    return out + prose(text[at:])


def paragraph(text):
    """Each sentence on a line of its own."""
    for sentence in re.split(r"(?<=[.?!])\s+(?=\S*[A-Z])", inline(" ".join(text.split()))):
        yield guarded(sentence)


def heading(macro, title):
    return f".{macro} {prose(title.upper() if macro == 'Sh' else title)}"


def entry(tag, body):
    yield f'.It "{tag}"'
    yield from body


def table(rows):
    """rows: lists of cells, the first those of the heading. A cell is named if there are several."""
    names, *rows = rows
    yield ".Bl -tag -width Ds"
    for tag, *cells in rows:
        if len(cells) > 1:
            cells = [f"{name}: {cell}" for name, cell in zip(names[1:], cells) if cell]
        yield from entry(inline(tag), paragraph("; ".join(cells) + "."))
    yield ".El"


def listed(lines):
    kind = "bullet" if lines[0].startswith("-") else "enum"
    items = []
    for line in lines:
        found = ITEM.match(line)
        if found:
            items.append(found[2])
        else:
            items[-1] += " " + line.strip()
    yield f".Bl -{kind}"
    for item in items:
        yield ".It"
        yield from paragraph(item)
    yield ".El"


def literal(lines):
    yield ".Bd -literal -offset indent"
    yield from (guarded(code(line)) for line in lines)
    yield ".Ed"


def blocks(lines):
    """The parts of a section: (kind, lines)."""
    block, fenced = [], False
    for line in [*lines, ""]:
        if line.startswith("```"):
            fenced = not fenced
            if fenced:
                continue
            yield "literal", block
            block = []
        elif fenced or line.strip():
            block.append(line)
        elif block:
            yield kind_of(block), block
            block = []


def kind_of(block):
    if block[0].startswith("| script "):
        return "scripts"
    if block[0].startswith("    "):
        return "literal"
    if block[0].startswith("|"):
        return "table"
    return "list" if ITEM.match(block[0]) else "paragraph"


def body(lines):
    first = True
    for kind, block in blocks(line for line in lines if not line.startswith("<!--")):
        if kind == "scripts":
            continue
        if kind == "literal":
            indent = min(len(line) - len(line.lstrip()) for line in block if line.strip())
            yield from literal([line[indent:] for line in block])
        elif kind == "table":
            cells = [re.split(r" *\| *", row.strip("| ")) for row in block if not row.startswith("|--")]
            yield from table(cells)
        elif kind == "list":
            yield from listed(block)
        else:
            if not first:
                yield ".Pp"
            yield from paragraph(" ".join(block))
        first = False


def sections(text):
    """(title, lines) of each."""
    out = []
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            out.append((unmarked(line.removeprefix("## ")), []))
        elif out:
            out[-1][1].append(line)
    return out


def page(path, macro, wanted):
    found = sections(Path(path).read_text())
    for title in wanted:
        if title not in dict(found):
            sys.exit(f"mdoc.py: {path}: no section is called {title}")
    for title, lines in found:
        if title in wanted or not wanted:
            if macro != "text":
                yield heading(macro, title)
            yield from body(lines)


if __name__ == "__main__":
    print("\n".join(page(sys.argv[1], sys.argv[2], sys.argv[3:])))
