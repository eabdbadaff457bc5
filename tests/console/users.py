"""The pages for administrators about users."""

import re
import secrets

import pytest
from selenium.webdriver.common.keys import Keys

from administration import HOSTILE, account_id, events, saved, until_rows, user_of
from service import PASSWORD, Refused

SEARCH, ADDRESSES = "Search", "E-mail addresses"


def test_finding_users(page, service):
    found = service.new_user(name=HOSTILE)
    service.new_user(name="Bo Berg")
    page.sign_in(service.admin(), "/console/users")
    page.heading("Users")
    page.see(HOSTILE.strip()[:28], "Bo Berg")
    page.check("users")
    for part in (found.username, found.email, "ONERROR="):
        page.fill(SEARCH, part)
        page.press(Keys.ENTER)
        until_rows(page, "one account", lambda shown: len(shown) == 1 and found.email in shown[0])
    page.fill(SEARCH, found.username)
    page.press(Keys.ENTER)
    page.at(f"/console/users?search={found.username}")
    until_rows(page, "one account", lambda shown: len(shown) == 1 and found.email in shown[0])
    page.select("Role", "Administrator")
    page.see("No account matches")
    page.activate("Clear filters")
    page.at("/console/users")
    page.see("Bo Berg")
    page.back()
    page.see("No account matches")
    page.back()
    until_rows(page, "one account", lambda shown: len(shown) == 1)
    page.activate(re.compile("img src"), "link")
    page.heading(HOSTILE.strip())
    page.activate("Users", "link")
    page.fill(SEARCH, f" {found.id} ")
    page.press(Keys.ENTER)
    page.at(f"/console/users/{found.id}")
    page.heading(HOSTILE.strip())
    # The list does not remember it.
    page.activate("Users", "link")
    page.at("/console/users")
    page.see("Bo Berg")


def test_each_account_is_one_line_with_its_initials(page, service):
    names = ["Hanna Weber", HOSTILE, "\u0633\u0645\u064a\u0631\u0629 \u062d\u062f\u0627\u062f", "Z."]
    for name in names:
        service.new_user(name=name, username="one_line_" + secrets.token_hex(5))
    service.call("POST", "/users", {"email": "one_line@example.com", "name": "one_line@example.com", "invite": True},
                 service.admin().token)
    page.sign_in(service.admin(), "/console/users?search=one_line&sort_by=created_at&sort_order=asc")
    page.see("1\u20135 of 5")
    shown = page.run("return [...document.querySelectorAll('tbody tr')].map(row =>"
                     " [row.querySelector('.initials').dataset.initials, row.offsetHeight <= 41])")
    assert shown == [[initials, True] for initials in ("HW", "IL", "\u0633\u062d", "Z", "OL")]
    page.check("users-initials")


@pytest.mark.long
def test_sorting_users(page, service):
    for name, size in (("Aaaa", 3000), ("Zzzz", 2000)):
        service.upload(service.new_user(name=f"{name} sorted"), "a.txt", b"x" * size)
    service.call("POST", "/users", {"email": "never@example.com", "name": "Never sorted", "password": PASSWORD},
                 service.admin().token)
    page.sign_in(service.admin(), "/console/users?search=sorted")
    until_rows(page, "newest first", lambda shown: len(shown) == 3 and "Zzzz" in shown[1])
    for head, first, last in (("Stored", "Never", "Aaaa"), ("Last sign-in", "Aaaa", "Never")):
        page.activate(head, "link")
        until_rows(page, "least first", lambda shown: first in shown[0] and last in shown[2])
    page.activate("Last sign-in", "link")
    until_rows(page, "latest first", lambda shown: "Zzzz" in shown[0] and "Never" in shown[2])
    page.activate("Stored", "link")
    page.activate("Stored", "link")
    until_rows(page, "most first", lambda shown: "Aaaa" in shown[0] and "2.9 kB" in shown[0])
    service.call("DELETE", f"/users/{account_id(service, 'never@example.com')}", token=service.admin().token)
    page.open("/console/users?search=sorted")
    page.activate("Name", "link")
    page.at("/console/users?search=sorted&sort_by=name&sort_order=asc")
    until_rows(page, "A first", lambda shown: "Aaaa" in shown[0])
    assert page.focused().accessible_name == "Name", "the head that was pressed keeps the focus"
    page.press(Keys.ENTER)
    until_rows(page, "Z first", lambda shown: "Zzzz" in shown[0])
    page.reload()
    until_rows(page, "Z first", lambda shown: len(shown) == 2 and "Zzzz" in shown[0])


