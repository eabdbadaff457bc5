"""The list of files, uploads and downloads, the page of one file, and links."""

import re
import time

import pytest
from selenium.webdriver.common.keys import Keys

from service import Refused

MB = 1 << 20
HOSTILE = [
    '<img src=x onerror="document.title=1">.txt', "javascript:alert(1).txt", "ملف طويل جدا.txt",
    "a" * 200 + ".txt", "'; --.txt",
]


def write(directory, name, content=b"content"):
    path = directory / name
    path.write_bytes(content)
    return path


def rows(page):
    """The names in the list, from top to bottom."""
    return page.run("return [...document.querySelectorAll('.files-list tbody th')].map(cell =>"
                    " cell.querySelector('bdi').textContent)")


def finished(page, summary):
    """Waits until nothing is sent or received any more, and the list of transfers sums up like that."""
    page.until(f"summary {summary!r}", lambda: page.run(
        "return document.querySelector('.tray-toggle')?.textContent") == summary)


def is_dialog(page):
    return page.run("return Boolean(document.querySelector('dialog[open]'))")


def stored(service, user):
    """The names of the user's files, newest first."""
    return [file["filename"] for file in service.call("GET", "/uploads", token=user.token)["items"]]


def rename(page, name):
    """Gives the file whose page is shown another name."""
    page.activate("Rename")
    page.see("Rename the file")
    page.fill("Name", name)
    page.press(Keys.ENTER)
    page.until("closed dialog", lambda: not is_dialog(page))


