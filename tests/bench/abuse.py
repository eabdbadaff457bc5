"""What strangers can do to others: 300 accounts of one address do their worst beside 20 honest users of others.

The service runs with the limits of production, behind a proxy that it trusts, which this program plays. The figures are
of the honest users, before, while and after the others are at work, and of what the others have left behind.
"""

import asyncio
import collections
import contextlib
import hashlib
import json
import random
import statistics
import time
import uuid

import processes
import seed
from service import Service

HONEST, FIRST_HONEST = 20, 21
STRANGERS, FIRST_STRANGER = 300, 101
# Strangers who have so many files, each with so long a description, and search them.
SEARCHERS, SEARCHED_FILES, DESCRIPTION = 30, 2500, 4096
STRANGERS_ADDRESS = "203.0.113.7"
# Pauses between two requests of one user, in seconds. This program shares the cores with the service.
HONEST_PAUSE, STRANGER_PAUSE = 0.8, 0.5
# How long the phases before and after last, as a share of the one between them.
QUIET = 0.2
MAX_ANSWER = 60

# The strangers are a day old; each honest user has a hundred files.
ACCOUNTS = """
UPDATE users SET created_at = now() - interval '1 day'
WHERE id IN (SELECT md5('user' || n)::uuid FROM generate_series({first}, {last}) n);
"""
FILES = """
INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash, description)
SELECT gen_random_uuid(), md5('user' || u)::uuid, 'report-' || n || '.pdf', 'report-' || n || '.pdf', 'application/pdf',
       1024, 'files/none', repeat('0', 64), left(text.long, {length})
FROM generate_series({first}, {last}) u, generate_series(1, {files}) n,
     LATERAL (SELECT string_agg(md5(u || '-' || n || '-' || i), ' ') AS long
              FROM generate_series(1, {length} / 33 + 1) i) text;
"""
LEFT_BEHIND = """
SELECT pg_current_wal_lsn() - '0/0', (SELECT count(*) FROM audit_events), (SELECT count(*) FROM files),
       (SELECT count(*) FROM outbox)
"""