def test_inviting_people(page, service):
    page.sign_in(service.admin(), "/console/users")
    page.activate("Invite people", "link")
    page.heading("Invite people")
    page.fill(ADDRESSES, "root@example.com")
    page.activate("Invite")
    page.see("There is already an account with this e-mail address.")
    assert page.focused().accessible_name == ADDRESSES, "the focus is where the fault is"
    page.fill(ADDRESSES, "no-address, one@example.com Ann, two@example.com")
    page.activate("More")
    page.fill("Name (optional)", "Both")
    page.activate("Invite")
    page.see("This is no e-mail address: no-address, Ann", "This can be set for one address only.")
    assert not service.call("GET", "/users?email=one@", token=service.admin().token)["users"], "nothing is sent yet"
    page.check("user-new-refused")
    page.fill("Name (optional)", "")
    page.fill("Storage limit in MB (optional)", "1")
    page.fill(ADDRESSES, 'invited@example.com "Lee, Ann" <ann@example.com>; ROOT@example.com,' + "bob" * 25
              + "@example.com")
    page.activate("Invite")
    page.see("4 of 4 addresses done. Those that were refused are still in the field.", "Already there ROOT@example.com",
             "Invited ann@example.com", "Invalid e-mail address.")
    assert page.tab_to(ADDRESSES).get_property("value") == "bob" * 25 + "@example.com"
    page.check("user-new-done")
    ann, = service.call("GET", "/users?email=ann@", token=service.admin().token)["users"]
    assert (ann["name"], ann["storage_quota"]) == ("Lee, Ann", 1_048_576)
    link = service.mailbox.link("invited@example.com")
    page.activate("invited@example.com", "link")
    page.heading("invited")
    guest = page.another()
    guest.driver.get(link)
    guest.heading("Choose a password")
    guest.fill("New password", PASSWORD)
    guest.press(Keys.ENTER)
    guest.see("Your password is set")
    service.sign_in("invited@example.com")


def test_invitations_wait_where_there_are_too_many_at_once(page, start_service):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_ADMIN="10")
    page.sign_in(service.admin(), "/console/users/new")
    people = [f"person{number}@example.com" for number in range(12)]
    page.fill(ADDRESSES, " ".join(people))
    page.activate("Invite")
    page.see("Next try in")
    page.see("12 of 12 addresses done.")
    assert len(page.run("return [...document.querySelectorAll('.outcome a')]")) == 12
    assert page.tab_to(ADDRESSES).get_property("value") == ""


def test_another_link_to_choose_a_password(page, service):
    service.call("POST", "/users", {"email": "lost@example.com", "name": "Lost", "invite": True}, service.admin().token)
    service.mailbox.link("lost@example.com")
    page.sign_in(service.admin(), f"/console/users/{account_id(service, 'lost@example.com')}")
    page.activate("Link to choose a password")
    page.activate("Send a new link")
    page.see("A link to lost@example.com is on its way.")
    guest = page.another()
    guest.driver.get(service.mailbox.link("lost@example.com", 2))
    guest.fill("New password", PASSWORD)
    guest.press(Keys.ENTER)
    guest.see("Your password is set")
    service.sign_in("lost@example.com")
    page.open(page.path() + "#password-link")
    page.see("Until it is used, the current password keeps working.")
    assert not page.named("Send a new link")
    page.activate("Send a reset link")
    service.mailbox.link("lost@example.com", 3)
    sent = events(service, action="password.reset_request")
    assert {event["actor_id"] for event in sent} == {service.admin().id}, "they name the administrator"
    page.check("user-link")
    page.activate("Access")
    page.activate("Deactivate")
    page.activate("Deactivate")
    page.see("nobody can sign in to it")
    page.see_no("Link to choose a password")


def test_setting_a_password_leaves_the_form_beside_it_as_it_is(page, service):
    user = service.new_user(name="Steady")
    page.sign_in(service.admin(), f"/console/users/{user.id}#sessions")
    page.see("Signed in")
    page.fill("Name (optional)", "Half typed")
    page.activate("Password")
    page.fill("New password", "another good password")
    page.activate("Set password")
    page.see("The password has been set.", "Nobody is signed in to this account.")
    assert page.tab_to("New password").get_attribute("value") == ""
    assert page.tab_to("Name (optional)").get_attribute("value") == "Half typed"
    page.activate("Access")
    page.activate("Deactivate")
    page.activate("Deactivate")
    page.see("nobody can sign in to it")
    page.activate("Save changes")
    page.see("Your changes have been saved.")
    page.heading("Half typed")
    assert user_of(service, user)["is_active"] is False


