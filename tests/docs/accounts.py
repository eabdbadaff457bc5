"""Signs in as the accounts that schemathesis uses, and writes their tokens for it.

Usage: accounts.py URL ADMIN_EMAIL PASSWORD FILE

Registers the users `user` and `other` with the given password. The administrator must exist and have the same
password. FILE is an authentication document as `[auth.wfc]` of schemathesis.toml reads it (Web Fuzzing Commons). It has
tokens instead of passwords, because the tests change the names and addresses of the accounts.
"""

import json
import sys
import urllib.request


def post(url, body):
    with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=30) as response:
        return json.load(response)


def main():
    url, admin, password, file = sys.argv[1:]
    tokens = {}
    for name in ("user", "other"):
        body = {"email": f"{name}@example.com", "password": password}
        tokens[name] = post(f"{url}/api/v1/auth/register", body)["access_token"]
        # A second session, which the tests may end.
        post(f"{url}/api/v1/auth/login", body)
    body = {"email": admin, "password": password}
    tokens["admin"] = post(f"{url}/api/v1/auth/login", body)["access_token"]
    post(f"{url}/api/v1/auth/login", body)
    entries = [
        {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {token}"}]}
        for name, token in tokens.items()
    ]
    with open(file, "w", encoding="utf-8") as document:
        json.dump({"auth": entries}, document)


if __name__ == "__main__":
    main()
