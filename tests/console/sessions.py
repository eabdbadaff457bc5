"""The pages of what has access to one's own account: sessions and personal access tokens."""

import re
from types import SimpleNamespace

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from service import PASSWORD, Refused

MARKUP, BIDI, SCRIPT = "<b>bold</b><script>alert(1)</script>", "\u202egnp.exe", "javascript:alert(1)"
ARABIC = "محمد بن عبد الله"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0"
# More often than a browser heeds a dialog that refuses to close.
OFTEN = [Keys.ESCAPE] * 3


def sign_in_with(service, user, agent):
    """Signs in with this user agent, as UTF-8, and returns the access token."""
    body = {"username": user.username, "password": user.password}
    headers = {"User-Agent": agent.encode().decode("latin-1")}
    return service.call("POST", "/auth/login", body, headers=headers)["access_token"]


def test_sessions(page, service):
    user = service.new_user()
    agents = [FIREFOX, MARKUP, BIDI, SCRIPT, "A" * 500, "backup/1.0"]
    tokens = {agent: sign_in_with(service, user, agent) for agent in agents}
    page.sign_in(user, "/console/account/sessions")
    page.heading("Sessions")
    page.see("This session")
    assert "This session" in page.rows()[0] and "on Linux" in page.rows()[0], "this one is first"
    assert len(page.rows()) == len(agents) + 2
    for shown in ("Firefox 132 on Windows", MARKUP, SCRIPT, "A" * 80 + "…", "backup/1.0", "127.0.0.1"):
        assert page.rows(shown), f"{shown} is not among {page.rows()}"
    page.check("account-sessions")

    page.activate("End the session of Firefox 132 on Windows at 127.0.0.1")
    page.see("The session has ended.")
    page.until("table without it", lambda: not page.rows("Firefox"))
    assert page.focused().accessible_name.startswith("End the session"), "the focus is at the next row"
    assert not service.takes(tokens[FIREFOX])

    service.call("POST", "/auth/logout?scope=local", token=tokens["backup/1.0"])
    page.activate("End the session of backup/1.0 at 127.0.0.1")
    page.see("This session had already ended.")
    page.until("table without it", lambda: not page.rows("backup"))

    page.activate("End all others")
    page.see("Anyone signed in")
    page.check("account-sessions-others")
    page.press(Keys.ESCAPE)
    page.see_no("Anyone signed in")
    assert page.focused().accessible_name == "End all others", "the focus is back"
    page.press(Keys.ENTER)
    page.tab_to("Cancel")
    page.activate("End all others")
    page.see("All other sessions have ended.")
    page.until("only this session", lambda: len(page.rows()) == 1)
    assert not service.takes(tokens[MARKUP])

    page.activate("End all")
    page.tab_to("Cancel")
    page.activate("End all")
    page.heading("Sign in")
    page.see("All your sessions have ended.")
    page.at("/console")


