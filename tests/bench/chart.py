# SPDX-License-Identifier: MIT
"""The results as a chart: lateness over jobs waiting. gnuplot draws it, by chart.gp."""

import math
import shutil
import subprocess

from systems import HERE

# In the order of the series in chart.gp.
SERIES = (
    "lapse.waiting",
    "bullmq.waiting",
    "zset10.waiting",
    "bullmq.ahead",
    "beanstalk.waiting",
    "zset1000.waiting",
    "expired.waiting",
)


def rows(results, series, waiting):
    """Jobs waiting, p50, p99 in ms, and of each whether it is a bound."""
    for n in waiting:
        cells = [n]
        for part in ("p50_ms", "p99_ms"):
            name = f"{series}.{n}.{part}"
            value = results.number(name) if results.has(name) else math.nan
            cells += [value, int(results.is_bound(name))]
        if not all(math.isnan(cell) for cell in cells[1::2]):
            yield cells


def draw(results, out, say):
    if not results.has("lapse.waiting.{}.p50_ms".format(results.number("plan.most"))):
        return
    if not shutil.which("gnuplot"):
        say("no chart: gnuplot is not installed")
        return

    waiting = [int(n.replace(",", "")) for n in results.text("plan.waiting").split()]
    if results.has("lapse.waiting.5000000.p50_ms"):
        waiting.append(5000000)
    drawn = []
    data = out / "lateness.dat"
    with open(data, "w", encoding="utf-8") as file:
        for nth, series in enumerate(SERIES, 1):
            found = list(rows(results, series, waiting))
            if found:
                drawn.append(str(nth))
            # gnuplot counts a block that is empty only if something is in it
            for row in found or [["nan"] * 5]:
                file.write(" ".join(map(str, row)) + "\n")
            file.write("\n\n")

    title = "How late a job starts"
    if results.number("machine.quick"):
        title += " (QUICK run, not for quoting)"
    subtitle = "1,000 jobs/s, one listener, Redis {}, hz 10; {}".format(
        results.text("machine.redis"), results.text("machine.date")
    )
    variables = {
        "data": data,
        "chart": out / "lateness.svg",
        "drawn": " ".join(drawn),
        "waiting": ", ".join(f'"{n:,}" {n}' for n in waiting),
        "least": waiting[0],
        "most": waiting[-1],
        "main_title": title,
        "subtitle": subtitle,
    }
    settings = "; ".join(f"{name} = '{value}'" for name, value in variables.items())
    subprocess.run(["gnuplot", "-e", settings, HERE / "chart.gp"], check=True)
