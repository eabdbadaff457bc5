"""A browser: Debian's chromium, driven through its chromedriver in the protocol of WebDriver (W3C).

Only what the test of the pages needs, and nothing but Python's standard library.
"""

import base64
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request

# How long the browser may take for whatever is waited for, in seconds, on a busy machine.
MAX_WAIT = 60
# The key of an element's id in JSON (WebDriver, section "Elements").
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"

# Control and A, and then no key (WebDriver, section "Keyboard actions").
SELECT_ALL = "\ue009a\ue000"


class Browser:
    """A browser of its own with an empty profile. It ends with the `with` block that it is used in."""

    def __init__(self, downloads):
        """Starts it. It saves what it downloads to the directory `downloads`."""
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        self.session = None
        try:
            started = (re.search(r"started successfully on port (\d+)", line) for line in self.driver.stdout)
            port = next(filter(None, started), None)
            if not port:
                raise RuntimeError("chromedriver ended at its start")
            self.url = f"http://127.0.0.1:{port[1]}/session"
            self.session = self._start(downloads)
        except BaseException:
            self.close()
            raise

    def _start(self, downloads):
        arguments = [
            "--headless=new", "--window-size=1280,1000", "--disable-dev-shm-usage",
            # What the browser itself would ask its maker for must not reach a network either.
            "--disable-background-networking", "--disable-component-update", "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        ]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # root cannot have one, and the pages are our own
        options = {
            "args": arguments,
            "prefs": {"download.default_directory": str(downloads), "download.prompt_for_download": False},
        }
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        return self._send("POST", "", {"capabilities": {"alwaysMatch": capabilities}})["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the browser and its driver."""
        try:
            if self.session:
                self._command("DELETE", "")
        finally:
            self.driver.kill()
            self.driver.wait()

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=MAX_WAIT) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise RuntimeError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def _command(self, method, path, body=None):
        return self._send(method, f"/{self.session}{path}", body)

    def open(self, url):
        self._command("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """Runs the body of a JavaScript function in the page and returns what it returns."""
        return self._command("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, description, script, *arguments):
        """Runs a script again and again until it returns something true, and returns that."""
        deadline = time.monotonic() + MAX_WAIT
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"after {MAX_WAIT} s there is still no {description}")
            time.sleep(0.1)

    def element(self, description, script, *arguments):
        """Waits for a script to return an element of the page, and returns its id."""
        return self.wait(description, script, *arguments)[ELEMENT]

    def click(self, element):
        self.run("arguments[0].scrollIntoView({block: 'center'})", {ELEMENT: element})
        self._command("POST", f"/element/{element}/click", {})

    def type(self, element, text):
        """Types into a field in place of what is there."""
        self._command("POST", f"/element/{element}/value", {"text": SELECT_ALL + text})

    def choose(self, element, path):
        """Chooses a file in a field for one."""
        self._command("POST", f"/element/{element}/value", {"text": str(path)})

    def screen(self, width, height):
        """Gives the page a screen of this size; if it is narrow, a phone's, which a page may not be wider than."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._command("POST", "/goog/cdp/execute",
                      {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._command("GET", "/screenshot")))

    def log(self, kind):
        """What was logged since the last call: `browser` is the console, `performance` has the events of the
        DevTools protocol."""
        return self._command("POST", "/se/log", {"type": kind})
