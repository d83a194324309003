# SPDX-License-Identifier: MIT
"""What scripts.py makes of the statements of a script, so that a call of it costs less.

Redis makes each function of a script again in each call, with whatever the function refers to: 0.1 to
0.3 us each, while a script in all takes about 10 us. So a constant number stands where it is used; a
function that is called once, or has one line, stands where it is called, if its arguments are names;
and a function that only one other needs stands within that one, and is made when that one is called.

Most jobs ask for nothing that needs more than a few functions. What else there is, a script makes only
where it meets a job that asks for it: the functions that heads name behind SELDOM, and all that they
alone need, are made within one function, which is called by the first call of one of them.

For each name of its level that a function refers to, Lua walks through all such names that were
referred to before, the youngest first, until it is found; one of a level further out it finds at once.
So a script has several levels, with LEVEL functions each.

At last its variables get short names, and its lines no more spaces than Lua needs: where the wire
carries 256 kbit/s, a text of 45 KB takes 1.4 s, and that of many listeners at once as many times as
long.
"""
import functools
import itertools
import re
import string
from collections import Counter

# a comment, a text, or, as its group, a name (also all arguments, "..."); not the field of a table, nor
# the key of one
TOKEN = re.compile(
    r"--[^\n]*|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|(\.\.\.|(?<![\w.:])[A-Za-z_]\w*)"
)
NUMBER = re.compile(r"local ([A-Z_]+) = (\d+)")
KEY = re.compile(r"local ([A-Z_]+) = BASE .*")
PURE = re.compile(r"local [A-Z_]+ = (KEYS\[1\]|string\.sub\(DUE, 1, -4\)|BASE .*)")
FUNCTION = re.compile(r"local function (\w+)\(([^)]*)\)(\s)(.*)\send", re.S)
DECLARED = re.compile(
    r"\blocal (?:function )?([\w, ]+)|\bfor ([\w, ]+?) (?:in|=)|\bfunction ?\w*\(([\w, ]*)\)"
)
MAIN, CALLER = "main", "answer_whole"
# what makes the functions that are seldom needed, and where it keeps them
MAKER, MADE = "seldom_made", "seldom_functions"
# functions of a level; and how many names of those further out one may refer to, of which Lua allows 60
LEVEL = 16
MOST_OUTER = 50
# of what tells a variable from the key of a table
PIECE = re.compile(rf"{TOKEN.pattern}|[][(){{}}]")
EQUALS = re.compile(r"\s*=(?!=)")
OPENING = {"(", "[", "{", "function", "then", "do", "repeat", "else"}
CLOSING = {")", "]", "}", "end", "until", "elseif", "else"}
TEXT = re.compile(r"('(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")")
# all spaces but those between two words, a number and the dots behind it, or two signs that would begin
# a comment; of these, all but one
NEEDLESS = re.compile(r"(?!(?<=\w) +\w|(?<=\d) +\.|(?<=-) +-)(?<! ) +| +(?= )")
# what Lua and Redis give names to: who declares one of these hides it, and it stays as it is; and the
# name of what nobody uses
KEYWORDS = """and break do else elseif end false for function if in local nil not or repeat return then
    true until while""".split()
GIVEN = """KEYS ARGV redis string table math cjson type next select pairs ipairs tonumber tostring unpack
    error pcall assert _""".split()


@functools.cache
def names_in(code):
    """The names that a piece of code uses. It is asked again and again for the same pieces."""
    return frozenset(TOKEN.findall(code)) - {""}


def names_in_all(pieces):
    return frozenset().union(*map(names_in, pieces))


def with_names(code, texts):
    """The code with other texts in the places of names."""
    if names_in(code).isdisjoint(texts):
        return code
    return TOKEN.sub(lambda token: texts.get(token[0], token[0]), code)


def split_names(text):
    return set(text.replace(",", " ").split())


@functools.cache
def declared_in(code):
    """Names of variables, parameters and functions that a piece of code makes."""
    return frozenset().union(*(split_names(" ".join(found)) for found in DECLARED.findall(code)))


