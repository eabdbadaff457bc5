"""Links: making and copying one, its page for people without an account, and what a browser shows of an ended one."""

import base64
import json
import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import browser
from service import PASSWORD, Refused

SAVE = re.compile(r"^Download \(")
PAGE, ITSELF = "Link to a page", "Link to the file itself"


def new_link(service, user, file, **fields):
    """The token of a new link."""
    answer = service.call("POST", f"/uploads/{file['id']}/links", fields, user.token)
    return answer["url"].removeprefix("/api/v1/links/")


def rename(service, user, file, name):
    service.call("PUT", f"/uploads/{file['id']}", {"filename": name}, user.token)


def requests(page):
    """What the page has asked of the API since the last time, without the tokens of links."""
    found = []
    for entry in page.driver.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            request = event["params"]["request"]
            if "/api/v1/" in request["url"]:
                found.append((request["method"], re.sub(".*/api/v1|(?<=links/).*", "", request["url"])))
    return found


def refuse(page, *statuses):
    """The next questions of the page get these statuses, of which 0 is no answer, in place of what the service says."""
    page.run("""
        const [statuses, ask] = [arguments[0], window.fetch];
        window.fetch = (...request) => {
            if (!statuses.length) return ask(...request);
            const status = statuses.shift();
            return status ? Promise.resolve(new Response(null, { status, headers: { "Retry-After": "5" } }))
                : Promise.reject(new TypeError("offline"));
        };""", list(statuses))


def take_copies(page, is_possible=True):
    """What is copied is in `window.copied`, or cannot be copied."""
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text; };" if is_possible else
             "navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = () => false;")


def test_a_link_is_two_presses_away_from_the_list(page, service):
    user = service.new_user()
    files = {name: service.upload(user, name, name.encode()) for name in ("a.txt", "b.txt")}
    page.sign_in(user, "/console/files")
    page.see("a.txt")
    take_copies(page)
    page.activate("Link to a.txt")
    page.see("Create a link to a.txt")
    page.check("link-new")
    page.activate("Create and copy")
    page.see("a.txt: the link has been copied. It works until")
    page.until("closed dialog", lambda: not page.run("return document.querySelector('dialog')"))
    assert page.focused().accessible_name == "Link to a.txt", "there is nothing to close"
    page.check("link-copied")
    token = page.run("return window.copied").partition("#")[2]
    assert service.call("GET", f"/links/{token}") == b"a.txt"
    days = "SELECT round(extract(epoch FROM expires_at - created_at) / 86400) FROM file_links ORDER BY created_at DESC"
    assert service.sql(days)[0] == "7"
    # It can be seen as long as that is said.
    page.activate("Show it")
    page.see("Copied. It works until")
    page.check("link-shown")
    page.press(Keys.ESCAPE)
    page.see_no("Copied. It works until")

    # Where nothing can be copied, the person is told to, and a phone hands the link to another app.
    take_copies(page, is_possible=False)
    page.run("navigator.canShare = Boolean; navigator.share = async (data) => { window.shared = data; };")
    page.activate("Link to b.txt")
    page.activate("Create and copy")
    page.see("Copy it now, because it is not shown again.")
    selected = page.run("return document.activeElement.value?.slice(document.activeElement.selectionStart)")
    assert "/console/link#" in selected, "it can be copied by a key at once"
    page.activate("Share\u2026")
    shared = page.until("what was shared", lambda: page.run("return window.shared"))
    assert shared["title"] == "b.txt" and "/console/link#" in shared["url"]
    page.activate("Done")

    # Where none can be made, that is said in the dialog.
    service.sql("INSERT INTO file_links (id, file_id, user_id, token_hash, inline, expires_at) SELECT "
                "gen_random_uuid(), id, user_id, sha256((id::text || n)::bytea), false, now() + interval '1 day' "
                f"FROM files, generate_series(1, 99) n WHERE id = '{files['a.txt']['id']}'")
    page.activate("Link to a.txt")
    page.activate("Create and copy")
    page.see("There are too many links")
    page.check("link-refused-new")
    page.activate("Cancel")


