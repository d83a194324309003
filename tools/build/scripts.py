#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts.py build LUA OUT: writes what is made of the scripts in the folder LUA.

OUT/lua/NAME.lua      the text that Redis gets
OUT/lua/long/NAME.lua the same, line by line, with the names that stand in LUA
OUT/lua/keys          a line a script: NAME, the keys that it reads, "writes", those that it writes
OUT/script_facts.h    what C knows of the library's scripts: enum script_id, struct script_facts
OUT/script_texts.h    the texts themselves, for one C file
OUT/script_replies.h  of each script that answers numbers a struct, and how to read it
OUT/tool_scripts.h    the texts of the program's scripts (those of LUA/doctor), and who may run
                      which of the library's scripts, with which commands
OUT/functions.lua     the library's scripts as a library of Redis functions, for other languages
OUT/tool_functions.h  the same for the program

scripts.py table LUA keys: prints a table of all scripts, with the keys that they touch.
scripts.py table LUA 'NAME...': prints a table of these, with their arguments and answers.

scripts.py manual LUA: prints of each of the library's scripts what its head says, for a manual page.

scripts.py check LUA: fails if a head names a file behind USES for nothing, or if a file has the name of
KEYS[2], which no script may touch.

scripts.py users LUA FORM: prints the Redis users that have just the rights which lapse needs, with
PASSWORD for the password. FORM is file, as lines of a Redis configuration; conf, the same as
comments; or shell, as commands.

