#!/usr/bin/env python3
"""Usage: make.py CLOAKROOM DATABASE_URL

Makes the files beside this script with an old release, whose binary is CLOAKROOM: `backup/`, a backup of data of every
kind; `facts.json`, ids and tokens that the test `upgrade` needs. The database must be empty, and a superuser's, on
PostgreSQL 15. The files are kept, because they need that release.

The API of the old release makes nearly everything. SQL makes what only older ones stored, what would not wait for the
dump, and lifetimes that last as long as the test is run.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

BINARY, URL = sys.argv[1:]
HERE = Path(__file__).resolve().parent
PASSWORD = "correct horse"
SETTINGS = os.environ | {
    "CLOAKROOM_DATABASE_URL": URL,
    "CLOAKROOM_LISTEN": "127.0.0.1:0",
    "CLOAKROOM_JWT_SECRET": "a-secret-for-tests-0123456789abcdef-0123456789abcdef-0123456789abcdef",
    "CLOAKROOM_SCRYPT": "4,8,1",
    "CLOAKROOM_RATE_LIMIT_ENABLED": "false",
}
ADDRESSES = {  # of all accounts, by username
    "root": "root@example.com",
    "ann": "ann@example.com",
    "gone": "gone@example.com",
    "plain": "a@example.com",
    "wide": "a@\uff45xample.com",
    "first": "b@\uff45xample.com",
    "second": "b@ex\uff41mple.com",
    "alone": "c@b\xfccher.example",
    "odd": '"d\te"@example.com',
}
SQL = r"""
UPDATE users SET role = 'admin' WHERE username = 'root';
UPDATE sessions SET created_at = '2096-01-01', expires_at = '2096-02-01';
UPDATE personal_tokens SET expires_at = '2096-01-01';
UPDATE files SET filename = E'a\tb\u202egpj.exe', original_filename = E'a\tb\u202egpj.exe', description = E'bell \u0007'
    WHERE filename = 'odd.txt';
UPDATE files SET content_type = 'image/jpg' WHERE filename = 'picture.jpg';
UPDATE users SET is_deleted = true, username = NULL, email = NULL, name = NULL, password_hash = NULL,
    permissions = '{}', credentials_version = credentials_version + 1, sessions_ended_at = now()
    WHERE username = 'gone';
INSERT INTO pending_removals (user_id) SELECT id FROM users WHERE is_deleted;
DELETE FROM outbox;
DELETE FROM password_reset_messages;
INSERT INTO outbox (kind, user_id) SELECT 'password_reset', id FROM users WHERE username = 'first';
INSERT INTO outbox (kind, user_id, due_at) SELECT 'password_changed', id, 'infinity' FROM users WHERE username = 'ann';
INSERT INTO outbox (kind, user_id, failed_at, error)
    SELECT 'password_changed', id, '2096-01-01', 'refused' FROM users WHERE username = 'ann';
INSERT INTO password_reset_requests (email) VALUES (E'A@\uff45xample.com'), ('nobody@example.com');
"""


class Service:
    """The old release, serving until the end of a `with` block."""

    def __init__(self, data):
        settings = SETTINGS | {"CLOAKROOM_DATA_DIR": data}
        self.process = subprocess.Popen([BINARY], env=settings, stderr=subprocess.PIPE, text=True)
        self.address = self.logged("listening on ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()

    def logged(self, text):
        """The last word of the next line of the log that has the text."""
        return next(line for line in self.process.stderr if text in line).split()[-1]

    def ask(self, method, path, token=None, body=None, content_type="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        headers = {"Content-Type": content_type} | ({"Authorization": f"Bearer {token}"} if token else {})
        asked = urllib.request.Request(f"{self.address}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(asked) as answer:
            return json.loads(answer.read() or "null")

    def upload(self, token, name, content):
        head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        kind = "image/jpeg" if name.endswith(".jpg") else "text/plain"
        body = f"{head}Content-Type: {kind}\r\n\r\n{content}\r\n--x--\r\n".encode()
        return self.ask("POST", "/uploads", token, body, "multipart/form-data; boundary=x")["id"]

    def sign_in(self, username):
        return self.ask("POST", "/auth/login", body={"username": username, "password": PASSWORD})


def claims(token):
    """What a token says. The token itself would expire before the test is run."""
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def make(api):
    """Makes accounts, sessions, tokens, files and events, and returns what the test needs to know of them."""
    ids = {}
    for username, email in ADDRESSES.items():
        body = {"username": username, "email": email, "password": PASSWORD, "name": f"{username}\t\u202ex\u0007"}
        ids[username] = api.ask("POST", "/auth/register", body=body)["id"]
    ended = api.sign_in("ann")
    api.ask("POST", "/auth/logout?scope=local", ended["access_token"])
    ann = api.sign_in("ann")
    rotated = api.ask("POST", "/auth/refresh", body={"refresh_token": ann["refresh_token"]})
    token = rotated["access_token"]
    personal = api.ask("POST", "/auth/tokens", token, {"name": "a\tb\u202ec", "expires_in_days": 365})
    files = {name: api.upload(token, name, f"content of {name}") for name in ("a.txt", "odd.txt", "picture.jpg")}
    api.upload(api.sign_in("gone")["access_token"], "gone.txt", "of a deleted user")
    api.ask("POST", "/auth/request-password-reset", body={"email": ADDRESSES["alone"]})
    body = {"token": api.logged("password reset token"), "new_password": PASSWORD}
    api.ask("POST", "/auth/reset-password", body=body)
    return {"users": ids, "files": files, "personal_token": personal["token"], "tokens": {
        "access": claims(token), "refresh": claims(rotated["refresh_token"]),
        "rotated": claims(ann["refresh_token"]), "ended": claims(ended["access_token"])}}


def main():
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as backups:
        with Service(data) as api:
            facts = make(api)
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", URL], input=SQL, text=True, check=True)
        (HERE / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
        subprocess.run([BINARY, "backup", backups], env=SETTINGS | {"CLOAKROOM_DATA_DIR": data}, check=True)
        shutil.rmtree(HERE / "backup", ignore_errors=True)
        shutil.copytree(next(Path(backups).glob("*Z")), HERE / "backup")


main()