def indented(code, by):
    return "\n".join(by + line for line in code.split("\n"))


class Function:
    """What FUNCTION finds in a statement that makes one. Where it returns a value, it does so in its last
    line, or it is not written out."""

    def __init__(self, found):
        self.name = found[1]
        self.parameters = [word for word in re.split(", *", found[2]) if word]
        self.has_lines = found[3] == "\n"
        self.text = re.sub("^  ", "", found[4], flags=re.M)
        value = re.search(r"\nreturn ([^\n]*)\Z", self.text)
        self.value = value and value[1]
        self.body = self.text[: value.start()] if value else self.text

    @functools.cached_property
    def call(self):
        """The pattern of a line that calls it, or another one with as many parameters: few are made."""
        one = "(.*)" if self.parameters == ["..."] else r"(\w+)"
        names = ", ".join([one] * len(self.parameters))
        before = r"local (\w+) = " if self.value else r"(.*\b(?:then|do) )?"
        return re.compile(rf"( *){before}(\w+)\({names}\)( end)?")

    def can_be_written_out(self):
        return not re.search(r"\breturn\b", self.body)

    def call_in(self, line):
        """The call of it that is all of a line, but for its condition or loop, or the variable that
        gets its value. Its arguments are names, or it passes them on as they are. None: there is
        no such call."""
        call = self.call.fullmatch(line) if self.name in line else None
        return call if call and call[3] == self.name else None

    def body_for(self, call):
        """The lines that take the place of that of a call."""
        margin, before, _, *arguments, end = call.groups()
        body = with_names(self.body, dict(zip(self.parameters, arguments)))

        if self.value and self.value != before:
            body += f"\nlocal {before} = {with_names(self.value, dict(zip(self.parameters, arguments)))}"
        if self.value or not before:
            return indented(body, margin)
        if "\n" not in body:
            return margin + before + body + end
        return f"{margin}{before.rstrip()}\n{indented(body, margin + '  ')}\n{margin}end"

    def fits_in(self, code, call):
        """Is no name of its body taken for another one there?"""
        made = declared_in(self.body)
        stays = declared_in("\n".join(re.findall("^local .*", self.body, re.M)))
        if self.value == call[2]:
            stays -= {self.value}
        return not made & set(call.groups()[3:-1]) and not stays & names_in(code)

    def written_out_in(self, code):
        """The code with its body in the place of each call that can be replaced."""
        lines = []
        for line in code.split("\n"):
            call = self.call_in(line)
            if call and self.fits_in(code, call):
                line = self.body_for(call)
            lines.append(line)
        return "\n".join(lines)


@functools.cache
def function_of(statement):
    """The function that a statement makes; None: it makes none."""
    found = FUNCTION.fullmatch(statement)
    return Function(found) if found else None


def is_function(statement):
    return function_of(statement) is not None


@functools.cache
def defined_by(statement):
    """The names that a statement makes."""
    found = re.match(r"local (?:function )?([\w, ]+)", statement)
    return frozenset(split_names(found[1]) if found else [])


def defined_by_all(statements):
    return frozenset().union(*map(defined_by, statements))


@functools.cache
def name_of(statement):
    """Of a function, or of the name of a key; None: it is something else."""
    found = FUNCTION.fullmatch(statement) or KEY.fullmatch(statement)
    return found and found[1]


def users_of(name, statements, but):
    """Where the statements are that use a name, besides the one that defines it."""
    return [i for i, names in enumerate(map(names_in, statements)) if name in names and i != but]


def without_numbers(statements):
    numbers = {m[1]: m[2] for m in map(NUMBER.fullmatch, statements) if m}
    return [with_names(code, numbers) for code in statements if not NUMBER.fullmatch(code)]