def test_all_links_are_listed_with_what_they_lead_to_and_end_there(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/links")
    page.heading("Links")
    page.see("No links")
    page.check("links-none")
    files = [service.upload(user, name, b"x") for name in ("a.txt", "b.txt", "c.txt")]
    tokens = [new_link(service, user, file, inline=name == "b") for name, file in zip("abc", files)]
    service.call("GET", f"/links/{tokens[1]}")
    page.reload()
    page.see("c.txt", "Not yet", "in 1 day")
    rows = page.rows()
    assert [row.partition(".txt")[0][-1] for row in rows] == ["c", "b", "a"]
    for text, expected in (("Not yet", [True, False, True]), ("Shown in the browser", [False, True, False])):
        assert [text in row for row in rows] == expected
    page.check("links")
    page.activate(re.compile("^End the link to c.txt that works until"))
    page.see("c.txt can be opened by this link until")
    page.activate(re.compile("^End$"))
    page.see_no("c.txt")
    row = "return document.activeElement.closest('tr')?.innerText"
    page.until("the focus", lambda: "b.txt" in (page.run(row) or ""))
    page.activate("b.txt")
    page.heading("b.txt")
    service.call("DELETE", f"/uploads/{files[1]['id']}", token=user.token)
    page.open("/console/links")
    page.see("a.txt")
    page.see_no("b.txt")


def test_links_are_searched_and_several_are_ended_together(page, service):
    user = service.new_user()
    files = [service.upload(user, name, b"x") for name in ("plan a.txt", "plan b.txt", "other.txt")]
    tokens = [new_link(service, user, file) for file in files for _ in range(2)]
    page.sign_in(user, "/console/links")
    page.until("all", lambda: len(page.rows()) == 6)
    page.fill("Search", "PLAN")
    page.until("found", lambda: len(page.rows()) == 4 == len(page.rows("plan")))
    page.toggle("Select all on this page")
    page.see("4 selected")
    page.check("links-selected")
    page.activate(re.compile("^End$"))
    page.see("End 4 links?", "They will stop working.")
    page.run("document.querySelector('dialog .danger').click()")
    page.see("4 links have ended.", "No link matches")
    page.activate("Clear filters")
    page.until("others", lambda: len(page.rows("other.txt")) == 2 == len(page.rows()))
    for token in tokens[:4]:
        with pytest.raises(Refused):
            service.call("GET", f"/links/{token}")
    assert service.call("GET", f"/links/{tokens[4]}") == b"x"


def test_the_page_of_a_link_shows_pictures_and_texts_that_may_be_shown(page, service):
    user = service.new_user(name="Ann <b>Lee</b>")
    picture = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
                               "awAAAABJRU5ErkJggg==")
    for name, type_, content in (("a.png", "image/png", picture), ("b.png", "image/png", b"\x89PNG\r\n\x1a\nbroken"),
                                 ("c.txt", "text/plain", b"x" * 70_000), ("d.txt", "text/plain", b"")):
        file = service.upload(user, name, content, type_)
        page.open("/api/v1/links/unknown")
        page.open(f"/console/link#{new_link(service, user, file, inline=True)}")
        page.heading(name)
        page.see("Ann <b>Lee</b> sent you a file")
        if name == "a.png":
            page.until("picture", lambda: page.run("return document.querySelector('main img')?.naturalWidth") == 1)
            page.check("link-picture")
        elif name == "b.png":
            page.see("This picture cannot be shown.")
        elif name == "c.txt":
            page.see("Only the beginning is shown here")
        else:
            page.see("Download")
        used = f"SELECT last_used_at IS NOT NULL FROM file_links WHERE file_id = '{file['id']}'"
        assert service.sql(used) == ["f" if name == "d.txt" else "t"]


