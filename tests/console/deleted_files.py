"""Deleting, undoing and restoring, and lists that follow what happens to the files elsewhere."""

import re
import threading
import time

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

# Records when the page asks for changes, and how many of these requests run at once at most.
RECORDER = """
    window.asked = [];
    window.running = window.most = 0;
    const send = window.fetch;
    window.fetch = async (address, options) => {
        if (!String(address).includes("/api/v1/changes")) return send(address, options);
        asked.push(performance.now());
        most = Math.max(most, running += 1);
        try { return await send(address, options); } finally { running -= 1; }
    };"""


def rows(page):
    """The names in the list, from top to bottom."""
    return page.run("return [...document.querySelectorAll('.files-list tbody th')].map(cell =>"
                    " cell.querySelector('bdi').textContent)")


def until_rows(page, *names):
    page.until(f"rows {names}", lambda: rows(page) == list(names))


def delete(service, user, *files):
    for file in files:
        service.call("DELETE", f"/uploads/{file['id']}", token=user.token)


def names(service, user, query=""):
    """The names of the user's files, or of deleted ones, in the order of names."""
    items = service.call("GET", f"/uploads?sort_by=filename&sort_order=asc&{query}", token=user.token)["items"]
    return [file["filename"] for file in items]


def following(page):
    """Waits until a request waits for changes."""
    page.until("request for changes that waits", lambda: page.run("return running === 1 && asked.length > 1"))


def hide(page, is_hidden):
    """Tells the page that its tab is hidden, or not. A browser that is driven takes each of its tabs for visible."""
    page.run("Object.defineProperty(document, 'hidden', { configurable: true, value: arguments[0] });"
             "document.dispatchEvent(new Event('visibilitychange'))", is_hidden)


@pytest.fixture
def recorded(page):
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source=RECORDER)
    return page


def test_a_deletion_is_undone_from_its_notice_and_a_file_is_restored_from_the_list(page, service):
    user = service.new_user()
    service.upload(user, "keys.txt", b"front desk", description="For visitors")
    service.upload(user, "plan.txt")
    page.sign_in(user, "/console/files")
    page.activate("Delete keys.txt")
    page.see("keys.txt has been deleted.")
    until_rows(page, "plan.txt")
    page.until("focus", lambda: page.focused().accessible_name == "Delete plan.txt")
    page.tab_to("Undo the deletion of keys.txt")  # a notice with the focus stays
    page.check("file-deleted")
    page.activate("Undo the deletion of keys.txt")
    page.see("keys.txt has been restored.")
    page.see_no("keys.txt has been deleted.")
    until_rows(page, "plan.txt", "keys.txt")
    assert page.focused().tag_name == "h1"

    page.activate("Delete keys.txt")
    page.until("focus on the row before", lambda: page.focused().accessible_name == "Delete plan.txt")
    page.press(Keys.ENTER)
    page.until("focus on the title", lambda: rows(page) == [] and page.focused().tag_name == "h1")
    for left in (["plan.txt"], ["plan.txt", "keys.txt"]):  # the latest first
        ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
        until_rows(page, *left)
    page.see_no("has been deleted")
    # What was restored elsewhere needs no button for it.
    page.activate("Delete keys.txt")
    page.see("keys.txt has been deleted.")
    [file] = service.call("GET", "/uploads?deleted=true", token=user.token)["items"]
    service.call("POST", f"/uploads/{file['id']}/restore", token=user.token)
    until_rows(page, "plan.txt", "keys.txt")
    page.see_no("keys.txt has been deleted.")

    delete(service, user, service.call("GET", "/uploads?search=keys", token=user.token)["items"][0])
    page.activate("Deleted", "link")
    page.heading("Deleted files")
    page.see("You can restore them for 7 days", "For visitors", "10 bytes")
    page.check("deleted-files")
    page.activate("Restore keys.txt")
    page.see("keys.txt has been restored.", "No deleted files")
    page.check("deleted-files-none")
    assert names(service, user) == ["keys.txt", "plan.txt"]
    page.activate("Files", "link")
    page.heading("Files")
    until_rows(page, "plan.txt", "keys.txt")


def test_a_deletion_from_the_page_of_a_file_is_undone_in_the_list(page, service):
    user = service.new_user()
    file = service.upload(user, "keys.txt")
    page.sign_in(user, f"/console/files/{file['id']}")
    page.heading("keys.txt")
    page.activate("Delete")
    page.see("No files yet")
    page.activate("Undo the deletion of keys.txt")
    until_rows(page, "keys.txt")


def test_deleting_for_good_asks_and_is_in_the_audit_log(page, service):
    user = service.new_user(role="admin")
    delete(service, user, service.upload(user, "keys.txt"))
    page.sign_in(user, "/console/files/deleted")
    page.activate("Delete keys.txt for good")
    page.see("Delete this file for good?", "keys.txt cannot be restored afterwards")
    page.check("delete-for-good")
    page.press(Keys.ESCAPE)
    page.see_no("Delete this file for good?")
    assert page.focused().accessible_name == "Delete keys.txt for good"
    page.press(Keys.ENTER)
    page.activate("Delete for good", "button")
    page.see("keys.txt has been deleted for good.", "No deleted files")
    page.see_no("Undo")
    assert names(service, user, "deleted=true") == []
    page.open(f"/console/audit?actor_id={user.id}&action=file.purge")
    page.until("event", lambda: page.rows("Deletion of a file for good"))


