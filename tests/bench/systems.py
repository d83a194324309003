# SPDX-License-Identifier: MIT
"""The systems that are measured, their servers, and the processes of a run. Every process dies with
the run, however that ends."""

import pathlib
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
START_S = 5
LISTENERS_S = 60
REHASH_STEPS = 100000  # a script of some 50 ms


def now_ms():
    return time.time_ns() // 1000000


def sleep_until_ms(at_ms):
    time.sleep(max(at_ms - now_ms(), 0) / 1000)


def spawn(command, **options):
    words = ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)]
    return subprocess.Popen(words, **options)


def cpu_us(pid):
    """Used so far, by all threads of a process."""
    used_ns = 0
    for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            used_ns += int(stat.read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread that ended meanwhile
    return used_ns // 1000


class Server:
    """Base of both kinds. Its files lie in a folder that is emptied when it is stopped."""

    def __init__(self, folder):
        self.folder = folder
        self.data = folder / "data"
        self.socket = folder / "socket"
        self.log = folder / "log"
        self.process = None

    def start(self):
        self.data.mkdir(exist_ok=True)
        with open(self.log, "ab") as log:
            self.process = spawn(self.command(), stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while not self.is_up():
            if time.monotonic() > deadline or self.process.poll() is not None:
                tail = self.log.read_text(errors="replace")[-500:]
                self.stop()
                raise RuntimeError(f"the server did not start: {tail}")
            time.sleep(0.005)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self):
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)
        self.socket.unlink(missing_ok=True)

    def cpu_us(self):
        return cpu_us(self.process.pid)


class Redis(Server):
    def __init__(self, folder, port=0):
        super().__init__(folder)
        self.port = port

    def command(self):
        return [
            "redis-server", ROOT / "redis.conf", "--port", self.port,
            "--unixsocket", self.socket, "--unixsocketperm", "700", "--dir", self.data,
            "--daemonize", "no", "--slowlog-max-len", "1000",
        ]

    def is_up(self):
        return self.socket.exists() and self.ask("PING") == "PONG"

    def ask(self, *words):
        command = ["redis-cli", "-s", self.socket, "--raw", *words]
        answer = subprocess.run(list(map(str, command)), capture_output=True, check=False)
        return answer.stdout.decode(errors="replace").rstrip("\n")

    def info(self, section):
        lines = self.ask("INFO", section).splitlines()
        return dict(line.strip().split(":", 1) for line in lines if ":" in line)

    def memory(self):
        return int(self.info("memory")["used_memory"])

    def wait_for_rewrite(self):
        """A log of writes that is rewritten is work of the fill before, not of what comes next."""
        while True:
            info = self.info("persistence")
            if info["aof_rewrite_in_progress"] == info["aof_rewrite_scheduled"] == "0":
                return
            time.sleep(0.1)

    def scripts(self):
        """How many have run by their SHA, and the us that they took."""
        stats = self.info("commandstats")["cmdstat_evalsha"]
        fields = dict(field.split("=") for field in stats.split(","))
        return int(fields["calls"]), int(fields["usec"])

    def finish_rehash(self, n, queue="bench"):
        """Redis doubles a table by moving a bucket of it with each command on it: those of n jobs
        are work of the fill before, too."""
        move = (
            "for i = 1, ARGV[1] do redis.call('EXISTS', KEYS[1] .. ':none')"
            " redis.call('ZSCORE', KEYS[1] .. ':due', '') redis.call('HEXISTS', KEYS[1] .. ':jobs', '')"
            " end"
        )
        for _ in range(n // REHASH_STEPS + 1):
            self.ask("EVAL", move, 1, f"lapse:{{{queue}}}", REHASH_STEPS)

    def wait_for_fsync(self):
        """While an fsync is under way Redis answers before it writes: a kill then loses jobs."""
        while True:
            info = self.info("persistence")
            if info["aof_buffer_length"] == info["aof_pending_bio_fsync"] == "0":
                return
            time.sleep(0.001)

    def names_of_listeners(self, queue="bench"):
        return self.ask("ZRANGE", f"lapse:{{{queue}}}:listeners", 0, -1).splitlines()

    def wait_for_listeners(self, n, queue="bench"):
        deadline = time.monotonic() + LISTENERS_S
        while self.ask("ZCARD", f"lapse:{{{queue}}}:listeners") != str(n):
            if time.monotonic() > deadline:
                raise RuntimeError(f"there are not {n} listeners of queue {queue}")
            time.sleep(0.005)


class Beanstalkd(Server):
    def command(self):
        # its log of writes is synced once a second, as redis.conf has it for the others
        return ["beanstalkd", "-l", f"unix:{self.socket}", "-b", self.data, "-f", "1000"]

    def is_up(self):
        return self.socket.is_socket()

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def wait_for_rewrite(self):
        pass


class System:
    """One thing that can run jobs at their time: a program that knows the verbs of bench.c."""

    def __init__(self, name, command, server=Redis, listen=(), start_ms=300):
        self.name = name
        self.command = command
        self.server = server
        self.listen = list(listen)  # arguments of the verb besides
        self.start_ms = start_ms  # what its programs need to start

    def words(self, verb, **arguments):
        extra = self.listen if verb == "listen" else []
        return [*self.command, verb, *extra, *(f"{k}={v}" for k, v in arguments.items())]


def systems(out):
    node = ["node", HERE / "bull.cjs"]
    known = [
        System("lapse", [out / "lapse"]),
        System("native", [out / "native"]),
        System("zset10", [out / "zset"], listen=["every=10"]),
        System("zset1000", [out / "zset"], listen=["every=1000"]),
        System("expired", [out / "expired"]),
        System("stream", [out / "reader"], listen=["reads=stream"]),
        System("list", [out / "reader"], listen=["reads=list"]),
        System("threads", [out / "threads"]),
        System("firing", [out / "firing"]),
        System("beanstalk", [out / "beanstalk"], server=Beanstalkd),
        System("bullmq", node, start_ms=1200),
    ]
    return {system.name: system for system in known}
