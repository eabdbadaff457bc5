"""What tabs of one browser, and people who use one tab after the other, leave each other."""

import re
import time

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from service import PASSWORD, code

TOKEN = "cloakroom.refresh_token"
# How often a page has asked other tabs for a session is counted.
COUNT_QUESTIONS = """
    window.questions = 0;
    const post = BroadcastChannel.prototype.postMessage;
    BroadcastChannel.prototype.postMessage = function (data) {
        if (data.isAsked) window.questions += 1;
        post.call(this, data);
    };"""
# Without encryption browsers offer no locks, except for addresses of their own host.
WITHOUT_LOCKS = "Object.defineProperty(Navigator.prototype, 'locks', { value: undefined })"


def renew(page, times):
    """Renews the tokens of a tab so often, each time later than a lost answer is forgiven."""
    for _ in range(times):
        time.sleep(1.5)
        page.reload(is_late=True)
        page.see("Sign out")
    time.sleep(1.5)


def token_of(page):
    """The refresh token that a tab keeps."""
    return page.run("return sessionStorage.getItem(arguments[0])", TOKEN)


def alarms(page):
    """How many sessions of the tab's user were ended because a token was used twice, as by a thief."""
    return int(page.service.sql("SELECT count(*) FROM audit_events WHERE action = 'auth.refresh_reuse' "
                                f"AND actor_id = '{page.user.id}'")[0])


def refreshes(service):
    """How many refreshes the service has been asked for."""
    return (service.directory / "service.log").read_text(encoding="utf-8").count(" POST /api/v1/auth/refresh ")


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


def another(page, path="/console"):
    """A tab of the same browser that is opened at this path, as by a bookmark."""
    other = page.another()
    other.cdp("Page.addScriptToEvaluateOnNewDocument", source=page.script)
    other.open(path)
    return other


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
    other.sign_in_here(page.user)


def test_tab_that_wakes_after_all_others_asks_to_sign_in_and_goes_on(signed_in):
    page = signed_in
    token = token_of(page)
    renew(page, 2)
    other = page.duplicate()
    other.see("Sign out")
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
    page.see("The service could not be reached")
    page.service.start()
    other = duplicate_that_slept(page, token)
    other.heading("Sign in")


@pytest.mark.parametrize("is_asked", [False, True], ids=["at-once", "asked-to-sign-in-again"])
def test_signing_out_in_a_tab_that_slept_ends_the_session_of_a_closed_tab_too(signed_in, is_asked):
    page = signed_in
    token = token_of(page)
    renew(page, 2)
    other = page.duplicate()
    other.see("Sign out")
    page.driver.get("about:blank")
    # As if it had heard nothing of all that until its own token, but not yet the newest one, has expired.
    other.run("sessionStorage.setItem(arguments[0], arguments[1]);"
              "const text = atob(arguments[1].split('.')[1].replaceAll('-', '+').replaceAll('_', '/'));"
              "const now = JSON.parse(text).exp * 1000 + 1; Date.now = () => now", TOKEN, token)
    if is_asked:
        other.activate("Account")
        other.see("Sign in again")
    other.activate("Sign out")
    other.see("The service could not be reached")
    stranger = page.service.new_user()
    other.sign_in_here(stranger)
    page.open()
    page.see(stranger.email)
    page.see_no(page.user.email)
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
    page.sign_in_here(bob)
    page.at("/console/files")
    page.activate("Audit log")
    page.see("Present name")
    page.back()
    page.back()
    page.at("/console/files")
    page.see(bob.email)


