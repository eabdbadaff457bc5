"""E-mail addresses that count only once they are confirmed: registering, the page of the link in the mail, getting
another mail, changing one's address, and what administrators see and do of it."""

import re

import pytest
from selenium.webdriver.common.keys import Keys

from administration import account_id, user_of
from links import requests
from service import PASSWORD, Refused, wait_for

REQUIRED = {"CLOAKROOM_EMAIL_CONFIRMATION": "required"}
NAME, SECRET, OWN = "Username or e-mail", "Password", "Password of your account"
REFUSED, AGAIN = "Wrong password, or the link has been used or has expired.", "Send the mail again"


@pytest.fixture(scope="module")
def service(start_service):
    """The service of this file, which asks for confirmations."""
    return start_service(**REQUIRED)


def register(service, username, email=None):
    """Registers an account, which waits then. Returns its address."""
    email = email or f"{username}@example.com"
    service.call("POST", "/auth/register", {"username": username, "email": email, "password": PASSWORD})
    return email


def waits(service, username):
    """Whether the account still waits, so that nobody can sign in to it."""
    with pytest.raises(Refused) as refused:
        service.sign_in(username)
    return "EMAIL_NOT_CONFIRMED" in str(refused.value)


def mailed_link(service, email, number=1):
    """The link in the mail with that number to an address, once nothing is left to be sent: while a mail is being sent,
    the service sends no other to the same account."""
    link = service.mailbox.link(email, number)
    wait_for("end of sending", lambda: service.sql("SELECT count(*) FROM outbox") == ["0"])
    return link


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


def sign_in_here(page, name):
    """Signs in by the form, which is refused because the account waits."""
    page.open("/console")
    page.fill(NAME, name)
    page.fill(SECRET, PASSWORD)
    page.press(Keys.ENTER)
    page.see("Confirm your e-mail address first")


def test_from_registering_to_signing_in(page, service):
    register_here(page, "newcomer", "newcomer@example.com")
    assert page.focused().text == "Check your mail"
    page.see("48 hours")
    page.check("register-waits")
    link = mailed_link(service, "newcomer@example.com")
    assert link.startswith(f"{service.url}/console/confirm#token=")
    requests(page)
    page.driver.get(link)
    page.heading("Confirm your e-mail address")
    page.until("address without the token", lambda: "token" not in page.driver.current_url)
    page.check("confirm")
    assert not requests(page), "nothing is sent until a person asks for it"
    assert waits(service, "newcomer")
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
    assert waits(service, "stranger")
    assert service.sign_in(owner.email)["user"]["id"] == owner.id


def test_another_mail_after_registering(page, service):
    email = "again@example.com"
    register_here(page, "again", email)
    mailed_link(service, email)
    page.activate(AGAIN)
    page.see(f"If {email} still waits to be confirmed, another mail is on its way.")
    page.check("register-sent-again")
    page.driver.get(mailed_link(service, email, 2))
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Your e-mail address is confirmed")
    assert service.sign_in("again")


def test_signing_in_too_early(page, service):
    email = register(service, "early")
    mailed_link(service, email)
    sign_in_here(page, email.upper())
    page.see(f"It comes in a mail to {email.upper()}.")
    page.activate(AGAIN)
    page.see("another mail is on its way")
    mailed_link(service, email, 2)
    # Where a username was typed, the page does not know the address.
    sign_in_here(page, "early")
    page.activate(AGAIN)
    page.see("Fill in this field.")
    page.check("sign-in-waits")
    page.fill("E-mail", email)
    page.press(Keys.ENTER)
    page.see("another mail is on its way")
    mailed_link(service, email, 3)
    page.fill(NAME, "somebody_else")
    page.see_no(AGAIN)


