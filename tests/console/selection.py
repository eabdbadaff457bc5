"""Several files at once: selecting them, and what is done with them."""

import re
import time

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

# Which boxes are ticked: the names of the rows, and the state of the box for all.
TICKED = """
    const all = document.querySelector('thead .pick input');
    return [[...document.querySelectorAll('tbody tr')].filter(row => row.querySelector('.pick :checked'))
        .map(row => row.querySelector('bdi').textContent), all.indeterminate ? 'some' : all.checked ? 'all' : 'none']"""


def names(service, user, query=""):
    """The names of the user's files, in their order."""
    path = f"/uploads?size=100&sort_by=filename&sort_order=asc&{query}"
    return [file["filename"] for file in service.call("GET", path, token=user.token)["items"]]


def rows(page):
    """The names in the list, from top to bottom."""
    return page.run("return [...document.querySelectorAll('tbody th bdi')].map(name => name.textContent)")


def ticked(page, files, state):
    page.until(f"ticks at {files}", lambda: page.run(TICKED) == [files, state])


def answers(service, beginning):
    """The lines of the access log with this method and path."""
    log = (service.directory / "service.log").read_text(encoding="utf-8")
    return [line for line in log.splitlines() if f" {beginning}" in line]


def five(page, service, **options):
    """A user with `a.txt` to `e.txt` who looks at them in this order."""
    user = service.new_user()
    files = [service.upload(user, f"{name}.txt", name.encode(), **options) for name in "abcde"]
    page.sign_in(user, "/console/files?sort_by=filename&sort_order=asc")
    page.until("rows", lambda: len(rows(page)) == 5)
    return user, files


def shift(page, key):
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(key).key_up(Keys.SHIFT).perform()


