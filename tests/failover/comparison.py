"""What must be there after a failover, and what may be: promises against the database, the contents and the answers."""

from collections import Counter

from clients import Mirror, Refreshes, SignIns, Uploads
from servers import DATABASE_TIMEOUT

# How long the service may take after the promotion until it serves again, in seconds.
MAX_RETURN = 5
# How much longer than the timeout of the database an answer may take, in seconds: a server that hangs counts as gone a
# second after its statement should have ended, and the machine is busy.
MAX_DELAY = 3

# Each counts what must not be: audit log and totals that differ from the data they are about.
DISAGREEMENTS = {
    "sessions without one event of their own, or the reverse": (
        "SELECT count(*) FROM (SELECT details->>'session_id' AS id FROM audit_events "
        "WHERE action = 'auth.login' AND outcome = 'success') e "
        "FULL JOIN sessions s ON s.id::text = e.id WHERE s.id IS NULL OR e.id IS NULL"
    ),
    "files without an event, or with several": (
        "SELECT count(*) FROM files f WHERE 1 <> "
        "(SELECT count(*) FROM audit_events e WHERE e.subject_id = f.id AND e.action = 'file.upload')"
    ),
    "events of uploads without a file, and without an event of its deletion": (
        "SELECT count(*) FROM audit_events e WHERE action = 'file.upload' AND 1 <> "
        "(SELECT count(*) FROM files f WHERE f.id = e.subject_id) + (SELECT count(*) FROM audit_events d "
        "WHERE d.subject_id = e.subject_id AND d.action = 'file.delete')"
    ),
    "users whose totals are not those of their files": (
        "SELECT count(*) FROM users u WHERE (total_uploads, total_storage_used) <> "
        "(SELECT count(*), coalesce(sum(file_size), 0) FROM files f WHERE f.user_id = u.id)"
    ),
    "bytes by which the total of the service is wrong": (
        "SELECT abs(sum(used) - (SELECT coalesce(sum(used), 0) FROM stored_contents)) FROM storage_shards"
    ),
}