def without_procedure(statements, at, seldom):
    """The statements, with one written out where it is called; None: it cannot be. One that has a line
    stays for those who call it in another way."""
    function = function_of(statements[at])
    if not function or not function.can_be_written_out():
        return None
    users = users_of(function.name, statements, at)
    if "\n" in function.body and len(users) > 1:
        return None
    if function.name in seldom and not all(defined_by(statements[i]) & seldom for i in users):
        return None

    out = list(statements)
    for i in users:
        out[i] = function.written_out_in(statements[i])
    is_called = users_of(function.name, out, at)
    if is_called and (out == statements or "\n" in function.body):
        return None
    return out if is_called else out[:at] + out[at + 1 :]


def place_of_first_use(name, body):
    """The number of the line of a body before which what it calls name has to stand."""
    place = 0
    for i, line in enumerate(body):
        if re.match(r"  (?!end|else|until)\w", line):
            place = i
        if name in names_in(line):
            break
    return place


def place_in_condition(name, body):
    """The number of the line of a body before which what it calls name has to stand, where all that
    needs it is in one branch: it is made only there. None: it is not so."""
    uses = [i for i, line in enumerate(body) if name in line and name in names_in(line)]
    first = None
    for i, line in enumerate(body[: uses[0]]):
        if line.startswith("  if ") and line.endswith(" then"):
            first = i + 1
        elif line.startswith(("  end", "  else")):
            first = None
    if first is None or not all(line.startswith("   ") for line in body[first : uses[-1] + 1]):
        return None
    return first


def with_one_nested(statements, at, seldom, each):
    """The statements, with one in the only function that uses it; None: it stays.

    It stands in the branch that needs it, or before its first use, or, where that would hide a name,
    at the beginning; in main, and in one of each, which are called for each job, in a branch alone.
    """
    moved, name = statements[at], name_of(statements[at])
    users = users_of(name, statements, at)
    user = function_of(statements[users[0]]) if len(users) == 1 else None
    if not user or not user.has_lines:
        return None
    if name in seldom and user.name not in seldom:
        return None

    needed = names_in(moved) & defined_by_all(statements)
    head, *body = statements[users[0]].split("\n")
    places = [(place_in_condition(name, body), "    ")]
    if user.name not in [MAIN, *each]:
        places += [(place_of_first_use(name, body), "  "), (0, "  ")]
    for place, margin in places:
        if place is None:
            continue
        before = [head, *body[:place]]
        if not needed & declared_in("\n".join(before)):
            out = list(statements)
            out[users[0]] = "\n".join([*before, indented(moved, margin), *body[place:]])
            return out[:at] + out[at + 1 :]
    return None


def statement_of(name, statements):
    return next(code for code in statements if name_of(code) == name)


def with_main_written_out(statements):
    """The statements; the function that calls main, as its parameter and in its last line, is main's
    beginning."""
    if not any(name_of(code) == CALLER for code in statements):
        return statements

    caller = function_of(statement_of(CALLER, statements))
    main = function_of(statement_of(MAIN, statements))
    text = caller.text.replace(f"return {MAIN}()", main.text)
    out = []
    for code in statements:
        if name_of(code) == MAIN:
            code = f"local function {MAIN}()\n{indented(text, '  ')}\nend"
        if name_of(code) != CALLER:
            out.append(code.replace(f"{CALLER}, {MAIN}", MAIN))
    return out


def with_all_in_main(statements):
    """The statements; the last one, which returns what a function makes of main, is the body of that
    function, and main has within itself all that only it needs: it finds its own variables sooner than
    those of others, and Redis makes less for it."""
    *others, last = statements
    found = re.fullmatch(rf"return (\w+)\({MAIN}\)", last)
    if not found:
        return in_levels(statements)

    caller, main = (function_of(statement_of(name, others)) for name in [found[1], MAIN])
    last = with_names(caller.text, {caller.parameters[0]: MAIN})
    inside = [code for code in others if name_of(code) not in [caller.name, MAIN]]
    outside = []
    for code in reversed(inside):
        if defined_by(code) & names_in_all([*outside, last]):
            outside.insert(0, code)
    inside = in_levels([*(code for code in inside if code not in outside), main.text])
    text = indented("\n".join(inside), "  ")
    return [*outside, f"local function {MAIN}()\n{text}\nend", last]