def test_a_link_is_shown_once_copied_by_one_press_and_works_until_it_is_ended(page, service):
    user = service.new_user()
    file = service.upload(user, "a.txt", b"by a link")
    page.sign_in(user, f"/console/files/{file['id']}")
    page.see("No links")
    page.activate("Share link")
    page.see("Links also end when you delete")
    page.select("Works for", "Other")
    page.fill("How many", "31")
    page.press(Keys.ENTER)
    page.see("From 1 minute to 30 days.")
    page.fill("How many", "90")
    page.select("Unit", "minutes")
    page.toggle("Show the file in the browser")
    take_copies(page)
    page.activate("Create and copy")
    page.see("a.txt: the link has been copied. It works until")
    for_page = page.run("return window.copied")
    page.activate("Show it")
    page.see("Copied. It works until")
    assert page.focused().accessible_name == "Copy link"
    page.run("window.copied = null")
    page.press(Keys.ENTER)
    page.see("Copied")
    assert page.run("return window.copied") == for_page
    page.activate("For programs")
    page.activate("Copy link to file")
    page.until("other address", lambda: page.run("return window.copied") != for_page)
    itself = page.run("return window.copied")
    path = itself.removeprefix(f"{service.url}/api/v1")
    token = for_page.removeprefix(f"{service.url}/console/link#")
    assert path == f"/links/{token}/a.txt", "a program that goes by the address saves the file under its name"
    assert [page.tab_to(name).get_property("value") for name in (PAGE, ITSELF)] == [for_page, itself]
    assert service.call("GET", path) == b"by a link"
    page.check("file-link-made")
    page.activate("Done")
    page.see_no("Copied. It works until")
    page.see("in 1 hour", "Shown", "Not yet")
    page.check("file-links")
    page.reload()
    page.see("in 1 hour", "In the last hour")
    assert path not in page.run("return document.documentElement.outerHTML")
    page.activate(re.compile("^End the link to a.txt that works until"))
    page.see("End this link?")
    page.activate(re.compile("^End$"))
    page.see("The link has ended.", "No links")
    with pytest.raises(Refused) as refused:
        service.call("GET", path)
    assert refused.value.status == 404


@pytest.mark.parametrize("name", ["cats & dogs.txt", 'na\u00efve "quoted" name.txt', "a; filename*=UTF-8''b.txt",
                                  "<img src=x onerror=document.title=1>.txt", "\u0645\u0644\u0641.txt", "100%.txt"])
def test_the_page_of_a_link_saves_the_file_under_its_present_name(page, service, name):
    user = service.new_user()
    file = service.upload(user, "draft.txt", b"by a link")
    token = new_link(service, user, file)
    rename(service, user, file, name)
    page.open(f"/console/link#{token}")
    page.heading(name)
    page.see("Text \u00b7 9 bytes", "Download")
    page.see("A person sent you a file", "The link works until")
    page.see_no("Open in a tab", "Sign out", "by a link")
    page.activate(SAVE)
    [saved] = page.until("download", lambda: [one for one in page.downloads.iterdir() if one.suffix == ".txt"])
    assert saved.read_bytes() == b"by a link"
    # Browsers replace what a system cannot have in a name.
    assert re.sub(r"[\W_]", "", saved.name) == re.sub(r"[\W_]", "", name)


def test_the_page_of_a_link_leaves_a_session_as_it_is(page, service):
    user = service.new_user()
    file = service.upload(user, "a.txt", b"by a link")
    page.sign_in(user, "/console/files")
    page.see("a.txt")
    known = page.run("return [{ ...sessionStorage }, { ...localStorage }]")
    page.open("/api/v1/links/unknown")
    requests(page)
    page.open(f"/console/link#{new_link(service, user, file, inline=True)}")
    page.heading("a.txt")
    page.check("link")
    assert set(requests(page)) == {("GET", "/links/")}
    page.see("by a link")
    assert page.run("return [{ ...sessionStorage }, { ...localStorage }]") == known
    page.activate("Open in a tab")
    opened = page.until("other tab", lambda: page.driver.window_handles[2:])
    driver = page.driver
    driver.switch_to.window(opened[0])
    page.until("the text", lambda: driver.find_element(By.TAG_NAME, "body").text == "by a link")
    driver.close()
    driver.switch_to.window(page.handle)
    # Another link in the same tab, and then the console.
    rename(service, user, file, "b.txt")
    page.run("location.hash = arguments[0]", new_link(service, user, file))
    page.heading("b.txt")
    page.see_no("Open in a tab")
    page.activate("Cloakroom")
    page.at("/console/files")
    page.see("Sign out", "b.txt")


