"""The servers of the test: two of PostgreSQL, of which the second is a synchronous standby, and the service."""

import contextlib
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import time
import urllib.parse
import urllib.request

import processes

# How long anything may take to get ready, in seconds.
MAX_START = 60
# Setting of the service, and its default: how long a request may wait for the database, in seconds.
DATABASE_TIMEOUT = 5


def wait_until(condition, what, seconds=MAX_START):
    """Waits until the condition holds, and returns what it is then."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return result


def run(command, text=None, **options):
    """Runs a tool to its end and returns what it prints. If it fails, that is the text of the exception."""
    # Away from the terminal, whose Ctrl-C is for this program alone.
    options |= {"stdout": subprocess.PIPE, "text": True, "check": False, "start_new_session": True}
    done = subprocess.run(command, input=text or "", stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout.strip()}")
    return done.stdout


def remove(directory):
    """Stops the server that scripts/postgres runs in a directory, if there is one, and deletes its data."""
    run(["scripts/postgres", "remove", str(directory)])
    shutil.rmtree(directory, ignore_errors=True)


class Postgres:
    """A server that scripts/postgres runs in `directory`, where a data directory may exist already."""

    def __init__(self, directory):
        self.directory = directory
        self.url = run(["scripts/postgres", "start", str(directory)]).splitlines()[-1]
        # The script puts the server elsewhere where its user cannot reach the directory.
        self.home = pathlib.Path(self.sql("SHOW data_directory")).parent

    @property
    def host(self):
        """Address and port."""
        return self.url.rpartition("@")[2].partition("/")[0]

    @property
    def standby_home(self):
        """Where `add_standby` puts the standby."""
        return self.home.with_name(self.home.name + "-standby")

    def environment(self):
        """How libpq's tools connect. Not by arguments, which everybody on the machine sees."""
        parts = urllib.parse.urlsplit(self.url)
        address = {"PGHOST": parts.hostname, "PGPORT": str(parts.port), "PGDATABASE": parts.path.strip("/")}
        return {**os.environ, **address, "PGUSER": parts.username, "PGPASSWORD": parts.password}

    def sql(self, statements):
        """Runs statements. Returns what they return: rows are lines, columns are separated by `|`."""
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1"]
        return run(command, statements, env=self.environment()).strip()

    def rows(self, query):
        return [line.split("|") for line in self.sql(query).splitlines()]

    def add_standby(self):
        """Makes a copy that follows this server, and lets every commit here wait until it is on the disk there."""
        home = self.standby_home
        remove(home)
        home.mkdir(0o700)
        (home / "lock").touch()
        shutil.copy(self.home / "password", home)
        options = {}
        if os.geteuid() == 0:
            owner = self.home.stat()
            options = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
            for path in (home, *home.iterdir()):
                os.chown(path, owner.st_uid, owner.st_gid)
        command = ["pg_basebackup", "--write-recovery-conf", "--checkpoint=fast", "--pgdata", str(home / "cluster")]
        run(command, env=self.environment(), cwd="/", **options)
        standby = Postgres(home)
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.sql("SELECT pg_reload_conf()")
        is_followed = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_until(lambda: self.sql(is_followed) == "1", "a synchronous standby")
        return standby

    def processes(self):
        """The server and its children; none if it does not run."""
        try:
            pid = int((self.home / "cluster" / "postmaster.pid").read_text().split()[0])
            is_ours = os.path.samefile(f"/proc/{pid}/cwd", self.home / "cluster")
        except (OSError, ValueError, IndexError):
            return []
        return processes.family(pid) if is_ours else []

    def _signal(self, number, is_done):
        """Sends a signal to all processes until it has had its effect; some may be starting others."""

        def send():
            family = [pid for pid in self.processes() if not is_done(pid)]
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            return not family

        wait_until(send, f"{number.name} of the server at {self.host}")

    def stop_sending(self):
        """From now on the standby gets nothing, so commits wait for it."""
        os.kill(int(self.sql("SELECT pid FROM pg_stat_replication")), signal.SIGSTOP)

    def kill(self):
        """Ends the server as a loss of power would, apart from what the system has yet to write to the disk."""
        self._signal(signal.SIGKILL, lambda pid: processes.state(pid) in "ZX")

    def suspend(self):
        """From now on the server hangs: connections stay open and new ones are made, but nothing answers."""
        self._signal(signal.SIGSTOP, lambda pid: processes.state(pid) in "TZX")

    def resume(self):
        """Lets a suspended server go on."""
        self._signal(signal.SIGCONT, lambda pid: processes.state(pid) not in "T")

    def start_again(self):
        """Starts a server that was killed. It accepts writes, because nothing tells it of the promotion."""
        run(["scripts/postgres", "start", str(self.directory)])

    def end_connections(self):
        """Ends the connections of the service while they are idle, so that it opens others."""
        ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'idle'"
        self.sql(f"{ended} AND application_name = 'cloakroom'")

    def promote(self):
        """Makes a standby accept writes, and waits until it does."""
        if self.sql("SELECT pg_promote()") != "t":
            raise RuntimeError("the standby was not promoted")


class Service:
    """The service, on a database with several hosts. `data` is where it keeps files, `log` what it prints, `settings`
    are more settings, or other values of these."""

    def __init__(self, binary, directory, hosts, port=None, **settings):
        self.data = directory / "data"
        self.log = directory / "service.log"
        port = port or processes.free_port()
        self.url = f"http://127.0.0.1:{port}"
        servers = urllib.parse.urlsplit(hosts[0].url)
        credentials = servers.netloc.rpartition("@")[0]
        netloc = f"{credentials}@{','.join(host.host for host in hosts)}"
        settings = {
            "CLOAKROOM_LISTEN": f"127.0.0.1:{port}",
            "CLOAKROOM_DATABASE_URL": servers._replace(netloc=netloc, query="target_session_attrs=read-write").geturl(),
            "CLOAKROOM_DATABASE_TIMEOUT_SECONDS": str(DATABASE_TIMEOUT),
            "CLOAKROOM_DATA_DIR": str(self.data),
            "CLOAKROOM_JWT_SECRET": secrets.token_urlsafe(48),
            # Longer than the outage: a client whose refresh had no answer must be able to repeat it.
            "CLOAKROOM_REFRESH_REUSE_SECONDS": "120",
            # Cheap hashes, and no limits that the load would reach.
            "CLOAKROOM_SCRYPT": "4,8,1",
            "CLOAKROOM_RATE_LIMIT_ENABLED": "false",
            **settings,
        }
        self.process = processes.start([binary, "serve"], self.log, env=settings)

    def wait(self):
        """Waits until it answers."""

        def answers():
            if self.process.poll() is not None:
                text = self.log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the service ended. {self.log} ends with:\n{text}")
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(self.url + "/readyz", timeout=MAX_START).status == 200

        wait_until(answers, "an answer of the service")

    def stop(self):
        processes.stop(self.process)
