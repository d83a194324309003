#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""manual.py PROGRAM [FOLDER]: compares the manual pages in FOLDER (tools/man) with what they describe.

lapse.3, lapse_sync.3 and lapse_cron.3: the synopsis has each function and callback type of the header, declared alike; structs that
are shown are declared alike, and the fields of the others have an entry; each constant is named.
lapse.1: the commands and options that the help of PROGRAM lists are the ones that the page names.
"""

import re
import shlex
import subprocess
import sys

LIBRARY_PAGES = {"lapse.3": "include/lapse.h", "lapse_sync.3": "include/lapse_sync.h", "lapse_cron.3": "include/lapse_cron.h"}
EXPORTED = '__attribute__((visibility("default")))'
NOT_FOR_USERS = {"LAPSE_H", "LAPSE_SYNC_H", "LAPSE_CRON_H", "LAPSE_API"}

FUNCTION = re.compile(r"^(?:static inline )?([a-z][\w *]*?)(\w+)\(((?:[^()]|\([^()]*\))*)\)\s*[;{]", re.M)
BLOCK = re.compile(r"^(struct|enum) (\w+) \{(.*?)^\};", re.M | re.S)
MACRO = re.compile(r"^#define (LAPSE_\w+)\s", re.M)
LITERAL = re.compile(r"^\.Bd -literal.*?$(.*?)^\.Ed$", re.M | re.S)
LONG_OPTION = re.compile(r"^ +(?:-\w, )?--([a-z-]+)", re.M)


class Header:
    def __init__(self, path):
        self.path = path
        source = read(path)
        code = preprocessed(source)
        self.functions = {name: words(kind + name + "(" + args + ")") for kind, name, args in FUNCTION.findall(code)}
        self.blocks = {(kind, name): body for kind, name, body in BLOCK.findall(code)}
        self.macros = set(MACRO.findall(source)) - NOT_FOR_USERS

    def constants(self):
        names = set(self.macros)
        for (kind, _), body in self.blocks.items():
            if kind == "enum":
                names.update(re.findall(r"\bLAPSE_\w+", body))
        return sorted(names)


def preprocessed(source):
    """With the lists that are macros written out, without what other headers declare."""
    own = re.sub(r"^#include .*$", "", source, flags=re.M)
    result = subprocess.run(["cc", "-E", "-P", "-x", "c", "-"], input=own, capture_output=True, text=True, check=True)
    return re.sub(rf"(?:{re.escape(EXPORTED)}|\bLAPSE_API\b)\s*", "", result.stdout)


def words(code):
    return re.findall(r"\w+|\S", re.sub(r"/\*.*?\*/", "", code, flags=re.S))


def fields(body):
    return [words(field)[-1] for field in body.split(";") if field.strip()]


def synopsis(page):
    """The functions of the synopsis: name to words, the type first."""
    functions = {}
    kind, name, arguments = "", "", []
    for line in page.partition(".Sh SYNOPSIS")[2].partition(".Sh DESCRIPTION")[0].splitlines():
        macro, *rest = shlex.split(line) or [""]
        if macro == ".Ft":
            kind = " ".join(rest)
        elif macro in (".Fn", ".Fo"):
            name, arguments = rest[0], rest[1:]
        elif macro == ".Fa":
            arguments += rest
        if macro in (".Fn", ".Fc"):
            functions[name] = words(kind + " " + name + "(" + ", ".join(arguments) + ")")
    return functions


def compare_functions(header, page):
    shown = synopsis(page)
    for name in sorted(header.functions.keys() - shown.keys()):
        yield f"the synopsis lacks {name}"
    for name in sorted(shown.keys() - header.functions.keys()):
        yield f"the synopsis has {name}, which is not in {header.path}"
    for name in sorted(shown.keys() & header.functions.keys()):
        if shown[name] != header.functions[name]:
            yield f"{name} is declared as {' '.join(header.functions[name])} in {header.path}"


def compare_structs(header, page):
    shown = {}
    for literal in LITERAL.findall(page):
        shown.update({(kind, name): body for kind, name, body in BLOCK.findall(literal)})
    entries = set(re.findall(r"^\.It Va (\w+)", page, re.M))

    for (kind, name), body in header.blocks.items():
        if (kind, name) in shown:
            if words(shown[kind, name]) != words(body):
                yield f"{kind} {name} differs from {header.path}"
        elif kind == "struct":
            for field in fields(body):
                if field not in entries:
                    yield f"lacks {field} of struct {name}"


def compare_constants(header, page):
    for name in header.constants():
        if not re.search(rf"\bDv {name}\b", page):
            yield f"lacks {name}"


def library_faults(header, page):
    yield from compare_functions(header, page)
    yield from compare_structs(header, page)
    yield from compare_constants(header, page)


def help_text(program, *topic):
    return subprocess.run([program, "help", *topic], capture_output=True, text=True, check=True).stdout


def program_faults(program, page):
    listed = help_text(program).partition("commands:\n")[2].partition("\n\n")[0]
    commands = re.findall(r"^  (\w+) ", listed, re.M)
    options = set()
    for topic in ["options", *(command for command in commands if command != "help")]:
        options.update(LONG_OPTION.findall(help_text(program, topic)))
    named = set(re.findall(r"\bFl -([a-z-]+)", page))

    for command in commands:
        if not re.search(rf"\bCm {command}\b", page):
            yield f"lacks the command {command}"
    for option in sorted(options - named):
        yield f"lacks --{option}"
    for option in sorted(named - options):
        yield f"names --{option}, which no help lists"


def read(path):
    with open(path) as file:
        return file.read()


def main(program, folder="tools/man"):
    faults = []
    for name, path in LIBRARY_PAGES.items():
        page = f"{folder}/{name}"
        faults += [f"{page}: {fault}" for fault in library_faults(Header(path), read(page))]
    faults += [f"{folder}/lapse.1: {fault}" for fault in program_faults(program, read(f"{folder}/lapse.1"))]
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