class Client:
    """A connection that is kept alive, of one user behind one address. Times are noted of requests that were answered
    with less than 500."""

    def __init__(self, port, address, token):
        self.port, self.address, self.token = port, address, token
        self.reader = self.writer = None

    async def request(self, method, path, body=b"", headers=(), token=None, header=None):
        """Sends a request and returns the status, or a header of the answer; 0 or nothing if the connection broke."""
        try:
            async with asyncio.timeout(MAX_ANSWER):
                token = self.token if token is None else token
                status, head = await self._request(method, path, body, headers, token)
                return status if header is None else head.split(f"{header}: ", 1)[1].split("\r\n", 1)[0]
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            self.close()
            return 0 if header is None else ""

    async def _request(self, method, path, body, headers, token):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        lines = [f"{method} /api/v1{path} HTTP/1.1", "Host: 127.0.0.1", f"X-Forwarded-For: {self.address}"]
        lines += [f"Authorization: Bearer {token}"] if token else []
        lines += [f"Content-Length: {len(body)}", *headers, "", ""]
        self.writer.write("\r\n".join(lines).encode() + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if "transfer-encoding: chunked" in head:
            while size := int(await self.reader.readline(), 16):
                await self.reader.readexactly(size + 2)
            await self.reader.readline()
        elif "content-length: " in head:
            await self.reader.readexactly(int(head.split("content-length: ", 1)[1].split("\r\n", 1)[0]))
        if "connection: close" in head:
            self.close()
        return int(head.split(" ", 2)[1]), head

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None


def json_body(**fields):
    return json.dumps(fields).encode()


def form(content):
    """The body of an upload and its header."""
    boundary = uuid.uuid4().hex
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
    body = f"{head}Content-Type: text/plain\r\n\r\n{content}\r\n--{boundary}--\r\n".encode()
    return body, [f"Content-Type: multipart/form-data; boundary={boundary}"]


async def honest_user(client, number, times):
    """What a user does all day, until it is cancelled. Appends times in seconds, by kind of request."""
    randomness = random.Random(number)
    credentials = json_body(username=f"user{number}", password=seed.PASSWORD)
    kinds = {
        "account": lambda: client.request("GET", "/auth/me"),
        "list": lambda: client.request("GET", "/uploads"),
        "search": lambda: client.request("GET", "/uploads?search=abc"),
        "upload": lambda: client.request("POST", "/uploads", *form("an honest file")),
        "sign-in": lambda: client.request("POST", "/auth/login", credentials, token=""),
    }
    await asyncio.sleep(randomness.random() * HONEST_PAUSE)
    while True:
        kind = randomness.choices(list(kinds), weights=[60, 25, 5, 7, 3])[0]
        began = time.perf_counter()
        status = await kinds[kind]()
        times.append((kind, time.perf_counter() - began, status))
        await asyncio.sleep(HONEST_PAUSE)


async def stranger(client, number, statuses):
    """One of many accounts that do whatever costs most, until it is cancelled."""
    await asyncio.sleep(random.Random(number).random() * STRANGER_PAUSE)
    mailbox = f"victim+{number}"
    wrong = json_body(current_password="a wrong password", new_password="battery staple")
    worst = [
        ("upload", lambda n: client.request("POST", "/uploads", *form(str(n)))),
        ("rename", lambda n: client.request("PUT", "/users/me", json_body(name=f"Name {n}"))),
        ("password", lambda n: client.request("POST", "/users/change-password", wrong)),
        ("search", lambda n: client.request("GET", f"/uploads?search=nothing{n}")),
        ("mail", lambda n: client.request("PUT", "/users/me", json_body(email=f"{mailbox}{n % 4}@example.com"))),
        ("reset", lambda n: client.request(
            "POST", "/auth/request-password-reset", json_body(email=f"{mailbox}{n % 4}@example.com"), token="")),
        ("token", lambda n: client.request("POST", "/auth/tokens", json_body(name=f"token {n}"))),
        ("refused", lambda n: client.request("GET", "/users")),
        ("sign-in", lambda n: client.request(
            "POST", "/auth/login", json_body(username="user1", password="wrong"), token="")),
        ("export", lambda n: client.request("GET", "/users/export-full")),
    ]
    for n in range(number, 1 << 30):
        kind, send = worst[n % len(worst)]
        statuses[kind, await send(n)] += 1
        await asyncio.sleep(STRANGER_PAUSE)


async def mail_server(received):
    """Accepts all mail and counts it by recipient. Returns the server."""

    async def serve(reader, writer):
        writer.write(b"220 ready\r\n")
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                word = line.upper()
                if word.startswith(b"RCPT TO:"):
                    received[line.split(b"<", 1)[1].split(b">", 1)[0].decode()] += 1
                if word.startswith(b"DATA"):
                    writer.write(b"354 go on\r\n")
                    await reader.readuntil(b"\r\n.\r\n")
                writer.write(b"250 ok\r\n")
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


class Experiment(Service):
    """The service with the limits of production, and a database of its own."""

    def __init__(self, binary, postgres, directory):
        super().__init__(binary, postgres, directory, "abuse")
        self.mail_port = 1

    def environment(self, port):
        settings = super().environment(port)
        return {
            **{name: text for name, text in settings.items() if "QUOTA" not in name},
            "CLOAKROOM_RATE_LIMIT_ENABLED": "true",
            "CLOAKROOM_TRUSTED_PROXIES": "127.0.0.1",
            "CLOAKROOM_EXPORT_REQUIRE_ADMIN": "false",
            "CLOAKROOM_SMTP_URL": f"smtp://127.0.0.1:{self.mail_port}",
            "CLOAKROOM_MAIL_FROM": "noreply@example.com",
            "CLOAKROOM_PASSWORD_RESET_URL": "https://example.com/reset?token={token}",
        }

    def fill(self, step):
        self.postgres.drop(self.database)
        seed.fill(self, 1000, 0, step)
        last = FIRST_STRANGER + STRANGERS - 1
        self.postgres.sql(ACCOUNTS.format(first=FIRST_STRANGER, last=last), self.database)
        step(f"filling in {SEARCHERS * SEARCHED_FILES:,} files with long descriptions")
        many = {"first": FIRST_STRANGER, "last": FIRST_STRANGER + SEARCHERS - 1, "files": SEARCHED_FILES}
        self.postgres.sql(FILES.format(**many, length=DESCRIPTION), self.database)
        few = {"first": FIRST_HONEST, "last": FIRST_HONEST + HONEST - 1, "files": 100}
        self.postgres.sql(FILES.format(**few, length=40), self.database)
        self.postgres.sql("VACUUM ANALYZE", self.database)

    def left_behind(self):
        row = self.postgres.sql(LEFT_BEHIND, self.database)
        return [float(word) for word in row.split("|")]


async def phases(experiment, server, seconds, step):
    """Runs the three phases. Returns the times of honest requests by phase, and how the strangers were answered."""
    port = int(server.url.rsplit(":", 1)[1])
    times = {"before": [], "during": [], "after": []}
    statuses = collections.Counter()
    for phase, length in (("before", QUIET * seconds), ("during", seconds), ("after", QUIET * seconds)):
        step(f"{phase}: {length:.0f} s")
        tasks = []
        for i in range(HONEST):
            client = Client(port, f"198.51.100.{i + 1}", server.tokens[FIRST_HONEST + i - 1])
            tasks.append(asyncio.create_task(honest_user(client, FIRST_HONEST + i, times[phase])))
        for i in range(STRANGERS if phase == "during" else 0):
            client = Client(port, STRANGERS_ADDRESS, server.tokens[FIRST_STRANGER + i - 1])
            tasks.append(asyncio.create_task(stranger(client, FIRST_STRANGER + i, statuses)))
        await asyncio.sleep(length)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return times, statuses


def milliseconds(values, share):
    return f"{statistics.quantiles(values, n=1000)[round(share * 1000) - 1] * 1000:.0f}" if len(values) > 1 else "-"


def table(times):
    """Honest requests in each phase, as Markdown."""
    heads = ["honest users", "requests", "not served", "p50, ms", "p99, ms", "sign-in p50, ms", "longest, ms"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for phase, found in times.items():
        fast = [seconds for kind, seconds, _ in found if kind != "sign-in"]
        signed_in = [seconds for kind, seconds, _ in found if kind == "sign-in"]
        failed = sum(status == 0 or status >= 400 for *_, status in found)
        longest = max((seconds for _, seconds, _ in found), default=0) * 1000
        cells = [phase, len(found), failed, milliseconds(fast, 0.5), milliseconds(fast, 0.99)]
        lines.append("| " + " | ".join(map(str, [*cells, milliseconds(signed_in, 0.5), f"{longest:.0f}"])) + " |")
    return "\n".join(lines)


def run(binary, postgres, directory, minutes, step):
    """Runs the experiment and returns its report in Markdown."""
    return asyncio.run(_run(Experiment(binary, postgres, directory), minutes * 60, step))


async def _run(experiment, seconds, step):
    experiment.fill(step)
    received = collections.Counter()
    mail = await mail_server(received)
    experiment.mail_port = mail.sockets[0].getsockname()[1]
    async with mail:
        before = experiment.left_behind()
        # Starting and stopping wait for the service, which answers nobody else meanwhile.
        with experiment.running() as server:
            processes.forget_peak(server.pid)
            times, statuses = await phases(experiment, server, seconds, step)
            peak = processes.peak(server.pid)
        after = experiment.left_behind()
    wal, events, files, waiting = (new - old for old, new in zip(before, after))
    tally = collections.Counter()
    for (_, status), count in statuses.items():
        tally[status] += count
    mailboxes = collections.Counter()
    for address, count in received.items():
        mailboxes[hashlib.sha256(address.split("+")[0].encode()).hexdigest()[:8]] += count
    most = max(mailboxes.values(), default=0)
    answers = ", ".join(f"{status}: {count:,}" for status, count in sorted(tally.items()))
    return (
        f"{table(times)}\n\nThe strangers were answered {answers}. They left {events:,.0f} audit events, {files:,.0f} "
        f"files, {wal / 2**20:,.0f} MiB of WAL, {waiting:.0f} mails that wait, {sum(received.values())} mails sent, "
        f"{most} of them to one mailbox. The service took at most {peak:.0f} MiB."
    )