class Comparison:
    """Collects what is wrong. `found` are the sentences, `counts` says how much was compared."""

    def __init__(self, clients, server, data):
        self.clients = clients
        self.server = server
        self.data = data
        self.found = []
        self.counts = Counter()

    def expect(self, is_right, text):
        if not is_right:
            self.found.append(text)

    def answers(self, lost, promoted):
        """Looks at the answers of the load. `lost` is when the primary stopped to answer."""
        for answer in (answer for client in self.clients for answer in client.answers if answer.kind):
            when = answer.began - promoted
            text = f"{answer.kind}, begun {when:+.1f} s after the promotion: {answer.status} {answer.body[:100]!r}"
            if answer.status == 503:
                self.expect(answer.ended >= lost, f"{text} before the outage")
                self.expect(when <= MAX_RETURN, f"{text} after the outage")
                self.expect(answer.retry_after, f"{text} without Retry-After")
            else:
                self.expect(answer.is_good, text)
            took = answer.ended - answer.began
            longest = DATABASE_TIMEOUT + MAX_DELAY + (Mirror.wait if answer.kind == Mirror.kind else 0)
            self.expect(took <= longest, f"{text} took {took:.1f} s")
        for kind in {client.kind for client in self.clients}:
            refused = any(a.kind == kind and a.status == 503 for client in self.clients for a in client.answers)
            self.expect(refused, f"no {kind} of the outage was answered 503")

    def sign_ins(self, clients):
        """Every session of which a client knows is alive, and there are no more than clients have asked for."""
        known = {session for client in clients for session in client.sessions}
        rows = self.server.rows(
            "SELECT s.id, s.ended_at IS NULL FROM sessions s JOIN users u ON u.id = s.user_id "
            f"WHERE u.username IN ({names(clients)})"
        )
        alive = {session for session, is_alive in rows if is_alive == "t"}
        self.expect(known <= alive, f"{len(known - alive)} sessions that were acknowledged are lost")
        unknown = sum(client.unknown for client in clients)
        self.expect(len(rows) - len(known) <= unknown, f"{len(rows)} sessions, {len(known)} known, {unknown} unknown")
        for client in clients:
            for access in client.sessions.values():
                client.must("GET", "/auth/me", token=access)
        self.counts["sign-in"] += len(known)

    def refreshes(self, client):
        """The chain of refresh tokens continues, in the one session that the client has."""
        client.must("POST", "/auth/refresh", {"refresh_token": client.tokens["refresh_token"]})
        sessions = "SELECT count(*) FROM sessions s JOIN users u ON u.id = s.user_id AND s.ended_at IS NULL"
        count = self.server.sql(f"{sessions} WHERE u.username = '{client.username}'")
        self.expect(count == "1", f"{count} sessions of a client that has one")
        self.counts["refresh"] += sum(answer.is_good for answer in client.answers if answer.kind == client.kind)

    def uploads(self, client):
        """Files are those that were acknowledged, and of the others at most one each; deletions likewise."""
        query = "SELECT f.id, f.file_hash FROM files f JOIN users u ON u.id = f.user_id"
        rows = self.server.rows(f"{query} WHERE u.username = '{client.username}'")
        recorded = dict(rows)
        self.expect(client.listed() == recorded, "lists or downloads differ from the records")
        times = Counter(recorded.values())
        self.expect(not times or max(times.values()) == 1, "an upload was made twice")
        lost = {file for file, content_hash in client.kept.items() if recorded.get(file) != content_hash}
        self.expect(not lost, f"{len(lost)} uploads that were acknowledged are lost or changed")
        back = client.deleted & recorded.keys()
        self.expect(not back, f"{len(back)} deletions that were acknowledged are lost")
        others = recorded.keys() - client.kept.keys() - client.unknown_deletions
        unasked = {recorded[file] for file in others} - client.unknown_uploads
        self.expect(not unasked, f"{len(unasked)} files that nobody has uploaded")
        self.counts["upload"] += len(client.kept)
        self.counts["deletion"] += len(client.deleted)
        self.counts["unknown"] += len(client.unknown_uploads) + len(client.unknown_deletions)
        self.counts["unknown, but made"] += len(others) + len(client.unknown_deletions - recorded.keys())

    def mirrors(self, begins):
        """Each copy is what the service has, was told of each change once, and began as often as it had to."""
        for mirror in [client for client in self.clients if isinstance(client, Mirror)]:
            mirror.settle()
            rows = self.server.rows("SELECT f.id, f.file_hash FROM files f JOIN users u ON u.id = f.user_id "
                                    f"WHERE u.username = '{mirror.owner.username}'")
            self.expect(mirror.files == dict(rows), f"a mirror has {len(mirror.files)} files of {len(rows)}")
            self.expect(not mirror.repeated, f"a mirror was told {len(mirror.repeated)} changes twice")
            self.expect(mirror.begins == begins, f"a mirror began {mirror.begins} times, not {begins}")
            self.counts["changes told"] += len(mirror.told)

    def contents(self):
        """Every record has its content; others are only those of uploads and deletions with an unknown outcome."""
        recorded = {file for (file,) in self.server.rows("SELECT id FROM recorded_contents")}
        stored = {path.name for path in (self.data / "files").rglob("*") if path.is_file()}
        self.expect(recorded <= stored, f"{len(recorded - stored)} files without their content")
        extra = len(stored - recorded)
        self.expect(extra <= self.counts["unknown"], f"{extra} contents without a record")

    def look(self, comparison, clients):
        """A request that fails ends one comparison, and not the others."""
        try:
            comparison(clients)
        except RuntimeError as error:
            self.found.append(str(error))

    def all(self, lost, promoted):
        self.look(self.sign_ins, [client for client in self.clients if isinstance(client, SignIns)])
        for client in self.clients:
            if isinstance(client, Refreshes):
                self.look(self.refreshes, client)
            if isinstance(client, Uploads):
                self.look(self.uploads, client)
        self.look(self.mirrors, 2)
        self.contents()
        for text, query in DISAGREEMENTS.items():
            count = self.server.sql(query)
            self.expect(count == "0", f"{count} {text}")
        self.answers(lost, promoted)
        return self


def names(clients):
    """Names of accounts as SQL. They are made by the clients, of letters and digits."""
    return ", ".join(f"'{client.username}'" for client in clients)
