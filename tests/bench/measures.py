# SPDX-License-Identifier: MIT
"""What is measured; each of MEASURES is a word of ONLY. Figures are named SYSTEM.MEASURE.FIGURE."""

import hashlib
import random
import signal
import subprocess
import time

import lateness
from bench import ProgramFailed, Run, TimedRun
from sizes import BIG_WAITING, THREADS
from systems import cpu_us, now_ms, sleep_until_ms

COUNTED_SCRIPTS = ("claim", "touch", "sweep", "schedule", "heartbeat", "done")
SETTLED_S = 6  # a sweep is every 5 s
BLOCKED_MS, BLOCKED_EVERY_MS = 50, 1000


def standard(bench, system, name, rate=1000, seconds=None, grace_s=3, **other):
    sizes = bench.sizes
    other.setdefault("lead_ms", sizes.lead_ms)
    other.setdefault("jitter_ms", sizes.jitter_ms)
    return Run(system, name, rate, seconds or sizes.run_s, grace_s, **other)


# ---- late: how late jobs start, over the number that wait ----
def measure_late(bench):
    lateness_of(bench, "lapse", ["lapse"], 3)
    lateness_of(bench, "bullmq", ["bullmq"], 5)
    lateness_of(bench, "beanstalk", ["beanstalk"], 3)
    lateness_of(bench, "zset10", ["zset10", "zset1000"], 3)
    lateness_of(bench, "expired", ["expired"], bench.sizes.hopeless_s)
    bench.results.put("zset1000.bytes", bench.results.values.get("zset10.bytes", ""))
    program(bench)
    bytes_armed_ahead(bench)


