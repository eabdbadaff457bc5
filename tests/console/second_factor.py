"""The page of one's own second factor."""

import os
import pathlib
import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from service import PASSWORD, code

CURRENT, WRONG = "Current password", "That is not your current password."
# More often than a browser heeds a dialog that refuses to close.
OFTEN = [Keys.ESCAPE] * 3


def shown_codes(page):
    """The recovery codes of the open dialog."""
    page.see("Save these recovery codes")
    return re.findall(r"\b(?:[A-Z2-7]{4}-){3}[A-Z2-7]{4}\b", page.text())


def test_second_factor(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account/second-factor")
    page.heading("Second factor")
    page.see("Set it up")
    page.check("account-second-factor")
    page.fill(CURRENT, "wrong")
    page.press(Keys.ENTER)
    page.see(WRONG)
    page.fill(CURRENT, PASSWORD)
    page.press(Keys.ENTER)
    page.until("focus on the code", lambda: page.focused().accessible_name == "Code")
    page.until("picture", lambda: page.run("return document.querySelector('img.qr').naturalWidth"))
    secret = page.driver.find_element(By.CSS_SELECTOR, ".secret").text.replace(" ", "")
    page.check("account-second-factor-offer")
    page.press("000000", Keys.ENTER)
    page.see("That code is wrong.")
    page.fill("Code", code(secret))
    page.press(Keys.ENTER)
    codes = shown_codes(page)
    assert len(set(codes)) == 10
    assert not service.takes(user.token), "the other session has ended"
    page.check("account-second-factor-codes")
    page.press(*OFTEN)
    assert shown_codes(page) == codes, "codes that are shown once do not go by accident"
    page.activate("Download")
    assert page.downloaded("cloakroom-recovery-codes.txt").decode().split("\n\n")[1].split() == codes
    page.activate("I have saved them")
    page.see("The second factor is on.", "10 recovery codes are left.")
    page.until("focus on the heading", lambda: page.focused().text == "Second factor")
    page.check("account-second-factor-on")

    page.activate("New recovery codes")
    page.fill(CURRENT, PASSWORD)
    page.fill("Code", "wrong")
    page.press(Keys.ENTER)
    page.see("That code is wrong.")
    page.check("account-second-factor-renew")
    page.fill("Code", codes[0].lower())
    page.press(Keys.ENTER)
    page.see_no("You get ten new codes")
    renewed = shown_codes(page)
    assert len(set(renewed + codes)) == 20
    page.activate("I have saved them")
    page.see("10 recovery codes are left.")

    page.activate("Sign out")
    page.heading("Sign in")
    service.forget_used_codes()
    page.sign_in(user, "/console/account/second-factor", code(secret))
    page.activate("Turn off")
    page.fill(CURRENT, PASSWORD)
    page.fill("Code", codes[1])
    page.press(Keys.ENTER)
    page.see("That code is wrong.")
    page.fill("Code", renewed[0])
    page.press(Keys.ENTER)
    page.see("The second factor is off.", "Set it up")
    service.sign_in(user.username)


def test_the_picture_is_read_from_every_screen(page, service):
    user = service.new_user(username="a" * 50)
    page.sign_in(user, "/console/account/second-factor")
    secret = begin_second_factor(page)
    reader = pathlib.Path(os.environ["CONSOLE_WORK"]) / "node/node_modules/jsqr/dist/jsQR.js"
    page.run(reader.read_text(encoding="utf-8"))
    # One module is as wide as the next: a camera sees less than a picture of the screen does.
    assert page.run("""
        const { width, src } = document.querySelector("img.qr");
        return width % /viewBox="0 0 (\\d+) /.exec(decodeURIComponent(src))[1]""") == 0
    for width, dark, forced in ((1440, False, False), (1440, True, False), (1440, True, True), (320, True, False)):
        page.screen(width, dark, forced=forced)
        page.run("document.querySelector('img.qr').scrollIntoView({ block: 'center' })")
        text = page.pixels("return jsQR(pixels.data, pixels.width, pixels.height)?.data ?? ''")
        assert f"secret={secret}" in text, f"{width} {dark} {forced}: {text!r}"


@pytest.mark.long
def test_recovery_codes_that_run_out_are_warned_about(page, service):
    user = service.new_user()
    secret, codes = service.add_second_factor(user)
    for used in codes[:7]:
        service.sign_in(user.username, code=used)
    page.sign_in(user, "/console/account/second-factor", code(secret))
    page.see("3 recovery codes are left.", "Create new ones")
    page.check("account-second-factor-few")
    for used in codes[7:]:
        service.sign_in(user.username, code=used)
    page.reload()
    page.see("No recovery codes are left.")


def begin_second_factor(page):
    """Begins to set a second factor up, and returns the secret."""
    page.fill(CURRENT, PASSWORD)
    page.press(Keys.ENTER)
    page.see("Add Cloakroom to your app")
    return page.driver.find_element(By.CSS_SELECTOR, ".secret").text.replace(" ", "")


@pytest.mark.long
def test_second_factor_that_another_tab_has_switched_on_or_off(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account/second-factor")
    page.see("Set it up")
    other = page.duplicate()
    secret = begin_second_factor(other)
    other.press(code(secret), Keys.ENTER)
    codes = shown_codes(other)
    other.activate("I have saved them")

    page.fill(CURRENT, PASSWORD)
    page.press(Keys.ENTER)
    page.see("is already on", "10 recovery codes are left.")
    page.check("account-second-factor-elsewhere")

    page.activate("Turn off")
    other.activate("Turn off")
    for tab, used in ((other, codes[0]), (page, codes[1])):
        tab.fill(CURRENT, PASSWORD)
        tab.fill("Code", used)
        tab.press(Keys.ENTER)
        tab.see("Set it up")
    page.see("is already off")


@pytest.mark.long
def test_secret_that_was_not_confirmed_in_time_or_was_replaced(page, service):
    user = service.new_user()
    page.sign_in(user, "/console/account/second-factor")
    secret = begin_second_factor(page)
    service.sql(f"UPDATE users SET second_factor_pending_until = now() WHERE id = '{user.id}'")
    page.press(code(secret), Keys.ENTER)
    page.see("The 15 minutes are up.", "Set it up")
    begin_second_factor(page)
    page.activate("Cancel")
    page.see("Set it up")
    secret = begin_second_factor(page)
    service.call("POST", "/auth/second-factor", {"current_password": PASSWORD}, user.token)
    page.press(code(secret), Keys.ENTER)
    page.see("That code is wrong.")
