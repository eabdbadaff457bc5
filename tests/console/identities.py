"""Sign-in by an OpenID provider, which is npm's oidc-provider: accounts, their identities, and the provider in
place of the password. Whoever signs in there as `ann` is ann@example.com."""

import os
import pathlib
import signal
import socket
import subprocess

import pytest
from selenium.webdriver.common.keys import Keys

from conftest import OWN, WORK
from service import MAX_WAIT, PASSWORD, code, wait_for

NAME = "Example ID"
SIGN_IN, CONFIRM, INSTEAD = f"Sign in with {NAME}", f"Confirm with {NAME}", f"Confirm with {NAME} instead"
CURRENT = "Current password"
AWAY = f"{NAME} cannot be reached at the moment."


class Provider:
    """The provider, in a process of its own."""

    def __init__(self, clock=0):
        """Its clock is so many seconds ahead."""
        self.clock = clock
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        """With keys of its own each time."""
        OWN.mkdir(exist_ok=True)
        script = pathlib.Path(__file__).with_name("provider.mjs")
        with open(OWN / "provider.log", "wb") as log:
            command, env = ["node", script, str(self.port), str(self.clock)], os.environ | {"CONSOLE_WORK": str(WORK)}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=env)
        wait_for("provider", self._answers)

    def _answers(self):
        assert self.process.poll() is None, OWN / "provider.log"
        try:
            socket.create_connection(("127.0.0.1", self.port), MAX_WAIT).close()
            return True
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait(60)

    def settings(self, **more):
        """The settings of a service that knows it."""
        return {"CLOAKROOM_OIDC_ISSUER": self.url, "CLOAKROOM_OIDC_CLIENT_ID": "cloakroom",
                "CLOAKROOM_OIDC_CLIENT_SECRET": "secret", "CLOAKROOM_OIDC_NAME": NAME} | more

    def sign_in(self, page, login):
        """Signs in at its page, which is shown."""
        page.until("page of the provider", lambda: "Sign in to the provider" in page.text())
        page.fill("Login name", login)
        page.press(Keys.ENTER)

    def connect(self, service, user):
        """Gives an account the identity of the same name, as the service would."""
        service.sql(f"UPDATE users SET identity_issuer = '{self.url}', identity_subject = username "
                    f"WHERE id = '{user.id}'")


@pytest.fixture(scope="module")
def provider():
    """The provider of this file."""
    provider = Provider()
    yield provider
    provider.stop()


@pytest.fixture(scope="module")
def service(start_service, provider):
    """The service of this file, in which an identity alone makes no account."""
    return start_service(**provider.settings(CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD="true"))


@pytest.fixture(autouse=True)
def nobody_at_the_provider(page, provider):
    """Each test begins with a browser that nobody has signed in with."""
    page.others.append(provider.url)
    page.cdp("Network.clearBrowserCookies")


@pytest.fixture(scope="module")
def open_service(start_service, provider):
    """A service in which whoever comes by the provider gets an account."""
    return start_service(**provider.settings(CLOAKROOM_OIDC_REGISTRATION="on"))


def test_the_first_sign_in_makes_an_account(page, open_service, provider):
    page.service = open_service
    page.open("/console/links")
    page.see("Your account is made when you first sign in this way.")
    page.check("sign-in-provider")
    page.activate(SIGN_IN)
    provider.sign_in(page, "ann")
    page.see("Dr ann", "ann@example.com")
    page.at("/console/links")
    page.open("/console/account/leave")
    page.see(CONFIRM)
    assert CURRENT not in page.text()
    page.activate("Delete my account")
    page.see("Fill in this field.")
    page.fill("Type ann@example.com to confirm", "ann@example.com")
    page.press(Keys.ENTER)
    page.see("Confirm who you are first.")
    page.activate("Sign out")
    page.heading("Sign in")
    page.see(f"At {NAME} you may still be signed in.", f"Sign out at {NAME}")

    page.open("/console/oidc")
    page.heading("Begin again here")
    page.check("oidc-again")
    page.activate(SIGN_IN)  # where one is still signed in
    page.at("/console/files")
    page.reload()
    page.see("Dr ann")
    page.activate("Sign out")
    page.heading("Sign in")
    page.activate(f"Sign out at {NAME}")
    page.activate("Yes, sign me out")
    page.see("Signed out of the provider")
    page.open()
    page.activate(SIGN_IN)
    provider.sign_in(page, "ann")  # where one is no more
    page.see("Dr ann")


def test_no_account_is_made_for_an_address_that_is_not_confirmed_or_taken(page, open_service, provider):
    page.service = open_service
    carl = open_service.new_user(username="carl")
    page.open()
    for login, said in (("newcomer", "has not confirmed your e-mail address"), ("carl", "There is already an account")):
        page.activate(SIGN_IN)
        provider.sign_in(page, login)
        page.see(said)
        page.cdp("Network.clearBrowserCookies")
        page.open()
    assert not open_service.call("GET", "/users/me", token=carl.token)["has_identity"]


