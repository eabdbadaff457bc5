"""The service with its contents in a store, beside those in its directory and a bare client of the store.

The store is three nodes of Garage, each of which has every object. Garage keeps equal contents only once, so no two
uploads to it are alike.
"""

import contextlib
import copy
import hashlib
import os
import secrets
import shutil
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import load
import processes
import report
import seed
from bare_client import DIGITS, BareClient, with_place
from client import MULTIPART, call, file_content, upload_form
from garage import BUCKET, REGION, Garage
from report import Row
from service import Service
from workloads import ME, MIB, SMALL_FILE, UPLOADS

# Contents that move-contents copies.
MOVED, MOVED_OF_CHECK = 10_000, 100
# The store takes fewer uploads of 1 MiB in a second; each needs a head of its own.
MAX_UPLOADS_A_SECOND = 1000
# Processes of the service that are measured together, and their columns.
COLUMNS = {1: "directory", 2: "two", 3: "three"}

ROWS = [
    Row("w1", "W1 current user, 16 connections: requests/s"),
    Row("w1_p99", "… p99, ms", True),
    Row("w3", "W3 uploads of 1 MiB, 4 connections: MiB/s"),
    Row("w3_p99", "… p99, ms", True),
    Row("w3_cpu", "… CPU of the service, ms a MiB", True),
    Row("w3_store_cpu", "… CPU of the store, ms a MiB", True),
    Row("w4", "W4 downloads of 1 MiB, 4 connections: MiB/s"),
    Row("w4_cpu", "… CPU of the service, ms a MiB", True),
    Row("w4_store_cpu", "… CPU of the store, ms a MiB", True),
]
FILES = """
DELETE FROM files;
INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
SELECT id::uuid, md5('user6')::uuid, 'report.pdf', 'report.pdf', 'application/pdf', {size}, 'files/' || id, hash
FROM (VALUES {values}) AS file (id, hash)
"""


def run(benchmark):
    """Measures, and returns the tables."""
    comparison = Comparison(benchmark)
    comparison.service.removed.mkdir(exist_ok=True)
    try:
        text = comparison.run(benchmark.options.rounds)
    finally:
        comparison.garage.stop()
        shutil.rmtree(comparison.service.removed)
    shutil.rmtree(comparison.home)  # After a failure its logs stay until the next run.
    return text


