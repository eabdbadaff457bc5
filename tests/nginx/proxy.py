"""A real nginx with the sample site scripts/nginx.conf, and requests to it byte by byte."""

import contextlib
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile

from service import wait_for

# The site's name in the sample.
NAME = "cloakroom.example"
SAMPLE = pathlib.Path("scripts/nginx.conf").read_text(encoding="utf-8")


def nginx(*arguments):
    """The program, which may be in a directory that is not in every user's PATH."""
    return {"args": ["nginx", *arguments], "env": os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin"}}


def free_ports(count):
    """Ports that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def form(content, media_type):
    """The headers and the body of an upload."""
    boundary = b"a-boundary"
    head = f'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: {media_type}\r\n\r\n'
    body = b"--" + boundary + b"\r\n" + head.encode() + content + b"\r\n--" + boundary + b"--\r\n"
    head = f"Content-Type: multipart/form-data; boundary=a-boundary\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def upload_of_ten_megabytes(token, media_type, headers=""):
    """The headers and the body of an upload of 10 MiB, the largest that is allowed."""
    return f"Authorization: Bearer {token}\r\n{headers}".encode() + form(b"x" * (10 << 20), media_type)


def exchange(connection, request):
    """Sends a request, and returns the head of the response and its body, until the connection ends."""
    answer = b""
    with connection, contextlib.suppress(OSError):
        # Who refuses a request may close the connection before it has read all of it.
        with contextlib.suppress(OSError):
            connection.sendall(request)
        while block := connection.recv(1 << 16):
            answer += block
    head, _, body = answer.decode(errors="replace").partition("\r\n\r\n")
    return head, body


def ask_directly(port, line, rest=b"\r\n", host=NAME):
    """Sends a request without TLS."""
    head = f"{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
    return exchange(socket.create_connection(("127.0.0.1", port), 40), head.encode() + rest)


def error_of(body):
    """The parts of an error body that programs and people look at."""
    return [json.loads(body)[name] for name in ("detail", "error_code", "reason")]


class Nginx:
    """An nginx with the sample site. Only addresses and certificate of the sample are replaced, and what a test names.
    It listens on loopback only."""

    def __init__(self, upstream_port, **replacements):
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=os.environ["NGINX_WORK"]))
        path = self.directory
        certificate, key = path / "site.pem", path / "site.key"
        made = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={NAME} -addext subjectAltName=DNS:{NAME}"
        subprocess.run(["openssl", *made.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
        self.tls = ssl.create_default_context(cafile=certificate)
        self.port, self.plain = free_ports(2)
        built = subprocess.run(**nginx("-V"), check=True, capture_output=True, text=True).stderr
        version = [int(part) for part in re.search(r"nginx/([\d.]+)", built)[1].split(".")]
        # As the page says for the versions that have the directive.
        http2, directive = ("", "http2 on;") if version >= [1, 25, 1] else (" http2", "")
        site = SAMPLE
        for old, new in {
            "listen [::]:80;": "",
            "listen 80;": f"listen 127.0.0.1:{self.plain};",
            "listen [::]:443 ssl http2;": "",
            "listen 443 ssl http2;": f"listen 127.0.0.1:{self.port} ssl{http2};",
            "# http2 on;": directive,
            "server 127.0.0.1:8000;": f"server 127.0.0.1:{upstream_port};",
            "/var/log/nginx/access.log": str(path / "access.log"),
            "/etc/ssl/certs/cloakroom.example.pem": str(certificate),
            "/etc/ssl/private/cloakroom.example.key": str(key),
            **replacements,
        }.items():
            assert old in site, old
            site = site.replace(old, new)
        temporary = ["client_body", "proxy"]
        temporary += [name for name in ("fastcgi", "scgi", "uwsgi") if f"--without-http_{name}_module" not in built]
        paths = "\n".join(f"{name}_temp_path {path}/{name};" for name in temporary)
        config = path / "nginx.conf"
        config.write_text(f"daemon off;\nmaster_process off;\npid {path}/pid;\nevents {{}}\n"
                          f"http {{\naccess_log off;\n{site}\n{paths}\n}}\n")
        with open(path / "log", "wb") as log:
            self._process = subprocess.Popen(**nginx("-p", path, "-e", "stderr", "-c", config), stderr=log)
        wait_for("nginx that answers", self._answers)

    def _answers(self):
        assert self._process.poll() is None, self.log()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def log(self, name="log"):
        """What it has logged: errors, or the requests in `access.log`."""
        return (self.directory / name).read_text(encoding="utf-8")

    def close(self):
        """Ends it."""
        self._process.kill()
        self._process.wait()

    def connect(self, source="127.0.0.1"):
        """A connection with TLS from this address."""
        connection = socket.create_connection(("127.0.0.1", self.port), 40, (source, 0))
        return self.tls.wrap_socket(connection, server_hostname=NAME)

    def ask(self, target, rest=b"\r\n", method="GET", source="127.0.0.1"):
        """Sends a request on a connection of its own. Returns the head of the response in lower case, and the body."""
        head = f"{method} {target} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n"
        head, body = exchange(self.connect(source), head.encode() + rest)
        return head.lower(), body
