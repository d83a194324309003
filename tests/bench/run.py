# SPDX-License-Identifier: MIT
"""run.py BUILD: measures lapse and what else one would use, each on a server of its own, one after
the other; README.md here says how to read it. Fails if a promise is broken. Environment:

    QUICK=1            small sizes, in a few minutes
    BIG=1              also `big`: 10,000,000 waiting
    ONLY='late burst'  some of MEASURES (measures.py)
"""

import datetime
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import chart
from bench import Bench, ProgramFailed
from measures import AT_REQUEST, BESIDE_PEERS, MEASURES
from report import Report
from results import Results
from sizes import FULL, QUICK
from systems import HERE

USAGE = 2
INTERRUPTED = 130


def output_of(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    return done.stdout.strip()


def put_machine(results, is_quick):
    cpu = re.search(r"^model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    redis = re.search(r" v=(\S+)", output_of("redis-server", "--version"))
    results.put("machine.date", datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    results.put("machine.cores", os.cpu_count())
    results.put("machine.cpu", cpu.group(1) if cpu else "unknown")
    results.put("machine.redis", redis.group(1))
    results.put("machine.load", f"{os.getloadavg()[0]:.2f}")
    results.put("machine.quick", int(is_quick))


def put_plan(results, sizes):
    results.put("plan.waiting", " ".join(f"{n:,}" for n in sizes.waiting))
    results.put("plan.rtts_us", " ".join(map(str, sizes.rtts_us)))
    for name in ("most", "idle_at", "burst", "bulk", "hopeless_s", "queues", "queues_s"):
        results.put(f"plan.{name}", getattr(sizes, name))


def find_peers(bench):
    """What is not there is not run, and the table says why."""
    results = bench.results
    if shutil.which("beanstalkd"):
        results.put("machine.beanstalkd", output_of("beanstalkd", "-v").split()[1])
    else:
        bench.skip("beanstalk", "beanstalkd is not installed")

    if not shutil.which("node") or not shutil.which("npm"):
        bench.skip("bullmq", "node and npm are not installed")
        return
    bench.say("npm install of BullMQ")
    shutil.copy(HERE / "package.json", bench.out)
    npm = ["npm", "--prefix", bench.out, "install", "--no-audit", "--no-fund", "--ignore-scripts"]
    if subprocess.run([*npm, "--loglevel=error"], stdout=sys.stderr, check=False).returncode:
        bench.skip("bullmq", "npm install of it failed")
        return
    os.environ["NODE_PATH"] = str(bench.out / "node_modules")
    version = output_of("node", "-p", "require('bullmq/package.json').version")
    results.put("machine.bullmq", version)
    results.put("machine.node", output_of("node", "--version"))


def measure(bench, names):
    for name in names:
        try:
            MEASURES[name](bench)
        except (ProgramFailed, RuntimeError) as e:
            bench.failures.append(f"{name}: {e}")
            bench.say(bench.failures[-1])
        finally:
            bench.kill_programs()
            bench.stop()


def on_signal(signum, frame):
    sys.exit(INTERRUPTED)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    names = os.environ.get("ONLY", "").split()
    if not names:
        names = [name for name in MEASURES if name not in AT_REQUEST or os.environ.get("BIG")]
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        print(f"no such measure: {unknown[0]}; there are: {' '.join(MEASURES)}", file=sys.stderr)
        return USAGE

    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, on_signal)

    is_quick = bool(os.environ.get("QUICK"))
    results = Results()
    with tempfile.TemporaryDirectory(prefix="lapse-bench.") as folder:
        sizes = QUICK if is_quick else FULL
        bench = Bench(build, folder, sizes, results)
        # whatever is built meanwhile, these are run and their calls counted
        shutil.copytree(build / "lua", bench.folder / "lua")
        shutil.copy(build / "lapse", bench.folder)
        put_machine(results, is_quick)
        put_plan(results, bench.sizes)
        if BESIDE_PEERS.intersection(names):
            find_peers(bench)
        try:
            measure(bench, names)
        finally:
            bench.stop()

    results.put("machine.seconds", int(time.monotonic() - bench.started))
    results.put("machine.load_after", f"{os.getloadavg()[0]:.2f}")
    results.write(bench.out / "results")
    report = Report(results, bench.not_run)
    table = report.table()
    (bench.out / "table.md").write_text(table)
    chart.draw(results, bench.out, bench.say)
    print(table, end="")
    bench.say(f"done; the table, the chart and every figure are in {bench.out}")
    for text in bench.failures:
        print(f"FAILED {text}", file=sys.stderr)
    for text in report.broken:
        print(f"BROKEN PROMISE {text}", file=sys.stderr)
    return 1 if bench.failures or report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