def test_what_is_gone_meanwhile_cannot_be_restored(recorded, service):
    page, user = recorded, service.new_user()
    file = service.upload(user, "keys.txt")
    delete(service, user, file)
    page.sign_in(user, "/console/files/deleted")
    page.see("keys.txt")
    following(page)
    # That is no change, so the list does not notice.
    service.call("DELETE", f"/uploads/{file['id']}?permanently=true", token=user.token)
    page.activate("Restore keys.txt")
    page.see("keys.txt has not been restored. Files that are no longer kept cannot be restored.",
             "No deleted files")


def test_all_that_was_deleted_since_a_moment_is_restored_as_far_as_there_is_room(page, start_service):
    page.service = service = start_service(CLOAKROOM_USER_FILE_QUOTA="4")
    user = service.new_user()
    files = [service.upload(user, f"{number}.txt") for number in range(4)]
    delete(service, user, *files)
    ages = {"0.txt": "3 days", "1.txt": "3 hours", "2.txt": "10 minutes", "3.txt": "1 minute"}
    for name, age in ages.items():
        service.sql(f"UPDATE deleted_files SET deleted_at = now() - interval '{age}' WHERE filename = '{name}'")
    page.sign_in(user, "/console/files/deleted")
    until_rows(page, "3.txt", "2.txt", "1.txt", "0.txt")
    page.activate("Restore all since…")
    page.see("Restore what was deleted")
    page.check("restore-all")
    page.activate("Restore all", "button")
    page.see("2 files have been restored.")
    until_rows(page, "1.txt", "0.txt")
    service.upload(user, "new.txt")
    page.activate("Restore all since…")
    page.select("Deleted", "at any time")
    page.activate("Restore all", "button")
    page.see("1 file has been restored.", "There is not enough room for 1 more file from that time.")
    page.check("restored-in-part")
    assert names(service, user) == ["1.txt", "2.txt", "3.txt", "new.txt"]
    page.activate("Restore 0.txt")
    page.see("Storage quota exceeded.")
    delete(service, user, service.call("GET", "/uploads?search=new", token=user.token)["items"][0])
    until_rows(page, "new.txt", "0.txt")
    page.activate("Restore all since…")
    page.select("Deleted", "since")
    page.tab_to(re.compile("^Since"))
    page.press(Keys.DELETE)  # the month or the day
    page.activate("Restore all", "button")
    page.see("Complete this date and time.")
    page.activate("Cancel")
    # The field has a moment an hour ago, which is after the older deletion and before the newer one.
    page.activate("Restore all since…")
    page.select("Deleted", "since")
    page.tab_to(re.compile("^Since"))
    page.activate("Restore all", "button")
    page.see("1 file has been restored.")
    until_rows(page, "0.txt")
    page.see_no("There is not enough room")


@pytest.mark.long
def test_so_many_files_are_restored_that_the_service_needs_several_requests(page, service):
    user = service.new_user()
    service.sql("INSERT INTO deleted_files (id, user_id, filename, original_filename, content_type, file_size, "
                "file_hash, upload_date, updated_at, is_public, version, was_young) "
                f"SELECT gen_random_uuid(), '{user.id}', n, n, 'text/plain', 1, '-', now(), now(), false, 1, false "
                "FROM generate_series(1, 10005) n")
    page.sign_in(user, "/console/files/deleted")
    page.see("1–25 of 10,005")
    page.check("deleted-files-many")
    page.activate("Restore all since…")
    page.activate("Restore all", "button")
    page.see("10,005 files have been restored.", "No deleted files")


def test_without_a_time_for_restoring_a_deletion_is_for_good(page, start_service):
    page.service = service = start_service(CLOAKROOM_TRASH_DAYS="0")
    user = service.new_user()
    service.upload(user, "keys.txt")
    page.sign_in(user, "/console/files")
    page.see("keys.txt")
    assert not page.named("Deleted", "link")
    page.activate("Delete keys.txt")
    page.see("keys.txt cannot be restored afterwards")
    page.activate("Delete for good", "button")
    page.see("No files yet")
    page.see_no("Undo")


