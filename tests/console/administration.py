"""What the tests of the pages for administrators share."""

import csv
import io

HOSTILE = "<img src=x onerror=alert(1)> \u05e9\u05dc\u05d5\u05dd " + "long " * 30
ADDRESSES = ("/console/users", "/console/users/new", "/console/users/00000000-0000-0000-0000-000000000000",
             "/console/stats", "/console/audit")


def rows(page):
    """The texts of the rows of the first table that is shown."""
    return page.run("const table = [...document.querySelectorAll('main table')].find(t => t.checkVisibility());"
                    "return table ? [...table.tBodies[0].rows].map(row => row.innerText) : []")


def until_rows(page, what, fits):
    """Waits until the rows of the list are as they should be."""
    page.until(what, lambda: fits(rows(page)))


def saved(page, pattern):
    """Waits for the one file that the browser has saved under such a name, and returns the rows of its CSV."""
    page.see("has been saved")
    page.until(f"file {pattern}", lambda: len(list(page.downloads.glob(pattern))) == 1)
    file, = page.downloads.glob(pattern)
    contents = file.read_bytes()
    assert contents.startswith(b"\xef\xbb\xbf"), "by which Excel sees that it is UTF-8"
    return list(csv.DictReader(io.StringIO(contents.decode("utf-8-sig"))))


def events(service, **filters):
    """The events of the audit log that match, newest first."""
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return service.call("GET", f"/admin/audit?{query}", token=service.admin().token)["events"]


def account_id(service, email):
    """The id of the account with this e-mail address."""
    user, = service.call("GET", f"/users?email={email}", token=service.admin().token)["users"]
    return user["id"]


def user_of(service, account):
    """The account as the API shows it."""
    return service.call("GET", f"/users/{account.id}", token=service.admin().token)
