"""One link to several files or to a folder: making it, its page, and its row among all links. And what is downloaded as
one ZIP."""

import base64
import io
import re
import zipfile

import pytest
from selenium.webdriver.common.by import By

import browser
from folders import folders, go, put
from links import refuse, requests, take_copies
from service import Refused

PICTURE = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
                           "awAAAABJRU5ErkJggg==")
ALL = re.compile(r"^Download all as ZIP")
LATER = "Files that come into the folder later are shared too, except those other people have sent there until you "
COUNT = "return document.querySelectorAll('.shared-files li').length"


def new_link(service, user, files=None, **fields):
    """The token of a new link to files, or to a `folder`."""
    body = fields | ({"files": [file["id"] for file in files]} if files else {})
    return service.call("POST", "/links", body, user.token)["url"].removeprefix("/api/v1/links/")


def three(service, user):
    """Two texts and a picture."""
    return [service.upload(user, "a.txt", b"first"), service.upload(user, "b.txt", b"second"),
            service.upload(user, "c.png", PICTURE, "image/png")]


def names(page):
    """The folders and files on the page of a link, from top to bottom."""
    return page.run("return [...document.querySelectorAll('.shared-files bdi')].map(name => name.textContent)")


def unpacked(page, name):
    """What is in a ZIP that the browser saves, by its names."""
    with zipfile.ZipFile(io.BytesIO(page.downloaded(name))) as archive:
        assert archive.testzip() is None
        return {entry: archive.read(entry) for entry in archive.namelist()}


def crowd(service, user, count, folder, name):
    """Records files without contents in a folder. `name` is an expression of SQL in which `n` counts from 1."""
    service.add_files(user, count, name=name)
    service.sql(f"UPDATE files SET folder = '{folder}' || chr(1) WHERE user_id = '{user.id}' AND file_path = '-'")


def test_several_selected_files_become_one_link_with_its_qr_code(page, service):
    user = service.new_user()
    files = three(service, user)
    page.sign_in(user, "/console/files")
    page.see("c.png")
    take_copies(page)
    page.toggle("Select all on this page")
    page.activate("Copy link")
    page.see("Create a link to 3 files", "Anyone with the link can download the files.")
    page.check("shared-new")
    page.toggle("Show the files in the browser")
    page.activate("Create and copy")
    page.see("3 files: the link has been copied. It works until")
    page.activate("Show it")
    page.see("Copied. It works until")
    code = page.driver.find_element(By.CSS_SELECTOR, "dialog img.qr")
    assert code.accessible_name == "QR code of the link"
    page.until("picture", lambda: code.get_property("naturalWidth") > 0)
    page.check("shared-made")
    page.activate("Done")
    page.run("document.querySelector('.notice .icon-only')?.click()")  # or its button would be met for another link
    page.see_no("3 files: the link has been copied.")
    token = page.run("return window.copied").partition("/console/link#")[2]
    about = service.call("GET", f"/links/{token}?about=true")
    assert [about["inline"], *(file["filename"] for file in about["files"])] == [True, "a.txt", "b.txt", "c.png"]
    [link] = service.call("GET", "/links", token=user.token)["links"]
    assert link["files"] == 3

    # What has been deleted meanwhile cannot be in one.
    page.activate("Copy link")
    service.call("DELETE", f"/uploads/{files[0]['id']}", token=user.token)
    page.activate("Create and copy")
    page.see("There is no such file, or it has been deleted.")
    page.activate("Cancel")
    # One file has a link as ever. A service that does not know its own address draws no code.
    page.activate("Clear selection")
    page.toggle("Select b.txt")
    page.run("""
        const ask = window.fetch;
        window.fetch = async (...request) => {
            const answer = await ask(...request);
            if (request[1].method !== "POST") return answer;
            return Response.json({ ...await answer.json(), qr_svg: null }, { status: answer.status });
        };""")
    page.activate("Copy link")
    page.see("Create a link to b.txt")
    page.activate("Create and copy")
    page.see("b.txt: the link has been copied.")
    page.activate("Show it")
    page.see("Copied. It works until")
    assert not page.run("return document.querySelector('dialog img')")


def test_more_than_a_hundred_selected_files_are_told_why_they_are_too_many(page, service):
    user = service.new_user()
    service.add_files(user, 101)
    page.sign_in(user, "/console/files")
    page.toggle("Select all on this page")
    page.activate("Select all 101")
    page.see("101 selected")
    for name in ("Copy link", "Download as ZIP"):
        page.activate(name)
        page.see("This takes at most 100 files at once. Put them into a folder")
        assert not page.run("return document.querySelector('dialog')")
        page.run("document.querySelector('.notice button').click()")
        page.see_no("This takes at most 100 files at once.")


