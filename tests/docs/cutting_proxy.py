"""A proxy before the service that loses answers: of each upload with an `Idempotency-Key`, the connection of the first
attempt ends once the service has begun its answer, before a byte of it has reached the client.

Usage: cutting_proxy.py URL; prints the URL of the proxy, and serves until it is ended
"""

import re
import socket
import sys
import threading
import urllib.parse

KEY = re.compile(rb"\r\nIdempotency-Key: *([^\r]+)\r\n", re.IGNORECASE)
lost: set[bytes] = set()


def pump(source: socket.socket, target: socket.socket, loses: bool) -> None:
    """Passes on what comes, or ends both connections when something comes and `loses` is true."""
    try:
        while (piece := source.recv(65536)) and not loses:
            target.sendall(piece)
        if loses:
            target.shutdown(socket.SHUT_RDWR)
            source.shutdown(socket.SHUT_RDWR)
        else:
            target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # One of them has gone.


def serve(client: socket.socket, service: tuple[str, int]) -> None:
    """Passes one connection on, whose requests have their head in one piece or two."""
    head = b""
    while b"\r\n\r\n" not in head and (piece := client.recv(65536)):
        head += piece
    key = KEY.search(head)
    loses = bool(key and key[1] not in lost)
    if key:
        lost.add(key[1])
    with client, socket.create_connection(service) as server:
        server.sendall(head)
        answers = threading.Thread(target=pump, args=(server, client, loses))
        answers.start()
        pump(client, server, False)
        answers.join()


def main() -> None:
    url = urllib.parse.urlsplit(sys.argv[1])
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, (url.hostname, url.port)), daemon=True).start()


if __name__ == "__main__":
    main()
