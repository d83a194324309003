# SPDX-License-Identifier: MIT
"""The results as charts: lateness over jobs waiting, and over the round trip. gnuplot draws them, by
chart.gp and network.gp."""

import math
import shutil
import subprocess

from sizes import BIG_WAITING
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

# In the order of the series in network.gp, where half a round trip is one more.
NETWORK_SERIES = ("lapse.network", "bullmq.network", "zset10.network")


def rows(results, series, places):
    """Place on the x axis, p50, p99 in ms, and of each whether it is a bound."""
    for n in places:
        cells = [n]
        for part in ("p50_ms", "p99_ms"):
            name = f"{series}.{n}.{part}"
            value = results.number(name) if results.has(name) else math.nan
            cells += [value, int(results.is_bound(name))]
        if not all(math.isnan(cell) for cell in cells[1::2]):
            yield cells


def draw(results, out, say):
    if not shutil.which("gnuplot"):
        say("no chart: gnuplot is not installed")
        return
    draw_waiting(results, out)
    draw_network(results, out)


def title(results, text):
    return text + (" (QUICK run, not for quoting)" if results.number("machine.quick") else "")


def draw_waiting(results, out):
    if not results.has("lapse.waiting.{}.p50_ms".format(results.number("plan.most"))):
        return

    waiting = [int(n.replace(",", "")) for n in results.text("plan.waiting").split()]
    if results.has(f"lapse.waiting.{BIG_WAITING}.p50_ms"):
        waiting.append(BIG_WAITING)
    data = out / "lateness.dat"
    drawn = write_series(data, [list(rows(results, series, waiting)) for series in SERIES])

    subtitle = "1,000 jobs/s, one listener, Redis {}, hz 10; {}".format(
        results.text("machine.redis"), results.text("machine.date")
    )
    plot("chart.gp", {
        "data": data,
        "chart": out / "lateness.svg",
        "drawn": drawn,
        "waiting": ", ".join(f'"{n:,}" {n}' for n in waiting),
        "least": waiting[0],
        "most": waiting[-1],
        "main_title": title(results, "How late a job starts"),
        "subtitle": subtitle,
    })


def draw_network(results, out):
    rtts_us = [int(n) for n in results.text("plan.rtts_us").split()]
    if not rtts_us or not results.has(f"lapse.network.{rtts_us[-1]}.p50_ms"):
        return

    places = list(enumerate(rtts_us))
    data = out / "network.dat"
    series = []
    for name in NETWORK_SERIES:
        found = rows(results, name, rtts_us)
        series.append([[rtts_us.index(row[0]), *row[1:]] for row in found])
    # what no listener can be sooner than: half a round trip, of the answer to the claim
    series.append([[place, us / 2000, 0, us / 2000, 0] for place, us in places if us > 0])
    drawn = write_series(data, series)

    subtitle = "300 jobs/s, one listener behind a network, the producer beside Redis {}; {}".format(
        results.text("machine.redis"), results.text("machine.date")
    )
    marks = [f"{us / 1000:g} ms" if us else "none" for us in rtts_us]
    plot("network.gp", {
        "data": data,
        "chart": out / "network.svg",
        "drawn": drawn,
        "marks": ", ".join(f'"{mark}" {place}' for place, mark in enumerate(marks)),
        "most": places[-1][0],
        "main_title": title(results, "How late a job starts, over the round trip to Redis"),
        "subtitle": subtitle,
    })


def write_series(data, series):
    """Each is a block of the file; the numbers of those that have rows."""
    with open(data, "w", encoding="utf-8") as file:
        for found in series:
            # gnuplot counts a block that is empty only if something is in it
            for row in found or [["nan"] * 5]:
                file.write(" ".join(map(str, row)) + "\n")
            file.write("\n\n")
    return " ".join(str(nth) for nth, found in enumerate(series, 1) if found)


def plot(script, variables):
    settings = "; ".join(f"{name} = '{value}'" for name, value in variables.items())
    subprocess.run(["gnuplot", "-e", settings, HERE / script], check=True)
