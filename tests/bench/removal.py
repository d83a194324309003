#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""removal.py BUILD [ROUNDS]: how late the jobs of a busy queue are while another one is removed.

First `lapse remove` takes a queue of 1,000,000 waiting jobs away from a Redis that does nothing else: it prints the
CPU time of Redis's main thread a job, and how long a script took, which is how long others wait. Then, in each round
(3; 0: none), `lapse bench` runs 1,000 jobs a second for 15 s: alone, and beside such a removal.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from attributes import BODY, Redis

N, PER_CALL, IN_A_ROW = 1000000, 100, 50000
KEYS = ["lapse:{big}:due", "lapse:{big}:none"]
WARM_UP_S, SLOW_US = 3, 1000


def schedules(sha, first):
    for at in range(first, first + IN_A_ROW, PER_CALL):
        jobs = [(f"job-{i:016}", "+3600000", "0", b"\1\0" + BODY) for i in range(at, at + PER_CALL)]
        yield ["EVALSHA", sha, len(KEYS), *KEYS, "0", *(word for job in jobs for word in job)]


def fill(redis, build):
    sha = redis.ask("SCRIPT", "LOAD", (build / "lua/schedule.lua").read_bytes())
    for first in range(0, N, IN_A_ROW):
        redis.ask_all(list(schedules(sha, first)))
    if redis.ask("ZCARD", KEYS[0]) != N:
        sys.exit(f"removal.py: not all of the {N} jobs were stored")


def start(build, folder, *words):
    program = [build / "lapse", "-u", f"unix://{folder}/socket", *words]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def remove(build, folder):
    return json.loads(start(build, folder, "remove", "big").communicate()[0])["removed"]


def removal_alone(redis, build, folder):
    fill(redis, build)
    redis.ask("CONFIG", "RESETSTAT")
    cpu_us, n = redis.cpu_us(), remove(build, folder)
    cpu_us = redis.cpu_us() - cpu_us
    stats = redis.ask("INFO", "commandstats").decode()
    scripts = next(line for line in stats.split("\r\n") if line.startswith("cmdstat_evalsha:"))
    us_a_script = scripts.split("usec_per_call=")[1].split(",")[0]
    print(f"{n} removed alone: {cpu_us / n:.2f} us of Redis's CPU a job, {us_a_script} us a script")


def started_late(bench):
    answer = json.loads(bench.communicate()[0])
    if bench.returncode:
        sys.exit(f"removal.py: lapse bench exits with {bench.returncode}")
    return [answer[f"rate_started_late_{part}_ms"] for part in ["p50", "p99", "max"]]


def main():
    build, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rate = ["bench", "busy", "--rate", "1000/s", "--duration", "15s", "--json"]
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(folder)
        try:
            removal_alone(redis, build, folder)
            for _ in range(rounds):
                alone = started_late(start(build, folder, *rate))
                fill(redis, build)
                busy = start(build, folder, *rate)
                time.sleep(WARM_UP_S)
                redis.ask_all([["CONFIG", "SET", "slowlog-log-slower-than", SLOW_US], ["SLOWLOG", "RESET"]])
                began = time.monotonic()
                removed = remove(build, folder)
                took_s = time.monotonic() - began
                beside = started_late(busy)
                slow = redis.ask("SLOWLOG", "GET", "-1")
                scripts = [entry[2] for entry in slow if entry[3][0].upper().startswith(b"EVALSHA")]
                longest = max(scripts, default=SLOW_US)
                print(f"p50 / p99 / max, ms: alone {alone}, beside {beside}; {removed} removed in", end=" ")
                print(f"{took_s:.1f} s, longest script at most {longest} us; p99 {beside[1] / alone[1]:.2f} times")
        finally:
            redis.close()


if __name__ == "__main__":
    main()
