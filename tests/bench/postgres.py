"""The private PostgreSQL of the benchmark, and the tools that come with PostgreSQL."""

import contextlib
import re
import statistics
import subprocess
import threading
import time
import urllib.parse

from processes import parent

# Everything else is as scripts/postgres sets it: in particular, a commit waits for the disk.
OPTIONS = "-c shared_buffers=512MB -c max_connections=200 -c max_wal_size=4GB -c checkpoint_timeout=30min"


class Postgres:
    """A running server. `url` is that of its database `cloakroom`, `pid` its main process."""

    def __init__(self, url):
        self.url = url
        self.pid = parent(int(self.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")))

    def database_url(self, database):
        return urllib.parse.urlsplit(self.url)._replace(path="/" + database).geturl()

    def sql(self, statements, database="cloakroom"):
        """Runs statements. Returns what they return: rows are lines, columns are separated by `|`."""
        return run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", self.database_url(database)], statements).strip()

    def create(self, database):
        """Makes an empty database in place of the one of that name."""
        self.drop(database)
        self.sql(f"CREATE DATABASE {database}")

    def drop(self, database):
        self.sql(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def copy_seconds(self, query, database):
        """How long the server takes to send the rows of a query as CSV."""
        began = time.perf_counter()
        run(["psql", "-Xq", "-c", f"\\copy ({query}) TO /dev/null CSV", self.database_url(database)])
        return time.perf_counter() - began

    def pgbench(self, script, database, clients, seconds):
        """Runs a script of pgbench with prepared statements in a closed loop. Returns transactions a second.

        The first second does not count: new connections have yet to load the catalogue and to plan. For less than a
        second it runs the script only a few times.
        """
        length = f"--time={1 + round(seconds)}" if seconds >= 1 else "--transactions=20"
        command = ["pgbench", "-n", "-M", "prepared", "-f", "/dev/stdin", "-c", str(clients), "-P", "1", length]
        output = run([*command, self.database_url(database)], script)
        rates = re.findall(r"^progress: .* ([\d.]+) tps", output, re.MULTILINE)[1:]
        rates = rates or re.findall(r"^tps = ([\d.]+)", output, re.MULTILINE)
        if not rates:
            raise RuntimeError(f"pgbench has no result: {output}")
        return statistics.mean(map(float, rates))

    @contextlib.contextmanager
    def waits(self, database):
        """Looks 100 times a second what the connections that run a statement wait for.

        Gives a dictionary, which is complete after the block: the class of what they wait for (`Lock`, `IO`, `LWLock`;
        `CPU` for none of it) and how often one was seen to.
        """
        query = (
            "SELECT coalesce(wait_event_type, 'CPU') FROM pg_stat_activity "
            "WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()\n\\watch 0.01\n"
        )
        command = ["psql", "-XAtq", "-P", "footer=off", self.database_url(database)]
        psql = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        seen = {}

        def read():
            for line in psql.stdout:
                if (word := line.strip()).isalpha():
                    seen[word] = seen.get(word, 0) + 1

        reader = threading.Thread(target=read)
        reader.start()
        try:
            psql.stdin.write(query)
            psql.stdin.flush()
            yield seen
        finally:
            psql.terminate()
            psql.wait()
            reader.join()
            psql.stdin.close()
            psql.stdout.close()


def run(command, text=None):
    """Runs a tool to its end and returns what it prints. If it fails, that is the text of the exception."""
    output, errors = subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(command, input=text, stdout=output, stderr=errors, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout.strip()}")
    return done.stdout


@contextlib.contextmanager
def private_postgres(directory):
    """The PostgreSQL of a directory, made at the first time. One that runs already is left running."""
    quiet = {"capture_output": True, "check": False, "start_new_session": True}
    was_running = subprocess.run(["scripts/postgres", "url", directory], **quiet).returncode == 0
    try:
        command = ["env", f"CLOAKROOM_PG_OPTIONS={OPTIONS}", "scripts/postgres", "start", directory]
        started = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, start_new_session=True)
        if started.returncode:
            raise RuntimeError("PostgreSQL did not start")
        yield Postgres(started.stdout.strip())
    finally:
        if not was_running:
            subprocess.run(["scripts/postgres", "stop", directory], **quiet)


def remove(directory):
    """Stops the PostgreSQL of a directory and deletes its data."""
    run(["scripts/postgres", "remove", directory])