def test_an_identity_without_an_account(page, provider):
    page.open()
    page.activate(SIGN_IN)
    provider.sign_in(page, "stranger")
    page.heading("No account yet")
    page.see("stranger@example.com", "connect it under Account")
    page.check("oidc-no-account")
    page.activate("Use another identity")
    provider.sign_in(page, "another")
    page.heading("No account yet")
    page.see("another@example.com")
    page.activate("Use another identity")
    provider.sign_in(page, "nameless")
    page.see(f"{NAME} has confirmed who you are, and has told no name.")
    page.activate("Go to sign-in")
    page.heading("Sign in")
    id = "01234567-89ab-cdef-0123-456789abcdef"
    page.open(f"/console/oidc#error=denied&request_id={id}")
    page.see(f"For whoever runs this service, whose log names the causes: request {id}.")


def test_connecting_and_disconnecting(page, service, provider):
    bob = service.new_user(username="bob")
    page.sign_in(bob, "/console/account/identity")
    page.see("Not connected")
    page.check("account-identity-apart")
    for password, said in (("wrong", "Nothing has been connected."), (PASSWORD, "Your account is connected.")):
        page.activate(f"Connect {NAME}")
        provider.sign_in(page, "bob")
        page.see("Connect this identity?", f"At {NAME} you are")
        page.check("account-identity-join")
        page.fill(CURRENT, password)
        page.press(Keys.ENTER)
        page.see(said)
    assert service.call("GET", "/users/me", token=bob.token)["has_identity"]
    page.check("account-identity-joined")
    page.activate("Sign out")
    page.heading("Sign in")
    assert "may still be signed in" not in page.text()

    page.activate(SIGN_IN)
    page.see("Sign out")
    page.open("/console/account/identity")
    page.fill(CURRENT, "wrong")
    page.press(Keys.ENTER)
    page.see("That is not your current password.")
    page.fill(CURRENT, PASSWORD)
    page.press(Keys.ENTER)
    page.see("Your account is disconnected. Sign in with your password.")
    page.sign_in(bob)


def test_connecting_by_a_provider_that_does_not_say_when_somebody_signed_in(page, service, provider):
    page.sign_in(service.new_user(username="kay"), "/console/account/identity")
    page.activate(f"Connect {NAME}")
    provider.sign_in(page, "kay")
    page.see("Connect this identity?")
    page.open("/console/account/identity")
    page.activate(f"Connect {NAME}")
    page.until("page of the provider", lambda: "Sign in to the provider" in page.text())
    page.open("/console/oidc#error=invalid")
    page.see(f"What {NAME} has answered cannot be used")
    assert "may not be able to confirm" not in page.text()
    page.activate("Try again")  # where one is still signed in
    page.see("Connect this identity?")


def test_an_identity_of_another_account(page, service, provider):
    provider.connect(service, service.new_user(username="first"))
    page.sign_in(service.new_user(username="second"), "/console/account/identity")
    page.activate(f"Connect {NAME}")
    provider.sign_in(page, "first")
    page.fill(CURRENT, PASSWORD)
    page.press(Keys.ENTER)
    page.see("Another account here already has this identity.", "Begin again.")


def test_sign_in_with_a_second_factor(page, service, provider):
    user = service.new_user(username="eve")
    secret, _ = service.add_second_factor(user)
    provider.connect(service, user)
    page.open("/console/account")
    page.activate(SIGN_IN)
    provider.sign_in(page, "eve")
    page.heading("Enter your code")
    page.check("oidc-code")
    page.fill("Code", "000000")
    page.press(Keys.ENTER)
    page.see("That code is wrong.")
    page.fill("Code", code(secret))
    page.press(Keys.ENTER)
    page.at("/console/account")
    page.see("Sign out")


def test_an_invitation_and_a_reset_by_the_provider(page, service, provider):
    service.call("POST", "/users", {"email": "guest@example.com", "username": "guest", "name": "Guest", "invite": True},
                 service.admin().token)
    fred = service.new_user(username="fred")
    service.call("POST", "/auth/request-password-reset", {"email": fred.email})
    for name in ("guest", "fred"):
        page.cdp("Network.clearBrowserCookies")
        page.open("/console/forgotten")
        page.driver.get(service.mailbox.link(f"{name}@example.com"))
        page.see("New password")
        page.check("reset-provider")
        page.activate(f"Use {NAME} instead")
        provider.sign_in(page, "stranger")
        page.see("stranger@example.com")
        page.check("reset-connect")
        page.activate("Use another identity")
        provider.sign_in(page, name)
        page.heading("Connect your account")
        page.see(f"{name}@example.com")
        page.activate("Connect")
        page.heading("Your account is connected")
        page.activate("Sign in")
        page.activate(SIGN_IN)
        page.see(f"{name}@example.com", "Sign out")
        page.activate("Sign out")
        page.heading("Sign in")


