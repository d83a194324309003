#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts.py LUA OUT: writes what is made of the scripts in the folder LUA.

OUT/lua/NAME.lua   the text that Redis gets
OUT/scripts.h      the texts of the library's scripts, and their hashes
OUT/script_ids.h   enum script_id
OUT/tool_scripts.h the texts of the program's scripts (those of LUA/doctor), and the commands that
                   the library's scripts call

A script draws from LUA/lib/base.lua, from the files of LUA/lib that its head names behind USES, and
from those that these name. Of each file it gets the statements that it needs, without comments:
Redis keeps the text in memory, and makes each function of it again in each call. A name of a file
that USES does not name is an error, and so is a file that USES names for nothing.
"""
import hashlib
import re
import sys
from pathlib import Path

# a comment, a text, or a name; not the field of a table, nor the key of one
TOKEN = re.compile(r"--[^\n]*|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|(?<![\w.:])[A-Za-z_]\w*")
LABELS = "KIND ROLE USES KEYS READS WRITES ARGV RETURNS ERRORS COST".split()
PROGRAM_ONLY = "doctor"


def fail(path, what):
    sys.exit(f"scripts.py: {path}: {what}")


def without_comments(text):
    """The lines of code of a text."""
    code = TOKEN.sub(lambda token: "" if token[0].startswith("--") else token[0], text)
    return [line.rstrip() for line in code.split("\n") if line.strip()]


def names_in(code):
    """The names that a piece of code uses."""
    return {token for token in TOKEN.findall(code) if token[0] not in "-'\""}


class Source:
    """A file of Lua: its head, by label, and its code."""

    def __init__(self, path):
        text = path.read_text()
        if not text.isascii() or re.search(r"\[=*\[", text):
            fail(path, "must be ASCII, and have no long brackets")
        self.path = path
        self.name = path.stem
        self.lines = without_comments(text)
        self.head = {}
        label = None
        for line in text.split("\n"):
            if not line.startswith("--"):
                break
            found = re.match(r"-- ([A-Z]+) +(.*)", line)
            if found and found[1] in LABELS:
                label = found[1]
                self.head[label] = [found[2]]
            elif label:
                self.head[label].append(line[2:])
        self.uses = " ".join(self.head.get("USES", [])).split()


class Lib(Source):
    """A file that scripts draw from: a list of statements, each with the names that it defines."""

    def __init__(self, path):
        super().__init__(path)
        self.statements = []
        for line in self.lines:
            if line.startswith("local "):
                self.statements.append([])
            self.statements[-1].append(line)
        self.statements = ["\n".join(lines) for lines in self.statements]

    @staticmethod
    def defined_by(statement):
        names = re.match(r"local (?:function )?([\w, ]+)", statement)[1]
        return set(names.replace(",", " ").split())

    def names(self):
        return set().union(*(self.defined_by(statement) for statement in self.statements))


class Lua:
    """All of the folder."""

    def __init__(self, root):
        self.libs = {path.stem: Lib(path) for path in sorted(root.glob("lib/*.lua"))}
        self.scripts = [
            Source(path) for path in sorted(root.glob("*/*.lua")) if path.parent.name != "lib"
        ]
        names = [script.name for script in self.scripts]
        for script in self.scripts:
            if names.count(script.name) > 1:
                fail(script.path, "there is another script of this name")
        for source in [*self.libs.values(), *self.scripts]:
            self.check_uses(source)

    def check_uses(self, source):
        used = names_in("\n".join(source.lines))
        for name in source.uses:
            if name not in self.libs:
                fail(source.path, f"USES {name}, which is not in lib")
            if not used & self.libs[name].names():
                fail(source.path, f"USES {name}, of which it needs nothing")
        for lib in self.libs.values():
            if lib is source or lib.name in ["base", *source.uses]:
                continue
            for name in sorted(used & lib.names()):
                fail(source.path, f"needs {name}, but its USES does not name {lib.name}")

    def libs_of(self, source):
        """The files that it draws from, each behind those that it needs itself."""
        found = [self.libs["base"]]
        for name in source.uses:
            for lib in [*self.libs_of(self.libs[name]), self.libs[name]]:
                if lib not in found:
                    found.append(lib)
        return found

    def text_of(self, script):
        """What Redis gets."""
        own = "\n".join(script.lines)
        kept, needed = [], names_in(own)
        for lib in reversed(self.libs_of(script)):
            for statement in reversed(lib.statements):
                if lib.defined_by(statement) & needed:
                    kept.insert(0, statement)
                    needed |= names_in(statement)
        text = "\n".join([*kept, own, ""])
        return text.replace("@COMMANDS@", " ".join(commands_of(text)))


def commands_of(text):
    """What a script cannot do without; it can do without what it calls by redis.pcall."""
    return sorted(set(re.findall(r"(?<![\w.])(?:call|write)\('([A-Z]+)'", text)))


def c_bytes(text):
    data = text.encode()
    for at in range(0, len(data), 16):
        yield "    " + " ".join(f"0x{byte:02x}," for byte in data[at : at + 16])


def script_ids(scripts):
    yield "#ifndef LAPSE_SCRIPT_IDS_H"
    yield "#define LAPSE_SCRIPT_IDS_H"
    yield "enum script_id {"
    for script in scripts:
        yield f"    SCRIPT_{script.name.upper()},"
    yield "    SCRIPT_COUNT"
    yield "};"
    yield "#endif"


def script_texts(scripts, texts):
    yield '#include "script_ids.h"'
    yield "#include <stddef.h>"
    for script in scripts:
        yield f"static const unsigned char script_{script.name}_text[] = {{"
        yield from c_bytes(texts[script.name])
        yield "};"
    yield "struct script_text {"
    yield "    const char *name;"
    yield "    const unsigned char *text;"
    yield "    size_t len;"
    yield "    char sha[41];"
    yield "};"
    yield "static const struct script_text script_texts[SCRIPT_COUNT] = {"
    for script in scripts:
        sha = hashlib.sha1(texts[script.name].encode()).hexdigest()
        text = f"script_{script.name}_text"
        yield f'    {{"{script.name}", {text}, sizeof {text}, "{sha}"}},'
    yield "};"


def tool_scripts(scripts, tools, texts):
    for script in tools:
        yield f"static const char script_{script.name}[] = {{"
        yield from c_bytes(texts[script.name])
        yield "    0};"
    yield "static const struct script_needs {"
    yield "    const char *script, *commands;"
    yield "} script_needs[] = {"
    for script in scripts:
        yield f'    {{"{script.name}", "{" ".join(commands_of(texts[script.name]))} "}},'
    yield "};"


def write(path, lines):
    """Only where it changed, so that nothing is compiled in vain."""
    new = "\n".join(["/* generated by tools/build/scripts.py */", *lines, ""])
    if not path.exists() or path.read_text() != new:
        path.write_text(new)


def main(lua_dir, out_dir):
    lua, out = Lua(Path(lua_dir)), Path(out_dir)
    texts = {script.name: lua.text_of(script) for script in lua.scripts}
    tools = [script for script in lua.scripts if script.path.parent.name == PROGRAM_ONLY]
    library = [script for script in lua.scripts if script not in tools]

    (out / "lua").mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / "lua" / f"{name}.lua").write_text(text)
    write(out / "script_ids.h", script_ids(library))
    write(out / "scripts.h", script_texts(library, texts))
    write(out / "tool_scripts.h", tool_scripts(library, tools, texts))


if __name__ == "__main__":
    main(*sys.argv[1:])
