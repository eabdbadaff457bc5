#!/usr/bin/env python3
"""Usage: browser.py URL [DIRECTORY]

Opens the pages about the API in a real browser, as their readers do, and fails with the reason if one of them lacks an
operation, if signing in, an endpoint, an upload or a download does not work there, if anything is requested from
another host, or if an error is on the console.

URL is that of a running service, such as http://127.0.0.1:8000, at which a new account is registered. Screenshots go
to DIRECTORY (target/docs). Needs Debian's packages chromium and chromium-driver.
"""

import json
import pathlib
import secrets
import shutil
import signal
import sys
import tempfile
import time
import urllib.request

from webdriver import ELEMENT, MAX_WAIT, Browser

PASSWORD = "correct horse"
# A picture of one pixel: bytes that are no text, so that they show whether upload and download change any.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154"
    "789c636060606000000005000157a2b5c10000000049454e44ae426082")
METHODS = ("get", "put", "post", "delete", "patch")


def check(condition, message):
    """Fails unless the condition holds. `assert` would check nothing under `python -O`."""
    if not condition:
        raise AssertionError(message)


def fetch(url, body=None):
    """The JSON that a request is answered with: GET, or POST where there is a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=MAX_WAIT) as response:
        return json.load(response)


def operations_of(document):
    """Method, path and id of every operation."""
    return [(method, path, item[method]["operationId"])
            for path, item in document["paths"].items() for method in METHODS if method in item]


class SwaggerUi:
    """The page `/docs`, open in a browser."""

    def __init__(self, browser):
        self.browser = browser

    def operation(self, method, path):
        """The block of an operation, as a JavaScript expression."""
        found = f".opblock-{method} .opblock-summary-path[data-path={json.dumps(path)}]"
        return f"document.querySelector({json.dumps(found)})?.closest('.opblock')"

    def open_operation(self, method, path):
        """Opens the block of an operation and waits until it can be tried out."""
        block, name = self.operation(method, path), f"{method.upper()} {path}"
        self.browser.wait(f"{name} on /docs", f"return {block}")
        if not self.browser.run(f"return {block}.classList.contains('is-open')"):
            self.browser.run(f"{block}.querySelector('.opblock-summary-control').click()")
        self.browser.wait(f"button to execute {name}", f"return {block}.querySelector('.btn.execute')")

    def close_operation(self, method, path):
        self.browser.run(f"{self.operation(method, path)}.querySelector('.opblock-summary-control').click()")

    def sign_in(self, username, screenshot):
        """Signs in through "Authorize"."""
        browser = self.browser
        browser.click(browser.element("button Authorize", "return document.querySelector('.auth-wrapper .authorize')"))
        field = browser.element("field for the username", "return document.querySelector('#oauth_username')")
        visible = browser.run(
            "return [...arguments[0].closest('.auth-container').querySelectorAll('input, select')]"
            ".filter(field => field.checkVisibility()).map(field => field.id)", {ELEMENT: field})
        check(visible == ["oauth_username", "oauth_password"], f"signing in asks for {visible}")
        browser.type(field, username)
        password = "return document.querySelector('#oauth_password')"
        browser.type(browser.element("field for the password", password), PASSWORD)
        browser.screenshot(screenshot)
        button = "return arguments[0].closest('.auth-container').querySelector('.authorize')"
        browser.click(browser.element("button in the dialog", button, {ELEMENT: field}))
        browser.wait("button Logout, so nobody is signed in",
                     "return [...document.querySelectorAll('.auth-container .btn')].some(b => b.innerText == 'Logout')")
        browser.run("document.querySelector('.auth-btn-wrapper .btn-done').click()")

    def execute(self, method, path, status, fields=()):
        """Fills fields of an operation, executes it and returns the text of the answer. `fields` are the fields'
        selectors and what to type."""
        self.open_operation(method, path)
        block, name = self.operation(method, path), f"{method.upper()} {path}"
        for selector, text in fields:
            field = self.browser.element(f"field {selector} of {name}",
                                         f"return {block}.querySelector(arguments[0])", selector)
            self.browser.type(field, text)
        self.browser.click(self.browser.element("button Execute", f"return {block}.querySelector('.btn.execute')"))
        answer = f"{block}.querySelector('.live-responses-table .response')"
        shown = self.browser.wait(f"answer of {name}",
                                  f"return {answer}?.querySelector('.response-col_status')?.innerText")
        check(shown.split()[0] == str(status), f"{name} on /docs is answered {shown}, not {status}")
        body = f"{answer}.querySelector('.highlight-code pre, .highlight-code code')"
        return self.browser.run(f"return {body}?.textContent ?? ''")


def check_swagger_ui(browser, base, operations, directory, output):
    """Reads and uses `/docs`."""
    page = SwaggerUi(browser)
    browser.open(base + "/")
    location = browser.run("return location.pathname")
    check(location == "/docs", f"the root leads browsers to {location}")
    for method, path, _ in operations:
        page.open_operation(method, path)
        page.close_operation(method, path)
    found = browser.run("return document.querySelectorAll('.opblock').length")
    check(found == len(operations), f"{found} operations are on /docs, and {len(operations)} in the document")
    browser.screenshot(output / "docs.png")

    username = "reader_" + secrets.token_hex(6)
    fetch(base + "/api/v1/auth/register",
          {"username": username, "email": f"{username}@example.com", "password": PASSWORD})
    page.sign_in(username, output / "docs-authorize.png")

    shown = json.loads(page.execute("get", "/api/v1/auth/me", 200))
    check(shown["username"] == username, f"{shown} is not the account that signed in")

    picture = directory / "picture.png"
    picture.write_bytes(PNG)
    fields = [("input[type=file]", str(picture))]
    uploaded = json.loads(page.execute("post", "/api/v1/uploads", 201, fields))
    check(uploaded["file_size"] == len(PNG), f"{uploaded} is not the uploaded file")

    download = "/api/v1/uploads/{file_id}/download"
    fields = [("tr[data-param-name=file_id] input", uploaded["id"])]
    page.execute("get", download, 200, fields)
    link = browser.element("link to the downloaded file",
                           f"return {page.operation('get', download)}.querySelector('a[download]')")
    picture.unlink()
    browser.click(link)
    deadline = time.monotonic() + MAX_WAIT
    while not picture.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    check(picture.exists(), f"the download is not saved; there is {list(directory.iterdir())}")
    check(picture.read_bytes() == PNG, "the downloaded file is not the uploaded one")
    browser.screenshot(output / "docs-download.png")


def check_redoc(browser, base, operations, output):
    """Reads and searches `/redoc`."""
    browser.open(base + "/redoc")
    for method, path, name in operations:
        section = browser.wait(f"{name} on /redoc",
                               "return document.querySelector(arguments[0])?.textContent",
                               f"[data-section-id$='operation/{name}']")
        check(f"{method}{path}" in section, f"{name} on /redoc is not {method} {path}")
    browser.screenshot(output / "redoc.png")
    field = browser.element("search field", "return document.querySelector('[role=search] input')")
    browser.type(field, "download")
    browser.wait("result of a search", "return document.querySelector('[data-role=\"search:results\"] li')")


def check_logs(browser, base):
    """Fails if something was requested from another host, or an error is on the console."""
    requested = set()
    for entry in browser.log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            requested.add(event["params"]["request"]["url"])
    check(base + "/openapi.json" in requested, f"the requests were not recorded: {requested}")
    foreign = [url for url in requested if not url.startswith((base + "/", "data:", f"blob:{base}/"))]
    check(not foreign, f"requested from elsewhere: {foreign}")
    errors = [entry["message"] for entry in browser.log("browser") if entry["level"] == "SEVERE"]
    check(not errors, "on the console:\n" + "\n".join(errors))


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the browser ends as well
    base = sys.argv[1].rstrip("/")
    output = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else "target/docs").resolve()
    output.mkdir(parents=True, exist_ok=True)
    operations = operations_of(fetch(base + "/openapi.json"))
    check(operations, "the document has no operations")
    directory = pathlib.Path(tempfile.mkdtemp())
    try:
        with Browser(directory) as browser:
            try:
                check_swagger_ui(browser, base, operations, directory, output)
                check_logs(browser, base)
                check_redoc(browser, base, operations, output)
                check_logs(browser, base)
            except BaseException:
                browser.screenshot(output / "failure.png")
                print(f"Screenshot: {output / 'failure.png'}", file=sys.stderr)
                raise
    except (AssertionError, RuntimeError) as error:
        print(f"browser.py: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory)
    print(f"{len(operations)} operations are on /docs and /redoc; screenshots are in {output}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
