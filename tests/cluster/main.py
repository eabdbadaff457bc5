"""The test behind scripts/test-cluster, run from the root of the repository. Its `--help` says what it does."""

import contextlib
import fcntl
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter

import processes
from client import ERRORS
from clients import Refreshes, SignIns
from comparison import DISAGREEMENTS, Comparison
from garage import BUCKET, REGION, Garage
from load import USER_QUOTA, Behind, Files, Quota, clients
from servers import Postgres, Service, remove, run, wait_until

# Every kind of request succeeds again so soon after each step, in seconds.
MAX_RETURN = 10
# How long what was killed is away, in seconds.
OUTAGE = 4
# How long the load goes on between two steps, in seconds.
CALM = 3


class Balancer:
    """HAProxy with the sample of the pages, on other ports."""

    def __init__(self, directory, ports, store_ports):
        port, self.store_port = processes.free_port(), processes.free_port()
        self.url, self.log = f"https://127.0.0.1:{port}", directory / "haproxy.log"
        certificate, settings = directory / "haproxy.pem", directory / "haproxy.cfg"
        text = pathlib.Path("scripts/haproxy.cfg").read_text(encoding="utf-8")
        old_ports, addresses = [8001, 8002, 8003, 3900, 3901, 3902, 3903], [*ports, self.store_port, *store_ports]
        changes = [(f"127.0.0.1:{old}\n", f"127.0.0.1:{new}\n") for old, new in zip(old_ports, addresses, strict=True)]
        changes += [("bind :443", f"bind 127.0.0.1:{port}"), ("/etc/haproxy/cloakroom.example.pem", str(certificate))]
        changes += [("log /dev/log local0", "log stdout format raw local0")]
        changes += [(f"    {line}\n", "") for line in ("user haproxy", "group haproxy", "chroot /var/lib/haproxy")]
        changes += [("stats socket /run/haproxy/admin.sock", f"stats socket {directory}/haproxy.sock")]
        for old, new in changes:
            if text.count(old) != 1:
                raise RuntimeError(f"scripts/haproxy.cfg has {old!r} {text.count(old)} times")
            text = text.replace(old, new)
        settings.write_text(text, encoding="utf-8")
        names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-keyout", directory / "key.pem", "-out", directory / "cert.pem"]
        run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files])
        certificate.write_text((directory / "cert.pem").read_text() + (directory / "key.pem").read_text())
        os.environ["SSL_CERT_FILE"] = str(directory / "cert.pem")
        run(["haproxy", "-c", "-f", settings])
        self.process = processes.start(["haproxy", "-db", "-f", settings], self.log)


