"""What nobody has to be signed in for: signing in and out, registering, a forgotten password, links in mails."""

import json
import re

import pytest
from selenium.webdriver.common.keys import Keys

from service import PASSWORD, Refused, code

NAME, SECRET, PASTE = "Username or e-mail", "Password", "Paste the link or the code from the message"


def fill_in(page, name, password=PASSWORD):
    """Fills in the form of signing in, and sends it."""
    page.fill(NAME, name)
    page.fill(SECRET, password)
    page.press(Keys.ENTER)


def test_signing_in_and_out(page, service):
    user = service.new_user()
    page.open("/console")
    page.heading("Sign in")
    page.check("sign-in")
    fill_in(page, user.username, "wrong password")
    page.see("Wrong name or password.")
    page.check("sign-in-refused")
    assert page.focused().accessible_name == SECRET, "the focus is where the fault is"
    page.press(user.password, Keys.ENTER)
    page.at("/console/files")
    page.see("Sign out")
    page.reload()
    page.see("Sign out")
    page.activate("Account")
    page.heading("Profile")
    page.activate("Sign out")
    page.heading("Sign in")
    page.back()
    page.at("/console/files")
    page.heading("Sign in")


def test_an_address_works_in_place_of_the_name_and_leads_back_to_where_one_was(page, service):
    user = service.new_user()
    page.open("/console/account/sessions")
    page.heading("Sign in")
    fill_in(page, user.email.upper())
    page.at("/console/account/sessions")


def test_empty_fields_are_named_before_anything_is_sent(page):
    page.open()
    page.activate("Sign in", "button")
    page.see("Fill in this field.")
    assert page.focused().accessible_name == NAME


def test_second_factor(page, service):
    user = service.new_user()
    secret, recovery_codes = service.add_second_factor(user)
    page.open()
    fill_in(page, user.username)
    page.see("authenticator app")
    assert page.focused().accessible_name == "Code"
    page.check("sign-in-code")
    page.press("000000", Keys.ENTER)
    page.see("That code is wrong.")
    page.press(code(secret), Keys.ENTER)
    page.see("Sign out")
    page.activate("Sign out")
    fill_in(page, user.username)
    page.see("authenticator app")
    page.press(recovery_codes[0], Keys.ENTER)
    page.see("Sign out")


def test_registering(page, service):
    page.open()
    page.activate("Create an account")
    page.heading("Create an account")
    page.check("register")
    page.fill("E-mail", "not an address")
    page.fill("Username", "a")
    page.fill(SECRET, "short")
    page.press(Keys.ENTER)
    page.see("Must be at least 3 characters long", "Password must be at least 8 characters long")
    page.check("register-refused")
    taken = service.new_user()
    page.fill("E-mail", "newcomer@example.com")
    page.fill("Username", taken.username)
    page.fill(SECRET, PASSWORD)
    page.press(Keys.ENTER)
    page.see("This username is taken.")
    page.fill("Username", "newcomer")
    page.press(Keys.ENTER)
    page.see("Sign out")
    assert service.sign_in("newcomer@example.com")["user"]["username"] == "newcomer"


def test_an_account_that_is_made_is_not_made_twice(page, service):
    page.open("/console/register")
    page.cdp("Network.enable")
    page.cdp("Network.setBlockedURLs", urls=["*/auth/login"])
    page.fill("E-mail", "once")
    page.fill(SECRET, "short")
    page.press(Keys.ENTER)
    page.see("Enter a whole e-mail address.", "Fill in this field.", "Enter at least 8 characters.")
    assert page.focused().accessible_name == "E-mail", "all faults are said at once, and the focus is at the first"
    page.fill("E-mail", "once@example.com")
    page.fill("Username", "once")
    page.fill(SECRET, PASSWORD)
    page.press(Keys.ENTER)
    page.see("Your account is ready. Sign in.")
    page.cdp("Network.setBlockedURLs", urls=[])
    page.at("/console")
    fill_in(page, "once")
    page.see("Sign out")


def test_another_name_needs_no_code_of_the_former_one(page, service):
    one, other = service.new_user(), service.new_user()
    service.add_second_factor(one)
    page.open()
    fill_in(page, one.username)
    page.see("authenticator app")
    page.fill(NAME, other.username)
    page.see_no("authenticator app")
    page.press(Keys.ENTER)
    page.see("Sign out")