def test_back_and_forward_show_the_page_of_the_address_after_signing_out(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account/tokens")
    page.heading("Access tokens")
    page.activate("Files")
    page.heading("Files")
    page.activate("Sign out")
    page.heading("Sign in")
    page.back()
    page.at("/console/account/tokens")
    page.forward()
    page.at("/console")
    page.sign_in_here(user)
    page.heading("Files")
    page.back()
    page.at("/console/account/tokens")
    page.heading("Access tokens")


def test_next_person_is_not_led_to_where_a_session_ended(page, service):
    ann, bob = service.new_user(), service.new_user()
    for number, (account, path) in enumerate([(ann, "/console/files?search=secret"), (bob, "/console/files")]):
        page.sign_in(ann, "/console/files?search=secret")
        page.see("No file matches")
        service.sql(f"UPDATE sessions SET ended_at = now() WHERE user_id = '{ann.id}'")
        page.reload(is_late=True)
        page.heading("Sign in")
        page.sign_in_here(account)
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
    page.see_no("Sign out", ann.email, "Your changes have been saved.")
    page.sign_in_here(bob)


def test_a_new_tab_has_the_session_of_an_open_one_which_ends_in_all(signed_in):
    page, before = signed_in, refreshes(signed_in.service)
    other = another(page, "/console/account/sessions")
    other.see("This session", page.user.email)
    other.at("/console/account/sessions")
    assert len(other.rows("This session")) == 1 and len(other.rows()) == 2, "no session is opened for it"
    third = another(page)
    third.see("Sign out")
    assert refreshes(page.service) == before
    renew(other, 1)
    renew(third, 1)
    third.activate("Sign out")
    for tab in (page, other, third):
        tab.heading("Sign in")
    assert alarms(page) == 0


def test_one_tab_renews_for_all(signed_in):
    page, before = signed_in, refreshes(signed_in.service)
    other = another(page)
    for tab in (page, other):
        tab.see("Sign out")
        tab.run("const now = Date.now; Date.now = () => now() + Number(localStorage.getItem('test.later') ?? 0)")
    # As if the access token had expired, for both tabs at once: each may send a request of its own at any moment.
    page.run("localStorage.setItem('test.later', 3_600_000)")
    other.until("later", lambda: other.run("return localStorage.getItem('test.later')"))
    for tab in (page, other):
        tab.run("document.querySelector('a[href=\"/console/account\"]').click()")
    for tab in (page, other):
        tab.see("Last sign-in")
    assert refreshes(page.service) - before in ([1, 2] if page.script else [1]), "only locks make the other one wait"
    before = refreshes(page.service)
    other.reload(is_late=True)
    other.see("Sign out")
    assert refreshes(page.service) - before == int(bool(page.script))
    assert alarms(page) == 0


def test_a_link_that_is_opened_in_another_tab(page, service):
    user = service.new_user()
    page.sign_in(user)
    click = ActionChains(page.driver).key_down(Keys.CONTROL).click(page.tab_to("Account")).key_up(Keys.CONTROL)
    other = page.opened_by(click.perform)
    other.heading("Profile")
    other.see(user.email)


def test_a_second_factor_is_asked_for_once_where_the_session_is_kept(page, service):
    user = service.new_user()
    secret, _ = service.add_second_factor(user)
    page.open()
    page.sign_in_here(user, code(secret), keep=True)
    page.driver.get("about:blank")
    other = page.another()
    other.open()
    other.see("Sign out", user.email)


def test_no_page_waits_for_other_tabs_when_there_are_none(page, service):
    page.script = COUNT_QUESTIONS
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source=page.script)
    page.sign_in(service.new_user())
    for _ in range(5):
        page.reload(is_late=True)
        page.see("Sign out")
        assert page.run("return questions") == 0
    page.driver.get("about:blank")
    other = another(page)
    other.heading("Sign in")
    assert other.run("return [questions, Object.keys(sessionStorage)]") == [0, []]


