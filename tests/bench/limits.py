"""What this machine can do at all, without the service: limits by tools that everybody has.

The figures have the names of those of a server which they limit.
"""

import contextlib
import hashlib
import os
import pathlib
import pwd
import re
import statistics
import threading
import time

import load
import processes
from client import file_content
from workloads import CONNECTIONS, EXPORTS, MIB, UPLOAD_CLIENTS

SQL = pathlib.Path(__file__).parents[2] / "sql"

# nginx keeps the file open, so that only sending it is measured.
NGINX = """
{user}
worker_processes {cores};
daemon off;
error_log stderr;
pid {directory}/nginx.pid;
events {{ worker_connections 64; }}
http {{
    access_log off;
    tcp_nopush on;
    keepalive_requests 100000000;
    open_file_cache max=10;
    root {directory};
    client_body_temp_path {directory}/nginx-temporary;
    proxy_temp_path {directory}/nginx-temporary;
    fastcgi_temp_path {directory}/nginx-temporary;
    uwsgi_temp_path {directory}/nginx-temporary;
    scgi_temp_path {directory}/nginx-temporary;
    server {{ listen 127.0.0.1:{port}; sendfile {sendfile}; }}
}}
"""

# Statements that the service has prepared, with the values that pgbench gives to their parameters. `n` is a number from
# 1 to 1,000.
NUMBER = "\\set n random(1, 1000)\n"
SESSION = "md5('session1user' || :n::text)::uuid"
# One request; the service asks for those that come together at once, so it may exceed this limit.
AUTHENTICATE = ("request/find_live", [f"ARRAY[{SESSION}]", "7776000", "0"])
LIST = ("files/list_newest", ["md5('user1')::uuid", "20", "0"])
# A file of its own with every run of the statement, owned by {owner}, within quotas that are never reached.
FILE_NUMBER = "\\set n random(1, 1000000000000000000)\n"
FILE = ["ARRAY[lpad(to_hex(:n::bigint), 32, '0')::uuid]", "ARRAY[{owner}]", "ARRAY['report.pdf']"]
FILE += ["ARRAY['application/pdf']", "ARRAY[10240]", "ARRAY[repeat('a', 64)]", "ARRAY[NULL]", "ARRAY[NULL]"]
FILE += ["ARRAY[gen_random_uuid()]", "1e15::bigint", "10000000", "1e15::bigint", "1e15::bigint"]
FILE += ["ARRAY[NULL]", "ARRAY[NULL]", "ARRAY[false]", "ARRAY['']", "ARRAY[0]", "ARRAY[NULL]::uuid[]",
         "ARRAY[NULL]::uuid[]"]
ONE_OWNER = "md5('user2')::uuid"
OWN_OWNER = "md5('user' || (:client_id::int + 2))::uuid"
# A commit that waits for the disk, as that of an upload does, but for no row that others change.
OWN_ROW = f"UPDATE users SET last_login = now() WHERE id = {OWN_OWNER};\n"
EXPORT = (
    "SELECT id, username, email, name, role, is_active, created_at, updated_at, last_login, total_uploads, "
    "total_storage_used FROM users WHERE NOT is_deleted AND NOT is_development_admin ORDER BY created_at, id"
)


