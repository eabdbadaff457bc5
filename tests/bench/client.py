"""HTTP for the parts of the benchmark whose speed does not matter, and the bodies of uploads."""

import hashlib
import http.client
import json
import urllib.parse

BOUNDARY = "cloakroom-benchmark-7d1f0c"
MULTIPART = "multipart/form-data; boundary=" + BOUNDARY
# How long an answer may take, in seconds.
MAX_ANSWER = 120
# What a failed request raises.
ERRORS = (OSError, RuntimeError, http.client.HTTPException)


def address(url):
    """Host and port of a URL."""
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port or 80


def call(url, method, path, body=None, token=None, media_type="application/json"):
    """Sends a request on a connection of its own. Returns the body of the answer, decoded if it is JSON."""
    connection = http.client.HTTPConnection(*address(url), timeout=MAX_ANSWER)
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = media_type
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path} was answered {response.status}: {content[:300]!r}")
        is_json = (response.getheader("Content-Type") or "").startswith("application/json")
        return json.loads(content) if is_json else content
    finally:
        connection.close()


def file_content(size):
    """Bytes that begin like a PDF and cannot be compressed."""
    head = b"%PDF-1.7\n"
    return head + hashlib.shake_128(b"cloakroom").digest(size - len(head))


def upload_form(size):
    """The body of an upload of `size` bytes, of the media type `MULTIPART`."""
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="report.pdf"\r\n'
        "Content-Type: application/pdf\r\n\r\n"
    )
    return head.encode() + file_content(size) + f"\r\n--{BOUNDARY}--\r\n".encode()