def repeated(step, statements, *sets):
    """Does a step with each function and name of a key, the first one first, as often as that changes
    anything. What it does with one depends on the statements that name it: where it could do nothing,
    it is asked again after one of these has changed."""
    left, at = names_in_all(statements) - {MAIN}, 0
    while at < len(statements):
        name = name_of(statements[at])
        after = step(statements, at, *sets) if name in left else None
        if after:
            changed = set(statements) ^ set(after)
            left |= names_in_all(changed) - {MAIN}
            statements, at = after, 0
        else:
            left -= {name}
            at += 1
    return statements


def hidden_names(statements):
    """The names of statements that another one makes again within itself: each with that one."""
    makers = Counter(name for code in statements for name in defined_by(code))
    for code in statements:
        for name in declared_in(code) & makers.keys():
            if makers[name] > (name in defined_by(code)):
                yield name, code


def called_in_loops(code):
    """The functions that a piece of code calls in its loops."""
    out, loops = set(), []
    for line in code.split("\n"):
        margin = len(line) - len(line.lstrip())
        while loops and margin <= loops[-1]:
            loops.pop()
        if loops:
            out |= names_in(line)
        if re.match(r" *(?:for|while) ", line):
            loops.append(margin)
    return out


def for_each_job(statements, seldom):
    """Of the functions that are seldom needed those that are called for each job: in a loop, or by one
    of these, but for what stands behind a condition in its line."""
    functions = {name_of(code): code for code in statements if is_function(code)}
    others = [code for name, code in functions.items() if name not in seldom]
    found = set().union(*map(called_in_loops, others)) & seldom & set(functions)
    left = list(found)
    while left:
        code = re.sub(r"^( *if .* then ).* end$", r"\1", functions[left.pop()], flags=re.M)
        new = names_in(code) & seldom & set(functions) - found
        found |= new
        left += new
    return found


def needed_seldom(statements, seldom):
    """The names that seldom are needed: those that are said to be, and what only they need."""
    needed, new = set(), set(seldom)
    while new:
        needed |= new
        others = [code for code in statements if not defined_by(code) & needed]
        by_needed = names_in_all(set(statements) - set(others))
        by_others = set().union(*(names_in(code) - defined_by(code) for code in others))
        new = set()
        for names in map(defined_by, others):
            if names & by_needed and not names & by_others:
                new |= names
    return needed


def names_from_outside(statements, at):
    """The names that the statements from one on use of those before it, and of Redis."""
    outer = defined_by_all(statements[:at]) | {"KEYS", "ARGV"}
    return outer & names_in_all(statements[at:])


def in_levels(statements):
    """Within functions that are called at once, one in the other. No line more."""
    if sum(map(is_function, statements)) <= LEVEL:
        return statements

    out, n_functions, n_levels = [], 0, 0
    for at, code in enumerate(statements):
        if is_function(code):
            if n_functions % LEVEL == 0 and len(names_from_outside(statements, at)) <= MOST_OUTER:
                code = "return (function() " + code
                n_levels += 1
            n_functions += 1
        out.append(code)
    out[-1] += " end)()" * n_levels
    return out


def pure_of(statements, apart):
    """Names of keys that no function but those apart needs: they are made again there, which spares
    the others that they can be reached from there."""
    others = [code for code in statements if is_function(code) and name_of(code) != MAIN]
    by_others = names_in_all(others)
    out = []
    for code in reversed(statements):
        if PURE.fullmatch(code) and defined_by(code) & names_in_all([*out, *apart]):
            if not defined_by(code) & by_others:
                out.insert(0, code)
    return out