def test_files_are_selected_one_by_one_in_ranges_and_all_of_a_page_by_keyboard(page, service):
    five(page, service)
    page.toggle("Select b.txt")
    page.see("1 selected")
    ticked(page, ["b.txt"], "some")
    page.until("bar in place of the filters", lambda: not page.named("Search"))
    page.tab_to("Select d.txt")
    shift(page, Keys.SPACE)
    ticked(page, ["b.txt", "c.txt", "d.txt"], "some")
    page.toggle("Select c.txt")
    ticked(page, ["b.txt", "d.txt"], "some")
    page.check("selection")
    page.toggle("Select all on this page")
    ticked(page, ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"], "all")
    page.see("5 selected")
    page.press(Keys.SPACE)
    ticked(page, [], "none")
    page.see_no("selected")
    page.toggle("Select e.txt")
    page.activate("Clear selection")
    ticked(page, [], "none")
    page.until("focus", lambda: page.focused().accessible_name == "Select all on this page")
    assert page.named("Search")


def test_a_range_is_selected_with_the_mouse_and_no_text_with_it(page, service):
    five(page, service)
    boxes = page.driver.find_elements(By.CSS_SELECTOR, "tbody .pick")
    boxes[3].click()
    ActionChains(page.driver).key_down(Keys.SHIFT).click(boxes[1]).key_up(Keys.SHIFT).perform()
    ticked(page, ["b.txt", "c.txt", "d.txt"], "some")
    assert page.run("return getSelection().toString()") == ""


def test_a_selection_stays_when_the_list_changes_and_goes_with_its_page(page, service):
    user, files = five(page, service)
    service.add_files(user, 30, name="'z' || n || '.txt'")
    page.see("1–25 of 35")
    page.toggle("Select all on this page")
    page.see("25 selected", "Select all 35")
    page.press(Keys.SPACE)
    for name in "bcd":
        page.toggle(f"Select {name}.txt")
    service.call("PUT", f"/uploads/{files[1]['id']}", {"description": "changed"}, user.token)
    service.call("DELETE", f"/uploads/{files[2]['id']}", token=user.token)
    page.see("changed", "2 selected")
    ticked(page, ["b.txt", "d.txt"], "some")
    page.activate("Next")
    page.see("26–34 of 34")
    ticked(page, [], "none")
    page.back()
    page.see("1–25 of 34")
    ticked(page, [], "none")


def test_several_are_deleted_after_one_question_and_come_back_by_undo(page, service):
    user, files = five(page, service)
    service.call("POST", f"/uploads/{files[3]['id']}/links", {}, user.token)
    page.toggle("Select b.txt")
    page.toggle("Select d.txt")
    page.activate("Delete")
    page.see("Delete 2 files?", "They can be restored for 7 days. Their links will stop working for good.")
    page.check("selection-delete")
    page.activate("Cancel")
    page.see_no("Delete 2 files?")
    ticked(page, ["b.txt", "d.txt"], "some")
    assert page.focused().accessible_name == "Delete"
    page.press(Keys.ENTER)
    page.see("Delete 2 files?")
    page.run("document.querySelector('dialog .danger').focus()")
    page.press(Keys.ENTER)
    page.see("2 files have been deleted.")
    page.until("rows", lambda: rows(page) == ["a.txt", "c.txt", "e.txt"])
    assert page.focused().tag_name == "h1"
    page.see_no("selected")
    for _ in range(2):  # the notice's own button is on the way
        shift(page, Keys.TAB)
    assert page.focused().accessible_name == "Undo the deletion of 2 files"
    page.press(Keys.ENTER)
    page.see("2 files have been restored.")
    page.see_no("have been deleted")
    page.until("rows", lambda: len(rows(page)) == 5)
    assert names(service, user) == ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"]


def test_deleted_ones_are_restored_and_deleted_for_good_together(page, service):
    user, files = five(page, service)
    for file in files:
        service.call("DELETE", f"/uploads/{file['id']}", token=user.token)
    page.activate("Deleted", "link")
    page.heading("Deleted files")
    page.toggle("Select a.txt")
    page.toggle("Select b.txt")
    page.check("selection-deleted")
    page.activate("Restore", "button")
    page.see("2 files have been restored.")
    assert names(service, user) == ["a.txt", "b.txt"]
    page.toggle("Select all on this page")
    page.see("3 selected")
    page.activate("Delete for good", "button")
    page.see("Delete 3 files for good?", "They cannot be restored afterwards, and their links will stop working.")
    page.run("document.querySelector('dialog .danger').click()")
    page.see("3 files have been deleted for good.", "No deleted files")
    assert names(service, user, "deleted=true") == []


def test_several_are_made_public_and_private_and_downloaded(page, service):
    user, files = five(page, service)
    service.call("PUT", f"/uploads/{files[0]['id']}", {"is_public": True}, user.token)
    page.until("badge", lambda: len(page.rows("Everyone signed in here")) == 1)
    page.toggle("Select a.txt")
    page.see("Make private")
    page.see_no("Open to everyone here")
    page.toggle("Select b.txt")
    page.toggle("Select c.txt")
    page.activate("Open to everyone here")
    # One of the three is public already.
    page.see("Open 2 files to everyone signed in here?", "They can then be read by anyone with an account here.")
    page.check("selection-public")
    page.run("document.querySelector('dialog .primary').click()")
    page.see("2 files have been opened to everyone signed in here.")
    page.until("badges", lambda: len(page.rows("Everyone signed in here")) == 3)
    assert len(answers(service, "POST /api/v1/uploads/update")) == 1
    # What has gone meanwhile is named, and the others are done.
    page.hold("POST /api/v1/uploads/update")
    for name in "de":
        page.toggle(f"Select {name}.txt")
    page.activate("Open to everyone here")
    page.run("document.querySelector('dialog .primary').click()")
    service.call("DELETE", f"/uploads/{files[4]['id']}", token=user.token)
    page.release()
    page.see("1 of 2 files has been opened to everyone signed in here.", "1 of 2 files has not been opened to everyone",
             "There is no such file, or it has been deleted.")
    service.call("POST", f"/uploads/{files[4]['id']}/restore", token=user.token)
    page.until("row", lambda: len(rows(page)) == 5)
    page.toggle("Select c.txt")
    page.activate("Make private")
    page.see("c.txt has been made private.")
    page.until("badges", lambda: len(page.rows("Everyone signed in here")) == 3)
    for name in "ade":
        page.toggle(f"Select {name}.txt")
    page.activate("Download", "button")
    for name in "ade":
        assert page.downloaded(f"{name}.txt") == name.encode()


def test_without_a_time_for_restoring_the_question_says_that_it_is_for_good(page, start_service):
    page.service = service = start_service(CLOAKROOM_TRASH_DAYS="0")
    user, _ = five(page, service)
    page.toggle("Select a.txt")
    page.toggle("Select b.txt")
    page.activate("Delete")
    page.see("Delete 2 files for good?", "They cannot be restored afterwards")
    page.run("document.querySelector('dialog .danger').click()")
    page.see("2 files have been deleted for good.")
    page.see_no("Undo")
    assert names(service, user) == ["c.txt", "d.txt", "e.txt"]


def test_files_that_are_refused_do_not_stop_the_others_and_are_named(page, start_service):
    page.service = service = start_service(CLOAKROOM_USER_STORAGE_QUOTA="100")
    user = service.new_user()
    files = [service.upload(user, f"{name}.txt", name.encode() * size)
             for name, size in (("a", 5), ("b", 80), ("c", 5), ("d", 5))]
    for file in files:
        service.call("DELETE", f"/uploads/{file['id']}", token=user.token)
    new = service.upload(user, "new.txt", b"n" * 50)
    # The list does not hear of what happens elsewhere, or it might follow before the button is pressed.
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source="""
        const ask = window.fetch;
        window.fetch = (address, options) =>
          String(address).includes("/changes") ? new Promise(() => {}) : ask(address, options);""")
    page.sign_in(user, "/console/files/deleted")
    page.see("d.txt")
    page.toggle("Select all on this page")
    service.call("DELETE", f"/uploads/{files[2]['id']}?permanently=true", token=user.token)
    page.activate("Restore", "button")
    page.see("2 of 4 files have been restored.",
             "2 of 4 files have not been restored. The list at the bottom says why.",
             "b.txt: Storage quota exceeded.",
             "c.txt: Files that are no longer kept cannot be restored.", "2 of 4")
    page.check("selection-refused")
    assert names(service, user) == ["a.txt", "d.txt", "new.txt"]
    service.call("DELETE", f"/uploads/{new['id']}?permanently=true", token=user.token)
    page.activate("Try again")
    page.see("1 of 2 files has been restored.", "1 of 2 files has not been restored. Files that are no longer kept")
    assert names(service, user) == ["a.txt", "b.txt", "d.txt"]