def confirm(page, provider, login, link=INSTEAD):
    """Goes to the provider in place of giving a password, and comes back."""
    page.activate(link)
    provider.sign_in(page, login)
    page.see(f"At {NAME} you are")


def test_the_provider_in_place_of_the_password(page, service, provider):
    gus = service.new_user(username="gus")
    provider.connect(service, gus)
    page.sign_in(gus, "/console/account")
    page.fill("Name (optional)", "Gustav")
    page.fill("E-mail", "gustav@example.com")
    page.press(Keys.ENTER)
    page.see(INSTEAD)
    page.check("account-profile-provider")
    confirm(page, provider, "gus")
    page.at("/console/account")
    page.check("account-profile-confirmed")
    page.activate("Save")
    page.see("Your changes have been saved.", "gustav@example.com", "Gustav")

    page.open("/console/account/password")
    confirm(page, provider, "gus")
    page.fill("New password", "correct horse 2")
    page.press(Keys.ENTER)
    page.see("Your password has been changed.", INSTEAD)
    page.fill("New password", "correct horse 3")
    page.press(Keys.ENTER)
    page.see("Fill in this field.")

    page.open("/console/account/leave")
    page.fill("Type gus to confirm", "gus")
    confirm(page, provider, "stranger")
    page.activate("Delete my account")
    page.see("That confirmation is used up or too old.", CURRENT)
    confirm(page, provider, "gus")
    assert page.tab_to("Type gus to confirm").get_property("value") == "gus"
    page.press(Keys.ENTER)
    page.see("Your account has been deleted.")


def test_the_provider_at_other_forms(page, start_service, provider):
    page.service = service = start_service(**provider.settings(CLOAKROOM_EMAIL_CONFIRMATION="required"))
    user = service.new_user(username="nia")
    provider.connect(service, user)
    service.call("PUT", "/users/me", {"email": "nia2@example.com", "current_password": PASSWORD}, user.token)
    page.open("/console/forgotten")
    page.driver.get(service.mailbox.link("nia2@example.com"))
    page.see(INSTEAD)
    page.check("confirm-provider")
    confirm(page, provider, "nia")
    page.check("confirm-confirmed")
    page.activate("Confirm")
    page.heading("Your e-mail address is confirmed")

    root = service.admin()
    provider.connect(service, root)
    page.sign_in(root, f"/console/users/{root.id}")
    page.fill("E-mail", "new-root@example.com")
    page.cdp("Network.clearBrowserCookies")
    confirm(page, provider, "root")
    page.activate("Save changes")
    page.see("Your changes have been saved.")


def test_the_provider_in_dialogs(page, service, provider):
    user = service.new_user(username="hal")
    provider.connect(service, user)
    page.sign_in(user, "/console/account/second-factor")
    confirm(page, provider, "hal")
    page.activate("Start")
    page.see("Add Cloakroom to your app")
    page.activate("Sign out")
    page.heading("Sign in")
    secret, codes = service.add_second_factor(user)
    page.sign_in(user, "/console/account/second-factor", code(secret))
    page.activate("New recovery codes")
    page.see(INSTEAD)
    page.check("account-second-factor-provider")
    confirm(page, provider, "hal")
    page.see("You get ten new codes")
    page.activate("Use the password")
    page.see(CURRENT)
    page.press(Keys.ESCAPE)
    page.activate("Turn off")
    confirm(page, provider, "hal")
    page.see("Turn off the second factor?")
    page.check("account-second-factor-confirmed")
    page.fill("Code", codes[0])
    page.press(Keys.ENTER)
    page.see("The second factor is off.", "Set it up")


def test_refusing_at_the_provider(page, service, provider):
    user = service.new_user(username="ida")
    provider.connect(service, user)
    page.sign_in(user, "/console/account/leave")
    page.fill("Type ida to confirm", "id")
    page.activate(INSTEAD)
    page.activate("Refuse")
    page.heading("That did not work")
    page.see(f"You have not signed in at {NAME}")
    page.check("oidc-denied")
    page.activate("Go back")
    page.at("/console/account/leave")
    assert page.tab_to("Type ida to confirm").get_property("value") == "id"
    page.activate(INSTEAD)
    page.activate("Refuse")
    page.activate("Try again")
    provider.sign_in(page, "ida")
    page.see(f"At {NAME} you are")


