"""Loads: requests in closed loops, so a connection sends its next request when the last one is answered."""

import pathlib
import socket
import subprocess
import threading
import time
from dataclasses import dataclass

from client import ERRORS, MULTIPART, address, call

SCRIPT = pathlib.Path(__file__).with_name("load.lua")
# Read from a socket at once, in bytes.
MAX_READ = 1 << 20
# How long any answer may take, in seconds.
MAX_ANSWER = 60
# An export of fewer bytes does not have the thousand users that there are at least.
MIN_EXPORT = 100_000


@dataclass
class Result:
    """What a load has measured."""

    requests: int
    # Requests a second.
    rate: float
    # Latencies in milliseconds.
    p50: float
    p99: float


def wrk(server, connections, seconds, path, tokens, directory, form=None):
    """Sends requests with wrk, GET or uploads of a form. `tokens` are used in turn; `directory` is for its files."""
    method = "GET" if form is None else "POST"
    more = "" if form is None else form_headers(form)
    requests = [(head(server.url, path, token, more, method), "") for token in tokens]
    return send(server.url, connections, seconds, requests, form or b"", directory)


def form_headers(form):
    """Headers of an upload, as `head` takes them."""
    return f"Content-Type: {MULTIPART}\r\nContent-Length: {len(form)}\r\n"


def send(url, connections, seconds, requests, body, directory):
    """Sends requests with wrk, in turn. Each is its head, and what takes the place of as many `#` in the body of all,
    which may be nothing."""
    (directory / "requests").write_bytes(b"".join(first + number.encode() + b"\n" for first, number in requests))
    (directory / "body").write_bytes(body)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", f"--timeout={MAX_ANSWER}s"]
    command += ["-s", str(SCRIPT), url, "--", str(directory / "requests"), str(directory / "body")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT")), None)
    if done.returncode or not line:
        raise RuntimeError(f"wrk failed: {done.stderr or done.stdout}")
    count, microseconds, failed, p50, p99 = map(float, line.split()[1:])
    if failed or not count:
        what = requests[0][0].split(b" HTTP")[0].decode()
        raise RuntimeError(f"{what}: {failed:.0f} of {count:.0f} requests failed")
    return Result(int(count), count / microseconds * 1e6, p50 / 1000, p99 / 1000)


def in_threads(count, loop):
    """Runs `loop(latencies)` in threads, which append a latency in seconds for each request. Returns the result."""
    latencies, errors = [], []

    def run():
        try:
            loop(latencies)
        except ERRORS as error:
            errors.append(error)

    began = time.perf_counter()
    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - began
    if errors:
        raise errors[0]
    latencies.sort()
    p50, p99 = (latencies[int(len(latencies) * share)] * 1000 for share in (0.5, 0.99))
    return Result(len(latencies), len(latencies) / elapsed, p50, p99)


def sign_ins(server, loops, seconds):
    """Signs in with a password."""
    end = time.perf_counter() + seconds

    def loop(latencies):
        while (began := time.perf_counter()) < end or not latencies:
            call(server.url, "POST", "/api/v1/auth/login", server.login)
            latencies.append(time.perf_counter() - began)

    return in_threads(loops, loop)


def downloads(url, path, token, connections, seconds, more=""):
    """Downloads a file again and again, with `more` headers. Returns MiB/s.

    The kernel drops the contents (MSG_TRUNC of tcp(7)), so the client takes next to nothing of the cores that it shares
    with the server.
    """
    end = time.perf_counter() + seconds
    sizes = []

    def loop(latencies):
        with connect(url) as connection:
            while (began := time.perf_counter()) < end or not latencies:
                connection.sendall(head(url, path, token, more))
                sizes.append(skip_answer(connection))
                latencies.append(time.perf_counter() - began)

    return in_threads(connections, loop).rate * sizes[0] / 2**20


def connect(url):
    connection = socket.create_connection(address(url), timeout=MAX_ANSWER)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def head(url, path, token, more="", method="GET"):
    """The head of a request, with its empty line."""
    host, port = address(url)
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{authorization}{more}\r\n".encode()


def read_head(connection):
    """Reads the head of an answer, which must be a 200. Returns its headers and what was read beyond it."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(4096)
        if not part:
            raise RuntimeError("the connection was closed before the answer")
        received += part
    lines, rest = received.split(b"\r\n\r\n", 1)
    if b" 200" not in lines.split(b"\r\n")[0]:
        raise RuntimeError(f"a download was answered {lines[:80]!r}")
    headers = (line.lower().split(b":", 1) for line in lines.split(b"\r\n")[1:])
    return {name: value.strip() for name, value in headers}, rest


def skip_answer(connection):
    """Reads an answer whose length is known and drops its body. Returns the length in bytes."""
    headers, rest = read_head(connection)
    size = int(headers[b"content-length"])
    left = size - len(rest)
    buffer = bytearray(MAX_READ)
    while left > 0:
        received = connection.recv_into(buffer, min(left, MAX_READ), socket.MSG_TRUNC)
        if not received:
            raise RuntimeError("a download ended early")
        left -= received
    return size


def export(server, path, token):
    """Reads an export to its end. Returns how long that took, in seconds."""
    began = time.perf_counter()
    with connect(server.url) as connection:
        connection.sendall(head(server.url, path, token, "Connection: close\r\n"))
        _, part = read_head(connection)
        size, last = len(part), part[-5:]
        while part := connection.recv(MAX_READ):
            size += len(part)
            last = (last + part[-5:])[-5:]
    seconds = time.perf_counter() - began
    if last != b"0\r\n\r\n" or size < MIN_EXPORT:
        raise RuntimeError(f"an export ended after {size:,} bytes")
    return seconds