def statement(name, values):
    """The text of sql/NAME.sql as a statement of pgbench, with values in place of $1, $2 ..."""
    lines = (SQL / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return re.sub(r"\$(\d+)", lambda match: values[int(match[1]) - 1], text) + ";\n"


class Limits:
    """A round of the limits, in the database of a service that is not running."""

    def __init__(self, service, directory, seconds, step):
        self.postgres = service.postgres
        self.database = service.database
        self.directory = directory
        self.seconds = seconds
        self.step = lambda text: step(f"limit: {text}")

    def all(self):
        return self.statements() | self.inserts() | self.copy() | self.hashes() | self.writes() | self.static_file()

    def _pgbench(self, script, clients):
        return self.postgres.pgbench(script, self.database, clients, self.seconds)

    def statements(self):
        """W1 and W5: the statements of these requests alone."""
        figures = {}
        for clients in CONNECTIONS:
            self.step(f"pgbench, look-up of a session and its user, connections: {clients}")
            figures[f"w1_c{clients}_rate"] = self._pgbench(NUMBER + statement(*AUTHENTICATE), clients)
        self.step("pgbench, list of files")
        figures["w5"] = self._pgbench(NUMBER + statement(*AUTHENTICATE) + statement(*LIST), 16)
        return figures

    def inserts(self):
        """Small files: the statement that records one, alone."""
        figures = {}
        for clients, owner, name in [(n, OWN_OWNER, f"small_c{n}") for n in UPLOAD_CLIENTS] + [
            (16, ONE_OWNER, "small_one_user")
        ]:
            self.step(f"pgbench, recording of files, connections: {clients}")
            script = FILE_NUMBER + statement("files/insert_many", [value.format(owner=owner) for value in FILE])
            figures[name] = self._pgbench(script, clients)
        self.step("pgbench, commits of changes to rows of their own, 16 connections")
        return figures | {"commits": self._pgbench(OWN_ROW, 16)}

    def copy(self):
        """W6: PostgreSQL writes the CSV itself."""
        self.step("COPY")
        return {"w6": statistics.median(self.postgres.copy_seconds(EXPORT, self.database) for _ in range(EXPORTS))}

    def hashes(self):
        """W2: OpenSSL's scrypt at the service's default cost, on all cores."""
        self.step("scrypt of OpenSSL")
        end = time.perf_counter() + self.seconds

        def loop(latencies):
            while (began := time.perf_counter()) < end or not latencies:
                hashlib.scrypt(b"password", salt=b"0123456789abcdef", n=1 << 14, r=8, p=5, maxmem=64 * MIB, dklen=32)
                latencies.append(time.perf_counter() - began)

        return {"w2": load.in_threads(os.cpu_count(), loop).rate}

    def writes(self):
        """W3: 4 threads hash and write files of 1 MiB, each synced to the disk and renamed."""
        self.step("SHA-256, write, fsync and rename of 1 MiB")
        content = file_content(MIB)
        files = self.directory / "limit-files"
        files.mkdir(exist_ok=True)
        end = time.perf_counter() + self.seconds

        def loop(latencies):
            draft = files / f"draft-{threading.get_ident()}"
            while (began := time.perf_counter()) < end or not latencies:
                name = f"{hashlib.sha256(content).hexdigest()}-{threading.get_ident()}-{len(latencies)}"
                with open(draft, "wb", buffering=0) as file:
                    file.write(content)
                    os.fsync(file.fileno())
                draft.rename(files / name)
                latencies.append(time.perf_counter() - began)

        try:
            return {"w3": load.in_threads(4, loop).rate}
        finally:
            # As `seed.remove_uploads` does, for the same reason.
            for file in files.iterdir():
                os.truncate(file, 0)
            files.rename(self.directory / "removed" / f"{files.name}-{time.time_ns()}")

    def static_file(self):
        """W4: nginx sends the same file, by sendfile(2) and by reading and writing."""
        figures = {}
        for name, sendfile in (("w4", "on"), ("nginx_plain", "off")):
            self.step(f"nginx, sendfile {sendfile}")
            with self._nginx(sendfile) as url:
                figures[name] = load.downloads(url, "/file", None, 4, self.seconds)
        return figures

    @contextlib.contextmanager
    def _nginx(self, sendfile):
        directory = self.directory / "nginx"
        directory.mkdir(exist_ok=True)
        (directory / "file").write_bytes(file_content(MIB))
        port = processes.free_port()
        user = f"user {pwd.getpwuid(os.geteuid()).pw_name};" if os.geteuid() == 0 else ""
        configuration = directory / "nginx.conf"
        values = {"user": user, "cores": os.cpu_count(), "directory": directory, "port": port, "sendfile": sendfile}
        configuration.write_text(NGINX.format(**values))
        log = self.directory / "nginx.log"
        nginx = processes.start(["nginx", "-c", configuration, "-p", directory], log)
        url = f"http://127.0.0.1:{port}"
        try:
            end = time.perf_counter() + 10
            while True:
                with contextlib.suppress(ConnectionRefusedError):
                    load.connect(url).close()
                    break
                if nginx.poll() is not None or time.perf_counter() > end:
                    raise RuntimeError(f"nginx did not start: {log.read_text(errors='replace')}")
                time.sleep(0.01)
            yield url
        finally:
            processes.stop(nginx)
