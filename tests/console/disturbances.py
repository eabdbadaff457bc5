"""What disturbs people on any page: other tabs, sessions that end, a service that is away or says no, names that are
traps, a slow network; and what the pages cost and keep."""

import json
import re
import statistics
import time

import pytest
from selenium.webdriver.common.keys import Keys

from service import PASSWORD, wait_for

# What a stranger may call a file or himself. The last two are a name from right to left, and one whose end is reversed
# by a control character, which former versions let in.
NAMES = ["<img src=x onerror=alert(1)>.txt", "javascript:alert(1).txt", "\" onclick=\"alert(1)", "{{7*7}}${7*7}",
         "تقرير نهائي.txt", "invoice\u202etxt.exe"]
# Most bytes of the first page over the wire, and milliseconds until it can be used.
MAX_BYTES, MAX_MILLISECONDS = 60_000, 300


def answers(service, beginning):
    """The lines of the access log with this method and path."""
    log = (service.directory / "service.log").read_text(encoding="utf-8")
    return [line for line in log.splitlines() if f" {beginning} " in line]


def test_tabs_that_share_a_session_renew_it_for_each_other(page, start_service):
    page.service = service = start_service(CLOAKROOM_REFRESH_REUSE_SECONDS="1")
    page.sign_in(service.new_user())
    other = page.duplicate()
    other.see("Sign out")
    for tab in (page, other, page, other):
        time.sleep(1.5)  # later than a lost answer is forgiven
        tab.reload(is_late=True)
        tab.see("Sign out")
    other.activate("Sign out")
    other.heading("Sign in")
    page.heading("Sign in")


def test_tabs_of_two_people_do_not_know_of_each_other(page, service):
    ann, bob = service.new_user(name="Ann"), service.new_user(name="Bob")
    other = page.another()
    other.open()
    other.heading("Sign in")
    page.sign_in(ann)
    other.sign_in_here(bob)
    page.reload()
    page.see(ann.email)
    page.activate("Sign out")
    other.reload()
    other.see(bob.email)


