"""What lists and forms do for people who use them every day."""

import re

import pytest
from browser import TOO_WIDE
from selenium.webdriver.common.keys import Keys

from service import PASSWORD

KEPT = "return Object.keys(localStorage).filter(name => name.startsWith('cloakroom.query.'))"


def names(page):
    """The names of the rows, in their order."""
    return page.run("return [...document.querySelectorAll('tbody th')].map(cell => cell.innerText.split('\\n')[0])")


def choose(page, name, option):
    """Chooses an option of a list."""
    page.run("""
        const field = [...document.querySelectorAll("select")].find(each => each.labels[0].innerText === arguments[0]);
        field.value = [...field.options].find(each => each.text === arguments[1]).value;
        field.dispatchEvent(new Event("change", { bubbles: true }));""", name, option)


def test_a_list_is_as_it_was_left_for_the_same_person_only(page, service):
    user, other = service.new_user(), service.new_user()
    service.add_files(user, 30)
    page.sign_in(user, "/console/files")
    page.see("1–25 of 30")
    choose(page, "Rows", "50")
    page.at("/console/files?size=50")
    page.activate("Size")
    page.fill("Search", "file 3")
    page.see("1–2 of 2")
    page.activate("Account")
    page.heading("Profile")
    page.activate("Files")
    page.at("/console/files?size=50&sort_by=file_size&sort_order=asc&search=file+3")
    page.until("as it was left", lambda: names(page)[:2] == ["file 3.txt", "file 30.txt"])
    page.open("/console/files?search=file+2")
    page.see("1–11 of 11")
    page.at("/console/files?search=file+2")
    page.open("/console/files")
    page.at("/console/files?size=50&sort_by=file_size&sort_order=asc&search=file+3")
    assert page.run(KEPT) == [f"cloakroom.query.{user.id}/console/files"]
    page.activate("Clear filters")
    page.see("1–30 of 30")
    page.until("focus", lambda: page.focused().accessible_name == "Search")
    page.activate("Sign out")
    page.heading("Sign in")
    assert page.run(KEPT) == []
    page.run("localStorage.setItem(arguments[0], '?search=secret')", f"cloakroom.query.{user.id}/console/files")
    page.sign_in(other, "/console/files")
    page.see("No files yet")
    page.at("/console/files")
    assert page.run(KEPT) == [], "what a tab of a person left that was closed"


def test_one_gets_to_the_first_and_the_last_page_and_asks_again(page, service):
    service.add_users(140, name="'Crowd ' || n")
    page.sign_in(service.admin(), "/console/users?search=crowd_")
    page.see("1–25 of 140")
    page.activate("Last page")
    page.see("126–140 of 140", "Page 6 of 6")
    page.check("users-last")
    page.run("window.statusLine = document.querySelector('.pager [role=status]')")
    log = service.directory / "service.log"
    renewals = log.read_text().count("/auth/refresh")
    service.sql("DELETE FROM users WHERE username = 'crowd_7'")
    page.activate("Refresh the list")
    page.see("126–139 of 139")
    assert page.focused().accessible_name == "Refresh the list"
    assert "/admin/users" in log.read_text() and log.read_text().count("/auth/refresh") == renewals
    page.activate("First page")
    page.see("1–25 of 139")
    choose(page, "Rows", "100")
    page.see("1–100 of 139", "Page 1 of 2")
    page.fill("Search", "nobody-has-this-name")
    page.see("No account matches")
    # Only what changes inside an element that was there before is read out.
    assert page.run("return statusLine.isConnected && statusLine.textContent") == "Nothing found"


def test_filters_act_by_themselves_and_keep_their_errors(page, service):
    admin, user = service.admin(), service.new_user(name="Zoe Filter")
    page.sign_in(admin, "/console/users")
    page.fill("Search", user.username)
    page.until("the user", lambda: names(page) == ["Zoe Filter"])
    assert page.focused().accessible_name == "Search"
    page.select("Role", "Administrator")
    page.see("No account matches")
    page.open("/console/audit")
    page.select("Action", "Sign-in")
    page.until("address", lambda: "action=auth.login" in page.path())
    page.fill("Who", "nobody-has-this-name")
    page.press(Keys.ENTER)
    page.see("No account has this id, username, e-mail address or name.")
    page.until("focus", lambda: page.focused().accessible_name == "Who")
    page.fill("Who", user.username)
    page.press(Keys.TAB)
    page.until("address", lambda: user.id in page.path())
    page.activate("More filters")
    page.tab_to("From")
    page.press("01022020", Keys.TAB, "0304")
    page.press("AM", Keys.ENTER)
    page.until("address", lambda: "from=2020-0" in page.path())
    page.tab_to("To")
    page.press("01")
    page.press(Keys.ENTER)
    page.see("Complete this date and time.")


