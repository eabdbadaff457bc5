"""Clients that note what they were promised: every answer with its time, and what must be there afterwards."""

import base64
import hashlib
import http.client
import itertools
import json
import threading
import time
import uuid
from dataclasses import dataclass

from client import BOUNDARY, ERRORS, MULTIPART, address

PASSWORD = "a password of the test"
# A request that is not answered within this time counts as never answered, in seconds.
MAX_ANSWER = 30
# Pause after a request that was refused, in seconds. The service asks for a longer one.
PAUSE = 0.1
# The media type of bodies.
JSON = "application/json"


@dataclass
class Answer:
    """How a request was answered, and when, by time.monotonic. The status is 0 if there was no answer."""

    kind: str
    began: float
    ended: float
    status: int
    body: bytes = b""
    retry_after: str | None = None

    def json(self):
        return json.loads(self.body)

    @property
    def is_good(self):
        return 200 <= self.status < 300


class Client(threading.Thread):
    """Sends requests over one connection, one after the other, until the load is over."""

    kind = "readyz"

    def __init__(self, url, over):
        super().__init__(daemon=True)
        self.connection = self.connect(url)
        self.over = over
        self.answers = []
        self.error = None

    def connect(self, url):
        return http.client.HTTPConnection(*address(url), timeout=MAX_ANSWER)

    def run(self):
        try:
            while not self.over.is_set():
                if not self.step().is_good:
                    time.sleep(PAUSE)
        except Exception as error:  # noqa: BLE001 - reported by whoever joins this thread
            self.error = error

    def step(self):
        """Sends a request, notes what it has changed, and returns the answer."""
        return self.send(self.kind, "GET", "/readyz")

    def send(self, kind, method, path, body=None, token=None, media_type=JSON):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = media_type
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        answer = Answer(kind, time.monotonic(), 0, 0)
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            answer.body = response.read()
            answer.status, answer.retry_after = response.status, response.getheader("Retry-After")
        except ERRORS:
            self.connection.close()
        answer.ended = time.monotonic()
        self.answers.append(answer)
        return answer

    def api(self, kind, method, path, body=None, token=None, media_type=JSON):
        return self.send(kind, method, "/api/v1" + path, body, token, media_type)

    def must(self, *request, **options):
        """A request whose failure fails the test, before or after the load."""
        answer = self.api("", *request, **options)
        if not answer.is_good:
            raise RuntimeError(f"{request[0]} {request[1]} was answered {answer.status}: {answer.body[:300]!r}")
        return answer


class Session(Client):
    """A client with an account of its own, which is signed in."""

    def __init__(self, url, over):
        super().__init__(url, over)
        self.username = "u" + uuid.uuid4().hex[:20]
        self.credentials = {"username": self.username, "password": PASSWORD}
        self.must("POST", "/auth/register", {**self.credentials, "email": f"{self.username}@example.com"})
        self.tokens = self.must("POST", "/auth/login", self.credentials).json()
        self.access = self.tokens["access_token"]


class Reader(Session):
    """Reads its account, as every request that needs a token begins with."""

    kind = "read"

    def step(self):
        return self.api(self.kind, "GET", "/auth/me", token=self.access)


class SignIns(Session):
    """Signs in again and again. Each time is another session."""

    kind = "sign-in"

    def __init__(self, url, over):
        super().__init__(url, over)
        # Access tokens by the ids of their sessions.
        self.sessions = {session_of(self.access): self.access}
        self.unknown = 0

    def step(self):
        answer = self.api(self.kind, "POST", "/auth/login", self.credentials)
        if answer.is_good:
            access = answer.json()["access_token"]
            self.sessions[session_of(access)] = access
        else:
            self.unknown += 1
        return answer


class Refreshes(Session):
    """Uses one refresh token after the other. One whose use has not been answered is used again."""

    kind = "refresh"

    def step(self):
        answer = self.api(self.kind, "POST", "/auth/refresh", {"refresh_token": self.tokens["refresh_token"]})
        if answer.is_good:
            self.tokens = answer.json()
        return answer


class Uploads(Session):
    """Uploads files, each with another content, and deletes every fourth of them."""

    kind = "upload"

    def __init__(self, url, over):
        super().__init__(url, over)
        self.numbers = itertools.count()
        # SHA-256 of contents by the ids of their files.
        self.kept = {}
        self.deleted = set()
        # What was answered neither yes nor no: hashes of contents, and ids of files.
        self.unknown_uploads = set()
        self.unknown_deletions = set()

    def step(self):
        number = next(self.numbers)
        if number % 4 == 3 and self.kept:
            return self.delete_one(next(iter(self.kept)))
        content = f"{self.username} {number}".encode()
        content_hash = hashlib.sha256(content).hexdigest()
        answer = self.api(self.kind, "POST", "/uploads", form(content), self.access, MULTIPART)
        if answer.status == 201:
            self.kept[answer.json()["id"]] = content_hash
        else:
            self.unknown_uploads.add(content_hash)
        return answer

    def delete_one(self, file_id):
        answer = self.api("deletion", "DELETE", f"/uploads/{file_id}", token=self.access)
        del self.kept[file_id]
        (self.deleted if answer.is_good else self.unknown_deletions).add(file_id)
        return answer

    def listed(self):
        """Hashes of what the service lists, downloaded one by one, by the ids of the files."""
        found = {}
        for page in itertools.count(1):
            items = self.must("GET", f"/uploads?size=100&page={page}", token=self.access).json()["items"]
            for item in items:
                content = self.must("GET", f"/uploads/{item['id']}/download", token=self.access).body
                found[item["id"]] = hashlib.sha256(content).hexdigest()
            if not items:
                return found


class Mirror(Client):
    """Keeps a copy of the list of another client's files by following its changes, and begins anew when it must."""

    kind = "changes"
    # How long a request waits for changes, in seconds.
    wait = 2

    def __init__(self, url, over, owner):
        super().__init__(url, over)
        self.owner = owner
        self.begins = 0
        self.repeated = []
        self._begin()

    def _begin(self):
        # Hashes of contents by the ids of their files, and the changes that were told.
        self.files, self.told, self.after = {}, set(), ""
        self.begins += 1

    def step(self):
        path = f"/changes?limit=10&wait={self.wait}{self.after}"
        answer = self.api(self.kind, "GET", path, token=self.owner.access)
        if answer.status == 410:
            answer.kind = ""  # No failure: the cursor is of before a failover.
            self._begin()
        if answer.is_good:
            self._take(answer.json())
        return answer

    def _take(self, page):
        for change in page["changes"]:
            file_id, is_present = change["file_id"], change["change"] == "present"
            # Files of the owner are made once, never changed, and deleted once.
            if (file_id, is_present) in self.told:
                self.repeated.append(file_id)
            self.told.add((file_id, is_present))
            if is_present:
                self.files[file_id] = change["file"]["file_hash"].removeprefix("sha256:")
            else:
                self.files.pop(file_id, None)
        self.after = f"&after={page['next']}"

    def settle(self):
        """Follows until there is nothing left to tell."""
        self.wait = 0
        for _ in range(10_000):
            answer = self.step()
            if answer.status != 410 and (not answer.is_good or not answer.json()["changes"]):
                return


def session_of(access):
    """The id of the session in an access token (RFC 7519, 3)."""
    claims = access.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sid"]


def form(content):
    """The body of an upload."""
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="note.txt"\r\n'
        "Content-Type: text/plain\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()
