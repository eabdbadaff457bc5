"""Previews: what a file holds, seen on its page and by the space bar in the list, and hostile contents."""

import json
import re
import struct
import zlib

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import browser

KIB, MIB = 1 << 10, 1 << 20
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>document.title = 1</script></svg>'


@pytest.fixture(scope="module")
def service(start_service):
    types = "image/jpeg,image/png,image/svg+xml,application/pdf,text/plain,text/html,audio/wav"
    return start_service(CLOAKROOM_MAX_UPLOAD_SIZE=str(32 * MIB), CLOAKROOM_ALLOWED_UPLOAD_TYPES=types)


def png(width, height, padding=0):
    """A white picture with one bit for each pixel."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    packer = zlib.compressobj(9)
    line = b"\0" + b"\xff" * ((width + 7) // 8)
    rows = b"".join([*(packer.compress(line) for _ in range(height)), packer.flush()])
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
            + chunk(b"tEXt", b"Comment\0" + bytes(padding)) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def watch(page):
    """Counts from now on the addresses of contents that are there, and the downloads and what they ask for."""
    page.run("""
        window.addresses = 0;
        window.asked = [];
        const { createObjectURL, revokeObjectURL } = URL;
        URL.createObjectURL = (blob) => { addresses += 1; return createObjectURL.call(URL, blob); };
        URL.revokeObjectURL = (address) => { addresses -= 1; revokeObjectURL.call(URL, address); };
        const { open, setRequestHeader } = XMLHttpRequest.prototype;
        XMLHttpRequest.prototype.open = function (method, path) {
            asked.push(path.split("/").at(-1));
            this.addEventListener("abort", () => asked.push("abort"));
            open.call(this, method, path);
        };
        XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
            if (name === "Range") asked.push(value);
            setRequestHeader.call(this, name, value);
        };""")


def picture(page):
    """The width and height of the picture that is shown, in its own pixels, and how it is called."""
    return page.run("const shown = document.querySelector('img.preview-picture');"
                    "return shown && [shown.naturalWidth, shown.naturalHeight, shown.alt]")


def text(page):
    return page.run("return document.querySelector('.preview-text')?.textContent")


def shows(page, service, user, name, content, media_type="text/plain"):
    """Opens the page of a new file."""
    file = service.upload(user, name, content, media_type)
    page.run("history.pushState({}, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'));",
             f"/console/files/{file['id']}")
    page.heading(name)
    return file


def test_small_pictures_and_texts_are_seen_on_the_page_of_their_file(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    watch(page)
    shows(page, service, user, "white.png", png(40, 30), "image/png")
    page.until("picture", lambda: picture(page) == [40, 30, "white.png"])
    page.check("file-preview")
    source = "\r\n<script>document.title = 1</script>\n<b>na\u00efve</b>"
    shows(page, service, user, "page.html", source.encode(), "text/html")
    page.until("text", lambda: text(page) == source)
    assert page.tab_to("page.html", "region").get_attribute("class") == "preview-text"
    page.check("file-preview-text")
    shows(page, service, user, "empty.txt", b"")
    page.see("This file is empty.")
    shows(page, service, user, "a.pdf", b"%PDF-1.4", "application/pdf")
    shows(page, service, user, "a.svg", SVG, "image/svg+xml")
    page.see("People with an account")
    assert not page.run("return document.querySelector('.file-preview')")
    assert page.run("return window.asked") == ["download"], "pictures are the browser's to load"


def test_a_large_text_shows_its_beginning_and_a_large_picture_waits_to_be_asked(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    watch(page)
    # In one line, with a character that the end of the part cuts in two.
    long = "a" * (64 * KIB - 1) + "\u00e9" * (1 * MIB)
    shows(page, service, user, "long.txt", long.encode())
    page.see("Only the beginning is shown here: 64 kB of 2.1 MB.")
    assert text(page) == "a" * (64 * KIB - 1)
    page.see_no("not UTF-8")
    assert page.run("return window.asked") == ["download", f"bytes=0-{64 * KIB - 1}"]
    shows(page, service, user, "large.png", png(40, 30, padding=3 * MIB), "image/png")
    page.see("Show the picture (3 MB)")
    assert not picture(page)
    page.activate("Show the picture (3 MB)")
    page.until("picture", lambda: picture(page) == [40, 30, "large.png"])
    assert page.run("return document.activeElement !== document.body"), "the focus is not lost"
    shows(page, service, user, "larger.png", png(40, 30, padding=21 * MIB), "image/png")
    page.see("This picture is too large for a preview (21 MB). Download it to see it.")
    assert page.run("return window.asked.length") == 2


def test_hostile_contents_are_harmless_and_say_what_is_wrong(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    broken, large = "This picture cannot be shown.", "This picture is too large for a preview "
    for name, content, media_type, sentence in [
        ("huge.png", png(30_000, 30_000), "image/png", broken),
        ("large.png", png(20_000, 20_000), "image/png", large + "(20,000 \u00d7 20,000 pixels)."),
        ("many.png", png(8_001, 8_000), "image/png", large + "(8,001 \u00d7 8,000 pixels)."),
        ("cut.png", png(40, 30)[:20], "image/png", broken),
        ("svg.png", SVG, "image/png", broken),
        ("text.png", b"text", "image/png", broken),
        ("binary.txt", b"no text\0\xff", "text/plain", "This is not text, although its type says so."),
        ("utf16.txt", "text".encode("utf-16"), "text/plain", "This is not text, although its type says so."),
        ("latin1.txt", "na\u00efve".encode("latin-1"), "text/plain", "Some characters are not UTF-8."),
        ("turned.txt", "user\u202e txt.exe".encode(), "text/plain", "Hidden characters change the direction"),
    ]:
        shows(page, service, user, name, content, media_type)
        page.see(sentence)
        assert not picture(page), name
        assert page.driver.title.startswith(name)
    assert text(page) == "user\u202e txt.exe"
    page.check("file-preview-hostile")


def test_a_preview_is_given_up_when_its_page_is_left(page, service):
    user = service.new_user()
    service.upload(user, "slow.png", png(40, 30, padding=1 * MIB), "image/png")
    service.upload(user, "slow.txt", b"x" * 64 * KIB)
    page.sign_in(user, "/console/files")
    watch(page)
    events = []

    def logged(method, **wanted):
        """The ids of the requests of which the browser has told this, as far as the fields are as wanted."""
        events.extend(json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance"))
        found = [event["params"] for event in events if event["method"] == f"Network.{method}"]
        return {one["requestId"] for one in found if all(one.get(name) == value for name, value in wanted.items())}

    for name, kind in (("slow.png", "Image"), ("slow.txt", "XHR")):
        page.slow_down(download=5 * KIB)
        page.activate(name)
        page.heading(name)
        [asked] = page.until("download", lambda: logged("requestWillBeSent", type=kind))
        page.activate("All files")
        page.heading("Files")
        page.until("its end", lambda: asked in logged("loadingFailed", canceled=True))
        page.slow_down()


def test_a_file_of_another_user_is_seen_too(page, service):
    owner, reader = service.new_user(), service.new_user()
    file = service.upload(owner, "public.txt", b"for all")
    service.call("PUT", f"/uploads/{file['id']}", {"is_public": True}, owner.token)
    page.sign_in(reader, f"/console/files/{file['id']}")
    page.see("Another user has shared this file.")
    page.until("text", lambda: text(page) == "for all")


def test_the_space_bar_shows_what_the_files_of_the_list_hold(page, service):
    user = service.new_user()
    service.upload(user, "third.pdf", b"%PDF-1.4", "application/pdf")
    service.upload(user, "second.txt", b"text")
    service.upload(user, "first.png", png(40, 30, padding=3 * MIB), "image/png")
    page.sign_in(user, "/console/files")
    page.see("third.pdf")
    watch(page)

    def is_shown(name):
        page.until(f"preview of {name}", lambda: page.run(
            "return document.activeElement.closest('dialog')?.querySelector('h2').textContent") == name)
    page.toggle("first.png")
    is_shown("first.png")
    page.see("PNG picture \u00b7 3 MB")
    page.until("picture", lambda: picture(page) == [40, 30, "first.png"])
    page.check("files-preview")
    page.press(Keys.ARROW_LEFT)
    is_shown("first.png")
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
    page.press(Keys.ARROW_RIGHT)
    is_shown("second.txt")
    page.until("text", lambda: text(page) == "text")
    assert page.run("return document.querySelectorAll('dialog').length") == 1
    page.activate("Next file")
    is_shown("third.pdf")
    page.see("There is no preview of a file of this type.")
    assert not page.driver.find_element(By.CSS_SELECTOR, "[aria-label='Next file']").is_enabled()
    page.press(Keys.ARROW_LEFT)
    is_shown("second.txt")
    page.activate("Download")
    assert page.downloaded("second.txt") == b"text"
    page.press(Keys.ESCAPE)
    page.until("closed dialog", lambda: not page.run("return document.querySelector('dialog')"))
    assert page.focused().accessible_name == "first.png"
    assert page.path() == "/console/files"
    # Without a keyboard there is a button, where there is something to see.
    buttons = [one.accessible_name for one in page.named(re.compile("^Preview"))]
    assert buttons == ["Preview first.png", "Preview second.txt"]
    page.driver.find_element(By.CSS_SELECTOR, "[aria-label='Preview second.txt']").click()
    is_shown("second.txt")
    page.driver.find_element(By.CSS_SELECTOR, "dialog [aria-label='Close']").click()
    page.until("closed dialog", lambda: not page.run("return document.querySelector('dialog')"))
    assert page.focused().accessible_name == "Preview second.txt"


def test_a_preview_can_be_closed_while_its_file_is_downloaded(page, service):
    user = service.new_user()
    service.upload(user, "large.pdf", b"%PDF-1.4" + bytes(4 * MIB), "application/pdf")
    page.sign_in(user, "/console/account")
    page.see("Last sign-in")
    page.activate("Files")
    for leave, heading in ((lambda: page.press(Keys.ESCAPE), "Files"), (page.back, "Profile")):
        page.toggle("large.pdf")
        page.see("There is no preview of a file of this type.")
        page.slow_down(download=50 * KIB)
        page.activate("Download")
        page.see("Downloading large.pdf")
        leave()
        page.until("closed dialog", lambda: not page.run("return document.querySelector('dialog')"))
        page.heading(heading)
        page.activate("Cancel Downloading large.pdf")
        page.see_no("Downloading large.pdf")
        page.slow_down()


SLOW = """
    Object.defineProperty(navigator, "connection", { value: SETTINGS });"""
THUMBNAILS = """
    return [...document.querySelectorAll('.files-list .mark img')].map(image =>
        [image.closest('tr').querySelector('bdi').textContent, image.naturalWidth])"""


@pytest.mark.parametrize("settings", ["{}", "{ saveData: true }", "{ effectiveType: '3g' }"])
def test_of_a_list_only_small_pictures_are_loaded_and_none_on_a_slow_network(page, service, settings):
    user = service.new_user()
    service.upload(user, "first.png", png(40, 30), "image/png")
    service.upload(user, "large.png", png(40, 30, padding=MIB), "image/png")
    service.upload(user, "text.txt", b"text")
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source=SLOW.replace("SETTINGS", settings))
    browser.drain(page.driver)
    page.sign_in(user, "/console/files")
    page.see("first.png", "3 files")
    expected = [["first.png", 40]] if settings == "{}" else []
    page.until("thumbnails", lambda: page.run(THUMBNAILS) == expected)
    loaded = [entry for entry in page.driver.get_log("performance") if "requestWillBeSent" in entry["message"]]
    assert any("file-list.js" in entry["message"] for entry in loaded)
    assert not any("preview.js" in entry["message"] for entry in loaded)
    wanted = [entry for entry in loaded if "/download?view=" in entry["message"]]
    assert len(wanted) == len(expected) == sum("/auth/view-token" in entry["message"] for entry in loaded)
    page.check("files-thumbnails")


def test_a_sound_is_played_where_it_lies_and_goes_on_when_its_address_ends(page, service):
    user = service.new_user()
    seconds = 30
    length = 8000 * seconds
    form = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    sound = (b"RIFF" + struct.pack("<I", 36 + length) + b"WAVEfmt " + form + b"data" + struct.pack("<I", length)
             + b"\x80" * length)
    page.sign_in(user, "/console/files")
    page.see("No files yet")
    watch(page)
    file = shows(page, service, user, "a.wav", sound, "audio/wav")
    player = "const player = document.querySelector('audio'); return player && "
    page.until("player", lambda: page.run(player + "player.duration") == seconds)
    assert page.run("return window.asked") == [], "the page has not read it"
    page.check("file-preview-sound")
    # As if the token had ended: the next part is refused, and another token is asked for.
    before = page.run(player + "player.src")
    page.run("document.querySelector('audio').currentTime = 12")
    page.run("const player = document.querySelector('audio'); const now = Date.now; Date.now = () => now() + 600_000;"
             "player.dispatchEvent(new Event('error'))")
    page.until("another address", lambda: page.run(player + "player.src") != before)
    page.until("place", lambda: page.run(player + "player.currentTime") == 12)
    page.run("Date.now = () => new Date().getTime()")
    # What is no sound says so.
    shows(page, service, user, "b.wav", b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + bytes(40), "audio/wav")
    page.see("Your browser cannot play this. Download it to open it in another program.")
    assert service.call("GET", f"/uploads/{file['id']}/download", token=user.token) == sound
