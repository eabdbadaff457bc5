"""Links: making and copying one, its page for people without an account, and what a browser shows of an ended one."""

import json
import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import browser
from service import PASSWORD, Refused

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


def test_a_link_is_shown_once_copied_by_one_press_and_works_until_it_is_ended(page, service):
    user = service.new_user()
    file = service.upload(user, "a.txt", b"by a link")
    page.sign_in(user, f"/console/files/{file['id']}")
    page.see("No links")
    page.activate("Create a link")
    page.see("Links also end when you delete")
    page.fill("Works for", "31")
    page.press(Keys.ENTER)
    page.see("From 1 minute to 30 days.")
    page.fill("Works for", "90")
    page.select("Unit", "minutes")
    page.toggle("Show the file in the browser")
    page.activate(re.compile("^Create a link$"), "button")
    page.see("Copy it now, because it is not shown again. It works until")
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text; };")
    assert page.focused().accessible_name == "Copy link"
    page.press(Keys.ENTER)
    page.see("Copied")
    for_page = page.run("return window.copied")
    page.activate("Copy link to file")
    page.until("other address", lambda: page.run("return window.copied") != for_page)
    itself = page.run("return window.copied")
    path = itself.removeprefix(f"{service.url}/api/v1")
    assert for_page == f"{service.url}/console/link#{path.removeprefix('/links/')}"
    assert [page.tab_to(name).get_property("value") for name in (PAGE, ITSELF)] == [for_page, itself]
    assert service.call("GET", path) == b"by a link"
    page.check("file-link-made")
    page.press(Keys.ESCAPE)
    page.see("Copy it now")
    page.activate("Done")
    page.see_no("Copy it now")
    page.see("in 1 hour", "Shown")
    page.check("file-links")
    page.reload()
    page.see("in 1 hour")
    assert path not in page.run("return document.documentElement.outerHTML")
    page.activate(re.compile("^End the link that works until"))
    page.see("End this link?")
    page.activate("End link")
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
    page.see_no("Open in the browser", "Sign out")
    page.activate("Download")
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
    assert set(requests(page)) == {("HEAD", "/links/")}
    assert page.run("return [{ ...sessionStorage }, { ...localStorage }]") == known
    page.activate("Open in the browser")
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
    page.see_no("Open in the browser")
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
    page.activate("Download")
    page.heading("This link has ended")
    page.see("Make sure the address is complete")
    page.see_no("Download", "a.txt")
    page.check("link-ended")
    assert not list(page.downloads.iterdir())
    for other in ("", "x", "..", "%00", "A" * 43):
        page.open("/api/v1/links/unknown")
        page.open(f"/console/link#{other}")
        page.heading("This link has ended")
    page.open(f"/api/v1/links/{token}")
    page.see("This link has ended", "Make sure the address is complete")
    assert page.driver.title == "This link has ended"
    # Its style is allowed by the policy.
    assert page.driver.find_element(By.TAG_NAME, "body").value_of_css_property("max-width") == "480px"
    page.screenshot("link-ended-itself.png")


def test_a_link_that_cannot_be_asked_about_says_why_and_goes_on_by_itself(page, service):
    user = service.new_user()
    token = new_link(service, user, service.upload(user, "a.txt", b"by a link"))
    page.open(f"/console/link#{token}")
    page.heading("a.txt")
    for status, sentence in ((429, "Too many requests."), (503, "The service is unavailable at the moment."),
                             (0, "The service cannot be reached.")):
        refuse(page, status, status)
        page.activate("Download")
        page.see(sentence, "Next try")
        if status == 429:
            page.check("link-refused")
        page.see("Download")
        page.see_no("Next try")
    assert not list(page.downloads.iterdir())
    page.activate("Download")
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
    page.activate("Download")
    assert page.downloaded("a.txt") == b"by a link"
    browser.check_logs(page.driver, [service.url])