def with_seldom_apart(statements, seldom):
    """The statements; those that are seldom needed stand within one function, and the others call
    what that one has made. It stands before the first that calls it."""
    apart = [code for code in statements if defined_by(code) & seldom]
    others = [code for code in statements if not defined_by(code) & seldom]
    called = sorted(seldom & names_in_all(others))
    if not called:
        return others

    apart = [*pure_of(others, apart), *apart]
    not_made = set(called) - {name_of(code) for code in apart if is_function(code)}
    if not_made:
        raise ValueError(f"{', '.join(sorted(not_made))}: seldom made, but no function")
    numbers = {name: f"{MAKER}()[{n}]" for n, name in enumerate(called, 1)}
    others = [with_names(code, numbers) for code in others]
    made = in_levels([*apart, f"return {{ {', '.join(called)} }}"])
    maker = "\n".join([
        f"local function {MAKER}()",
        f"  if not {MADE} then",
        f"    {MADE} = (function()",
        indented("\n".join(made), "      "),
        "    end)()",
        "  end",
        f"  return {MADE}",
        "end",
    ])

    first = next(at for at, code in enumerate(others) if MAKER in names_in(code))
    late = defined_by_all(others[first:]) & names_in(maker)
    if late:
        raise ValueError(f"{', '.join(sorted(late))}: made behind what calls seldom made functions")
    return [*others[:first], f"local {MADE}", maker, *others[first:]]


def cheaper(statements, seldom):
    """The statements of a script, so that they cost less; the last one runs main. seldom: functions
    that most calls do without."""
    statements = with_main_written_out(without_numbers(statements))
    seldom = needed_seldom(statements, seldom & defined_by_all(statements))
    statements = repeated(without_procedure, statements, seldom)
    seldom = needed_seldom(statements, seldom)
    each = for_each_job(statements, seldom)
    statements = repeated(with_one_nested, statements, seldom, each)
    return with_all_in_main(with_seldom_apart(statements, seldom))


def nested(code):
    """Each piece of the code, with the word or bracket that opened the innermost block around it.
    Raises ValueError where one opens or closes a block alone."""
    opened = []
    for piece in PIECE.finditer(code):
        text = piece[0]
        if text in CLOSING:
            if not opened:
                raise ValueError(f"{text} closes nothing")
            opened.pop()
        if text in OPENING:
            opened.append(text)
        yield piece, opened[-1] if opened else ""
    if opened:
        raise ValueError(f"{opened[-1]} is never closed")


def check_blocks(code):
    for _ in nested(code):
        pass


def is_key(code, piece):
    """Is a name within braces a key? An equals sign follows it, and an open brace or a comma precedes it."""
    return EQUALS.match(code, piece.end()) and code[: piece.start()].rstrip().endswith(("{", ","))


def places_of_variables(code):
    """Where the variables that the code declares are named, and not the keys of tables."""
    names = declared_in(code) - set(GIVEN)
    for piece, block in nested(code):
        if piece[0] in names and not (block == "{" and is_key(code, piece)):
            yield piece


def short_names(taken):
    letters = string.ascii_letters
    longer = map("".join, itertools.product(letters, letters + string.digits))
    return (name for name in itertools.chain(letters, longer) if name not in taken)


def without_spaces(code):
    """The code without the spaces that tell nothing apart, but for those in its texts."""
    pieces = TEXT.split(code)
    pieces[::2] = [NEEDLESS.sub("", piece) for piece in pieces[::2]]
    return "".join(pieces)


def shortened(code):
    """The text of a script, with the shortest names for the variables that it names most often. What
    was a line stays one: the number of a line in an error of Redis leads to the text before."""
    places = list(places_of_variables(code))
    names = Counter(piece[0] for piece in places)
    short = dict(zip(
        (name for name, _ in names.most_common()),
        short_names(set(KEYWORDS + GIVEN) | names_in(code)),
    ))
    out, at = [], 0
    for piece in places:
        out += [code[at : piece.start()], short[piece[0]]]
        at = piece.end()
    return without_spaces("".join([*out, code[at:]]))