def test_hundreds_are_deleted_by_one_request_and_come_back_past_a_limit(page, start_service):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_GENERAL="100")
    user = service.new_user()
    service.add_files(user, 180)
    page.sign_in(user, "/console/files")
    page.see("1–25 of 180")
    page.toggle("Select all on this page")
    page.activate("Select all 180")
    page.see("180 selected")
    page.activate("Delete")
    page.see("180 files have been deleted.", "No files yet")
    assert service.sql(f"SELECT count(*) FROM files WHERE user_id = '{user.id}'") == ["0"]
    assert len(answers(service, "POST /api/v1/uploads/delete")) == 1 and not answers(service, "DELETE /api/v1/uploads/")
    page.activate("Undo the deletion of 180 files")
    page.until("wait", lambda: re.search(r"Restoring 180 files \d+ of 180, continuing at \d+:\d\d:\d\d", page.text()))
    page.check("selection-waits")
    began = time.monotonic()
    while "180 files have been restored." not in page.text():
        assert time.monotonic() < began + 300, page.text()
        time.sleep(0.5)
    refused = [line for line in answers(service, "POST /api/v1/uploads/") if " 429 " in line]
    assert 0 < len(refused) < 30, f"{len(refused)} requests were in vain"


def test_a_selection_that_was_cleared_does_not_come_back(page, service):
    user = service.new_user()
    service.add_files(user, 120)
    page.sign_in(user, "/console/files")
    page.see("1–25 of 120")

    def select_all():
        page.run("document.querySelector('thead .pick input').click()")
        page.see("Select all 120")
        # At once: what was cleared before may give the focus back between the two.
        page.run("const all = document.querySelector('.selection button'); all.focus(); all.click()")

    def clear():
        page.run("document.querySelector('.selection [aria-label=\"Clear selection\"]').click()")
        page.see_no("selected")
    select_all()
    page.see("120 selected")
    assert page.focused().tag_name != "body"
    clear()
    page.hold("size=100")
    select_all()
    page.see("Working…")
    clear()
    page.run("document.querySelector('tbody .pick input').click()")
    page.see("1 selected")
    page.release()
    page.until("end", lambda: not page.run("return document.querySelector('.selection .is-busy')"))
    assert "1 selected" in page.text()


