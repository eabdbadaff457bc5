"""Runs tus.mjs before a network that breaks, and compares what is stored with the file.

Usage: try_tus.py URL ADMIN PASSWORD TUS, with the username and the password of an administrator, and the path of a copy
of tus.mjs beside which its packages are installed
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import requests


class Network:
    """A port that leads to the service. After each number of bytes in `breaks`, the connection ends."""

    def __init__(self, url, breaks):
        service = urllib.parse.urlsplit(url)
        self._service, self.breaks, self._sent = (service.hostname, service.port), breaks, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, far = self._listener.accept()[0], socket.create_connection(self._service)
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(*ends, ends[0] is near), daemon=True).start()

    def _pass(self, source, target, is_sent):
        with source, target:
            try:
                while (piece := source.recv(65536)) and not (is_sent and self._has_broken(len(piece))):
                    target.sendall(piece)
                target.shutdown(socket.SHUT_RDWR)
                source.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # One of them has gone.

    def _has_broken(self, count):
        self._sent += count
        return bool(self.breaks and self._sent > self.breaks[0] and self.breaks.pop(0))


def main():
    url, username, password, program = sys.argv[1:]
    account = {"username": username, "password": password}
    token = requests.post(f"{url}/api/v1/auth/login", json=account, timeout=30).json()["access_token"]
    network = Network(url, [2_000_000, 5_000_000, 8_500_000])
    session = requests.Session()
    session.headers.update({"Authorization": f"Bearer {token}", "Tus-Resumable": "1.0.0"})

    def ask(path):
        return session.get(f"{url}{path}", timeout=30)

    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name, "plan.txt")
        content = b"".join(b"%07d\n" % number for number in range(1_250_000))
        path.write_bytes(content)
        command = ["node", program, network.url, str(path)]
        run = subprocess.run(command, env={**os.environ, "TOKEN": token}, capture_output=True, text=True, timeout=60)
        assert run.returncode == 0 and not network.breaks, f"{run} {network.breaks}"
        assert ask(f"{run.stdout.strip()}/download").content == content
    assert ask("/api/v1/uploads/partial").json() == {"uploads": []}


if __name__ == "__main__":
    main()