def test_refused_link_and_the_way_to_another_one(page, service):
    email = register(service, "refused")
    mailed_link(service, email)
    page.open("/console/confirm#token=x")
    page.fill(OWN, PASSWORD)
    page.see_no(AGAIN)
    page.press(Keys.ENTER)
    page.see(REFUSED, "not that of your mailbox")
    assert page.focused().accessible_name == OWN
    page.check("confirm-refused")
    page.fill("E-mail", email)
    page.press(Keys.ENTER)
    page.see(f"If {email} still waits to be confirmed, another mail is on its way.")
    link = mailed_link(service, email, 2)
    page.open("/console/forgotten")  # another page of the same document would keep the fragment
    page.driver.get(link)
    page.fill(OWN, "a wrong password")
    page.press(Keys.ENTER)
    page.see(REFUSED)
    assert waits(service, "refused")
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Your e-mail address is confirmed")
    page.open("/console/forgotten")
    page.driver.get(link)
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.see(REFUSED)


@pytest.mark.parametrize("fragment", ["", "#token=", "#token=%00", "#token=<b>"])
def test_broken_link(page, fragment):
    page.open("/console/confirm" + fragment)
    page.until("page", lambda: re.search(f"{OWN}|Open the whole link", page.text()))
    if OWN in page.text():
        page.fill(OWN, PASSWORD)
        page.press(Keys.ENTER)
        page.see(REFUSED)
    else:
        page.check("confirm-incomplete")
    page.tab_to(AGAIN)


def test_of_several_accounts_with_one_password_the_username_names_one(page, service):
    email = register(service, "first_of_two")
    register(service, "second_of_two", email)
    page.driver.get(mailed_link(service, email, 2))
    page.heading("Confirm your e-mail address")
    page.activate("Registered more than once?")
    page.until("focus on the field", lambda: page.focused().accessible_name.startswith("Username"))
    page.check("confirm-username")
    page.press("First_Of_Two")
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Your e-mail address is confirmed")
    assert service.sign_in(email)["user"]["username"] == "first_of_two"


def test_mails_are_limited_and_the_wait_is_counted_down(page, start_service):
    page.service = service = start_service(**REQUIRED, CLOAKROOM_RATE_LIMIT_AUTH="2")
    register_here(page, "hasty", "hasty@example.com")
    for _ in range(2):
        page.activate(AGAIN)
        page.until("answer", lambda: "another mail is on its way" in page.text() and page.named(AGAIN))
    page.activate(AGAIN)
    page.see("Too many requests. Try again in")
    page.see_no("another mail is on its way")
    page.check("register-limited")
    assert mailed_link(service, "hasty@example.com")