A script draws from LUA/lib/base.lua, from the files of LUA/lib that its head names behind USES, and
from those that these name. Of each file it gets the statements that it needs, without comments, in the
order and form that lua_text.py gives them, and with short names for its variables. A name of a file
that USES does not name is an error, and so is a name that hides another one.
"""
import functools
import hashlib
import re
import sys
import textwrap
from pathlib import Path

import mdoc
from lua_text import TOKEN, cheaper, check_blocks, defined_by, hidden_names, names_in, shortened

LABELS = "KIND ROLE USES SELDOM KEYS READS WRITES ARGV RETURNS ERRORS COST".split()
# of interest to who changes a script alone
OF_BUILD = ["USES", "SELDOM"]
INDENT = len("-- KEYS    ")
PROGRAM_ONLY = "doctor"

# each may do what those before it may
ROLES = ["monitor", "producer", "listener"]
# the fields of struct script_facts that they set, each with its comment
KINDS = {
    "single": None,
    "batch": "A call carries the requests of up to a hundred jobs.",
    "read-only": "Redis holds it to that, so a user who may only read the keys can run it.",
    "ids may repeat": "A call may name an id twice: each answers as if it were alone.",
    "needs memory": None,
    "urgent": "It waits neither for other requests of its id nor for those sent before it.",
    "unasked": "No user waits for it, so that it is refused is a warning, and no health.",
}
# the ends of the names of keys, and the channels
KEYS_OF_QUEUE = "due run dead kept jobs attempts next report errors seq conf stream list rate past listeners index batches fence t p notice ends alive queues wake".split()
# What the connections send beside scripts. AUTH needs no right, and PSUBSCRIBE has one of its own:
# EVENTS.
CONNECTION = {
    "monitor": ["PING", "SELECT"],
    "producer": ["WAIT"],
    "listener": ["SUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "EXISTS", "SET", "ZRANGE"],
}
# What a script declares: that it is of a queue, whose keys are then those above, or a key of no queue.
# KEYS[2] exists never, so that no script runs while a part of the queue is on another node.
OF_QUEUE = "due none"
DECLARED = [OF_QUEUE, "alive", "queues"]
KEYS = "~lapse:{*}:*"
CHANNELS = ["&lapse:{*}:notice:*", "&lapse:{*}:ends:*", "&lapse:{}:wake:*"]
# The library of functions, and what their names begin with. Another order of arguments of any of them
# is another library: both can be loaded, so clients of either work.
LIBRARY = "lapse1"
# To wait for ends of jobs, a producer hears of them, and of nothing else.
ENDS = "(+subscribe +unsubscribe &lapse:{*}:ends:*)"
EVENTS = "(+psubscribe &__keyevent@*__:expired)"


def fail(path, what):
    sys.exit(f"scripts.py: {path}: {what}")


def without_comments(text):
    """The lines of code of a text."""
    code = TOKEN.sub(lambda token: "" if token[0].startswith("--") else token[0], text)
    return [line.rstrip() for line in code.split("\n") if line.strip()]


class Source:
    """A file of Lua: its head, by label, and its code."""

    def __init__(self, path):
        text = path.read_text()
        if not text.isascii() or re.search(r"\[=*\[", text):
            fail(path, "must be ASCII, and have no long brackets")
        self.path = path
        self.name = path.stem
        self.lines = without_comments(text)
        self.description = []
        self.head = {}
        label = None
        for line in text.split("\n"):
            if not line.startswith("--"):
                break
            found = re.match(r"-- ([A-Z]+) +(.*)", line)
            if found and found[1] in LABELS:
                label = found[1]
                self.head[label] = [found[2]]
            elif label and line.startswith("--  "):
                self.head[label].append(line[INDENT:])
            elif label:
                break
            else:
                self.description.append(line.removeprefix("--").strip())
        self.uses = self.words("USES")

    def words(self, label):
        return " ".join(self.head.get(label, [])).split()

    def entries(self, label):
        """The lines of ARGV or RETURNS: a list of (name, comment), and of what follows per job.

        Lines that stand further in are comments on names of the line above them; or they go on with
        it, if it has an open parenthesis, or they begin with |; or with a comment, if they stand
        further in than its name. Others are sentences about all of it.
        """
        single, per_job, comments, last = [], "", {}, None
        for line in self.head[label]:
            text = line.strip()
            comment = re.fullmatch(r" {2,4}(\S+) {2,}(.*)", line)
            if line.startswith("then per "):
                per_job = text.split(": ", 1)[1]
            elif per_job and (text.startswith("| ") or per_job.count("(") > per_job.count(")")):
                per_job += " " + text
            elif comment:
                last = comment[1]
                comments[last] = comment[2]
            elif not line.startswith(" "):
                name, _, rest = text.partition(" ")
                single.append([name, rest.strip()])
            elif line.startswith("    ") and last:
                comments[last] += " " + text
            elif line.startswith("    ") and single:
                single[-1][1] += " " + text
        names = re.split(r", (?![^(]*\))| \| ", per_job) if per_job else []
        return ([(name, comment) for name, comment in single],
                [(name, comments.get(name, "")) for name in names])


def statements_of(lines):
    """Those of a file: each begins in the first column, with local or return."""
    out = []
    for line in lines:
        if line.startswith(("local ", "return ")):
            out.append([])
        out[-1].append(line)
    return ["\n".join(statement) for statement in out]


class Lib(Source):
    """A file that scripts draw from: a list of statements, each with the names that it defines."""

    def __init__(self, path):
        super().__init__(path)
        self.statements = statements_of(self.lines)

    def names(self):
        return set().union(*(defined_by(statement) for statement in self.statements))


class Script(Source):
    """A file that Redis runs."""

    def __init__(self, path):
        super().__init__(path)
        self.check_labels()
        self.kinds = self.head["KIND"][0].split(", ")
        self.role = self.head["ROLE"][0]
        self.seldom = self.words("SELDOM")
        self.args, self.args_per_job = self.entries("ARGV")
        self.returns, self.returns_per_job = self.entries("RETURNS")
        for kind in self.kinds:
            if kind not in KINDS:
                fail(path, f"no KIND is called {kind}")
        if self.role not in ROLES:
            fail(path, f"no ROLE is called {self.role}")
        for key in [*self.words("READS"), *self.words("WRITES")]:
            if key not in KEYS_OF_QUEUE:
                fail(path, f"no key is called {key}")
        if self.head["KEYS"] not in [[keys] for keys in DECLARED]:
            fail(path, f"its KEYS are neither {' nor '.join(DECLARED)}")
        self.check_loops()

    def check_labels(self):
        optional = ["SELDOM", "READS", "WRITES"]
        for label in LABELS:
            if label not in self.head and label not in optional:
                fail(self.path, f"its head has no {label}")
        if list(self.head) != [label for label in LABELS if label in self.head]:
            fail(self.path, f"its head is not in the order {' '.join(LABELS)}")

    def check_loops(self):
        """Over the jobs in ARGV: where they begin, and how many arguments each has."""
        code = "\n".join(self.lines)
        first, step = len(self.args) + 1, len(self.args_per_job)
        for loop in re.finditer(r"for at = (\d+), #ARGV(?:, (\d+))? do", code):
            if (int(loop[1]), int(loop[2] or 1)) != (first, step):
                fail(self.path, f"ARGV of its head is not that of: {loop[0]}")
        for held in re.finditer(r"attempts_held\((\d+)\)", code):
            if (first, step) != (3, int(held[1])):
                fail(self.path, f"ARGV of its head is not that of: {held[0]}")

    def is_batch(self):
        return "batch" in self.kinds

    def is_of_queue(self):
        return self.head["KEYS"] == [OF_QUEUE]

    def function_flag(self):
        """Without allow-oom Redis refuses a function before it starts, once it is full."""
        if not self.words("WRITES"):
            return "'no-writes'"
        return "" if "needs memory" in self.kinds else "'allow-oom'"

    def has_holder(self):
        return self.is_batch() and "holder" in dict(self.args)


class Lua:
    """All of the folder."""

    def __init__(self, root):
        self.libs = {path.stem: Lib(path) for path in sorted(root.glob("lib/*.lua"))}
        self.scripts = [
            Script(path) for path in sorted(root.glob("*/*.lua")) if path.parent.name != "lib"
        ]
        names = [script.name for script in self.scripts]
        for script in self.scripts:
            if names.count(script.name) > 1:
                fail(script.path, "there is another script of this name")
        for source in [*self.libs.values(), *self.scripts]:
            try:
                check_blocks("\n".join(source.lines))
            except ValueError as error:
                fail(source.path, error)
            self.check_uses(source)
        self.of_program = [s for s in self.scripts if s.path.parent.name == PROGRAM_ONLY]
        self.of_library = [s for s in self.scripts if s not in self.of_program]

    @functools.cached_property
    def texts(self):
        """What Redis runs, by the names of the scripts."""
        return {script.name: self.text_of(script) for script in self.scripts}

    @functools.cached_property
    def sent(self):
        """The same with short names."""
        return {name: shortened(text) for name, text in self.texts.items()}

    def check_uses(self, source):
        used = names_in("\n".join(source.lines))
        for name in source.uses:
            if name not in self.libs:
                fail(source.path, f"USES {name}, which is not in lib")
        for lib in self.libs.values():
            if lib is source or lib.name in ["base", *source.uses]:
                continue
            for name in sorted(used & lib.names()):
                fail(source.path, f"needs {name}, but its USES does not name {lib.name}")

    def needless(self):
        """What USES names for nothing. Not an error of the build: tests take code away."""
        for source in [*self.libs.values(), *self.scripts]:
            used = names_in("\n".join(source.lines))
            for name in source.uses:
                if not used & self.libs[name].names():
                    yield f"{source.path}: USES {name}, of which it needs nothing"

    def touching_none(self):
        """Where the key of KEYS[2] is named, other than in heads."""
        for source in [*self.libs.values(), *self.scripts]:
            for line in source.lines:
                if re.search(r"\bKEYS\[2\]|\.\. *['\"]none['\"]", line):
                    yield f"{source.path}: no script may touch KEYS[2]: {line.strip()}"

    def libs_of(self, source):
        """The files that it draws from, each behind those that it needs itself."""
        found = [self.libs["base"]]
        for name in source.uses:
            for lib in [*self.libs_of(self.libs[name]), self.libs[name]]:
                if lib not in found:
                    found.append(lib)
        return found

    def text_of(self, script):
        own = "\n".join(script.lines)
        kept, needed = [], names_in(own)
        for lib in reversed(self.libs_of(script)):
            for statement in reversed(lib.statements):
                if defined_by(statement) & needed:
                    kept.insert(0, statement)
                    needed |= names_in(statement)
        statements = [*kept, *statements_of(script.lines)]
        for name in set(script.seldom) - set(re.findall(r"local function (\w+)", "\n".join(statements))):
            fail(script.path, f"SELDOM names {name}, which is no function of it")
        for name, statement in hidden_names(statements):
            fail(script.path, f"{name} hides another {name}: {statement.splitlines()[0]}")
        try:
            text = "\n".join([*cheaper(statements, set(script.seldom)), ""])
        except ValueError as error:
            fail(script.path, error)
        return text.replace("@COMMANDS@", " ".join(commands_of(text)))


def commands_of(text):
    """What a script cannot do without, as in XGROUP|create; it can do without what it calls by
    redis.pcall."""
    found = re.findall(r"(?<![\w.])(?:call|write|written)\('([A-Z]+)'(?:, '([a-z]+)')?", text)
    return sorted({"|".join(filter(None, words)) for words in found})


def script_id(script):
    return f"SCRIPT_{script.name.upper()}"


def c_name(words):
    return re.sub(r"\W", "_", words)


def c_text(name, text):
    """As string literals: an array of numbers takes clang-tidy half a minute."""
    yield f"static const char {name}[] ="
    for line in text.splitlines(keepends=True):
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        yield f'    "{escaped}"'
    yield "    ;"


def script_facts(lua):
    yield "#ifndef LAPSE_SCRIPT_FACTS_H"
    yield "#define LAPSE_SCRIPT_FACTS_H"
    yield "#include <stdbool.h>"
    yield "#include <stddef.h>"
    yield "enum script_id {"
    for script in lua.of_library:
        yield f"    {script_id(script)},"
    yield "    SCRIPTS_N"
    yield "};"
    yield "struct script_facts {"
    yield "    const char *name;"
    yield "    const char *text;"
    yield "    size_t len;"
    yield "    char sha[41];"
    for kind, comment in KINDS.items():
        if comment:
            yield f"    /* {comment} */"
            yield f"    bool {c_name(kind)};"
    yield "    /* A batch, whose ARGV[2] is the holder of its jobs. */"
    yield "    bool has_holder;"
    yield "    /* KEYS[2] is `none` of the queue of KEYS[1]; else there is no second key. */"
    yield "    bool of_queue;"
    yield "};"
    yield "extern const struct script_facts script_facts[SCRIPTS_N];"
    yield "#endif"


def script_texts(lua):
    for script in lua.of_library:
        yield from c_text(f"{script.name}_text", lua.sent[script.name])
    yield "const struct script_facts script_facts[SCRIPTS_N] = {"
    for script in lua.of_library:
        flags = [c_name(kind) for kind in script.kinds if KINDS[kind]]
        flags += ["has_holder"] if script.has_holder() else []
        flags += ["of_queue"] if script.is_of_queue() else []
        yield f"    [{script_id(script)}] = {{"
        yield f'        .name = "{script.name}",'
        yield f"        .text = {script.name}_text,"
        yield f"        .len = sizeof {script.name}_text - 1,"
        yield f'        .sha = "{hashlib.sha1(lua.sent[script.name].encode()).hexdigest()}",'
        for flag in flags:
            yield f"        .{flag} = true,"
        yield "    },"
    yield "};"


def script_replies(lua):
    yield "#ifndef LAPSE_SCRIPT_REPLIES_H"
    yield "#define LAPSE_SCRIPT_REPLIES_H"
    yield '#include "redis/reply.h"'
    for script in lua.of_library:
        if not script.is_batch():
            yield from script_reply(script)
    yield "#endif"


def kind_of_reply(comment):
    """The C type of an element of a reply, and what else its comment says: it is a number, unless
    the comment begins with "text:"."""
    if comment.startswith("text: "):
        return "struct span", comment.removeprefix("text: ")
    return "int64_t", comment


def script_reply(script):
    """A struct, its reader, and an accessor for each element that comes per job."""
    struct = f"{script.name}_reply"
    per_job = [name.split()[0] for name, _ in script.returns_per_job]
    first, width = len(script.returns), len(per_job)
    each_of, times = (f" / {width}", f"{width} * ") if width > 1 else ("", "")
    yield ""
    yield f"struct {struct} {{"
    for name, comment in script.returns:
        kind, comment = kind_of_reply(comment)
        yield f"    {kind} {name};" + (f" /* {comment} */" if comment else "")
    if per_job:
        yield "    const struct redisReply *reply; /* not copied */"
        yield "    size_t n_jobs;"
    yield "};"

    yield "/* false: the reply is of another shape. */"
    yield f"static inline bool {struct}_read(struct {struct} *out, const struct redisReply *reply)"
    yield "{"
    if per_job:
        yield "    size_t len = reply_len(reply);"
        yield ""
        yield "    out->reply = reply;"
        yield f"    out->n_jobs = len > {first} ? (len - {first}){each_of} : 0;"
    reads = []
    for i, (name, comment) in enumerate(script.returns):
        reader = "reply_int" if kind_of_reply(comment)[0] == "int64_t" else "reply_text"
        reads.append(f"{reader}(reply_at(reply, {i}), &out->{name})")
    yield "    return " + " &&\n           ".join(reads) + ";"
    yield "}"

    for i, name in enumerate(per_job):
        yield f"/* The {name} of the i-th job; NULL: there is none. */"
        yield "static inline const struct redisReply *"
        yield f"{struct}_{name}(const struct {struct} *r, size_t i)"
        yield "{"
        yield f"    return reply_at(r->reply, {first + i} + {times}i);"
        yield "}"


def tool_scripts(lua):
    for script in lua.of_program:
        yield from c_text(f"script_{script.name}", lua.sent[script.name])
    yield "/* each may do what those before it may */"
    yield "enum script_role {"
    for role in ROLES:
        yield f"    ROLE_{role.upper()},"
    yield "};"
    yield "static const struct script_needs {"
    yield "    const char *script;"
    yield "    enum script_role role;"
    yield "    const char *commands; /* each followed by a space */"
    yield "} script_needs[] = {"
    for script in lua.of_library:
        commands = "".join(command + " " for command in commands_of(lua.texts[script.name]))
        yield f'    {{"{script.name}", ROLE_{script.role.upper()}, "{commands}"}},'
    yield "};"


def functions(lua):
    """Each function is all of a script: what scripts share is in each of them, as in EVALSHA."""
    yield f"#!lua name={LIBRARY}"
    yield "-- The scripts of lapse as functions. lapse-protocol(7) has their keys, arguments and replies."
    for script in lua.of_library:
        yield "redis.register_function{"
        yield f"function_name = '{LIBRARY}_{script.name}',"
        yield f"flags = {{{script.function_flag()}}},"
        yield "callback = function(KEYS, ARGV)"
        yield lua.texts[script.name].rstrip("\n")
        yield "end}"


def tool_functions(lua):
    yield f'static const char functions_name[] = "{LIBRARY}";'
    yield from c_text("functions_text", "\n".join([*functions(lua), ""]))


# ---- tables for the documents ----


def table_of_keys(lua):
    yield "| script | role | kind | reads | writes, in this order |"
    yield "|---|---|---|---|---|"
    for script in lua.scripts:
        reads, writes = " ".join(script.words("READS")), " ".join(script.words("WRITES"))
        yield f"| {script.name} | {script.role} | {', '.join(script.kinds)} | {reads} | {writes} |"


def table_of_arguments(lua, names):
    yield "| script | arguments | answer |"
    yield "|---|---|---|"
    of_name = {script.name: script for script in lua.scripts}
    for script in [of_name[name] for name in names]:
        arguments = described(script.args[1:], script.args_per_job, ", ")
        between = " or " if script.is_batch() else ", "
        answer = described(script.returns[1:], script.returns_per_job, between)
        yield f"| {script.name} | {arguments} | {answer} |"


def described(single, per_job, between):
    def with_comments(names):
        return [f"{name} ({comment})" if comment else name for name, comment in names]

    text = "; ".join(with_comments(single))
    if per_job:
        text += "; then per job: " if text else "per job: "
        text += between.join(with_comments(per_job))
    return text


def table(lua, which):
    return table_of_keys(lua) if which == "keys" else table_of_arguments(lua, which.split())


# ---- the manual page ----


def manual(lua):
    for script in lua.of_library:
        yield f".Ss {script.name}"
        yield from mdoc.paragraph(" ".join(script.description))
        yield ".Bl -tag -width RETURNS -compact"
        for label in [label for label in LABELS if label in script.head and label not in OF_BUILD]:
            yield f".It {label}"
            if label in ["ARGV", "RETURNS"]:
                yield from manual_entries(script.head[label])
            else:
                yield from mdoc.paragraph(", ".join(script.head[label]))
        yield ".El"


def manual_entries(lines):
    yield ".Bl -tag -width Ds -compact"
    for line in lines:
        name, comment = line.strip(), ""
        if not name.startswith("then per "):
            name, _, comment = name.partition("  ")
        yield f'.It "{mdoc.code(name)}"'
        if comment:
            yield mdoc.guarded(mdoc.code(comment.strip()))
    yield ".El"


# ---- the users ----


def rights(lua, role):
    """The commands that a role needs: for its scripts, and for its connections."""
    commands = {"EVAL_RO", "EVALSHA_RO"}
    for may in ROLES[: ROLES.index(role) + 1]:
        commands.update(CONNECTION[may])
        for script in lua.scripts:
            if script.role == may:
                # INFO of one section is INFO|memory
                text = lua.texts[script.name]
                asked = re.findall(r"(?:call|write|written)\('([A-Z]+)'(?:, '([a-z]+)')?", text)
                commands.update("|".join(filter(None, words)) for words in asked)
    if role != "monitor":
        commands |= {"EVAL", "EVALSHA"}
    return " ".join("+" + command.lower() for command in sorted(commands, key=str.lower))


def users(lua, form):
    rules = {
        "listener": [KEYS, *CHANNELS, "-@all " + rights(lua, "listener"), EVENTS],
        "producer": [KEYS, *CHANNELS, "-@all " + rights(lua, "producer"), ENDS],
        "monitor": ["%R" + KEYS, "-@all " + rights(lua, "monitor")],
    }
    for role, words in rules.items():
        if form == "shell":
            yield from user_by_shell(role, words)
        else:
            line = " ".join(["user", f"lapse_{role}", "on", ">PASSWORD", *words])
            yield "# " + line if form == "conf" else line


def user_by_shell(role, rules):
    """A command over several lines. What the shell would take for itself stands in quotes."""
    words = ["redis-cli", "ACL", "SETUSER", f"lapse_{role}", "reset", "on", "'>PASSWORD'"]
    for rule in rules:
        if rule.startswith("-@all"):
            words += [f"'{word}'" if "|" in word else word for word in rule.split()]
        else:
            words.append(f"'{rule}'".replace(" ", "^"))  # no line ends within quotes
    lines = textwrap.wrap(" ".join(words), 110, break_long_words=False, break_on_hyphens=False)
    yield "    " + " \\\n        ".join(lines).replace("^", " ")


def write(path, lines):
    path.write_text("\n".join(["/* generated by tools/build/scripts.py */", *lines, ""]))


def build(lua, out):
    long = out / "lua" / "long"
    long.mkdir(parents=True, exist_ok=True)
    for name, text in lua.texts.items():
        (long / f"{name}.lua").write_text(text)
        (out / "lua" / f"{name}.lua").write_text(lua.sent[name])
    keys = [
        " ".join([script.name, *script.words("READS"), "writes", *script.words("WRITES")])
        for script in lua.scripts
    ]
    (out / "lua" / "keys").write_text("\n".join(keys) + "\n")
    write(out / "script_facts.h", script_facts(lua))
    write(out / "script_texts.h", script_texts(lua))
    write(out / "script_replies.h", script_replies(lua))
    write(out / "tool_scripts.h", tool_scripts(lua))
    write(out / "tool_functions.h", tool_functions(lua))
    (out / "functions.lua").write_text("\n".join([*functions(lua), ""]))


def main(verb, folder, argument=None):
    lua = Lua(Path(folder))
    if verb == "build":
        build(lua, Path(argument))
    elif verb == "check":
        sys.exit("\n".join([*lua.needless(), *lua.touching_none()]) or None)
    elif verb == "manual":
        print("\n".join(manual(lua)))
    else:
        lines = {"table": table, "users": users}[verb](lua, argument)
        print("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
