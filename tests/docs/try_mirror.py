"""Runs mirror.py beside changes of an account's files, and compares its copies with what the account has.

Usage: try_mirror.py URL ADMIN PASSWORD, with the username and the password of an administrator
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import requests

MIRROR = pathlib.Path(__file__).with_name("mirror.py")


@contextlib.contextmanager
def running(command, environment):
    """Runs a command until the block ends, also with an error."""
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


def main():
    url, username, password = sys.argv[1:]
    api = f"{url}/api/v1"
    account = {"username": username, "password": password}
    token = requests.post(f"{api}/auth/login", json=account, timeout=30).json()["access_token"]
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {token}"

    def upload(content):
        form = {"file": ("a.txt", content, "text/plain")}
        return session.post(f"{api}/uploads", files=form, timeout=30).json()["id"]

    def delete(file):
        session.delete(f"{api}/uploads/{file}", timeout=30).raise_for_status()

    def await_copies():
        """Waits until there is a copy of each of the account's files, and of no other."""
        for _ in range(1200):
            items = session.get(f"{api}/uploads?size=100", timeout=30).json()["items"]
            expected = {item["id"]: item["file_size"] for item in items}
            try:
                found = {path.name: path.stat().st_size for path in directory.iterdir()}
            except FileNotFoundError:  # It was removed since its name was read.
                continue
            if found == expected:
                return
            time.sleep(0.1)
        raise AssertionError(f"{found} is not {expected}")

    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        command = [sys.executable, MIRROR, url, name]
        environment = {**os.environ, "TOKEN": token}
        first, second = upload("first"), upload("the second")
        (directory / "no-file-of-the-account").touch()
        with running(command, environment) as mirror:
            await_copies()
            delete(first)
            upload("a third")
            await_copies()
            session.post(f"{api}/uploads/{first}/restore", timeout=30).raise_for_status()
            await_copies()
            assert (directory / first).read_text() == "first"
            assert mirror.poll() is None, "it has ended"
        # What happened while it did not run.
        delete(second)
        (directory / first).write_text("a part")
        with running(command, environment):
            await_copies()
        assert (directory / first).read_text() == "first"


if __name__ == "__main__":
    main()