def test_session_that_was_ended_elsewhere_leads_back_to_where_one_was(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account/sessions")
    page.see("This session")
    service.call("POST", "/auth/logout?scope=others", token=user.token)
    page.activate("Access tokens")
    page.see("Sign in again")
    page.check("sign-in-again")
    page.fill("Password", "wrong password")
    page.press(Keys.ENTER)
    page.see("Wrong name or password.")
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see_no("Sign in again")
    page.at("/console/account/tokens")
    page.see(user.email)


def test_service_that_is_away_for_a_while(page, start_service):
    page.service = service = start_service()
    page.sign_in(service.new_user(), "/console/account/sessions")
    page.heading("Sessions")
    page.activate("Profile")
    page.heading("Profile")
    service.stop()
    page.activate("Sessions")
    page.see("cannot be reached")
    page.check("away")
    service.start()
    page.see("Chrom")  # the session in the list, without a key pressed
    page.see_no("cannot be reached")


def test_page_that_was_not_loaded_before_the_service_went_away(page, start_service):
    page.service = service = start_service()
    page.sign_in(service.new_user(), "/console/account/sessions")
    page.heading("Sessions")
    service.stop()
    page.activate("Access tokens")
    page.heading("This page could not be loaded")
    page.check("unloadable")
    service.start()
    page.activate("Reload")
    page.heading("Access tokens")


def test_part_of_a_page_that_a_former_version_of_the_service_had(page, service):
    user = service.new_user()
    service.upload(user, "a.txt")
    page.sign_in(user, "/console/files")
    page.cdp("Network.enable")
    page.cdp("Network.setBlockedURLs", urls=["*/file-links.js"])
    page.activate("Link to a.txt")
    page.see("This part of the page could not be loaded. Check your connection. If it is fine, reload the page")
    page.cdp("Network.setBlockedURLs", urls=[])
    page.driver.get_log("browser")  # it says what could not be loaded


def test_page_that_is_gone_back_to_when_the_next_could_not_be_loaded(page, start_service):
    page.service = service = start_service()
    page.sign_in(service.new_user(), "/console/files")
    page.see("No files yet")
    offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.cdp("Network.enable")
    page.cdp("Network.emulateNetworkConditions", **offline)
    page.activate("Account")
    page.heading("This page could not be loaded")
    page.cdp("Network.emulateNetworkConditions", **offline | {"offline": False})
    page.activate("Files")
    page.heading("Files")
    page.see("No files yet")


def test_nothing_stays_above_the_page_for_the_next_person(page, service):
    page.sign_in(service.new_user(), "/console/account/tokens")
    page.see("No access tokens")
    other = page.duplicate()
    other.see("Sign out")
    page.activate("New token")
    page.fill("Name", "a program")
    page.press(Keys.ENTER)
    page.see("Copy the token now")
    other.activate("Sign out")
    other.heading("Sign in")
    page.heading("Sign in")
    page.see_no("Copy the token now")
    assert page.focused().accessible_name == "Username or e-mail"


def test_a_question_goes_with_its_page(page, service):
    user = service.new_user()
    file = service.upload(user, "kept.txt")
    service.call("POST", f"/uploads/{file['id']}/links", {}, user.token)
    page.sign_in(user, "/console/files")
    page.activate("kept.txt")
    page.heading("kept.txt")
    page.activate("Delete")
    page.see("Delete this file?")
    page.back()
    page.heading("Files")
    page.see_no("Delete this file?")
    page.see("kept.txt")


def test_a_proxy_that_compresses_hinders_no_change(page, service):
    user = service.new_user()
    file = service.upload(user, "keys.txt")["id"]
    # Each kind of proxy marks the entity tag of what it compresses in a way of its own.
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source="""
        const { get } = Headers.prototype;
        window.mark = (tag) => `W/${tag}`;
        Headers.prototype.get = function (name) {
            const value = get.call(this, name);
            return name === "ETag" && value ? mark(value) : value;
        };""")
    page.sign_in(user, f"/console/files/{file}")
    page.heading("keys.txt")
    # The page sends the tag that it got with the mark before.
    for name, mark in (("nginx.txt", "-gzip"), ("httpd.txt", "-br"), ("caddy.txt", "--gzip"), ("jetty.txt", "")):
        page.run("const [mark] = arguments; window.mark = (tag) => tag.replace(/\"$/, `${mark}\"`)", mark)
        page.fill("Description (optional)", name)
        page.activate("Save")
        page.until("description", lambda name=name: service.call(
            "GET", f"/uploads/{file}", token=user.token)["description"] == name)


def test_service_that_is_away_while_one_signs_in(page, start_service):
    page.service = service = start_service()
    user = service.new_user()
    page.open()
    service.stop()
    page.fill("Username or e-mail", user.username)
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("cannot be reached")
    service.start()
    page.see_no("Next try")  # until then the button is held
    page.tab_to("Password")
    page.press(Keys.ENTER)
    page.see("Sign out")


def test_too_many_requests_are_waited_out(page, start_service):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_GENERAL="5")
    page.sign_in(service.new_user())
    for _ in range(12):
        page.until("answer", lambda: any(text in page.text() for text in ("No files yet", "Too many requests.")))
        if "Too many requests." in page.text():
            break
        page.reload()
        page.see("Sign out")
    else:
        pytest.fail("no limit")
    page.check("limited")
    page.see_no("Too many requests.")


def test_names_are_shown_and_do_nothing(page, service):
    user = service.new_user(name=NAMES[0])
    for name in NAMES:
        service.upload(user, name)
    # What was let in before there was a rule.
    service.sql(f"UPDATE files SET filename = U&'invoice\\202etxt.exe' WHERE filename LIKE 'invoice%'")
    page.sign_in(user)
    page.see(*NAMES[:5])
    page.check("hostile-names")
    alive = page.run("""
        const lively = "main img, script:not([src]):not(#service), style, iframe";
        return [...document.querySelectorAll("*")].filter(e => e.matches(lively)
            || [...e.attributes].some(a => a.name.startsWith("on") || /^javascript:/i.test(a.value)))
            .map(e => e.outerHTML)""")
    assert not alive, alive
    reversing = page.run("""
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
        while (texts.nextNode()) if (/[\\u202a-\\u202e]/.test(texts.currentNode.data)
            && !texts.currentNode.parentElement.closest("bdi, [dir=auto]")) found.push(texts.currentNode.data);
        return found""")
    assert not reversing, f"what follows it is reversed too: {reversing}"


