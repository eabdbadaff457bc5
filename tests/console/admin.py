"""The pages for administrators: statistics, the audit log and exports, and who may see them."""

import re

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from administration import ADDRESSES, HOSTILE, account_id, events, rows, saved, until_rows
from service import PASSWORD, Refused


# Statistics


def test_statistics(page, service):
    user = service.new_user()
    service.upload(user, "one.txt", b"x" * 2000)
    deleted = service.upload(user, "two.txt", b"x" * 1536)
    service.call("DELETE", f"/uploads/{deleted['id']}", token=user.token)
    with pytest.raises(Refused, match="401"):
        service.sign_in(user.username, "a wrong password")
    numbers = service.call("GET", "/admin/stats", token=service.admin().token)
    page.sign_in(service.admin(), "/console/stats")
    page.heading("Statistics")
    page.see(f"{numbers['users']['active']:,} active", f"{numbers['files']['uploads_this_month']:,} uploaded",
             "and 1.5 kB in deleted files")
    page.see("New users", "Sign-ins", "Refused sign-ins and accesses", "Days and months are in UTC.",
             f"Cloakroom {numbers['version']}")
    page.activate("7 days", "link")
    page.at("/console/stats?days=7")
    assert page.focused().accessible_name == "7 days", "the focus is not lost"
    page.activate("Show figures")
    today = service.call("GET", "/admin/stats/daily?days=7", token=service.admin().token)["days"][-1]
    page.until("figures of seven days", lambda: len(rows(page)) == 7)
    assert rows(page)[0].split()[-1] == f"{today['users']:,}", rows(page)
    page.check("stats")
    page.back()
    page.at("/console/stats")
    page.see("30 days")


@pytest.mark.long
def test_statistics_of_a_year(page, service):
    page.sign_in(service.admin(), "/console/stats?days=365")
    page.see("New users")
    page.check("stats-365")
    page.activate("Show figures")
    page.until("figures of a year", lambda: len(rows(page)) == 365)


# The audit log


def test_the_audit_log(page, service):
    user = service.new_user(name=HOSTILE)
    service.call("PUT", f"/users/{user.id}", {"role": "admin"}, service.admin().token)
    page.sign_in(service.admin(), f"/console/audit?subject_id={user.id}")
    page.heading("Audit log")
    page.see("changed ", "role: user → admin", " signed in")
    page.see("<img src=x")  # the name of an account that is known by its id only
    page.check("audit")
    page.hold("GET /api/v1/admin/users")
    page.fill("Who", "ROOT")
    page.fill("On what", user.email[:5])
    page.release()
    page.at(f"/console/audit?subject_id={user.id}&actor_id={service.admin().id}")
    page.press(user.email[5:])  # what was being typed meanwhile is still there
    page.select("Action", "Change of an account")
    page.at(f"/console/audit?subject_id={user.id}&actor_id={service.admin().id}&action=user.update")
    until_rows(page, "one event", lambda shown: len(shown) == 1)
    event, = events(service, subject_id=user.id, action="user.update")
    page.activate(re.compile("Change of an account$"), "button")
    page.see(event["id"], event["request_id"], event["at"])
    page.activate("Only what happened to this", "link")
    page.at(f"/console/audit?subject_id={user.id}")
    until_rows(page, "sign-ins too", lambda shown: len(shown) > 1)
    page.activate("Export CSV")
    exported = saved(page, "audit-*.csv")
    assert {row["subject_id"] for row in exported} == {user.id}
    assert len(exported) == len(events(service, subject_id=user.id))