def test_changing_the_address_and_taking_it_back(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account")
    page.see("A new address counts once you have confirmed it.")
    page.see_no("Take it back")
    page.fill("Name (optional)", "Ann")
    page.press(Keys.ENTER)
    page.see("Your changes have been saved.")
    page.fill("E-mail", f"new.{user.email}")
    page.press(Keys.ENTER)
    page.see(f"new.{user.email} counts once it is confirmed", f"Until then, your address is {user.email}.")
    field, = page.named("E-mail")
    assert field.get_attribute("value") == user.email
    profile = service.call("GET", "/users/me", token=user.token)
    assert (profile["email"], profile["pending_email"]) == (user.email, f"new.{user.email}")
    page.check("account-profile-waiting")
    mailed_link(service, f"new.{user.email}")
    page.reload()
    page.activate(AGAIN)
    page.see(f"Another mail to new.{user.email} is on its way.")
    mailed_link(service, f"new.{user.email}", 2)
    page.activate("Take it back")
    page.see(f"Your address stays {user.email}.")
    page.see_no("Until then, your address is")
    assert page.focused().accessible_name == "E-mail"
    assert service.call("GET", "/users/me", token=user.token)["pending_email"] is None

    page.fill("E-mail", f"other.{user.email}")
    page.press(Keys.ENTER)
    page.driver.get(mailed_link(service, f"other.{user.email}"))
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Your e-mail address is confirmed")
    page.activate("Go to your profile")
    page.heading("Profile")
    page.at("/console/account")
    page.until("new address", lambda: page.tab_to("E-mail").get_attribute("value") == f"other.{user.email}")
    page.see_no("Take it back")


@pytest.mark.long
def test_only_another_address_needs_the_password_where_the_service_asks_for_it(page, start_service):
    page.service = service = start_service(**REQUIRED, CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD="true")
    user = service.new_user()
    page.sign_in(user, "/console/account")
    page.fill("E-mail", f"new.{user.email}")
    page.press(Keys.ENTER)
    page.until("focus on the password", lambda: page.focused().accessible_name == "Current password")
    page.press(PASSWORD, Keys.ENTER)
    page.see("Until then, your address is")
    page.see_no("Needed here to change")
    page.activate("Take it back")
    page.see("Your address stays")
    assert service.call("GET", "/users/me", token=user.token)["pending_email"] is None
    page.fill("E-mail", f"other.{user.email}")
    page.press(Keys.ENTER)
    page.until("focus on the password", lambda: page.focused().accessible_name == "Current password")
    page.press(PASSWORD, Keys.ENTER)
    # The link opens in a tab of its own, which does not know yet that somebody is signed in.
    other = page.another()
    other.driver.get(mailed_link(service, f"other.{user.email}"))
    other.fill(OWN, PASSWORD)
    other.press(Keys.ENTER)
    other.activate("Sign in", "link")
    other.at("/console/files")


def test_administrators_see_what_waits_and_confirm_it_by_hand(page, service):
    email = register(service, "by_hand")
    mover = service.new_user(name="Mover")
    service.call("PUT", "/users/me", {"email": f"new.{mover.email}"}, mover.token)
    page.sign_in(service.admin(), "/console/users?search=by_hand")
    page.until("account that waits", lambda: any("Not confirmed" in row for row in page.rows(email)))
    page.open(f"/console/users?search={mover.username}")
    page.until("pending address", lambda: page.rows(f"To be confirmed: new.{mover.email}"))
    assert not page.rows("Not confirmed")
    page.check("users-waiting")
    page.activate("Mover", "link")
    page.see(f"The address changes from {mover.email} to new.{mover.email}")
    page.activate("Confirm by hand")
    page.see(f"Do this only if you know that new.{mover.email}")
    page.activate("Confirm by hand")
    page.see("The address is confirmed.")
    page.see_no("E-mail confirmation")
    assert page.tab_to("E-mail").get_attribute("value") == f"new.{mover.email}"
    assert user_of(service, mover)["email"] == f"new.{mover.email}"

    page.open(f"/console/users/{account_id(service, email)}")
    page.heading("by_hand")
    page.see("Not confirmed", f"until {email} is confirmed")
    page.see_no("Link to choose a password")
    page.check("user-waiting")
    page.activate("Confirm by hand")
    page.see("Confirm the address by hand?")
    page.check("user-confirm")
    page.press(Keys.ESCAPE)
    page.see_no("Confirm the address by hand?")
    assert waits(service, "by_hand")
    page.activate("Confirm by hand")
    page.see("Confirm the address by hand?")
    page.activate("Confirm by hand")
    page.see("The address is confirmed.", "Link to choose a password")
    page.see_no("Not confirmed")
    assert service.sign_in("by_hand")


def test_an_address_that_is_taken_cannot_be_confirmed_by_hand(page, service):
    owner = service.new_user()
    register(service, "pretender", owner.email)
    waiting, = [user for user in service.call("GET", "/users?search=pretender", token=service.admin().token)["users"]]
    page.sign_in(service.admin(), f"/console/users/{waiting['id']}")
    page.activate("Confirm by hand")
    page.see("Confirm the address by hand?")
    page.activate("Confirm by hand")
    page.see("There is already an account with this e-mail address.")
    page.press(Keys.ESCAPE)
    assert waits(service, "pretender")


@pytest.mark.long
def test_where_addresses_need_no_confirmation(page, start_service):
    page.service = service = start_service()
    user = service.new_user()
    page.open("/console/confirm#token=x")
    page.fill(OWN, PASSWORD)
    page.press(Keys.ENTER)
    page.see("This service does not offer that.")
    page.sign_in(user, "/console/account")
    page.see("If you change it, the old address is told")
    page.fill("E-mail", f"new.{user.email}")
    page.press(Keys.ENTER)
    page.see("Your changes have been saved.")
    assert service.call("GET", "/users/me", token=user.token)["email"] == f"new.{user.email}"
