"""The pages of one's own account: profile, password and leaving. Those of the second factor, and of sessions and access
tokens, have files of their own."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from service import PASSWORD, Refused

CURRENT, WRONG = "Current password", "That is not your current password."
MARKUP, BIDI, ARABIC = "<b>bold</b><script>alert(1)</script>", "\u202egnp.exe", "محمد بن عبد الله"


def test_one_gets_from_each_page_of_the_account_to_the_others(page, service):
    page.sign_in(service.new_user(), "/console/account")
    page.heading("Profile")
    for link, heading in (("Password", "Password"), ("Second factor", "Second factor"), ("Sessions", "Sessions"),
                          ("Access tokens", "Access tokens"), ("Delete account", "Delete account")):
        page.activate(link, "link")
        page.heading(heading)
        page.until("focus on the heading", lambda: page.focused().text == heading)
        assert page.driver.find_element(By.CSS_SELECTOR, ".subnav [aria-current]").text == link
    page.back()
    page.heading("Access tokens")
    page.reload()
    page.heading("Access tokens")


def test_profile(page, service):
    user, other = service.new_user(), service.new_user()
    service.upload(user, "a.txt")
    page.sign_in(user, "/console/account")
    page.heading("Profile")
    page.see("Last sign-in", "7 bytes of 1 GB, 1 of 100,000 files")
    page.check("account-profile")
    page.fill("Name (optional)", ARABIC + MARKUP)
    page.fill("Username", user.username.upper())
    page.fill("E-mail", "another." + user.email)
    page.press(Keys.ENTER)
    page.see("Your changes have been saved.")
    account = service.call("GET", "/users/me", token=user.token)
    assert (account["name"], account["username"], account["email"]) \
        == (ARABIC + MARKUP, user.username.upper(), "another." + user.email)
    page.see(ARABIC + MARKUP)  # beside the navigation

    page.fill("Username", other.username)
    page.press(Keys.ENTER)
    page.see("This username is taken.")
    assert page.focused().accessible_name == "Username"
    page.fill("Username", "a b")
    page.fill("E-mail", "nobody")
    page.fill("Name (optional)", BIDI)
    page.press(Keys.ENTER)
    page.see("Only letters, digits and underscore are allowed", "Invalid e-mail address", "Must not contain control")
    assert page.focused().accessible_name == "Username", "the focus is at the first fault"
    page.check("account-profile-refused")
    assert service.call("GET", "/users/me", token=user.token)["name"] == ARABIC + MARKUP, "nothing half changed"
    page.fill("Username", user.username)
    page.fill("E-mail", user.email)
    page.fill("Name (optional)", "")
    page.press(Keys.ENTER)
    page.until("profile without a name", lambda: not service.call("GET", "/users/me", token=user.token)["name"])


@pytest.mark.long
def test_another_address_needs_the_password_where_the_service_asks_for_it(page, start_service):
    page.service = service = start_service(CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD="true")
    user = service.new_user()
    page.sign_in(user, "/console/account")
    page.fill("Name (optional)", "Ann")
    page.press(Keys.ENTER)
    page.see("Your changes have been saved.")
    page.fill("E-mail", "ann@example.com")
    page.press(Keys.ENTER)
    page.see("Needed here to change")
    page.until("focus on the password", lambda: page.focused().accessible_name == CURRENT)
    page.check("account-profile-password")
    page.activate("Files")
    page.see("Leave without saving?")
    page.activate("Stay")
    page.fill(CURRENT, "wrong")
    page.press(Keys.ENTER)
    page.see(WRONG)
    page.fill(CURRENT, PASSWORD)
    page.press(Keys.ENTER)
    page.see_no("Needed here to change")
    assert page.focused().accessible_name == "E-mail"
    assert service.call("GET", "/users/me", token=user.token)["email"] == "ann@example.com"


def test_password(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account/password")
    page.heading("Password")
    page.check("account-password")
    page.fill(CURRENT, "wrong")
    page.fill("New password", "short")
    page.press(Keys.ENTER)
    page.see("Password must be at least 8 characters long")
    page.fill("New password", "another horse 2")
    page.press(Keys.ENTER)
    page.see(WRONG)
    assert page.focused().accessible_name == CURRENT
    page.check("account-password-refused")
    page.fill(CURRENT, PASSWORD)
    page.fill("New password", "another horse 2")
    page.press(Keys.ENTER)
    page.see("Your password has been changed")
    assert not service.takes(user.token), "the other session has ended"
    assert not page.driver.find_element(By.NAME, "new_password").get_attribute("value")
    page.activate("Sessions")
    page.see("This session")
    service.sign_in(user.username, "another horse 2")


def test_leaving(page, service):
    user = service.new_user()
    service.upload(user, "a.txt")
    page.sign_in(user, "/console/account/leave")
    page.heading("Delete account")
    page.see("your files: 1, 7 bytes in all")
    page.check("account-leave")
    page.fill(f"Type {user.username} to confirm", "yes")
    page.fill(CURRENT, "wrong")
    page.press(Keys.ENTER)
    page.see(f"That is not {user.username}.")
    page.fill(f"Type {user.username} to confirm", user.username)
    page.press(Keys.ENTER)
    page.see(WRONG)
    page.check("account-leave-refused")
    page.fill(CURRENT, PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Sign in")
    page.see("Your account has been deleted.")
    page.at("/console")
    with pytest.raises(Refused, match="401"):
        service.sign_in(user.username)


@pytest.mark.long
def test_account_without_a_username_is_confirmed_by_its_address(page, service):
    address = "nameless@example.com"
    answer = service.call("POST", "/auth/register", {"email": address, "password": PASSWORD})
    page.open("/console/account")
    page.fill("Username or e-mail", address)
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.heading("Profile")
    page.fill("Name (optional)", "Nameless")
    page.press(Keys.ENTER)
    page.see("Your changes have been saved.")
    assert service.call("GET", "/users/me", token=answer["access_token"])["username"] is None
    page.activate("Delete account")
    page.fill(f"Type {address} to confirm", address)
    page.fill(CURRENT, PASSWORD)
    page.press(Keys.ENTER)
    page.see("Your account has been deleted.")


@pytest.mark.long
def test_last_administrator_cannot_leave(page, start_service):
    page.service = service = start_service()
    page.sign_in(service.admin(), "/console/account/leave")
    page.fill("Type root to confirm", "root")
    page.fill(CURRENT, PASSWORD)
    page.press(Keys.ENTER)
    page.see("You are the last active administrator.")
    page.check("account-leave-last-administrator")


@pytest.mark.long
def test_wrong_passwords_are_limited_and_the_wait_is_counted_down(page, start_service):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_AUTH="6")
    page.sign_in(service.new_user(), "/console/account/leave")
    page.until("form", lambda: page.driver.find_elements(By.NAME, "confirmation"))
    name = page.driver.find_element(By.NAME, "confirmation").accessible_name
    page.fill(name, name.split()[1])
    page.fill(CURRENT, "wrong")
    for _ in range(8):
        page.press(Keys.ENTER)
        page.until("answer", lambda: not page.driver.find_elements(By.CSS_SELECTOR, ".is-busy"))
        if "Too many requests" in page.text():
            break
    page.see("Too many requests. Try again in")
    assert page.named("Delete my account", "button")[0].get_attribute("aria-disabled") == "true"
    page.check("account-limited")