def test_a_changed_form_is_left_after_a_question_only(page, service):
    user = service.new_user()
    file = service.upload(user, "letter.txt")
    unload = "const event = new Event('beforeunload', { cancelable: true }); dispatchEvent(event);"
    page.sign_in(user, "/console/files")
    page.activate("letter.txt")
    page.heading("letter.txt")
    page.fill("Description (optional)", "Dear all")
    assert page.run(unload + "return event.defaultPrevented"), "the browser asks before the tab is closed"
    for leave in (lambda: page.activate("Account"), page.back, lambda: page.activate("Sign out")):
        leave()
        page.see("Leave without saving?")
        page.activate("Stay")
        page.see_no("Leave without saving?")
        page.at(f"/console/files/{file['id']}")
        assert page.run("return document.querySelector('textarea').value") == "Dear all"
    # Whoever is asked may also take the step back themselves.
    page.back()
    page.see("Leave without saving?")
    page.forward()
    page.activate("Stay")
    page.see_no("Leave without saving?")
    page.at(f"/console/files/{file['id']}")
    assert page.run("return document.querySelector('textarea').value") == "Dear all"
    page.back()
    page.see("Leave without saving?")
    page.check("leave")
    page.activate("Stay")
    page.activate("Save")
    page.see("Your changes have been saved.")
    assert not page.run(unload + "return event.defaultPrevented")
    page.back()
    page.heading("Files")
    page.forward()
    page.heading("letter.txt")
    page.fill("Description (optional)", "Dear nobody")
    page.back()
    page.see("Leave without saving?")
    page.activate("Leave")
    page.heading("Files")
    page.see("letter.txt")
    page.forward()
    page.heading("letter.txt")
    page.activate("Account")
    page.heading("Profile")


def test_what_is_typed_while_a_form_is_being_saved_is_not_taken_for_saved(page, service):
    user = service.new_user()
    file = service.upload(user, "letter.txt")
    page.sign_in(user, f"/console/files/{file['id']}")
    page.heading("letter.txt")
    page.hold("PUT /api")
    page.fill("Description (optional)", "Dear all")
    page.activate("Save")
    page.see("Saving…")
    page.fill("Description (optional)", "Dear all, hello")
    page.release()
    page.see("Your changes have been saved.")
    page.activate("Account")
    page.see("Leave without saving?")
    page.activate("Stay")
    assert page.tab_to("Description (optional)").get_property("value") == "Dear all, hello"
    page.activate("Save")
    page.until("saved text", lambda: service.call("GET", f"/uploads/{file['id']}", token=user.token)["description"]
               == "Dear all, hello")
    page.until("end", lambda: not page.named("Saving…"))
    page.activate("Account")
    page.heading("Profile")
    page.see("Last sign-in")
    page.hold("PUT /api")
    page.fill("Name (optional)", "Ann")
    page.press(Keys.ENTER)
    page.see("Saving…")
    page.fill("E-mail", "ann@example.com")
    page.release()
    page.until("end", lambda: not page.named("Saving…"))
    assert page.focused().accessible_name == "E-mail"
    assert page.tab_to("E-mail").get_property("value") == "ann@example.com"