def test_a_button_works_once_however_often_it_is_pressed(page, service):
    user = service.new_user()
    before = len(answers(service, "POST /api/v1/auth/login"))
    page.open()
    page.fill("Username or e-mail", user.username)
    page.fill("Password", PASSWORD)
    page.hold("POST /api/v1/auth/login")
    page.press(Keys.ENTER, Keys.ENTER, Keys.ENTER)
    page.see("Signing in…")
    page.release()
    page.see("Sign out")
    assert len(answers(service, "POST /api/v1/auth/login")) == before + 1


def test_an_api_key_is_asked_for_once(page, start_service):
    page.service = service = start_service()
    user = service.new_user()
    service.stop()
    service.settings |= {"CLOAKROOM_API_KEY_ENABLED": "true", "CLOAKROOM_API_KEY": "0123456789abcdef",
                         "CLOAKROOM_API_KEY_SCOPE": "all"}
    service.start()
    page.open()
    page.fill("Username or e-mail", user.username)
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("needs an API key")
    page.check("api-key")
    page.press("0123456789\u200babcdef", Keys.ENTER)
    page.see("An API key has only plain letters")
    page.fill("API key", "wrong")
    page.press(Keys.ENTER)
    page.see("This API key was refused")
    page.fill("API key", "0123456789abcdef")
    page.press(Keys.ENTER)
    page.see("Sign out")
    page.reload()
    page.see("Sign out")
    other = page.another()
    other.open()
    other.see("Sign out", user.email)
    page.activate("Sign out")
    page.heading("Sign in")
    other.heading("Sign in")
    assert page.run("return Object.keys(sessionStorage)") == [], "the next person does not use this key"


def test_a_request_that_cannot_be_built_is_not_taken_for_a_service_that_is_away(page, service):
    page.sign_in(service.new_user())
    page.run("sessionStorage.setItem('cloakroom.api_key', 'no header has this: \u200b')")
    page.activate("Account")
    page.heading("Profile")
    page.until("box", lambda: page.run("return document.querySelector('main .error-box')"))
    page.see("Something went wrong.")
    page.see_no("cannot be reached")
    page.driver.get_log("browser")  # it says what


def test_errors_of_the_other_shape_are_understood(page, start_service):
    page.service = start_service(CLOAKROOM_ERROR_FORMAT="envelope")
    page.open("/console/register")
    page.fill("E-mail", "not an address")
    page.fill("Username", "a")
    page.fill("Password", "short")
    page.press(Keys.ENTER)
    page.see("Must be at least 3 characters long")
    page.open()
    page.fill("Username or e-mail", "nobody")
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("Wrong name or password.")


def test_only_the_refresh_token_is_kept_and_only_for_the_tab_unless_one_wants_to_stay(page, service):
    user = service.new_user()
    page.open()
    page.sign_in_here(user, keep=True)
    token = page.run("return localStorage.getItem('cloakroom.refresh_token')")
    assert token and token == page.run("return sessionStorage.getItem('cloakroom.refresh_token')")
    page.activate("Sign out")
    page.heading("Sign in")
    page.sign_in_here(user)
    kept = page.run("return [document.cookie, Object.entries(localStorage), Object.values(sessionStorage)]")
    assert kept[0] == "", kept
    # The ids of sessions and of their newest tokens, which are no tokens.
    newest = re.compile(r"cloakroom\.(newest\.[0-9a-f-]{36} \d+ ([0-9a-f-]{36}|ended)|last [0-9a-f-]{36})")
    assert kept[1] and all(newest.fullmatch(" ".join(entry)) for entry in kept[1]), kept
    tokens = [value for value in kept[2] if value.startswith("ey")]
    assert len(tokens) == 1, kept
    databases = page.driver.execute_async_script("indexedDB.databases().then(arguments[0])")
    assert databases == [], databases


