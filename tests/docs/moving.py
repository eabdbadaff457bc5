"""Moves in from other services by the lines of scripts/IMPORT.md, and compares users and files with what was there.

Usage: moving.py URL DATABASE, with a command `cloakroom` that has the settings of the service at URL; DATABASE is a URL
of the server, on which the database of another implementation of the API is made.
"""

import contextlib
import hashlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

import bcrypt
import requests

PAGE = pathlib.Path(__file__).parents[2] / "scripts/IMPORT.md"


def type_lines(heading, directory, **environment):
    """Types the lines of a section of the page, as a shell in this directory."""
    section = PAGE.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = "\n".join(re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL))
    command = ["bash", "-euo", "pipefail", "-c", lines]
    subprocess.run(command, cwd=directory, env={**os.environ, **environment}, check=True)


def files_of(api, username, password):
    """Signs in, and returns the folder, name and content of each file of the user."""
    account = {"username": username, "password": password}
    response = requests.post(f"{api}/auth/login", json=account, timeout=60)
    assert response.status_code == 200, (username, response.text)
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {response.json()['access_token']}"
    items = session.get(f"{api}/uploads?size=100", timeout=30).json()["items"]
    return sorted((item["folder"], item["filename"], item["file_hash"]) for item in items)


def described(folder, name, content):
    """A file as `files_of` returns it."""
    return folder, name, f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextlib.contextmanager
def pocketbase(directory):
    """Runs PocketBase in a directory, and yields the URL of its API with a session of its administrator."""
    admin = {"identity": "admin@example.com", "password": "of-the-administrator"}
    create = ["pocketbase", "superuser", "create", *admin.values(), "--dir", "pb_data"]
    subprocess.run(create, cwd=directory, check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with subprocess.Popen(["pocketbase", "serve", "--dir", "pb_data", "--http", address], cwd=directory) as process:
        api, session = f"http://{address}/api", requests.Session()
        while True:
            with contextlib.suppress(requests.ConnectionError):
                path = f"{api}/collections/_superusers/auth-with-password"
                session.headers["Authorization"] = session.post(path, json=admin, timeout=30).json()["token"]
                break
            assert process.poll() is None, "PocketBase has ended"
            time.sleep(0.1)
        try:
            yield api, session
        finally:
            process.terminate()


def fill_pocketbase(api, session):
    """Makes 50 users with four files each. Returns the passwords and the files, by e-mail address."""
    def post(path, **arguments):
        response = session.post(f"{api}/{path}", timeout=60, **arguments)
        assert response.ok, response.text
        return response.json()

    users = session.get(f"{api}/collections/users", timeout=30).json()["id"]
    fields = [
        {"name": "owner", "type": "relation", "collectionId": users, "maxSelect": 1},
        {"name": "file", "type": "file", "maxSelect": 5},
    ]
    post("collections", json={"name": "documents", "type": "base", "fields": fields})
    moved = {}
    for number in range(50):
        email, password = f"Pocket.{number}@example.com", f"of user {number}, \u00fcml\u00e4ut"
        account = {"email": email, "password": password, "passwordConfirm": password, "name": f"User {number}"}
        owner = post("collections/users/records", json=account)["id"]
        contents = [f"{word} of {number}".encode() for word in ("first", "second", "third", "fourth")]
        names = ["Gr\u00fc\u00dfe & Co.txt", "a.b.txt", "with blank.txt", "plain.txt"]
        for pair in (slice(0, 2), slice(2, 4)):
            form = [("file", part) for part in zip(names[pair], contents[pair], strict=True)]
            post("collections/documents/records", data={"owner": owner}, files=form)
        expected = [described("/documents", *pair) for pair in zip(names, contents, strict=True)]
        moved[email] = (password, sorted(expected))
    return moved


def fill_other(old, directory):
    """Fills the tables of another implementation. Returns what `fill_pocketbase` returns."""
    (directory / "storage").mkdir()
    statements = [
        "CREATE TABLE users (id uuid, username text, email text, name text, password_hash text, role text,"
        " permissions text[], is_active boolean, is_deleted boolean, created_at timestamptz, last_login timestamptz)",
        "CREATE TABLE files (id uuid, user_id uuid, original_filename text, file_path text)",
    ]
    moved = {}
    for number in range(5):
        username, password = f"passlib_{number}", f"of passlib's user {number}"
        stored = bcrypt.hashpw(password.encode(), bcrypt.gensalt(12 - number)).decode()
        identifier = f"00000000-0000-4000-8000-{number:012}"
        statements.append(
            f"INSERT INTO users VALUES ('{identifier}', '{username}', '{username}@example.com', 'It''s, \"{number}\"',"
            f" '{stored}', 'user', '{{}}', true, {number == 4}, now() - interval '1 year', NULL)"
        )
        contents = [b"one", b"another"]
        for place, content in enumerate(contents):
            path = f"storage/{number}-{place}"
            (directory / path).write_bytes(content)
            statements.append(f"INSERT INTO files VALUES (gen_random_uuid(), '{identifier}', 'a b.txt', '{path}')")
        names = ["a b.txt.~1~", "a b.txt"]
        moved[username] = (password, sorted(described("/", *pair) for pair in zip(names, contents, strict=True)))
    subprocess.run(["psql", old, "-qv", "ON_ERROR_STOP=1", "-c", ";".join(statements)], check=True)
    del moved["passlib_4"]
    return moved


def main():
    url, database = sys.argv[1:]
    api = f"{url}/api/v1"
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        with pocketbase(directory) as (source, session):
            moved = fill_pocketbase(source, session)
        type_lines("From PocketBase", directory)
        subprocess.run(["psql", database, "-qc", "CREATE DATABASE other"], check=True)
        old = re.sub(r"/[^/?]*(\?|$)", r"/other\1", database)
        moved |= fill_other(old, directory)
        type_lines("From another implementation of this API", directory, OLD=old)
    for username, (password, expected) in moved.items():
        for _ in ("the hash as it came", "the hash made anew"):
            found = files_of(api, username, password)
            assert found == expected, (username, found, expected)
    wrong = {"username": next(iter(moved)), "password": "another one"}
    assert requests.post(f"{api}/auth/login", json=wrong, timeout=60).status_code == 401


main()
