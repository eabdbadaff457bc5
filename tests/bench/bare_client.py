"""A client of a store that costs next to nothing, so that it shows the most that the store gives."""

import hashlib
import hmac
import time
import urllib.request

import load
from client import MAX_ANSWER, address, file_content
from garage import BUCKET, REGION
from workloads import MIB

# Digits of the number in each upload, which stands at the end of a file, and what it takes the place of.
DIGITS = 32
PLACE = b"#" * DIGITS


def with_place(content):
    """The content with the place of a number at its end."""
    return content[:-DIGITS] + PLACE


class BareClient:
    """Requests to the first node of a store, each signed beforehand (AWS Signature Version 4)."""

    def __init__(self, garage):
        self.key, self.secret = garage.key, garage.secret
        self.url = f"http://127.0.0.1:{garage.nodes[0].port}"
        self.content = with_place(file_content(MIB))

    def path(self, number):
        return f"/{BUCKET}/bare/{number}"

    def headers(self, method, number, digest):
        """The headers for the object of a number, which sign the SHA-256 of the body, in hexadecimal."""
        host, port = address(self.url)
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        names = "host;x-amz-content-sha256;x-amz-date"
        own = f"x-amz-content-sha256:{digest}\nx-amz-date:{date}\n"
        canonical = f"{method}\n{self.path(number)}\n\nhost:{host}:{port}\n{own}\n{names}\n{digest}"
        scope = f"{date[:8]}/{REGION}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = ("AWS4" + self.secret).encode()
        for part in (*scope.split("/"), text):
            signature = hmac.digest(signature, part.encode(), "sha256")
        authorization = f"AWS4-HMAC-SHA256 Credential={self.key}/{scope}, SignedHeaders={names}, Signature="
        return own.replace("\n", "\r\n") + f"Authorization: {authorization}{signature.hex()}\r\n"

    def puts(self, numbers):
        """Uploads of 1 MiB, as `load.send` takes them: a new object each."""
        begun = hashlib.sha256(self.content[:-DIGITS])
        for number in numbers:
            digest = begun.copy()
            digest.update(number.encode())
            more = self.headers("PUT", number, digest.hexdigest()) + f"Content-Length: {MIB}\r\n"
            yield load.head(self.url, self.path(number), None, more, "PUT"), number

    def download(self, connections, seconds):
        """Downloads an object again and again. Returns MiB/s."""
        number, body = "0" * DIGITS, self.content
        self.call("PUT", number, body)
        if self.call("GET", number) != body:
            raise RuntimeError("an object is not what was uploaded")
        more = self.headers("GET", number, hashlib.sha256().hexdigest())
        return load.downloads(self.url, self.path(number), None, connections, seconds, more)

    def call(self, method, number, body=None):
        """Sends a request on a connection of its own. Returns the body of the answer."""
        more = self.headers(method, number, hashlib.sha256(body or b"").hexdigest())
        headers = dict(line.split(":", 1) for line in more.splitlines())
        request = urllib.request.Request(self.url + self.path(number), body, headers, method=method)
        with urllib.request.urlopen(request, timeout=MAX_ANSWER) as answer:
            return answer.read()
