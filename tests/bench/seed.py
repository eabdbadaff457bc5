"""Fills databases with users, sessions and files, by SQL, because the API would take hours for a million users."""

import hashlib
import os
import pathlib
import shutil
import subprocess

PASSWORD = "correct horse battery"
# Sessions of each user.
SESSIONS = 2
# Files of user1.
FILES = 1000
# A database that was filled in earlier is used for so many days; its sessions expire later.
MAX_AGE_DAYS = 20

# Ids can be computed from the numbers of users: pgbench has numbers as variables, but no ids. The hash makes them as
# random as those that the service makes. All users have the password of the administrator that the service has made.
USERS = """
INSERT INTO users (id, username, email, email_key, name, password_hash, role, created_at, updated_at)
SELECT md5('user' || n)::uuid, 'user' || n, 'user' || n || '@example.com', 'user' || n || '@example.com',
       'User Number ' || n,
       (SELECT password_hash FROM users WHERE username = 'admin'), CASE n WHEN 1 THEN 'admin' ELSE 'user' END,
       timestamptz '2024-01-01Z' + n * interval '37.123457 s', timestamptz '2024-06-01Z' + n * interval '11.7 s'
FROM generate_series(1, {users}) n;
INSERT INTO sessions (id, user_id, refresh_id, expires_at)
SELECT md5('session' || s || 'user' || n)::uuid, md5('user' || n)::uuid, gen_random_uuid(), now() + interval '60 days'
FROM generate_series(1, {users}) n, generate_series(1, {sessions}) s;
"""

# All of them have the same content.
CONTENT = b"x" * 1024
# Names that a file may have in one directory: ext4 allows 65,000.
MAX_LINKS = 50_000
FILES_OF_A_USER = """
INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                   description, upload_date)
SELECT id, md5('user{user}')::uuid, 'report-' || n || '.pdf', 'report-' || n || '.pdf', 'application/pdf', 1024,
       'files/' || id, '{hash}', 'Quarterly report ' || n,
       timestamptz '2025-02-01Z' + n * interval '61 s'
FROM (SELECT n, md5('file{user}-' || n)::uuid AS id FROM generate_series(1, {files}) n) f;
"""

# Sessions as an earlier version may have left them: it had no limit on those of a user.
SESSIONS_OF_USERS = """
INSERT INTO sessions (id, user_id, refresh_id, created_at, expires_at, address, user_agent)
SELECT gen_random_uuid(), md5('user' || u)::uuid, gen_random_uuid(), now() - interval '2 days' - n * interval '1 s',
       now() + interval '30 days', '192.0.2.7', 'curl'
FROM unnest(ARRAY{users}) u, generate_series(1, {count}) n;
ANALYZE sessions;
"""

FORGET_SESSIONS = """
DELETE FROM sessions WHERE user_id IN (SELECT md5('user' || u)::uuid FROM unnest(ARRAY{users}) u);
UPDATE users SET session_epoch = 1, password_hash = (SELECT password_hash FROM users WHERE username = 'admin')
WHERE id IN (SELECT md5('user' || u)::uuid FROM unnest(ARRAY{users}) u);
INSERT INTO sessions (id, user_id, refresh_id, expires_at)
SELECT md5('session' || s || 'user' || u)::uuid, md5('user' || u)::uuid, gen_random_uuid(), now() + interval '60 days'
FROM unnest(ARRAY{users}) u, generate_series(1, {sessions}) s;
DELETE FROM ended_epochs;
"""

EXPIRED = """
INSERT INTO sessions (id, user_id, refresh_id, created_at, expires_at)
SELECT gen_random_uuid(), md5('user' || 1 + n % {users})::uuid, gen_random_uuid(), now() - interval '90 days',
       now() - interval '60 days' + n * interval '1 s'
FROM generate_series(1, {count}) n;
INSERT INTO audit_events (at, action, actor_id, subject_type, subject_id, address, request_id)
SELECT now() - interval '20 years' + n * interval '1 s', 'auth.login', user_id, 'user', user_id, '192.0.2.7',
       gen_random_uuid()
FROM (SELECT n, md5('user' || 1 + n % {users})::uuid AS user_id FROM generate_series(1, {count}) n) event;
"""
COUNT_EXPIRED = """
SELECT (SELECT count(*) FROM sessions WHERE expires_at < now())
       + (SELECT count(*) FROM audit_events WHERE at < now() - interval '2 years')
"""
REMOVE_EXPIRED = """
SET cloakroom.removes_old_audit_events = 'on';
DELETE FROM audit_events WHERE at < now() - interval '2 years';
DELETE FROM sessions WHERE expires_at < now();
"""

MARK = "CREATE TABLE benchmark_seed AS SELECT '{version}' AS version, now() AS at"
IS_SEEDED = (
    "SELECT count(*) FROM benchmark_seed WHERE version = '{version}' AND at > now() - interval '{days} days'"
)