def test_on_a_phone_the_first_file_is_near_and_files_are_sorted(page, service):
    user = service.new_user()
    service.add_files(user, 26, name="chr(96 + n) || '.txt'")
    page.sign_in(user, "/console/files")
    page.screen(360, height=640)
    page.see("1–25 of 26", "26 files")
    bottom = "return document.querySelector('tbody th a').getBoundingClientRect().bottom"
    assert page.run(bottom) <= 320
    assert page.run("return !document.querySelector('thead .sort').checkVisibility()")
    page.tab_to("Sort")
    choose(page, "Sort", "Name, Z to A")
    page.until("order", lambda: names(page)[:2] == ["z.txt", "y.txt"])
    page.at("/console/files?sort_by=filename&sort_order=desc")
    page.until("focus", lambda: page.focused().accessible_name == "Sort")
    page.tab_to("z.txt")
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_lists_of_files_fit_each_width_and_many_rows_the_first_screen(page, service):
    user = service.new_user()
    service.add_files(user, 12)
    page.sign_in(user, "/console/files")
    page.see("1–12 of 12", "12 files, 78 bytes of 1 GB")
    for width, height, least in ((1366, 768, 9), (390, 844, 8)):
        page.screen(width, height=height)
        seen = page.run("return [...document.querySelectorAll('tbody tr')]"
                        ".filter(row => row.getBoundingClientRect().bottom <= innerHeight).length")
        assert seen >= least, (width, seen)
    for name in ("x" * 251 + ".txt", "ملف طويل جدا " * 9 + ".txt", "plan.txt"):
        for _ in range(2):
            file = service.upload(user, name, description="A description of many words " * 9)
        service.call("DELETE", f"/uploads/{file['id']}", token=user.token)
    for path, count in (("/console/files", 15), ("/console/files/deleted", 3)):
        page.open(path)
        page.see(f"1–{count} of {count}")
        for width in (320, 390, 480, 600, 601, 700, 768, 860, 861, 960, 1024, 1199, 1200, 1366, 1920):
            page.screen(width)
            wide, *edges = page.run("""
                const { scrollWidth, clientWidth } = document.documentElement;
                const edges = [[".pick", "right"], [".mark", "left"], [".file-name", "right"],
                    ["td:last-child", "left"]];
                return [scrollWidth - clientWidth, ...[...document.querySelectorAll("tbody tr")].map(row => edges.map(
                    ([part, name]) => Math.round(row.querySelector(part).getBoundingClientRect()[name])))]""")
            crossed = [row for row in edges if row != sorted(row) or row[2] - row[1] < 100]
            assert not page.run(TOO_WIDE) and wide <= 0 and not crossed, (path, width, wide, crossed)
    page.check("deleted-files-long")


def test_a_notice_that_is_closed_gives_the_focus_to_the_page(page, service):
    user = service.new_user()
    file = service.upload(user, "letter.txt")
    page.sign_in(user, f"/console/files/{file['id']}")
    page.heading("letter.txt")
    page.run("document.querySelector('h1').focus()")
    page.fill("Description (optional)", "Dear all")
    page.activate("Save")
    page.see("Your changes have been saved.")
    page.run("document.querySelector('.notice button').focus()")
    page.press(Keys.ENTER)
    page.see_no("Your changes have been saved.")
    page.until("focus", lambda: page.focused().tag_name == "h1")


def test_the_first_wrong_field_gets_the_focus(page, service):
    page.sign_in(service.admin(), "/console/users/new")
    page.fill("E-mail addresses", "long" * 20 + "@example.com")
    page.activate("More")
    page.fill("Username (optional)", "a b")
    page.activate("More")
    page.activate("Invite")
    page.until("errors", lambda: page.run("return document.querySelectorAll('[aria-invalid]').length") == 2)
    page.until("focus", lambda: page.focused().accessible_name == "E-mail addresses")
    assert page.named("Username (optional)"), "a part that holds a fault is unfolded"


def test_an_error_at_the_field_that_has_the_focus_already_is_read_out(page, service):
    user = service.new_user()
    page.open("/console")
    page.fill("Username or e-mail", user.username)
    page.fill("Password", "wrong")
    page.run("window.place = document.activeElement.closest('.field').querySelector('[aria-live]')")
    # Only what changes inside an element that was there before is read out.
    assert page.run("return place.checkVisibility() && !place.textContent")
    page.press(Keys.ENTER)
    page.see("Wrong name or password.")
    assert page.focused().accessible_name == "Password"
    assert page.run("return place.isConnected && place.textContent") == "Wrong name or password."


def test_on_a_phone_a_long_title_has_the_whole_width(page, service):
    user = service.new_user()
    name = "Summer house from the side of the lake.txt"
    file = service.upload(user, name)
    page.sign_in(user, f"/console/files/{file['id']}")
    page.heading(name)
    page.screen(360)
    width = page.run("return document.querySelector('h1').clientWidth")
    assert width > 300


def test_dates_are_in_the_language_of_the_browser_and_say_so(page, service):
    page.cdp("Emulation.setLocaleOverride", locale="de")
    user = service.new_user()
    service.upload(user, "letter.txt")
    page.sign_in(user, "/console/files")
    page.see("letter.txt")
    shown = page.run("""
        const moment = document.querySelector("tbody .nowrap time");
        return [moment.lang, moment.dir, moment.innerText, moment.dateTime, document.documentElement.lang]""")
    assert shown[0] == "de" and shown[1] == "auto" and re.match(r"\d\d\.\d\d\.\d{4}, ", shown[2]), shown
    assert shown[3].startswith("20") and shown[4] == "en", shown
    page.cdp("Emulation.setLocaleOverride")