class Comparison:
    """The service, which is run in both ways with the same database, and the store."""

    def __init__(self, benchmark):
        options = benchmark.options
        self.seconds, self.step, self.directory = max(1, round(options.seconds)), benchmark.step, options.data
        self.moved = MOVED_OF_CHECK if options.check else MOVED
        self.service = Service(options.binary, benchmark.postgres, self.directory, f"store_{options.users}")
        seed.fill(self.service, options.users, 0, self.step)
        self.home = self.directory / "garage"
        shutil.rmtree(self.home, ignore_errors=True)
        self.garage = Garage(options.store.absolute(), self.home)
        self.in_store = copy.copy(self.service)
        self.in_store.settings = {
            "CLOAKROOM_STORAGE_URL":
                f"s3://{BUCKET}/files?endpoint=http://127.0.0.1:{self.garage.nodes[0].port}&region={REGION}",
            "CLOAKROOM_STORAGE_ACCESS_KEY": self.garage.key,
            "CLOAKROOM_STORAGE_SECRET_KEY": self.garage.secret,
        }

    def run(self, rounds):
        self.step("three nodes of the store")
        self.garage.start()
        self.fill()
        moves = self.move()
        results = {"directory": [], "store": [], "bare client": [], "two": [], "three": []}
        measures = [(COLUMNS[count], lambda count=count: self.measure(self.service, count)) for count in COLUMNS]
        measures += [("store", lambda: self.measure(self.in_store, 1)), ("bare client", self.measure_bare_client)]
        for number in range(rounds):
            self.step(f"round {number + 1} of {rounds}")
            first = number % len(measures)
            for name, measure in measures[first:] + measures[:first]:
                results[name].append(measure())
        places = {name: results[name] for name in ("directory", "store", "bare client")}
        ratios = {f"store to {name}": ("store", name) for name in ("directory", "bare client")}
        processes_of = {"one process": results["directory"], "two": results["two"], "three": results["three"]}
        to_one = {f"{name} to one": (name, "one process") for name in ("two", "three")}
        rows = [row for row in ROWS if "store" not in row.name]
        return "\n\n".join([report.table(ROWS, places, ratios), report.table(rows, processes_of, to_one), moves])

    def fill(self):
        """Gives user6 files of 10 KiB, all different, and takes those of others away."""
        self.step(f"filling in {self.moved:,} files")
        files, rows = self.service.data / "files", []
        if files.exists():
            files.rename(self.service.removed / f"files-{time.time_ns()}")
        files.mkdir(mode=0o700)
        for number in range(self.moved):
            content, file = hashlib.shake_128(str(number).encode()).digest(SMALL_FILE), uuid.uuid4()
            (files / str(file)).write_bytes(content)
            rows.append(f"('{file}', '{hashlib.sha256(content).hexdigest()}')")
        sql = FILES.format(size=SMALL_FILE, values=",".join(rows))
        self.service.postgres.sql(sql, self.service.database)
        with self.service.running():
            pass  # The first start gives the database and the directory the id that move-contents compares.
        seed.settle(self.service)

    def move(self):
        """Copies all contents to the store and back into an empty directory. Returns a sentence."""
        seconds = [self.move_to("s3")]
        files, before = self.service.data / "files", self.service.removed / f"files-{time.time_ns()}"
        files.rename(before)
        files.mkdir(mode=0o700)
        seconds.append(self.move_to("directory"))
        for file in before.iterdir():
            if file.read_bytes() != (files / file.name).read_bytes():
                raise RuntimeError(f"{file.name} has come back changed")
        there, back = (f"{report.number(each)} s, {report.number(self.moved / each)} a second" for each in seconds)
        text = f"`move-contents` of {self.moved:,} files of 10 KiB: to the store in {there}; back in {back}."
        return report.paragraph(text)

    def move_to(self, place):
        """Returns seconds."""
        self.step(f"move-contents --to {place}")
        os.sync()
        began = time.perf_counter()
        seed.command(self.in_store, "move-contents", "--to", place)
        return time.perf_counter() - began

    def measure(self, service, count):
        """Figures of so many processes of the service, between which the connections are divided."""
        seed.remove_uploads(service)
        name = "store" if service.settings else f"directory, processes: {count}"
        with contextlib.ExitStack() as stack:
            servers = []
            for number in range(count):
                each = copy.copy(service)
                each.log = self.directory / f"service{number + 1}.log"
                servers.append(stack.enter_context(each.running()))
            figures = self.current_user(servers, name) | self.uploads(servers, name) | self.downloads(servers, name)
        seed.remove_uploads(service)
        return {name: value for name, value in figures.items() if service.settings or "store" not in name}

    def at_once(self, connections, servers, work):
        """Lets `work(server, its share of the connections, a directory)` run for each server at once."""
        count = len(servers)
        directories = [self.directory / f"load{number + 1}" for number in range(count)]
        for directory in directories:
            directory.mkdir(exist_ok=True)
        shares = [connections // count + (number < connections % count) for number in range(count)]
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(work, servers, shares, directories))

    def current_user(self, servers, name):
        """W1. The 99th percentile is the worst of the processes."""
        self.step(f"{name}: W1, current user")
        tokens = servers[0].tokens
        for seconds in (1, self.seconds):  # The first is to warm up.
            work = lambda server, share, directory: load.wrk(server, share, seconds, ME, tokens, directory)
            results = self.at_once(16, servers, work)
        return {"w1": sum(result.rate for result in results), "w1_p99": max(result.p99 for result in results)}

    def uploads(self, servers, name):
        """W3, by 4 users in turn. What goes to the store differs; to make it differ costs the client too much beside
        the directory, where it changes nothing."""
        self.step(f"{name}: W3, uploads of 1 MiB")
        tokens, form = servers[0].tokens[1:5], upload_form(MIB)

        def work(server, share, directory):
            if name != "store":
                return load.wrk(server, share, self.seconds, UPLOADS, tokens, directory, form)
            more = load.form_headers(form)
            heads = [load.head(server.url, UPLOADS, token, more, "POST") for token in tokens]
            requests = [(heads[turn % 4], number) for turn, number in enumerate(self.numbers())]
            body = form.replace(file_content(MIB), with_place(file_content(MIB)))
            return load.send(server.url, share, self.seconds, requests, body, directory)

        return self.figures_of_uploads(lambda: self.at_once(4, servers, work), servers)

    def numbers(self):
        """One for each upload."""
        return [secrets.token_hex(DIGITS // 2) for _ in range(MAX_UPLOADS_A_SECOND * self.seconds)]

    def figures_of_uploads(self, work, servers):
        before = self.cpu(servers)
        results = work()
        total = sum(result.requests for result in results)
        figures = {"w3": sum(result.rate for result in results), "w3_p99": max(result.p99 for result in results)}
        return figures | self.cpu_of("w3", before, servers, total)

    def downloads(self, servers, name):
        """W4."""
        self.step(f"{name}: W4, downloads of 1 MiB")
        token = servers[0].tokens[1]
        file = call(servers[0].url, "POST", UPLOADS, upload_form(MIB), token, MULTIPART)
        path = f"{UPLOADS}{file['id']}/download"
        if any(call(server.url, "GET", path, token=token) != file_content(MIB) for server in servers):
            raise RuntimeError("a download is not what was uploaded")
        work = lambda server, share, _: load.downloads(server.url, path, token, share, self.seconds)
        return self.figures_of_downloads(lambda: sum(self.at_once(4, servers, work)), servers)

    def figures_of_downloads(self, work, servers):
        before = self.cpu(servers)
        began = time.perf_counter()
        rate = work()
        return {"w4": rate} | self.cpu_of("w4", before, servers, rate * (time.perf_counter() - began))

    def measure_bare_client(self):
        """Uploads and downloads of 1 MiB over 4 connections to the node that the service uses."""
        client = BareClient(self.garage)
        self.step("bare client: uploads")
        requests = list(client.puts(self.numbers()))
        work = lambda: [load.send(client.url, 4, self.seconds, requests, client.content, self.directory)]
        figures = self.figures_of_uploads(work, [])
        self.step("bare client: downloads")
        return figures | self.figures_of_downloads(lambda: client.download(4, self.seconds), [])

    def cpu(self, servers):
        """CPU seconds of the processes of the service, and of the nodes of the store."""
        pids = {"cpu": [each.pid for each in servers], "store_cpu": [node.process.pid for node in self.garage.nodes]}
        return {what: sum(map(processes.cpu_seconds, those)) for what, those in pids.items()}

    def cpu_of(self, name, before, servers, mebibytes):
        """What was used since, in milliseconds a MiB. What was not used is no figure."""
        used = {what: seconds - before[what] for what, seconds in self.cpu(servers).items()}
        return {f"{name}_{what}": seconds * 1000 / mebibytes for what, seconds in used.items() if seconds}
