"""Runs the Python code that the document shows, and writes its TypeScript code to a module for samples.ts.

Usage: samples.py URL ADMIN PASSWORD FILE, with the username and the password of an administrator
"""

import pathlib
import sys
import tempfile

import requests

CONTENT = "A line of a file.\n" * 10_000


def samples(document, language):
    """The code in this language, of all operations that show some."""
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    shown = [sample for operation in operations for sample in operation.get("x-codeSamples", [])]
    return "\n\n".join(sample["source"] for sample in shown if sample["lang"] == language)


def run(code, url, token, directory):
    """Runs the functions that the code defines."""
    functions, headers = {}, {"Authorization": f"Bearer {token}"}
    exec(code, functions)  # it is the document's own

    original, copy = directory / "report.txt", directory / "copy.txt"
    original.write_text(CONTENT)
    files = [functions["upload"](url, token, str(original), "text/plain", "A sample") for _ in range(3)]
    assert all((file["filename"], file["description"]) == ("report.txt", "A sample") for file in files), files

    for beginning in ("", CONTENT[:70_000], CONTENT):
        copy.write_text(beginning)
        functions["download"](url, token, files[0]["id"], str(copy))
        assert copy.read_text() == CONTENT, f"after an interruption at {len(beginning)}"

    pages = functions["changes"](url, token)
    cursor = next(pages)["next"]
    requests.delete(f"{url}/api/v1/uploads/{files[0]['id']}", headers=headers, timeout=30).raise_for_status()
    for follow in (pages, functions["changes"](url, token, cursor)):
        (change,) = next(follow)["changes"]
        assert (change["file_id"], change["change"]) == (files[0]["id"], "deleted"), change

    events = functions["events"](url, token, action="file.upload", actor_id=files[0]["user_id"], limit=2)
    newest = [event["subject_id"] for event in events][:3]
    assert newest == [file["id"] for file in reversed(files)], newest


def main():
    url, username, password, module = sys.argv[1:]
    document = requests.get(f"{url}/openapi.json", timeout=30).json()
    account = {"username": username, "password": password}
    token = requests.post(f"{url}/api/v1/auth/login", json=account, timeout=30).json()["access_token"]
    with tempfile.TemporaryDirectory() as directory:
        run(samples(document, "Python"), url, token, pathlib.Path(directory))
    typescript = samples(document, "TypeScript")
    exports = "export { changes, download, events, upload };"
    pathlib.Path(module).write_text(f"{typescript}\n\n{exports}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
