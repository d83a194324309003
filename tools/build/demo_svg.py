#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""demo_svg.py COMMAND [ARG...]: runs the demo on a terminal of its own and draws what it prints as an SVG, on stdout.

Each line appears at the moment at which it came, once; without animations, or for a reader who wants none, all lines are
there from the start. Nothing but CSS moves it, so it plays where a page shows it as an image. What comes before the
demo's first line (make, apt) and its table of statistics are left out.
"""

import fcntl
import html
import os
import re
import struct
import sys
import termios
import time

PROMPT = "$ make demo"
FIRST_LINE = "lapse demo"
STATISTICS = "Statistics"

COLUMNS = 160
CHAR_WIDTH = 7.5  # of a font of 12.5 px
LINE_HEIGHT = 18
MARGIN = 16
BAR_HEIGHT = 30

STYLE = """
text{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#c9d1d9}
.bold{font-weight:bold;fill:#ffffff}.dim{fill:#8b949e}
@keyframes show{from{opacity:0}to{opacity:1}}
@media (prefers-reduced-motion:no-preference){.line{animation:show 1ms both}}
"""


def run(command):
    """Returns the exit status and a list of (seconds since the start, line)."""
    pid, terminal = os.forkpty()
    if pid == 0:
        os.execvp(command[0], command)

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    start = time.monotonic()
    lines = []
    rest = ""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            data = b""
        if not data:
            break
        *whole, rest = (rest + data.decode()).split("\n")
        now = time.monotonic() - start
        lines += [(now, line.rstrip("\r")) for line in whole]

    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, lines


def plain(line):
    return re.sub(r"\033\[[0-9;]*m", "", line)


def story(lines):
    """The demo's own lines, from its first on, its statistics left out."""
    begin = next(i for i, (_, line) in enumerate(lines) if plain(line).startswith(FIRST_LINE))
    start = lines[begin][0]
    kept = []
    skipping = False
    for at, line in lines[begin:]:
        if plain(line) == STATISTICS:
            skipping = True
        elif plain(line) == "":
            if not skipping and kept[-1][1] != "":
                kept.append((at - start, line))
            skipping = False
        elif not skipping:
            kept.append((at - start, line))
    return kept


def pieces(line):
    """Yields (column, class, text) for each piece of a line without a wide gap in it."""
    column = 0
    style = ""
    for part in re.split(r"(\033\[[0-9;]*m)", line):
        if part.startswith("\033"):
            style = {"\033[1m": "bold", "\033[2m": "dim"}.get(part, "")
            continue
        for match in re.finditer(r"\S+(?: \S+)*", part):
            yield column + match.start(), style, match.group()
        column += len(part)


def draw_line(at, line, y):
    spans = "".join(
        f"<tspan x='{MARGIN + column * CHAR_WIDTH:g}' textLength='{len(text) * CHAR_WIDTH:g}'"
        + (f" class='{style}'" if style else "")
        + f">{html.escape(text, quote=False)}</tspan>"
        for column, style, text in pieces(line)
    )
    return f"<text class='line' style='animation-delay:{at:.3f}s' y='{y}'>{spans}</text>"


def draw(lines):
    width = round(2 * MARGIN + CHAR_WIDTH * max(len(plain(line)) for _, line in lines))
    height = BAR_HEIGHT + LINE_HEIGHT * (len(lines) + 1) + MARGIN
    y = BAR_HEIGHT + LINE_HEIGHT
    out = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}'"
        " role='img'>",
        f"<title>What make demo printed on {time.strftime('%Y-%m-%d')}</title>",
        f"<style>{STYLE}</style>",
        f"<rect width='{width}' height='{height}' rx='8' fill='#0d1117'/>",
    ]
    for i, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")):
        out.append(f"<circle cx='{MARGIN + 5 + 18 * i}' cy='{BAR_HEIGHT // 2}' r='5' fill='{colour}'/>")
    out.append(f"<text x='{MARGIN}' y='{y}' class='dim'>{PROMPT}</text>")
    for at, line in lines:
        y += LINE_HEIGHT
        if line:
            out.append(draw_line(at, line, y))
    out.append("</svg>")
    return "\n".join(out)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: demo_svg.py COMMAND [ARG...]")
    status, lines = run(sys.argv[1:])
    if status != 0:
        sys.exit("\n".join(plain(line) for _, line in lines) + f"\ndemo_svg.py: exit status {status}")
    print(draw(story(lines)))


main()
