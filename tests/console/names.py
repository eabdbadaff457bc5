"""Names of files: what a browser saves has the name of its file, and never that of the link, which is a secret."""

import re

from links import new_link, rename

# The same as in tests/api/files/filenames.rs, which has what the header says of each.
NAMES = [
    "a.txt", "README", ".hidden", "..a", "a.", "a..b..", "a!#$&+-^_`|~.txt", "'", "it's.txt", "'a'.txt", "*.txt",
    "UTF-8''a.txt", "a b.txt", '5" disk.txt', '"', '"a"', "a;b.txt", "a; filename=b.txt", "a; filename*=UTF-8''b.txt",
    "a=b.txt", "a?b", "a=b?", "a? =b", "(a) [b] {c}.txt", "<a@b>,c:d.txt", "%", "a%", "100%.txt", "100%25 cotton.txt",
    "a%20b.txt", "%41.txt", "%E4.txt", "%C3%A4.txt", "%0D%0Aa.txt", "%22.txt", "report%2Epdf.txt", "=?",
    "=?utf-8?q?=FCb?=.txt", "=?utf-8?B?w6Q=?=", "a =?x.txt", "na\u00efve.txt", "\u00e4\u00f6\u00fc",
    "\u65e5\u672c\u8a9e.txt", "\u0645\u0644\u0641.txt", "\U0001f600.txt", "\U0001f469\u200d\U0001f4bb",
    "a\u00a0b\u2003c", "\u00fc\"%;'=?.txt",
    # Longer ones it does not save here, because a file system takes 255 bytes, of which it needs some while it saves.
    "x" * 240 + ".txt", "%" * 244, "\U0001f600" * 60 + ".txt",
]
# Those that a browser would decode or could misread. More downloads a second by one page it does not begin.
SHOWN = ["it's.txt", '5" disk.txt', "100%25 cotton.txt", "%E4.txt", "=?utf-8?q?=FCb?=.txt", "na\u00efve.txt"]


def cleaned(name):
    """What this browser makes of any name: no dots around it, and nothing that a system may not have in a name."""
    return re.sub(r'["*:<>?|\u200d]', "_", name.strip("."))


def saved_name(page):
    """The name of the one file that has been saved, which is removed."""
    def complete():
        found = list(page.downloads.iterdir())
        is_named = len(found) == 1 and not re.search(r"^\.org\.chromium|\.crdownload$", found[0].name)
        return is_named and found[0].stat().st_size and found
    [file] = page.until(f"download among {list(page.downloads.iterdir())}", complete)
    file.unlink()
    return file.name


def test_what_a_link_saves_has_the_name_of_its_file(page, service):
    user = service.new_user()
    file = service.upload(user, "draft.txt", b"by a link")
    link = f"{service.url}/api/v1/links/{new_link(service, user, file)}"
    for name in NAMES:
        rename(service, user, file, name)
        page.driver.get(link)
        assert saved_name(page) == cleaned(name)


def test_what_a_link_shows_is_saved_under_the_name_of_its_file(page, service):
    user = service.new_user()
    file = service.upload(user, "draft.txt", b"by a link")
    address = f"/api/v1/links/{new_link(service, user, file, inline=True)}"
    page.open("/console")
    for name in SHOWN:
        rename(service, user, file, name)
        page.run("""
            const link = document.createElement("a");
            Object.assign(link, { href: arguments[0], download: "" }).click();""", address)
        assert saved_name(page) == cleaned(name)


def test_a_name_that_a_form_writes_in_another_way_is_kept(page, service):
    """What the browser itself makes of names in a form, and what the console sends."""
    user = service.new_user()
    page.sign_in(user, "/console/files")
    for name in ('5" disk.txt', "100%25 cotton.txt", "%E4.txt", "na\u00efve;'=?.txt", "line\r\nend.txt"):
        answer = page.driver.execute_async_script("""
            const [name, token, done] = arguments;
            const form = new FormData();
            form.append("file", new File(["x"], name, { type: "text/plain" }));
            fetch("/api/v1/uploads", { method: "POST", body: form, headers: { Authorization: `Bearer ${token}` } })
                .then((answer) => answer.json()).then(done);""", name, user.token)
        assert answer["filename"] == re.sub(r"[\r\n]", "", name)
    for name in ('say "%22".txt', "%0A.txt"):
        path = page.downloads.parent / name
        path.write_bytes(b"x")
        page.choose_files(path)
        page.until(f"file {name}", lambda: name in [
            file["filename"] for file in service.call("GET", "/uploads", token=user.token)["items"]])
        path.unlink()


def test_a_text_that_a_link_shows_is_read_in_its_encoding(page, service):
    user = service.new_user()
    texts = [("Gr\u00fc\u00dfe", "utf-8", "UTF-8"), ("\u65e5\u672c\u8a9e", "utf-8", "UTF-8"),
             ("\ufeffGr\u00fc\u00dfe", "utf-8", "UTF-8"), ("plain", "ascii", "UTF-8"),
             ("Gr\u00fc\u00dfe", "iso-8859-1", "windows-1252"), ("\ufeffGr\u00fc\u00dfe", "utf-16-le", "UTF-16LE"),
             ("\ufeffGr\u00fc\u00dfe", "utf-16-be", "UTF-16BE")]
    for text, encoding, shown in texts:
        file = service.upload(user, "a.txt", text.encode(encoding))
        page.open(f"/api/v1/links/{new_link(service, user, file, inline=True)}")
        assert page.run("return document.body.innerText") == text.removeprefix("\ufeff"), (text, encoding)
        assert page.run("return document.characterSet") == shown, (text, encoding)
