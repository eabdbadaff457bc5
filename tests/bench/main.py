"""The benchmark behind scripts/bench, run from the root of the repository. `scripts/bench --help` says what it does."""

import argparse
import datetime
import fcntl
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
import time

import abuse
import growth
import piles
import postgres
import processes
import report
import seed
import store
from client import ERRORS
from limits import Limits
from service import Service, read_peer
from workloads import Measurement

USERS, USERS_OF_CHECK = 100_000, 1000
GROWTH_USERS, MANY_FILES, MANY_SESSIONS, EXPIRED = (1000, 100_000, 1_000_000), 100_000, 200_000, 1_000_000


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench", add_help=False)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or "target")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true")
    length.add_argument("--check", action="store_true")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--piles", action="store_true")
    parser.add_argument("--abuse", type=float, metavar="MINUTES")
    parser.add_argument("--store", type=pathlib.Path, metavar="GARAGE_BINARY")
    parser.add_argument("--binary", type=pathlib.Path)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--peer", action="append", default=[], type=read_peer)
    parser.add_argument("--data", type=pathlib.Path, default=target / "bench")
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    rounds, seconds = (1, 0.3) if options.check else (2, 1) if options.quick else (3, 5)
    options.rounds = rounds if options.rounds is None else options.rounds
    options.seconds = seconds if options.seconds is None else options.seconds
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds must be positive")
    options.users = USERS_OF_CHECK if options.check else USERS
    own = target / ("debug" if options.check else "release") / "cloakroom"
    options.is_own_binary = options.binary is None
    options.binary = (options.binary or own).absolute()
    options.data = options.data.absolute()
    return options


