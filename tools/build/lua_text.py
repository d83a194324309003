# SPDX-License-Identifier: MIT
"""What scripts.py makes of the statements of a script, so that a call of it costs less.

Redis makes each function of a script again in each call, with whatever the function refers to: 0.1 to
0.3 us each, while a script in all takes about 10 us. So a constant number stands where it is used; a
function that is called once, or has one line, stands where it is called, if its arguments are names;
and a function that only one other needs stands within that one, and is made when that one is called.

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

# a comment, a text, or a name (also all arguments, "..."); not the field of a table, nor the key of one
TOKEN = re.compile(
    r"--[^\n]*|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|\.\.\.|(?<![\w.:])[A-Za-z_]\w*"
)
NUMBER = re.compile(r"local ([A-Z_]+) = (\d+)")
KEY = re.compile(r"local ([A-Z_]+) = BASE .*")
FUNCTION = re.compile(r"local function (\w+)\(([^)]*)\)(\s)(.*)\send", re.S)
DECLARED = re.compile(
    r"\blocal (?:function )?([\w, ]+)|\bfor ([\w, ]+?) (?:in|=)|\bfunction ?\w*\(([\w, ]*)\)"
)
MAIN = "main"
# functions of a level; and how many names of those further out one may refer to, of which Lua allows 60
LEVEL = 16
MOST_OUTER = 50
# of what tells a variable from the key of a table
PIECE = re.compile(rf"{TOKEN.pattern}|[][(){{}}]")
EQUALS = re.compile(r"\s*=(?!=)")
# a text, which stays as it is, or spaces
SPACES = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"| +")
OPENING = ["(", "[", "{", "function", "then", "do", "repeat", "else"]
CLOSING = [")", "]", "}", "end", "until", "elseif", "else"]
# what Lua and Redis give names to: who declares one of these hides it, and it stays as it is; and the
# name of what nobody uses
KEYWORDS = """and break do else elseif end false for function if in local nil not or repeat return then
    true until while""".split()
GIVEN = """KEYS ARGV redis string table math cjson type next select pairs ipairs tonumber tostring unpack
    error pcall assert _""".split()


@functools.cache
def names_in(code):
    """The names that a piece of code uses. It is asked again and again for the same pieces."""
    return frozenset(token for token in TOKEN.findall(code) if token[0] not in "-'\"")


def with_names(code, texts):
    """The code with other texts in the places of names."""
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
    """A statement that makes a function. Where it returns a value, it does so in its last line, or
    it is not written out."""

    def __init__(self, statement):
        found = FUNCTION.fullmatch(statement)
        self.name = found[1]
        self.parameters = [word for word in re.split(", *", found[2]) if word]
        self.has_lines = found[3] == "\n"
        self.text = re.sub("^  ", "", found[4], flags=re.M)
        value = re.search(r"\nreturn ([^\n]*)\Z", self.text)
        self.value = value and value[1]
        self.body = self.text[: value.start()] if value else self.text
        one = "(.*)" if self.parameters == ["..."] else r"(\w+)"
        names = ", ".join([one] * len(self.parameters))
        before = r"local (\w+) = " if self.value else r"(.*\b(?:then|do) )?"
        self.call = re.compile(rf"( *){before}{self.name}\({names}\)( end)?")

    def can_be_written_out(self):
        return not re.search(r"\breturn\b", self.body)

    def call_in(self, line):
        """The call of it that is all of a line, but for its condition or loop, or the variable that
        gets its value. Its arguments are names, or it passes them on as they are. None: there is
        no such call."""
        return self.call.fullmatch(line) if self.name in line else None

    def body_for(self, call):
        """The lines that take the place of that of a call."""
        margin, before, *arguments, end = call.groups()
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
        return not made & set(call.groups()[2:-1]) and not stays & names_in(code)

    def written_out_in(self, code):
        """The code with its body in the place of each call; None: not each can be replaced."""
        lines = []
        for line in code.split("\n"):
            call = self.call_in(line)
            if call and self.fits_in(code, call):
                line = self.body_for(call)
            elif self.name in names_in(line):
                return None
            lines.append(line)
        return "\n".join(lines)


def is_function(statement):
    return FUNCTION.fullmatch(statement) is not None


@functools.cache
def defined_by(statement):
    """The names that a statement makes."""
    found = re.match(r"local (?:function )?([\w, ]+)", statement)
    return frozenset(split_names(found[1]) if found else [])


@functools.cache
def name_of(statement):
    """Of a function, or of the name of a key; None: it is something else."""
    found = FUNCTION.fullmatch(statement) or KEY.fullmatch(statement)
    return found and found[1]


def users_of(name, statements, but):
    """Where the statements are that use a name, besides the one that defines it."""
    return [i for i, code in enumerate(statements) if i != but and name in names_in(code)]


def without_numbers(statements):
    numbers = {m[1]: m[2] for m in map(NUMBER.fullmatch, statements) if m}
    return [with_names(code, numbers) for code in statements if not NUMBER.fullmatch(code)]


def without_procedure(statements, at):
    """The statements, with one written out where it is called; None: it cannot be."""
    if not is_function(statements[at]):
        return None
    function = Function(statements[at])
    if not function.can_be_written_out():
        return None
    users = users_of(function.name, statements, at)
    if "\n" in function.body and len(users) > 1:
        return None

    out = list(statements)
    for i in users:
        out[i] = function.written_out_in(statements[i])
    return None if None in out else out[:at] + out[at + 1 :]


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
    uses = [i for i, line in enumerate(body) if name in names_in(line)]
    first = None
    for i, line in enumerate(body[: uses[0]]):
        if re.fullmatch(r"  if .* then", line):
            first = i + 1
        elif re.match(r"  (?:end|else)", line):
            first = None
    if first is None or any(re.match(r"  \S", line) for line in body[first : uses[-1] + 1]):
        return None
    return first


def with_one_nested(statements, at):
    """The statements, with one in the only function that uses it; None: it stays.

    It stands in the branch that needs it, or before its first use, or, where that would hide a name,
    at the beginning.
    """
    moved, name = statements[at], name_of(statements[at])
    users = users_of(name, statements, at)
    if len(users) != 1 or not is_function(statements[users[0]]):
        return None
    user = Function(statements[users[0]])
    if user.name == MAIN or not user.has_lines:
        return None

    needed = names_in(moved) & set().union(*map(defined_by, statements))
    head, *body = statements[users[0]].split("\n")
    for place, margin in [
        (place_in_condition(name, body), "    "),
        (place_of_first_use(name, body), "  "),
        (0, "  "),
    ]:
        if place is None:
            continue
        before = [head, *body[:place]]
        if not needed & declared_in("\n".join(before)):
            out = list(statements)
            out[users[0]] = "\n".join([*before, indented(moved, margin), *body[place:]])
            return out[:at] + out[at + 1 :]
    return None


def with_last_written_out(statements):
    """The statements; the last one, which returns what a function returns, is its body."""
    *others, last = statements
    found = re.fullmatch(r"return (\w+)\((\w+)\)", last)
    for i, code in enumerate(others):
        if name_of(code) == found[1] and not users_of(found[1], others, i):
            function = Function(code)
            body = with_names(function.text, {function.parameters[0]: found[2]})
            return [*others[:i], *others[i + 1 :], body]
    return statements


def repeated(step, statements):
    """Does a step with each function and name of a key, as often as that changes anything."""
    at = 0
    while at < len(statements):
        after = None
        if name_of(statements[at]) not in [None, MAIN]:
            after = step(statements, at)
        statements, at = (after, 0) if after else (statements, at + 1)
    return statements


def hidden_by(statement, statements):
    """Names of other statements that this one makes again within itself."""
    others = set().union(*(defined_by(code) for code in statements if code != statement))
    return declared_in(statement) & others


def in_levels(statements):
    """Within functions that are called at once, one in the other. No line more."""
    out, n_functions, n_levels = [], 0, 0
    for at, code in enumerate(statements):
        if is_function(code):
            outer = set().union(*map(defined_by, statements[:at])) | {"KEYS", "ARGV"}
            needed = outer & names_in("\n".join(statements[at:]))
            if n_functions % LEVEL == 0 and len(needed) <= MOST_OUTER:
                code = "return (function() " + code
                n_levels += 1
            n_functions += 1
        out.append(code)
    out[-1] += " end)()" * n_levels
    return out


def cheaper(statements):
    """The statements of a script, so that they cost less; the last one runs main."""
    statements = repeated(without_procedure, without_numbers(statements))
    return in_levels(with_last_written_out(repeated(with_one_nested, statements)))


def places_of_variables(code):
    """Where the variables that the code declares are named. A name is a key and no variable where an
    equals sign follows it, and an open brace or a comma within braces precedes it."""
    names = declared_in(code) - set(GIVEN)
    opened, before, end = [], "", 0
    for piece in PIECE.finditer(code):
        text = piece[0]
        before = code[end : piece.start()].rstrip()[-1:] or before
        end = piece.end()
        if text in CLOSING:
            opened.pop()
        if text in OPENING:
            opened.append(text)
        elif text in names and not (
            opened[-1:] == ["{"] and before in ["{", ","] and EQUALS.match(code, end)
        ):
            yield piece
        before = text


def short_names(taken):
    letters = string.ascii_letters
    longer = map("".join, itertools.product(letters, letters + string.digits))
    return (name for name in itertools.chain(letters, longer) if name not in taken)


def without_spaces(code):
    """The code without the spaces that tell nothing apart: two words, a number and the dots behind it,
    or two signs that would begin a comment."""
    def replaced(found):
        around = code[found.start() - 1 : found.start()] + code[found.end() : found.end() + 1]
        is_needed = re.fullmatch(r"\w\w|\d\.|--", around)
        return found[0] if found[0][0] in "'\"" else " " * bool(is_needed)

    return SPACES.sub(replaced, code)


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
