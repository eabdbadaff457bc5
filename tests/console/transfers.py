"""The list of transfers, folders, and what is refused before it is sent."""

import re

import pytest
from selenium.webdriver.common.keys import Keys
from service import Refused, wait_for

MB = 1 << 20
# What the service is sent. Each request is there as often as it was made.
UPLOADS = """return performance.getEntriesByType('resource').filter(({ name, initiatorType }) =>
    initiatorType === 'xmlhttprequest' && name.endsWith('/uploads')).length"""
# How many pixels of what has the focus are under the list of transfers.
COVERED = """
    const box = document.activeElement.getBoundingClientRect();
    const covers = ({ left, right, top, bottom }) =>
        box.right > left && box.left < right && box.top < bottom && box.bottom > top;
    return !document.activeElement.closest('.tray')
        && ['.tray', '.tray-list'].some(each => covers(document.querySelector(each).getBoundingClientRect()))"""


def write(directory, name, content=b"content"):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def summary(page, text):
    page.until(f"summary {text!r}", lambda: page.run(
        "return document.querySelector('.tray:not([hidden]) .tray-toggle')?.textContent") == text)


def stored(service, user):
    """The names of the user's files."""
    return sorted(file["filename"] for file in service.call("GET", "/uploads?size=100", token=user.token)["items"])


