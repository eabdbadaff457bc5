"""What one user has piled up must cost others nothing: uploads and sign-ins beside 60 writers of a user who has deleted
90,000 files with long descriptions, and beside as many of a user who has deleted none.

Both users write the same: they change files, and upload some and delete them. The deleted files of the first one are as
many bytes as one user's may be, so each deletion takes others away.
"""

import asyncio
import statistics
import time

import seed
from abuse import Client, form, json_body
from service import Service

PILED, EMPTY, HONEST, FIRST_HONEST = 11, 12, 4, 21
WRITERS = 60
DELETED, DESCRIPTION = 90_000, 16_384
# How much longer a request of others may take beside the first user: a ratio of medians.
MAX_RATIO = 1.5
# One user's deleted files may have so many bytes.
MAX_DELETED_BYTES = 1 << 30

DELETE = """
INSERT INTO deleted_files (id, user_id, filename, original_filename, content_type, file_size, file_hash, description,
                           upload_date, updated_at, is_public, version, was_young)
SELECT gen_random_uuid(), md5('user{user}')::uuid, 'f' || n, 'f', 'text/plain', {size}, repeat('0', 64),
       (SELECT string_agg(md5(n || '-' || i), '') FROM generate_series(1, {length} / 32) i),
       now(), now(), false, 1, true
FROM generate_series(1, {count}) n;
"""
COUNT = "SELECT deleted_files FROM users WHERE id = md5('user{user}')::uuid"


class Experiment(Service):
    """The service without rate limits, and with the quotas that it has by default."""

    def environment(self, port):
        return {name: text for name, text in super().environment(port).items() if "QUOTA" not in name}

    def fill(self, deleted, step):
        self.postgres.drop(self.database)
        seed.fill(self, 1000, 0, step)
        step(f"filling in {deleted:,} deleted files with long descriptions")
        size = MAX_DELETED_BYTES // deleted
        self.postgres.sql(DELETE.format(user=PILED, count=deleted, size=size, length=DESCRIPTION), self.database)
        self.postgres.sql("VACUUM ANALYZE", self.database)


class Writer(Client):
    """A client that needs to know which file it has uploaded."""

    async def created(self, body, headers):
        """Uploads a file and returns its id."""
        location = await self.request("POST", "/uploads", body, headers, header="location")
        return location.rsplit("/", 1)[1]


async def writer(client, number):
    """Changes files, and uploads and deletes some, until it is cancelled. One in twenty of those is large."""
    for n in range(number, 1 << 30):
        content = "x" * (5_000_000 if n % 20 == 0 else 1000)
        created = await client.created(*form(content))
        for m in range(4):
            await client.request("PUT", f"/uploads/{created}", json_body(filename=f"{n}-{m}.txt"))
        await client.request("DELETE", f"/uploads/{created}")


async def honest_user(client, number, times):
    credentials = json_body(username=f"user{number}", password=seed.PASSWORD)
    while True:
        for send in (
            lambda: client.request("POST", "/uploads", *form("an honest file")),
            lambda: client.request("POST", "/auth/login", credentials, token=""),
        ):
            began = time.perf_counter()
            status = await send()
            if status not in (200, 201):
                raise RuntimeError(f"an honest request was answered {status}")
            times.append(time.perf_counter() - began)


async def measure(server, user, seconds):
    """Returns the times of honest requests beside the writers of `user`."""
    port, times = int(server.url.rsplit(":", 1)[1]), []
    writers = [Writer(port, "192.0.2.1", server.tokens[user - 1]) for _ in range(WRITERS)]
    numbers = range(FIRST_HONEST, FIRST_HONEST + HONEST)
    tasks = [asyncio.create_task(writer(client, n)) for n, client in enumerate(writers)]
    await asyncio.sleep(1)
    clients = [(n, Client(port, "192.0.2.2", server.tokens[n - 1])) for n in numbers]
    honest = [asyncio.create_task(honest_user(client, n, times)) for n, client in clients]
    await asyncio.wait(honest, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    failed = [task.exception() for task in honest + tasks if task.done()]
    for task in tasks + honest:
        task.cancel()
    await asyncio.gather(*tasks, *honest, return_exceptions=True)
    for error in failed:
        raise error
    return times


def run(binary, postgres, directory, options, step):
    """Runs the experiment. Returns its report in Markdown, and whether the ratio is within bounds."""
    deleted = DELETED // (100 if options.check else 1)
    experiment = Experiment(binary, postgres, directory, "piles")
    experiment.fill(deleted, step)
    times = {PILED: [], EMPTY: []}
    with experiment.running() as server:
        for number in range(options.rounds):
            for user in (PILED, EMPTY) if number % 2 else (EMPTY, PILED):
                step(f"round {number + 1} of {options.rounds}, user{user}")
                times[user] += asyncio.run(measure(server, user, max(options.seconds, 3)))
    left = int(experiment.postgres.sql(COUNT.format(user=PILED), experiment.database))
    piled, empty = (statistics.median(times[user]) * 1000 for user in (PILED, EMPTY))
    ratio = piled / empty
    text = (
        f"Uploads and sign-ins of {HONEST} users beside {WRITERS} writers of a user who has deleted {deleted:,} files: "
        f"median {piled:.1f} ms; nothing: {empty:.1f} ms; ratio {ratio:.2f}, at most {MAX_RATIO}. The first user has "
        f"{left:,} deleted files now."
    )
    return text, ratio <= MAX_RATIO