def test_the_focus_is_not_lost_when_all_that_is_selected_goes(page, service):
    user, files = five(page, service)
    page.toggle("Select b.txt")
    page.tab_to("Delete")
    service.call("DELETE", f"/uploads/{files[1]['id']}", token=user.token)
    page.see_no("selected")
    page.until("focus", lambda: page.focused().tag_name == "h1")


def test_what_is_cancelled_stops_and_what_is_done_stays(page, start_service):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_GENERAL="40")
    user = service.new_user()
    service.add_files(user, 60)
    page.sign_in(user, "/console/files")
    page.see("1–25 of 60")
    page.toggle("Select all on this page")
    page.activate("Select all 60")
    page.activate("Delete")
    page.activate("Undo the deletion of 60 files")
    page.until("wait", lambda: "continuing at" in page.text())
    unload = "const event = new Event('beforeunload', { cancelable: true }); dispatchEvent(event);"
    assert page.run(unload + "return event.defaultPrevented")
    page.run("""document.querySelector('[aria-label="Cancel Restoring 60 files"]').click()""")
    page.until("end", lambda: re.search(r"\d+ of 60 files have been restored\.", page.text()))
    done = int(re.search(r"(\d+) of 60 files have been restored", page.text())[1])
    assert not page.run(unload + "return event.defaultPrevented")
    count = "SELECT count(*) FROM {} WHERE user_id = '" + user.id + "'"
    assert service.sql(count.format("files")) == [str(done)]
    time.sleep(3)
    assert service.sql(count.format("files")) == [str(done)] and 0 < done < 60


def test_a_service_that_is_away_is_waited_for(page, start_service):
    page.service = service = start_service()
    user, _ = five(page, service)
    page.toggle("Select all on this page")
    service.stop()
    page.activate("Delete")
    page.see("Delete 5 files?")  # nobody knows whether links would end
    page.run("document.querySelector('dialog .danger').click()")
    page.see("Deleting 5 files", "0 of 5, continuing at")
    service.start()
    page.see("5 files have been deleted.")
    assert names(service, user) == []


def test_the_work_ends_with_the_session(page, start_service):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_GENERAL="15")
    first, second = service.new_user(), service.new_user()
    service.add_files(first, 25)
    service.add_files(second, 25)
    page.sign_in(first, "/console/files")
    page.see("1–25 of 25")
    page.toggle("Select all on this page")
    page.activate("Delete")
    page.activate("Undo the deletion of 25 files")
    page.until("wait", lambda: "continuing at" in page.text())
    page.run("document.querySelector('.who button').click()")
    page.see("1 task is not finished")
    page.run("document.querySelector('dialog .danger').click()")
    page.heading("Sign in")
    page.fill("Username or e-mail", second.username)
    page.fill("Password", second.password)
    page.press(Keys.ENTER)
    page.see("1–25 of 25")
    page.see_no("have been restored", "Restoring", "selected")
    left = int(service.sql(f"SELECT count(*) FROM files WHERE user_id = '{first.id}'")[0])
    assert 0 < left < 25


@pytest.mark.long
def test_ten_thousand_files_stay_fluent(page, service):
    user = service.new_user()
    service.add_files(user, 10_000)
    page.sign_in(user, "/console/files")
    page.see("1–25 of 10,000")

    def clicks():
        return page.run("""
            const boxes = [...document.querySelectorAll('tbody .pick input')], began = performance.now();
            for (const box of boxes) { box.click(); box.click(); }
            return performance.now() - began""")
    alone = clicks()
    page.toggle("Select all on this page")
    page.activate("Select the first 1,000")
    page.see("1,000 selected")
    among = clicks()
    assert among < 5 * alone + 50, f"50 clicks take {alone} ms, and {among} where 1,000 files are selected"