def test_the_lists_follow_what_happens_elsewhere_and_disturb_nobody(recorded, service):
    page, user = recorded, service.new_user()
    first, second = service.upload(user, "first.txt"), service.upload(user, "second.txt")
    service.call("POST", f"/uploads/{first['id']}/links", {}, user.token)
    page.sign_in(user, "/console/files")
    until_rows(page, "second.txt", "first.txt")
    following(page)
    asked = page.run("return performance.getEntriesByType('resource').map(({ name }) => name.split('/api/v1')[1])")
    assert len([path for path in asked if path and path.startswith("/uploads?")]) == 1, asked
    assert asked.count("/users/me") == asked.count("/changes?after=now&limit=1000") == 1, asked
    page.tab_to("Delete first.txt")
    page.run("getSelection().selectAllChildren([...document.querySelectorAll('tbody bdi')].at(-1))")
    page.run("window.kept = document.activeElement")
    service.upload(user, "third.txt")
    until_rows(page, "third.txt", "second.txt", "first.txt")
    page.see("3 files")
    service.call("PUT", f"/uploads/{second['id']}", {"filename": "renamed.txt"}, user.token)
    until_rows(page, "third.txt", "renamed.txt", "first.txt")
    assert page.run("return document.activeElement === kept && kept.isConnected")
    assert page.run("return getSelection().toString()") == "first.txt"
    # A question stays while the rows behind it change, also where its own goes.
    page.activate("Delete first.txt")
    page.see("Delete this file?")
    delete(service, user, first)
    until_rows(page, "third.txt", "renamed.txt")
    assert page.focused().accessible_name == "Cancel"
    page.activate(re.compile("^Delete$"), "button")
    page.see("first.txt has been deleted.")

    page.activate("Deleted", "link")
    until_rows(page, "first.txt")
    delete(service, user, second)
    until_rows(page, "renamed.txt", "first.txt")
    page.fill("Search", "renamed")
    until_rows(page, "renamed.txt")
    service.call("POST", f"/uploads/{second['id']}/restore", token=user.token)
    page.see("No deleted file matches")
    assert page.focused().accessible_name == "Search"


def test_one_request_at_a_time_asks_for_changes_and_only_while_the_page_is_seen(recorded, service):
    page, user = recorded, service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    following(page)
    for number in range(8):
        service.upload(user, f"{number}.txt")
        time.sleep(1)
    page.until("all files", lambda: len(rows(page)) == 8)
    following(page)
    moments, most = page.run("return [asked, most]")
    assert most == 1
    assert min(later - earlier for earlier, later in zip(moments, moments[1:])) > 4900, moments

    hide(page, True)
    page.until("end of the request", lambda: page.run("return running === 0"))
    before = page.run("return asked.length")
    service.upload(user, "unseen.txt")
    time.sleep(7)
    assert page.run("return asked.length") == before and len(rows(page)) == 8
    hide(page, False)
    page.until("new row", lambda: rows(page)[0] == "unseen.txt")

    following(page)
    page.activate("Account", "link")
    page.heading("Profile")
    page.until("end of the request", lambda: page.run("return running === 0"))
    before = page.run("return asked.length")
    time.sleep(7)
    assert page.run("return asked.length") == before


def test_changes_that_are_no_longer_known_and_a_service_that_was_away(recorded, start_service):
    page = recorded
    page.service = service = start_service()
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    following(page)
    service.sql(f"UPDATE users SET forgotten_change = nextval('change_numbers') WHERE id = '{user.id}'")
    service.upload(user, "one.txt")
    until_rows(page, "one.txt")
    service.stop()
    page.until("failure", lambda: page.run("return running === 0"))
    page.see("one.txt")
    page.see_no("cannot be reached")
    service.start()
    service.upload(user, "two.txt")
    until_rows(page, "two.txt", "one.txt")


def test_a_list_that_cannot_be_brought_up_to_date_stays_and_says_so(page, start_service):
    page.service = service = start_service()
    user = service.new_user()
    service.upload(user, "one.txt")
    page.sign_in(user, "/console/files")
    until_rows(page, "one.txt")
    service.stop()
    page.run("dispatchEvent(new Event('files'))")
    page.see("This list may be out of date. The service cannot be reached.", "one.txt")
    page.check("files-out-of-date")
    service.start()
    service.upload(user, "two.txt")
    until_rows(page, "two.txt", "one.txt")
    page.see_no("out of date")


def test_a_session_that_ends_elsewhere_disturbs_only_when_something_is_done(recorded, service):
    page, user = recorded, service.new_user()
    service.upload(user, "keys.txt")
    page.sign_in(user, "/console/files")
    page.see("keys.txt")
    following(page)
    service.call("POST", "/auth/logout?scope=others", token=user.token)
    service.upload(user, "more.txt")
    page.until("end of the request", lambda: page.run("return running === 0"))
    time.sleep(6)
    page.see_no("Sign in again")
    page.activate("Uploaded", "link")
    page.see("Sign in again")
    page.fill("Password", user.password)
    page.press(Keys.ENTER)
    page.see("more.txt")
    service.upload(user, "later.txt")
    page.see("later.txt")


@pytest.mark.long
def test_a_service_that_lets_nobody_wait_is_asked_as_seldom_as_it_says(recorded, service):
    page, user = recorded, service.new_user()
    after = service.call("GET", "/changes", token=user.token)["next"]
    # As many as may wait in the name of one person.
    for _ in range(4):
        wait = {"method": "GET", "path": f"/changes?after={after}&wait=28", "token": user.token}
        threading.Thread(target=service.call, kwargs=wait, daemon=True).start()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    page.until("three requests", lambda: page.run("return asked.length >= 3"))
    moments = page.run("return asked")
    assert moments[2] - moments[1] > 9900, moments
    service.upload(user, "keys.txt")
    until_rows(page, "keys.txt")
