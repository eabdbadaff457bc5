"""What tabs of one browser, and people who use one tab after the other, leave each other."""

import time

import pytest
from selenium.webdriver.common.keys import Keys

from service import PASSWORD

TOKEN = "cloakroom.refresh_token"
# Without encryption browsers offer no locks, except for addresses of their own host.
WITHOUT_LOCKS = "Object.defineProperty(Navigator.prototype, 'locks', { value: undefined })"


def renew(page, times):
    """Renews the tokens of a tab so often, each time later than a lost answer is forgiven."""
    for _ in range(times):
        time.sleep(1.5)
        page.reload()
        page.see("Sign out")
    time.sleep(1.5)


def token_of(page):
    """The refresh token that a tab keeps."""
    return page.run("return sessionStorage.getItem(arguments[0])", TOKEN)


def alarms(page):
    """How many sessions of the tab's user were ended because a token was used twice, as by a thief."""
    return int(page.service.sql("SELECT count(*) FROM audit_events WHERE action = 'auth.refresh_reuse' "
                                f"AND actor_id = '{page.user.id}'")[0])


def sign_in_here(page, account):
    """Signs in at the page that is shown, without loading it anew."""
    page.fill("Username or e-mail", account.username)
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("Sign out", account.email)


@pytest.fixture(scope="module")
def service(start_service):
    """A service that forgives a second use of a token for a second only."""
    return start_service(CLOAKROOM_REFRESH_REUSE_SECONDS="1")


@pytest.fixture(params=["", WITHOUT_LOCKS], ids=["with-locks", "without-locks"])
def signed_in(page, service, request):
    """A tab in which somebody has signed in, in a browser with or without locks."""
    page.script = request.param
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source=page.script)
    page.user = service.new_user()
    page.sign_in(page.user)
    return page


def duplicate_that_slept(page, token):
    """A tab as the browser loads it again that was duplicated when the token was that of the session."""
    other = page.another()
    other.cdp("Page.addScriptToEvaluateOnNewDocument", source=page.script)
    other.open("/healthz")
    other.run("sessionStorage.setItem(arguments[0], arguments[1])", TOKEN, token)
    other.open()
    return other


def test_duplicate_that_slept_gets_the_session_from_the_other_tab(signed_in):
    page = signed_in
    token = token_of(page)
    renew(page, 2)
    other = duplicate_that_slept(page, token)
    other.see("Sign out")
    assert token_of(other) not in (token, None)
    for tab in (page, other):
        renew(tab, 1)
    assert alarms(page) == 0


def test_duplicate_that_slept_until_the_other_tab_was_closed_asks_to_sign_in(signed_in):
    page = signed_in
    token = token_of(page)
    renew(page, 2)
    page.driver.get("about:blank")
    other = duplicate_that_slept(page, token)
    other.heading("Sign in")
    assert alarms(page) == 0
    sign_in_here(other, page.user)


def test_tab_that_wakes_after_all_others_asks_to_sign_in_and_goes_on(signed_in):
    page = signed_in
    token = token_of(page)
    other = page.duplicate()
    other.see("Sign out")
    renew(page, 2)
    page.driver.get("about:blank")
    # As if it had heard nothing of all that, and an hour had passed.
    other.run("sessionStorage.setItem(arguments[0], arguments[1]);"
              "const now = Date.now; Date.now = () => now() + 3_600_000", TOKEN, token)
    other.activate("Account")
    other.see("Sign in again")
    assert alarms(page) == 0
    other.fill("Password", PASSWORD)
    other.press(Keys.ENTER)
    other.see_no("Sign in again")
    other.heading("Profile")


def test_session_that_was_ended_in_one_tab_is_not_gone_on_with_in_another(signed_in):
    page = signed_in
    token = token_of(page)
    page.service.stop()
    page.activate("Sign out")
    page.see("The service could not be told")
    page.service.start()
    other = duplicate_that_slept(page, token)
    other.heading("Sign in")


@pytest.mark.parametrize("is_asked", [False, True], ids=["at-once", "asked-to-sign-in-again"])
def test_signing_out_in_a_tab_that_slept_ends_the_session_of_a_closed_tab_too(signed_in, is_asked):
    page = signed_in
    token = token_of(page)
    other = page.duplicate()
    other.see("Sign out")
    renew(page, 2)
    page.driver.get("about:blank")
    # As if it had heard nothing of all that until its own token, but not yet the newest one, has expired.
    other.run("sessionStorage.setItem(arguments[0], arguments[1]);"
              "const text = atob(arguments[1].split('.')[1].replaceAll('-', '+').replaceAll('_', '/'));"
              "const now = JSON.parse(text).exp * 1000 + 1; Date.now = () => now", TOKEN, token)
    if is_asked:
        other.activate("Account")
        other.see("Sign in again")
    other.activate("Sign out")
    other.see("The service could not be told")
    sign_in_here(other, page.service.new_user())
    page.open()
    page.heading("Sign in")
    assert alarms(page) == 0


def test_nothing_of_one_person_is_left_for_the_next(page, service):
    ann, bob = [service.new_user(name=name, role="admin") for name in ("Ann", "Bob")]
    user = service.new_user(name="Former name")
    page.sign_in(ann, "/console/users?search=Former")
    page.activate("Audit log")
    page.see("Former name")
    other = page.duplicate()
    other.see("Sign out")
    other.activate("Sign out")
    page.heading("Sign in")
    page.at("/console")
    service.call("PUT", f"/users/{user.id}", {"name": "Present name"}, service.admin().token)
    sign_in_here(page, bob)
    page.at("/console/files")
    page.activate("Audit log")
    page.see("Present name")
    page.back()
    page.back()
    page.at("/console/files")
    page.see(bob.email)


def test_next_person_is_not_led_to_where_a_session_ended(page, service):
    ann, bob = service.new_user(), service.new_user()
    for number, (account, path) in enumerate([(ann, "/console/files?search=secret"), (bob, "/console/files")]):
        page.sign_in(ann, "/console/files?search=secret")
        page.see("No file matches")
        service.sql(f"UPDATE sessions SET ended_at = now() WHERE user_id = '{ann.id}'")
        page.reload()
        page.heading("Sign in")
        sign_in_here(page, account)
        page.at(path)
        if not number:
            page.activate("Sign out")
            page.heading("Sign in")


def test_answer_that_comes_after_signing_out_is_nobodys(page, service):
    ann, bob = service.new_user(), service.new_user()
    page.sign_in(ann, "/console/account")
    page.see("Last sign-in")
    other = page.duplicate()
    other.see("Sign out")
    page.run("""
        const real = window.fetch;
        window.fetch = async (...given) => {
            const response = await real(...given);
            if (given[1].method !== "PUT") return response;
            const text = await response.text();
            await new Promise(resolve => { window.release = resolve; });
            setTimeout(() => { window.isReleased = true; }, 100);
            return new Response(text, response);
        };""")
    page.fill("Name (optional)", "Late")
    page.press(Keys.ENTER)
    page.until("answer", lambda: page.run("return Boolean(window.release)"))
    other.activate("Sign out")
    other.heading("Sign in")
    page.heading("Sign in")
    page.run("window.release()")
    page.until("end", lambda: page.run("return Boolean(window.isReleased)"))
    page.see_no("Sign out", ann.email, "The changes are saved.")
    sign_in_here(page, bob)
