"""What the sample site scripts/nginx.conf does in front of the service: the tests behind scripts/test-nginx."""

import base64
import os
import pathlib
import re
import ssl
import subprocess
import threading
import unittest
import uuid

from proxy import NAME, SAMPLE, Nginx, ask_directly, error_of, exchange, upload_of_ten_megabytes
from service import Service, wait_for

UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
# The sample lets bodies of 11 MiB through, a little more than the largest upload.
TOO_LARGE = b"Content-Length: 1200000000\r\n\r\n"
HEADERS_OF_AN_ERROR = [
    "content-type: application/json",
    "x-content-type-options: nosniff",
    "referrer-policy: no-referrer",
    "strict-transport-security: max-age=31536000",
    "cache-control: no-store",
]


class TheSample(unittest.TestCase):
    """Each test has a service of its own, with these settings, and an nginx in front of it."""

    def start(self, settings=None, **replacements):
        """Starts both. They end with the test."""
        settings = {"CLOAKROOM_TRUSTED_PROXIES": "127.0.0.1"} | (settings or {})
        directory = pathlib.Path(os.environ["NGINX_WORK"]) / uuid.uuid4().hex
        service = Service(os.environ["NGINX_BINARY"], os.environ["NGINX_POSTGRES"], directory, settings)
        self.addCleanup(service.close)
        service.start()
        site = Nginx(service.port, **replacements)
        self.addCleanup(site.close)
        return service, site

    def has_status(self, head, status):
        """Fails unless a response begins with this status."""
        self.assertTrue(head.lower().startswith(f"http/1.1 {status} "), f"{status}: {head}")

    def has_headers_of_an_error(self, head, *more):
        """Fails unless a response has the headers that the service's own errors have."""
        for header in [*HEADERS_OF_AN_ERROR, *more]:
            self.assertIn(header, head.splitlines())

    def test_what_comes_without_tls_is_sent_to_the_same_path_with_it_and_http2_is_negotiated(self):
        _, site = self.start()
        for host in (NAME, "evil.example"):
            head, _ = ask_directly(site.plain, "POST /a%2Fb?c=d", host=host)
            self.has_status(head, 308)
            self.assertIn(f"Location: https://{NAME}/a%2Fb?c=d", head.splitlines())
        site.tls.set_alpn_protocols(["h2", "http/1.1"])
        with site.connect() as connection:
            self.assertEqual(connection.selected_alpn_protocol(), "h2")

    def test_it_serves_the_api_over_tls_and_says_so_to_browsers(self):
        on = {"proxy_request_buffering off;": "proxy_request_buffering on;"}
        for server, replacements in (("builtin", {}), ("rouille", on)):
            service, site = self.start({"CLOAKROOM_HTTP_SERVER": server}, **replacements)
            ann = service.new_user()
            head, body = site.ask("/healthz")
            self.has_status(head, 200)
            self.assertIn("ok", body)
            self.assertIn("\r\nstrict-transport-security: max-age=31536000", head)
            # A form around the largest file passes, and its client is the one that nginx saw, whatever it wrote itself.
            headers = f"X-Forwarded-For: 203.0.113.9\r\nX-Request-ID: {UNKNOWN_ID}\r\n"
            upload = upload_of_ten_megabytes(ann.token, "text/plain", headers)
            head, body = site.ask("/api/v1/uploads", upload, "POST", "127.0.0.2")
            self.has_status(head, 201)
            log = service.directory / "service.log"
            wait_for("line", lambda: UNKNOWN_ID in log.read_text())
            line = next(line for line in log.read_text().splitlines() if UNKNOWN_ID in line)
            self.assertIn("client=127.0.0.2 ", line)
            self.assertEqual(service.call("GET", "/uploads", token=ann.token)["total"], 1)
            self.has_status(site.ask("/api/v1/uploads", TOO_LARGE, "POST")[0], 413)

    def test_it_lets_no_form_of_the_metrics_through(self):
        # Nothing but nginx stands between a client and the metrics here.
        service, site = self.start({"CLOAKROOM_METRICS": "any"})
        hidden = ("/metrics /metrics/ /metrics?x=1 /metrics/?x=1 /metrics#x /metrics/#x /metrics// /metrics/. "
                  "/metrics/x/.. //metrics //metrics/ /./metrics/ /x/../metrics/ /x/%2e%2e/metrics/ /%6detrics "
                  "/%6Detric%73/ /metrics%2f /metrics%2F%2f /metrics%3f https://cloakroom.example/metrics/")
        for target in hidden.split():
            head, body = site.ask(target)
            self.has_status(head, 404)
            # The answer is nginx's own, so the request never reached the service.
            self.assertNotIn("x-request-id", head, target)
        self.assertIn("content-type: application/json", head.splitlines())
        self.assertEqual(error_of(body), error_of(ask_directly(service.port, "GET /nope")[1]))
        for target in ("/%256detrics", "/metrics%00", "/METRICS/"):
            self.assertNotIn("cloakroom_requests_total", site.ask(target)[1], target)
        self.assertIn("cloakroom_requests_total", ask_directly(service.port, "GET /metrics")[1])

    def test_what_it_answers_by_itself_looks_like_the_services_own_errors(self):
        service, site = self.start()
        long = "a" * 17_000
        # Each request goes to nginx, which refuses it, and another one to the service, which refuses it for the same
        # reason.
        for method, target, rest, status in [
            ("POST", "/api/v1/auth/login", TOO_LARGE, 413),
            ("POST", "/api/v1/auth/login", b"Content-Length: x\r\n\r\n", 400),
            ("G(T", "/", b"\r\n", 400),
            ("GET", "/healthz", f"X-Long: {long}\r\n\r\n".encode(), 431),
            ("GET", f"/{long}", b"\r\n", 431),
        ]:
            with self.subTest(f"{status} {method} {target:.20}"):
                head, body = site.ask(target, rest, method)
                own_head, own_body = ask_directly(service.port, f"{method} {target}", rest)
                self.has_status(own_head, status)
                self.has_status(head, status)
                self.assertEqual(error_of(body), error_of(own_body))
                self.has_headers_of_an_error(head)
                # This is nginx's own.
                self.assertNotIn("x-request-id", head)
                self.assertNotIn("\r\nretry-after:", head)
        service.stop()
        head, body = site.ask("/api/v1/auth/me")
        self.has_status(head, 502)
        self.has_headers_of_an_error(head, "retry-after: 5")
        self.assertEqual(error_of(body), ["Service temporarily unavailable", "SERVICE_UNAVAILABLE", "UNAVAILABLE"])

    def test_it_closes_idle_connections_to_the_service_well_before_the_service_does(self):
        # Where the service closes an idle connection at the moment in which nginx reuses it, the client gets a 502.
        command = [os.environ["NGINX_BINARY"], "config"]
        unused = {"CLOAKROOM_DATABASE_URL": "postgres://db.example.com/x"}
        shown = subprocess.run(command, env=unused, check=True, capture_output=True, text=True).stdout
        ours = int(re.search(r"^CLOAKROOM_IDLE_TIMEOUT_SECONDS=(\d+)", shown, re.MULTILINE)[1])
        upstream = re.search(r"upstream cloakroom {(.*?)\n}", SAMPLE, re.DOTALL)[1]
        setting = re.search(r" keepalive_timeout (\d+)s;", upstream)
        # nginx closes them after 60 s where nothing is said.
        self.assertLessEqual(2 * int(setting[1] if setting else 60), ours)

    def test_it_bounds_the_requests_of_a_network_and_of_its_site_at_a_time(self):
        # A header says what the address of the client is, as if it were that.
        status = "limit_conn_status 429;"
        _, site = self.start(None, **{
            status: f"{status} set_real_ip_from 127.0.0.1; real_ip_header X-Test;",
            "client_body_timeout 10s;": "client_body_timeout 90s;",
            "proxy_request_buffering off;": "proxy_request_buffering on;",
        })

        def get(client):
            return site.ask("/healthz", f"X-Test: {client}\r\n\r\n".encode())

        def has(client, status):
            return get(client)[0].startswith(f"http/1.1 {status} ")

        def begin(client):
            # nginx waits for the body.
            connection = site.connect()
            head = f"POST /api/v1/auth/login HTTP/1.1\r\nHost: {NAME}\r\nX-Test: {client}\r\nContent-Length: 9\r\n\r\n"
            connection.sendall(head.encode())
            return connection

        def waits(connection):
            connection.setblocking(False)
            try:
                connection.recv(1)
            except ssl.SSLWantReadError:
                return True
            except OSError:
                pass
            connection.close()
            return False

        for clients, same, other in [
            (["192.0.2.1"] * 2, "192.0.2.1", "192.0.2.2"),
            (["2001:db8:1::1", "2001:db8:1::2"], "2001:db8:1::3", "2001:db8:1:1::1"),
            (["2001:db8:2:1::1", "2001:db8:2:2::1"], "2001:db8:2:3::1", "2001:db8:3::1"),
        ]:
            # Two networks have as many as a site, and two clients of one network as many as that.
            each = 64 if clients[0].startswith("2001:db8:2:") else 32
            connections = [begin(client) for client in clients for _ in range(each - 1)]
            self.assertTrue(has(same, 200), same)

            def reaches_the_limit():
                # nginx still counts a request for a moment after its end, so one of these may be refused for that.
                connections.extend(begin(same) for _ in range(4))
                return has(same, 429)

            def are_as_many_as_allowed():
                connections[:] = filter(waits, connections)
                return len(connections) == 2 * each

            wait_for("refusal", reaches_the_limit)
            wait_for("number of connections", are_as_many_as_allowed)
            head, body = get(same)
            self.has_headers_of_an_error(head, "retry-after: 5")
            self.assertEqual(error_of(body), ["Rate limit exceeded", "RATE_LIMITED", "RATE_LIMITED"])
            self.assertTrue(has(other, 200), other)
            for connection in connections:
                connection.close()
            wait_for("request that is answered", lambda: has(same, 200))

    def test_bodies_that_come_a_byte_at_a_time_hold_no_connection_for_long(self):
        # nginx's own limit is one for the time between two bytes.
        _, site = self.start()
        head = f"POST /api/v1/auth/login HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 100000\r\n\r\n".encode()
        clients = []
        # As many as nginx has connections unless it is told: 512, of addresses with 64 each.
        for number in range(512):
            try:
                clients.append(site.connect(f"127.0.0.{2 + number // 64}"))
                clients[-1].sendall(head)
            except OSError:
                break
        # Each of them takes another connection, to the service.
        self.assertGreater(len(clients), 200)
        over = threading.Event()
        self.addCleanup(over.set)

        def drip():
            """Sends a byte a second on each connection, until nginx has closed all of them or the test ends."""
            while clients and not over.wait(1):
                for client in list(clients):
                    try:
                        client.sendall(b"x")
                    except OSError:
                        client.close()
                        clients.remove(client)

        threading.Thread(target=drip, daemon=True).start()

        def is_served():
            # Another client may be refused while there is no connection left for it.
            try:
                return " 200 ok" in site.ask("/healthz")[0]
            except OSError:
                return False

        wait_for("answer to another client", is_served)
        wait_for("end of all", lambda: not clients)

    def test_what_the_service_refuses_before_a_body_reaches_the_client_while_it_still_sends(self):
        service, site = self.start()
        ann = service.new_user()
        for token, media_type, status in [("none", "text/plain", 401), (ann.token, "video/mp4", 415)]:
            head, _ = site.ask("/api/v1/uploads", upload_of_ten_megabytes(token, media_type), "POST")
            self.has_status(head, status)

    def test_what_came_of_an_upload_before_a_break_is_kept_and_with_buffering_only_whole_pieces(self):
        smaller = {"client_max_body_size 1025m;": "client_max_body_size 2m;"}
        on = {"proxy_request_buffering off;": "proxy_request_buffering on;"}
        service, site = self.start(None, **smaller)
        buffering = Nginx(service.port, **smaller, **on)
        self.addCleanup(buffering.close)
        ann = service.new_user()
        headers = f"Tus-Resumable: 1.0.0\r\nAuthorization: Bearer {ann.token}\r\n"
        content = b"".join(b"%07d\n" % number for number in range(5 << 17))

        def begin(at):
            metadata = base64.b64encode(b"a.txt").decode()
            rest = f"{headers}Upload-Length: {len(content)}\r\nUpload-Metadata: filename {metadata}\r\n\r\n"
            head, _ = at.ask("/api/v1/uploads/partial", rest.encode(), "POST")
            self.has_status(head, 201)
            return re.search("\r\nlocation: (.*)\r\n", head)[1]

        def offset(path):
            head, _ = site.ask(path, f"{headers}\r\n".encode(), "HEAD")
            return int(re.search("\r\nupload-offset: (.*)\r\n", head)[1])

        def piece(offset, length):
            return (f"{headers}Content-Type: application/offset+octet-stream\r\nUpload-Offset: {offset}\r\n"
                    f"Content-Length: {length}\r\n\r\n").encode()

        def breaks(at, path):
            """Sends half of a piece of 2 MiB, after which the connection ends."""
            with at.connect() as connection:
                head = f"PATCH {path} HTTP/1.1\r\nHost: {NAME}\r\n".encode()
                connection.sendall(head + piece(offset(path), 2 << 20) + content[offset(path):][:1 << 20])

        path = begin(site)
        breaks(site, path)
        log = service.directory / "service.log"
        wait_for("end of the request", lambda: f"PATCH {path}" in log.read_text())
        came = offset(path)
        self.assertGreater(came, 1 << 19)
        # With buffering nothing of a piece arrives before it is whole.
        breaks(buffering, path)
        wait_for("line of the request", lambda: "PATCH" in buffering.log("access.log"))
        self.assertEqual(offset(path), came)
        self.has_status(site.ask(path, piece(came, 4 << 20), "PATCH")[0], 413)
        for at, size in [(site, 2 << 20), (buffering, 2 << 20), (site, len(content) - came - (4 << 20))]:
            head, _ = at.ask(path, piece(came, size) + content[came:came + size], "PATCH")
            self.has_status(head, 204)
            came += size
        found = re.search("\r\ncontent-location: /api/v1(.*)\r\n", head)[1]
        self.assertEqual(service.call("GET", f"{found}/download", token=ann.token), content)

    def test_requests_are_logged_but_for_the_tokens_of_links_and_the_values_of_queries(self):
        service, site = self.start()
        ann = service.new_user()
        file = service.upload(ann, "a.txt")
        link = service.call("POST", f"/uploads/{file['id']}/links", {}, ann.token)["url"]
        token = link.removeprefix("/api/v1/links/")
        encoded = "".join(f"%{byte:02x}" for byte in token.encode())
        half, few, letters = token[:20], token[:7], "X" * 40
        of_upload = f"/api/v1/uploads/{UNKNOWN_ID}/links/{UNKNOWN_ID}"
        hidden = "/api/v1/links/(not-logged)"
        # The method and the target of a request, and what is logged of the target.
        cases = [
            ("GET", link, hidden),
            ("GET", f"{link}/", hidden),
            ("GET", f"{link}/report.txt", hidden),
            ("POST", f"{link}/files", hidden),
            ("GET", f"{link}?a={token}", hidden),
            ("GET", f"{link}#x", hidden),
            ("GET", f"/api/v1/links/{half}", hidden),
            ("GET", f"/api/v1/%6cinks/{token}", "/api/v1/%6cinks/(not-logged)"),
            ("GET", f"/api/v1/%6CINKS/{few}", "/api/v1/%6CINKS/(not-logged)"),
            ("GET", f"//api/v1/links//{token}", "//api/v1/links/(not-logged)"),
            ("GET", f"/api/v1/links%2F{half}", "/api/v1/links%2F(not-logged)"),
            ("GET", f"/links%252f{few}", "/links%252f(not-logged)"),
            ("GET", f"/API/V1/LINKS/{half}", "/API/V1/LINKS/(not-logged)"),
            ("GET", f"https://{NAME}{link}", f"https://{NAME}{hidden}"),
            ("GET", f"/links/{UNKNOWN_ID}/{few}", "/links/(not-logged)"),
            ("GET", f"/{token}", "/(not-logged)"),
            ("GET", f"/a/{token}/b", "/a/(not-logged)"),
            ("GET", f"/a/{encoded}", "/a/(not-logged)"),
            ("GET", f"/api/v1/users?{letters}", "/api/v1/users?(not-logged)"),
            ("GET", "/api/v1/users?email=ann", "/api/v1/users?(not-logged)"),
            ("GET", f"/api/v1/uploads#{letters}", "/api/v1/uploads#(not-logged)"),
            ("GET", "/a?b=/api/v1/links/c", "/a?(not-logged)"),
            ("GET", "/api/v1/auth/me", "/api/v1/auth/me"),
            ("GET", "/api/v1/links/", "/api/v1/links/"),
            ("DELETE", of_upload, of_upload),
            (letters, "/healthz", "/healthz"),
        ]
        for method, target, _ in cases:
            site.ask(target, method=method)
        # Lines that nginx cannot read.
        unreadable = [
            (token, "(not-logged)"),
            (f"/{token}", "/(not-logged)"),
            (f"{token} HTTP/1.1", "(not-logged) HTTP/1.1"),
            (f"/api/v1/links/{few}", hidden),
            ("/healthz", "/healthz"),
        ]
        for line, _ in unreadable:
            exchange(site.connect(), f"{line}\r\n\r\n".encode())
        # Headers have the token, as some programs send it as a name; nginx itself refuses some; and one is without TLS.
        named = base64.b64encode(f"{token}:".encode()).decode()
        others = [
            ("/healthz", f"Authorization: Basic {named}\r\n\r\n".encode()),
            ("/healthz", f"Referer: https://{NAME}{link}\r\n\r\n".encode()),
            (link, b"no header\r\n\r\n"),
            (link, TOO_LARGE),
            (f"{link}/{'x' * 40_000}", b"A: b\r\n\r\n"),
        ]
        for target, rest in others:
            site.ask(target, rest, "POST")
        ask_directly(site.plain, f"GET {link}")
        # Errors, because there is no service.
        service.stop()
        stopped = [link, f"{link}/files", f"/api/v1/%6Cinks/{token}", f"/{token}", f"/api/v1/link/{token}/x",
                   f"/{encoded}", f"/links%252f{half}", f"/api/v1/uploads/{'0' * 8}/download?view={half}",
                   f"/api/v1/uploads/zip?view={half}", "/healthz"]
        for target in stopped:
            self.has_status(site.ask(target)[0], 502)
        requests = len(cases) + len(unreadable) + len(others) + 1 + len(stopped)
        wait_for("line of each request", lambda: len(site.log("access.log").splitlines()) >= requests)
        lines = site.log("access.log").splitlines()
        logged = [line.split('"')[1] for line in lines]
        expected = [f"{method} {shown} HTTP/1.1" for method, _, shown in cases] + [shown for _, shown in unreadable]
        self.assertEqual(logged[: len(expected)], expected)
        self.assertIn('" 200 ', lines[0])
        me = [target for _, target, _ in cases].index("/api/v1/auth/me")
        self.assertIn('" 401 ', lines[me])
        errors = site.log()
        for log in ("".join(lines), errors):
            for part in (half, token[23:], encoded):
                self.assertNotIn(part, log)
        # Errors of other paths are still logged whole.
        self.assertIn('"GET /healthz HTTP/1.1"', errors)
        # Every site of the sample has the log that leaves them out, and not nginx's own.
        of_sites = SAMPLE.count("    access_log /var/log/nginx/access.log cloakroom;\n")
        self.assertEqual(SAMPLE.count("\nserver {"), of_sites)


if __name__ == "__main__":
    unittest.main(verbosity=2)
