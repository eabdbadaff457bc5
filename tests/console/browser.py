"""A tab of Debian's chromium, used as by somebody without a mouse: what is pressed is what has the focus, and what is
read is what is shown. Names are those that a screen reader speaks (accessible names)."""

import base64
import json
import os
import pathlib
import re

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from service import MAX_WAIT, wait_for

# The widths in pixels at which pages are judged, with dark colours or not; the first list takes long.
WIDTHS = (320, 768, 1440)
ALL_SCREENS = [(width, dark) for width in WIDTHS for dark in (False, True)]
SCREENS = [(320, True), (768, False), (1440, False)]
# How often Tab is pressed at most on the way to something.
MAX_TABS = 400
# Answers with these statuses are part of the tests. The browser reports each on its console.
REFUSAL = re.compile(r"/(api/v1/\S*|favicon.ico) - Failed to load resource: the server responded with a status of (4|5)"
                     r"|Failed to load resource: net::ERR_(CONNECTION_REFUSED|INTERNET_DISCONNECTED)"
                     r"|/api/v1/\S* - Failed to load resource: net::")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The text of what is shown, also in an open dialog, with one blank for any number of them.
SHOWN = "return document.body ? document.body.innerText.replace(/\\s+/g, ' ') : ''"
# What a screen of this width cuts off: the page may not be wider. What scrolls by itself may.
TOO_WIDE = """
    const width = document.documentElement.clientWidth;
    const scrolls = box => box && box !== document.body && (/auto|scroll|hidden/.test(getComputedStyle(box).overflowX)
        || scrolls(box.parentElement));
    const isSeen = element => element.checkVisibility({visibilityProperty: true});
    return [...document.querySelectorAll("body *")].filter(element => isSeen(element)
        && element.getBoundingClientRect().right > width + 0.5 && !scrolls(element))
        .map(element => element.outerHTML.slice(0, 200)).slice(0, 5)"""