def lateness_of(bench, store, listeners, grace_s):
    """listeners: systems that share the way in which jobs are stored."""
    if not bench.runs(store):
        return
    sizes, results = bench.sizes, bench.results
    server = bench.start(store)
    empty = server.memory()
    have = 0
    # beanstalkd counts in seconds: with less its figure would depend on what is left of one
    jitter_ms = 1000 if store == "beanstalk" else sizes.jitter_ms

    for waiting in sizes.waiting:
        bench.fill(store, waiting - have, start=have)
        have = waiting
        if waiting == sizes.most:
            results.put(f"{store}.bytes", (server.memory() - empty) // waiting)
        for system in listeners:
            if waiting == sizes.idle_at:
                idle(bench, system)
            name = f"{system}.waiting.{waiting}"
            bench.timed(standard(bench, system, name, grace_s=grace_s, jitter_ms=jitter_ms))
            if system in ("lapse", "bullmq"):
                name = f"{system}.ahead.{waiting}"
                bench.timed(standard(bench, system, name, grace_s=grace_s, ahead=True))

    if store == "lapse":
        fast(bench)


def fast(bench):
    bench.timed(standard(bench, "lapse", "lapse.fast.5000", rate=5000, grace_s=10))
    seconds = bench.sizes.long_s
    bench.timed(
        standard(bench, "lapse", "lapse.fast.10000", rate=10000, seconds=seconds, grace_s=10)
    )


def until_it_watches(monitor, monitored):
    """MONITOR has answered: what Redis gets from now on is written."""
    deadline = time.monotonic() + 10
    while monitored.stat().st_size == 0:
        if time.monotonic() > deadline or monitor.poll() is not None:
            raise RuntimeError("redis-cli MONITOR does not answer")
        time.sleep(0.001)


def idle(bench, system):
    """What a system does while nothing falls due."""
    sizes, results, server = bench.sizes, bench.results, bench.server
    is_redis = system != "beanstalk"
    start_ms = bench.systems[system].start_ms
    ready_ms = now_ms() + start_ms + sizes.calm_ms
    end_ms = ready_ms + sizes.idle_s * 1000
    monitored = bench.folder / "monitor"

    bench.say(f"{system}: idle for {sizes.idle_s} s")
    listener = bench.listen(system, run=0, n=0, until=end_ms + 1000)
    sleep_until_ms(ready_ms)
    if is_redis:
        with open(monitored, "wb") as out:
            words = ["redis-cli", "-s", server.socket, "MONITOR"]
            monitor = bench.spawn_words(words, stdout=out)
        until_it_watches(monitor, monitored)
        commands = int(server.info("stats")["total_commands_processed"])

    used = cpu_us(listener.pid)
    used_by_server = server.cpu_us()
    sleep_until_ms(end_ms)
    percent_a_us = 100 / (sizes.idle_s * 1e6)
    results.put(f"{system}.idle.cpu", (cpu_us(listener.pid) - used) * percent_a_us)
    results.put(f"{system}.idle.server_cpu", (server.cpu_us() - used_by_server) * percent_a_us)

    if is_redis:
        # an INFO counts itself when it has been answered
        commands = int(server.info("stats")["total_commands_processed"]) - commands - 1
        monitor.terminate()
        monitor.wait()
        results.put(f"{system}.idle.commands_s", commands / sizes.idle_s)
        results.put(f"{system}.idle.sent_s", (sent(monitored) - 2) / sizes.idle_s)  # less INFO

    # not killed: lapse's registry would keep a dead listener, and its share would be late
    listener.end()


def sent(monitored):
    """Commands of clients in the output of MONITOR; those of scripts come from "lua"."""
    lines = monitored.read_text(errors="replace").splitlines()
    sources = [line.split("[", 1)[1].split("]", 1)[0] for line in lines if "[" in line]
    return sum(not source.endswith(" lua") for source in sources)


def program(bench):
    """`lapse bench`, which users can run themselves, must say the same. Its jobs are all scheduled
    a second ahead."""
    sizes, server = bench.sizes, bench.start("lapse")
    command = [
        bench.folder / "lapse", "bench", "-u", f"unix://{server.socket}", "--rate", "1000/s",
        "--duration", f"{sizes.run_s}s", "--waiting", sizes.most, "--json",
    ]
    bench.say(" ".join(map(str, command[1:2] + command[4:])))
    output = bench.end(bench.spawn_words(command), "lapse bench")
    bench.results.put("lapse.program.json", output.strip())


def bytes_armed_ahead(bench):
    server = bench.start("lapse")
    empty = server.memory()
    bench.fill("lapse", bench.sizes.most, **{"o.arm_ahead_ms": "60s"})
    bench.results.put("lapse.bytes_ahead", (server.memory() - empty) // bench.sizes.most)


# ---- burst: many jobs that are due in the same millisecond ----
def measure_burst(bench):
    for system in ("lapse", "bullmq", "beanstalk", "zset10"):
        if bench.runs(system):
            burst(bench, system)


def burst(bench, system):
    n, results, server = bench.sizes.burst, bench.results, bench.start(system)
    run = bench.next_run()
    store_ms = n // 4 if system == "bullmq" else n // 20
    t0_ms = now_ms() + store_ms + bench.systems[system].start_ms * 2 + 2000
    end_ms = t0_ms + 90000

    bench.say(f"{system}: {n} due in the same millisecond")
    bench.run(system, "burst", run=run, t0=t0_ms, n=n)
    if t0_ms - now_ms() < 1500:
        raise ProgramFailed(f"{system}: this machine is too slow to store {n} before they are due")
    server.wait_for_rewrite()

    # BullMQ drains faster than with its default of 1
    extra = {"concurrency": 100} if system == "bullmq" else {}
    listener = bench.listen(system, run=run, t0=t0_ms, n=n, until=end_ms, **extra)
    watch = watch_pings(bench, t0_ms, end_ms) if system != "beanstalk" else None
    results.keep(f"{system}.burst", listener.end())
    if watch:
        watch.terminate()
        results.keep(f"{system}.burst.ping", bench.end(watch, "native watch"))
        results.put(f"{system}.burst.script_us", slowest_script_us(server))

    name = f"{system}.burst"
    lateness.measure(results, name, listener.records(), t0_ms, 0, n, end_ms)
    results.put(f"{name}.drain_s", int(n * 1000 / results.number(f"{name}.settled_ms")))
    lost = results.number(f"{name}.lost")
    bench.say(f"    {results.number(f'{name}.drain_s')} jobs/s; lost {lost}")


def watch_pings(bench, t0_ms, end_ms):
    sleep_until_ms(t0_ms - 300)
    bench.server.ask("CONFIG", "SET", "slowlog-log-slower-than", "100")
    bench.server.ask("SLOWLOG", "RESET")
    return bench.spawn("native", "watch", **{"from": t0_ms - 50}, until=end_ms)


def slowest_script_us(server):
    script = """
        local most = 0
        for _, entry in ipairs(redis.call('SLOWLOG', 'GET', -1)) do
            if string.lower(entry[4][1]) == 'evalsha' then most = math.max(most, entry[3]) end
        end
        return most"""
    return int(server.ask("EVAL", script, 0) or 0)


# ---- big: ten million wait ----
def measure_big(bench):
    bench.start("lapse")
    bench.fill("lapse", BIG_WAITING)
    bench.server.finish_rehash(BIG_WAITING)
    bench.timed(standard(bench, "lapse", f"lapse.waiting.{BIG_WAITING}"))

    bench.start("lapse")
    bench.fill("lapse", bench.sizes.waiting[0])
    bench.timed(standard(bench, "lapse", "lapse.waiting.few"))


# ---- listeners: several share the jobs ----
def measure_listeners(bench):
    sizes, server = bench.sizes, bench.start("lapse")
    bench.fill("lapse", sizes.others)
    for listeners in (1, 4, 16):
        ahead = standard(
            bench, "lapse", f"lapse.listeners.{listeners}", grace_s=2, listeners=listeners
        )
        now = standard(
            bench, "lapse", f"lapse.listeners_now.{listeners}", grace_s=2, listeners=listeners,
            lead_ms=0, jitter_ms=0,
        )
        for run in (ahead, now):
            count_scripts(server)
            timed = bench.timed(run)
            put_scripts(bench, run.name, timed.n)


def count_scripts(server):
    """Redis keeps what it ran, with SHA: how often each script was called is exact."""
    server.ask("CONFIG", "SET", "slowlog-max-len", "1000000")
    server.ask("CONFIG", "SET", "slowlog-log-slower-than", "0")
    server.ask("SLOWLOG", "RESET")


def put_scripts(bench, name, n_jobs):
    bench.server.ask("CONFIG", "SET", "slowlog-log-slower-than", "-1")
    lines = bench.server.ask("SLOWLOG", "GET", "-1").splitlines()
    bench.server.ask("SLOWLOG", "RESET")
    for script in COUNTED_SCRIPTS:
        text = (bench.folder / "lua" / f"{script}.lua").read_bytes()
        calls = lines.count(hashlib.sha1(text).hexdigest())
        bench.results.put(f"{name}.{script}", calls / n_jobs)


# ---- stopped: one of four listeners stands still for 40 % of the run ----
def measure_stopped(bench):
    for nth in (1, 3):
        bench.start("lapse")
        bench.fill("lapse", bench.sizes.others)
        seconds = bench.sizes.stopped_s
        timed = TimedRun(
            bench,
            standard(
                bench, "lapse", f"lapse.stopped.{nth}", seconds=seconds, grace_s=2, listeners=4
            ),
        )
        timed.start()
        sleep_until_ms(timed.t0_ms + seconds * 250)
        timed.listeners[nth - 1].signal(signal.SIGSTOP)
        sleep_until_ms(timed.t0_ms + seconds * 650)
        timed.listeners[nth - 1].signal(signal.SIGCONT)
        timed.finish()


# ---- forward: Redis moves the jobs to a stream or a list, and another process reads them ----
def measure_forward(bench):
    bench.start("lapse")
    bench.fill("lapse", bench.sizes.others)
    bench.timed(standard(bench, "lapse", "lapse.forward.handler"))
    forwarded(bench, "stream", "--to-stream", "--group", "bench")
    forwarded(bench, "list", "--to-list")


def forwarded(bench, target, *options):
    server = bench.start("lapse")
    bench.fill("lapse", bench.sizes.others)
    command = [bench.folder / "lapse", "forward", "bench", "-u", f"unix://{server.socket}"]
    forwarder = bench.spawn_words([*command, *options])
    server.wait_for_listeners(1)
    bench.timed(standard(bench, target, f"lapse.forward.{target}", store="lapse"))
    forwarder.terminate()
    bench.end(forwarder, "lapse forward")


# ---- schedule: jobs stored a second, many in flight ----
def measure_schedule(bench):
    n, results = bench.sizes.bulk, bench.results
    server = bench.start("lapse")
    for round_ in range(1, 6):
        for system in ("native", "lapse"):
            server.ask("FLUSHALL")
            server.wait_for_rewrite()
            bench.say(f"{system}: {n} jobs, many in flight, round {round_}")
            results.keep(f"{system}.schedule.{round_}", bench.run(system, "fill", n=n))
    for system in ("bullmq", "beanstalk", "zset10", "expired"):
        if bench.runs(system):
            bench.start(system)
            bench.say(f"{system}: {n} jobs, many in flight")
            results.keep(f"{system}.schedule.1", bench.run(system, "fill", n=n))


# ---- threads: jobs stored a second by threads that share a connection and wait for each answer ----
def measure_threads(bench):
    n, results = bench.sizes.bulk, bench.results
    server = bench.start("lapse")
    for round_ in range(1, 6):
        server.ask("FLUSHALL")
        server.wait_for_rewrite()
        bench.say(f"lapse: {n} jobs, many in flight, round {round_}")
        results.keep(f"lapse.loop.{round_}", bench.run("lapse", "fill", n=n))
        server.ask("FLUSHALL")
        server.wait_for_rewrite()
        bench.say(f"lapse: {n} jobs by {THREADS} threads, round {round_}")
        output = bench.run("threads", "threads", n=n, threads=THREADS)
        results.keep(f"lapse.threads.{round_}", output)


# ---- limits: of a queue, by its settings ----
LIMIT_RUNNING, LASTS_MS = 3, 2


def configure(bench, changes):
    command = [bench.build / "lapse", "-u", f"unix://{bench.server.socket}", "configure", "bench"]
    subprocess.run([*command, *changes.split()], stdout=subprocess.DEVNULL, check=True)


def measure_limits(bench):
    bench.start("lapse")
    for round_ in range(1, 4):
        for name, setting in (("rate", "rate=2000/1s"), ("none", "rate=")):
            configure(bench, setting)
            bench.timed(standard(bench, "lapse", f"lapse.limits.{name}.{round_}"))
    configure(bench, f"max_running={LIMIT_RUNNING}")
    max_running(bench)


def max_running(bench):
    """More are due than may run, and each lasts: how soon is the room that one leaves taken?"""
    name, n, run = "lapse.limits.max_running", bench.sizes.singly, bench.next_run()
    t0_ms, end_ms = now_ms() + 2000, now_ms() + 120000
    bench.say(f"{n} jobs of {LASTS_MS} ms, of which {LIMIT_RUNNING} may run; four listeners")
    listeners = [
        bench.listen("lapse", run=run, t0=t0_ms, n=n, until=end_ms, lasts=LASTS_MS)
        for _ in range(4)
    ]
    bench.run("lapse", "burst", run=run, t0=t0_ms, n=n)
    while sum(listener.count_runs() for listener in listeners) < 2 * n and now_ms() < end_ms:
        time.sleep(0.01)
    for listener in listeners:
        listener.kill()
    records = lateness.Records([listener.file for listener in listeners])
    for what, count in lateness.count(records, n).items():
        bench.results.put(f"{name}.{what}", count)
    lateness.measure_gaps(bench.results, name, records, LIMIT_RUNNING)


# ---- firing: what a claim costs Redis at a moment of a series, and of a job that is none ----
def measure_firing(bench):
    server = bench.start("lapse")
    for round_ in range(1, 6):
        bench.say(f"claims of jobs, and of series at a moment, round {round_}")
        output = bench.run("firing", "firing", n=bench.sizes.singly, scripts=bench.build / "lua")
        bench.results.keep(f"lapse.firing.{round_}", output)
        server.ask("FLUSHALL")


# ---- one: jobs scheduled one at a time ----
def measure_one(bench):
    n, results = bench.sizes.singly, bench.results
    port = start_with_port(bench)
    for round_ in range(1, 4):
        for way, at in (("", None), ("_tcp", port)):
            bench.say(f"a PING's round trip, then lapse: one job at a time, round {round_}{way}")
            results.keep(f"native.ping{way}.{round_}", bench.run("native", "ping", n=n, at=at))
            results.keep(f"lapse.one{way}.{round_}", bench.run("lapse", "one", n=n, at=at))
            bench.server.ask("FLUSHALL")
    for system in ("bullmq", "beanstalk", "zset10", "expired"):
        if bench.runs(system):
            bench.start(system)
            bench.say(f"{system}: one job at a time")
            results.keep(f"{system}.one.1", bench.run(system, "one", n=n))


def start_with_port(bench):
    for _ in range(3):
        port = random.randint(20000, 29999)
        try:
            bench.start("lapse", port)
            return port
        except RuntimeError as e:
            error = e  # another program may have the port
    raise error


# ---- network: the listeners are a round trip away from Redis, the producer is beside it ----
def measure_network(bench):
    sizes = bench.sizes

    def far(system, name, rtt_us, **other):
        bench.start(system)
        name = f"{system}.{name}"
        bench.timed(
            standard(bench, system, name, seconds=sizes.slow_s, rtt_us=rtt_us, **other)
        )

    for system in ("lapse", "bullmq", "zset10"):
        for rtt_us in sizes.rtts_us if bench.runs(system) else []:
            far(system, f"network.{rtt_us}", rtt_us, rate=300)
    for rtt_us in filter(None, sizes.rtts_us):
        far("lapse", f"network_fast.{rtt_us}", rtt_us, rate=2000)
    far("lapse", "network_shared.1000", 1000, rate=300, listeners=4, grace_s=1)


# ---- blocked, busy: a program and a machine that have something else to do ----
def measure_blocked(bench):
    """A listener's own program keeps its loop for 50 ms each second."""
    bench.start("lapse")
    bench.timed(
        standard(
            bench, "lapse", "lapse.blocked", seconds=bench.sizes.slow_s,
            options={"block": BLOCKED_MS, "every": BLOCKED_EVERY_MS},
        )
    )


def measure_busy(bench):
    """Two processes that never rest, beside 1,000 jobs a second."""
    for system in ("lapse", "bullmq", "zset10"):
        if bench.runs(system):
            bench.start(system)
            busy = [bench.spawn_words(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
            bench.timed(standard(bench, system, f"{system}.busy", seconds=bench.sizes.slow_s))
            for process in busy:
                process.kill()
                process.communicate()


# ---- queues: one listener of 10,000 queues beside one of a single queue ----
def measure_queues(bench):
    """What it costs to listen to 10,000 queues in which nothing happens is measured by itself."""
    sizes = bench.sizes

    for name, queues in (("one", 1), ("many", sizes.queues)):
        server = bench.start("lapse")
        run = standard(
            bench, "lapse", f"lapse.queues.{name}", seconds=sizes.queues_s, grace_s=10,
            queues=queues, wait_ready=lambda: wait_for_queues(server, queues),
        )
        timed = TimedRun(bench, run)
        timed.start()
        used_us = timed.measure_cpu()
        timed.finish()
        put_cpu(bench.results, run.name, *used_us)

    server = bench.start("lapse")
    bench.say(f"lapse.queues.idle: {sizes.queues} queues in which nothing happens")
    listener = bench.listen("lapse", run=0, n=0, until=now_ms() + 300000, queues=sizes.queues)
    wait_for_queues(server, sizes.queues)
    before = cpu_us(listener.pid), server.cpu_us(), time.monotonic_ns() // 1000
    time.sleep(sizes.queues_s)
    after = cpu_us(listener.pid), server.cpu_us(), time.monotonic_ns() // 1000
    put_cpu(bench.results, "lapse.queues.idle", *(b - a for a, b in zip(before, after)))
    listener.kill()


def put_cpu(results, name, listener_us, server_us, took_us):
    results.put(f"{name}.listener_us", listener_us)
    results.put(f"{name}.server_us", server_us)
    results.put(f"{name}.took_us", took_us)


def wait_for_queues(server, queues):
    """Until there is a listener in the last of them, and what it does at its start is over."""
    server.wait_for_listeners(1, queue="bench" if queues == 1 else f"bench-{queues - 1:05}")
    time.sleep(SETTLED_S)


# ---- crowd: many listeners of one queue in which nothing happens ----
CROWD, KNOWN_S = 200, 12  # by then each has heard of all others


def measure_crowd(bench):
    """All scripts that run meanwhile are heartbeats."""
    seconds, server = bench.sizes.queues_s, bench.start("lapse")
    bench.say(f"lapse: {CROWD} listeners of a queue in which nothing happens")
    until = now_ms() + 300000
    listeners = [bench.listen("lapse", run=0, n=0, until=until) for _ in range(CROWD)]
    server.wait_for_listeners(CROWD)
    time.sleep(KNOWN_S)

    calls, us = server.scripts()
    start_s = time.monotonic()
    time.sleep(seconds)
    took_s = time.monotonic() - start_s
    calls, us = (after - before for after, before in zip(server.scripts(), (calls, us)))
    for listener in listeners:
        listener.kill()
    bench.results.put("lapse.crowd.n", CROWD)
    bench.results.put("lapse.crowd.heartbeats_s", calls / took_s)
    bench.results.put("lapse.crowd.us", us / calls)
    bench.results.put("lapse.crowd.percent", us / took_s / 1e4)


# ---- promises: what must hold whatever breaks ----
def measure_no_alarm(bench):
    """Redis's own expiry and the sweep alone."""
    bench.start("lapse")
    options = {"o.flags": "no_alarm", "o.sweep_ms": 5000}
    bench.timed(
        standard(
            bench, "lapse", "lapse.no_alarm", seconds=10, grace_s=10, lead_ms=1000, jitter_ms=0,
            options=options,
        )
    )


def measure_scatter(bench):
    """Delays of 0 to 5 s, as fast as they can be stored, and two listeners."""
    n, most_ms, results = 100000, 5000, bench.results
    server = bench.start("lapse")
    run = bench.next_run()
    until = now_ms() + 120000
    bench.say(f"lapse: {n} jobs with delays of 0 to {most_ms} ms, 2 listeners")
    listeners = [bench.listen("lapse", run=run, n=n, until=until) for _ in range(2)]
    server.wait_for_listeners(2)
    bench.run("lapse", "scatter", run=run, n=n, most_ms=most_ms)
    while sum(runs := [listener.count_runs() for listener in listeners]) < n and now_ms() < until:
        time.sleep(0.01)
    for listener in listeners:
        listener.kill()

    records = lateness.Records([listener.file for listener in listeners])
    lateness.measure(results, "lapse.scatter", records, 0, 0, n, now_ms())
    for nth, n_runs in enumerate(runs, 1):
        results.put(f"lapse.scatter.runs_{nth}", n_runs)


def measure_killed(bench):
    """A listener that holds 50 jobs is killed, at any moment between two renewals of its leases:
    another one runs them within lease_ms + sweep_ms."""
    n, lease_ms, sweep_ms, rounds = 50, 1000, 500, 5
    options = {"o.lease_ms": lease_ms, "o.sweep_ms": sweep_ms}
    took = []
    for round_ in range(1, rounds + 1):
        bench.say(f"lapse: a listener that holds {n} jobs is killed, round {round_}")
        server = bench.start("lapse")
        run = bench.next_run()
        until = now_ms() + 60000
        holder = bench.listen("lapse", run=run, n=n, until=until, hold=1, **options)
        server.wait_for_listeners(1)
        bench.run("lapse", "burst", run=run, t0=0, n=n)
        held = holder.wait_for_runs(n, 30)
        other = bench.listen("lapse", run=run, n=n, until=until, **options)
        server.wait_for_listeners(2)
        time.sleep(random.random() * lease_ms / 1000)
        holder.kill()

        killed_ms = now_ms()
        again = other.wait_for_runs(n, 30)
        took.append(now_ms() - killed_ms)
        other.kill()
        records = lateness.Records([holder.file, other.file])
        counts = lateness.count(records, n, most_runs=2)
        counts["lost"] = max(2 * n - held - again, 0)
        put_counts(bench.results, "lapse.killed", round_, counts)
    bench.results.put("lapse.killed.n", n * rounds)
    bench.results.put("lapse.killed.worst_ms", max(took))


def measure_restarted(bench):
    """Redis is killed, 1,000 jobs fall due, it comes back with its append-only file."""
    n, lead_ms, down_ms, rounds = 1000, 1000, 2500, 5
    took = []
    for round_ in range(1, rounds + 1):
        bench.say(f"lapse: Redis is killed, {n} jobs fall due, it comes back, round {round_}")
        server = bench.start("lapse")
        run = bench.next_run()
        listener = bench.listen("lapse", run=run, n=n, until=now_ms() + 60000)
        server.wait_for_listeners(1)
        bench.run("lapse", "burst", run=run, t0=now_ms() + lead_ms, step=1, n=n)
        server.wait_for_fsync()
        server.kill()
        time.sleep(down_ms / 1000)
        server.start()

        back_ms = now_ms()
        listener.wait_for_runs(n, 30)
        took.append(now_ms() - back_ms)
        listener.end()
        put_counts(bench.results, "lapse.restarted", round_, lateness.count(listener.records(), n))
    bench.results.put("lapse.restarted.n", n * rounds)
    bench.results.put("lapse.restarted.worst_ms", max(took))


def measure_resumed(bench):
    """A listener that holds many jobs loses its connection, and with it the answer to a claim: it
    goes through all that Redis believes it holds, and runs what it has never seen."""
    n, n_unseen, rounds, lease_ms = 90000, 20, 3, 120000
    took = []
    for round_ in range(1, rounds + 1):
        bench.say(f"lapse: a listener that holds {n} jobs connects again, round {round_}")
        server = bench.start("lapse")
        run = bench.next_run()
        listener = bench.listen(
            "lapse", run=run, n=n + n_unseen, until=now_ms() + 120000, hold=1,
            **{"o.max_running": n + n_unseen, "o.lease_ms": lease_ms},
        )
        server.wait_for_listeners(1)
        bench.run("lapse", "burst", run=run, t0=0, n=n)
        listener.wait_for_runs(n, 60)

        listener.signal(signal.SIGSTOP)
        bench.run("lapse", "burst", run=run, t0=0, n=n_unseen, **{"from": n})
        claim(bench, server.names_of_listeners()[0], lease_ms, n_unseen)
        server.ask("CLIENT", "KILL", "TYPE", "normal")
        listener.signal(signal.SIGCONT)

        back_ms = now_ms()
        listener.wait_for_runs(n + n_unseen, 60)
        took.append(now_ms() - back_ms)
        listener.kill()
        counts = lateness.count(listener.records(), n + n_unseen)
        put_counts(bench.results, "lapse.resumed", round_, counts)
    bench.results.put("lapse.resumed.n", n)
    bench.results.put("lapse.resumed.worst_ms", max(took))


def claim(bench, holder, lease_ms, n):
    script = (bench.folder / "lua" / "claim.lua").read_text()
    keys = ["lapse:{bench}:due", "lapse:{bench}:none"]
    bench.server.ask("EVAL", script, len(keys), *keys, 0, holder, lease_ms, n)


def put_counts(results, name, round_, counts):
    for what, count in counts.items():
        results.put(f"{name}.{round_}.{what}", count)


MEASURES = {
    "late": measure_late,
    "big": measure_big,
    "burst": measure_burst,
    "listeners": measure_listeners,
    "stopped": measure_stopped,
    "forward": measure_forward,
    "schedule": measure_schedule,
    "threads": measure_threads,
    "limits": measure_limits,
    "firing": measure_firing,
    "one": measure_one,
    "network": measure_network,
    "blocked": measure_blocked,
    "busy": measure_busy,
    "queues": measure_queues,
    "crowd": measure_crowd,
    "no_alarm": measure_no_alarm,
    "scatter": measure_scatter,
    "killed": measure_killed,
    "restarted": measure_restarted,
    "resumed": measure_resumed,
}
AT_REQUEST = {"big"}  # 5 GB of memory, and minutes
BESIDE_PEERS = {"late", "burst", "schedule", "one", "network", "busy"}