def test_the_way_back_in_another_browser_or_tab(page, service, provider):
    page.open()
    page.activate(SIGN_IN)
    page.until("page of the provider", lambda: "Sign in to the provider" in page.text())
    for cookie in page.cdp("Network.getCookies", urls=[service.url + "/api/v1/auth/oidc"])["cookies"]:
        if cookie["name"].startswith("oidc-"):
            page.cdp("Network.deleteCookies", name=cookie["name"], domain=cookie["domain"], path=cookie["path"])
    provider.sign_in(page, "jim")
    page.see("That took too long, or was used already.")

    page.open("/console/forgotten")
    page.open("/console/oidc#code=" + "a" * 43 + "&name=jim")
    page.heading("Begin again here")
    assert page.driver.current_url == service.url + "/console/oidc"


def test_a_provider_that_is_slow_or_away(page, provider, start_service):
    provider.process.send_signal(signal.SIGSTOP)
    try:
        page.service = away = start_service(**provider.settings())
        page.open()
        page.activate(SIGN_IN)
        page.heading("That did not work")
        page.see(AWAY)
        page.check("oidc-unavailable")
    finally:
        provider.process.send_signal(signal.SIGCONT)
    away.stop()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        away.settings["CLOAKROOM_OIDC_ISSUER"] = "http://127.0.0.1:%d" % closed.getsockname()[1]
        away.start()
        page.open()
        page.activate(SIGN_IN)
        page.see(AWAY, "Go back")
        page.activate("Go back")
        page.heading("Sign in")


def test_a_provider_whose_clock_is_off(page, start_service):
    for clock, heading in ((45, "No account yet"), (600, "That did not work")):
        wrong = Provider(clock)
        try:
            page.service = start_service(**wrong.settings())
            page.others += [wrong.url, page.service.url]
            page.open()
            page.activate(SIGN_IN)
            wrong.sign_in(page, "kit")
            page.heading(heading)
        finally:
            wrong.stop()
    page.see("cannot be used")


@pytest.mark.long  # new keys are asked for once a minute
def test_a_provider_with_new_keys(page, provider):
    page.open()
    page.activate(SIGN_IN)
    provider.sign_in(page, "lou")
    page.heading("No account yet")
    provider.stop()
    provider.start()

    def is_known():
        page.cdp("Network.clearBrowserCookies")
        page.open()
        page.activate(SIGN_IN)
        provider.sign_in(page, "lou")
        page.until("an answer", lambda: "No account yet" in page.text() or "That did not work" in page.text())
        return "No account yet" in page.text()

    page.until("new keys", is_known)


def test_a_lost_session_is_found_again_by_the_provider(page, service, provider):
    user = service.new_user(username="kim")
    provider.connect(service, user)
    page.sign_in(user, "/console/account/sessions")
    page.see("This session")
    service.call("POST", "/auth/logout?scope=others", token=user.token)
    page.activate("Access tokens")
    page.see("Your session has ended.")
    page.check("sign-in-again-provider")
    page.activate(SIGN_IN)
    provider.sign_in(page, "kim")
    page.see("Sign out")
    page.at("/console/account/tokens")


def test_passwords_for_administrators_only(page, start_service, provider):
    page.service = service = start_service(**provider.settings(CLOAKROOM_PASSWORD_LOGIN="admins"))
    root = service.admin()
    service.call("POST", "/users", {"username": "lea", "email": "lea@example.com", "name": "Lea", "password": PASSWORD},
                 root.token)
    page.open()
    page.until("page of the provider", lambda: "Sign in to the provider" in page.text())
    page.open("/console?password")
    page.check("sign-in-provider-leads")
    page.activate("Administrators sign in with a password")
    page.fill("Username or e-mail", "lea")
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("Only administrators sign in with a password here.")
    page.fill("Username or e-mail", "root")
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("Sign out")


def test_administrators_end_identities(page, service, provider):
    user = service.new_user(username="mia")
    provider.connect(service, user)
    page.open()
    page.activate(SIGN_IN)
    provider.sign_in(page, "mia")
    page.see("Sign out")
    page.activate("Sign out")
    page.heading("Sign in")
    page.sign_in(service.admin(), f"/console/users/{user.id}")
    page.activate("Single sign-on")
    page.see("its owner can sign in", "It has a password.")
    page.check("user-identity")
    page.activate("Disconnect")
    page.see("Disconnect this account?")
    page.check("user-identity-end")
    page.activate("Disconnect")
    page.see("The account is disconnected.")
    assert not service.call("GET", "/users/me", token=user.token)["has_identity"]
    page.open(f"/console/audit?subject_id={user.id}")
    page.see("Disconnection of an identity")
    page.open(f"/console/audit?actor_id={user.id}")
    page.see("by: OpenID provider")
