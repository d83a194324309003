# SPDX-License-Identifier: MIT
"""Prints the figures of C trees side by side, or what of this project's own code is over a limit: see shape.sh."""

import fnmatch
import glob
import os
import signal
import statistics
import subprocess
import sys

from csource import Source

FOLDERS = ["src", "tools", "tests"]
BLANK_FOLDERS = ["src", "tools"]  # tests are short, and each is a paragraph
OTHER_FOLDERS = ["include"]  # no functions to speak of: only the width of its lines is checked

FUNCTION_LINES = 60
FUNCTION_LINES_P99 = 45
LONG_FUNCTION = 20  # lines, from which on a function is expected to have a paragraph break
DEPTH = 3
PARAMETERS = 6
CONDITIONALS = 1
COLUMNS = 100
BLANK_LINES = 60  # per 1,000 lines of functions
TAB = 8


class Tree:
    """One column of the table: a folder, or what a pattern finds."""

    def __init__(self, name, spec):
        self.name = name
        self.spec = spec
        self.sources = [Source(path) for path in files_of(spec)]
        self.functions = [f for source in self.sources for f in source.functions]
        self.statements = [s for f in self.functions for s in f.statements]
        self.function_lines = [f.lines() for f in self.functions]
        self.lines = [line for source in self.sources for line in source.lines]

    def per_1000_statements(self, count):
        return ratio(1000, count, sum(f.statement_ends for f in self.functions))

    def blank_lines(self):
        """Per 1,000 lines of functions, their heads counted."""
        total = sum(self.function_lines)
        return 1000 * sum(f.blank_lines for f in self.functions) / total if total else BLANK_LINES


def files_of(spec):
    """Patterns with commas between them; a folder is all C below it, "!" leaves names out."""
    patterns = spec.split(",")
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    paths = set()
    for pattern in patterns:
        if pattern.startswith("!"):
            continue
        for path in glob.glob(pattern):
            paths.update(files_below(path) if os.path.isdir(path) else [path])

    return sorted(p for p in paths if not any(fnmatch.fnmatch(os.path.basename(p), u) for u in unwanted))


def files_below(folder):
    """What git would track of it; all, where it is not git's."""
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder]
    listed = subprocess.run(git, capture_output=True, text=True, check=False)
    paths = listed.stdout.split("\0") if listed.returncode == 0 else []
    if not any(paths):
        paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return [path for path in paths if path.endswith((".c", ".h")) and os.path.isfile(path)]


def names_of_answer(function):
    """The last two parameters of each public call, by which the answer comes."""
    if function.name.startswith("lapse_sync_"):
        return ("timeout_ms", "out")
    return ("fn", "arg") if function.name.startswith("lapse_") else ()


def n_parameters(function):
    """Those of the answer of a public call are not counted."""
    names = [parameter.split()[-1].lstrip("*") for parameter in function.parameters]
    return len(names) - sum(name in names_of_answer(function) for name in names)


def columns(line):
    return len(line.expandtabs(TAB).rstrip("\n"))


def p99(values):
    """The longest of all, where there are fewer than a hundred."""
    return sorted(values)[int(len(values) * 0.99)]


# The table


def number(value):
    return f"{value:,.0f}"


def ratio(scale, part, of):
    if of == 0:
        return "-"
    value = scale * part / of
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def percent(part, of):
    return "-" if of == 0 else ratio(100, part, of) + " %"


def of_functions(text):
    return lambda tree: text(tree) if tree.functions else "-"


def file_lines(tree):
    lengths = [len(source.lines) for source in tree.sources]
    return f"{number(max(lengths))}; {number(statistics.median(lengths))}"


def function_lines(tree):
    lines = tree.function_lines
    return f"{number(statistics.median(lines))} / {p99(lines)} / {max(lines)}"


def function_tokens(tree):
    tokens = [f.tokens for f in tree.functions]
    return f"{number(statistics.median(tokens))} / {number(p99(tokens))}"


def long_and_deep(tree):
    long = sum(lines > FUNCTION_LINES for lines in tree.function_lines)
    deep = sum(f.depth > DEPTH for f in tree.functions)
    return f"{long}; {deep}"


def parameters(tree):
    counts = [n_parameters(f) for f in tree.functions]
    return f"{sum(n > PARAMETERS for n in counts)}; {max(counts)}"


def paragraphs(tree):
    long = [f for f in tree.functions if f.lines() >= LONG_FUNCTION]
    return percent(sum(f.blank_lines > 0 for f in long), len(long))


def conditionals(at_least):
    return lambda tree: tree.per_1000_statements(sum(s.conditionals() >= at_least for s in tree.statements))


def several_declarators(tree):
    return tree.per_1000_statements(sum(s.declarators() > 1 for s in tree.statements))


def code_over_80(tree):
    lines = [line.rstrip() for source in tree.sources for line in source.code.split("\n")]
    lines = [line for line in lines if line]
    return percent(sum(columns(line) > 80 for line in lines), len(lines))


def comments(tree):
    licence = sum(source.licence_chars for source in tree.sources)
    comment = sum(source.comment_chars for source in tree.sources) - licence
    return percent(comment, sum(len(source.text) for source in tree.sources) - licence)