def test_the_first_file_is_uploaded_changed_downloaded_and_deleted(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.heading("Files")
    page.see("No files yet", "0 files, 0 bytes of 1 GB", "PDF, and Text, up to 10 MB each.")
    page.see_no("Search names", "Nothing found")
    page.run("document.querySelector('input[type=file]').addEventListener('click', event => {"
             " event.preventDefault(); window.wasAsked = true; })")
    page.activate("Upload files")
    assert page.run("return window.wasAsked")
    page.choose_files(write(tmp_path, "keys.txt", b"front desk"))
    finished(page, "1 done")
    page.see("10 bytes, uploaded", "1 file, 10 bytes of 1 GB")
    page.until("row", lambda: rows(page) == ["keys.txt"])
    page.check("files-uploaded")
    page.activate("Clear")
    page.see_no("1 done")

    page.tab_to("keys.txt")
    page.press(Keys.ENTER)
    page.heading("keys.txt")
    rename(page, "visitors.txt")
    page.heading("visitors.txt")
    assert page.focused().accessible_name == "Rename"
    page.fill("Description (optional)", "For visitors")
    page.toggle("Everyone signed in here can read it")
    page.see("Everyone signed in here can read the file now.", "Copy the address for them")
    page.activate("Save")
    page.see("Your changes have been saved.", "Uploaded as keys.txt")
    page.heading("visitors.txt")
    page.check("file")
    page.reload()
    page.heading("visitors.txt")
    [file] = service.call("GET", "/uploads", token=user.token)["items"]
    assert (file["filename"], file["description"], file["is_public"]) == ("visitors.txt", "For visitors", True)

    page.activate("Download")
    assert page.downloaded("visitors.txt") == b"front desk"
    service.call("POST", f"/uploads/{file['id']}/links", {}, user.token)
    page.activate("Delete")
    page.see("Delete this file?", "visitors.txt can be restored for 7 days. Its links will stop working for good.")
    page.activate("Cancel")
    page.until("closed dialog", lambda: not is_dialog(page))
    assert page.focused().accessible_name == "Delete"
    page.press(Keys.ENTER)
    page.see("Delete this file?")
    page.activate(re.compile("^Delete$"), "button")
    page.at("/console/files")
    page.see("visitors.txt has been deleted.", "No files yet")


def test_a_file_is_renamed_in_its_row_by_key_and_by_button(page, service):
    user = service.new_user()
    service.upload(user, "draft of plan.txt", b"plan")
    page.sign_in(user, "/console/files")
    page.tab_to("draft of plan.txt")
    page.press(Keys.F2)
    page.see("Rename the file")
    page.check("files-rename")
    page.press("plan")  # in place of all but the ending
    page.press(Keys.ENTER)
    page.until("name", lambda: rows(page) == ["plan.txt"] == stored(service, user))
    page.activate("Rename plan.txt")
    page.fill("Name", "b\u202e.txt")
    page.press(Keys.ENTER)
    page.see("Must not contain")
    page.press(Keys.ESCAPE)
    assert page.focused().accessible_name == "Rename plan.txt" and stored(service, user) == ["plan.txt"]


# What a notice lies over, of what people need next.
COVERED = """
    const notice = document.querySelector('.notice').getBoundingClientRect();
    return [...document.querySelectorAll('h1, .page-head .button, .list-tools *, .subnav a, .side a, .side button, th')]
        .filter(each => each.checkVisibility()).filter(each => {
            const box = each.getBoundingClientRect();
            return box.right > notice.left && box.left < notice.right
                && box.bottom > notice.top && box.top < notice.bottom;
        }).map(each => each.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize("width", [390, 1440])
def test_a_notice_is_clear_of_titles_and_tools_and_goes_with_its_page(page, service, width):
    user = service.new_user()
    file = service.upload(user, "a.txt", b"a")
    service.upload(user, "b.txt", b"b")
    page.sign_in(user, "/console/files")
    page.screen(width, height=800)
    page.activate("Delete a.txt")
    page.see("a.txt has been deleted.")
    assert not page.run(COVERED)
    page.activate("Undo the deletion of a.txt")
    page.see("a.txt has been restored.")
    assert not page.run(COVERED)
    page.activate("b.txt")
    page.heading("b.txt")
    page.see_no("has been restored")
    assert service.call("GET", f"/uploads/{file['id']}", token=user.token)


def test_what_two_tabs_change_is_merged_and_a_conflict_shows_both(page, service):
    user = service.new_user()
    file = service.upload(user, "keys.txt")["id"]
    page.sign_in(user, f"/console/files/{file}")
    page.heading("keys.txt")
    other = page.duplicate()
    other.heading("keys.txt")
    other.fill("Description (optional)", "For visitors")
    other.activate("Save")
    other.see("Your changes have been saved.")
    # A rename in the first tab keeps the description that it has not seen.
    rename(page, "visitors.txt")

    def details():
        found = service.call("GET", f"/uploads/{file}", token=user.token)
        return found["filename"], found["description"]
    page.until("name", lambda: details() == ("visitors.txt", "For visitors"))
    # Nor does it replace what it has not shown, although it knows of the version of its own change.
    page.heading("visitors.txt")
    page.toggle("Everyone signed in here can read it")
    page.see("Everyone signed in here can read the file now.")
    page.fill("Description (optional)", "For guests")
    page.activate("Save")
    page.see("Somebody saved “For visitors” here in the meantime. Save again to replace it.")
    page.check("conflict")
    assert details() == ("visitors.txt", "For visitors")
    page.activate("Save")
    page.until("description", lambda: details() == ("visitors.txt", "For guests"))


@pytest.mark.parametrize("described", ["", " For\r\nkeys\n"])
@pytest.mark.parametrize("is_renamed_first", [True, False])
def test_a_name_and_a_description_of_two_tabs_are_both_kept_in_either_order(page, service, is_renamed_first, described):
    user = service.new_user()
    file = service.upload(user, "keys.txt", description=described)["id"]
    page.sign_in(user, f"/console/files/{file}")
    page.heading("keys.txt")
    other = page.duplicate()
    other.heading("keys.txt")
    first, second = (page, other) if is_renamed_first else (other, page)
    for tab in (first, second):
        if tab is page:
            rename(tab, "visitors.txt")
        else:
            tab.fill("Description (optional)", "For visitors")
            tab.activate("Save")
            tab.see("Your changes have been saved.")
    found = service.call("GET", f"/uploads/{file}", token=user.token)
    assert (found["filename"], found["description"]) == ("visitors.txt", "For visitors")
    second.heading("visitors.txt")


def test_an_upload_whose_answer_is_lost_is_sent_again_and_stored_once(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.run("""
        const send = XMLHttpRequest.prototype.send;
        let lost = false;
        XMLHttpRequest.prototype.send = function (body) {
            if (body && !lost) {
                lost = true;
                this.onload = this.onerror; // as if the connection had ended before the first byte
            }
            send.call(this, body);
        };""")
    page.choose_files(write(tmp_path, "keys.txt", b"front desk"))
    finished(page, "1 done")
    assert stored(service, user) == ["keys.txt"]


@pytest.mark.long
def test_a_name_that_is_refused_is_explained_at_its_field(page, service):
    user = service.new_user()
    file = service.upload(user, "a.txt", b"a")
    service.call("POST", f"/uploads/{file['id']}/links", {}, user.token)
    page.sign_in(user, f"/console/files/{file['id']}")
    page.heading("a.txt")
    page.activate("Delete")
    page.see("Delete this file?")
    page.check("file-delete")
    page.press(Keys.ESCAPE)
    page.activate("Share link")
    page.see("Links also end when you delete")
    page.check("file-link-make")
    page.press(Keys.ESCAPE)
    page.activate("Rename")
    page.fill("Name", "b\u202e.txt")
    page.press(Keys.ENTER)
    page.see("Must not contain")
    assert page.focused().accessible_name == "Name"
    page.fill("Name", "")
    page.press(Keys.ENTER)
    page.see("Fill in this field.")
    assert stored(service, user) == ["a.txt"]


@pytest.mark.long
def test_search_type_order_and_pages_are_in_the_address(page, service):
    user = service.new_user()
    service.add_files(user, 30, name="'note ' || n || '.txt'")
    service.upload(user, "Picture.png", b"\x89PNG\r\n\x1a\n", "image/png", description="of a hat")
    page.sign_in(user, "/console/files")
    page.see("1–25 of 31")
    page.activate("Next")
    page.at("/console/files?page=2")
    page.see("26–31 of 31", "Page 2 of 2")
    assert page.focused().tag_name == "h1" and page.run("return scrollY") == 0
    page.activate("Name")
    page.at("/console/files?sort_by=filename&sort_order=asc")
    page.until("order by name", lambda: rows(page)[:2] == ["note 1.txt", "note 10.txt"])
    page.activate("Name")
    page.until("other direction", lambda: rows(page)[0] == "Picture.png")
    page.back()
    page.until("first direction", lambda: rows(page)[0] == "note 1.txt")
    page.fill("Search", "HAT")
    page.at("/console/files?sort_by=filename&sort_order=asc&search=HAT")
    page.until("found", lambda: rows(page) == ["Picture.png"])
    assert page.focused().accessible_name == "Search"
    page.fill("Search", "nothing like it")
    page.see("No file matches")
    page.check("files-no-match")
    page.activate("Show all files")
    page.see("1–25 of 31")
    page.select("Type", "PNG")
    page.until("of the type", lambda: rows(page) == ["Picture.png"])
    page.reload()
    page.until("of the type", lambda: rows(page) == ["Picture.png"])
    page.activate("Picture.png")
    page.heading("Picture.png")
    page.activate("All files")
    page.until("of the type", lambda: rows(page) == ["Picture.png"])
    page.open("/console/files?search=note&page=99")
    page.see("26–30 of 30")
    page.at("/console/files?search=note&page=2")
    page.open("/console/files?page=nonsense&sort_by=nonsense&sort_order=up")
    page.see("1–25 of 31")
    page.open("/console/files?page=999999999999999")
    page.see("26–31 of 31")


def test_the_last_file_of_the_last_page_leaves_the_page_before(page, service):
    user = service.new_user()
    service.add_files(user, 26)
    page.sign_in(user, "/console/files?page=2")
    page.see("26–26 of 26")
    page.activate("Delete file 26.txt")
    page.at("/console/files")
    page.see("1–25 of 25")


def test_each_file_of_a_queue_says_why_it_is_refused(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.drop_files(
        write(tmp_path, "large.pdf", bytes(10 * MB + 1)), write(tmp_path, "fake.png", b"GIF89a\x80"),
        write(tmp_path, "unknown", b"\x00\xff"), write(tmp_path, "notes", "naïve".encode()),
        write(tmp_path, "empty", b""), write(tmp_path, "table.csv", b"a,b\n"), write(tmp_path, "letter.docx", b"PK"))
    finished(page, "3 done, 4 failed")
    first = page.run("return [...document.querySelectorAll('.tray-name')].slice(0, 4).map(name => name.textContent)")
    assert first == ["large.pdf", "fake.png", "unknown", "letter.docx"]
    page.see("Files of this type (Word document) are not", "Files can be up to 10 MB here",
             "its first bytes are those of", "The file declares no type, and its content shows none.")
    assert sorted(stored(service, user)) == ["empty", "notes", "table.csv"]
    page.check("files-refused")


@pytest.mark.long
def test_names_are_text_wherever_they_come_from(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    local = 'quote " and <b>.txt'
    page.choose_files(write(tmp_path, local))
    finished(page, "1 done")
    for name in HOSTILE:
        service.upload(user, name, b"x", description="<script>document.title = 1</script>")
    page.reload()
    page.until("names", lambda: rows(page) == [*reversed(HOSTILE), local])
    assert page.run("return document.querySelectorAll('main img, main b, main script').length") == 0
    page.check("files-hostile")
    for name in (HOSTILE[0], local):
        page.activate(name)
        page.heading(name)
        page.back()
        page.heading("Files")


@pytest.mark.long
def test_a_file_of_another_user_is_only_read(page, service):
    owner, reader = service.new_user(), service.new_user()
    public = service.upload(owner, "public.txt", b"for all", description="Read me")
    private = service.upload(owner, "private.txt", b"for one")
    service.call("PUT", f"/uploads/{public['id']}", {"is_public": True}, owner.token)
    page.sign_in(reader, f"/console/files/{public['id']}")
    page.heading("public.txt")
    page.see("Another user has shared this file.", "Read me")
    page.see_no("Delete", "Save", "Share link")
    page.check("file-foreign")
    page.activate("Download")
    assert page.downloaded("public.txt") == b"for all"
    page.open(f"/console/files/{private['id']}")
    page.see("This file belongs to another user")
    page.open("/console/files/nonsense")
    page.see("There is no such file")


def test_the_queue_waits_for_a_limit_and_goes_on_while_one_is_elsewhere(page, start_service, tmp_path):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_UPLOAD="6")
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    # One goes every ten seconds, the last ones long after this test.
    page.choose_files(*[write(tmp_path, f"{number}.txt") for number in range(20)])
    page.see("6 of 20 done")
    page.until("time of day", lambda: re.search(r"Continuing at \d+:\d\d:\d\d", page.text()))
    page.check("files-limited")
    unload = "const event = new Event('beforeunload', { cancelable: true }); dispatchEvent(event);"
    assert page.run(unload + "return event.defaultPrevented")
    page.activate("Account")
    page.at("/console/account")
    page.activate("Cancel 19.txt")
    page.until("focus", lambda: page.focused().accessible_name == "Cancel 18.txt")
    page.until("one more", lambda: re.search(r"([7-9]|1\d) of 19 done", page.text()))
    page.activate("Cancel all")
    done = page.until("end", lambda: re.fullmatch(
        r"(\d+) done", page.run("return document.querySelector('.tray-toggle')?.textContent") or ""))
    assert not page.run(unload + "return event.defaultPrevented")
    assert len(stored(service, user)) == int(done.group(1)) < 19


@pytest.mark.long
def test_an_upload_that_is_cancelled_leaves_nothing(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.check("files-empty")
    page.slow_down(upload=MB)
    page.choose_files(write(tmp_path, "slow.txt", b"s" * (8 * MB)), write(tmp_path, "next.txt"))
    page.until("progress", lambda: re.search(r"[1-9]\d?%", page.text()))
    page.activate("Cancel slow.txt")
    finished(page, "1 done")
    assert stored(service, user) == ["next.txt"]


def test_a_fault_in_what_shows_transfers_stops_no_upload(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.run("addEventListener('transfers', () => { throw new Error('a fault of the list'); });")
    page.choose_files(write(tmp_path, "a.txt"), write(tmp_path, "b.txt"))
    finished(page, "2 done")
    page.choose_files(write(tmp_path, "c.txt"))
    finished(page, "3 done")
    assert stored(service, user) == ["c.txt", "b.txt", "a.txt"]
    said = [entry["message"] for entry in page.driver.get_log("browser")]
    assert any("a fault of the list" in message for message in said), said


@pytest.mark.long
def test_uploads_end_with_the_session(page, service, tmp_path):
    first, second = service.new_user(), service.new_user()
    page.sign_in(first, "/console/files")
    page.see("No files yet")
    page.slow_down(upload=MB)
    page.choose_files(write(tmp_path, "slow.txt", b"s" * (8 * MB)), write(tmp_path, "next.txt"))
    page.see("0 of 2 done")
    page.activate("Sign out")
    page.see("2 tasks are not finished")
    page.activate("Cancel")
    page.see("0 of 2 done")
    page.activate("Sign out")
    page.activate(re.compile("^Sign out$"), "button")
    page.heading("Sign in")
    page.slow_down()
    page.sign_in(second, "/console/files")
    page.see("No files yet")
    page.see_no("slow.txt")
    assert stored(service, first) == stored(service, second) == []


@pytest.mark.long
def test_a_service_that_dies_in_the_middle_of_an_upload_is_waited_for(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.slow_down(upload=MB)
    page.choose_files(write(tmp_path, "slow.txt", b"s" * (8 * MB)), write(tmp_path, "next.txt"))
    page.until("progress", lambda: re.search(r"[1-9]\d?%", page.text()))
    service.kill()
    page.until("time of day", lambda: re.search(r"cannot be reached\. Next try at \d+:\d\d:\d\d", page.text()))
    service.start()
    page.slow_down()
    finished(page, "2 done")
    assert sorted(stored(service, user)) == ["next.txt", "slow.txt"]


@pytest.mark.long
def test_tokens_that_expire_while_files_are_sent_are_renewed(page, start_service, tmp_path):
    page.service = service = start_service(CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES="1")
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    # The browser's clock is late, so the page takes its token for good until the service refuses it.
    page.run("const now = Date.now; Date.now = () => now() - 120_000;")
    page.slow_down(upload=140_000)
    page.choose_files(write(tmp_path, "slow.txt", b"s" * (9 * MB)), write(tmp_path, "next.txt", b"n" * MB))
    deadline = time.monotonic() + 150
    while "0 of 2 done" in page.text():
        assert time.monotonic() < deadline, page.text()
        time.sleep(1)
    finished(page, "2 done")
    user.token = service.sign_in(user.username)["access_token"]
    assert sorted(stored(service, user)) == ["next.txt", "slow.txt"]


@pytest.mark.long
def test_a_full_quota_is_said_at_each_file(page, start_service, tmp_path):
    page.service = service = start_service(CLOAKROOM_USER_STORAGE_QUOTA="1000")
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.choose_files(write(tmp_path, "a.txt", b"a" * 990), write(tmp_path, "b.txt", b"b" * 11))
    finished(page, "1 done, 1 failed")
    page.see("You have used 990 bytes of 1,000 bytes. Delete files you no longer need to make room.")
    page.see("990 bytes of 1,000 bytes")
    service.call("DELETE", f"/uploads/{service.call('GET', '/uploads', token=user.token)['items'][0]['id']}",
                 token=user.token)
    page.activate("Try again")
    finished(page, "2 done")


@pytest.mark.long
def test_ten_thousand_files_on_a_slow_network(page, service):
    user = service.new_user()
    service.add_files(user, 10_000, name="'file ' || n || '.txt'")
    page.slow_down(latency=800)
    page.sign_in(user, "/console/files")
    page.see("1–25 of 10,000", "Page 1 of 400")
    page.activate("Next")
    page.see("26–50 of 10,000")
    page.fill("Search", "file 9999.txt")
    page.until("found", lambda: rows(page) == ["file 9999.txt"])
    page.slow_down()
    page.open("/console/files?page=400&sort_by=filename&sort_order=asc")
    page.see("9,976–10,000 of 10,000")
    page.check("files-many")
