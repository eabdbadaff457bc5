"""What people have opened to everyone who is signed in here, where the service lists it."""

import pytest


@pytest.fixture(scope="module")
def service(start_service):
    return start_service(CLOAKROOM_PUBLIC_LIST="on")


def rows(page):
    """The names in the list, from top to bottom."""
    return page.run("return [...document.querySelectorAll('.files-list tbody th bdi')].map(name => name.textContent)")


def publish(service, user, name, content=b"content"):
    file = service.upload(user, name, content)
    service.call("PUT", f"/uploads/{file['id']}", {"is_public": True}, user.token)
    return file


def test_what_others_have_opened_is_found_read_and_downloaded(page, service):
    reader, ann = service.new_user(name="Bo Berg"), service.new_user(name="Ann <b>Lee</b>")
    page.sign_in(reader, "/console/public")
    page.heading("Shared by others")
    page.see("Nobody has opened a file to everyone here.")
    page.check("public-none")
    publish(service, ann, "plan.txt", b"the plan")
    publish(service, reader, "mine.txt")
    service.upload(ann, "private.txt")
    page.activate("Files")
    page.activate("Shared by others")
    page.until("rows", lambda: rows(page) == ["mine.txt", "plan.txt"])
    page.see("Ann <b>Lee</b>", "Bo Berg", "2 shown, newest first")
    page.see_no("private.txt", ann.email)
    page.check("public")
    page.activate("Download plan.txt")
    assert page.downloaded("plan.txt") == b"the plan"
    page.fill("Search", "pla")
    page.until("found", lambda: rows(page) == ["plan.txt"])
    page.fill("Search", "nothing")
    page.see("No files")
    page.activate("Clear filters")
    page.until("rows", lambda: len(rows(page)) == 2)
    page.activate("plan.txt")
    page.heading("plan.txt")
    page.see("Another user has shared this file.", "the plan")


def test_older_files_are_on_further_pages(page, service):
    user = service.new_user()
    service.add_files(user, 60, name="'old ' || n || '.txt'")
    service.sql(f"UPDATE files SET is_public = true WHERE user_id = '{user.id}'")
    page.sign_in(user, "/console/public?search=old")
    page.see("50 shown, newest first")
    assert rows(page)[0] == "old 1.txt"
    page.activate("Older")
    page.see("10 shown, newest first")
    assert rows(page)[-1] == "old 60.txt"
    page.activate("Newest")
    page.see("50 shown, newest first")


def test_where_the_list_is_off_nothing_leads_to_it(page, start_service):
    page.service = service = start_service()
    page.sign_in(service.new_user(), "/console/files")
    page.see("No files yet")
    assert not page.named("Shared by others")
    page.open("/console/public")
    page.heading("Page not found")
