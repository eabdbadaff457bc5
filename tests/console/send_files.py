"""Links by which strangers send files into a folder: asking for files, the page of such a link, what has come by it,
and what becomes of it in a network that breaks."""

import json
import re

import pytest
from selenium.webdriver.common.keys import Keys

from administration import rows as table_rows
from files import finished, rows
from folders import folders, go, put
from links import requests, take_copies
from service import PASSWORD
from transfers import MB, write

# What a page sends, as often as it was sent.
SENT = "return performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/files')).length"
UNLOAD = "const event = new Event('beforeunload', { cancelable: true }); dispatchEvent(event);" \
    "return event.defaultPrevented"
# Most bytes of the page over the wire, and milliseconds until it can be used in a slow network: in one of 400 ms and
# 50,000 bytes a second, as browsers call "slow 3G".
MAX_BYTES, MAX_MILLISECONDS = 70_000, 5000


def new_link(service, user, folder="/", **fields):
    """The token of a new link to send files by."""
    return service.call("POST", "/links", {"upload_to": folder} | fields, user.token)["url"].rpartition("/")[2]


def link_of(service, user):
    """The only link of a user, as the API shows it."""
    [link] = service.call("GET", "/links", token=user.token)["links"]
    return link


def stored(service, user):
    """The folders and names of the user's files."""
    items = service.call("GET", "/uploads?size=100", token=user.token)["items"]
    return sorted(file["folder"].rstrip("/") + "/" + file["filename"] for file in items)


def send(service, token, name, content=b"content"):
    """Sends a file as a program does that has only the link."""
    form = (f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'
            .encode() + content + b"\r\n--b--\r\n")
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    return service.call("POST", f"/links/{token}/files", form, headers=kind)


# The owner


def test_files_are_asked_for_at_a_folder_with_a_note_and_limits(page, service):
    user = service.new_user()
    put(service, user, "/plans/1.txt")
    page.sign_in(user, "/console/files")
    page.until("folder", lambda: folders(page) == ["plans"])
    go(page, ".folders", "plans")
    page.until("row", lambda: rows(page) == ["1.txt"])
    take_copies(page)
    page.activate("Ask for files")
    page.see("Ask for files in plans", "Anyone with the link can send files into this folder",
             "At most one mail an hour.")
    page.check("ask-for-files")
    page.fill("Note (optional)", "Pictures of the house,")
    page.press(Keys.ENTER, "please.")
    page.select("Works for", "Other")
    page.fill("How many", "90")
    page.select("Unit", "minutes")
    page.fill("Files at most", "3")
    page.fill("In all at most", "2")
    assert page.tab_to("Mail me when files come").is_selected()
    page.check("ask-for-files-filled")
    page.activate("Create and copy")
    page.see("plans: the link has been copied. It works until")
    address = page.run("return window.copied")
    assert address.startswith(f"{service.url}/console/send#")
    link = link_of(service, user)
    assert [link[name] for name in ("upload_to", "note", "max_files", "max_bytes", "notify", "folder")] == [
        "/plans", "Pictures of the house,\nplease.", 3, 2 * MB, True, None]
    page.activate("Show it")
    page.see("Copied. It works until", "Anyone who opens it sees your note and your name, and can send files.")
    assert page.driver.find_element("css selector", "dialog img.qr").accessible_name == "QR code of the link"
    page.see_no("For programs")
    page.check("ask-for-files-made")
    page.activate("Done")
    # At the root, by somebody who wants no mail and knows no limits.
    page.open("/console/files")
    page.activate("Ask for files")
    page.see("Ask for files")
    page.see_no("Ask for files in")
    page.fill("In all at most", "2000")
    page.select("Unit of size", "GB")
    page.activate("Create and copy")
    page.see("At most 1 GB, which is all of your room.")
    page.fill("In all at most", "")
    page.fill("Files at most", "1001")
    page.activate("Create and copy")
    page.see("Must be at most 1000.")
    page.fill("Files at most", "1000")
    page.toggle("Mail me when files come")
    page.activate("Create and copy")
    page.see("Files: the link has been copied.")
    newest = service.call("GET", "/links", token=user.token)["links"][0]
    assert [newest[name] for name in ("upload_to", "note", "max_files", "notify")] == ["/", None, 1000, False]


