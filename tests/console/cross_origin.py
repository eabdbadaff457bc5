"""Pages of other origins: what a browser lets them send to the service and read of its answers (Fetch standard, CORS
protocol)."""

import http.server
import threading

import pytest

import browser

# What tools that are built into pages send beside the headers of the page itself.
HEADERS = {
    "Content-Type": "application/json", "sentry-trace": "1-2-1", "baggage": "a=b", "traceparent": "00-1-2-01",
    "X-Requested-With": "XMLHttpRequest", "Cache-Control": "no-cache", "X-CSRF-Token": "x", "x-client-info": "x",
    "x-datadog-trace-id": "1", "Want-Repr-Digest": "sha-256=1", "ngrok-skip-browser-warning": "1",
    "Idempotency-Key": "k", "X-API-Key": "k",
}

FETCH = """
const [url, method, headers, credentials, done] = arguments;
fetch(url, { method, headers, credentials }).then(
    async (answer) => done([answer.status, answer.headers.get("X-Request-ID") !== null, await answer.text()]),
    (error) => done([error.name]));
"""


@pytest.fixture(scope="module")
def origin():
    """The origin of a page that is empty."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><link rel=icon href=data:,><title>Another origin</title>")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def fetch(page, origin):
    """Fetches from the page of the other origin: status, whether a header of the service can be read, and text; or the
    name of the error if the browser hides the answer. A browser says on its console what it hides."""
    page.driver.get(origin)

    def fetch(service, path, method="GET", headers=HEADERS, credentials="include"):
        url = f"{service.url}/api/v1{path}"
        return page.driver.execute_async_script(FETCH, url, method, headers, credentials)

    yield fetch
    browser.drain(page.driver)


def test_a_page_of_a_listed_origin_sends_any_header_and_reads_every_answer(fetch, origin, start_service):
    service = start_service(CLOAKROOM_CORS_ORIGINS=f"https://app.example.com:443,{origin}")
    user = service.new_user()
    signed_in = HEADERS | {"Authorization": f"Bearer {user.token}"}
    for credentials in ("include", "omit"):
        for path, method, headers, status in [
            ("/auth/me", "GET", signed_in, 200),
            ("/auth/logout", "POST", HEADERS, 401),
            ("/auth/login", "POST", HEADERS, 422),
            ("/users/test-only/count", "GET", HEADERS, 404),
            ("/no/such/path", "PATCH", HEADERS, 404),
            ("/no/such/path", "GET", {}, 404),
            ("/links/unknown", "GET", HEADERS, 404),
        ]:
            found = fetch(service, path, method, headers, credentials)
            assert found[:2] == [status, True], (path, method, credentials)
    # A method that the path has not is refused before it is sent.
    assert fetch(service, "/auth/me", "DELETE") == ["TypeError"]


def test_pages_of_other_origins_read_nothing_and_where_all_may_read_nobody_sends_credentials(
        fetch, origin, start_service):
    listed = start_service(CLOAKROOM_CORS_ORIGINS="https://app.example.com")
    anyone = start_service(CLOAKROOM_CORS_ORIGINS="*")
    for path in ("/auth/me", "/no/such/path"):
        for headers in (HEADERS, {}):
            assert fetch(listed, path, headers=headers) == ["TypeError"]
            assert fetch(anyone, path, headers=headers) == ["TypeError"]
            assert fetch(anyone, path, headers=headers, credentials="omit")[0] in (401, 404)
