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
INSERT INTO users (id, username, email, name, password_hash, role, created_at, updated_at)
SELECT md5('user' || n)::uuid, 'user' || n, 'user' || n || '@example.com', 'User Number ' || n,
       (SELECT password_hash FROM users WHERE username = 'admin'), CASE n WHEN 1 THEN 'admin' ELSE 'user' END,
       timestamptz '2024-01-01Z' + n * interval '37.123457 s', timestamptz '2024-06-01Z' + n * interval '11.7 s'
FROM generate_series(1, {users}) n;
INSERT INTO sessions (id, user_id, refresh_id, expires_at)
SELECT md5('session' || s || 'user' || n)::uuid, md5('user' || n)::uuid, gen_random_uuid(), now() + interval '60 days'
FROM generate_series(1, {users}) n, generate_series(1, {sessions}) s;
"""

# Only records: nobody downloads these files.
FILES_OF_A_USER = """
INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                   description, upload_date)
SELECT id, md5('user{user}')::uuid, 'report-' || n || '.pdf', 'report-' || n || '.pdf', 'application/pdf', 1024,
       'files/' || id, encode(sha256(id::text::bytea), 'hex'), 'Quarterly report ' || n,
       timestamptz '2025-02-01Z' + n * interval '61 s'
FROM (SELECT n, md5('file{user}-' || n)::uuid AS id FROM generate_series(1, {files}) n) f;
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
    postgres.sql(FILES_OF_A_USER.format(user=1, files=FILES), service.database)
    if files_of_user6:
        postgres.sql(FILES_OF_A_USER.format(user=6, files=files_of_user6), service.database)
    # Otherwise PostgreSQL does this when it likes, during a measurement.
    postgres.sql("VACUUM ANALYZE", service.database)
    postgres.sql("CHECKPOINT", service.database)


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