def test_a_description_begins_below_its_name_and_a_size_and_a_date_share_a_line(page, service):
    user = service.new_user()
    service.upload(user, "report.txt", description="\u062a\u0642\u0631\u064a\u0631")
    page.sign_in(user, "/console/files")
    page.see("report.txt")
    for width in (320, 390, 1440):
        page.screen(width)
        left, below, lines = page.run("""
            const box = (selector) => document.querySelector(selector).getBoundingClientRect();
            const cells = [...document.querySelectorAll("tbody td[data-label]")].filter(each => each.checkVisibility());
            return [box("tbody th a bdi").left, box(".file-description bdi").left,
                new Set(cells.map(each => Math.round(each.getBoundingClientRect().bottom))).size]""")
        assert abs(left - below) < 2 and lines == 1, (width, left, below, lines)


@pytest.mark.parametrize("dark", [False, True])
def test_forced_colours_keep_what_is_chosen_visible(page, service, dark):
    page.sign_in(service.admin(), "/console/stats")
    page.see("New users")
    page.screen(1000, dark, forced=True)
    colours = """
        const [box, other] = arguments[0];
        const begin = ({ x, y }) => 4 * (pixels.width * y + x);
        const at = (corner) => pixels.data.slice(begin(corner), begin(corner) + 3).join();
        return at(box) !== at(other);"""
    for chosen, other in ((".side-links a[aria-current]", ".side-links a:not([aria-current])"),
                          (".segments a[aria-current]", ".segments a:not([aria-current])")):
        corners = page.run("""
            return [...arguments].map(which => document.querySelector(which).getBoundingClientRect())
                .map(({ x, y }) => ({ x: Math.round(x) + 4, y: Math.round(y) + 4 }))""", chosen, other)
        assert page.pixels(colours, corners), chosen
    bars = page.run("return getComputedStyle(document.querySelector('.plot-bar rect:not(.plot-hit)')).fill")
    assert bars == page.run("return getComputedStyle(document.querySelector('h1')).color")


def test_each_page_has_one_main_button(page, service):
    admin = service.admin()
    file = service.upload(admin, "main.txt")
    expected = {
        "/console/files": ["Upload files"], "/console/files/deleted": [],
        f"/console/files/{file['id']}": ["Share link"],
        "/console/account": ["Save"], "/console/account/password": ["Change password"],
        "/console/account/second-factor": ["Start"], "/console/account/tokens": ["New token"],
        "/console/users": ["Invite people"], "/console/users/new": ["Invite"],
        f"/console/users/{service.new_user().id}": ["Save changes"], "/console/audit": [],
    }
    page.sign_in(admin)
    for path, main in expected.items():
        page.open(path)
        loaded = "return document.querySelector('h1') && !document.querySelector('[aria-busy]')"
        page.until("page", lambda: page.run(loaded))
        found = page.run("return [...document.querySelectorAll('main .primary')].map(each => each.innerText)")
        assert found == main, path


def test_what_is_typed_while_a_conflict_is_resolved_stays(page, service):
    user = service.new_user()
    path = f"/uploads/{service.upload(user, 'letter.txt')['id']}"
    page.sign_in(user, f"/console/files{path.removeprefix('/uploads')}")
    page.heading("letter.txt")
    service.call("PUT", path, {"filename": "theirs.txt"}, user.token)
    page.hold("GET /api/v1/uploads/")
    page.fill("Description (optional)", "Dear all")
    page.activate("Save")
    page.see("Saving…")
    page.fill("Description (optional)", "Dear both")
    page.release()
    page.see("Your changes have been saved.")
    page.heading("theirs.txt")
    assert page.tab_to("Description (optional)").get_property("value") == "Dear both"
    found = service.call("GET", path, token=user.token)
    assert (found["filename"], found["description"]) == ("theirs.txt", "Dear all")


def test_a_second_link_of_a_mail_in_a_tab_leaves_its_form_when_one_goes_back(page, service):
    page.open("/console/reset#token=first")
    page.tab_to("New password")
    page.run("location.hash = 'token=second'")
    page.until("taken token", lambda: page.run("return !location.hash"))
    page.fill("New password", PASSWORD)
    page.back()
    page.until("entry", lambda: page.run("return history.state?.entry === 0"))
    assert page.tab_to("New password").get_property("value") == PASSWORD


def test_an_account_that_is_shown_anew_takes_nobody_out_of_a_field(page, service):
    user = service.new_user()
    page.sign_in(service.admin(), f"/console/users/{user.id}#access")
    page.see("its owner can sign in")
    page.hold("GET /api/v1/admin/users")
    page.activate("Deactivate")
    page.activate("Deactivate")
    page.until("closed dialog", lambda: not page.run("return document.querySelector('dialog')"))
    page.fill("Name (optional)", "Ann")
    page.release()
    page.see("nobody can sign in to it")
    assert page.focused().accessible_name == "Name (optional)"
