#!/usr/bin/env python3
"""Usage: browser.py URL [DIRECTORY]

Opens the pages about the API in a real browser, as their readers do, and fails with the reason if one of them lacks an
operation, a text or a sample of code, if signing in, an endpoint, an upload or a download does not work there, if a
phone cuts something off, if anything is requested from another host, or if an error is on the console.

URL is that of a running service, such as http://127.0.0.1:8000, at which a new account is registered. Screenshots go
to DIRECTORY (target/docs). Needs Debian's packages chromium and chromium-driver.
"""

import base64
import functools
import hmac
import json
import pathlib
import secrets
import shutil
import signal
import struct
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
DESKTOP, PHONE = (1280, 800), (390, 844)
# What a screen of this width cuts off. Code and tables in texts scroll by themselves, so they only have to begin there.
CUT_OFF = """
    const width = arguments[0], inner = "pre, textarea, .renderedMarkdown table";
    const all = [document.documentElement, ...document.querySelectorAll(".modal-ux-content")];
    const scrolling = all.filter(box => box.scrollWidth > Math.min(box.clientWidth, width));
    const wide = [...document.querySelectorAll("body *")].filter(element => element.checkVisibility()
        && element.getBoundingClientRect().right > width + 0.5 && !element.parentElement.closest(inner));
    return [...scrolling, ...wide].map(element => element.outerHTML.slice(0, 200))"""


def check(condition, message):
    """Fails unless the condition holds. `assert` would check nothing under `python -O`."""
    if not condition:
        raise AssertionError(message)