def test_quotas_of_one_user(page, service):
    user = service.new_user()
    service.upload(user, "a.txt")
    page.sign_in(service.admin(), f"/console/users/{user.id}")
    page.see("7 bytes of 1 GB, 1 of 100,000 files")
    assert page.tab_to("File limit (optional)").get_attribute("placeholder") == "100,000"
    page.fill("Storage limit in MB (optional)", "1.5")
    page.fill("File limit (optional)", "1")
    page.activate("Save changes")
    page.see("Your changes have been saved.")
    assert [user_of(service, user)[name] for name in ("storage_quota", "file_quota")] == [1_572_864, 1]
    page.until("focus", lambda: page.focused().accessible_name == "Save changes")
    page.fill("File limit (optional)", "2")
    page.press(Keys.ENTER)
    page.until("change", lambda: user_of(service, user)["file_quota"] == 2)
    page.until("new form", lambda: not page.named("Saving…"))
    page.until("focus", lambda: page.focused().accessible_name == "File limit (optional)")
    page.fill("File limit (optional)", "1e")
    page.activate("Save changes")
    page.see("Enter a number.")
    assert page.focused().accessible_name == "File limit (optional)"
    page.fill("File limit (optional)", "-1")
    page.activate("Save changes")
    page.until("error", lambda: page.focused().get_attribute("aria-invalid") == "true")
    page.fill("File limit (optional)", "")
    page.activate("Save changes")
    page.until("the default", lambda: user_of(service, user)["file_quota"] is None)
    assert user_of(service, user)["storage_quota"] == 1_572_864
    page.check("user-quotas")
    page.activate("Sign out")
    page.heading("Sign in")
    page.sign_in(user, "/console/files")
    page.see("1 file", "of 1.5 MB")


@pytest.mark.long
def test_making_a_user_with_a_password(page, service):
    page.sign_in(service.admin(), "/console/users/new")
    page.activate("Invite")
    page.see("Fill in this field.")
    page.fill(ADDRESSES, "made@example.com")
    page.select("Role", "Administrator")
    page.activate("More")
    page.fill("Name (optional)", "Made")
    page.fill("Username (optional)", "made")
    page.fill("Permissions (optional)", "read")
    page.press(Keys.ENTER, "write")
    page.fill("Password (optional)", PASSWORD)
    page.activate("Invite")
    page.see("Make Made an administrator?", "see, change and delete all accounts")
    page.check("user-new-admin")
    page.press(Keys.ESCAPE)
    page.see_no("Make Made an administrator?")
    with pytest.raises(Refused, match="401"):
        service.sign_in("made")
    page.activate("Invite")
    page.activate("Make administrator")
    page.see("Created made@example.com")
    made = service.sign_in("made")["user"]
    assert (made["permissions"], made["role"]) == (["read", "write"], "admin")


def test_changing_a_user(page, service):
    user, other = service.new_user(name="Before"), service.new_user()
    page.sign_in(service.admin(), f"/console/users/{user.id}")
    page.heading("Before")
    page.see(user.id)
    page.check("user")
    page.fill("Username", other.username)
    page.activate("Save changes")
    page.see("This username is taken.")
    assert page.focused().accessible_name == "Username"
    page.fill("Username", user.username)
    page.fill("Name (optional)", "<b>After</b>")
    page.select("Role", "Administrator")
    page.activate("Save changes")
    page.see("Make Before an administrator?")
    page.press(Keys.ESCAPE)
    page.see_no("Make Before an administrator?")
    assert user_of(service, user)["name"] == "Before"
    page.activate("Save changes")
    page.activate("Make administrator")
    page.see("Your changes have been saved.")
    page.heading("<b>After</b>")
    now = user_of(service, user)
    assert (now["name"], now["role"], now["username"]) == ("<b>After</b>", "admin", user.username)
    page.activate("Save changes")
    page.see("Nothing has changed.")


def test_what_is_typed_while_an_account_is_being_saved_stays_and_is_saved_next(page, service):
    user = service.new_user(name="Before")
    page.sign_in(service.admin(), f"/console/users/{user.id}")
    page.see("File limit")
    page.hold("GET /api/v1/admin/users")  # as the account is shown anew
    page.fill("Name (optional)", "Between")
    page.activate("Save changes")
    page.see("Your changes have been saved.")
    page.fill("Name (optional)", "Before")
    page.fill("File limit (optional)", "5")
    page.release()
    page.heading("Between")
    assert page.tab_to("Name (optional)").get_property("value") == "Before"
    page.activate("Save changes")
    page.heading("Before")
    assert user_of(service, user)["file_quota"] == 5