@pytest.mark.parametrize("lack", [
    "delete AbortSignal.any", "delete String.prototype.toWellFormed", "delete window.BroadcastChannel",
    "CSS.supports = () => false",
    "Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('', 'SecurityError'); } })",
])
def test_browser_that_lacks_what_the_pages_need_is_told_so(page, lack):
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source=lack)
    page.open("/console/files")
    page.see("This browser cannot show the console")
    page.see_no("Sign in", "The service")
    page.check("unable")
    page.driver.get_log("browser")  # modules that fail say so


def test_first_page_is_small_and_can_be_used_at_once(page):
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source="""
        new MutationObserver((_, observer) => {
            if (!document.querySelector("input[type=password]")) return;
            observer.disconnect();
            window.usable = performance.now();
        }).observe(document, { childList: true, subtree: true });""")
    moments, empty = [], []
    for _ in range(5):
        page.cdp("Network.clearBrowserCache")
        # How long this browser takes, on this machine and now, for a page that is nothing.
        page.open("/healthz")
        empty.append(page.run("return performance.getEntriesByType('navigation')[0].domInteractive"))
        page.driver.get_log("performance")
        page.open()
        moments.append(page.until("form", lambda: page.run("return window.usable")))
    page.until("quiet network", lambda: page.run("return document.readyState == 'complete'"))
    sizes = {}
    for entry in page.driver.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.loadingFinished":
            sizes[event["params"]["requestId"]] = event["params"]["encodedDataLength"]
    assert len(sizes) > 5, "the requests were recorded"
    assert sum(sizes.values()) < MAX_BYTES, f"{sum(sizes.values())} bytes over the wire"
    added = min(moments) - statistics.median(empty)
    # A browser that is slow even for an empty page may take longer.
    assert added < max(MAX_MILLISECONDS, 12 * statistics.median(empty)), f"{moments} ms, and {empty} for an empty page"
    print(f"{sum(sizes.values())} bytes, {min(moments):.0f} ms; an empty page {statistics.median(empty):.0f} ms")


def test_a_file_that_was_loaded_once_is_not_asked_for_again(page, service):
    log = service.directory / "service.log"
    before = len(log.read_text(encoding="utf-8"))
    page.cdp("Network.clearBrowserCache")
    page.open()
    page.heading("Sign in")
    page.open("/console/register")
    page.heading("Create an account")
    page.reload()
    page.heading("Create an account")
    names = re.findall(r" GET (/console/\S+) ", log.read_text(encoding="utf-8")[before:])
    loaded = [name for name in names if name.endswith((".js", ".css"))]
    assert loaded and len(loaded) == len(set(loaded)), loaded


@pytest.mark.long
@pytest.mark.parametrize("shift", [0, -600_000], ids=["a-right-clock", "a-clock-that-was-set-back"])
def test_token_that_expires_while_files_are_uploaded(page, start_service, tmp_path, shift):
    page.service = service = start_service(CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES="1")
    user = service.new_user()
    page.sign_in(user)
    # With the clock set back, the page finds out only from the service that the token has expired.
    page.run("const now = Date.now; Date.now = () => now() + arguments[0]", shift)
    files = [tmp_path / f"file-{n}.txt" for n in range(4)]
    for file in files:
        file.write_bytes(file.name.encode() * 50_000)
    page.slow_down(upload=24_000)  # some twenty seconds for each
    page.choose_files(*files)
    time.sleep(65)
    page.slow_down()

    def stored():
        listed = service.call("GET", "/uploads", token=service.sign_in(user.username)["access_token"])
        return listed["total"] == 4 and sorted(item["filename"] for item in listed["items"])
    assert wait_for("four files", stored) == [file.name for file in files]
    page.see(*[file.name for file in files])