class Benchmark:
    """A run. `directory` holds all that it keeps."""

    def __init__(self, options, server):
        self.options = options
        self.directory = options.data
        self.postgres = server
        self.began = time.monotonic()
        self.cpu = (processes.busy_seconds(), self._own_cpu())

    def step(self, text):
        print(f"{time.monotonic() - self.began:5.0f} s  {text}", file=sys.stderr, flush=True)

    def service(self, users, files):
        """The service with a database of so many users, in which user 6 has so many files."""
        service = Service(self.options.binary, self.postgres, self.directory, f"users_{users}_{files}")
        seed.fill(service, users, files, self.step)
        return service

    def comparison(self):
        """Measures the service, the peers and the limits in turn. Each round begins with another one."""
        service = self.service(self.options.users, 0)
        peers = self.options.peer
        results = {name: [] for name in ("Cloakroom", *(peer.name for peer in peers), "limit")}
        measures = [
            lambda: self._measure_service(service),
            *(lambda peer=peer: self._measure_peer(peer) for peer in peers),
            lambda: ("limit", self._measure_limits(service)),
        ]
        service.removed.mkdir(exist_ok=True)
        try:
            for number in range(self.options.rounds):
                self.step(f"round {number + 1} of {self.options.rounds}")
                first = number % len(measures)
                for measure in measures[first:] + measures[:first]:
                    name, figures = measure()
                    results[name].append(figures)
        finally:
            shutil.rmtree(service.removed)
        return results

    def _measurement(self, server, waits=None):
        return Measurement(server, self.directory, self.options.seconds, self.step, waits)

    def _measure_service(self, service):
        seed.remove_uploads(service)
        with service.running() as server:
            figures = self._measurement(server, lambda: self.postgres.waits(service.database)).all()
        seed.remove_uploads(service)
        return server.name, figures

    def _measure_peer(self, peer):
        figures = self._measurement(peer).all()
        peer.is_fresh = False
        return peer.name, figures

    def _measure_limits(self, service):
        figures = Limits(service, self.directory, self.options.seconds, self.step).all()
        seed.remove_uploads(service)
        return figures

    def growth(self):
        """Measures the service with more and more users."""
        sizes = GROWTH_USERS[:2] if self.options.quick or self.options.check else GROWTH_USERS
        services = {users: self.service(users, MANY_FILES if users == 1000 else 0) for users in sizes}
        results = {users: [] for users in services}
        for _ in range(self.options.rounds):
            for users, service in services.items():
                results[users].append(self._measure_growth(users, service))
        return results

    def _measure_growth(self, users, service):
        share = 50 if self.options.check else 1
        step = lambda text: self.step(f"{users:,} users: {text}")
        seconds, has_many_files = min(self.options.seconds, 2), users == 1000
        with service.running() as server:
            figures = growth.measure(server, self.directory, seconds, step, has_many_files)
            if has_many_files:
                step("cloakroom check")
                figures |= growth.check_command(service)
            figures |= growth.many_sessions(service, server, step, MANY_SESSIONS // share)
        return figures | growth.sweep(service, self.directory, seconds, step, EXPIRED // share)

    def _own_cpu(self):
        peers = [pid for peer in self.options.peer for pid in (peer.pid, peer.postgres_pid) if pid]
        return sum(processes.cpu_seconds(pid) for pid in {os.getpid(), self.postgres.pid, *peers})

    def strangers(self):
        """The share of the machine, in percent, that other processes have used so far."""
        busy, own = processes.busy_seconds() - self.cpu[0], self._own_cpu() - self.cpu[1]
        return max(0, 100 * (busy - own) / (time.monotonic() - self.began) / os.cpu_count())


def machine(server):
    """What figures depend on: the day, the machine and its PostgreSQL."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = ".".join(platform.release().split(".")[:2])  # the rest is the name of a build
    return (
        f"{datetime.date.today()}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, Linux {kernel}, "
        f"PostgreSQL {server.sql('SHOW server_version').split()[0]}"
    )


def print_heading(benchmark):
    # Without directories, which say nothing to readers elsewhere.
    command = shlex.join(["scripts/bench", *(pathlib.PurePath(word).name for word in sys.argv[1:])])
    rounds = benchmark.options.rounds
    text = f"`{command}` on {machine(benchmark.postgres)}. Rounds: {rounds}; medians and ranges. Other processes used "
    print(report.paragraph(text + f"{benchmark.strangers():.0f} % of the machine meanwhile.") + "\n")


def measure(benchmark):
    """Measures and prints. Returns the exit status."""
    if benchmark.options.abuse:
        options = benchmark.options
        text = abuse.run(options.binary, benchmark.postgres, benchmark.directory, options.abuse, benchmark.step)
        print_heading(benchmark)
        print(text)
        return 0
    if benchmark.options.piles:
        options = benchmark.options
        text, is_bounded = piles.run(options.binary, benchmark.postgres, benchmark.directory, options, benchmark.step)
        print_heading(benchmark)
        print(report.paragraph(text))
        return 0 if is_bounded else 1
    if benchmark.options.store:
        text = store.run(benchmark)
        print_heading(benchmark)
        print(text)
        return 0
    if benchmark.options.growth:
        results = benchmark.growth()
        print_heading(benchmark)
        print(report.growth(results))
        return 0
    results = benchmark.comparison()
    print_heading(benchmark)
    print(report.comparison(results, benchmark.options.users) + "\n")
    print(report.explanations(results))
    absent = report.missing(results)
    for name in absent:
        print(f"No figure: {name}", file=sys.stderr)
    return 1 if absent else 0


def build(options):
    if not options.is_own_binary:
        return
    profile = ([] if options.check else ["--release"]) + (["--features", "s3"] if options.store else [])
    print("Building", file=sys.stderr, flush=True)
    if subprocess.run(["cargo", "build", "--locked", "--quiet", *profile], check=False).returncode:
        raise RuntimeError("the service was not built")


def remove_data(directory):
    """Deletes what earlier runs have kept."""
    postgres.remove(directory / "postgres")
    for data in [*directory.glob("data-*"), *directory.glob("removed")]:
        shutil.rmtree(data)


def main():
    options = arguments()
    processes.interrupt_once()
    options.data.mkdir(parents=True, exist_ok=True)
    with open(options.data / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"Another scripts/bench uses {options.data}. Wait for it, or choose another --data.")
        try:
            build(options)
            if options.fresh:
                remove_data(options.data)
            with postgres.private_postgres(options.data / "postgres") as server:
                status = measure(Benchmark(options, server))
        except KeyboardInterrupt:
            sys.exit("Interrupted.")
        except ERRORS as error:
            sys.exit(f"scripts/bench: {error}")
    sys.exit(status)


if __name__ == "__main__":
    main()