def test_a_new_tab_of_two_people_is_that_of_who_was_there_last(page, service):
    ann, bob = service.new_user(name="Ann"), service.new_user(name="Bob")
    page.script = ""
    other = another(page)
    other.heading("Sign in")
    page.sign_in(ann)
    other.sign_in_here(bob)
    third = another(page)
    third.see(bob.email)
    page.cdp("Page.bringToFront")
    page.until("focus", lambda: page.run("return document.hasFocus()"))
    fourth = another(page)
    fourth.see(ann.email)
    fourth.activate("Sign out")
    page.heading("Sign in")
    third.reload(is_late=True)
    third.see(bob.email)
    fifth = another(page)
    fifth.see(bob.email)


def test_a_session_that_is_kept_goes_on_after_all_tabs_were_closed(signed_in):
    page = signed_in
    page.activate("Sign out")
    page.heading("Sign in")
    page.sign_in_here(page.user, keep=True)
    token = token_of(page)
    renew(page, 1)
    page.driver.get("about:blank")
    other = another(page, "/console/account")
    other.heading("Profile")
    renew(other, 1)
    slept = duplicate_that_slept(page, token)
    slept.see("Sign out")
    assert alarms(page) == 0
    slept.activate("Sign out")
    other.heading("Sign in")
    assert other.run("return [localStorage.getItem(arguments[0]), sessionStorage.length]", TOKEN) == [None, 0]
    another(page).heading("Sign in")


def test_a_session_that_is_kept_is_ended_elsewhere(page, service):
    user = service.new_user()
    page.open()
    page.sign_in_here(user, keep=True)
    page.see("No files yet")
    service.sql(f"UPDATE sessions SET ended_at = now() WHERE user_id = '{user.id}'")
    page.activate("Account")
    page.see("Sign in again")
    assert page.tab_to("Keep me signed in on this device").is_selected()
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see_no("Sign in again")
    page.heading("Profile")
    page.driver.get("about:blank")
    page.open()
    page.see("Sign out")
    service.sql(f"UPDATE sessions SET ended_at = now() WHERE user_id = '{user.id}'")
    page.forget_access()
    page.driver.get("about:blank")
    page.open()
    page.heading("Sign in")
    assert page.run("return localStorage.getItem(arguments[0])", TOKEN) is None


def test_who_signs_in_beside_a_session_that_is_kept_is_not_taken_for_its_owner(page, service):
    ann, bob = service.new_user(), service.new_user()
    page.script = ""
    other = another(page)
    other.heading("Sign in")
    page.open()
    page.sign_in_here(ann, keep=True)
    other.sign_in_here(bob)
    third = another(page)
    third.see(bob.email)
    third.activate("Sign out")
    other.heading("Sign in")
    page.reload(is_late=True)
    page.see(ann.email)
    page.driver.get("about:blank")
    third.reload(is_late=True)
    third.see(ann.email)


def test_signing_out_ends_other_sessions_of_the_same_person_in_this_browser(page, service):
    user, bob = service.new_user(), service.new_user()
    page.script = ""
    tabs = [page, another(page), another(page), another(page)]
    for tab in tabs[1:]:
        tab.heading("Sign in")
    page.open()
    for tab, account in zip(tabs, [user, user, user, bob]):
        tab.sign_in_here(account, keep=tab is page)
        tab.see("Sign out")
    tabs[1].activate("Sign out")
    for tab in tabs[:3]:
        tab.heading("Sign in")
    live = f"SELECT count(*) FROM sessions WHERE user_id = '{user.id}' AND ended_at IS NULL"
    page.until("end of the sessions", lambda: service.sql(live)[0] == "1")  # the fixture has one of its own
    assert page.run("return localStorage.getItem(arguments[0])", TOKEN) is None
    tabs[3].reload(is_late=True)
    tabs[3].see(bob.email)


