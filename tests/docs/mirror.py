"""Keeps a copy of all files of an account in a directory, each under its id, and follows their changes.

Usage: mirror.py URL DIRECTORY, with an access token or a personal access token in the variable TOKEN. The directory
must hold nothing else. It runs until it is ended, and can be started again at any time.
"""

import os
import pathlib
import sys
import time

import requests

url, directory = f"{sys.argv[1]}/api/v1", pathlib.Path(sys.argv[2])
headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}


def get(path, **query):
    """The answer to a request, which is sent again as long as the service asks to wait."""
    while (answer := requests.get(url + path, query, headers=headers, timeout=60)).status_code in (429, 503):
        time.sleep(int(answer.headers["Retry-After"]))
    return answer


cursor, stale = None, set(directory.iterdir())
while True:
    answer = get("/changes", after=cursor, wait=30)
    if answer.status_code == 410:  # what happened meanwhile is not known any more, so it begins anew
        cursor, stale = None, set(directory.iterdir())
        continue
    answer.raise_for_status()
    for change in answer.json()["changes"]:
        copy = directory / change["file_id"]
        stale.discard(copy)
        if change["change"] == "deleted":
            copy.unlink(missing_ok=True)
        elif not copy.exists() or copy.stat().st_size != change["file"]["file_size"]:  # a content never changes
            if (content := get(f"/uploads/{copy.name}/download")).ok:  # else it is deleted, which a later change says
                copy.write_bytes(content.content)
    cursor = answer.json()["next"]
    if not answer.json()["more"]:
        while stale:
            stale.pop().unlink()
        time.sleep(int(answer.headers.get("Retry-After", 0)))
