# SPDX-License-Identifier: MIT
"""The figures of a run, by name: SYSTEM.MEASURE.FIGURE. In a file each is a line of its name and
its value; a ">" before a number says that the figure is at least that."""


class Results:
    def __init__(self, path=None):
        self.values = {}
        self.bounds = set()  # names of figures that are at least their value
        if path:
            with open(path, encoding="utf-8") as lines:
                for line in lines:
                    self.put_line("", line)

    def put(self, name, value):
        self.values[name] = value

    def put_bound(self, name, value):
        self.values[name] = value
        self.bounds.add(name)

    def put_line(self, prefix, line):
        name, _, text = line.rstrip("\n").partition(" ")
        name = prefix + name
        if text.startswith(">"):
            self.bounds.add(name)
            text = text[1:]
        self.values[name] = number_or_text(text)

    def keep(self, prefix, lines):
        """What a program printed, with a prefix before each name."""
        for line in lines.splitlines():
            self.put_line(prefix + ".", line)

    def has(self, *names):
        return all(self.values.get(name) not in (None, "") for name in names)

    def number(self, name):
        value = self.values.get(name)
        return value if isinstance(value, (int, float)) else 0

    def text(self, name):
        return str(self.values.get(name, ""))

    def is_bound(self, name):
        return name in self.bounds

    def rounds(self, measure, figure):
        """MEASURE.1.FIGURE, MEASURE.2.FIGURE, ..."""
        found = []
        while self.has(f"{measure}.{len(found) + 1}.{figure}"):
            found.append(self.number(f"{measure}.{len(found) + 1}.{figure}"))
        return found

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            for name, value in self.values.items():
                bound = ">" if name in self.bounds else ""
                text = f"{value:.15g}" if isinstance(value, float) else value
                out.write(f"{name} {bound}{text}\n")


def number_or_text(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
