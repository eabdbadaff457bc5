"""The service under test: the real binary on a database of its own, and a mail server that keeps what it is sent."""

import base64
import dataclasses
import email
import email.policy
import hmac
import json
import pathlib
import re
import secrets
import signal
import socket
import socketserver
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

# How long anything may take that is waited for, in seconds, on a busy machine.
MAX_WAIT = 120
PASSWORD = "correct horse 1"
# Hashing a password is cheap, and limits are far away, unless a test sets them. Requests still get their headers.
SETTINGS = {
    "CLOAKROOM_SCRYPT": "4,8,1",
    "CLOAKROOM_RATE_LIMIT_AUTH": "1000000",
    "CLOAKROOM_RATE_LIMIT_UPLOAD": "1000000",
    "CLOAKROOM_RATE_LIMIT_GENERAL": "1000000",
    "CLOAKROOM_RATE_LIMIT_ADMIN": "1000000",
    "CLOAKROOM_MAIL_FROM": "cloakroom@example.com",
}


def wait_for(what, find):
    """Calls `find` until it returns something true, and returns that. `what` is named after MAX_WAIT seconds."""
    deadline = time.monotonic() + MAX_WAIT
    while not (found := find()):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {MAX_WAIT} s there is still no {what}")
        time.sleep(0.05)
    return found


@dataclasses.dataclass
class Account:
    """An account with an access token of a session of its own."""

    id: str
    username: str
    email: str
    token: str
    password: str = PASSWORD


class Refused(Exception):
    """An answer with a status of 400 or more."""

    def __init__(self, status, body):
        super().__init__(f"{status} {body}")
        self.status = status