def includes(tree):
    """Lines of the layers check, which knows the order of this project's own folders."""
    if tree.spec != "src" or not os.path.exists("src/LAYERS"):
        return "-"
    check = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers.sh")
    found = subprocess.run([check], capture_output=True, text=True, check=False)
    if found.returncode != 0 and not found.stdout:
        sys.exit(f"shape.sh: {check} failed: {found.stderr.strip()}")
    return str(len(found.stdout.splitlines()))


ROWS = [
    ("lines of C", lambda tree: number(len(tree.lines))),
    ("functions", lambda tree: number(len(tree.functions))),
    ("function lines: median / p99 / max", of_functions(function_lines)),
    ("tokens a function: median / p99", of_functions(function_tokens)),
    (f"functions over {FUNCTION_LINES} lines; nested deeper than {DEPTH}", long_and_deep),
    (f"functions of more than {PARAMETERS} parameters; most", of_functions(parameters)),
    ("lines of a file: longest; median", file_lines),
    ("blank lines per 1,000 lines of functions", of_functions(lambda tree: number(tree.blank_lines()))),
    (f"functions of {LONG_FUNCTION}+ lines with a paragraph break", paragraphs),
    ("statements with two or more ?: per 1,000", conditionals(2)),
    ("statements with a ?: per 1,000", conditionals(1)),
    ("lines of code over 80 columns", code_over_80),
    (f"lines over {COLUMNS} columns", lambda tree: number(sum(columns(line) > COLUMNS for line in tree.lines))),
    ("declarations of several names per 1,000 statements", several_declarators),
    ("comment share of characters", comments),
    ("includes up or sideways", includes),
]


def print_table(trees):
    table = [[""] + [tree.name for tree in trees]]
    table += [[label] + [figure(tree) for tree in trees] for label, figure in ROWS]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    table.insert(1, ["-" * width for width in widths])
    for row in table:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


# The check. What is wrong is a triple: file, line, words; or folder, 0, words.


def wide_lines(tree):
    for source in tree.sources:
        for n, line in enumerate(source.lines, 1):
            if columns(line) > COLUMNS:
                yield source.path, n, f"{columns(line)} columns, at most {COLUMNS}: break the line"


def bad_functions(tree):
    for f in tree.functions:
        if f.lines() > FUNCTION_LINES:
            yield f.path, f.line, (
                f"{f.name} has {f.lines()} lines, at most {FUNCTION_LINES}: make a function of one of its steps"
            )
        if n_parameters(f) > PARAMETERS:
            yield f.path, f.line, (
                f"{f.name} has {n_parameters(f)} parameters, at most {PARAMETERS}: pass a struct"
            )


def bad_statements(tree):
    for f in tree.functions:
        for s in f.statements:
            if s.conditionals() > CONDITIONALS:
                yield f.path, s.line, (
                    f"{s.conditionals()} conditional operators in a statement, at most {CONDITIONALS}: "
                    "use if, or a variable for each"
                )
            if s.declarators() > 1:
                yield f.path, s.line, f"declares {s.declarators()} names: give each a line of its own"


def too_long(tree):
    if not tree.functions or p99(tree.function_lines) <= FUNCTION_LINES_P99:
        return

    yield tree.name, 0, (
        f"the 99th percentile of function lines is {p99(tree.function_lines)}, at most {FUNCTION_LINES_P99}: "
        "shorten the longest ones"
    )
    for f in tree.functions:
        if f.lines() > FUNCTION_LINES_P99:
            yield f.path, f.line, f"{f.name} has {f.lines()} lines: one of the longest in {tree.name}"


def too_dense(tree):
    if tree.name not in BLANK_FOLDERS or tree.blank_lines() >= BLANK_LINES:
        return

    yield tree.name, 0, (
        f"{tree.blank_lines():.1f} blank lines per 1,000 lines of functions, at least {BLANK_LINES}: "
        "put them between declarations, steps and result"
    )
    for f in tree.functions:
        if f.lines() >= LONG_FUNCTION and f.blank_lines == 0:
            yield f.path, f.line, f"{f.name} has no blank line in {f.lines()} lines"


def check(trees, others):
    found = []
    for tree in trees + others:
        found += wide_lines(tree)
    for tree in trees:
        for rule in (bad_functions, bad_statements, too_long, too_dense):
            found += rule(tree)

    for path, line, words in sorted(found):
        print(f"{path}:{line}: {words}" if line > 0 else f"{path}: {words}")
    return 1 if found else 0


def tree_of(argument):
    name, _, spec = argument.rpartition("=")
    tree = Tree(name or spec, spec)
    if not tree.sources:
        sys.exit(f"shape.sh: no C files: {spec}")
    return tree


def main(arguments):
    if arguments == ["--check"]:
        return check([tree_of(name) for name in FOLDERS], [tree_of(name) for name in OTHER_FOLDERS])
    if any(argument.startswith("-") for argument in arguments):
        sys.exit("usage: shape.sh [--check | [NAME=]TREE...]")

    print_table([tree_of(argument) for argument in arguments or FOLDERS])
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