def test_a_folder_is_taken_with_all_below_it_and_what_is_left_out_is_said_in_one_line(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    folder = tmp_path / "folder"
    for number in range(150):  # the browser tells a hundred at a time
        write(folder, f"{number}.txt", b"%d" % number)
    for name in (".DS_Store", "below/Thumbs.db", "below/DESKTOP.INI"):
        write(folder, name)
    write(folder, "below/further/keys.txt")
    write(folder, "below/keys.txt")  # both come by the plain name
    write(folder, "archive.zip", b"PK\x03\x04\x00")
    write(folder, "large.pdf", bytes(10 * MB + 1))
    (folder / "empty").mkdir()
    page.run("performance.setResourceTimingBufferSize(5000)")  # of 250, for all that is counted below
    page.drop_files(folder, write(tmp_path, "beside.txt"))
    summary(page, "153 done")
    page.see("Not uploaded: 1 of a type that is not accepted here, 1 over 10 MB, 1 empty folder, "
             "3 hidden system files.")
    page.check("folder")
    total = service.call("GET", "/uploads?search=txt", token=user.token)["total"]
    assert total == 153
    names = service.call("GET", "/uploads?search=keys", token=user.token)["items"]
    assert [file["filename"] for file in names] == ["keys.txt", "keys.txt"]
    assert page.run(UPLOADS) == 153


def test_a_chosen_folder_is_one_too_and_as_many_files_wait_as_may(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.run("document.querySelector('input[webkitdirectory]').addEventListener('click', event => {"
             " event.preventDefault(); window.wasAsked = true; })")
    page.activate("Upload a folder")
    assert page.run("return window.wasAsked")
    # The file API of the page in place of a thousand uploads.
    page.run("XMLHttpRequest.prototype.send = () => {}")
    folder = tmp_path / "folder"
    for number in range(1003):
        write(folder, f"{number}.txt")
    write(folder, "desktop.ini")
    page.driver.find_element("css selector", "input[webkitdirectory]").send_keys(str(folder))
    page.see("0 of 1,000 done", "Not uploaded: 1 hidden system file, 3 because at most 1,000 files wait at once.")
    page.choose_files(write(tmp_path, "more.txt"))
    page.see("Not uploaded: 1 because at most 1,000 files wait at once.")


def test_a_folder_that_was_being_read_is_not_sent_in_the_name_of_the_next_person(page, service, tmp_path):
    first, second = service.new_user(), service.new_user()
    page.sign_in(first, "/console/files")
    page.see("No files yet")
    page.run("""const read = Blob.prototype.arrayBuffer;
        Blob.prototype.arrayBuffer = function () {
            return new Promise(done => { window.goOn = () => done(read.call(this)); }); };""")
    folder = tmp_path / "folder"
    write(folder, "keys.txt")
    page.drop_files(folder)
    page.until("file that is being read", lambda: page.run("return Boolean(window.goOn)"))
    page.activate("Sign out")
    page.fill("Username or e-mail", second.username)
    page.fill("Password", second.password)
    page.press(Keys.ENTER)
    page.see(second.email, "No files yet")
    page.driver.execute_async_script("goOn(); setTimeout(arguments[0], 500)")
    page.see_no("keys.txt")
    assert stored(service, first) == stored(service, second) == []


def test_types_that_are_refused_cost_nothing_and_other_names_of_taken_ones_are_sent(page, start_service, tmp_path):
    page.service = service = start_service(
        CLOAKROOM_RATE_LIMIT_UPLOAD="2", CLOAKROOM_ALLOWED_UPLOAD_TYPES="text/xml,image/png")
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    refused = [write(tmp_path, f"{number}.pdf", b"%PDF-1.7") for number in range(4)]
    # Browsers have it for `application/xml` or `text/xml`, according to the system.
    page.choose_files(*refused, write(tmp_path, "a.xml", b"<a/>"))
    summary(page, "1 done, 4 failed")
    page.see("Files of this type (PDF) are not accepted here, only: text/xml, PNG picture.")
    assert stored(service, user) == ["a.xml"]
    assert page.run(UPLOADS) == 1
    assert not page.named("Try again")


def test_a_file_that_goes_while_it_waits_is_named_with_the_reason(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.slow_down(upload=MB // 16)
    gone = write(tmp_path, "gone.txt")
    page.choose_files(write(tmp_path, "slow.txt", b"s" * (2 * MB)), gone)
    page.see("0 of 2 done")
    gone.unlink()
    page.slow_down()
    summary(page, "1 done, 1 failed")
    page.see("This file cannot be read. It may have been moved or changed since you chose it.")
    assert stored(service, user) == ["slow.txt"]


@pytest.mark.parametrize("width, height", [(320, 600), (1440, 600), (1440, 800)])
def test_the_list_of_transfers_hides_nothing_that_has_the_focus_and_folds_by_escape(page, service, tmp_path, width,
                                                                                    height):
    user = service.new_user()
    service.add_files(user, 60)
    page.sign_in(user, "/console/files")
    page.see("1–25 of 60")
    page.screen(width, height=height)
    names = [f"{number}.txt" for number in range(11)]
    page.choose_files(write(tmp_path, "none", b"\0\xff"), *[write(tmp_path, name) for name in names])
    summary(page, "11 done, 1 failed")  # which keeps the list from folding by itself
    page.run("document.querySelector('.tray-toggle[aria-expanded=false]')?.click()")
    page.see("1–25 of 71")
    page.run("document.querySelector('h1').focus()")
    covered = []
    for _ in range(250):
        page.press(Keys.TAB)
        focused = page.focused().accessible_name
        covered += [focused] * page.run(COVERED)
        if focused == "Next":
            break
    assert focused == "Next" and not covered, (focused, covered)

    assert page.run("return document.querySelector('.tray-list').checkVisibility()")
    page.press(Keys.ESCAPE)
    page.until("folded list", lambda: not page.run("return document.querySelector('.tray-list').checkVisibility()"))
    assert page.focused().accessible_name == "Next"
    page.activate("11 done, 1 failed")
    page.tab_to("Remove 3.txt from the list")
    page.press(Keys.ESCAPE)
    assert page.focused().accessible_name == "11 done, 1 failed"
    page.run("scrollTo(0, document.documentElement.scrollHeight)")
    bottom = "return document.querySelector(arguments[0]).getBoundingClientRect()[arguments[1]]"
    if height < 720:
        assert page.run(bottom, ".pager", "bottom") < page.run(bottom, ".tray", "top")
    else:  # the head of the list is below the menu, which it leaves free
        assert page.run(bottom, ".side nav", "bottom") < page.run(bottom, ".tray", "top")
        assert page.run(bottom, ".tray", "bottom") < page.run(bottom, ".who", "top")
        assert page.run(bottom, ".tray", "right") <= page.run(bottom, ".side", "right")


def test_a_list_of_transfers_folds_where_all_went_well_and_goes_with_its_page(page, service, tmp_path):
    user = service.new_user()
    older = service.upload(user, "keys.txt", b"older")["id"]
    page.sign_in(user, "/console/files")
    page.choose_files(write(tmp_path, "n" * 240), write(tmp_path, "plan.txt"))
    summary(page, "2 done")
    page.check("transfers-long-name")
    listed = "return document.querySelector('.tray-list').checkVisibility()"
    page.until("folded list", lambda: not page.run(listed))
    page.choose_files(write(tmp_path, "keys.txt", b"newer"))
    summary(page, "3 done")
    page.see("You have another file of this name.")
    assert page.run(listed) and sorted(stored(service, user)).count("keys.txt") == 2
    page.check("transfers-same-name")
    page.activate("Replace it (keys.txt)")
    page.see("keys.txt has been deleted.")
    page.see_no("You have another file of this name.")
    deleted = service.call("GET", "/uploads?deleted=true", token=user.token)["items"]
    assert [file["id"] for file in deleted] == [older]
    page.activate("Account")
    page.heading("Profile")
    page.see_no("3 done")


def test_the_room_comes_after_an_outage(page, service):
    user = service.new_user()
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source="""
        const send = window.fetch;
        window.away = true;
        window.fetch = (address, options) => away && String(address).includes('/users/me')
            ? Promise.reject(new TypeError('away')) : send(address, options);""")
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.see_no("of 1 GB")
    page.run("away = false; dispatchEvent(new Event('online'))")
    page.see("0 files, 0 bytes of 1 GB")


@pytest.mark.parametrize("width", [390, 1440])
def test_what_was_refused_is_seen_when_the_queue_ends_once_for_each_reason(page, service, tmp_path, width):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.screen(width, height=800)
    good = [write(tmp_path, f"{number}.txt", b"%d" % number) for number in range(20)]
    refused = [write(tmp_path, name, b"PK") for name in ("letter.docx", "minutes.docx")]
    page.choose_files(refused[0], *good, write(tmp_path, "large.pdf", bytes(10 * MB + 1)), refused[1])
    summary(page, "20 done, 3 failed")
    seen = """const list = document.querySelector('.tray-list');
        const isSeen = (row) => row.offsetTop + row.offsetHeight <= list.scrollTop + list.clientHeight;
        return list.checkVisibility() && list.scrollTop === 0
            && [...list.querySelectorAll('li')].filter(isSeen).map(row => row.innerText.replace(/\\s+/g, ' ').trim())"""
    rows = page.until("rows", lambda: page.run(seen))
    assert rows[0].startswith("Files of this type (Word document) are not accepted here")
    assert rows[1:3] == ["letter.docx", "minutes.docx"]
    assert rows[3].startswith("Files can be up to 10 MB here") and rows[4] == "large.pdf"
    colours = page.run("return ['.tray-toggle span', '.tray .field-error'].map(each =>"
                       " getComputedStyle(document.querySelector(each)).color)")
    assert colours[0] == colours[1] != page.run("return getComputedStyle(document.body).color")
    if width > 600:
        page.check("transfers-refused")


def test_what_failed_for_one_reason_is_tried_again_together(page, start_service, tmp_path):
    page.service = service = start_service(CLOAKROOM_USER_STORAGE_QUOTA="100", CLOAKROOM_STORAGE_QUOTA="150",
                                           CLOAKROOM_TRASH_DAYS="0")
    user, other = service.new_user(), service.new_user()
    first = service.upload(user, "first.txt", b"f" * 95)
    page.sign_in(user, "/console/files")
    page.see("first.txt")
    page.choose_files(*[write(tmp_path, f"{number}.txt", b"n" * (10 + number)) for number in range(3)])
    summary(page, "0 done, 3 failed")
    page.see("You have used 95 bytes of 100 bytes. Delete files you no longer need to make room.")
    assert len(page.named("Try again")) == 1
    service.call("DELETE", f"/uploads/{first['id']}", token=user.token)
    page.activate("Try again")
    summary(page, "3 done")
    assert stored(service, user) == ["0.txt", "1.txt", "2.txt"]
    assert page.focused().is_displayed() and page.focused().tag_name != "body"

    def other_fits():
        try:
            return service.upload(other, "other.txt", b"o" * 100)
        except Refused:
            return None

    # What was deleted counts for all until a background thread has removed it.
    wait_for("room for another's file", other_fits)
    # Where the room of all has been used up, nothing that the person deletes would be of help.
    page.choose_files(write(tmp_path, "more.txt", b"m" * 40))
    summary(page, "3 done, 1 failed")
    page.see("The whole service has no room left, although you have.")
    page.see_no("You have used")


def test_files_of_one_folder_are_no_versions_of_each_other_and_keep_their_paths(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    folder = tmp_path / "plans"
    write(folder, "a.txt", b"one")
    write(folder, "sub2/a.txt", b"two")
    page.drop_files(folder)
    summary(page, "2 done")
    found = service.call("GET", "/uploads", token=user.token)["items"]
    assert sorted((file["folder"], file["filename"]) for file in found) == [
        ("/plans", "a.txt"), ("/plans/sub2", "a.txt")]
    page.see_no("You have another file of this name.")
    # One that lies elsewhere is no version of them, and one that comes to the same folder later may be one.
    page.choose_files(write(tmp_path, "a.txt", b"three"))
    summary(page, "3 done")
    page.see_no("You have another file of this name.")
    page.drop_files(folder)
    summary(page, "5 done")
    page.see("You have another file of this name.")


def test_how_long_a_queue_takes_is_said_and_a_part_of_small_files_is_done(page, start_service, tmp_path):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_UPLOAD="10")
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.choose_files(*[write(tmp_path, f"{number}.txt", b"n") for number in range(200)])
    page.see("The service takes no more for now.",
             "about 19 minutes left")
    page.until("part that is done", lambda: page.run(
        "return / done \u00b7 ([3-9]|\\d\\d)\\s?%/.test(document.querySelector('.tray-toggle').textContent)"))
    page.check("transfers-wait")
    page.activate("Cancel all")


def test_a_pasted_screenshot_is_uploaded_and_named_after_the_moment(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.run("""
        const bytes = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
            + "WjR9awAAAABJRU5ErkJggg=="), letter => letter.charCodeAt(0));
        const clipboardData = new DataTransfer();
        clipboardData.items.add(new File([bytes], "image.png", { type: "image/png" }));
        document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));""")
    summary(page, "1 done")
    [name] = stored(service, user)
    assert re.fullmatch(r"Pasted \d{4}-\d\d-\d\d \d\d\.\d\d(\.\d\d)?\.png", name)
