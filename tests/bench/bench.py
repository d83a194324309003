# SPDX-License-Identifier: MIT
"""What all measures use: the server of the moment, programs and their output, runs at a rate."""

import dataclasses
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable

import lateness
from systems import cpu_us, now_ms, sleep_until_ms, spawn, systems

READY_MOST_MS = 300000  # for listeners to come, and for the run after it
END_MOST_MS = 5000  # for a listener to end
NETWORK_S = 5  # for it to start


class ProgramFailed(Exception):
    pass


class Bench:
    def __init__(self, build, folder, sizes, results):
        self.build = build
        self.out = build / "bench"
        self.folder = pathlib.Path(folder)
        self.sizes = sizes
        self.results = results
        self.systems = systems(self.out)
        self.not_run = {}  # system: why
        self.failures = []
        self.server = None
        self.processes = []
        self.run_number = 0
        self.started = time.monotonic()

    def say(self, text):
        print(f"{time.monotonic() - self.started:4.0f} s  {text}", file=sys.stderr, flush=True)

    def skip(self, system, reason):
        self.not_run[system] = reason
        self.say(f"{system} is not run: {reason}")

    # ---- servers ----
    def runs(self, system):
        return system not in self.not_run

    def start(self, system, port=0):
        self.stop()
        kind = self.systems[system].server
        self.server = kind(self.folder, port) if port else kind(self.folder)
        self.server.start()
        return self.server

    def stop(self):
        if self.server:
            self.server.stop()
            self.server = None

    def network(self, rtt_us):
        """The address of the server for those who are a round trip away from it: the network is
        that of `lapse bench --rtt`."""
        if not rtt_us:
            return self.server.socket
        path = self.folder / f"network{self.run_number}"
        wire = self.spawn_words([self.out / "wire", path, self.server.socket, rtt_us])
        deadline = time.monotonic() + NETWORK_S
        while not path.is_socket():
            if time.monotonic() > deadline or wire.poll() is not None:
                raise RuntimeError("the network did not start")
            time.sleep(0.005)
        return path

    # ---- programs ----
    def next_run(self):
        self.run_number += 1
        return self.run_number

    def spawn(self, system, verb, at=None, **arguments):
        words = self.systems[system].words(verb, at=at or self.server.socket, **arguments)
        return self.spawn_words(words)

    def spawn_words(self, words, **options):
        options.setdefault("stdout", subprocess.PIPE)
        self.processes.append(spawn(words, text=True, **options))
        return self.processes[-1]

    def kill_programs(self):
        """What is left of a measure that failed."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
        self.processes.clear()

    def run(self, system, verb, **arguments):
        """Its output."""
        return self.end(self.spawn(system, verb, **arguments), f"{system} {verb}")

    def end(self, process, what):
        output, _ = process.communicate()
        if process.returncode:
            raise ProgramFailed(f"{what} ended with {process.returncode}")
        return output

    def listen(self, system, **arguments):
        return Listener(self, system, arguments)

    def fill(self, system, n, start=0, **options):
        self.say(f"{system}: {n} jobs are stored to wait")
        self.run(system, "fill", **{"from": start}, n=n, **options)
        self.server.wait_for_rewrite()

    def timed(self, run):
        timed = TimedRun(self, run)
        timed.start()
        timed.finish()
        return timed


class Listener:
    """A process that runs jobs, and what it records of them."""

    def __init__(self, bench, system, arguments):
        self.bench = bench
        self.system = system
        self.file = os.fdopen(os.memfd_create("records"), "rb", buffering=0)
        arguments.setdefault("at", bench.server.socket)
        words = bench.systems[system].words("listen", record=self.file.fileno(), **arguments)
        self.process = bench.spawn_words(words, pass_fds=[self.file.fileno()])
        self.pid = self.process.pid

    def records(self):
        return lateness.Records([self.file])

    def signal(self, signum):
        self.process.send_signal(signum)

    def end(self):
        return self.bench.end(self.process, f"{self.system} listen")

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def end_by(self, end_ms):
        """Its output; one that has to be killed has none."""
        try:
            self.process.wait(max(end_ms - now_ms(), 0) / 1000)
        except subprocess.TimeoutExpired:
            self.kill()
            return ""
        return self.end()

    def count_runs(self):
        return lateness.count_used(self.file.fileno())

    def wait_for_runs(self, n, timeout_s):
        """How many there are at the end."""
        deadline = time.monotonic() + timeout_s
        while (runs := self.count_runs()) < n and time.monotonic() < deadline:
            time.sleep(0.001)
        return runs


@dataclasses.dataclass
class Run:
    """Jobs at a rate for some seconds, put lead_ms to lead_ms + jitter_ms before they are due."""

    system: str
    name: str
    rate: int
    seconds: float
    grace_s: float  # after the last was due: later ones are lost
    lead_ms: int
    jitter_ms: int
    listeners: int = 1
    # The producer has ended before the first job is due, and nobody else talks to the server.
    # Otherwise it goes on until the last measured job was due.
    ahead: bool = False
    options: dict = dataclasses.field(default_factory=dict)  # arguments of the listeners besides
    queues: int = 1
    rtt_us: int = 0  # by so much each round trip of the listeners is longer
    store: str = ""  # the system that puts the jobs, if it is another than the one that runs them
    # Returns when the listeners have come; otherwise start_ms of the system is enough for them.
    wait_ready: Callable | None = None


class TimedRun:
    def __init__(self, bench, run):
        self.bench = bench
        self.run = run
        self.store = run.store or run.system
        self.measured = int(run.rate * run.seconds)
        self.n = self.measured
        self.lead_ms = run.lead_ms
        self.t0_ms = 0
        if run.ahead:
            self.lead_ms = int(run.seconds * 1000) + 200
        else:
            self.n += run.rate * (run.lead_ms + run.jitter_ms) // 1000

    def start(self):
        bench, run = self.bench, self.run
        bench.say(f"{run.name}: {run.rate}/s for {run.seconds} s, listeners: {run.listeners}")
        self.number = bench.next_run()
        self.server_before_us = bench.server.cpu_us()
        if run.wait_ready:
            self.start_listeners(now_ms() + READY_MOST_MS)
            run.wait_ready()
            self.plan(bench.systems[run.system].start_ms)
        else:
            self.plan(bench.systems[run.system].start_ms)
            self.start_listeners(self.end_ms)
        self.start_producer()

    def plan(self, start_ms):
        run = self.run
        self.t0_ms = now_ms() + start_ms + self.lead_ms + run.jitter_ms
        self.end_ms = self.t0_ms + int(self.n * 1000 / run.rate + run.grace_s * 1000)

    def queues(self):
        return {"queues": self.run.queues} if self.run.queues > 1 else {}

    def start_listeners(self, until_ms):
        run = self.run
        at = self.bench.network(run.rtt_us)
        self.listeners = [
            self.bench.listen(
                run.system, run=self.number, t0=self.t0_ms, n=self.n,
                until=until_ms, at=at, **{"o.name": f"l{i:02}"}, **run.options, **self.queues(),
            )
            for i in range(1, run.listeners + 1)
        ]

    def start_producer(self):
        run = self.run
        self.producer = self.bench.spawn(
            self.store, "produce", run=self.number, t0=self.t0_ms, n=self.n, rate=run.rate,
            lead=self.lead_ms, jitter=run.jitter_ms, **self.queues(),
        )

    def finish(self):
        bench, name, results = self.bench, self.run.name, self.bench.results
        results.keep(name, bench.end(self.producer, f"{self.store} produce"))
        outputs = [listener.end_by(self.end_ms + END_MOST_MS) for listener in self.listeners]
        results.keep(name, outputs[0])
        used_us = bench.server.cpu_us() - self.server_before_us
        results.put(f"{name}.server_us_job", used_us / self.n)

        records = lateness.Records([listener.file for listener in self.listeners])
        lateness.measure(
            results, name, records, self.t0_ms, self.run.rate, self.n, self.end_ms, self.measured
        )
        figures = [results.number(f"{name}.{part}") for part in ("p50_ms", "p99_ms", "max_ms")]
        wrong = [results.number(f"{name}.{part}") for part in ("lost", "twice", "early")]
        bench.say("    p50 {:.3f} p99 {:.3f} max {:.3f} ms;".format(*figures)
                  + " lost {} twice {} early {}".format(*wrong))

    def measure_cpu(self):
        """What listeners and server use from the first due moment until all measured jobs have run:
        us of both, and the us that it took."""
        sleep_until_ms(self.t0_ms)
        before = self.cpu_now()
        while self.count_runs() < self.measured and now_ms() < self.end_ms:
            time.sleep(0.02)
        return [after - was for was, after in zip(before, self.cpu_now())]

    def count_runs(self):
        return sum(listener.count_runs() for listener in self.listeners)

    def cpu_now(self):
        used_us = sum(cpu_us(listener.pid) for listener in self.listeners)
        return [used_us, self.bench.server.cpu_us(), time.monotonic_ns() // 1000]