def test_forgotten_password_and_the_link_in_the_mail(page, service):
    user = service.new_user()
    page.open()
    page.activate("Forgot your password?")
    page.heading("Reset your password")
    page.check("forgotten")
    page.fill("E-mail", user.email)
    page.press(Keys.ENTER)
    page.heading("Check your mail")
    page.check("forgotten-sent")
    link = service.mailbox.link(user.email)
    assert link.startswith(f"{service.url}/console/reset#token=")
    page.driver.get(link)
    page.heading("Choose a password")
    page.until("address without the token", lambda: "token" not in page.driver.current_url)
    page.check("reset")
    page.fill("New password", "short")
    page.press(Keys.ENTER)
    page.see("Password must be at least 8 characters long")
    page.fill("New password", "a new password 2")
    page.press(Keys.ENTER)
    page.heading("Your password is set")
    page.check("reset-done")
    page.activate("Sign in")
    fill_in(page, user.username, "a new password 2")
    page.see("Sign out")
    page.activate("Sign out")
    page.see("Sign in")

    page.open("/console/forgotten")  # another page of the same document would keep the fragment
    page.driver.get(link)
    page.heading("Choose a password")
    page.fill("New password", "a new password 3")
    page.press(Keys.ENTER)
    page.heading("This link no longer works")
    page.check("reset-ended")
    page.activate("Send me a new link")
    page.heading("Reset your password")


def test_password_that_is_reset_while_somebody_is_signed_in(page, service):
    """Whoever used the link is told that it worked, and the session of the tab has ended, whosever it was."""
    ann, bob = service.new_user(), service.new_user()
    for one in (ann, bob):
        page.sign_in(ann, "/console/account")
        page.see(ann.email)
        token = page.run("return sessionStorage.getItem('cloakroom.refresh_token')")
        service.call("POST", "/auth/request-password-reset", {"email": one.email})
        page.driver.get(service.mailbox.link(one.email))
        page.heading("Choose a password")
        page.fill("New password", PASSWORD + "!")
        page.press(Keys.ENTER)
        page.heading("Your password is set")
        with pytest.raises(Refused):
            service.call("POST", "/auth/refresh", {"refresh_token": token})
        page.activate("Sign in")
        page.heading("Sign in")
        ann.password = PASSWORD + "!"


def test_link_of_an_invitation(page, service):
    body = {"email": "guest@example.com", "username": "guest", "name": "Guest", "invite": True}
    service.call("POST", "/users", body, service.admin().token)
    page.driver.get(service.mailbox.link("guest@example.com"))
    page.heading("Choose a password")
    page.fill("New password", "a password of mine")
    page.press(Keys.ENTER)
    page.heading("Your password is set")
    assert service.sign_in("guest", "a password of mine")


@pytest.mark.parametrize("fragment", ["", "#token=", "#token=x", "#token=%00", "#token=<b>"])
def test_broken_link(page, fragment):
    page.open("/console/reset" + fragment)
    page.until("page", lambda: re.search("New password|new one", page.text()))
    if "New password" in page.text():
        page.fill("New password", "a new password 2")
        page.press(Keys.ENTER)
    page.see("new one")


# How gateways and programs for mail rewrite the link, of which `{}` is the token.
REWRITTEN = ["?token={}", "?utm_source=mail&token={}", "%23token={}", "%3Ftoken={}", "%2523token%253D{}", "#token%3D{}",
             "/#token={}", "#token={0}#token={0}", "#token=%3C{}%3E", "#token=3D{}", "#token={}&utm_source=mail",
             "#token={}.", "#token={}%3E", "#token={})", "#token={}*", "?token={}.", "#{}"]


def test_a_link_that_was_rewritten_on_its_way(page, service):
    for rewritten in REWRITTEN:
        user = service.new_user()
        token = reset_token(service, user)
        page.open("/console/forgotten")  # another page of the same document would keep the fragment
        page.heading("Reset your password")
        page.driver.get_log("performance")
        page.open("/console/reset" + rewritten.format(token))
        page.heading("Choose a password")
        assert page.run("return location.href") .rstrip("/") == f"{service.url}/console/reset", rewritten
        sent = [event["params"]["request"] for event in events(page, "Network.requestWillBeSent")]
        told = [one for one in sent if token[-20:] in json.dumps(one)]
        assert [one["url"].partition("/console/")[0] for one in told] in ([], [service.url]), "only the page itself"
        page.fill("New password", PASSWORD + "!")
        page.press(Keys.ENTER)
        page.heading("Your password is set")


def reset_token(service, user):
    """The token of a reset link."""
    service.call("POST", "/auth/request-password-reset", {"email": user.email})
    return service.mailbox.link(user.email).partition("#token=")[2]


def events(page, name):
    """The events of the DevTools protocol of this name since the last time."""
    found = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    return [event for event in found if event["method"] == name]


def test_a_token_is_out_of_the_address_before_anything_is_asked(page, service):
    user, other = service.new_user(), service.new_user()
    token = reset_token(service, other)
    page.sign_in(user)
    page.cdp("Network.enable")
    page.cdp("Network.setBlockedURLs", urls=["*/api/v1/*"])
    page.forget_access()
    page.open(f"/console/reset?token={token}")
    page.see("The service cannot be reached.")
    assert page.run("return location.href") == f"{service.url}/console/reset"
    page.cdp("Network.setBlockedURLs", urls=[])
    page.heading("Choose a password")
    page.fill("New password", PASSWORD + "!")
    page.press(Keys.ENTER)
    page.heading("Your password is set")
    page.back()
    page.until("page without the token", lambda: token not in page.run("return location.href"))