def test_the_audit_log_says_in_sentences_what_happened(page, service):
    user = service.new_user(name="Hanna Weber")
    token = service.admin().token
    for is_active in (False, True):
        service.call("PUT", f"/users/{user.id}", {"is_active": is_active}, token)
    service.call("POST", f"/users/{user.id}/password-link", token=token)
    service.call("POST", "/auth/request-password-reset", {"email": user.email})
    with pytest.raises(Refused, match="401"):
        service.sign_in(user.username, "a wrong password")
    service.sql("INSERT INTO audit_events (action, actor_id, subject_type, subject_id, details) SELECT "
                f"'file.upload', '{user.id}', 'user', '{user.id}', "
                """'{"count": 120, "hour": "2026-01-15T05:00:00.000000Z"}'""")
    # The service looks for the account after its answer.
    page.until("both links", lambda: len(events(service, subject_id=user.id, action="password.reset_request")) == 2)
    page.sign_in(service.admin(), f"/console/audit?period=60&subject_id={user.id}")
    sentences = ["root created Hanna Weber", "Hanna Weber signed in", "root deactivated Hanna Weber",
                 "root activated Hanna Weber", "root sent a link to choose a password to Hanna Weber",
                 "Somebody asked for a link to reset the password of Hanna Weber",
                 "Somebody tried to sign in as Hanna Weber Refused", "Hanna Weber uploaded 120 files"]
    until_rows(page, "sentences", lambda shown: all(any(" ".join(row.split()).startswith(sentence) for row in shown)
                                                    for sentence in sentences))
    [summed] = [row for row in rows(page) if "120 files" in row]
    assert "2026-01-15T05" not in summed and "Jan 15, 2026, 5:00" in summed
    # The row itself opens, but where it leads to an account.
    cell = page.driver.find_element(By.CSS_SELECTOR, "tbody tr td:nth-child(2)")
    ActionChains(page.driver).move_to_element(cell).click().perform()
    page.see("Event id")
    page.press(Keys.ESCAPE)
    page.driver.find_element(By.CSS_SELECTOR, f"tbody a[href$='{user.id}']").click()
    page.heading("Hanna Weber")


def test_a_period_of_the_audit_log_ends_now(page, service):
    user = service.new_user()
    service.sql("INSERT INTO audit_events (at, action, actor_id, subject_type, subject_id) SELECT "
                f"now() - make_interval(hours => n), 'auth.logout', '{user.id}', 'user', '{user.id}' "
                "FROM unnest('{2,30,200}'::int[]) n")
    page.sign_in(service.admin(), f"/console/audit?actor_id={user.id}&action=auth.logout")
    until_rows(page, "all", lambda shown: len(shown) == 3)
    for count, (period, minutes) in enumerate([("Last 24 hours", 1440), ("Last 7 days", 10080)], 1):
        page.select("Period", period)
        page.at(f"/console/audit?actor_id={user.id}&action=auth.logout&period={minutes}")
        until_rows(page, period, lambda shown: len(shown) == count)
        page.reload()  # or the browser would take what is typed next for more of the same word
        until_rows(page, period, lambda shown: len(shown) == count)
    page.activate("Export CSV")
    assert len(saved(page, "audit-*.csv")) == 2


def test_the_audit_log_names_files_and_folds_most_filters(page, service):
    user = service.new_user()
    file = service.upload(user, "a_plan <b>.txt")
    for minutes in (1440, 90):
        service.call("POST", f"/uploads/{file['id']}/links", {"expires_in_minutes": minutes}, user.token)
    page.sign_in(service.admin(), "/console/audit")
    page.screen(320)
    page.reload()
    page.see("a_plan <b>.txt")
    named = page.driver.find_element(By.CSS_SELECTOR, f"[title='{file['id']}']")
    assert named.text == "a_plan <b>.txt" and not page.named("On what")
    page.activate("More filters")
    page.fill("On what", file["id"])
    page.press(Keys.ENTER)
    until_rows(page, "three events", lambda shown: len(shown) == 3)
    page.see("works for: 1 day", "works for: 90 minutes", "shown in the browser: no")
    page.check("audit-file")
    page.screen(320)
    page.reload()
    page.see("a_plan <b>.txt")
    assert page.named("On what"), "they are open where one is set"
    page.activate(re.compile("Upload$"), "button")
    page.see("a_plan <b>.txt", file["id"])


