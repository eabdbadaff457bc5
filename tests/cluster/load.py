"""Clients of a cluster. Each comes from an address of its own, so the balancer sends them to different processes."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import itertools
import os
import random
import ssl
import struct
import time

from client import MULTIPART, address
from clients import MAX_ANSWER, PASSWORD, Client, Mirror, Reader, Refreshes, Session, SignIns, Uploads, form

# Most bytes of one user's files together.
USER_QUOTA = 1_000_000
# The size of a file: so large that the store does not keep it beside the object's name.
FILE_SIZE = 20_000
# Most files that a client keeps.
MAX_FILES = 20
_numbers = itertools.count(2)


class Behind:
    """A client that speaks TLS with the balancer, from 127.0.0.N."""

    def connect(self, url):
        self.wrong = []
        trusted = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
        source = (f"127.0.0.{next(_numbers)}", 0)
        return http.client.HTTPSConnection(*address(url), timeout=MAX_ANSWER, source_address=source, context=trusted)

    def expect(self, is_right, text):
        if not is_right:
            self.wrong.append(text)


class Probe(Behind, Client):
    """Asks whether the service is ready."""


class Readers(Behind, Reader):
    pass


class Mirrors(Behind, Mirror):
    pass


class SigningIn(Behind, SignIns):
    """Signs in so slowly that it stays below the 1,000 live sessions of a user, whose oldest would end then."""

    def step(self):
        self.over.wait(0.5)
        return super().step()


class Refreshing(Behind, Refreshes):
    pass


class Files(Behind, Uploads):
    """Uploads, downloads and deletes files in turn."""

    def step(self):
        number = next(self.numbers)
        if self.kept and number % 3 == 1:
            return self.download(random.choice(list(self.kept)))
        if len(self.kept) > MAX_FILES or (self.kept and number % 7 == 6):
            return self.delete_one(next(iter(self.kept)))
        return self.upload()

    def upload(self):
        content = os.urandom(FILE_SIZE // 2).hex().encode()
        content_hash = hashlib.sha256(content).hexdigest()
        answer = self.api(self.kind, "POST", "/uploads", form(content), self.access, MULTIPART)
        if answer.status == 201:
            self.kept[answer.json()["id"]] = content_hash
        else:
            self.unknown_uploads.add(content_hash)
        return answer

    def download(self, file_id):
        answer = self.api("download", "GET", f"/uploads/{file_id}/download", token=self.access)
        is_right = hashlib.sha256(answer.body).hexdigest() == self.kept[file_id]
        self.expect(is_right or not answer.is_good, "a download has another content")
        answer.body = b""
        return answer


class Quota(Files):
    """Uploads until nothing more is taken, then goes on trying."""

    kind = "upload to a full account"

    def __init__(self, url, over, friend=None):
        super().__init__(url, over)
        if friend:
            self.username, self.access = friend.username, friend.access

    def step(self):
        time.sleep(0.1)
        answer = self.upload()
        if answer.status == 507:
            answer.status = 200  # As it should be.
        return answer


class Exports(Behind, Session):
    kind = "export"

    def step(self):
        time.sleep(0.5)
        answer = self.api(self.kind, "GET", "/users/export-simple", token=self.access)
        answer.body = b""
        return answer


class Links(Behind, Session):
    """Makes a link to a file, uses it, ends it, and uses it again."""

    kind = "link"

    def __init__(self, url, over):
        super().__init__(url, over)
        self.content = os.urandom(FILE_SIZE // 2).hex().encode()
        self.file = self.must("POST", "/uploads", form(self.content), self.access, MULTIPART).json()["id"]

    def step(self):
        time.sleep(0.1)
        links = f"/uploads/{self.file}/links"
        made = self.api(self.kind, "POST", links, {"expires_in_minutes": 60}, self.access)
        if not made.is_good:
            return made
        link = made.json()
        used = self.send("download by a link", "GET", link["url"])
        self.expect(not used.is_good or used.body == self.content, "a link gives another content")
        ended = self.api("end of a link", "DELETE", f"{links}/{link['id']}", token=self.access)
        if ended.is_good:
            self.expect(not self.send("", "GET", link["url"]).is_good, "a link works after its end")
        return ended if used.is_good else used


class SecondFactors(Behind, Session):
    """Signs in with recovery codes, each of which is good once."""

    kind = "sign-in with a code"

    def __init__(self, url, over):
        super().__init__(url, over)
        offer = self.must("POST", "/auth/second-factor", {"current_password": PASSWORD}, self.access).json()
        body = {"code": totp(offer["secret"])}
        confirmed = self.must("POST", "/auth/second-factor/confirm", body, self.access).json()
        self.codes = confirmed["recovery_codes"]

    def step(self):
        if not self.codes:
            time.sleep(1)
            return self.api("second factor", "GET", "/auth/second-factor", token=self.access)
        body = {**self.credentials, "code": self.codes.pop()}
        answer = self.api(self.kind, "POST", "/auth/login", body)
        if answer.is_good:
            again = self.api("", "POST", "/auth/login", body)
            self.expect(not again.is_good, "a recovery code was good twice")
        with contextlib.suppress(TimeoutError):
            self.over.wait(4)
        return answer


def totp(secret):
    """The code of this half minute (RFC 6238)."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    digest = hmac.digest(key, struct.pack(">Q", int(time.time()) // 30), "sha1")
    start = digest[-1] & 15
    return f"{(int.from_bytes(digest[start:start + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06}"


def clients(url, over):
    kinds = (Probe, Readers, Readers, SigningIn, SigningIn, Refreshing, Refreshing, *[Files] * 4, Exports, Links, Links)
    found = [kind(url, over) for kind in (*kinds, SecondFactors, SecondFactors)]
    owners = [client for client in found if isinstance(client, Files)]
    found += [Mirrors(url, over, owner) for owner in owners * 2]
    full = Quota(url, over)
    return [*found, full, Quota(url, over, full)]
