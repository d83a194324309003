#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""attributes.py BUILD [ROUNDS]: what attributes cost a job that asks for none, and one that has tags.

Asked are the scripts alone, over a Unix socket, of a Redis of its own. Three sets of calls take turns: the
scripts of before there were attributes (tests/lua/before) and those of today with plain jobs, and those of
today with jobs of two tags. Of each step of a job's life it prints the CPU time of Redis's main thread, in
us a job: the median of the rounds (15), and the median of the quotients of each round. Then the bytes that
Redis takes for each of 100,000 jobs that wait.
"""
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BODY = b"x" * 100
TAGS = [b"customer-1234567", b"region-eu-west-1"]
KEYS = ["lapse:{bench}:due", "lapse:{bench}:none"]
VERBS = ["schedule", "claim", "done"]
IN_FLIGHT = 50


class Redis:
    """A server in a folder of its own, and a connection to it."""

    def __init__(self, folder):
        path = f"{folder}/socket"
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        self.socket = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + 10
        while self.socket.connect_ex(path) != 0:
            if self.process.poll() is not None:
                sys.exit("attributes.py: redis-server has ended: " + str(self.process.returncode))
            if time.monotonic() > deadline:
                sys.exit("attributes.py: redis-server does not answer in 10 s")
            time.sleep(0.01)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.process.terminate()
        self.process.wait()

    def answer(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            sys.exit(f"attributes.py: Redis answers: {rest.decode()}")
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        return int(rest) if kind == b":" else rest

    def ask(self, *words):
        return self.ask_all([words])[0]

    def ask_all(self, calls):
        answers = []
        for at in range(0, len(calls), IN_FLIGHT):
            some = [packed(call) for call in calls[at : at + IN_FLIGHT]]
            self.socket.sendall(b"".join(some))
            answers += [self.answer() for _ in some]
        return answers

    def said(self, section, name):
        text = self.ask("INFO", section).decode()
        return float(next(line for line in text.split("\r\n") if line.startswith(f"{name}:")).split(":")[1])

    def cpu_us(self):
        times = [self.said("cpu", f"used_cpu_{kind}_main_thread") for kind in ["user", "sys"]]
        return sum(times) * 1e6


def packed(words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def record_of(tags):
    attributes = b"".join(b"T" + bytes([len(tag)]) + tag for tag in tags)
    return b"\2\0" + bytes([len(attributes)]) + attributes + BODY if tags else b"\1\0" + BODY


class Subject:
    """Scripts, and the record that their jobs have."""

    def __init__(self, redis, name, folder, tags):
        self.redis, self.name, self.record = redis, name, record_of(tags)
        self.sha = {
            verb: redis.ask("SCRIPT", "LOAD", (folder / f"{verb}.lua").read_bytes()) for verb in VERBS
        }

    def call(self, verb, *words):
        return ["EVALSHA", self.sha[verb], len(KEYS), *KEYS, "0", *words]

    def schedules(self, n, per_call, due):
        ids = [f"job-{i:016}" for i in range(n)]
        return [
            self.call("schedule", *(word for i in ids[at : at + per_call] for word in [i, due, "0", self.record]))
            for at in range(0, n, per_call)
        ]

    def timed(self, calls, n):
        before = self.redis.cpu_us()
        answers = self.redis.ask_all(calls)
        return (self.redis.cpu_us() - before) / n, answers

    def round(self, n, per_call):
        """The us of each verb."""
        us = {}
        self.redis.ask("FLUSHALL")
        us["schedule"], _ = self.timed(self.schedules(n, per_call, "+3600000"), n)
        self.redis.ask("FLUSHALL")
        self.redis.ask_all(self.schedules(n, per_call, "+0"))
        claim = self.call("claim", "me", "30000", per_call)
        us["claim"], answers = self.timed([claim] * (n // per_call), n)
        settles = []
        for answer in answers:
            held = [word for row in answer[7:] for word in [row[0], row[3].split(b" ")[1]]]
            settles.append(self.call("done", "me", *held))
        us["done"], answers = self.timed(settles, n)
        if sum(answer.count(1) for answer in answers) != n:
            sys.exit(f"attributes.py: not all jobs of {self.name} were done")
        return us


def compare(subjects, rounds, n, per_call):
    found = [[] for _ in subjects]
    for round_ in range(rounds + 1):
        in_turn = list(zip(subjects, found))
        for subject, us in in_turn if round_ % 2 else in_turn[::-1]:
            us.append(subject.round(n, per_call))
    for verb in [*VERBS, "claim and done"]:
        of_each = [
            [us["claim"] + us["done"] if verb not in us else us[verb] for us in one[1:]] for one in found
        ]
        words = []
        for subject, us in zip(subjects, of_each):
            quotient = statistics.median(a / b for a, b in zip(us, of_each[0]))
            words.append(f"{subject.name} {statistics.median(us):.2f} ({quotient:.3f})")
        print(f"{per_call} a call, {verb}: {', '.join(words)}")


def sizes(redis, build, n):
    plain = 0
    for n_tags in range(len(TAGS) + 1):
        redis.ask("FLUSHALL")
        subject = Subject(redis, "", build / "lua", TAGS[:n_tags])
        empty = redis.said("memory", "used_memory")
        redis.ask_all(subject.schedules(n, 100, "+3600000"))
        size = (redis.said("memory", "used_memory") - empty) / n
        plain = plain or size
        each = f", {(size - plain) / n_tags:.0f} a tag" if n_tags else ""
        print(f"bytes of a job with {n_tags} tags of 16: {size:.0f}{each}")


def main():
    build, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 15
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(folder)
        try:
            subjects = [
                Subject(redis, "before", ROOT / "tests/lua/before", []),
                Subject(redis, "plain", build / "lua", []),
                Subject(redis, "two tags", build / "lua", TAGS),
            ]
            print(f"us of Redis's CPU a job (of that before), {rounds} rounds in turn")
            compare(subjects, rounds, 1000, 1)
            compare(subjects, rounds, 5000, 100)
            sizes(redis, build, 100000)
        finally:
            redis.close()


if __name__ == "__main__":
    main()