def test_an_export_has_the_filters_that_are_shown_also_those_that_are_just_being_looked_up(page, service):
    user = service.new_user()
    log = (service.directory / "service.log").read_text(encoding="utf-8")
    before = log.count("GET /api/v1/admin/audit/export ")
    page.sign_in(service.admin(), "/console/audit")
    page.see(" signed in")
    page.fill("Who", user.username)
    page.run("""
        document.activeElement.blur();
        [...document.querySelectorAll("button")].find(({ innerText }) => innerText === "Export CSV").click();""")
    actors = {row["actor_id"] for row in saved(page, "audit-*.csv")}
    assert actors == {user.id}
    page.at(f"/console/audit?actor_id={user.id}")
    page.fill("Who", "nobody_has_this_name")
    page.activate("Export CSV")
    page.see("No account has this id, username, e-mail address or name.")
    page.until("end", lambda: not page.named("Exporting…"))
    log = (service.directory / "service.log").read_text(encoding="utf-8")
    assert log.count("GET /api/v1/admin/audit/export ") == before + 1


def test_names_come_also_when_the_first_answer_was_a_refusal(page, service):
    user = service.new_user(name="Zoe Later")
    page.cdp("Page.addScriptToEvaluateOnNewDocument", source="""
        const send = window.fetch;
        let refusals = 1;
        window.fetch = async (address, options) => (String(address).includes("/admin/audit?") && refusals-- > 0
            ? new Response("{}", { status: 503, headers: { "Retry-After": "1" } }) : send(address, options));""")
    page.sign_in(service.admin(), f"/console/audit?subject_id={user.id}")
    until_rows(page, "names", lambda shown: any("Zoe Later" in row for row in shown))


@pytest.mark.long
def test_the_audit_log_without_filters(page, service):
    page.sign_in(service.admin(), "/console/audit")
    page.see(" signed in")
    page.check("audit-all")
    page.fill("Who", "nobody_has_this_name")
    page.press(Keys.ENTER)
    page.see("No account has this id, username, e-mail address or name.")
    assert page.focused().accessible_name == "Who"
    page.check("audit-refused")
    page.fill("Who", "root")
    page.press(Keys.ENTER)
    page.at(f"/console/audit?actor_id={service.admin().id}")
    # The name stays, and so does what it means, also after a reload.
    for _ in range(2):
        page.until("name in the field", lambda: page.tab_to("Who").get_attribute("value") == "root")
        page.reload()
    page.activate("More filters")
    page.select("Outcome", "Success")
    page.at(f"/console/audit?actor_id={service.admin().id}&outcome=success")
    page.activate(re.compile("M [A-Z]"), "button")
    page.see("Event id")
    page.check("audit-event")


@pytest.mark.long
def test_older_events_and_times(page, service):
    user = service.new_user()
    service.sql("INSERT INTO audit_events (at, action, outcome, subject_type, subject_id, address) SELECT "
                f"'2025-03-01T10:00:00Z'::timestamptz + make_interval(secs => n), 'auth.login', 'failure', 'user', "
                f"'{user.id}', '2001:db8:1234:5678:9abc:def0:1234:5678' FROM generate_series(1, 120) n")
    page.sign_in(service.admin(), f"/console/audit?subject_id={user.id}&outcome=failure")
    until_rows(page, "newest fifty", lambda shown: len(shown) == 50 and ":02:00" in shown[0])
    page.check("audit-refusals")
    page.activate("Older", "link")
    until_rows(page, "the next fifty", lambda shown: len(shown) == 50 and ":01:10" in shown[0])
    page.reload()
    until_rows(page, "the same after a reload", lambda shown: len(shown) == 50 and ":01:10" in shown[0])
    page.activate("Older", "link")
    until_rows(page, "the last twenty", lambda shown: len(shown) == 20)
    page.see_no("Older")
    page.activate("Newest", "link")
    until_rows(page, "newest fifty", lambda shown: len(shown) == 50)
    # Day and month are the same, so that the order in which the browser asks for them does not matter.
    page.tab_to("To")
    page.press("0101", "2025", Keys.ARROW_RIGHT, "1200", "p")
    page.see("No event matches")
    assert "to=2025-01-01T" in page.path(), page.path()
    page.reload()
    page.see("No event matches")
    page.tab_to("From")
    page.press("01", Keys.ENTER)
    page.see("Complete this date and time.")
    # What the address says more exactly than the field shows stays as it is.
    page.open(f"/console/audit?subject_id={user.id}&to=2025-03-01T10:00:30.500Z")
    until_rows(page, "thirty", lambda shown: len(shown) == 30)
    page.select("Outcome", "Refused")
    page.at(f"/console/audit?subject_id={user.id}&to=2025-03-01T10%3A00%3A30.500Z&outcome=failure")
    page.open("/console/audit?actor_id=nonsense&from=never")
    page.see("Invalid UUID.", "Invalid timestamp.")