class Cluster:
    """Everything, and the load. `binaries` are the build of this commit, and one with one more migration."""

    def __init__(self, binaries, garage, directory, step):
        self.binaries, self.directory, self.step = binaries, directory, step
        self.garage = Garage(garage, directory / "garage")
        self.ports = [processes.free_port() for _ in range(3)]
        self.over, self.steps, self.clients, self.services = threading.Event(), [], [], []
        self.signing_secret = secrets.token_urlsafe(48)

    def serve(self, number, binary):
        """Starts a process, as on a host of its own: with a data directory that no other has."""
        home = self.directory / f"process{number + 1}"
        home.mkdir(exist_ok=True)
        store = f"s3://{BUCKET}/files?endpoint=http://127.0.0.1:{self.balancer.store_port}&region={REGION}"
        settings = {
            "CLOAKROOM_JWT_SECRET": self.signing_secret,
            "CLOAKROOM_STORAGE_URL": store,
            "CLOAKROOM_STORAGE_ACCESS_KEY": self.garage.key,
            "CLOAKROOM_STORAGE_SECRET_KEY": self.garage.secret,
            "CLOAKROOM_USER_STORAGE_QUOTA": str(USER_QUOTA),
            "CLOAKROOM_TRUSTED_PROXIES": "127.0.0.1",
            "CLOAKROOM_DATABASE_POOL_SIZE": "8",
        }
        return Service(binary, home, self.hosts, self.ports[number], **settings)

    def start(self, stack):
        self.step("three nodes of the store, and two servers of PostgreSQL")
        stack.callback(self.garage.stop)
        self.garage.start()
        remove(self.directory / "postgres")
        stack.callback(remove, self.directory / "postgres")
        self.primary = Postgres(self.directory / "postgres")
        stack.callback(remove, self.primary.standby_home)
        self.standby = self.primary.add_standby()
        self.hosts = (self.primary, self.standby)
        self.balancer = Balancer(self.directory, self.ports, [node.port for node in self.garage.nodes])
        stack.callback(processes.stop, self.balancer.process)
        self.step("three processes, and the load")
        stack.callback(lambda: [service.stop() for service in self.services])
        self.services += [self.serve(number, self.binaries[0]) for number in range(3)]
        for service in self.services:
            service.wait()
        time.sleep(2)  # Until HAProxy knows that they are ready.
        self.primary.sql("ALTER TABLE audit_events DISABLE TRIGGER audit_events_own_changes")
        self.clients = clients(self.balancer.url, self.over)
        stack.callback(self.over.set)
        for client in self.clients:
            client.start()
        self.calm("the load begins")

    def calm(self, name):
        """Waits until every kind of request has succeeded since now, and a little longer."""
        began = time.monotonic()
        kinds = {client.kind for client in self.clients if client.kind != "sign-in with a code"}
        pending = lambda: kinds - {
            answer.kind for client in self.clients for answer in list(client.answers)
            if answer.is_good and answer.began >= began
        }
        try:
            wait_until(lambda: not pending(), name, MAX_RETURN)
        except TimeoutError:
            raise RuntimeError(f"{name}: after {MAX_RETURN} s no success of {', '.join(pending())}") from None
        time.sleep(CALM)

    @contextlib.contextmanager
    def happens(self, name):
        """Notes from when to when requests may fail."""
        self.step(name)
        began = time.monotonic()
        yield
        self.steps.append((name, began, time.monotonic() + MAX_RETURN))
        self.calm(name)
        self.steps[-1] = (name, began, time.monotonic() - CALM)

    def run(self):
        with self.happens("a process is killed"):
            self.services[0].process.kill()
            self.services[0].process.wait()
            time.sleep(OUTAGE)
            self.services[0] = self.serve(0, self.binaries[0])
            self.services[0].wait()
        with self.happens("a node of the store is killed"):
            self.garage.nodes[0].kill()
            time.sleep(OUTAGE)
            self.garage.start_again(self.garage.nodes[0])
        with self.happens("a node of the store loses its disk"):
            self.garage.lose_disk(self.garage.nodes[1])
        with self.happens("the primary is killed, and the standby promoted"):
            self.primary.kill()
            time.sleep(OUTAGE)
            self.standby.promote()
        for number in range(3):
            with self.happens(f"process {number + 1} is replaced by one with another migration"):
                processes.stop(self.services[number].process)
                self.services[number] = self.serve(number, self.binaries[1])
                self.services[number].wait()
        self.over.set()
        for client in self.clients:
            client.join()
            if client.error:
                raise RuntimeError(f"a client failed: {client.error!r}") from client.error
            client.connection.close()  # HAProxy ends those that are idle for long. The next request opens another.
        self.step("the node that lost its disk fetches all from the others, which lose theirs then")
        self.garage.recover()
        self.garage.leave_only(self.garage.nodes[1])
        self.step("comparing")
        return Compared(self)