# The users 1 to `count`, in this order, each with the first session.
SESSIONS_QUERY = """
SELECT u.id, u.username, u.role, s.id
FROM generate_series(1, {count}) n
JOIN users u ON u.id = md5('user' || n)::uuid
JOIN sessions s ON s.id = md5('session1user' || n)::uuid
ORDER BY n
"""


def fill(service, users, files_of_user6, step):
    """Makes the database of a service with so many users, unless it is there. User 6 gets more files if asked."""
    version = hashlib.sha256(pathlib.Path(__file__).read_bytes() + f"{users} {files_of_user6}".encode()).hexdigest()
    if not is_filled(service, version):
        step(f"filling in {users:,} users")
        service.postgres.create(service.database)
        shutil.rmtree(service.data, ignore_errors=True)
        service.data.mkdir()
        command(service, "migrate")
        command(service, "create-admin", "--email", "admin@example.com", "--username", "admin")
        fill_tables(service, users, files_of_user6)
        service.postgres.sql(MARK.format(version=version), service.database)
    command(service, "migrate")  # to what has been added to the schema since


def is_filled(service, version):
    postgres = service.postgres
    if not service.data.exists() or not postgres.sql(
        f"SELECT 1 FROM pg_database WHERE datname = '{service.database}'"
    ):
        return False
    if not postgres.sql("SELECT to_regclass('benchmark_seed')", service.database):
        return False
    return postgres.sql(IS_SEEDED.format(version=version, days=MAX_AGE_DAYS), service.database) == "1"


def fill_tables(service, users, files_of_user6):
    postgres = service.postgres
    postgres.sql(USERS.format(users=users, sessions=SESSIONS), service.database)
    digest = hashlib.sha256(CONTENT).hexdigest()
    for user, files in ((1, FILES), (6, files_of_user6)):
        postgres.sql(FILES_OF_A_USER.format(user=user, files=files, hash=digest), service.database)
    store_contents(service)
    settle(service)


def store_contents(service):
    """Stores the contents of all files: as names of a few files, because 100,000 files would take long."""
    directory = service.data / "files"
    directory.mkdir(mode=0o700)
    for number, file in enumerate(service.postgres.sql("SELECT id FROM files", service.database).splitlines()):
        path = directory / file
        if number % MAX_LINKS == 0:
            first = path
            path.write_bytes(CONTENT)
        else:
            path.hardlink_to(first)


def settle(service):
    """Does what PostgreSQL otherwise does when it likes, during a measurement."""
    service.postgres.sql("VACUUM ANALYZE", service.database)
    service.postgres.sql("CHECKPOINT", service.database)


def fill_sessions(service, users, count):
    """Gives the users so many live sessions each."""
    service.postgres.sql(SESSIONS_OF_USERS.format(users=list(users), count=count), service.database)


def fill_expired(service, count):
    """Makes so many expired sessions, and as many expired audit events, of a thousand users."""
    service.postgres.sql(EXPIRED.format(count=count, users=1000), service.database)
    settle(service)


def expired(service):
    """How many of these are left."""
    return int(service.postgres.sql(COUNT_EXPIRED, service.database))


def remove_expired(service):
    service.postgres.sql(REMOVE_EXPIRED, service.database)
    settle(service)


def forget_sessions(service, users):
    """Undoes what requests of these users with many sessions have changed."""
    service.postgres.sql(FORGET_SESSIONS.format(users=list(users), sessions=SESSIONS), service.database)
    settle(service)


def command(service, *arguments):
    """Runs a command of the service."""
    environment = {**service.environment(0), "CLOAKROOM_ADMIN_PASSWORD": PASSWORD}
    done = subprocess.run(
        [service.binary, *arguments], env=environment, capture_output=True, text=True, check=False,
        start_new_session=True,
    )
    if done.returncode:
        raise RuntimeError(f"cloakroom {arguments[0]} failed: {done.stderr.strip()}")


def remove_uploads(service):
    """Removes what loads have uploaded: the files of all users but user1 and user6.

    Their contents are only emptied and set aside, to be deleted after all rounds: ext4 without a journal passes over
    the inodes of files that were deleted in the last minutes, so each of the next uploads would take a millisecond
    longer.
    """
    ids = service.postgres.sql(
        "DELETE FROM files WHERE user_id <> ALL (ARRAY[md5('user1')::uuid, md5('user6')::uuid]) RETURNING id",
        service.database,
    )
    for file in ids.splitlines():
        content = pathlib.Path(service.data, "files", file)
        if content.exists():
            os.truncate(content, 0)
            content.rename(service.removed / file)
    # So that every round begins with the same tables; PostgreSQL would do this some time later.
    service.postgres.sql("VACUUM ANALYZE", service.database)
    os.sync()
