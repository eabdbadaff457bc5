"""E-mail addresses that count only once they are confirmed: registering, the page of the link in the mail, and changing
one's address."""

import re

import pytest
from selenium.webdriver.common.keys import Keys

from links import requests
from service import PASSWORD, Refused, wait_for

REQUIRED = {"CLOAKROOM_EMAIL_CONFIRMATION": "required"}
NAME, SECRET, OWN = "Username or e-mail", "Password", "Password of your account"
REFUSED = "Wrong password, or the link has been used or has expired."


@pytest.fixture(scope="module")
def service(start_service):
    """The service of this file, which asks for confirmations."""
    return start_service(**REQUIRED)


def register(service, username, email=None):
    """Begins a registration. Returns its address."""
    email = email or f"{username}@example.com"
    service.call("POST", "/auth/register", {"username": username, "email": email, "password": PASSWORD})
    return email


def is_missing(service, username):
    """Whether there is no such account."""
    with pytest.raises(Refused) as refused:
        service.sign_in(username)
    return "BAD_CREDENTIALS" in str(refused.value)


def confirm_here(page, link, password=PASSWORD):
    """Opens a link, and sends the password by the form."""
    page.open("/console/forgotten")  # another page of the same document would keep the fragment
    page.driver.get(link)
    page.fill(OWN, password)
    page.press(Keys.ENTER)