class Compared(Comparison):
    """What clients were promised, against what is there."""

    def __init__(self, cluster):
        super().__init__(cluster.clients, cluster.standby, None)
        self.cluster = cluster
        ordinary = lambda kind: [client for client in self.clients if isinstance(client, kind)]
        self.look(self.sign_ins, [client for client in ordinary(SignIns)])
        for client in ordinary(Refreshes):
            self.look(self.refreshes, client)
        for client in ordinary(Files):
            if isinstance(client, Quota):
                self.look(self.full, client)
            else:
                self.look(self.uploads, client)
        self.look(self.mirrors, 2)
        for text, query in DISAGREEMENTS.items():
            count = self.server.sql(query)
            self.expect(count == "0", f"{count} {text}")
        self.found += [text for client in ordinary(Behind) for text in client.wrong]
        over = "SELECT count(*) FROM users WHERE total_storage_used > " + str(USER_QUOTA)
        self.expect(self.server.sql(over) == "0", "a quota is exceeded")
        newest = "SELECT name FROM refinery_schema_history ORDER BY version DESC LIMIT 1"
        self.expect(self.server.sql(newest) == "added_by_the_test", "the migration was not applied")
        log = cluster.balancer.log.read_text(errors="replace")
        self.expect("links/(not-logged)" in log, "no link in the log of HAProxy")
        self.expect(not re.search(r"/[A-Za-z0-9_-]{40}", log), "a link's token is in the log of HAProxy")
        self.failures()

    def full(self, client):
        """Two clients fill one account from two addresses."""
        rows = self.server.rows(f"SELECT f.id, f.file_hash FROM files f JOIN users u ON u.id = f.user_id "
                                f"WHERE u.username = '{client.username}'")
        self.expect(client.listed() == dict(rows), "lists or downloads of a full account differ from the records")
        lost = set(client.kept.items()) - {tuple(row) for row in rows}
        self.expect(not lost, f"{len(lost)} uploads to a full account are lost")
        self.expect(rows, "nothing was uploaded to the full account")

    def failures(self):
        """Requests fail only while something happens, and only as an outage looks."""
        lines = ["| what happens | requests | failed | for how long, s | longest wait, s |", "|---|---|---|---|---|"]
        answers = [answer for client in self.clients for answer in client.answers if answer.kind]
        failed = [answer for answer in answers if not answer.is_good]
        for name, began, ended in self.cluster.steps:
            during = [answer for answer in answers if answer.ended >= began and answer.began <= ended]
            bad = [answer for answer in during if not answer.is_good]
            long = max((a.ended for a in bad), default=0) - min((a.began for a in bad), default=0)
            wait = max((a.ended - a.began for a in during), default=0)
            counts = Counter(answer.status or "no answer" for answer in bad)
            statuses = ", ".join(f"{count} x {status}" for status, count in counts.items())
            lines.append(f"| {name} | {len(during)} | {statuses or 0} | {long:.1f} | {wait:.1f} |")
        for answer in failed:
            text = f"{answer.kind}: {answer.status} {answer.body[:120]!r}"
            self.expect(answer.status in (0, 502, 503, 504), text)
            in_step = any(a.ended >= s[1] and a.began <= s[2] for a in [answer] for s in self.cluster.steps)
            self.expect(in_step, f"{text} while nothing happened")
        self.table = "\n".join([*lines, "", f"{len(answers)} requests. Compared: {dict(self.counts)}."])


def main():
    processes.interrupt_once()
    binaries, garage = sys.argv[1:3], sys.argv[3]
    directory = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or "target").absolute() / "cluster"
    began = time.monotonic()
    step = lambda text: print(f"{time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)
    with open(directory / "lock", "w", encoding="ascii") as lock, contextlib.ExitStack() as stack:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in ("garage", *(f"process{number}" for number in (1, 2, 3))):
            shutil.rmtree(directory / name, ignore_errors=True)
        try:
            cluster = Cluster(binaries, garage, directory, step)
            cluster.start(stack)
            compared = cluster.run()
        except KeyboardInterrupt:
            sys.exit("Interrupted.")
        except (*ERRORS, subprocess.SubprocessError) as error:
            sys.exit(f"scripts/test-cluster: {error}")
    print(compared.table)
    for text in compared.found[:20]:
        print(f"WRONG: {text}", file=sys.stderr)
    sys.exit(f"{len(compared.found)} things are wrong; the logs are in {directory}" if compared.found else 0)


if __name__ == "__main__":
    main()
