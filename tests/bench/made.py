#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""made.py BUILD [ROUNDS]: what parts of groups, firings of series and limits of queues cost, beside a plain job.

Asked are the scripts alone, as attributes.py does it. Plain jobs, parts that are gathered to groups of 100, and
series take turns, and claims in a queue with a limit that is not reached. Of each step it prints the CPU time of
Redis's main thread, in us a job, a part or a firing:
the median of the rounds (15), and the median of the quotients of each round, by plain jobs. Then the bytes that
Redis takes for each part of 1,000 groups that wait.
"""
import pathlib
import statistics
import sys
import tempfile

from attributes import BODY, KEYS, Redis

PARTS = 100
HEADER_OF = {
    "plain": b"\1\0",
    "series": b"\2\0\x11S\x0fl 0 0 e 3600000",
}


def group_header(quiet_ms, most):
    limits = f"{quiet_ms} {most} 0".encode()
    return b"\2\0" + bytes([len(limits) + 2]) + b"P" + bytes([len(limits)]) + limits


class Steps:
    """What is asked in a round, and what each step takes."""

    def __init__(self, redis, build):
        self.redis = redis
        self.sha = {
            verb: redis.ask("SCRIPT", "LOAD", (build / "lua" / f"{verb}.lua").read_bytes())
            for verb in ["schedule", "gather", "claim"]
        }

    def call(self, verb, *words):
        return ["EVALSHA", self.sha[verb], len(KEYS), *KEYS, "0", *words]

    def asks(self, verb, each, per_call):
        return [
            self.call(verb, *(word for words in each[at : at + per_call] for word in words))
            for at in range(0, len(each), per_call)
        ]

    def timed(self, calls, n):
        before = self.redis.cpu_us()
        self.redis.ask_all(calls)
        return (self.redis.cpu_us() - before) / n

    def schedules(self, n, header, due):
        return [[f"job-{i:016}", due, "0", header + BODY] for i in range(n)]

    def gathers(self, n, most):
        return [[f"group-{i // PARTS:014}", group_header(3600000, most), BODY] for i in range(n)]

    def claims(self, n, n_claims, setup, settings=None):
        self.redis.ask("FLUSHALL")
        if settings:
            self.redis.ask("SET", "lapse:{bench}:conf", f"1 {settings} ")
        self.redis.ask_all(setup)
        return self.timed([self.call("claim", "me", "30000", "1")] * n_claims, n)

    def round(self, n):
        """The us of each step: of plain jobs, and of what is held against it."""
        us = {}
        for per_call in [1, 100]:
            for name, each in [
                ("schedule", self.schedules(n, HEADER_OF["plain"], "+3600000")),
                ("part", self.gathers(n, 1000)),
            ]:
                self.redis.ask("FLUSHALL")
                verb = "gather" if name == "part" else "schedule"
                us[name, per_call] = self.timed(self.asks(verb, each, per_call), n)

        plain = self.schedules(n, HEADER_OF["plain"], "+0")
        series = self.schedules(n, HEADER_OF["series"], "+0")
        us["claim", 1] = self.claims(n, n, self.asks("schedule", plain, 100))
        us["firing", 1] = self.claims(n, n, self.asks("schedule", series, 100))
        for limit in ["rate=10000/1s", "max_running=1000000"]:
            us[limit, 1] = self.claims(n, n, self.asks("schedule", plain, 100), limit)
        groups = self.asks("gather", self.gathers(n, PARTS), 100)
        us["claimed part", 1] = self.claims(n, n // PARTS, groups)
        return us


ROWS = [
    ("a part, one a call", ("part", 1), ("schedule", 1)),
    ("a part, a hundred a call", ("part", 100), ("schedule", 100)),
    ("a part, when its group of 100 is claimed", ("claimed part", 1), ("claim", 1)),
    ("a firing, by a claim", ("firing", 1), ("claim", 1)),
    ("a claim, with rate=10000/1s", ("rate=10000/1s", 1), ("claim", 1)),
    ("a claim, with max_running=1000000", ("max_running=1000000", 1), ("claim", 1)),
]


def main():
    build, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 15
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(folder)
        try:
            steps = Steps(redis, build)
            steps.round(1000)
            found = [steps.round(2000) for _ in range(rounds)]
            for what, one, other in ROWS:
                us = [statistics.median(each[key] for each in found) for key in (one, other)]
                quotient = statistics.median(each[one] / each[other] for each in found)
                print(f"{what}: {us[0]:.2f} us, a plain job {us[1]:.2f}: {quotient:.3f}")

            redis.ask("FLUSHALL")
            empty = redis.said("memory", "used_memory")
            redis.ask_all(steps.asks("gather", steps.gathers(100000, 1000), 100))
            size = (redis.said("memory", "used_memory") - empty) / 100000
            print(f"bytes of a part of {len(BODY)}, in groups of {PARTS} that wait: {size:.0f}")
        finally:
            redis.close()


if __name__ == "__main__":
    main()
