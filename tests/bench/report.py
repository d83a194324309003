# SPDX-License-Identifier: MIT
"""The results as a Markdown table. Its goals are those of the full sizes; whether one is reached is
said for the sizes of this run. All but the aims are promises: a run that breaks one fails.

report.py RESULTS prints the table of the results of an earlier run."""

import json
import sys

from results import Results
from sizes import BIG_WAITING, THREADS

PEERS = {
    "bullmq": "BullMQ",
    "beanstalk": "beanstalkd (whole seconds)",
    "zset10": "ZSET polled, 10 ms",
    "zset1000": "ZSET polled, 1 s",
    "expired": "`expired` events",
}
LATENESS = ("p50_ms", "p99_ms", "max_ms")
PUNCTUAL_MS = (0.25, 1, 20)  # the promise, each of LATENESS
# On a network: the p50 of claims, by the us of a round trip; of starts, beyond half of it.
CLAIMED_FAR_MS = {0: 0.12, 200: 0.2, 1000: 0.3, 5000: 0.5}
STARTED_MORE_MS = 0.3


def grouped(value):
    return f"{value:,.0f}"


def digits(value):
    if value >= 1000:
        return grouped(value)
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(a, b):
    return digits(a / b) + " times" if b > 0 else "-"


def middle(values):
    return sorted(values)[(len(values) - 1) // 2] if values else 0


def number_of(text):
    return int(text.replace(",", ""))


class Report:
    def __init__(self, results, not_run=()):
        self.results = results
        self.not_run = dict(not_run)
        self.rows = []
        self.broken = []  # promises, as the rows say them

    def is_quick(self):
        return bool(self.results.number("machine.quick"))

    # ---- cells ----
    def show(self, name):
        if not self.results.has(name):
            return "-"
        bound = ">" if self.results.is_bound(name) else ""
        return bound + digits(self.results.number(name))

    def count(self, name):
        return grouped(self.results.number(name)) if self.results.has(name) else "-"

    def us_as_ms(self, name):
        return digits(self.results.number(name) / 1000) if self.results.has(name) else ""

    def script_ms(self, name):
        is_short = self.results.has(name) and self.results.number(name) == 0
        return "< 0.1" if is_short else self.us_as_ms(name)

    def late(self, run, claimed=""):
        if not self.results.has(f"{run}.{claimed}p50_ms"):
            return "-"
        return " / ".join(self.show(f"{run}.{claimed}{part}") for part in LATENESS)

    def over(self, name, base, what=""):
        """By how much a figure is greater than another one."""
        if not self.results.has(name, base):
            return ""
        text = times(self.results.number(name), self.results.number(base))
        return f"{text} {what}" if what else text

    def peer_cells(self, cell):
        return {peer: cell(peer) for peer in PEERS}

    # ---- rows ----
    def row(self, measure, lapse, goal="", reached=None, better="", peers=None, aim=False):
        """reached: of the goal; None: there is none."""
        cells = peers or {}
        cells = {peer: cells.get(peer, "") for peer in PEERS}
        cells.update({peer: "not run" for peer in self.not_run if cells.get(peer)})
        verdict = {None: "", True: "yes", False: "no" if aim else "**no**"}[reached]
        self.rows.append([measure, goal, lapse, verdict, better, *cells.values()])
        if reached is False and not aim:
            self.broken.append(f"{measure}: {lapse}, promised: {goal}")

    def punctual(self, run, claimed=""):
        figures = [self.results.number(f"{run}.{claimed}{part}") for part in LATENESS]
        on_time = all(figure <= most for figure, most in zip(figures, PUNCTUAL_MS))
        return on_time and self.results.number(f"{run}.early") == 0

    def within(self, run, p99_ms):
        return self.results.number(f"{run}.p99_ms") <= p99_ms

    # ---- late ----
    def lateness(self):
        waiting = [number_of(w) for w in self.results.text("plan.waiting").split()]
        punctual = "<= 0.25 / 1 / 20"
        shown = []
        for n in waiting:
            measure, run, is_last = f"waiting.{n}", f"lapse.waiting.{n}", n == waiting[-1]
            if not self.results.has(f"{run}.p50_ms"):
                continue
            shown.append(self.results.number(f"{run}.p50_ms"))
            better = [
                self.over(f"bullmq.{measure}.p50_ms", f"{run}.p50_ms", "BullMQ's p50"),
                self.over(f"zset10.{measure}.p99_ms", f"{run}.p99_ms", "the 10 ms poller's p99"),
            ]
            self.row(
                f"1,000/s, {grouped(n)} waiting",
                self.late(run),
                goal=punctual if is_last else "",
                reached=self.punctual(run) if is_last else None,
                better=", ".join(filter(None, better)),
                peers=self.peer_cells(lambda peer, measure=measure: self.late(f"{peer}.{measure}")),
            )
        if not shown:
            return
        self.lateness_at_most(waiting[-1], punctual)
        self.row(
            "p50: highest over lowest of these",
            times(max(shown), min(shown)),
            goal="<= 1.5 times",
            reached=max(shown) <= 1.5 * min(shown),
        )

    def big(self):
        big, few = f"lapse.waiting.{BIG_WAITING}", "lapse.waiting.few"
        if not self.results.has(f"{big}.p50_ms"):
            return
        p50s_ms = [self.results.number(f"{run}.p50_ms") for run in (big, few)]
        n_few = self.results.text("plan.waiting").split()[0]
        self.row(
            f"1,000/s, {grouped(BIG_WAITING)} waiting, and {n_few} right after it",
            f"{self.late(big)}, {self.late(few)}; " + times(*p50s_ms),
            goal="p50 <= 1.3 times",
            reached=p50s_ms[0] <= 1.3 * p50s_ms[1],
        )

    def lateness_at_most(self, n, punctual):
        run = f"lapse.waiting.{n}"
        self.row(
            "the same, claimed (Redis's clock)",
            self.late(run, "claimed_"),
            goal=punctual,
            reached=self.punctual(run, "claimed_"),
        )
        if self.results.has("lapse.program.json"):
            program = json.loads(self.results.text("lapse.program.json"))
            figures = [program[f"rate_claimed_late_{part}"] for part in LATENESS]
            late = " / ".join(f"{figure:.2f}" for figure in figures)
            self.row("the same, claimed, as `lapse bench` has it", late)
        self.better_than_peers(f"waiting.{n}", "p50 better than BullMQ's", aim=True)

        ahead = f"ahead.{n}"
        if not self.results.has(f"lapse.{ahead}.p50_ms"):
            return
        self.row(
            f"1,000/s, {grouped(n)} waiting, all scheduled before the first is due",
            self.late(f"lapse.{ahead}"),
            goal=punctual,
            reached=self.punctual(f"lapse.{ahead}"),
            peers={"bullmq": self.late(f"bullmq.{ahead}")},
        )
        self.better_than_peers(ahead, "that p50 better than BullMQ's")

    def better_than_peers(self, measure, what, aim=False):
        results, lapse = self.results, f"lapse.{measure}"
        bull, poller = f"bullmq.{measure}.p50_ms", f"zset10.{measure}.p99_ms"
        if results.has(bull):
            self.row(
                what,
                self.over(bull, f"{lapse}.p50_ms"),
                goal=">= 100 times",
                reached=results.number(bull) >= 100 * results.number(f"{lapse}.p50_ms"),
                aim=aim,
            )
        if results.has(poller):
            self.row(
                "p99 better than the 10 ms poller's",
                self.over(poller, f"{lapse}.p99_ms"),
                goal=">= 10 times",
                reached=results.number(poller) >= 10 * results.number(f"{lapse}.p99_ms"),
            )

    def fast(self, rate, p99_ms):
        run = f"lapse.fast.{rate}"
        if not self.results.has(f"{run}.p99_ms"):
            return
        waiting = self.count("plan.most")
        self.row(
            f"{grouped(rate)}/s, {waiting} waiting, {self.count(f'{run}.n')} jobs",
            f"{self.late(run)}; put at {self.count(f'{run}.reached_s')}/s",
            goal=f"p99 <= {p99_ms}",
            reached=self.within(run, p99_ms),
        )

    # ---- burst ----
    def burst(self):
        results = self.results
        if not results.has("lapse.burst.drain_s"):
            return
        what = f"{self.count('plan.burst')} due in one ms: "
        drain, script, ping = "burst.drain_s", "burst.script_us", "burst.ping.max_us"
        on_redis = ("bullmq", "zset10")
        self.row(
            what + "jobs/s until all are settled",
            self.count(f"lapse.{drain}"),
            goal=">= 40,000",
            reached=results.number(f"lapse.{drain}") >= 40000,
            better=self.over(f"lapse.{drain}", f"bullmq.{drain}", "BullMQ's"),
            peers={p: self.count(f"{p}.{drain}") for p in ("bullmq", "beanstalk", "zset10")},
        )
        self.row(
            what + "longest script, ms",
            self.script_ms(f"lapse.{script}"),
            goal="<= 5",
            reached=results.number(f"lapse.{script}") <= 5000,
            peers={peer: self.script_ms(f"{peer}.{script}") for peer in on_redis},
        )
        self.row(
            what + "another client's longest PING, ms",
            self.us_as_ms(f"lapse.{ping}"),
            goal="<= 50",
            reached=results.number(f"lapse.{ping}") <= 50000,
            peers={peer: self.us_as_ms(f"{peer}.{ping}") for peer in on_redis},
        )

    # ---- listeners, stopped ----
    def listeners(self, n, measure, delay=""):
        results, run, one = self.results, f"lapse.{measure}.{n}", f"lapse.{measure}.1"
        if not results.has(f"{run}.p99_ms"):
            return
        what = f"{n} listener{'s' if n > 1 else ''}{delay}: "
        cpu = results.number(f"{run}.server_us_job")
        cpu_one = results.number(f"{one}.server_us_job")
        claims, touches = results.number(f"{run}.claim"), results.number(f"{run}.touch")
        is_four = n == 4
        self.row(
            what + "lateness",
            self.late(run),
            goal="p99 <= 3" if is_four else "",
            reached=self.within(run, 3) if is_four else None,
        )
        self.row(
            what + "claims, touch scripts a job",
            f"{self.show(f'{run}.claim')}, {self.show(f'{run}.touch')}",
            goal="<= 1.1, <= 1.2" if n > 1 else "",
            reached=0 < claims <= 1.1 and touches <= 1.2 if n > 1 else None,
        )
        self.row(
            what + "server CPU a job, us",
            digits(cpu) + (f", {times(cpu, cpu_one)} one's" if n > 1 else ""),
            goal="<= 1.5 times one's" if is_four else "",
            reached=cpu <= 1.5 * cpu_one if is_four else None,
        )

    def stopped(self, nth):
        results, run = self.results, f"lapse.stopped.{nth}"
        if not results.has(f"{run}.p99_ms"):
            return
        lost, twice = results.number(f"{run}.lost"), results.number(f"{run}.twice")
        self.row(
            f"4 listeners, that of rank {nth - 1} stopped meanwhile; lost, twice",
            f"{self.late(run)}; {lost}, {twice}",
            goal="p99 <= 80; 0, 0",
            reached=self.within(run, 80) and lost == 0 and twice == 0,
        )

    # ---- forward ----
    def forward(self, target, command):
        results, run = self.results, f"lapse.forward.{target}"
        if not results.has(f"{run}.p99_ms"):
            return
        self.row(
            f"1,000/s forwarded to a {target}, read by another process in {command}",
            f"{self.late(run)}; "
            + self.over(f"{run}.p50_ms", "lapse.forward.handler.p50_ms", "a handler's p50"),
            goal="<= 1 / 5",
            reached=results.number(f"{run}.p50_ms") <= 1 and self.within(run, 5),
        )

    # ---- schedule, threads, firing, one ----
    def middle_round(self, measure, figure):
        """The middle of the rounds, kept as a figure of its own."""
        rounds = self.results.rounds(measure, figure)
        if rounds:
            self.results.put(f"{measure}.{figure}", middle(rounds))

    def share(self, measure, base, figure):
        """The middle of the rounds' quotients: what is compared ran side by side."""
        pairs = zip(self.results.rounds(measure, figure), self.results.rounds(base, figure))
        return middle([a / b for a, b in pairs])

    def schedule(self):
        results, figure = self.results, "schedule.jobs_s"
        for system in ("lapse", "native", *PEERS):
            self.middle_round(f"{system}.schedule", "jobs_s")
        if not results.has(f"lapse.{figure}"):
            return
        self.row(
            f"schedule {self.count('plan.bulk')} jobs, many in flight, jobs/s",
            self.count(f"lapse.{figure}"),
            better=self.over(f"lapse.{figure}", f"bullmq.{figure}", "BullMQ's"),
            peers=self.peer_cells(
                lambda p: self.count(f"{p}.{figure}") if p != "zset1000" else ""
            ),
        )
        share = self.share("lapse.schedule", "native.schedule", "jobs_s")
        self.row(
            f"the same over ZADD+HSET+SET pipelined ({self.count(f'native.{figure}')}/s)",
            digits(share) + " times",
            goal=">= 0.8",
            reached=share >= 0.8,
        )
        if results.has(f"bullmq.{figure}"):
            ours, theirs = results.number(f"lapse.{figure}"), results.number(f"bullmq.{figure}")
            self.row(
                "the same over BullMQ's addBulk",
                times(ours, theirs),
                goal=">= 5 times",
                reached=ours >= 5 * theirs,
            )

    def threads(self):
        for measure in ("lapse.threads", "lapse.loop"):
            self.middle_round(measure, "jobs_s")
        if not self.results.has("lapse.threads.jobs_s"):
            return
        share = self.share("lapse.threads", "lapse.loop", "jobs_s")
        self.row(
            f"{THREADS} threads schedule over one connection, each waits for its answer, jobs/s",
            f"{self.count('lapse.threads.jobs_s')}; {digits(share)} times one loop's with many "
            "in flight",
            goal=">= 40,000",
            reached=self.results.number("lapse.threads.jobs_s") >= 40000,
        )

    def firing(self):
        for figure in ("claim_us", "firing_us"):
            self.middle_round("lapse.firing", figure)
        if not self.results.has("lapse.firing.firing_us"):
            return
        rounds = [self.results.rounds("lapse.firing", f) for f in ("firing_us", "claim_us")]
        share = middle([firing / claim for firing, claim in zip(*rounds)])
        self.row(
            "us of Redis for a claim at a moment of a series, and of a job that is none",
            f"{self.show('lapse.firing.firing_us')}, {self.show('lapse.firing.claim_us')}: "
            f"{digits(share)} times",
            goal="<= 1.6 times",
            reached=share <= 1.6,
            aim=True,
        )

    def limits(self):
        results, none, rate = self.results, "lapse.limits.none", "lapse.limits.rate"
        for part in LATENESS:
            self.middle_round(none, part)
            self.middle_round(rate, part)
        if results.has(f"{rate}.p99_ms"):
            self.row(
                "1,000/s where the queue has a rate limit of 2,000/s, and where it has none",
                f"{self.late(rate)}, and {self.late(none)}",
                goal="p99 <= 1.2 times",
                reached=results.number(f"{rate}.p99_ms") <= 1.2 * results.number(f"{none}.p99_ms"),
                aim=True,
            )
        gap = "lapse.limits.max_running"
        if results.has(f"{gap}.p50_ms"):
            self.row(
                f"3 of {self.count(f'{gap}.n')} due jobs may run, of 2 ms each, four listeners: "
                "from an end to the next start",
                self.late(gap),
                goal="p50 <= 1",
                reached=results.number(f"{gap}.p50_ms") <= 1,
                aim=True,
            )

    def one(self):
        results, figure = self.results, "one.p50_us"
        for system in ("lapse", *PEERS):
            self.middle_round(f"{system}.one", "p50_us")
        for measure in ("lapse.one_tcp", "native.ping", "native.ping_tcp"):
            self.middle_round(measure, "p50_us")
        if not results.has(f"lapse.{figure}"):
            return
        self.row(
            "schedule one at a time, p50 us",
            self.show(f"lapse.{figure}"),
            better=self.over(f"bullmq.{figure}", f"lapse.{figure}", "BullMQ's"),
            peers=self.peer_cells(lambda p: self.show(f"{p}.{figure}") if p != "zset1000" else ""),
        )
        for way, text in (("", "the same over a PING's round trip ({} us)"),
                          ("_tcp", "the same by TCP (PING {} us)")):
            share = self.share(f"lapse.one{way}", f"native.ping{way}", "p50_us")
            ours = self.show(f"lapse.one{way}.p50_us") + "; " if way else ""
            self.row(
                text.format(self.show(f"native.ping{way}.p50_us")),
                f"{ours}{digits(share)} times",
                goal="<= 2 times",
                reached=share <= 2,
            )

    # ---- costs ----
    def bytes(self):
        results = self.results
        if not results.has("lapse.bytes"):
            return
        self.row(
            f"bytes a waiting job, {self.count('plan.most')} waiting",
            self.count("lapse.bytes"),
            goal="<= 450",
            reached=results.number("lapse.bytes") <= 450,
            aim=self.is_quick(),  # tables that are just grown weigh more on a few jobs
            better=self.over("bullmq.bytes", "lapse.bytes", "BullMQ's"),
            peers=self.peer_cells(lambda peer: self.count(f"{peer}.bytes")),
        )
        if results.has("lapse.bytes_ahead"):
            self.row(
                "the same with arm_ahead_ms",
                self.count("lapse.bytes_ahead"),
                goal="<= 335",
                reached=results.number("lapse.bytes_ahead") <= 335,
                aim=self.is_quick(),
            )

    def idle_of(self, system):
        results, idle = self.results, f"{system}.idle"
        if not results.has(f"{idle}.cpu"):
            return "-"
        commands = "0"
        if system != "beanstalk":
            commands = f"{self.show(f'{idle}.sent_s')} ({self.show(f'{idle}.commands_s')})"
        cpu = results.number(f"{idle}.cpu"), results.number(f"{idle}.server_cpu")
        return "{}, {:.2f}, {:.2f}".format(commands, *cpu)

    def idle(self):
        results = self.results
        if not results.has("lapse.idle.cpu"):
            return
        self.row(
            f"idle, {self.count('plan.idle_at')} waiting: commands/s (with those in scripts), "
            "listener, server CPU %",
            self.idle_of("lapse"),
            goal="<= 2, <= 0.2",
            reached=results.number("lapse.idle.sent_s") <= 2
            and results.number("lapse.idle.cpu") <= 0.2,
            peers=self.peer_cells(self.idle_of),
        )

    def listener(self):
        results, run = self.results, "lapse.fast.10000"
        if not results.has(f"{run}.rss_kib"):
            return
        early, last = results.number(f"{run}.rss_early_kib"), results.number(f"{run}.rss_kib")
        self.row(
            f"listener, {self.count(f'{run}.n')} jobs at 10,000/s: "
            "RSS after a tenth, at the end, KiB",
            f"{grouped(early)}, {grouped(last)}",
            goal="flat",
            reached=last <= early + 1024,
        )
        self.row(
            "the same: allocations a job by lapse; beside them hiredis's and libev's",
            f"{self.show(f'{run}.mem_allocs_job')}; {self.show(f'{run}.other_allocs_job')}",
            goal="<= 2",
            reached=results.number(f"{run}.mem_allocs_job") <= 2,
        )
        self.row(
            "the same: CPU a job, us",
            self.show(f"{run}.cpu_us_job"),
            goal="<= 12",
            reached=results.number(f"{run}.cpu_us_job") <= 12,
        )
        measure = f"waiting.{results.text('plan.most')}"
        for text, part in (
            ("listener CPU a job at 1,000/s, us", "cpu_us_job"),
            ("server CPU a job at 1,000/s, us, from schedule to settle", "server_us_job"),
        ):
            figure = f"{measure}.{part}"
            self.row(
                text,
                self.show(f"lapse.{figure}"),
                better=self.over(f"bullmq.{figure}", f"lapse.{figure}", "BullMQ's"),
                peers=self.peer_cells(lambda p, figure=figure: self.show(f"{p}.{figure}")),
            )

    # ---- network, blocked, busy ----
    def network(self):
        for rtt_us in map(int, self.results.text("plan.rtts_us").split()):
            where = f"a round trip of {rtt_us / 1000:g} ms away" if rtt_us else "beside Redis"
            half_ms = rtt_us / 2000
            run = f"lapse.network.{rtt_us}"
            if not self.results.has(f"{run}.p50_ms"):
                continue
            self.row_of_p50(
                f"300/s, the listener {where}",
                run,
                half_ms + STARTED_MORE_MS,
                peers=self.peer_cells(
                    lambda peer, rtt_us=rtt_us: self.late(f"{peer}.network.{rtt_us}")
                ),
            )
            self.row_of_p50("the same, claimed (Redis's clock)", run, CLAIMED_FAR_MS[rtt_us],
                            claimed="claimed_")
            self.row_of_p50("the same at 2,000/s", f"lapse.network_fast.{rtt_us}",
                            half_ms + 2 * STARTED_MORE_MS)
        shared = "lapse.network_shared.1000"
        if self.results.has(f"{shared}.p50_ms"):
            on_time = self.results.number(f"{shared}.p50_ms") <= 1.3 and self.within(shared, 3)
            self.row("300/s, 4 listeners 1 ms away", self.late(shared), goal="<= 1.3 / 3",
                     reached=on_time, aim=True)

    def row_of_p50(self, measure, run, most_ms, claimed="", peers=None):
        if self.results.has(f"{run}.{claimed}p50_ms"):
            reached = self.results.number(f"{run}.{claimed}p50_ms") <= most_ms
            self.row(measure, self.late(run, claimed), goal=f"p50 <= {most_ms:g}",
                     reached=reached, peers=peers, aim=True)

    def troubled(self):
        if self.results.has("lapse.blocked.p50_ms"):
            self.row("1,000/s, the program keeps the listener's loop for 50 ms each second",
                     self.late("lapse.blocked"))
        if self.results.has("lapse.busy.p50_ms"):
            self.row(
                "1,000/s beside two processes that never rest",
                self.late("lapse.busy"),
                peers=self.peer_cells(lambda peer: self.late(f"{peer}.busy")),
            )

    # ---- queues ----
    def queues(self):
        results = self.results
        one, many = "lapse.queues.one", "lapse.queues.many"
        if not results.has(f"{one}.p99_ms", f"{many}.p99_ms", "lapse.queues.idle.listener_us"):
            return
        over = f"1,000/s over {self.count('plan.queues')} queues, and in one queue"

        for process, goal in (("listener", "<= 1.5 times"), ("server", "")):
            cpu_many, cpu_idle = self.queues_cpu_us(process)
            cpu_one = results.number(f"{one}.{process}_us") / self.queues_jobs()
            self.row(
                f"{over}: {process} CPU a job, us, less what the idle queues cost",
                f"{digits(cpu_many)} ({digits(cpu_idle)} for the idle queues), {digits(cpu_one)}; "
                + times(cpu_many, cpu_one),
                goal=goal,
                reached=cpu_many <= 1.5 * cpu_one if goal else None,
            )
        self.row(
            f"{over}: lateness",
            f"{self.late(many)}, {self.late(one)}; "
            + self.over(f"{many}.p99_ms", f"{one}.p99_ms", "the p99"),
            goal="<= 1.5 times",
            reached=results.number(f"{many}.p99_ms") <= 1.5 * results.number(f"{one}.p99_ms"),
        )

    def queues_jobs(self):
        return self.results.number("plan.queues_s") * 1000

    def queues_cpu_us(self, process):
        """A job's share of what a process used with many queues, less and of their idle cost."""
        results, many, idle = self.results, "lapse.queues.many", "lapse.queues.idle"
        idle_rate = results.number(f"{idle}.{process}_us") / results.number(f"{idle}.took_us")
        idle_us = idle_rate * results.number(f"{many}.took_us")
        used_us = results.number(f"{many}.{process}_us")
        return (used_us - idle_us) / self.queues_jobs(), idle_us / self.queues_jobs()

    def crowd(self):
        results, crowd = self.results, "lapse.crowd"
        if results.has(f"{crowd}.percent"):
            figures = [self.show(f"{crowd}.{part}") for part in ("heartbeats_s", "us", "percent")]
            self.row(
                f"{self.count(f'{crowd}.n')} listeners of a queue in which nothing happens: "
                "heartbeats/s, us of Redis each, % of its time",
                ", ".join(figures),
                goal="<= 1 %",
                reached=results.number(f"{crowd}.percent") <= 1,
            )

    # ---- promises ----
    def promises(self):
        results = self.results
        if results.has("lapse.no_alarm.max_ms"):
            self.row(
                "1,000/s with `no_alarm`: Redis's own expiry, and a sweep every 5 s",
                self.late("lapse.no_alarm"),
                goal="max <= 5,250",
                reached=results.number("lapse.no_alarm.max_ms") <= 5250,
            )
        if results.has("lapse.scatter.p50_ms"):
            runs = [results.number(f"lapse.scatter.runs_{nth}") for nth in (1, 2)]
            n = self.count("lapse.scatter.n")
            self.row(
                f"{n} jobs with delays of 0 to 5 s, 2 listeners; runs of each",
                "{}; {} and {}".format(self.late("lapse.scatter"), *map(grouped, runs)),
                goal="each job once",
                reached=self.wrongs("lapse.scatter") == [0, 0, 0],
            )
        for measure, what, most_ms in (
            ("killed", "a listener that holds 50 jobs is killed, 5 times: all ran again within, ms",
             1500),
            ("restarted", "Redis is killed, 1,000 jobs fall due, it comes back, 5 times: "
             "all ran within, ms", 1000),
            ("resumed", f"a listener that holds {self.count('lapse.resumed.n')} jobs loses its "
             "connection and the answer to a claim, 3 times: its jobs ran within, ms", 1000),
        ):
            worst = f"lapse.{measure}.worst_ms"
            if results.has(worst):
                self.row(
                    what,
                    self.count(worst),
                    goal=f"<= {grouped(most_ms)}",
                    reached=results.number(worst) <= most_ms,
                )

    def wrongs(self, prefix):
        """Lost, twice, early, of all runs of a name; [] if there was none."""
        names = [name for name in self.results.values if name.startswith(prefix + ".")]
        sums = []
        for what in ("lost", "twice", "early"):
            found = [self.results.number(name) for name in names if name.endswith("." + what)]
            sums += [sum(found)] if found else []
        return sums

    def jobs_wrong(self):
        def cell(system):
            sums = self.wrongs(system)
            return " / ".join(map(grouped, sums)) if sums else "-"

        if self.wrongs("lapse"):
            self.row(
                "jobs lost / twice / early, all runs",
                cell("lapse"),
                goal="0 / 0 / 0",
                reached=self.wrongs("lapse") == [0, 0, 0],
                peers=self.peer_cells(cell),
            )

    # ---- the table ----
    def head(self):
        results, lines = self.results, []
        if self.is_quick():
            lines.append("**QUICK=1: small sizes and short runs, not for quoting.**\n")
        machine = (
            "{date}, {cores} cores ({cpu}), load {load} before and {load_after} after; "
            "Redis {redis}, hz 10, over a Unix socket"
        ).format(**{
            name: results.text(f"machine.{name}")
            for name in ("date", "cores", "cpu", "load", "load_after", "redis")
        })
        if results.has("machine.bullmq"):
            machine += "; BullMQ {} on Node.js {}".format(
                results.text("machine.bullmq"), results.text("machine.node")
            )
        if results.has("machine.beanstalkd"):
            machine += f"; beanstalkd {results.text('machine.beanstalkd')}"
        machine += f"; {results.text('machine.seconds')} s in all."
        return lines + [
            machine,
            "Unless a row says otherwise, times are p50 / p99 / max in ms, of the handler's start "
            "after the due moment,",
            "and there are one listener and one producer, each a process. Bodies have 100 bytes, "
            "ids 20.\n",
        ]

    def table(self):
        self.lateness()
        self.big()
        self.fast(5000, 3)
        self.fast(10000, 10)
        self.burst()
        for measure, delay in (("listeners", ""), ("listeners_now", ", delay 0")):
            for n in (1, 4, 16):
                self.listeners(n, measure, delay)
        for nth in (1, 3):
            self.stopped(nth)
        for target, command in (("stream", "XREADGROUP"), ("list", "BLMOVE")):
            self.forward(target, command)
        self.schedule()
        self.threads()
        self.limits()
        self.firing()
        self.one()
        self.bytes()
        self.idle()
        self.listener()
        self.network()
        self.troubled()
        self.queues()
        self.crowd()
        self.promises()
        self.jobs_wrong()

        columns = ["measure", "goal", "lapse", "reached", "better by", *PEERS.values()]
        rows = [columns, ["---"] * len(columns), *self.rows]
        lines = self.head() + ["| " + " | ".join(row) + " |" for row in rows]
        lines.append(
            "\nLost: had not come when the run was given up (`expired` events: "
            f"{self.results.text('plan.hopeless_s')} s after the last was due); "
            "a time with > is longer than that."
        )
        lines += [f"\nNot run: {system}: {reason}." for system, reason in self.not_run.items()]
        return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(Report(Results(sys.argv[1])).table())
