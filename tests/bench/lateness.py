# SPDX-License-Identifier: MIT
"""How late the jobs of one run were, from what its listeners recorded: struct record of listen.c."""

import array
import os

RECORD_FIELDS = 4
UNUSED = b"\xff" * 8
PERCENTILES = {"p50": 500, "p90": 900, "p99": 990, "p999": 999, "max": 1000}  # per mille


def count_used(fd):
    """How many records of a listener that still runs are used; they are used from the first on."""
    size = RECORD_FIELDS * 8
    low, high = 0, os.fstat(fd).st_size // size
    while low < high:
        middle = (low + high) // 2
        if os.pread(fd, 8, middle * size) == UNUSED:
            high = middle
        else:
            low = middle + 1
    return low


class Records:
    """Lists of the same length: what each call of a handler saw."""

    def __init__(self, files):
        self.numbers = array.array("q")
        self.starts_us = array.array("q")
        self.claims_us = array.array("q")
        self.dues_ms = array.array("q")
        for file in files:
            file.seek(0)
            self.add(array.array("q", file.read()))

    def add(self, fields):
        numbers = fields[0::RECORD_FIELDS]
        end = numbers.index(-1) * RECORD_FIELDS if -1 in numbers else len(fields)  # the used ones
        self.numbers += fields[0:end:RECORD_FIELDS]
        self.starts_us += fields[1:end:RECORD_FIELDS]
        self.claims_us += fields[2:end:RECORD_FIELDS]
        self.dues_ms += fields[3:end:RECORD_FIELDS]

    def __len__(self):
        return len(self.numbers)

    def starts_and_ends_us(self):
        """When jobs that last have started and ended, both in order of time."""
        starts = sorted(at for at, number in zip(self.starts_us, self.numbers) if number >= 0)
        ends = sorted(at for at, number in zip(self.starts_us, self.numbers) if number < -1)
        return starts, ends


def count(records, n, most_runs=1):
    """Of jobs 0 to n - 1: how many never ran, ran too often, or were claimed early."""
    runs = [0] * n
    early = 0
    for i, number in enumerate(records.numbers):
        if 0 <= number < n:
            runs[number] += 1
            early += is_early(records, i)
    return {"lost": runs.count(0), "twice": sum(r > most_runs for r in runs), "early": early}


def is_early(records, i):
    claimed_us = records.claims_us[i] or records.starts_us[i]
    return records.dues_ms[i] != 0 and claimed_us < records.dues_ms[i] * 1000


def measure(results, name, records, t0_ms, rate, n, end_ms, measured=None):
    """Puts NAME.lost and so on, and the percentiles of the first jobs, NAME.p50_ms and so on. Job i
    was due at t0 + i / rate (rate 0: at t0), if its record does not say. A job that had not come
    when the run ended was later than that: where such a one decides a figure, it is a bound."""
    late_us = [None] * n
    claimed_late_us = [None] * n
    runs = [0] * n
    early = 0
    planned_ms = [t0_ms + i * 1000 // rate if rate else t0_ms for i in range(n)]

    for i, number in enumerate(records.numbers):
        if not 0 <= number < n:
            continue
        runs[number] += 1
        if runs[number] > 1:
            continue
        due_us = (records.dues_ms[i] or planned_ms[number]) * 1000
        claimed_us = records.claims_us[i]
        late_us[number] = max(records.starts_us[i] - due_us, 0)
        if claimed_us:
            claimed_late_us[number] = max(claimed_us - due_us, 0)
        early += (claimed_us or records.starts_us[i]) < due_us

    results.put(name + ".n", n)
    results.put(name + ".lost", runs.count(0))
    results.put(name + ".twice", sum(r > 1 for r in runs))
    results.put(name + ".early", early)

    first = range(min(n, measured or n))
    missing = [max((end_ms - planned_ms[i]) * 1000, 1) for i in first if runs[i] == 0]
    put_percentiles(results, name + ".", [late_us[i] for i in first if runs[i]], missing)
    claimed = [claimed_late_us[i] for i in first if claimed_late_us[i] is not None]
    put_percentiles(results, name + ".claimed_", claimed, [])


def measure_gaps(results, name, records, at_once):
    """Where so many run at once: how long after an end the next one starts that it has made room
    for. Puts NAME.p50_ms and so on, of all but the last, for which none waits."""
    starts, ends = records.starts_and_ends_us()
    gaps = [start - end for start, end in zip(starts[at_once:], ends)]
    results.put(name + ".n", len(starts))
    put_percentiles(results, name + ".", gaps, [])


def put_percentiles(results, prefix, late_us, at_least_us):
    ordered = sorted(late_us + at_least_us)
    least_bound = min(at_least_us, default=None)
    for name, per_mille in PERCENTILES.items():
        if not ordered:
            return
        value_us = ordered[min(len(ordered) * per_mille // 1000, len(ordered) - 1)]
        put = results.put
        if least_bound is not None and value_us >= least_bound:
            put = results.put_bound
        put(f"{prefix}{name}_ms", value_us / 1000)