def register_here(page, username, email):
    """Registers by the form, and returns what the page says then, without the address."""
    page.open("/console/register")
    page.fill("E-mail", email)
    page.fill("Username", username)
    page.fill(SECRET, PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Check your mail")
    page.see(email)
    return page.text().replace(email, "")


def test_from_registering_to_signing_in(page, service):
    register_here(page, "newcomer", "newcomer@example.com")
    assert page.focused().text == "Check your mail"
    page.see("48 hours")
    page.check("register-waits")
    link = service.mailbox.link("newcomer@example.com")
    assert link.startswith(f"{service.url}/console/confirm#token=")
    requests(page)
    page.driver.get(link)
    page.heading("Confirm your e-mail address")
    page.until("address without the token", lambda: "token" not in page.driver.current_url)
    page.check("confirm")
    assert not requests(page), "nothing is sent until a person asks for it"
    assert is_missing(service, "newcomer")
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Your e-mail address is confirmed")
    assert page.focused().text == "Your e-mail address is confirmed"
    page.check("confirm-done")
    page.activate("Sign in", "link")
    page.heading("Sign in")
    page.at("/console")
    page.fill(NAME, "newcomer@example.com")
    page.fill(SECRET, PASSWORD)
    page.press(Keys.ENTER)
    page.see("Sign out")


def test_registering_with_an_address_that_is_taken_looks_the_same(page, service):
    owner = service.new_user(email=f"{'owner' * 12}@example.com")
    free = register_here(page, "somebody", "somebody@example.com")
    assert register_here(page, "stranger", owner.email) == free
    page.check("register-waits-long")
    def to_owner():
        return [one for one in service.mailbox.messages if owner.email in str(one["To"])]
    mail, = wait_for("mail to the owner", to_owner)
    text = mail.get_body(("plain",)).get_content()
    assert "already" in text and "token=" not in text
    assert is_missing(service, "stranger")
    assert service.sign_in(owner.email)["user"]["id"] == owner.id


def test_signing_in_too_early(page, service):
    email = register(service, "early")
    page.open("/console")
    page.see("Just registered? Open the link in the mail first.")
    page.fill(NAME, email)
    page.fill(SECRET, PASSWORD)
    page.press(Keys.ENTER)
    page.see("Wrong name or password.")
    confirm_here(page, service.mailbox.link(email))
    page.heading("Your e-mail address is confirmed")
    assert service.sign_in("early")


def test_refused_link(page, service):
    email = register(service, "refused")
    confirm_here(page, f"{service.url}/console/confirm#token=x")
    page.see(REFUSED, "not that of your mailbox")
    assert page.focused().accessible_name == OWN
    page.check("confirm-refused")
    link = service.mailbox.link(email)
    confirm_here(page, link, "a wrong password")
    page.see(REFUSED)
    assert is_missing(service, "refused")
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Your e-mail address is confirmed")
    confirm_here(page, link)
    page.see(REFUSED)


@pytest.mark.parametrize("fragment", ["", "#token=", "#token=%00", "#token=<b>", "#token=<img src=x onerror=alert(1)>"])
def test_broken_link(page, fragment):
    page.open("/console/confirm" + fragment)
    page.until("page", lambda: re.search(f"{OWN}|Copy the whole link", page.text()))
    if OWN in page.text():
        page.fill(OWN, PASSWORD)
        page.press(Keys.ENTER)
        page.see(REFUSED)
    else:
        page.check("confirm-incomplete")
    assert not page.driver.find_elements("css selector", "main img, main b")


def test_a_link_that_was_rewritten_on_its_way_or_is_pasted(page, service):
    for number, rewritten in enumerate(["?token={}", "%23token={}", "#token={}.", ""]):
        link = service.mailbox.link(register(service, f"rewritten{number}"))
        token = link.partition("#token=")[2]
        page.open("/console/forgotten")
        page.open("/console/confirm" + rewritten.format(token))
        if not rewritten:
            page.heading("This link is incomplete")
            page.press("x")
            page.activate("Continue")
            page.see("There is no code in this.")
            page.fill("Paste the link or the code from the message", f"<{link}>")
            page.activate("Continue")
        page.heading("Confirm your e-mail address")
        assert page.run("return location.href") == f"{service.url}/console/confirm"
        assert page.focused().accessible_name == OWN
        page.press(PASSWORD, Keys.ENTER)
        page.heading("Your e-mail address is confirmed")
        assert service.sign_in(f"rewritten{number}")


def test_a_username_that_was_taken_meanwhile_is_replaced(page, service):
    first, second = register(service, "wanted"), register(service, "wanted", "second@example.com")
    confirm_here(page, service.mailbox.link(first))
    page.heading("Your e-mail address is confirmed")
    confirm_here(page, service.mailbox.link(second))
    page.see("This username is taken.")
    page.until("focus on the field", lambda: page.focused().accessible_name.startswith("Username"))
    page.check("confirm-username")
    page.press("Wanted_2", Keys.ENTER)
    page.heading("Your e-mail address is confirmed")
    assert service.sign_in(second)["user"]["username"] == "Wanted_2"


def test_another_username_at_once(page, service):
    email = register(service, "at_once")
    page.driver.get(service.mailbox.link(email))
    page.heading("Confirm your e-mail address")
    page.activate("Want another username?")
    page.until("focus on the field", lambda: page.focused().accessible_name.startswith("Username"))
    page.press("another_one")
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Your e-mail address is confirmed")
    assert service.sign_in(email)["user"]["username"] == "another_one"


def test_a_mailbox_that_gets_no_more_mails_is_said_with_the_wait(page, service):
    for number in range(3):
        register(service, f"hasty{number}", "hasty@example.com")
    page.open("/console/register")
    page.fill("E-mail", "hasty@example.com")
    page.fill("Username", "hasty")
    page.fill(SECRET, PASSWORD)
    page.press(Keys.ENTER)
    page.see("Too many requests. Try again in")
    page.check("register-limited")


def test_changing_the_address(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account")
    page.see("A new address counts once you have confirmed it.")
    page.fill("Name (optional)", "Ann")
    page.press(Keys.ENTER)
    page.see("Your changes have been saved.")
    page.fill("E-mail", f"new.{user.email}")
    page.press(Keys.ENTER)
    page.see(f"new.{user.email} counts once it is confirmed")
    field, = page.named("E-mail")
    assert field.get_attribute("value") == user.email
    assert service.call("GET", "/users/me", token=user.token)["email"] == user.email
    page.check("account-profile-asked")
    confirm_here(page, service.mailbox.link(f"new.{user.email}"))
    page.heading("Your e-mail address is confirmed")
    page.activate("Go to your profile")
    page.heading("Profile")
    page.at("/console/account")
    page.until("new address", lambda: page.tab_to("E-mail").get_attribute("value") == f"new.{user.email}")


@pytest.mark.long
def test_only_another_address_needs_the_password_where_the_service_asks_for_it(page, start_service):
    page.service = service = start_service(**REQUIRED, CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD="true")
    user = service.new_user()
    page.sign_in(user, "/console/account")
    page.fill("E-mail", f"new.{user.email}")
    page.press(Keys.ENTER)
    page.until("focus on the password", lambda: page.focused().accessible_name == "Current password")
    page.press(PASSWORD, Keys.ENTER)
    page.see(f"new.{user.email} counts once it is confirmed")
    page.see_no("Needed here to change")
    # The link opens in a tab of its own, which does not know yet that somebody is signed in.
    other = page.another()
    other.driver.get(service.mailbox.link(f"new.{user.email}"))
    other.fill(OWN, PASSWORD)
    other.press(Keys.ENTER)
    other.activate("Sign in", "link")
    other.at("/console/files")


@pytest.mark.long
def test_where_addresses_need_no_confirmation(page, start_service):
    page.service = service = start_service()
    user = service.new_user()
    page.open("/console/confirm#token=x")
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.see("This service does not offer that.")
    page.open("/console")
    page.see_no("Just registered?")
    page.sign_in(user, "/console/account")
    page.see("If you change it, the old address is told")
    page.fill("E-mail", f"new.{user.email}")
    page.press(Keys.ENTER)
    page.see("Your changes have been saved.")
    assert service.call("GET", "/users/me", token=user.token)["email"] == f"new.{user.email}"