def test_where_no_mail_is_sent_that_is_said_and_young_accounts_are_told_why_not(page, start_service):
    page.service = service = start_service(CLOAKROOM_SMTP_URL="none")
    service.call("POST", "/auth/register", {"email": "new@example.com", "password": PASSWORD})
    page.open("/console/files")
    page.fill("Username or e-mail", "new@example.com")
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("No files yet")
    page.activate("Ask for files")
    page.see("This service sends no mail. What has come is under Links.")
    page.see_no("Mail me")
    page.activate("Create and copy")
    page.see("Accounts that are younger than seven days cannot ask for files here.")


def test_what_has_come_is_marked_found_and_told_by_its_link_which_ends_there(page, service):
    user = service.new_user()
    put(service, user, "/plans/own.txt")
    token = new_link(service, user, "/plans", note="Pictures of the house", max_files=5)
    send(service, token, "sent.txt", b"x" * 2048)
    page.sign_in(user, "/console/files?folder=%2Fplans")
    page.until("rows", lambda: sorted(rows(page)) == ["own.txt", "sent.txt"])
    assert [("Received" in page.rows(name)[0]) for name in ("own.txt", "sent.txt")] == [False, True]
    page.check("received")
    page.open("/console/files")
    page.until("folder", lambda: folders(page) == ["plans"])
    page.select("Type", "Received")
    page.at("/console/files?type=received")
    page.until("the received one", lambda: rows(page) == ["sent.txt"])
    page.see("/plans")
    page.check("received-filtered")
    page.activate("sent.txt")
    page.heading("sent.txt")
    page.see("(received by a link)")
    page.check("received-file")
    for name in ("sent.txt", "own.txt"):
        [file] = service.call("GET", f"/uploads?search={name}", token=user.token)["items"]
        service.call("DELETE", f"/uploads/{file['id']}", token=user.token)
    page.open("/console/files/deleted")
    page.until("both", lambda: sorted(rows(page)) == ["own.txt", "sent.txt"])
    page.select("Type", "Received")
    page.until("the received one", lambda: rows(page) == ["sent.txt"])
    page.open("/console/files?type=received")
    page.see("No file matches")
    page.activate("Show all files")
    page.see("No files yet")

    new_link(service, user, "/other")
    page.open("/console/links")
    page.see("/plans", "Pictures of the house", "Received 1 of 5 files, 2 kB of 1 GB")
    page.check("links-to-send")
    page.fill("Search", "HOUSE")
    page.until("found", lambda: len(page.rows()) == 1 == len(page.rows("/plans")))
    page.activate(re.compile("^End the link to /plans that works until"))
    page.see("/plans takes files by this link until")
    page.activate(re.compile("^End$"))
    page.see("The link has ended.", "No link matches")
    assert link_of(service, user)["upload_to"] == "/other"


def test_the_audit_log_has_sentences_for_it(page, service):
    user = service.new_user()
    token = new_link(service, user, "/plans")
    send(service, token, "sent.txt")
    service.call("DELETE", f"/links/{link_of(service, user)['id']}", token=user.token)
    service.sql("INSERT INTO audit_events (action, subject_type, subject_id, details) SELECT 'file.receive', 'link', "
                """gen_random_uuid(), '{"count": 120, "hour": "2026-01-15T05:00:00.000000Z"}'""")
    page.sign_in(service.admin(), "/console/audit?period=60")
    page.until("events", lambda: table_rows(page))
    page.see("Somebody sent sent.txt by a link", "Somebody sent 120 files by a link",
             "created a link by which files are sent to /plans", "ended a link by which files were sent to /plans")
    page.select("Action", "Upload by a link")
    page.until("that alone", lambda: all("by a link" in row for row in table_rows(page)))