def test_deactivating_activating_and_deleting_a_user(page, service):
    user = service.new_user(name="Going")
    page.sign_in(service.admin(), f"/console/users/{user.id}")
    page.activate("Access")
    page.activate("Deactivate")
    page.see("Deactivate this account?")
    page.press(Keys.ESCAPE)
    page.see_no("Deactivate this account?")
    assert page.focused().accessible_name == "Deactivate", "the focus goes back"
    page.press(Keys.ENTER)
    page.see("Deactivate this account?")
    page.activate("Deactivate")
    page.see("nobody can sign in to it")
    with pytest.raises(Refused, match="403"):
        service.sign_in(user.username)
    page.activate("Activate")
    page.see("its owner can sign in")
    page.activate("Delete the account")
    page.activate("Delete account")
    page.fill(f"Type {user.username} to confirm", "something else")
    page.press(Keys.ENTER)
    page.see("That is not")
    page.fill(f"Type {user.username} to confirm", user.username)
    page.press(Keys.ENTER)
    page.see("Going has been deleted.")
    page.heading("Users")
    with pytest.raises(Refused, match="404"):
        user_of(service, user)
    page.open(f"/console/users/{user.id}")
    page.see("There is no such account.")


@pytest.mark.long
def test_looks_of_what_the_main_flows_pass_by(page, service):
    user = service.new_user(name=HOSTILE)
    page.sign_in(service.admin(), "/console/users/new")
    page.check("user-new")
    page.open("/console/users?search=nobody_has_this_name")
    page.see("No account matches")
    page.check("users-none")
    page.open(f"/console/users/{user.id}")
    page.heading(HOSTILE.strip())
    page.activate("Delete the account")
    page.check("user-hostile")
    page.activate("Delete account")
    page.see("Delete this account for good?")
    page.check("user-delete")


@pytest.mark.long
def test_ending_sessions_and_tokens_and_taking_a_second_factor_away(page, service):
    user = service.new_user()
    service.call("POST", "/auth/login", {"username": user.username, "password": PASSWORD},
                 headers={"User-Agent": "<script>alert(1)</script>"})
    service.call("POST", "/auth/tokens", {"name": HOSTILE[:90]}, user.token)
    service.add_second_factor(user)
    token = service.call("POST", "/auth/tokens", {"name": "backup", "read_only": True}, user.token)["token"]
    page.sign_in(service.admin(), f"/console/users/{user.id}")
    for part in ("Sessions", "Access tokens", "Second factor", "Password"):
        page.activate(part)
    page.see("backup", "Read only", "<img src=x", "Signing in needs a code", "urllib")
    # A session that was never refreshed was last used when it began.
    assert len(page.rows("urllib")) == 1 and "Never" not in page.rows("urllib")[0], page.rows()
    page.check("user-access")
    page.activate("End all tokens")
    page.activate("End all tokens")
    page.see("This account has no personal access tokens.")
    with pytest.raises(Refused, match="401"):
        service.call("GET", "/auth/me", token=token)
    service.call("GET", "/auth/me", token=user.token)
    page.activate("End all sessions")
    page.activate("End all sessions")
    page.see("Nobody is signed in to this account.")
    with pytest.raises(Refused, match="401"):
        service.call("GET", "/auth/me", token=user.token)
    page.activate("Remove it")
    page.see("Remove the second factor?")
    page.activate("Remove it")
    page.see("The second factor has been removed.", "Signing in needs only the password.")
    service.sign_in(user.username)
    page.fill("New password", "short")
    page.activate("Set password")
    page.see("Password must be at least 8 characters long")
    page.fill("New password", "another good password")
    page.activate("Set password")
    page.see("The password has been set.")
    service.sign_in(user.username, "another good password")


@pytest.mark.long
def test_the_own_account_asks_for_the_password_and_the_last_administrator_stays(page, start_service):
    page.service = service = start_service()
    root = service.admin()
    page.sign_in(root, f"/console/users/{root.id}")
    page.heading("root")
    page.check("user-own")
    page.fill("E-mail", "other@example.com")
    page.fill("Your current password (optional)", "a wrong password")
    page.activate("Save changes")
    page.see("That is not your current password.")
    page.fill("Your current password (optional)", PASSWORD)
    page.activate("Save changes")
    page.see("Your changes have been saved.")
    assert user_of(service, root)["email"] == "other@example.com"
    page.select("Role", "User")
    page.activate("Save changes")
    page.see("Give up your role?")
    page.activate("Give it up")
    page.see("There must be another active administrator first.")
    assert page.focused().accessible_name == "Role"
    assert user_of(service, root)["role"] == "admin"
    service.new_user(role="admin")
    page.select("Role", "User")
    page.activate("Save changes")
    page.see("Give up your role?")
    page.activate("Give it up")
    page.heading("Sign in")
    page.see("You are no longer an administrator.")