def test_a_token_that_the_address_has_lost_is_pasted(page, service):
    link = "{0}/console/reset#token={1}"
    mail = f"Open this link:\n\n{link}\n\nIt works once."
    for pasted in (link, "{1}", f"<{link}>.", "  {1}\n", mail, "{2}\n{3}"):
        user = service.new_user()
        token = reset_token(service, user)
        page.open("/console/forgotten")
        page.open("/console/reset")
        page.heading("This link is incomplete")
        assert page.focused().accessible_name == PASTE
        if pasted == link:
            page.check("reset-incomplete")
            page.activate("Continue")
            page.see("Fill in this field.")
            page.press(f"{service.url}/console/reset")
            page.activate("Continue")
            page.see("There is no code in this.")
            assert page.focused().accessible_name == PASTE
            page.check("reset-incomplete-refused")
            page.fill(PASTE, "")
        halves = [f"{service.url}/console/reset#token={token[:50]}", token[50:]]
        page.cdp("Input.insertText", text=pasted.format(service.url, token, *halves))
        page.activate("Continue")
        page.heading("Choose a password")
        assert page.focused().accessible_name == "New password"
        page.press(PASSWORD + "!", Keys.ENTER)
        page.heading("Your password is set")


def test_forward_from_a_broken_link_leads_to_the_next_page(page):
    page.open("/console/reset#token=")
    page.heading("This link is incomplete")
    page.activate("Send me a new link")
    page.heading("Reset your password")
    page.back()
    page.heading("This link is incomplete")
    page.forward()
    page.heading("Reset your password")


def test_feature_that_is_off(page, start_service):
    page.service = start_service(CLOAKROOM_REGISTRATION="off", CLOAKROOM_SMTP_URL="none")
    page.open("/console")
    page.heading("Sign in")
    page.see_no("Create an account")
    page.open("/console/register")
    page.see("Accounts here are created by administrators")
    page.open("/console/forgotten")
    page.see("This service sends no mail.")


def test_nothing_is_said_to_come_by_mail_where_the_service_sends_none(page, start_service):
    page.service = service = start_service(CLOAKROOM_SMTP_URL="none")
    user = service.new_user()
    service.add_second_factor(user)
    page.sign_in(service.admin(), "/console/account/password")
    page.see("Forgot it? Ask an administrator for a new one.")
    page.activate("Profile")
    page.see("Last sign-in")
    page.see_no("is told", "reset links")
    page.open(f"/console/users/{user.id}#second-factor")
    page.activate("Remove it")
    page.see("All sessions end.")
    page.see_no("by e-mail")


def test_a_page_shows_its_title_and_names_its_modules_before_any_of_them_arrives(page):
    places = "return ['.brand', 'h1'].map(part => document.querySelector(part).getBoundingClientRect().y)"
    for path, heading in (("/console", ""), ("/console/link#x", "A file for you"),
                          ("/console/send#x", "Send files"),
                          ("/console/reset", "Choose a password"), ("/console/register", "Create an account"),
                          ("/console/confirm", "Confirm your e-mail address"),
                          ("/console/forgotten", "Reset your password")):
        page.open("/healthz")
        page.cdp("Emulation.setScriptExecutionDisabled", value=True)
        page.open(path)
        page.see("Cloakroom", heading)
        before = page.run(places)
        page.cdp("Emulation.setScriptExecutionDisabled", value=False)
        page.reload()
        page.until("page that is drawn", lambda: page.run("return document.querySelector('.frame h1')?.textContent"))
        assert page.run(places) == before, path
        loaded, named = page.run("""return [performance.getEntriesByType("resource").map(entry => entry.name),
            [...document.querySelectorAll("link[rel=modulepreload], script[src]")].map(named => named.href ?? named.src)
            ]""")
        assert [name for name in loaded if name.endswith(".js") and name not in named] == [], path


def test_page_that_does_not_exist(page):
    page.open("/console/nothing/here")
    page.heading("Page not found")
    page.see("Cloakroom", "There is no page at this address.")
    page.see_no("menu")
    page.check("not-found")
    page.activate("Go to the start page")
    page.heading("Sign in")


def test_inactive_account(page, service):
    user = service.new_user()
    service.call("PUT", f"/users/{user.id}", {"is_active": False}, service.admin().token)
    page.open()
    fill_in(page, user.username)
    page.see("This account is inactive.")
    with pytest.raises(Refused):
        service.sign_in(user.username)


def test_too_many_attempts(page, start_service):
    page.service = start_service(CLOAKROOM_RATE_LIMIT_AUTH="2")
    page.open()
    for _ in range(3):
        fill_in(page, "nobody", "wrong password")
        page.until("answer", lambda: re.search("Wrong name|Too many", page.text()))
    page.see("Too many attempts to sign in.", " s")
    page.check("sign-in-limited")
