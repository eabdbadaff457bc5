"""What is measured of a server, W1 to W7 and uploads of small files. Each function returns figures by their names."""

import contextlib
import statistics
import time

import load
import processes
from client import MULTIPART, call, file_content, upload_form

ME = "/api/v1/auth/me"
UPLOADS = "/api/v1/uploads/"
EXPORT = "/api/v1/users/export-full"
MIB = 1 << 20
SMALL_FILE = 10 << 10
CONNECTIONS = (1, 16, 64)
UPLOAD_CLIENTS = (1, 4, 16, 64)
# How often an export is read; its time is the median.
EXPORTS = 3
# How long a server rests at most before its memory is looked at, in seconds.
MAX_REST = 2


class Measurement:
    """A round of one server.

    `directory` is for the files of loads, `seconds` the length of a load. `step` reports progress. `waits` is a context
    in which what PostgreSQL waits for is counted, see `Postgres.waits`.
    """

    def __init__(self, server, directory, seconds, step, waits=None):
        self.server = server
        self.directory = directory
        self.seconds = seconds
        self.waits = waits or (lambda: contextlib.nullcontext({}))
        self.step = lambda text: step(f"{server.name}: {text}")

    def wrk(self, connections, path, tokens, form=None, seconds=None):
        seconds = seconds or self.seconds
        return load.wrk(self.server, connections, seconds, path, tokens, self.directory, form)

    def all(self):
        """All figures. The order matters: memory grows, and the biggest use of it comes last."""
        parts = (
            self.idle, self.current_user, self.list_of_files, self.download, self.upload, self.small_uploads,
            self.export, self.sign_ins,
        )
        figures = {}
        for part in parts:
            figures |= part()
        return figures

    def idle(self):
        """W7: what the server takes when it has just started."""
        if not self.server.pid or not self.server.is_fresh:
            return {}
        self.step("W7, start")
        time.sleep(min(MAX_REST, self.seconds))
        binary = f"/proc/{self.server.pid}/exe"
        with open(binary, "rb") as file:
            size = file.seek(0, 2) / MIB
        figures = {"idle": processes.resident(self.server.pid), "binary": size}
        return figures | ({"start": self.server.start_ms} if self.server.start_ms else {})

    def current_user(self):
        """W1: the current user, by the tokens of many users in turn."""
        self.step("W1, current user, warming up")
        self.wrk(16, ME, self.server.tokens, seconds=1)
        figures = {}
        for connections in CONNECTIONS:
            self.step(f"W1, current user, connections: {connections}")
            before = self._cpu()
            result = self.wrk(connections, ME, self.server.tokens)
            name = f"w1_c{connections}"
            figures |= {f"{name}_rate": result.rate, f"{name}_p50": result.p50, f"{name}_p99": result.p99}
            for what, seconds in self._cpu().items():
                figures[f"{name}_{what}"] = (seconds - before[what]) / result.requests * 1e6
        if self.server.pid:
            figures["after_load"] = processes.resident(self.server.pid)
        return figures

    def _cpu(self):
        """CPU seconds of the server and of PostgreSQL."""
        pids = {"cpu": self.server.pid, "postgres_cpu": self.server.postgres_pid}
        return {what: processes.cpu_seconds(pid) for what, pid in pids.items() if pid}

    def sign_ins(self):
        """W2: sign-ins with a password, in 4 loops."""
        self.step("W2, sign-ins")
        return {"w2": load.sign_ins(self.server, 4, self.seconds).rate}

    def upload(self):
        """W3: uploads of 1 MiB over 4 connections, by 4 users in turn."""
        self.step("W3, uploads of 1 MiB")
        result = self.wrk(4, UPLOADS, self.server.tokens[1:5], upload_form(MIB))
        return {"w3": result.rate, "w3_p99": result.p99}

    def download(self):
        """W4: downloads of 1 MiB over 4 connections."""
        self.step("W4, downloads of 1 MiB")
        token = self.server.tokens[1]
        file = call(self.server.url, "POST", UPLOADS, upload_form(MIB), token, MULTIPART)
        path = f"{UPLOADS}{file['id']}/download"
        if call(self.server.url, "GET", path, token=token) != file_content(MIB):
            raise RuntimeError("a download is not what was uploaded")
        return {"w4": load.downloads(self.server.url, path, token, 4, self.seconds)}

    def list_of_files(self):
        """W5: the first 20 of a user's 1,000 files, over 16 connections."""
        self.step("W5, list of files")
        path = f"{UPLOADS}?page=1&size=20"
        page = call(self.server.url, "GET", path, token=self.server.tokens[0])
        if len(page["items"]) != 20 or page["total"] < 1000:
            raise RuntimeError("user1 does not have 1,000 files")
        result = self.wrk(16, path, self.server.tokens[:1])
        return {"w5": result.rate, "w5_p99": result.p99}

    def export(self):
        """W6: all users as CSV."""
        self.step("W6, export")
        pid = self.server.pid
        if pid:
            processes.forget_peak(pid)
        seconds = [load.export(self.server, EXPORT, self.server.tokens[0]) for _ in range(EXPORTS)]
        figures = {"w6": statistics.median(seconds)}
        return figures | ({"w6_peak": processes.peak(pid)} if pid else {})

    def small_uploads(self):
        """Uploads of 10 KiB by users of their own, and by one user over many connections."""
        figures = {}
        form = upload_form(SMALL_FILE)
        for clients in UPLOAD_CLIENTS:
            self.step(f"uploads of 10 KiB, clients: {clients}")
            with self.waits() as seen:
                result = self.wrk(clients, UPLOADS, self.server.tokens[1 : 1 + clients], form)
            figures[f"small_c{clients}"] = result.rate
        if seen:  # of the last load, that of 64 clients
            figures["lock_waits"] = 100 * seen.get("Lock", 0) / sum(seen.values())
        self.step("uploads of 10 KiB, 16 clients of one user")
        figures["small_one_user"] = self.wrk(16, UPLOADS, self.server.tokens[1:2], form).rate
        return figures