def test_a_session_that_comes_too_late_is_not_that_of_the_sign_in_page(page, service):
    page.script = ""
    page.sign_in(service.new_user())
    # As if the tab was busy for long.
    page.run("const post = BroadcastChannel.prototype.postMessage; BroadcastChannel.prototype.postMessage ="
             "function (data) { if (!data.answer || data.from) post.call(this, data); }")
    other = another(page)
    other.heading("Sign in")
    other.run("new BroadcastChannel('cloakroom.session').onmessage = () => { window.isTold = true; }")
    page.run("const now = Date.now; Date.now = () => now() + 3_600_000")
    page.run("document.querySelector('a[href=\"/console/account\"]').click()")
    page.see("Last sign-in")
    other.until("news", lambda: other.run("return window.isTold"))
    other.see_no("Sign out")
    assert other.run("return sessionStorage.length") == 0


def test_old_news_do_not_replace_the_token_that_is_kept(page, service):
    user = service.new_user()
    page.open("/console/account")
    page.sign_in_here(user, keep=True)
    page.see("Last sign-in")
    tokens = [token_of(page)]
    for _ in range(2):
        renew(page, 1)
        tokens.append(token_of(page))
    # As if this tab had slept, and heard only now how the first token was replaced.
    page.run("sessionStorage.setItem(arguments[0], arguments[1][0]);"
             "const text = atob(arguments[1][0].split('.')[1].replaceAll('-', '+').replaceAll('_', '/'));"
             "const session = JSON.parse(text).sid;"
             "new BroadcastChannel('cloakroom.session').postMessage({ session, from: arguments[1][0],"
             "answer: { refresh_token: arguments[1][1], access_token: 'old', expires_in: 600,"
             "user: arguments[2] } })", TOKEN, tokens, service.call("GET", "/users/me", token=user.token))
    page.until("news", lambda: token_of(page) == tokens[1])
    assert page.run("return localStorage.getItem(arguments[0])", TOKEN) == tokens[2]


def test_a_tab_that_hears_nothing_ends_as_soon_as_somebody_looks_at_it(page, service):
    user = service.new_user()
    page.sign_in(user)
    page.script = "Object.defineProperty(BroadcastChannel.prototype, 'onmessage', { set() {} })"
    other = another(page)
    other.heading("Sign in")
    other.sign_in_here(user)
    # As if it had the session of the other tab.
    other.run("sessionStorage.setItem(arguments[0], arguments[1])", TOKEN, token_of(page))
    other.reload(is_late=True)
    other.see("Sign out")
    page.activate("Sign out")
    page.heading("Sign in")
    other.heading("Sign in")
    other.see_no(user.email)


def test_a_link_of_a_mail_leaves_the_sessions_of_other_tabs_alone(page, service):
    ann, bob = service.new_user(), service.new_user()
    page.sign_in(ann)
    service.call("POST", "/auth/request-password-reset", {"email": bob.email})
    other = page.another()
    other.driver.get(service.mailbox.link(bob.email))
    other.heading("Choose a password")
    other.see_no(ann.email)
    other.fill("New password", PASSWORD + "!")
    other.press(Keys.ENTER)
    other.heading("Your password is set")
    other.activate("Sign in")
    other.heading("Sign in")
    page.reload(is_late=True)
    page.see(ann.email)


def test_loading_a_page_often_is_answered_by_another_tab_or_waits_by_itself(page, start_service):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_AUTH="5")
    user = service.new_user()
    page.script = ""
    page.sign_in(user, "/console/account")
    page.see("Last sign-in")
    other = another(page)
    for _ in range(7):
        other.reload(is_late=True)
        other.see("Sign out")
    assert refreshes(service) == 0
    other.driver.get("about:blank")
    # A token comes back every twelve seconds.
    for _ in range(60):
        page.reload(is_late=True)
        title = page.until("answer", lambda: re.match("Profile|One moment", page.run("return document.title")))
        if title.group() == "One moment":
            break
    else:
        pytest.fail("no limit")
    page.see("goes on by itself in")
    assert not page.named("Try again") and not page.run("return document.querySelectorAll('.error-box').length")
    page.check("start-limited")
    page.see("Last sign-in")
    page.at("/console/account")
