"""The flows of flows.jsonl by httpx, as its defaults send them.

Usage: client.py FLOWS URL ADMIN PASSWORD
"""

import json
import pathlib
import re
import sys
import uuid

import httpx


def send(client, step):
    method, path = step["request"].split(" ")
    headers = {"Authorization": f"Bearer {step['bearer']}"} if "bearer" in step else {}
    files = None
    if file := step.get("file"):
        files = {"file": (file["name"], file["content"].encode("latin-1") * file.get("times", 1))}
    return client.request(method, path, headers=headers, params=step.get("query"), json=step.get("json"),
                          data=step.get("form"), files=files)


def includes(value, part):
    """Whether the value has all of the part, members of members too."""
    if isinstance(part, dict):
        return all(name in value and includes(value[name], member) for name, member in part.items())
    return value == part


def main():
    flows, url, admin, password = sys.argv[1:]
    known = {"name": f"u{uuid.uuid4().hex[:8]}", "admin": admin, "password": password}
    with httpx.Client(base_url=f"{url}/api/v1/") as client:
        for line in pathlib.Path(flows).read_text(encoding="utf-8").splitlines():
            step = json.loads(re.sub(r"\{([a-z]+)\}", lambda match: known[match[1]], line))
            answer = send(client, step)
            told = f"httpx: {step['request']} {line}: {answer.status_code} {answer.text[:500]}"
            assert answer.status_code == step["status"], told
            assert includes(answer.json(), step["has"]) if "has" in step else True, told
            assert answer.content == step["text"].encode("latin-1") if "text" in step else True, told
            known |= {name: answer.json()[member] for name, member in step.get("keep", {}).items()}


if __name__ == "__main__":
    main()
