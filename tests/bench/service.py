"""The servers that are measured: the service, which is started here, and peers, which run already."""

import argparse
import base64
import contextlib
import hmac
import json
import os
import secrets
import time
import uuid
from dataclasses import dataclass

import processes
import seed
from client import call

# How long a server may take to answer for the first time, in seconds.
MAX_START = 60
# How many users' tokens the requests for the current user use in turn.
SIGNED_IN_USERS = 1000
# A peer must have the tokens of all users that upload.
MIN_PEER_TOKENS = 65


@dataclass
class Server:
    """A server that is measured. All have the same users: `user1`, an administrator with 1,000 files, `user2` ..."""

    name: str
    url: str
    # Its main process; none if it is not on this machine.
    pid: int | None
    # Bearer tokens of user1, user2 ...
    tokens: list
    # The body of a sign-in.
    login: dict
    # The main process of its PostgreSQL; none if unknown.
    postgres_pid: int | None = None
    # How long it took from its start to its first answer, in milliseconds.
    start_ms: float | None = None
    # Whether it has had no load yet.
    is_fresh: bool = True


def read_peer(path):
    """Reads the description of a peer, an argument of the command line."""
    try:
        with open(path, encoding="utf-8") as file:
            peer = Server(**{"pid": None, **json.load(file)})
    except (OSError, ValueError, TypeError) as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from error
    if len(peer.tokens) < MIN_PEER_TOKENS:
        raise argparse.ArgumentTypeError(f"{path}: 'tokens' must have those of at least {MIN_PEER_TOKENS} users")
    return peer


class Service:
    """How the service is run: its binary, the database, and the directory of its data."""

    def __init__(self, binary, postgres, directory, database):
        self.binary = binary
        self.postgres = postgres
        self.database = database
        self.data = directory / f"data-{database}"
        # Where contents are set aside.
        self.removed = directory / "removed"
        self.log = directory / "service.log"
        self.secret = secrets.token_urlsafe(48)
        # Further settings, by their names.
        self.settings = {}

    def environment(self, port):
        """The settings: those of production, except for limits that a load would reach."""
        return {
            "CLOAKROOM_ENV": "production",
            "CLOAKROOM_LISTEN": f"127.0.0.1:{port}",
            "CLOAKROOM_DATABASE_URL": self.postgres.database_url(self.database),
            "CLOAKROOM_DATA_DIR": str(self.data),
            "CLOAKROOM_JWT_SECRET": self.secret,
            "CLOAKROOM_SMTP_URL": "none",
            "CLOAKROOM_EXPORT_REQUIRE_ADMIN": "true",
            "CLOAKROOM_EXPORT_MAX_ROWS": "2000000",
            "CLOAKROOM_RATE_LIMIT_ENABLED": "false",
            "CLOAKROOM_STORAGE_QUOTA": str(1 << 50),
            "CLOAKROOM_USER_STORAGE_QUOTA": str(1 << 50),
            "CLOAKROOM_USER_FILE_QUOTA": "10000000",
            **self.settings,
        }

    def tokens(self, count):
        """Access tokens as a sign-in makes them, each of a session of its own. No password is hashed for them."""
        rows = self.postgres.sql(seed.SESSIONS_QUERY.format(count=count), self.database).splitlines()
        return [self._token(*row.split("|")) for row in rows]

    def _token(self, user, name, role, session):
        now = int(time.time())
        claims = {"sub": user, "username": name, "role": role, "type": "access", "sid": session}
        claims |= {"jti": str(uuid.uuid4()), "iat": now, "exp": now + 86400}
        signed = b".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
        return (signed + b"." + base64url(hmac.digest(self.secret.encode(), signed, "sha256"))).decode()

    @contextlib.contextmanager
    def running(self):
        """Starts the service. It ends with the block."""
        port = processes.free_port()
        url = f"http://127.0.0.1:{port}"
        tokens = self.tokens(SIGNED_IN_USERS)
        began = time.perf_counter()
        process = processes.start(self._command(), self.log, env=self.environment(port))
        try:
            self._wait(process, url, began)
            milliseconds = (time.perf_counter() - began) * 1000
            login = {"username": "user1", "password": seed.PASSWORD}
            yield Server("Cloakroom", url, process.pid, tokens, login, self.postgres.pid, milliseconds)
        finally:
            processes.stop(process)

    def _command(self):
        """The command that serves, as a member of the control groups that scripts/test-small-host names, if any."""
        groups = os.environ.get("CLOAKROOM_TEST_CGROUPS")
        if groups is None:
            return [self.binary, "serve"]
        join = f'for group in {groups}; do echo $$ >$group/cgroup.procs; done; exec "$0" serve'
        return ["/bin/sh", "-c", join, self.binary]

    def _wait(self, process, url, began):
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                return call(url, "GET", "/healthz")
            if process.poll() is not None or time.perf_counter() - began > MAX_START:
                log = self.log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the service did not start, or ended at once. {self.log} ends with:\n{log}")
            time.sleep(0.001)


def base64url(content):
    """RFC 7515, appendix C."""
    return base64.urlsafe_b64encode(content).rstrip(b"=")