# Strangers


def test_a_stranger_sends_several_files_and_sees_what_has_arrived(page, service, tmp_path):
    user = service.new_user(name="Ann <b>Lee</b>")
    token = new_link(service, user, "/plans", note="Pictures of\nthe <i>house</i>", max_files=10)
    page.open("/healthz")
    requests(page)
    page.open(f"/console/send#{token}")
    page.heading("Send files")
    page.see("Ann <b>Lee</b> asks you for files", "Pictures of the <i>house</i>",
             "JPEG picture, PNG picture, PDF, and Text, up to 10 MB each.", "10 files can still be sent, 1 GB in all.",
             "The link works until")
    page.see_no("Sign out", "Sign in")
    lines = "return document.querySelector('.description').innerText.split('\\n').length"
    assert page.run(lines) == 2
    assert requests(page) == [("GET", "/links/")]
    page.check("send")
    page.run("document.querySelector('input[type=file]').addEventListener('click', event => {"
             " event.preventDefault(); window.wasAsked = true; })")
    page.activate("Choose files")
    assert page.run("return window.wasAsked")
    page.choose_files(write(tmp_path, "a.txt", b"a" * 2048), write(tmp_path, "b.txt", b"b"))
    finished(page, "2 done")
    page.see("8 files can still be sent", "a.txt", "2 kB, uploaded", "b.txt", "1 byte, uploaded")
    assert stored(service, user) == ["/plans/a.txt", "/plans/b.txt"]
    assert not page.run(UNLOAD)
    page.check("send-done")
    # A folder comes without itself.
    folder = tmp_path / "folder"
    for name in ("1.txt", "sub/2.txt", "sub/.DS_Store"):
        write(folder, name)
    page.drop_files(folder)
    finished(page, "4 done")
    page.see("Not uploaded: 1 hidden system file.")
    assert stored(service, user) == ["/plans/1.txt", "/plans/2.txt", "/plans/a.txt", "/plans/b.txt"]
    files = service.call("GET", "/uploads?received=true", token=user.token)["items"]
    assert len(files) == 4 and {file["received_by"] for file in files} == {link_of(service, user)["id"]}
    assert page.run("return document.querySelector('.tray-list').checkVisibility()"), "it stays open"
    # The page of links to files leads here, and this one there.
    page.open(f"/console/link#{token}")
    page.heading("Send files")
    page.at("/console/send")
    other = service.call("POST", f"/uploads/{files[0]['id']}/links", {}, user.token)["url"].rpartition("/")[2]
    page.open("/healthz")
    page.open(f"/console/send#{other}")
    page.heading(files[0]["filename"])
    page.at("/console/link")


