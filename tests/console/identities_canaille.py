"""Sign-in by Canaille, an OpenID provider for companies, with its defaults. It is installed from PyPI at the first run."""

import pathlib
import socket
import subprocess
import sys

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import browser
from conftest import OWN, WORK
from service import MAX_WAIT, PASSWORD, wait_for

VERSION = "0.3.6"
NAME = "Canaille"
SIGN_IN = f"Sign in with {NAME}"


def environment():
    """The Python of an environment with Canaille."""
    home = WORK / f"canaille-{VERSION}"
    if not (home / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        packages = f"canaille[front,oidc]=={VERSION}"
        subprocess.run([home / "bin/pip", "install", "--quiet", packages], check=True)
        (home / "installed").touch()
    return home / "bin/python"


@pytest.fixture(scope="module")
def service(start_service):
    """A service whose provider is the company's own, and the provider, which knows its redirect URI."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = start_service(
        CLOAKROOM_OIDC_ISSUER=f"http://127.0.0.1:{port}", CLOAKROOM_OIDC_CLIENT_ID="cloakroom",
        CLOAKROOM_OIDC_CLIENT_SECRET="secret", CLOAKROOM_OIDC_NAME=NAME, CLOAKROOM_OIDC_REGISTRATION="on",
        CLOAKROOM_OIDC_EMAILS="all")
    script = pathlib.Path(__file__).with_name("canaille_provider.py")
    command = [environment(), script, str(port), f"{service.url}/api/v1/auth/oidc/callback"]
    with open(OWN / "canaille.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)

    def answers():
        assert process.poll() is None, OWN / "canaille.log"
        try:
            socket.create_connection(("127.0.0.1", port), MAX_WAIT).close()
            return True
        except OSError:
            return False

    try:
        wait_for("provider", answers)
        service.stop()  # which remembers for a while that nobody has answered
        service.start()
        service.provider = f"http://127.0.0.1:{port}"
        yield service
    finally:
        process.kill()
        process.wait(60)


def at_canaille(page, name, text):
    """Fills in a field of one of its pages and sends the form."""
    page.until(f"Canaille's field {name}", lambda: page.driver.find_elements(By.NAME, name))
    page.driver.find_element(By.NAME, name).send_keys(text, Keys.ENTER)


def sign_in_there(page, login):
    at_canaille(page, "login", login)
    at_canaille(page, "password", "correct horse battery")


def answer_there(page, value):
    """Presses the button of one of its pages that has this value."""
    button = f"button[value={value}]"
    page.until(f"Canaille's button {value}", lambda: page.driver.find_elements(By.CSS_SELECTOR, button))
    page.driver.find_element(By.CSS_SELECTOR, button).click()


def sign_out_of_both(page):
    page.activate("Sign out")
    page.heading("Sign in")
    page.activate(f"Sign out at {NAME}")
    answer_there(page, "logout")


@pytest.mark.long  # it is no part of what the other tests install
def test_the_ways_of_an_account(page, service):
    page.others.append(service.provider)
    page.cdp("Network.clearBrowserCookies")
    page.open()
    page.activate(SIGN_IN)
    sign_in_there(page, "ann")
    answer_there(page, "accept")
    page.see("Dr ann", "ann@example.com")
    sign_out_of_both(page)

    bob = service.new_user(username="robert", email="robert@example.com")
    page.sign_in(bob, "/console/account/identity")
    page.activate(f"Connect {NAME}")
    sign_in_there(page, "bob")
    page.see("Connect this identity?", "bob@example.com")
    page.fill("Current password", PASSWORD)
    page.press(Keys.ENTER)
    page.see("Your account is connected.")
    page.open("/console/account/password")
    page.activate(f"Confirm with {NAME} instead")
    at_canaille(page, "password", "correct horse battery")
    page.see(f"At {NAME} you are")
    page.fill("New password", "correct horse 2")
    page.press(Keys.ENTER)
    page.see("Your password has been changed.")
    page.activate("Sign out")
    page.heading("Sign in")
    page.activate(SIGN_IN)  # where one is still signed in
    page.see("robert@example.com")
    sign_out_of_both(page)
    browser.drain(page.driver)  # Canaille's own pages break its own policy for styles