def test_back_and_forward_lead_from_one_link_to_the_other_of_a_tab(page, service):
    user = service.new_user()
    tokens = [new_link(service, user, service.upload(user, name)) for name in ("a.txt", "b.txt", "c.txt")]
    page.open(f"/console/link#{tokens[0]}")
    page.heading("a.txt")
    for token, name in zip(tokens[1:], ("b.txt", "c.txt")):
        page.run("location.hash = arguments[0]", token)
        page.heading(name)
    for go, name in ((page.back, "b.txt"), (page.back, "a.txt"), (page.forward, "b.txt")):
        go()
        page.heading(name)


def test_an_ended_link_is_said_by_its_page_and_by_the_link_itself(page, service):
    user = service.new_user()
    file = service.upload(user, "a.txt", b"by a link")
    token = new_link(service, user, file)
    page.open(f"/console/link%23{token}")  # as some programs write it
    page.heading("a.txt")
    service.call("DELETE", f"/uploads/{file['id']}", token=user.token)
    page.activate(SAVE)
    page.heading("This link has ended")
    page.see("Make sure the address is complete")
    page.see_no("Download", "a.txt")
    page.check("link-ended")
    assert not list(page.downloads.iterdir())
    for other in ("", "x", "..", "%00", "A" * 43):
        page.open("/api/v1/links/unknown")
        page.open(f"/console/link#{other}")
        page.heading("This link has ended")
    # What a link leads to is asked once, while the modules of its page are still on their way.
    page.open("/healthz")
    requests(page)
    page.open("/console/link#x")
    page.heading("This link has ended")
    assert requests(page) == [("GET", "/links/")]
    page.open(f"/api/v1/links/{token}")
    page.see("This link has ended", "Make sure the address is complete")
    assert page.driver.title == "This link has ended"
    # Its style is allowed by the policy.
    assert page.driver.find_element(By.TAG_NAME, "main").value_of_css_property("max-width") == "432px"
    page.screenshot("link-ended-itself.png")


def test_a_link_that_cannot_be_asked_about_says_why_and_goes_on_by_itself(page, service):
    user = service.new_user()
    token = new_link(service, user, service.upload(user, "a.txt", b"by a link"))
    page.open(f"/console/link#{token}")
    page.heading("a.txt")
    for status, sentence in ((429, "Too many requests."), (503, "The service is unavailable at the moment."),
                             (0, "The service cannot be reached.")):
        refuse(page, status, status)
        page.activate(SAVE)
        page.see(sentence, "Next try")
        if status == 429:
            page.check("link-refused")
        page.see("Download")
        page.see_no("Next try")
    assert not list(page.downloads.iterdir())
    page.activate(SAVE)
    assert page.downloaded("a.txt") == b"by a link"


def test_no_key_is_asked_for_a_link(page, start_service):
    page.service = service = start_service(CLOAKROOM_API_KEY_ENABLED="true", CLOAKROOM_API_KEY="k" * 20,
                                           CLOAKROOM_API_KEY_SCOPE="all")
    key = {"X-API-Key": "k" * 20}
    answer = service.call("POST", "/auth/register", {"email": "a@example.com", "password": PASSWORD}, headers=key)
    form = (b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nby a link\r\n--b--\r\n')
    token = answer["access_token"]
    file = service.call("POST", "/uploads", form, token, key | {"Content-Type": "multipart/form-data; boundary=b"})
    url = service.call("POST", f"/uploads/{file['id']}/links", {}, token, key)["url"]
    page.open(f"/console/link#{url.removeprefix('/api/v1/links/')}")
    page.heading("a.txt")
    page.see_no("API key")
    page.activate(SAVE)
    assert page.downloaded("a.txt") == b"by a link"
    browser.check_logs(page.driver, [service.url])