def test_the_page_leaves_a_session_as_it_is_and_sends_nothing_of_it(page, start_service, tmp_path):
    page.service = service = start_service(CLOAKROOM_API_KEY_ENABLED="true", CLOAKROOM_API_KEY="k" * 20,
                                           CLOAKROOM_API_KEY_SCOPE="all")
    key = {"X-API-Key": "k" * 20}
    body = {"email": "a@example.com", "password": PASSWORD}
    answer = service.call("POST", "/auth/register", body, headers=key)
    service.sql("UPDATE users SET created_at = now() - interval '8 days'")
    token = service.call("POST", "/links", {"upload_to": "/"}, answer["access_token"], key)["url"].rpartition("/")[2]
    page.open("/console")
    page.fill("Username or e-mail", "a@example.com")
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("API key")
    page.fill("API key", "k" * 20)
    page.press(Keys.ENTER)
    page.see("No files yet")
    known = page.run("return [{ ...sessionStorage }, { ...localStorage }]")
    page.open(f"/console/send#{token}")
    page.heading("Send files")
    page.driver.get_log("performance")
    page.choose_files(write(tmp_path, "a.txt"))
    finished(page, "1 done")
    [headers] = [event["params"]["request"]["headers"] for event in
                 (json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance"))
                 if event["method"] == "Network.requestWillBeSent" and event["params"]["request"]["method"] == "POST"]
    assert not {"authorization", "x-api-key", "cookie"} & {name.lower() for name in headers}
    assert page.run("return [{ ...sessionStorage }, { ...localStorage }]") == known
    page.activate("Cloakroom")
    page.at("/console/files")
    page.until("the file", lambda: rows(page) == ["a.txt"])


def test_a_session_that_another_tab_renews_ends_no_upload(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    other = page.duplicate()
    other.see("Sign out")
    page.open(f"/console/send#{new_link(service, user)}")
    page.heading("Send files")
    token = "return sessionStorage.getItem('cloakroom.refresh_token')"
    before = page.run(token)
    page.slow_down(upload=MB)
    page.choose_files(write(tmp_path, "slow.txt", b"s" * (8 * MB)))
    page.until("progress", lambda: re.search(r"[1-9]\d?%", page.text()))
    other.reload(is_late=True)
    other.see("Sign out")
    page.until("another token", lambda: page.run(token) != before)
    page.slow_down()
    finished(page, "1 done")
    page.see_no("Sign out")


@pytest.mark.parametrize("end", ["kill", "lost answer"])
def test_uploads_go_on_after_a_break_and_are_stored_once(page, service, tmp_path, end):
    user = service.new_user()
    page.open(f"/console/send#{new_link(service, user, max_files=2)}")
    page.heading("Send files")
    if end == "kill":
        page.slow_down(upload=MB)
    else:
        page.run("""
            const send = XMLHttpRequest.prototype.send;
            let sent = 0;
            XMLHttpRequest.prototype.send = function (body) {
                // As if the connection had ended before the first byte of the second file's answer.
                if (++sent === 2) this.onload = this.onerror;
                send.call(this, body);
            };""")
    size = 8 * MB if end == "kill" else 8
    page.choose_files(write(tmp_path, "first.txt", b"s" * size), write(tmp_path, "next.txt"))
    if end == "kill":
        page.until("progress", lambda: re.search(r"[1-9]\d?%", page.text()))
        assert page.run(UNLOAD), "leaving asks"
        page.check("send-running")
        service.kill()
        page.until("time of day", lambda: re.search(r"cannot be reached\. Next try at \d+:\d\d:\d\d", page.text()))
        page.check("send-waiting")
        service.start()
        page.slow_down()
    finished(page, "2 done")
    assert stored(service, user) == ["/first.txt", "/next.txt"]
    page.see("Nothing more is taken by this link")


def test_a_limit_is_waited_for_and_one_file_is_cancelled(page, start_service, tmp_path):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_UPLOAD="3")
    user = service.new_user()
    page.open(f"/console/send#{new_link(service, user)}")
    page.heading("Send files")
    page.choose_files(*[write(tmp_path, f"{number}.txt") for number in range(6)])
    page.see("3 of 6 done")
    page.until("time of day", lambda: re.search(r"Continuing at \d+:\d\d:\d\d", page.text()))
    page.activate("Cancel 5.txt")
    page.until("one more", lambda: re.search(r"[45] of 5 done", page.text()))
    page.activate("Cancel all")
    page.until("end", lambda: re.search(r"[45] done", page.text()))
    assert "/5.txt" not in stored(service, user)


def test_what_is_not_taken_is_said_before_it_is_sent(page, service, tmp_path):
    user = service.new_user()
    page.open(f"/console/send#{new_link(service, user, max_bytes=1000, max_files=3)}")
    page.heading("Send files")
    page.see("3 files can still be sent, 1,000 bytes in all.")
    page.choose_files(write(tmp_path, "large.pdf", bytes(10 * MB + 1)), write(tmp_path, "a.zip", b"PK\x03\x04\x00"),
                      write(tmp_path, "a.txt", b"a" * 600), write(tmp_path, "b.txt", b"b" * 601))
    finished(page, "1 done, 3 failed")
    page.see("Files can be up to 10 MB here", "Files of this type (ZIP archive) are not accepted here",
             "This link takes only 400 bytes more.")
    assert page.run(SENT) == 1
    page.check("send-refused")
    page.choose_files(*[write(tmp_path, f"{number}.txt", b"n") for number in range(3)])
    finished(page, "3 done, 4 failed")
    page.see("Nothing more is taken by this link: all that it takes has come.")
    assert not page.named("Choose files") and page.run(SENT) == 3
    page.check("send-full")
    # Whoever comes now finds it so.
    page.reload()
    page.see("Nothing more is taken by this link")
    assert not page.named("Choose files")


def test_what_others_have_used_up_and_what_the_owner_has_no_room_for_is_said_in_its_own_words(page, start_service,
                                                                                              tmp_path):
    page.service = service = start_service(CLOAKROOM_USER_STORAGE_QUOTA="100", CLOAKROOM_TRASH_DAYS="0")
    user = service.new_user()
    tokens = [new_link(service, user, max_files=1), new_link(service, user)]
    page.open(f"/console/send#{tokens[0]}")
    page.heading("Send files")
    send(service, tokens[0], "other.txt", b"o" * 90)
    page.choose_files(write(tmp_path, "mine.txt"))
    finished(page, "0 done, 1 failed")
    page.see("Nothing more is taken by this link")
    page.open("/healthz")
    page.open(f"/console/send#{tokens[1]}")
    page.heading("Send files")
    page.choose_files(write(tmp_path, "twenty.txt", b"n" * 20))
    finished(page, "0 done, 1 failed")
    page.see("There is no room for this file at the moment. Tell whoever asked you for it.")
    [file] = service.call("GET", "/uploads", token=user.token)["items"]
    service.call("DELETE", f"/uploads/{file['id']}", token=user.token)
    page.activate("Try again")
    finished(page, "1 done")


def test_an_ended_link_is_said_and_what_has_arrived_stays(page, service, tmp_path):
    user = service.new_user()
    token = new_link(service, user)
    page.open(f"/console/send%23{token}")  # as some programs write it
    page.heading("Send files")
    page.choose_files(write(tmp_path, "a.txt"))
    finished(page, "1 done")
    service.call("DELETE", f"/links/{link_of(service, user)['id']}", token=user.token)
    page.choose_files(write(tmp_path, "b.txt"), write(tmp_path, "c.txt"))
    page.heading("This link has ended")
    finished(page, "1 done, 2 failed")
    page.see("No files can be sent here any longer. Make sure the address is complete", "This link had already ended.",
             "a.txt")
    assert not page.named("Choose files") and not page.named("Try again") and page.run(SENT) == 2
    page.check("send-ended")
    for other in ("", "x", "A" * 43):
        page.open("/healthz")
        page.open(f"/console/send#{other}")
        page.heading("This link has ended")


def test_the_page_is_small_and_can_be_used_soon_in_a_slow_network(page, service, tmp_path):
    user = service.new_user()
    token = new_link(service, user)
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source="""
        new MutationObserver((_, observer) => {
            if (!document.querySelector("main .button.primary")) return;
            observer.disconnect();
            window.usable = performance.now();
        }).observe(document, { childList: true, subtree: true });""")
    page.open("/healthz")
    page.cdp("Network.clearBrowserCache")
    page.slow_down(upload=50_000, download=50_000, latency=400)
    page.driver.get_log("performance")
    page.open(f"/console/send#{token}")
    usable = page.until("button", lambda: page.run("return window.usable"))
    page.slow_down()
    sizes = {}
    for entry in page.driver.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.loadingFinished":
            sizes[event["params"]["requestId"]] = event["params"]["encodedDataLength"]
    figures = f"{sum(sizes.values())} bytes in {len(sizes)} answers, {usable:.0f} ms"
    assert len(sizes) > 5, "the requests were recorded"
    assert sum(sizes.values()) < MAX_BYTES and usable < MAX_MILLISECONDS, figures
    print(figures)
    page.choose_files(write(tmp_path, "a.txt"))
    finished(page, "1 done")
