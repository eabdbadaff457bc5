"""Large files, and those whose connection broke: they go on where the service has them, whoever sends them."""

import json
import re

import pytest
from selenium.webdriver.common.keys import Keys

from files import finished, rows
from send_files import new_link, stored
from service import wait_for
from transfers import MB, write
from wire import Wire

SIZE = 20 * MB
TUS = {"Tus-Resumable": "1.0.0"}
# What the browser keeps of uploads that are not complete.
KEPT = "return Object.keys(localStorage).filter(key => key.startsWith('cloakroom.upload'))"


@pytest.fixture(name="service", scope="module")
def service_of_large_files(start_service):
    return start_service(CLOAKROOM_MAX_UPLOAD_SIZE=str(100 * MB))


@pytest.fixture(name="wire")
def wire_to_service(service):
    """What the browser reaches the service by. The calls of the tests themselves do not go that way."""
    wire, own = Wire(service), service.url
    service.url = wire.url
    yield wire
    service.url = own
    wire.close()


def content_of(size):
    """Text of which no two parts are the same."""
    return b"".join(b"%015d\n" % number for number in range(size // 16))


def under_way(service, user):
    """The uploads that are not complete, as the API lists them."""
    return service.call("GET", "/uploads/partial", token=user.token, headers=TUS)["uploads"]


def arrived(service, user, least):
    """Waits until so many bytes of the only upload have come, and returns how many there are."""
    def offset():
        return next((it["offset"] for it in under_way(service, user) if it["offset"] >= least), None)
    return wait_for(f"upload of {least} bytes", offset)


def sent(page):
    """The requests by which the page has uploaded since the last time: methods and, for parts, their offsets."""
    found = []
    for entry in page.driver.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        request = event["params"].get("request", {}) if event["method"] == "Network.requestWillBeSent" else {}
        path = re.sub(r".*/api/v1|\?.*", "", request.get("url", ""))
        if "/partial" in path or (request.get("method"), path) == ("POST", "/uploads") or path.endswith("/files"):
            offset = {name.lower(): text for name, text in request["headers"].items()}.get("upload-offset")
            name = request["method"] if "/partial" in path else "form"
            found.append(name if offset is None else int(offset))
    return found


def go_to(page, service, user, who, **fields):
    """Opens the page on which files are sent."""
    if who == "owner":
        page.sign_in(user, "/console/files")
        page.see("No files yet")
    else:
        page.open(f"/console/send#{new_link(service, user, **fields)}")
        page.heading("Send files")
    page.driver.get_log("performance")


def reload(page):
    """Loads the page again. The browser lets a page ask before only if a key has been pressed in it."""
    page.press(Keys.TAB)
    page.reload()


def contents(service, user):
    """What the only file of the user holds."""
    [file] = service.call("GET", "/uploads", token=user.token)["items"]
    return service.call("GET", f"/uploads/{file['id']}/download", token=user.token)


@pytest.mark.parametrize("who", ["owner", "stranger"])
def test_a_file_whose_connection_breaks_again_and_again_is_sent_once(wire, page, service, tmp_path, who):
    user = service.new_user()
    go_to(page, service, user, who, max_files=2)
    content = content_of(SIZE)
    wire.let(3 * MB)
    page.choose_files(write(tmp_path, "plan.txt", content), write(tmp_path, "next.txt"))
    offset = 0
    for number in range(4):  # more often than any other upload may break
        offset = arrived(service, user, offset + 2 * MB)
        if number == 0:
            page.check(f"resumed-running-{who}")
        wire.set_network(page, False)
        page.see("Waiting for the network")
        assert page.run("return document.querySelector('.tray-list .field-error') === null")
        if number == 0:
            page.check(f"resumed-waiting-{who}")
        wire.let(3 * MB)
        wire.set_network(page, True)
    arrived(service, user, offset + 2 * MB)
    service.kill()
    page.see("Waiting for the network")
    wire.let()
    service.start()
    finished(page, "2 done")
    assert stored(service, user) == ["/next.txt", "/plan.txt"]
    assert page.run(KEPT) == [] and under_way(service, user) == []
    page.see("20 MB, uploaded")
    if who == "owner":
        page.until("the files in the list", lambda: sorted(rows(page)) == ["next.txt", "plan.txt"])
    else:
        page.see("Nothing more is taken by this link: all that it takes has come.")
    requested = sent(page)
    assert requested.count("POST") == 1 and requested.count("form") == 1, requested
    offsets = [each for each in requested if isinstance(each, int)]
    assert offsets[0] == 0 and len(offsets) >= 6 and offsets == sorted(set(offsets)), requested
    [file] = service.call("GET", "/uploads?search=plan", token=user.token)["items"]
    assert service.call("GET", f"/uploads/{file['id']}/download", token=user.token) == content


@pytest.mark.parametrize("who", ["owner", "stranger"])
def test_the_same_file_goes_on_after_a_reload_and_another_one_does_not(wire, page, service, tmp_path, who):
    user = service.new_user()
    go_to(page, service, user, who, max_files=1)
    content = content_of(SIZE)
    path = write(tmp_path, "plan.txt", content)
    wire.let(3 * MB)
    page.choose_files(path)
    arrived(service, user, 2 * MB)
    reload(page)
    if who == "stranger":
        page.see("Nothing more is taken by this link. A file that was not sent whole goes on if you choose it again.")
        page.check("resumed-reloaded")
    else:
        page.see("No files yet")
    [before] = under_way(service, user)
    assert len(page.run(KEPT)) == 1 and before["offset"] >= 2 * MB
    sent(page)
    wire.let()
    page.choose_files(path)
    finished(page, "1 done")
    head, offset = sent(page)
    assert head == "HEAD" and offset >= before["offset"]
    assert contents(service, user) == content and page.run(KEPT) == []
    if who == "stranger":
        page.see("Nothing more is taken by this link: all that it takes has come.")
        return
    # It is known by its name, its size, its folder and the time of its last change.
    wire.let(3 * MB)
    page.choose_files(path)
    arrived(service, user, MB)
    reload(page)
    page.see("plan.txt")
    path.touch()
    wire.let()
    sent(page)
    page.choose_files(path)
    finished(page, "1 done")
    assert sent(page)[:2] == ["POST", 0]
    assert [it["filename"] for it in under_way(service, user)] == ["plan.txt"]


@pytest.mark.parametrize("who", ["owner", "stranger"])
def test_what_is_cancelled_leaves_nothing_at_the_service(wire, page, service, tmp_path, who):
    user = service.new_user()
    go_to(page, service, user, who, max_files=2)
    wire.let(3 * MB)
    page.choose_files(write(tmp_path, "plan.txt", content_of(SIZE)))
    arrived(service, user, MB)
    page.activate("Cancel plan.txt")
    wait_for("end of the upload", lambda: under_way(service, user) == [])
    assert page.run(KEPT) == [] and sent(page) == ["POST", 0, "DELETE"]
    wait_for("no bytes", lambda: not [*service.directory.glob("data/partial/**/plan*")])
    wire.let()
    page.choose_files(write(tmp_path, "next.txt"))
    finished(page, "1 done")
    assert stored(service, user) == ["/next.txt"]
    if who == "stranger":
        page.see("1 file can still be sent")


def test_a_small_file_that_broke_on_the_way_goes_on_too(wire, page, service, tmp_path):
    user = service.new_user()
    go_to(page, service, user, "owner")
    wire.let(3 * MB)
    content = content_of(8 * MB)
    page.choose_files(write(tmp_path, "plan.txt", content))
    page.until("progress", lambda: re.search(r"[1-9]\d?%", page.text()))
    wire.set_network(page, False)
    page.see("Waiting for the network")
    wire.let()
    wire.set_network(page, True)
    finished(page, "1 done")
    assert sent(page)[:3] == ["form", "POST", 0]
    assert contents(service, user) == content


def test_an_upload_that_the_service_does_not_know_any_more_is_begun_anew(wire, page, service, tmp_path):
    user = service.new_user()
    go_to(page, service, user, "owner")
    wire.let(3 * MB)
    content = content_of(SIZE)
    page.choose_files(write(tmp_path, "plan.txt", content))
    arrived(service, user, MB)
    wire.set_network(page, False)
    page.see("Waiting for the network")
    service.call("DELETE", f"/uploads/partial/{under_way(service, user)[0]['id']}", token=user.token, headers=TUS)
    wire.let()
    wire.set_network(page, True)
    finished(page, "1 done")
    assert sent(page) == ["POST", 0, "HEAD", "POST", 0]
    assert contents(service, user) == content


def test_a_connection_that_the_service_gave_up_is_one_that_broke(page, service, tmp_path):
    user = service.new_user()
    go_to(page, service, user, "owner")
    page.run("""
        const { get } = Object.getOwnPropertyDescriptor(XMLHttpRequest.prototype, "status");
        let given = null;
        // The answer to the first part, in place of a wait until nothing has come for long.
        const isGiven = (request) => get.call(request) === 204 && (given ??= request) === request;
        Object.defineProperty(XMLHttpRequest.prototype, "status", {
            get() { return isGiven(this) ? 408 : get.call(this); } });""")
    page.choose_files(write(tmp_path, "plan.txt", content_of(SIZE)))
    page.see("Waiting for the network")
    finished(page, "1 done")
    assert sent(page) == ["POST", 0, "HEAD", SIZE] and stored(service, user) == ["/plan.txt"]


def test_parts_are_smaller_than_what_proxies_take_and_a_lost_answer_makes_no_second_file(page, service, tmp_path):
    user = service.new_user()
    go_to(page, service, user, "owner")
    page.run("""
        const send = XMLHttpRequest.prototype.send;
        let parts = 0;
        XMLHttpRequest.prototype.send = function (body) {
            // As if the connection had ended before the first byte of the last part's answer.
            if (body?.size && ++parts === 2) this.onload = this.onerror;
            send.call(this, body);
        };""")
    page.choose_files(write(tmp_path, "plan.txt", content_of(55 * MB)))
    finished(page, "1 done")
    assert sent(page) == ["POST", 0, 50_000_000, "HEAD", 55 * MB]
    assert stored(service, user) == ["/plan.txt"] and page.run(KEPT) == []
    page.until("the file in the list", lambda: rows(page) == ["plan.txt"])


def test_another_tab_that_chooses_the_same_file_goes_on_with_it(wire, page, service, tmp_path):
    user = service.new_user()
    go_to(page, service, user, "owner")
    other = page.duplicate()
    other.see("No files yet")
    path = write(tmp_path, "plan.txt", content_of(SIZE))
    wire.let(3 * MB)
    page.choose_files(path)
    arrived(service, user, MB)
    other.choose_files(path)
    page.see("This file is being sent by another tab or program.")
    wire.let()
    finished(other, "1 done")
    page.activate("Remove plan.txt from the list")
    assert stored(service, user) == ["/plan.txt"]


def test_types_and_quotas_that_are_met_on_the_way_are_said(page, start_service, tmp_path):
    page.service = service = start_service(CLOAKROOM_USER_STORAGE_QUOTA=str(15 * MB), CLOAKROOM_TRASH_DAYS="0",
                                           CLOAKROOM_MAX_UPLOAD_SIZE=str(100 * MB))
    user = service.new_user()
    go_to(page, service, user, "owner")
    page.choose_files(write(tmp_path, "fake.png", b"GIF89a" + bytes(9 * MB)),
                      write(tmp_path, "plan.txt", content_of(SIZE)))
    finished(page, "0 done, 2 failed")
    page.see("You have used 0 bytes of 15 MB.")
    assert under_way(service, user) == [] and page.run(KEPT) == []
    page.check("resumed-refused")
    # What the owner has room for, strangers learn from the bytes alone.
    token = new_link(service, user)
    service.upload(user, "own.txt", content_of(9 * MB))
    page.open("/healthz")
    page.open(f"/console/send#{token}")
    page.heading("Send files")
    page.choose_files(write(tmp_path, "sent.txt", content_of(12 * MB)))
    finished(page, "0 done, 1 failed")
    page.see("There is no room for this file at the moment. Tell whoever asked you for it.")
    [file] = service.call("GET", "/uploads", token=user.token)["items"]
    service.call("DELETE", f"/uploads/{file['id']}", token=user.token)
    page.activate("Try again")
    finished(page, "1 done")