@pytest.mark.long
def test_row_of_this_session_signs_out(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account/sessions")
    page.see("This session")
    page.tab_to("End all")
    page.press(Keys.TAB)
    assert page.focused().accessible_name == "Sign out"
    other = page.duplicate()
    other.see("This session")
    page.press(Keys.ENTER)
    page.heading("Sign in")
    other.heading("Sign in")
    service.call("GET", "/users/me", token=user.token)


def test_session_that_another_tab_has_ended(page, service):
    user = service.new_user()
    other = page.another()
    other.open("/console/account/sessions")
    other.heading("Sign in")
    page.sign_in(user, "/console/account")
    page.see("Last sign-in")
    other.sign_in_here(user)
    other.see("This session")
    other.activate("End all others")
    other.tab_to("Cancel")
    other.activate("End all others")
    other.see("All other sessions have ended.")

    page.fill("Name (optional)", "Written before")
    page.press(Keys.ENTER)
    page.see("Sign in again")
    page.check("account-signed-out")
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("Your changes have been saved.")
    page.at("/console/account")
    assert service.sign_in(user.username)["user"]["name"] == "Written before", "nothing that was typed is lost"


@pytest.mark.long
def test_a_thousand_sessions(page, service):
    user = service.new_user()
    service.sql("INSERT INTO sessions (id, user_id, refresh_id, created_at, expires_at, user_agent, epoch) "
                "SELECT gen_random_uuid(), user_id, gen_random_uuid(), now() + make_interval(secs => n), now() + "
                "interval '1 day', 'program ' || n, epoch FROM sessions, generate_series(1, 990) n "
                f"WHERE user_id = '{user.id}'")
    page.sign_in(user, "/console/account/sessions")
    page.see("Page 1 of 20")
    assert "This session" in page.rows()[0] and len(page.rows()) == 50
    page.check("account-sessions-many")
    page.activate("Next")
    page.at("/console/account/sessions?page=2")
    page.see("Page 2 of 20")
    page.back()
    page.see("Page 1 of 20")
    page.open("/console/account/sessions?page=99")
    page.see("Page 20 of 20")
    page.activate("End all others")
    page.tab_to("Cancel")
    page.activate("End all others")
    page.until("only this session", lambda: len(page.rows()) == 1)


def test_a_page_of_sessions_begins_at_its_title(page, service):
    user = service.new_user()
    service.sql("INSERT INTO sessions (id, user_id, refresh_id, created_at, expires_at, user_agent, epoch) "
                "SELECT gen_random_uuid(), user_id, gen_random_uuid(), now() + make_interval(secs => n), now() + "
                "interval '1 day', 'program ' || n, epoch FROM sessions, generate_series(1, 120) n "
                f"WHERE user_id = '{user.id}'")
    page.sign_in(user, "/console/account/sessions")
    page.see("Page 1 of 3")
    for number in (2, 3):
        page.activate("Next")
        page.see(f"Page {number} of 3")
        assert page.focused().tag_name == "h1" and page.run("return scrollY") == 0


def test_an_answer_that_comes_on_the_next_page_leaves_the_focus_there(page, service):
    user = service.new_user()
    sign_in_with(service, user, FIREFOX)
    page.sign_in(user, "/console/account/sessions")
    page.see("This session")
    page.hold("DELETE /api")
    page.activate("End the session of Firefox 132 on Windows at 127.0.0.1")
    page.see("Ending…")
    page.activate("Profile")
    page.fill("Name (optional)", "Ann")
    page.release()
    page.see("The session has ended.")
    assert page.focused().accessible_name == "Name (optional)"


def make_token(page, name, *, days=None, scope=None):
    """Makes a personal access token, and returns the text that is shown once."""
    page.activate("New token")
    page.fill("Name", name)
    if days:
        page.fill("Days until it ends", days)
    if scope:
        page.select("Access", scope)
        page.activate("Create token")
    else:
        page.press(Keys.ENTER)
    page.see("Copy the token now")
    return re.search(r"\bcloak_[0-9A-Za-z]{40}\b", page.text())[0]


def test_access_tokens(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account/tokens")
    page.heading("Access tokens")
    page.see("No access tokens")
    page.check("account-tokens-none")
    page.activate("New token")
    page.press(Keys.ENTER)
    page.see("Fill in this field.")
    page.fill("Name", BIDI)
    page.fill("Days until it ends", "366")
    page.press(Keys.ENTER)
    page.see("Must be at most 365", "Must not contain control")
    page.check("account-tokens-refused")
    page.press(Keys.ESCAPE)
    page.see_no("New access token")

    token = make_token(page, MARKUP, days="3")
    page.check("account-tokens-made")
    page.press(*OFTEN)
    page.see(token)
    page.activate("Copy token")
    page.see("Copied")
    page.activate("I have copied it")
    page.see_no(token)
    page.until("row of the token", lambda: page.rows(MARKUP))
    [shown] = page.rows(MARKUP)
    assert "in 3 days" in shown and "Read and write" in shown
    service.call("GET", "/uploads", token=token)
    page.activate("New token")
    page.tab_to("Name")
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("v").key_up(Keys.CONTROL).perform()
    assert page.focused().get_attribute("value") == token, "the button has copied it"
    page.press(Keys.ESCAPE)

    camera = make_token(page, "camera", scope="Upload only")
    page.activate("I have copied it")
    page.until("row of the token", lambda: page.rows("camera"))
    assert "Upload only" in page.rows("camera")[0]
    service.upload(SimpleNamespace(token=camera), "by-camera.txt")
    with pytest.raises(Refused, match="403"):
        service.call("GET", "/uploads", token=camera)
    service.sql("DELETE FROM personal_tokens WHERE name = 'camera'")
    reader = make_token(page, ARABIC, scope="Read only")
    page.activate("I have copied it")
    page.until("row of the token", lambda: page.rows(ARABIC))
    assert "Read only" in page.rows(ARABIC)[0]
    file = service.upload(user, "a.txt")
    service.call("GET", f"/uploads/{file['id']}", token=reader)
    with pytest.raises(Refused, match="403"):
        service.call("DELETE", f"/uploads/{file['id']}", token=reader)
    page.reload()
    page.see("In the last hour")
    page.check("account-tokens")

    page.activate(f"Delete the token {MARKUP}")
    page.see("Programs that use it will stop")
    page.check("account-tokens-delete")
    page.tab_to("Cancel")
    page.activate("Delete")
    page.see("The token has been deleted.")
    page.until("table without it", lambda: not page.rows(MARKUP))
    assert not service.takes(token)
    ended = service.call("GET", "/auth/tokens", token=user.token)["tokens"][0]["id"]
    page.activate(f"Delete the token {ARABIC}")
    service.call("DELETE", f"/auth/tokens/{ended}", token=user.token)
    page.tab_to("Cancel")
    page.activate("Delete")
    page.see("This token had already ended.", "No access tokens")


@pytest.mark.long
def test_token_is_shown_however_impatient_one_is(page, service):
    page.sign_in(service.new_user(), "/console/account/tokens")
    page.see("No access tokens")
    page.activate("New token")
    page.fill("Name", "slow")
    page.slow_down(latency=3000)
    page.press(Keys.ENTER)
    page.see("Creating…")
    page.press(*OFTEN)
    page.activate("Cancel")
    page.activate("Close")
    page.see("Copy the token now")
    page.press(*OFTEN)
    page.activate("I have copied it")
    page.slow_down()
    page.until("row of the token", lambda: page.rows("slow"))
    page.activate("New token")
    page.activate("Close")
    page.see_no("New access token")
    page.activate("New token")
    page.activate("Cancel")
    page.see_no("New access token")


@pytest.mark.long
def test_fifty_access_tokens_are_enough(page, service):
    user = service.new_user()
    for number in range(50):
        if number % 25 == 0:  # each session may make 30 a minute
            session = service.sign_in(user.username)["access_token"]
        service.call("POST", "/auth/tokens", {"name": f"token {number}"}, session)
    page.sign_in(user, "/console/account/tokens")
    page.until("all rows", lambda: len(page.rows()) == 50)
    page.activate("New token")
    page.fill("Name", "one more")
    page.press(Keys.ENTER)
    page.see("You already have 50 tokens.")
    page.check("account-tokens-many")
    page.press(Keys.ESCAPE)
    page.see_no("You already have 50 tokens.")


def test_a_reload_goes_on_with_the_tokens_that_the_tab_has(page, service):
    page.sign_in(service.new_user())

    def renewals():
        log = (service.directory / "service.log").read_text(encoding="utf-8")
        return log.count(" POST /api/v1/auth/refresh ")

    before = renewals()
    for _ in range(8):  # more than may be renewed in a minute
        page.reload()
        page.see("Sign out", "No files yet")
    assert renewals() == before
    page.reload(is_late=True)
    page.see("Sign out", "No files yet")
    assert renewals() == before + 1
    page.activate("Sign out")
    page.heading("Sign in")
    assert page.run("return Object.keys(sessionStorage)") == []
