# SPDX-License-Identifier: MIT
"""Reads a C file as text: its comments, its functions, their statements. Macros are not expanded."""

import re

LITERAL = re.compile(
    r"""/\*.*?\*/ | //(?:\\\n|[^\n])* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.S | re.X
)
TOKEN = re.compile(
    r"""[A-Za-z_]\w* | \.?\d[\w.]* | "[^"]*" | '[^']*' | \.\.\. | <<= | >>= | -> | \+\+ | -- | << | >>
        | <= | >= | == | != | && | \|\| | [-+*/%&|^]= | \S""",
    re.X,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
LICENCE = re.compile("copyright|licen[cs]e|spdx", re.I)
QUALIFIERS = {"auto", "const", "extern", "inline", "register", "restrict", "static", "volatile"}
BASE_TYPES = {"_Bool", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void"}
POINTERS = QUALIFIERS | {"*"}
STATEMENTS = {"break", "case", "continue", "default", "do", "else", "for", "goto", "if", "return", "switch", "while"}
NOT_NAMES = STATEMENTS | QUALIFIERS | BASE_TYPES | {"__attribute__", "__declspec", "_Alignas", "sizeof"}


class Token:
    def __init__(self, text, line):
        self.text = text
        self.line = line


class Statement:
    """From the end of the one before it to its semicolon, or to the brace of its block: "if (x)" is one."""

    def __init__(self, tokens):
        self.words = [token.text for token in tokens]
        self.line = tokens[0].line

    def conditionals(self):
        return self.words.count("?")

    def declarators(self):
        """How many names it declares; 0 if it is no declaration."""
        words = without_labels(self.words)
        rest = words[type_end(words) :]
        if len(rest) in (0, len(words)):
            return 0

        while rest[0] in POINTERS or rest[:2] == ["(", "*"]:
            rest = rest[1:]
            if not rest:
                return 0
        if not is_identifier(rest[0]) or rest[1:2] not in ([], ["="], [","], ["["], [")"]):
            return 0
        return 1 + outer(words).count(",")


class Function:
    """Its first line is the one of its name, as ctags has it."""

    def __init__(self, path, name, parameters, line):
        self.path = path
        self.name = name
        self.parameters = parameters
        self.line = line
        self.end = line
        self.body = line  # of its opening brace
        self.depth = 0
        self.statements = []
        self.statement_ends = 0
        self.tokens = 0
        self.blank_lines = 0

    def lines(self):
        return self.end - self.line + 1


class Source:
    def __init__(self, path):
        with open(path, encoding="utf-8", errors="replace") as file:
            self.text = file.read()

        self.path = path
        self.lines = self.text.removesuffix("\n").split("\n")
        self.code = LITERAL.sub(mask, self.text)
        self.comment_chars, self.licence_chars = count_comments(self.text)
        self.functions = find_functions(path, tokens_of(without_directives(self.code)))
        self.measure_lines()

    def measure_lines(self):
        code_lines = self.code.split("\n")
        for function in self.functions:
            code = "\n".join(code_lines[function.line - 1 : function.end])
            inner = self.lines[function.body : function.end - 1]
            function.tokens = len(TOKEN.findall(code))
            function.blank_lines = sum(not line.strip() for line in inner)


def mask(match):
    """Columns and lines stay; a comment becomes spaces, a string keeps its quotes."""
    text = match.group()
    if text[0] == "/":
        return re.sub(r"[^\n]", " ", text)
    return text[0] + re.sub(r"[^\n]", "_", text[1:-1]) + text[0]


def count_comments(text):
    """Characters of all comments, and of those at the head of the file that are its licence."""
    total = licence = head = end = 0
    in_head = is_licence = False
    for match in LITERAL.finditer(text):
        comment = match.group()
        if comment[0] != "/":
            continue

        total += len(comment)
        between = text[end : match.start()]
        if end == 0 or in_head:
            in_head = not between.strip()
        if not in_head:
            continue

        # lines of // that follow one another are one comment
        if not (comment.startswith("//") and between == "\n"):
            licence += head if is_licence else 0
            head = 0
            is_licence = False
        head += len(comment)
        is_licence = is_licence or bool(LICENCE.search(comment))
        end = match.end()
    return total, licence + (head if is_licence else 0)


def without_directives(code):
    """The text that is left for the parser, without what stands under #if 0. Where the branches of an #if do not
    close the braces they open, the first one is taken, for the others would open them again."""
    kept = []
    opened = []  # an #if each: the depth of braces before it
    depth = end = 0
    skipped = None  # how many #if were open when skipping began
    unused = False  # it began at an #if 0
    for match in DIRECTIVE.finditer(code):
        piece = code[end : match.start()]
        if skipped is None:
            depth += piece.count("{") - piece.count("}")
        else:
            piece = blanked(piece)
        kept += [piece, blanked(match.group())]
        end = match.end()

        words = re.sub(r"[#\s]+", " ", match.group()).split()[:2] or [""]
        if words[0] in ("if", "ifdef", "ifndef"):
            opened.append(depth)
            if words == ["if", "0"] and skipped is None:
                skipped = len(opened)
                unused = True
        elif words[0] in ("else", "elif") and opened:
            if skipped == len(opened) and unused:
                skipped = None
            elif skipped is None and depth != opened[-1]:
                skipped = len(opened)
                unused = False
        elif words[0] == "endif" and opened:
            if skipped == len(opened):
                skipped = None
            opened.pop()
    return "".join(kept) + code[end:]


def blanked(text):
    return re.sub(r"[^\n]", " ", text)


def tokens_of(code):
    tokens = []
    line = 1
    end = 0
    for match in TOKEN.finditer(code):
        line += code.count("\n", end, match.start())
        end = match.start()
        tokens.append(Token(match.group(), line))
    return tokens


def is_identifier(word):
    return (word[0].isalpha() or word[0] == "_") and word not in NOT_NAMES


def match_forward(tokens, at):
    """The index of what closes the bracket at this index."""
    close = {"(": ")", "{": "}"}[tokens[at].text]
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].text == tokens[at].text:
            depth += 1
        elif tokens[i].text == close:
            depth -= 1
        if depth == 0:
            return i
    return len(tokens) - 1


def match_back(tokens, at):
    depth = 0
    for i in range(at, -1, -1):
        if tokens[i].text == ")":
            depth += 1
        elif tokens[i].text == "(":
            depth -= 1
        if depth == 0:
            return i
    return 0


def outer(words):
    """The words that stand in no bracket of the statement."""
    found = []
    depth = 0
    for word in words:
        if word in ("(", "[", "{"):
            depth += 1
        if depth == 0:
            found.append(word)
        if word in (")", "]", "}"):
            depth -= 1
    return found


def without_labels(words):
    while len(words) > 1 and (words[0] in ("case", "default") or words[1] == ":") and ":" in words:
        words = words[words.index(":") + 1 :]
    return words


def type_end(words):
    """How many words at the beginning are a type, 0 if they are none: "a *b" counts as one, "a(b)" does not."""
    end = 0
    named = False
    while end < len(words):
        word = words[end]
        if word in QUALIFIERS:
            end += 1
        elif word in BASE_TYPES:
            named = True
            end += 1
        elif word in ("struct", "union", "enum"):
            named = True
            end += 2
        elif not named and is_identifier(word):
            named = True
            end += 1
        else:
            break
    return end if named else 0


def parameters_of(tokens):
    """Their texts; none for "(void)" and for "()"."""
    words = [token.text for token in tokens]
    parameters = [[]]
    depth = 0
    for word in words:
        if word == "," and depth == 0:
            parameters.append([])
            continue
        depth += (word in "([{") - (word in ")]}")
        parameters[-1].append(word)
    return [" ".join(p) for p in parameters if p and p != ["void"]]


def function_of(path, head):
    """The function that this head begins, or None: an initializer, a struct."""
    if not head or head[-1].text != ")" or "=" in outer([token.text for token in head]):
        return None

    open_bracket = match_back(head, len(head) - 1)
    if open_bracket == 0:
        return None
    parameters = parameters_of(head[open_bracket + 1 : -1])
    name = head[open_bracket - 1]
    if is_identifier(name.text):
        if open_bracket == 1:  # Test(suite, name): a macro that makes a function of its own
            return Function(path, f"{name.text}({', '.join(parameters[:2])})", [], name.line)
        return Function(path, name.text, parameters, name.line)
    if name.text != ")":
        return None

    # static void (*get(int a))(void): the name stands in the brackets before the last ones
    inner = head[match_back(head, open_bracket - 1) + 1 : open_bracket - 1]
    for i, token in enumerate(inner):
        if not is_identifier(token.text):
            continue
        if [after.text for after in inner[i + 1 : i + 2]] == ["("]:
            parameters = parameters_of(inner[i + 2 : match_forward(inner, i + 1)])
        return Function(path, token.text, parameters, token.line)
    return None


def find_functions(path, tokens):
    functions = []
    head = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.text in (";", "}"):
            head = []
        elif token.text != "{":
            head.append(token)
        elif len(head) == 2 and head[0].text == "extern":
            head = []  # extern "C": what is in it counts
        else:
            end = match_forward(tokens, i)
            function = function_of(path, head)
            if function:
                read_body(function, tokens[i : end + 1])
                functions.append(function)
                head = []
            i = end
        i += 1
    return functions


def begins_block(statement):
    """Whether a brace after these tokens begins a block; else it begins an initializer."""
    words = [token.text for token in statement]
    if not words or words[0] in STATEMENTS - {"return"}:
        return True
    return words[-1] == ")" and words[0] != "return" and "=" not in words


def read_body(function, tokens):
    statement = []
    depth = brackets = 0

    def end_statement():
        if statement:
            function.statements.append(Statement(statement))
            statement.clear()

    function.body = tokens[0].line
    function.end = tokens[-1].line
    function.statement_ends = sum(token.text in (";", "{", "}") for token in tokens)
    i = 0
    while i < len(tokens):
        word = tokens[i].text
        brackets += (word == "(") - (word == ")")
        if word == "{" and (brackets > 0 or not begins_block(statement)):
            end = match_forward(tokens, i)
            statement += tokens[i : end + 1]
            i = end
        elif word == "{":
            end_statement()
            depth += 1
            function.depth = max(function.depth, depth - 1)
        elif word == "}":
            end_statement()
            depth -= 1
        elif word == ";" and brackets == 0:
            end_statement()
        else:
            statement.append(tokens[i])
        i += 1