@pytest.mark.long
def test_where_mail_is_off_nobody_can_be_invited(page, start_service):
    page.service = service = start_service(CLOAKROOM_SMTP_URL="none")
    page.sign_in(service.admin(), f"/console/users/{service.new_user().id}")
    page.see("Password")
    page.see_no("Link to choose a password")
    page.open("/console/users/new")
    page.heading("Create user")
    page.fill(ADDRESSES, "By Password <by@example.com>")
    page.activate("Create user")
    page.see("Fill in this field.", "This service sends no mail, so nobody can be invited.")
    page.check("user-new-no-mail")
    page.activate("Files")
    page.see("Leave without saving?")
    page.activate("Stay")
    page.fill("Password", PASSWORD)
    page.activate("Create user")
    page.see("Created by@example.com")
    assert service.sign_in("by@example.com")["user"]["name"] == "By Password"


@pytest.mark.long
def test_ten_thousand_users(page, service):
    service.add_users(10_000, "CASE n % 3 WHEN 0 THEN '<b>' || n WHEN 1 THEN repeat('x', 255) END")
    page.sign_in(service.admin(), "/console/users?search=crowd_")
    page.see("1–25 of 10,000")
    page.check("users-10000")
    page.activate("Next")
    page.at("/console/users?search=crowd_&page=2")
    page.see("26–50 of 10,000", "Page 2 of 400")
    assert page.focused().tag_name == "h1"
    page.open("/console/users?search=crowd_&page=400")
    page.see("9,976–10,000 of 10,000")
    page.open("/console/users?search=crowd_&page=123456")
    page.at("/console/users?search=crowd_&page=400")
    page.open("/console/users?page=x&sort_by=y&sort_order=z&role=q&active=w&search=crowd_")
    page.see("1–25 of 10,000")
    page.open("/console/users")
    page.activate("Export CSV")
    page.activate("Download CSV")
    # Without the administrator for development, whom no export has.
    assert len(saved(page, "users-*.csv")) >= 10_000


def test_several_accounts_are_changed_together(page, service):
    mark = "team" + secrets.token_hex(4)
    people = [service.new_user(username=f"{mark}_{letter}", name=f"{mark} {letter}") for letter in "abc"]
    invited = f"{mark}@example.com"
    service.call("POST", "/users", {"email": invited, "name": f"{mark} d", "invite": True}, service.admin().token)
    service.mailbox.link(invited)
    page.sign_in(service.admin(), f"/console/users?search={mark}&sort_by=name&sort_order=asc")
    page.see("1–4 of 4")
    page.toggle("Select all on this page")
    page.see("4 selected")
    page.check("users-selected")

    # Who has never come gets another link; those who have do not.
    page.activate("Invite again")
    page.see(f"{mark} d has been sent another link.")
    assert service.mailbox.link(invited, 2)

    def states():
        path = f"/admin/users?text={mark}&sort_by=name&sort_order=asc"
        answer = service.call("GET", path, token=service.admin().token)
        return [(user["is_active"], user["storage_quota"]) for user in answer["items"]]

    page.toggle(f"Select {mark} a")
    page.toggle(f"Select {mark} b")
    page.activate("Set storage limit")
    page.fill("Storage limit in MB (optional)", "5")
    page.press(Keys.ENTER)
    page.see("2 accounts have been given the limit.")
    assert states() == [(True, 5 << 20), (True, 5 << 20), (True, None), (True, None)]

    for letter in "bc":
        page.toggle(f"Select {mark} {letter}")
    page.activate("Deactivate")
    page.see("Deactivate 2 accounts?", "They can no longer sign in.")
    page.run("document.querySelector('dialog .danger').click()")
    page.see("2 accounts have been deactivated.")
    page.until("badges", lambda: len(page.rows("Inactive")) == 2)
    assert [is_active for is_active, _ in states()] == [True, False, False, True]
    assert not service.takes(people[1].token) and service.takes(people[0].token)


def test_the_own_account_is_not_deactivated_with_others(page, service):
    page.sign_in(service.admin(), "/console/users?search=root@")
    page.see("1–1 of 1")
    page.toggle("Select root")
    page.see("1 selected")
    page.see_no("Deactivate")