def test_a_folder_is_shared_with_what_comes_later(page, service):
    user = service.new_user(name="Ann <b>Lee</b>")
    put(service, user, "/plans/1.txt", "/plans/sub/2.txt", "/other.txt")
    page.sign_in(user, "/console/files")
    page.until("folder", lambda: folders(page) == ["plans"])
    take_copies(page)
    page.activate("Link to plans")
    page.see("Create a link to plans", LATER)
    page.check("shared-folder-new")
    page.activate("Create and copy")
    page.see("plans: the link has been copied.")
    address = page.run("return window.copied").removeprefix(service.url)
    # The page of the folder has the same.
    go(page, ".folders", "plans")
    page.until("the way", lambda: page.named("Copy link"))
    page.check("shared-folder")
    page.activate("Copy link")
    page.see("Create a link to plans", LATER)
    page.activate("Cancel")

    page.open("/healthz")
    requests(page)
    page.open(address)
    page.heading("plans")
    page.see("Ann <b>Lee</b> sent you a folder", "2 files", "The link works until")
    assert names(page) == ["1.txt", "sub", "2.txt"]
    assert requests(page) == [("GET", "/links/")]
    page.check("shared-page")
    put(service, user, "/plans/3.txt")
    page.reload()
    page.until("what came later", lambda: names(page) == ["1.txt", "3.txt", "sub", "2.txt"])
    # Where all has gone, that is said; what comes there is shown again.
    service.call("POST", "/folders/move", {"from": "/plans", "to": "/elsewhere"}, user.token)
    page.reload()
    page.see("There is nothing in this folder at the moment.")
    assert not page.named(ALL, "button")
    page.check("shared-page-empty")
    put(service, user, "/plans/4.txt")
    page.reload()
    page.until("what is there again", lambda: names(page) == ["4.txt"])
    [link] = service.call("GET", "/links", token=user.token)["links"]
    service.call("DELETE", f"/links/{link['id']}", token=user.token)
    page.activate("Download 4.txt")
    page.heading("This link has ended")
    assert not list(page.downloads.iterdir())


def test_the_page_of_a_link_saves_one_or_all_and_shows_what_may_be_shown(page, service):
    user = service.new_user()
    files = three(service, user)
    token = new_link(service, user, files, inline=True)
    page.open(f"/console/link#{token}")
    page.heading("3 files")
    page.see("A person sent you files", "Text \u00b7 5 bytes")
    picture = "return document.querySelector('.shared-files img')?.naturalWidth"
    page.until("picture", lambda: page.run(picture) == 1)
    page.check("shared-page-inline")
    assert page.named("a.txt")[0].get_property("href") == f"{service.url}/api/v1/links/{token}/{files[0]['id']}"
    page.activate("Download a.txt")
    assert page.downloaded("a.txt") == b"first"
    page.activate(ALL, "button")
    assert unpacked(page, "files.zip") == {"a.txt": b"first", "b.txt": b"second", "c.png": PICTURE}
    # What is refused is said, and the list stays as it is.
    refuse(page, 503)
    page.activate("Download b.txt")
    page.see("The service is unavailable at the moment.")
    assert names(page) == ["a.txt", "b.txt", "c.png"] and not (page.downloads / "b.txt").exists()
    # One that was deleted meanwhile is said to be gone, and the others stay.
    service.call("DELETE", f"/uploads/{files[1]['id']}", token=user.token)
    page.activate("Download b.txt")
    page.see("b.txt is not there any more.")
    page.heading("2 files")
    assert names(page) == ["a.txt", "c.png"]
    for file in (files[0], files[2]):
        service.call("DELETE", f"/uploads/{file['id']}", token=user.token)
    page.activate(ALL, "button")
    page.heading("This link has ended")
    page.check("shared-page-ended")


def test_a_link_that_only_saves_shows_no_pictures(page, service):
    user = service.new_user()
    token = new_link(service, user, three(service, user))
    page.open(f"/console/link#{token}")
    page.heading("3 files")
    assert names(page) == ["a.txt", "b.txt", "c.png"]
    assert not page.named("a.txt") and not page.run("return document.querySelector('.shared-files img')")


