"""The test behind scripts/test-failover, run from the root of the repository. Its `--help` says what it does."""

import argparse
import contextlib
import fcntl
import itertools
import os
import pathlib
import shutil
import sys
import threading
import time
from collections import Counter

import processes
from client import ERRORS
from clients import Client, Mirror, Reader, Refreshes, SignIns, Uploads
from comparison import MAX_RETURN, Comparison
from servers import DATABASE_TIMEOUT, Postgres, Service, remove, wait_until

# Clients of each kind. Most of the load writes, and several requests are under way when the primary is lost.
LOAD = (Client, Reader, Reader, *[SignIns] * 3, *[Refreshes] * 3, *[Uploads] * 6)
# Clients that follow the changes of those that upload.
MIRRORS = 8
# Each kind of request has succeeded so often before the primary is lost.
MIN_REQUESTS = 30
# How long the standby gets nothing before the primary is killed, in seconds.
LAG = 0.5
# How long there is no primary, in seconds: so long that requests are answered 503, because they wait for a connection.
OUTAGE = DATABASE_TIMEOUT + 2
# How long the load continues once every kind of request has succeeded again, in seconds.
AFTERMATH = 3
WAYS = ("killed", "hanging")


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/test-failover", add_help=False)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=WAYS)
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be positive")
    return options


class Round:
    """A failover. `way` is how the primary is lost."""

    def __init__(self, way, binary, directory, step):
        self.way = way
        self.binary = binary
        self.directory = directory
        self.step = step
        self.over = threading.Event()
        self.clients = []

    def run(self):
        """Returns the comparison, and when the primary was lost and the standby promoted."""
        with contextlib.ExitStack() as stack:
            self.step(f"{self.way}: a primary and its synchronous standby")
            directory = self.directory / "postgres"
            remove(directory)
            shutil.rmtree(self.directory / "data", ignore_errors=True)
            # Before they are made, so that nothing stays where that is interrupted.
            stack.callback(remove, directory)
            primary = Postgres(directory)
            stack.callback(remove, primary.standby_home)
            standby = primary.add_standby()
            stack.callback(primary.kill)  # One that hangs could not be stopped.
            service = Service(self.binary, self.directory, (primary, standby))
            stack.callback(service.stop)
            service.wait()
            # The load changes more than the audit log has events for, and the comparison looks for each of them.
            primary.sql("ALTER TABLE audit_events DISABLE TRIGGER audit_events_own_changes")
            self.clients = [kind(service.url, self.over) for kind in LOAD]
            owners = [client for client in self.clients if isinstance(client, Uploads)]
            followed = itertools.islice(itertools.cycle(owners), MIRRORS)
            self.clients += [Mirror(service.url, self.over, owner) for owner in followed]
            stack.callback(self.over.set)
            for client in self.clients:
                client.start()
            lost, promoted = self._fail_over(primary, standby)
            self.step("comparing")
            return Comparison(self.clients, standby, service.data).all(lost, promoted), lost, promoted

    def _fail_over(self, primary, standby):
        self.step("load")
        wait_until(lambda: min(self.successes(0).values()) >= MIN_REQUESTS, "answers to all kinds of requests")
        self.step(f"the primary is {self.way}")
        if self.way == "killed":
            # What is committed meanwhile will be lost, so none of it may be acknowledged.
            primary.stop_sending()
            time.sleep(LAG)
        lost = time.monotonic()
        primary.kill() if self.way == "killed" else primary.suspend()
        time.sleep(max(0, lost + OUTAGE - time.monotonic()))
        self.step("the standby is promoted")
        standby.promote()
        promoted = time.monotonic()
        # If one kind does not come back, the comparison says why.
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: min(self.successes(promoted).values()) > 0, "success", 3 * MAX_RETURN)
            self.step("every kind of request succeeds again")
        time.sleep(max(AFTERMATH, promoted + MAX_RETURN + 1 - time.monotonic()))
        self.over.set()
        for client in self.clients:
            client.join()
            if client.error:
                raise RuntimeError(f"a client failed: {client.error!r}") from client.error
        self._return(primary, standby)
        return lost, promoted

    def _return(self, primary, standby):
        """Lets the former primary come back, first in the service's list of hosts, and the service reconnect. The
        comparison that follows then reads through the service, so it finds what a server with old data answers."""
        self.step("the former primary is back")
        primary.start_again() if self.way == "killed" else primary.resume()
        if primary.sql("SELECT pg_is_in_recovery()") != "f":
            raise RuntimeError("the former primary does not accept writes")
        standby.end_connections()

    def successes(self, since):
        """How often each kind of request has succeeded since then."""
        counts = Counter({kind.kind: 0 for kind in (*LOAD, Mirror)})
        for client in self.clients:
            counts.update(answer.kind for answer in list(client.answers) if answer.is_good and answer.ended >= since)
        del counts[""]
        return counts


def report(clients, lost, promoted):
    """A table of what the clients saw: by kind of request, in seconds after the loss and after the promotion."""
    columns = ("request", "succeeded", "answered 503", "longest wait, s", "succeeds again, s after the promotion")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    kinds = {}
    for answer in (answer for client in clients for answer in client.answers if answer.kind):
        kinds.setdefault(answer.kind, []).append(answer)
    for kind, answers in sorted(kinds.items()):
        good = [answer for answer in answers if answer.is_good]
        refused = sum(answer.status == 503 for answer in answers)
        longest = max(answer.ended - answer.began for answer in answers)
        again = min((answer.ended for answer in good if answer.ended >= promoted), default=float("inf")) - promoted
        lines.append(f"| {kind} | {len(good)} | {refused} | {longest:.1f} | {again:.1f} |")
    return "\n".join([*lines, "", f"The database was away for {promoted - lost:.1f} s."])


def main():
    options = arguments()
    processes.interrupt_once()
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or "target").absolute()
    directory = target / "failover"
    directory.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    step = lambda text: print(f"{time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)
    ways = [options.only] if options.only else WAYS
    found = []
    with open(directory / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            for way in [way for _ in range(options.rounds) for way in ways]:
                this = Round(way, target / "debug" / "cloakroom", directory, step)
                comparison, lost, promoted = this.run()
                compared = ", ".join(f"{kind}: {count}" for kind, count in comparison.counts.items())
                seen = report(this.clients, lost, promoted)
                print(f"{seen} The primary was {way}. Compared: {compared}.\n", flush=True)
                found += comparison.found
        except KeyboardInterrupt:
            sys.exit("Interrupted.")
        except ERRORS as error:
            sys.exit(f"scripts/test-failover: {error}")
    for text in found[:20]:
        print(f"WRONG: {text}", file=sys.stderr)
    sys.exit(f"{len(found)} things are wrong; {directory}/service.log has the log" if found else 0)


if __name__ == "__main__":
    main()
