"""What each test of the console is given: `page`, a tab of a browser, and `service`, the real service. The services of
a file share a browser; each test has a tab of its own, and what it leaves in the browser's log is judged."""

import os
import pathlib
import shutil

import pytest

import browser
from service import Service

collect_ignore = ["browser.py", "service.py", "wire.py"]  # no tests
WORK = pathlib.Path(os.environ["CONSOLE_WORK"])  # of scripts/test-console
# Two processes run the tests, each with a browser and services of its own.
OWN = WORK / os.environ.get("PYTEST_XDIST_WORKER", "alone")


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="also the tests that are marked as long")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long and rarely finds anything; only with --all")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--all"):
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """After a failure, a picture of the page is kept."""
    report = yield
    if report.when == "call" and report.failed and (page := item.funcargs.get("page")):
        page.screenshot(f"failure-{item.name}.png")
    return report


@pytest.fixture(scope="session")
def driver():
    """The browser."""
    downloads = OWN / "downloads"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir(parents=True)
    driver = browser.start(downloads)
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def start_service():
    """Starts a service with settings of its own, such as `start_service(CLOAKROOM_RATE_LIMIT_AUTH="2")`, which runs
    until all tests have ended."""
    services = []

    def start(**settings):
        directory = OWN / "services" / str(len(services))
        service = Service(os.environ["CONSOLE_BINARY"], os.environ["CONSOLE_POSTGRES"], directory, settings)
        services.append(service)
        service.start()
        return service

    shutil.rmtree(OWN / "services", ignore_errors=True)
    yield start
    for service in services:
        service.close()


@pytest.fixture(scope="module")
def service(start_service):
    """The service of a file of tests."""
    return start_service()


@pytest.fixture
def page(service, driver, request):
    """A tab that shows nothing yet. After the test nothing may have been requested from elsewhere, and no error may be
    on the console."""
    first = driver.window_handles[0]
    browser.drain(driver)
    for file in (OWN / "downloads").iterdir():
        file.unlink()
    output = WORK.parent / "console"
    axe = (WORK / "node/node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
    screens = browser.ALL_SCREENS if request.config.getoption("--all") else browser.SCREENS
    page = browser.Page(driver, service, output, axe, OWN / "downloads", screens)
    page.screen(browser.WIDTHS[-1])
    page.cdp("Storage.clearDataForOrigin", origin=service.url, storageTypes="local_storage")
    yield page
    try:
        browser.check_logs(driver, [page.service.url, *page.others])
    finally:
        for handle in driver.window_handles:
            if handle != first:
                driver.switch_to.window(handle)
                driver.get("about:blank")  # it gives its session to no tab of the next test
                driver.close()
        driver.switch_to.window(first)