def test_three_hundred_files_with_the_longest_names_are_usable_on_a_phone(page, service):
    user = service.new_user()
    crowd(service, user, 300, "many", "lpad(n::text, 3, '0') || repeat('W', 248) || '.txt'")
    service.upload(user, "z.txt", b"the last one", folder="/many")
    page.screen(360, height=740)
    page.open(f"/console/link#{new_link(service, user, folder='/many')}")
    page.heading("many")
    page.see("301 files")
    assert page.run(COUNT) == 301
    assert not page.run(browser.TOO_WIDE)
    assert not page.axe()
    page.screenshot("shared-page-phone.png")
    # Thumbs hit each button, and at least four files are on a screen.
    small, high = page.run("""
        const sizes = (all) => [...document.querySelectorAll(all)].map(one => one.getBoundingClientRect());
        return [sizes('.shared-files button').filter(({ width, height }) => width < 40 || height < 40).length,
            sizes('.shared-files li').filter(({ height }) => height > 740 / 4).length]""")
    assert [small, high] == [0, 0]
    page.run("document.querySelector('.shared-files li:last-child button').click()")
    assert page.downloaded("z.txt") == b"the last one"


def test_what_is_beyond_a_thousand_files_is_shown_when_asked_for(page, service):
    user = service.new_user()
    crowd(service, user, 1002, "many", "lpad(n::text, 4, '0')")
    token = new_link(service, user, folder="/many")
    page.open(f"/console/link#{token}")
    page.see("1,002 files")
    assert page.run(COUNT) == 1000
    page.run("[...document.querySelectorAll('button')].at(-1).focus()")
    page.activate("Show more")
    page.until("all", lambda: page.run(COUNT) == 1002)
    page.until("focus", lambda: page.focused().accessible_name == "Download 1001")
    assert not page.named("Show more")


def test_what_is_selected_and_a_folder_are_downloaded_as_a_zip(page, service):
    user = service.new_user()
    three(service, user)
    put(service, user, "/plans/1.txt", "/plans/sub/2.txt")
    page.sign_in(user, "/console/files")
    page.see("c.png")
    page.toggle("Select a.txt")
    page.toggle("Select b.txt")
    page.activate("Download as ZIP")
    assert unpacked(page, "files.zip") == {"a.txt": b"first", "b.txt": b"second"}
    page.activate("Download plans as ZIP")
    assert unpacked(page, "plans.zip") == {"1.txt": b"text", "sub/2.txt": b"text"}
    (page.downloads / "plans.zip").unlink()
    go(page, ".folders", "plans")
    page.until("row", lambda: page.rows("1.txt"))
    page.activate("Download as ZIP")
    assert set(unpacked(page, "plans.zip")) == {"1.txt", "sub/2.txt"}
    # What is too much is said, and nothing is saved.
    crowd(service, user, 10_001, "many", "'f' || n")
    page.open("/console/files")
    page.activate("Download many as ZIP")
    page.see("many has not been prepared as a ZIP. Too many files.")
    assert [one.name for one in page.downloads.iterdir() if "many" in one.name] == []


def test_all_kinds_of_links_are_listed_searched_and_ended_together(page, service):
    user = service.new_user()
    files = three(service, user)
    put(service, user, "/plans/sub/1.txt")
    folder = new_link(service, user, folder="/plans/sub")
    several = new_link(service, user, files)
    one = service.call("POST", f"/uploads/{files[0]['id']}/links", {}, user.token)["url"].removeprefix("/api/v1/links/")
    page.sign_in(user, "/console/links")
    page.see("/plans/sub", "3 files", "a.txt")
    page.check("shared-list")
    page.fill("Search", "PLANS")
    page.until("found", lambda: len(page.rows()) == 1 == len(page.rows("/plans/sub")))
    page.activate("/plans/sub")
    page.at("/console/files?folder=%2Fplans%2Fsub")
    page.back()
    page.activate("Clear filters")
    page.until("all", lambda: len(page.rows()) == 3)
    # A question names what the link is to, and Cancel leaves it.
    page.activate(re.compile("^End the link to 3 files that works until"))
    page.see("3 files can be opened by this link until", "It will stop working.")
    page.activate("Cancel")
    page.toggle("Select 3 files")
    page.toggle("Select /plans/sub")
    page.activate(re.compile("^End$"))
    page.see("End 2 links?")
    page.run("document.querySelector('dialog .danger').click()")
    page.see("2 links have ended.")
    page.until("the other", lambda: len(page.rows()) == 1 == len(page.rows("a.txt")))
    for token in (folder, several):
        with pytest.raises(Refused):
            service.call("GET", f"/links/{token}?about=true")
    assert service.call("GET", f"/links/{one}") == b"first"