def fetch(url, body=None, token=None):
    """The JSON that a request is answered with: GET, or POST where there is a body."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=MAX_WAIT) as response:
        return json.load(response)


def personal_token_example(document):
    """The first example of a request for a personal access token."""
    body = document["paths"]["/api/v1/auth/tokens"]["post"]["requestBody"]
    return next(iter(body["content"]["application/json"]["examples"].values()))["value"]


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
        paths = f".opblock-summary [data-path={json.dumps(path)}]"
        return (f"[...document.querySelectorAll({json.dumps(paths)})].map(found => found.closest('.opblock'))"
                f".find(block => block.querySelector('.opblock-summary-method').textContent == '{method.upper()}')")

    def open_operation(self, method, path):
        """Opens the block of an operation and waits until it can be tried out."""
        block, name = self.operation(method, path), f"{method.upper()} {path}"
        self.browser.wait(f"{name} on /docs", f"return {block}")
        if not self.browser.run(f"return {block}.classList.contains('is-open')"):
            self.browser.run(f"{block}.querySelector('.opblock-summary-control').click()")
        self.browser.wait(f"button to execute {name}", f"return {block}.querySelector('.btn.execute')")

    def close_operation(self, method, path):
        self.browser.run(f"{self.operation(method, path)}.querySelector('.opblock-summary-control').click()")

    def open_dialog(self):
        """Opens the dialog "Authorize"."""
        button = "return document.querySelector('.auth-wrapper .authorize')"
        self.browser.click(self.browser.element("button Authorize", button))
        self.browser.wait("dialog", "return document.querySelector('.dialog-ux')")

    def close_dialog(self):
        self.browser.run("document.querySelector('.auth-btn-wrapper .btn-done').click()")

    def field(self, name):
        """A field of the dialog."""
        return self.browser.element(f"field {name}", "return document.getElementById(arguments[0])", name)

    def press(self, button, field):
        """Presses a button of the dialog beside a field."""
        script = "return [...arguments[0].closest('.auth-container').querySelectorAll('.btn')]" \
            ".find(found => found.innerText == arguments[1])"
        self.browser.click(self.browser.element(f"button {button}", script, {ELEMENT: field}, button))

    def wait_for_logout(self):
        """Waits for the button that ends what was authorised, and returns it."""
        return self.browser.element(
            "button Logout, so nobody is signed in",
            "return [...document.querySelectorAll('.auth-container .btn')].find(b => b.innerText == 'Logout')")

    def sign_in(self, username, code, output):
        """Signs in with the password and a code, after a wrong password and without a code, on a phone."""
        browser = self.browser
        self.open_dialog()
        name, password = self.field("oauth_username"), self.field("oauth_password")
        visible = browser.run(
            "return [...arguments[0].closest('.auth-container').querySelectorAll('input, select')]"
            ".filter(field => field.checkVisibility()).map(field => field.id)", {ELEMENT: name})
        expected = ["second_factor_code", "oauth_username", "oauth_password"]
        check(visible == expected, f"signing in asks for {visible}")
        browser.type(name, username)
        browser.type(password, PASSWORD + "?")
        self.press("Authorize", password)
        shown = browser.wait("error", "return document.querySelector('.auth-container .errors')?.innerText")
        check("Invalid username or password" in shown, f"a wrong password is answered: {shown}")
        self.check_fits("the dialog with an error")
        browser.screenshot(output / "docs-refused.png")
        browser.type(password, PASSWORD)
        self.press("Authorize", password)
        browser.wait("question for a code", "return document.querySelector('.auth-container .errors')?.innerText"
                     ".includes('Second factor required')")
        browser.type(self.field("second_factor_code"), code)
        self.press("Authorize", password)
        self.wait_for_logout()
        self.check_fits("the dialog after signing in")
        self.close_dialog()

    def use_token(self, token, screenshot):
        """Signs out, and uses a personal access token from then on."""
        self.open_dialog()
        self.browser.click(self.wait_for_logout())
        field = self.field("auth-bearer-value")
        self.browser.type(field, token)
        self.browser.screenshot(screenshot)
        self.press("Authorize", field)
        self.wait_for_logout()
        self.close_dialog()

    def check_fits(self, what):
        """Fails if a phone cuts something off."""
        cut_off = self.browser.run(CUT_OFF, PHONE[0])
        check(not cut_off, f"{what} is wider than a phone: {cut_off[:5]}")

    def execute(self, method, path, status, fields=()):
        """Fills fields of an operation, executes it and returns the text of the answer. `fields` are the fields'
        selectors and what to type."""
        self.open_operation(method, path)
        block, name = self.operation(method, path), f"{method.upper()} {path}"
        for selector, text in fields:
            field = self.browser.element(f"field {selector} of {name}",
                                         f"return {block}.querySelector(arguments[0])", selector)
            (self.browser.choose if "type=file" in selector else self.browser.type)(field, text)
        self.browser.click(self.browser.element("button Execute", f"return {block}.querySelector('.btn.execute')"))
        answer = f"{block}.querySelector('.live-responses-table .response')"
        shown = self.browser.wait(f"answer of {name}",
                                  f"return {answer}?.querySelector('.response-col_status')?.innerText")
        check(shown.split()[0] == str(status), f"{name} on /docs is answered {shown}, not {status}")
        body = f"{answer}.querySelector('.highlight-code pre, .highlight-code code')"
        return self.browser.run(f"return {body}?.textContent ?? ''")


def check_description(page, document):
    """Reads all of `/docs` on a phone."""
    browser = page.browser
    operations = operations_of(document)
    for size in (DESKTOP, PHONE):
        browser.screen(*size)
        bottom = browser.wait("button Authorize", "return document.querySelector('.auth-wrapper .authorize')"
                              "?.getBoundingClientRect().bottom")
        check(bottom <= size[1], f"the button Authorize ends at {bottom} on a screen of {size}")
    for method, path, _ in operations:
        page.open_operation(method, path)
        page.check_fits(f"{method.upper()} {path}")
        samples = document["paths"][path][method].get("x-codeSamples", [])
        expected = [sample.get("label", sample["lang"]) for sample in samples]
        shown = browser.run(f"return [...{page.operation(method, path)}.querySelectorAll('.code-samples summary')]"
                            ".map(summary => summary.innerText)")
        check(shown == expected, f"{method.upper()} {path} on /docs has samples in {shown}, not {expected}")
        page.close_operation(method, path)
    found = browser.run("return document.querySelectorAll('.opblock').length")
    check(found == len(operations), f"{found} operations are on /docs, and {len(operations)} in the document")
    used = {tag for method, path, _ in operations for tag in document["paths"][path][method]["tags"]}
    expected = [tag["name"] for tag in document["tags"] if tag["name"] not in used]
    topics = browser.run("const all = [...document.querySelectorAll('details.topic')];"
                         "all.forEach(topic => topic.open = true);"
                         "return all.map(topic => topic.querySelector('summary').innerText)")
    check(topics == expected, f"{topics} are on /docs, not {expected}")
    page.check_fits("a text that no operation has")


def set_up_second_factor(base, username):
    """Gives an account a second factor, and returns a recovery code."""
    login = fetch(base + "/api/v1/auth/login", {"username": username, "password": PASSWORD})
    post = functools.partial(fetch, token=login["access_token"])
    offer = post(base + "/api/v1/auth/second-factor", {"current_password": PASSWORD})
    step = struct.pack(">Q", int(time.time()) // 30)
    digest = hmac.new(base64.b32decode(offer["secret"]), step, "sha1").digest()
    number = struct.unpack_from(">I", digest, digest[-1] & 15)[0] & 0x7fffffff  # RFC 4226, 5.3
    confirmed = post(base + "/api/v1/auth/second-factor/confirm", {"code": f"{number % 10**6:06}"})
    return confirmed["recovery_codes"][0]


def check_swagger_ui(browser, base, document, directory, output):
    """Reads and uses `/docs`."""
    page = SwaggerUi(browser)
    browser.open(base + "/docs")
    check_description(page, document)

    username = "reader_" + secrets.token_hex(6)
    fetch(base + "/api/v1/auth/register",
          {"username": username, "email": f"{username}@example.com", "password": PASSWORD})
    page.sign_in(username, set_up_second_factor(base, username), output)
    shown = json.loads(page.execute("get", "/api/v1/users/me", 200))
    check(shown["username"] == username, f"{shown} is not the account that signed in")
    page.check_fits("an answer")
    browser.screenshot(output / "docs-phone.png")

    browser.screen(*DESKTOP)
    created = json.loads(page.execute("post", "/api/v1/auth/tokens", 201))
    example = personal_token_example(document)
    check(created["name"] == example["name"], f"{created} was not made by sending {example}")
    check_files(page, directory, output)
    page.use_token(created["token"], output / "docs-authorize.png")
    listed = json.loads(page.execute("get", "/api/v1/uploads", 200))
    check(listed["total"] == 1, f"a personal access token lists {listed}")


def check_files(page, directory, output):
    """Uploads a file on `/docs`, and downloads it again."""
    browser = page.browser
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
    """Fails if something was requested from another host, or an error is on the console. That of the browser about the
    sign-in with a wrong password is none."""
    requested = set()
    for entry in browser.log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            requested.add(event["params"]["request"]["url"])
    check(base + "/openapi.json" in requested, f"the requests were not recorded: {requested}")
    foreign = [url for url in requested if not url.startswith((base + "/", "data:", f"blob:{base}/"))]
    check(not foreign, f"requested from elsewhere: {foreign}")
    refused = f"{base}/api/v1/auth/login - Failed to load resource: the server responded with a status of 401 "
    errors = [entry["message"] for entry in browser.log("browser")
              if entry["level"] == "SEVERE" and not entry["message"].startswith(refused)]
    check(not errors, "on the console:\n" + "\n".join(errors))


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the browser ends as well
    base = sys.argv[1].rstrip("/")
    output = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else "target/docs").resolve()
    output.mkdir(parents=True, exist_ok=True)
    document = fetch(base + "/openapi.json")
    operations = operations_of(document)
    check(operations, "the document has no operations")
    directory = pathlib.Path(tempfile.mkdtemp())
    try:
        with Browser(directory) as browser:
            try:
                check_swagger_ui(browser, base, document, directory, output)
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