class Service:
    """`cloakroom serve` with the given settings. It has a database, a directory, a port and a mail server of its own,
    which stay the same when it is restarted."""

    def __init__(self, binary, postgres, directory, settings):
        self.binary = binary
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.mailbox = Mailbox()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        name = "console_" + secrets.token_hex(6)
        self._postgres, self._database = postgres, urllib.parse.urlsplit(postgres)._replace(path="/" + name).geturl()
        self.sql(f"CREATE DATABASE {name}", postgres)
        own = {
            "CLOAKROOM_LISTEN": f"127.0.0.1:{self.port}",
            "CLOAKROOM_DATABASE_URL": self._database,
            "CLOAKROOM_DATA_DIR": str(self.directory / "data"),
            "CLOAKROOM_PUBLIC_URL": self.url,
            "CLOAKROOM_SMTP_URL": f"smtp://127.0.0.1:{self.mailbox.port}",
        }
        self.settings = SETTINGS | own | settings
        self._process = None
        self._admin = None

    def start(self):
        """Starts it, and returns when it answers."""
        log = open(self.directory / "service.log", "ab")
        self._process = subprocess.Popen([self.binary, "serve"], stderr=log, env=self.settings)
        log.close()
        wait_for("service that answers", self._answers)

    def _answers(self):
        if self._process.poll() is not None:
            raise AssertionError(f"the service ended; its log is {self.directory / 'service.log'}")
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def stop(self):
        """Ends it as systemd would. The data stays."""
        if self._process:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)
            self._process = None

    def kill(self):
        """Ends it as a crash would."""
        self._process.kill()
        self._process.wait(60)
        self._process = None

    def close(self):
        """Ends it for good."""
        self.stop()
        self.mailbox.close()

    def sql(self, statements, database=None):
        """Runs statements. Returns the lines of rows, whose columns are separated by `|`."""
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statements, database or self._database]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    def call(self, method, path, body=None, token=None, headers=None):
        """A request to a path below `/api/v1`. `body` is sent as JSON unless it is bytes. Returns the parsed JSON, the
        bytes of anything else, or None; raises Refused."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | (headers or {})
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=MAX_WAIT) as response:
                answer, is_json = response.read(), response.headers.get_content_type() == "application/json"
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode()) from None
        return json.loads(answer) if is_json else answer or None

    def sign_in(self, username, password=PASSWORD, **more):
        """The answer to a sign-in: tokens and the account."""
        return self.call("POST", "/auth/login", {"username": username, "password": password} | more)

    def takes(self, token):
        """Whether a token is good for anything (still)."""
        try:
            self.call("GET", "/users/me", token=token)
        except Refused as refusal:
            if refusal.status != 401:
                raise
            return False
        return True

    def admin(self):
        """The administrator `root`."""
        if not self._admin:
            command = [self.binary, "create-admin", "--email", "root@example.com", "--username", "root"]
            subprocess.run(command, input=PASSWORD, env=self.settings, check=True, capture_output=True, text=True)
            answer = self.sign_in("root")
            self._admin = Account(answer["user"]["id"], "root", "root@example.com", answer["access_token"])
        return self._admin

    def new_user(self, **fields):
        """Makes an account. `fields` are those of `POST /users`, all of which have defaults; the username is random."""
        username = fields.get("username") or "user_" + secrets.token_hex(5)
        body = {"username": username, "email": f"{username}@example.com", "name": "A person", "password": PASSWORD}
        body |= fields
        self.call("POST", "/users", body, self.admin().token)
        answer = self.sign_in(username, body["password"])
        return Account(answer["user"]["id"], username, body["email"], answer["access_token"], body["password"])

    def upload(self, account, filename, content=b"content", media_type="text/plain", description=None,
               folder=None):
        """Stores a file, and returns its record."""
        boundary = uuid.uuid4().hex
        name = filename.replace("\\", "\\\\").replace('"', '\\"')
        parts = [(f'name="file"; filename="{name}"\r\nContent-Type: {media_type}', content)]
        for field, text in {"description": description, "folder": folder}.items():
            if text is not None:
                parts.append((f'name="{field}"', text.encode()))
        form = b"".join(f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + body + b"\r\n"
                        for head, body in parts)
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return self.call("POST", "/uploads", form + f"--{boundary}--\r\n".encode(), account.token, kind)

    def add_files(self, account, count, name="'file ' || n || '.txt'"):
        """Records files without contents, for long lists. `name` is an expression of SQL in which `n` counts from 1."""
        self.sql("INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, "
                 f"file_hash, upload_date) SELECT gen_random_uuid(), '{account.id}', {name}, {name}, 'text/plain', n, "
                 f"'-', '-', now() - make_interval(mins => n) FROM generate_series(1, {count}) n")

    def add_users(self, count, name="'Person ' || n"):
        """Makes accounts that cannot sign in, for long lists."""
        self.sql("INSERT INTO users (id, username, email, email_key, name, password_hash, created_at) "
                 "SELECT gen_random_uuid(), 'crowd_' || n, 'crowd' || n || '@example.com', "
                 f"'crowd' || n || '@example.com', {name}, '-', now() - make_interval(mins => n) "
                 f"FROM generate_series(1, {count}) n")

    def add_second_factor(self, account):
        """Gives an account a second factor. Returns its secret and its recovery codes."""
        offer = self.call("POST", "/auth/second-factor", {"current_password": account.password}, account.token)
        answer = self.call("POST", "/auth/second-factor/confirm", {"code": code(offer["secret"])}, account.token)
        self.forget_used_codes()
        return offer["secret"], answer["recovery_codes"]

    def forget_used_codes(self):
        """Lets codes be used that were used already, so that nobody waits half a minute for the next one."""
        self.sql("UPDATE users SET second_factor_step = 0 WHERE second_factor_step IS NOT NULL")


def code(secret, step=None):
    """The one-time password of a secret in base32 (RFC 6238), by default that of this moment."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    digest = hmac.digest(key, struct.pack(">Q", int(time.time()) // 30 if step is None else step), "sha1")
    number = struct.unpack_from(">I", digest, digest[-1] & 15)[0] & 0x7FFFFFFF  # RFC 4226, 5.3
    return f"{number % 10**6:06}"


class Mailbox:
    """A mail server on loopback that takes everything and keeps it."""

    def __init__(self):
        self.messages = []
        outer = self

        class Dialogue(socketserver.StreamRequestHandler):
            """A connection of a client, as RFC 5321 has it."""

            def handle(self):
                self.wfile.write(b"220 mailbox\r\n")
                for line in self.rfile:
                    verb = line[:4].upper()
                    if verb == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        lines = iter(self.rfile.readline, b".\r\n")
                        text = b"".join(line.removeprefix(b".") for line in lines)
                        outer.messages.append(email.message_from_bytes(text, policy=email.policy.default))
                    self.wfile.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
                    if verb == b"QUIT":
                        return

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dialogue)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def link(self, address, number=1):
        """Waits for the message with that number among those to an address that have a link, and returns the link."""
        what = f"mail {number} with a link to {address}"
        return wait_for(what, lambda: (self._links(address)[number - 1:] or [None])[0])

    def _links(self, address):
        own = [message for message in self.messages if address in str(message["To"])]
        texts = [message.get_body(("plain",)).get_content() for message in own]
        return [found[0] for text in texts if (found := re.search(r"https?://\S+token=\S+", text))]