@pytest.mark.long
def test_all_names_of_a_page_are_shown_with_few_requests_and_times_say_their_zone(page, start_service):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_ADMIN="20")
    service.admin()
    service.add_users(100)
    service.sql("INSERT INTO audit_events (at, action, outcome, actor_id, subject_type, subject_id) SELECT "
                "timestamptz '2026-01-15T23:30:00Z' + make_interval(secs => n), 'user.update', 'success', "
                "a.id, 'user', b.id FROM generate_series(1, 50) n JOIN users a ON a.username = 'crowd_' || n "
                "JOIN users b ON b.username = 'crowd_' || 101 - n")
    page.cdp("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    page.sign_in(service.admin(), "/console/audit?action=user.update")
    until_rows(page, "names", lambda shown: len(shown) == 50 and all(row.count("Person ") == 2 for row in shown))
    page.see("Times on this page are in Asia/Tokyo, those of an export in UTC.", "Jan 16, 2026")
    page.activate(re.compile("M [A-Z]"), "button")
    page.see("Jan 16, 2026", "8:30:50 AM GMT+9", "2026-01-15T23:30:50.000000Z")
    page.press(Keys.ESCAPE)
    page.open("/console/audit?to=2026-01-15T23:30:40Z")
    page.until("local time", lambda: page.tab_to("To").get_attribute("value") == "2026-01-16T08:30:40")
    until_rows(page, "those until then", lambda shown: len(shown) == 40)
    page.cdp("Emulation.setTimezoneOverride", timezoneId="")


@pytest.mark.long
def test_an_account_is_found_by_its_name_among_many_that_contain_it(page, start_service):
    page.service = service = start_service()
    service.add_users(150)
    user = service.new_user(username="crowd")
    service.sql("UPDATE users SET created_at = now() - interval '1 year' WHERE username = 'crowd'")
    page.sign_in(service.admin(), "/console/audit")
    page.fill("Who", "Crowd")
    page.press(Keys.ENTER)
    page.at(f"/console/audit?actor_id={user.id}")
    # The name that lists show, if only one account has it.
    page.activate("More filters")
    page.fill("On what", "person 149")
    page.press(Keys.ENTER)
    page.at(f"/console/audit?actor_id={user.id}&subject_id={account_id(service, 'crowd149@example.com')}")
    service.sql("UPDATE users SET name = 'Twin' WHERE username IN ('crowd_1', 'crowd_2')")
    page.fill("On what", "twin")
    page.press(Keys.ENTER)
    page.see("Several accounts match.")


# Exports


def test_exporting_users(page, service):
    service.new_user(email="=cmd@export.example")
    user = service.new_user(email="one@export.example")
    page.sign_in(service.admin(), "/console/users")
    page.activate("Export CSV")
    page.see("All ")
    page.check("exports")
    page.press(Keys.ESCAPE)
    page.fill("Search", "one@export")
    page.see("1–1 of 1")
    page.activate("Export CSV")
    page.see("1 account, as filtered", " accounts")
    page.check("exports-filtered")
    page.activate("Download CSV")
    assert [row["id"] for row in saved(page, "users-*.csv")] == [user.id]


def test_an_export_may_take_longer_than_a_download_and_says_so_when_it_takes_too_long(page, service):
    page.sign_in(service.admin(), "/console/users")
    page.activate("Export CSV")
    page.slow_down(latency=2000)
    # What is waited for at most is over after half a second: first whatever it is, then only a minute.
    for condition, sentence in (("time >= 60_000", "The service took too long to answer."),
                                ("time === 60_000", "has been saved")):
        page.run("""
            const { setTimeout, XMLHttpRequest: { prototype } } = window, { send } = prototype;
            window.setTimeout = (act, time) => setTimeout(act, CONDITION ? 500 : time);
            prototype.send = function (body) {
                Object.assign(prototype, { send });
                window.setTimeout = setTimeout;
                send.call(this, body);
            };""".replace("CONDITION", condition))
        page.activate("Download CSV")
        page.see(sentence)
    page.slow_down()
    assert saved(page, "users-*.csv")


@pytest.mark.long
def test_an_export_asks_for_the_api_key(page, start_service):
    page.service = service = start_service(CLOAKROOM_API_KEY_ENABLED="true", CLOAKROOM_API_KEY="0123456789abcdef01")
    page.sign_in(service.admin(), "/console/users")
    page.activate("Export CSV")
    page.activate("Download CSV")
    page.see("This needs an API key.")
    page.check("exports-key")
    page.fill("API key", "a wrong key")
    page.press(Keys.ENTER)
    page.see("This API key was refused.")
    page.press(Keys.ESCAPE)
    page.see("Invalid API key")
    page.activate("Download CSV")
    page.fill("API key", "0123456789abcdef01")
    page.press(Keys.ENTER)
    assert saved(page, "users-*.csv")


@pytest.mark.long
def test_too_many_rows_are_explained(page, start_service):
    page.service = service = start_service(CLOAKROOM_EXPORT_MAX_ROWS="1")
    service.new_user()
    page.sign_in(service.admin(), "/console/users")
    page.activate("Export CSV")
    page.activate("Download CSV")
    page.see("Export too large. An export has at most 1 rows.")


# Who may be here


def test_who_is_no_administrator_is_told_so(page, service):
    user = service.new_user()
    page.sign_in(user, ADDRESSES[0])
    page.see_no("Audit log")
    for address in ADDRESSES:
        page.open(address)
        page.heading("For administrators")
    page.check("not-allowed")


@pytest.mark.long
def test_an_administrator_who_is_one_no_longer(page, service):
    user = service.new_user(role="admin")
    page.sign_in(user, "/console/users")
    page.see("root@example.com")
    service.call("PUT", f"/users/{user.id}", {"role": "user"}, service.admin().token)
    page.activate("Statistics", "link")
    page.see("Your session has ended.")
    page.fill("Password", PASSWORD)
    page.press(Keys.ENTER)
    page.heading("For administrators")


@pytest.mark.long
def test_administrators_who_need_a_second_factor_are_led_to_it(page, start_service):
    page.service = service = start_service(CLOAKROOM_ADMIN_SECOND_FACTOR="required")
    page.sign_in(service.admin(), "/console/users")
    for address in ADDRESSES:
        if address != "/console/users/new":  # it asks nothing when it is opened
            page.open(address)
            page.see("Administrators need a second factor here.")
    page.check("second-factor-required")
    page.activate("Set one up", "link")
    page.at("/console/account/second-factor")


@pytest.mark.long
def test_a_limit_is_waited_for(page, start_service):
    page.service = service = start_service(CLOAKROOM_RATE_LIMIT_ADMIN="12")
    page.sign_in(service.admin(), "/console/users")
    for _ in range(60):
        page.until("answer", lambda: re.search("root@example.com|Too many requests.", page.text()))
        if "Too many requests." in page.text():
            break
        page.reload()
        page.see("Sign out")
    else:
        pytest.fail("no limit")
    page.check("users-limit")
    page.see("root@example.com")