def start(downloads):
    """Starts a browser with an empty profile, which saves what it downloads to a directory."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.page_load_strategy = "eager"
    arguments = [
        "--headless=new", "--window-size=1440,1000", "--disable-dev-shm-usage", "--lang=en-GB", "--no-first-run",
        # What the browser itself would ask its maker for must not reach a network either.
        "--disable-background-networking", "--disable-component-update",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # root cannot have one, and the pages are our own
    for argument in arguments:
        options.add_argument(argument)
    options.add_experimental_option("prefs", {
        "download.default_directory": str(downloads), "download.prompt_for_download": False,
        # No question about several downloads.
        "profile.default_content_setting_values.automatic_downloads": 1,
    })
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    driver.set_script_timeout(MAX_WAIT)
    return driver


class Page:
    """A tab. `output` is the directory of pictures, `axe` the text of axe-core; `screens` are those for `check`."""

    def __init__(self, driver, service, output, axe, downloads, screens):
        self._driver, self.service, self._output, self._axe = driver, service, pathlib.Path(output), axe
        self.screens = screens
        self.downloads = pathlib.Path(downloads)
        self.others = []  # where the pages may lead to besides the service
        driver.switch_to.new_window("tab")
        self.handle = driver.current_window_handle

    @property
    def driver(self):
        """Selenium's browser, with this tab in front."""
        if self._driver.current_window_handle != self.handle:
            self._driver.switch_to.window(self.handle)
        return self._driver

    def run(self, script, *arguments):
        """Runs the body of a JavaScript function in the page and returns what it returns."""
        return self.driver.execute_script(script, *arguments)

    def cdp(self, command, **parameters):
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(command, parameters)

    # Where one is.

    def open(self, path="/console"):
        """Loads a path of the service."""
        self.driver.get(self.service.url + path)

    def reload(self, is_late=False):
        """Loads the page again, or as it is loaded late, when the access token has expired."""
        if is_late:
            self.forget_access()
        self.driver.refresh()

    def forget_access(self):
        """The tab has no access token any more, as when it has expired."""
        self.run("sessionStorage.removeItem('cloakroom.access')")

    def back(self):
        """Goes back, as by the browser's button."""
        self.driver.back()

    def forward(self):
        """Goes forward again."""
        self.driver.forward()

    def path(self):
        """The path and the query in the address bar."""
        return self.run("return location.pathname + location.search")

    def at(self, path):
        """Waits until the address bar has this path and query."""
        self.until(f"address {path}", lambda: self.path() == path)

    def duplicate(self):
        """Duplicates the tab, with what it remembers (sessionStorage), and returns the new one."""
        return self.opened_by(lambda: self.run("window.open(location.href)"))

    def opened_by(self, act):
        """Calls `act`, and returns the tab that this has opened."""
        before = set(self.driver.window_handles)
        act()
        other = object.__new__(Page)
        other.__dict__.update(self.__dict__)
        other.handle = wait_for("second tab", lambda: set(self._driver.window_handles) - before).pop()
        return other

    def another(self):
        """A new tab, which remembers nothing."""
        return Page(self._driver, self.service, self._output, self._axe, self.downloads, self.screens)

    # What one sees.

    def text(self):
        """All text that is shown, with one blank for any number of them."""
        return self.run(SHOWN)

    def until(self, what, find):
        """Calls `find` until it returns something true. A failure says what the page shows."""
        def safely():
            try:
                return find()
            except (StaleElementReferenceException, JavascriptException, NoSuchElementException):
                return None  # the page changed meanwhile, or has no content yet
        try:
            return wait_for(what, safely)
        except AssertionError as error:
            raise AssertionError(f"{error}, but at {self.path()}: {self.text()}") from None

    def see(self, *texts):
        """Waits until all of these texts are shown."""
        for text in texts:
            self.until(f"text {text!r}", lambda: text in self.text())

    def see_no(self, *texts):
        """Waits until none of these texts is shown."""
        self.until(f"page without {texts}", lambda: all(text not in self.text() for text in texts))

    def heading(self, text):
        """Waits for the heading of a page, which must have the focus or contain it as the page changes, and for its
        name in the title."""
        self.until(f"heading {text!r}", lambda: text in self.run(
            "return [...document.querySelectorAll('h1')].filter(h => h.checkVisibility())"
            ".map(h => h.innerText.trim())"))
        self.until(f"title with {text!r}", lambda: text in self.driver.title)

    def rows(self, text=""):
        """The rows of the table that have this text, as texts with one blank for any number of them."""
        every = self.run("return [...document.querySelectorAll('tbody tr')].map(row => row.innerText)")
        return [row for row in (" ".join(row.split()) for row in every) if text in row]

    def named(self, name, role=None):
        """All visible elements that can have the focus and have this accessible name, and perhaps this role."""
        every = self.driver.find_elements(
            By.CSS_SELECTOR, "a[href], button, input, select, textarea, summary, [tabindex]")
        visible = [element for element in every if element.is_displayed()]
        return [element for element in visible if _is(element, name, role)]

    # What one does.

    def press(self, *keys):
        """Presses keys one after the other, such as `Keys.ESCAPE`, or types text, into what has the focus."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self):
        """The element that has the focus."""
        return self.driver.switch_to.active_element

    def tab_to(self, name, role=None):
        """Presses Tab until something with this accessible name has the focus. It must be there in the order of the
        page; the way may lead around its end once."""
        if not isinstance(name, re.Pattern):
            self.until(f"{role or 'control'} named {name!r}", lambda: self.named(name, role))
        passed = []
        for _ in range(MAX_TABS):
            try:
                element = self.focused()
                if _is(element, name, role):
                    return element
                passed.append(f"{element.aria_role} {element.accessible_name!r}")
            except StaleElementReferenceException:
                pass
            self.press(Keys.TAB)
        raise AssertionError(f"Tab never leads to {name!r}, only to {sorted(set(passed))}")

    def activate(self, name, role=None):
        """Goes to a button or a link by Tab, and presses Enter."""
        self.tab_to(name, role)
        self.press(Keys.ENTER)

    def toggle(self, name):
        """Goes to a check box or the like by Tab, and presses the space bar."""
        self.tab_to(name)
        self.press(Keys.SPACE)

    def fill(self, name, text):
        """Goes to a field by Tab, and types in place of what is there."""
        self.tab_to(name)
        ActionChains(self.driver).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
        self.press(text or Keys.DELETE)

    def select(self, name, option):
        """Goes to a list by Tab, and chooses the option by typing its beginning."""
        field = self.tab_to(name)
        self.press(option)
        self.until(f"choice of {option!r}", lambda: self.run(
            "return arguments[0].selectedOptions[0].text", field).startswith(option))

    def choose_files(self, *paths):
        """Chooses files in the page's field for files, in place of the dialog of the operating system."""
        field = self.until("field for files", lambda: self.driver.find_elements(By.CSS_SELECTOR, "input[type=file]"))[0]
        field.send_keys("\n".join(map(str, paths)))

    def drop_files(self, *paths):
        """Drops files on the middle of the page."""
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.cdp("Input.dispatchDragEvent", type=kind, x=400, y=400, data=data)

    def downloaded(self, name):
        """Waits for a file that the browser saves, and returns its bytes."""
        path = self.downloads / name
        self.until(f"download {name!r} among {[file.name for file in self.downloads.iterdir()]}", path.is_file)
        return path.read_bytes()

    def sign_in(self, account, path="/console", code=None):
        """Signs in by keyboard, and is at `path` then."""
        self.open(path)
        self.sign_in_here(account, code)

    def sign_in_here(self, account, code=None, keep=False):
        """Signs in at the page that is shown; the browser keeps the session with `keep`."""
        self.fill("Username or e-mail", account.username)
        if keep:
            self.toggle("Keep me signed in on this device")
        self.fill("Password", account.password)
        self.press(Keys.ENTER)
        if code:
            self.fill("Code", code)
            self.press(Keys.ENTER)
        self.see("Sign out")

    def slow_down(self, upload=-1, download=-1, latency=0):
        """Makes the network slow: bytes a second in each direction, milliseconds for each request."""
        self.cdp("Network.enable")
        self.cdp("Network.emulateNetworkConditions", offline=False, latency=latency, downloadThroughput=download,
                 uploadThroughput=upload)

    def hold(self, part):
        """Keeps requests from being sent until `release`, if this is a part of their method and address, such as
        `DELETE /api`. Downloads and uploads are sent all the same."""
        self.run("""
            const [part, send] = [arguments[0], window.fetch];
            const gate = new Promise(open => { window.release = open; });
            window.fetch = async (address, options) => {
                if (`${options?.method} ${address}`.includes(part)) await gate;
                return send(address, options);
            };""", part)

    def release(self):
        """Lets the requests go that `hold` has kept."""
        self.run("window.release()")

    # What is judged.

    def screen(self, width, dark=False, height=900, forced=False):
        """Gives the page a screen of this width, and light or dark colours, or those that the system forces on it."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 500)
        scheme = "dark" if dark else "light"
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"},
            {"name": "forced-colors", "value": "active" if forced else "none"}])

    def check(self, name):
        """Judges what is shown now: axe finds nothing, in light and in dark, and nothing is cut off at any width. Keeps
        a picture of each as `<name>-<width>-<light or dark>.png`."""
        for width, dark in self.screens:
            self.screen(width, dark)
            picture = f"{name}-{width}-{'dark' if dark else 'light'}.png"
            self.screenshot(picture)
            too_wide = self.run(TOO_WIDE)
            assert not too_wide, f"{picture}: wider than the screen: {too_wide}"
            if width != WIDTHS[1]:
                found = self.axe()
                assert not found, f"{picture}: axe finds {json.dumps(found, indent=2)}"
        self.screen(WIDTHS[-1])

    def pixels(self, script, *arguments):
        """Runs the body of a JavaScript function with `pixels`, an `ImageData` of what the screen shows, and further
        `arguments`, and returns what it returns."""
        picture = self.cdp("Page.captureScreenshot")["data"]
        answer = self.driver.execute_async_script("""
            const bytes = Uint8Array.from(atob(arguments[0]), letter => letter.charCodeAt(0));
            const drawn = await createImageBitmap(new Blob([bytes]));
            const canvas = new OffscreenCanvas(drawn.width, drawn.height).getContext("2d");
            canvas.drawImage(drawn, 0, 0);
            const pixels = canvas.getImageData(0, 0, drawn.width, drawn.height);
            const work = (pixels, arguments) => { SCRIPT };
            arguments[arguments.length - 1]([work(pixels, [...arguments].slice(1, -1))]);
            """.replace("SCRIPT", script), picture, *arguments)
        return answer[0]

    def screenshot(self, name):
        """Keeps a picture of the whole page, or of its first 4,000 pixels."""
        height = min(self.run("return document.documentElement.scrollHeight"), 4000)
        width = self.run("return document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        picture = self.cdp("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        (self._output / name).write_bytes(base64.b64decode(picture["data"]))

    def axe(self):
        """What axe-core finds: the rule, how bad it is, and the elements."""
        if not self.run("return 'axe' in window"):
            self.run(self._axe)
        outcome = self.driver.execute_async_script(
            "const done = arguments[1];"
            "axe.run(document, {runOnly: arguments[0], resultTypes: ['violations']})"
            ".then(result => done({violations: result.violations}), error => done({error: String(error)}));", RULES)
        assert "violations" in outcome, outcome
        return [{"rule": found["id"], "impact": found["impact"], "help": found["help"],
                 "elements": [node["html"][:200] + " " + (node.get("failureSummary") or "") for node in found["nodes"]]}
                for found in outcome["violations"]]


def _is(element, name, role):
    """Whether an element has this accessible name, which may be a pattern, and perhaps this role."""
    try:
        spoken = element.accessible_name
        fits = name.search(spoken) if isinstance(name, re.Pattern) else name == spoken
        return bool(fits) and (role is None or element.aria_role == role)
    except StaleElementReferenceException:
        return False


def drain(driver):
    """Forgets what was logged so far."""
    for kind in ("browser", "performance"):
        driver.get_log(kind)


def check_logs(driver, bases):
    """Fails if anything was requested from elsewhere, or an error is on the console, since the last call."""
    requested = set()
    for entry in driver.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            requested.add(event["params"]["request"]["url"])
    own = tuple(prefix + base for base in bases for prefix in ("", "blob:")) + ("data:", "about:", "chrome:")
    foreign = [url for url in requested if not url.startswith(own)]
    assert not foreign, f"requested from elsewhere: {foreign}"
    errors = [entry["message"] for entry in driver.get_log("browser")
              if entry["level"] == "SEVERE" and not REFUSAL.search(entry["message"])]
    assert not errors, "on the console:\n" + "\n".join(errors)
