"""Markdown tables of the figures."""

import statistics
import textwrap
from dataclasses import dataclass, replace

# Of a paragraph.
MAX_COLUMNS = 120


@dataclass
class Row:
    """A row of a table: the figure's name, and what it is."""

    name: str
    label: str
    # Whether a lower figure is better.
    is_cost: bool = False


def connection_rows(connections):
    text = "one connection" if connections == 1 else f"{connections} connections"
    name = f"w1_c{connections}"
    return [
        Row(f"{name}_rate", f"W1 current user, {text}: requests/s"),
        Row(f"{name}_p50", "… p50, ms", True),
        Row(f"{name}_p99", "… p99, ms", True),
        Row(f"{name}_cpu", "… CPU of the server, µs a request", True),
        Row(f"{name}_postgres_cpu", "… CPU of PostgreSQL, µs a request", True),
    ]


ROWS = [
    *connection_rows(1),
    *connection_rows(16),
    *connection_rows(64),
    Row("w2", "W2 sign-ins, 4 clients: 1/s"),
    Row("w3", "W3 uploads of 1 MiB, 4 connections: MiB/s"),
    Row("w3_p99", "… p99, ms", True),
    Row("w4", "W4 downloads of 1 MiB, 4 connections: MiB/s"),
    Row("w5", "W5 list 20 of 1,000 files, 16 connections: requests/s"),
    Row("w5_p99", "… p99, ms", True),
    Row("w6", "W6 CSV of {users:,} users: seconds", True),
    Row("w6_peak", "… peak memory, MiB", True),
    Row("start", "W7 start to the first answer, ms", True),
    Row("idle", "… memory when idle, MiB", True),
    Row("after_load", "… memory after W1, MiB", True),
    Row("binary", "… size of the binary, MiB", True),
    Row("small_c1", "Uploads of 10 KiB, one client: 1/s"),
    Row("small_c4", "… 4 clients"),
    Row("small_c16", "… 16 clients"),
    Row("small_c64", "… 64 clients"),
    Row("small_one_user", "… 16 clients of one user"),
]

GROWTH_ROWS = [
    Row("me", "current user, ms"),
    Row("me_rate", "current user, 16 connections: requests/s"),
    Row("files", "20 of 1,000 files, ms"),
    Row("many_files", "20 of 100,000 files, ms"),
    Row("many_files_name", "… by name"),
    Row("many_files_size", "… by size"),
    Row("many_files_oldest", "… the oldest first"),
    Row("many_files_type", "… of the type that all are of"),
    Row("many_files_search", "… that have a rare part"),
    Row("users", "`GET /users`, ms"),
    Row("users_name", "`GET /users?name=number 999`, ms"),
    Row("admin_users", "`GET /admin/users`, ms"),
    Row("admin_users_search", "`GET /admin/users?search=user999`, ms"),
    Row("users_search_all", "`GET /users?search=example.com`, which all match, ms"),
    Row("users_search_none", "`GET /users?search=nobody`, which none match, by name, ms"),
    Row("users_search_short", "`GET /users?search=a`, by address, ms"),
    Row("users_far", "`GET /admin/users?page=50000`, ms"),
    Row("users_far_name", "… by name"),
    Row("admin_stats", "`GET /admin/stats`, ms"),
    Row("export", "CSV of all users, seconds"),
    Row("export_peak", "its peak memory, MiB"),
    Row("check", "`cloakroom check` with 101,000 files: seconds"),
    Row("sessions_list", "a user with 200,000 sessions: list of sessions, ms"),
    Row("sessions_sign_in", "… sign-in, ms"),
    Row("sessions_logout", "… sign-out of all others, ms"),
    Row("sessions_password", "… change of the password, ms"),
    Row("before_me", "current user: p99, ms"),
    Row("while_me", "… while expired records are removed"),
    Row("before_me_c16", "current user, 16 connections: p99, ms"),
    Row("while_me_c16", "… while expired records are removed"),
    Row("before_files", "20 of 1,000 files: p99, ms"),
    Row("while_files", "… while expired records are removed"),
    Row("before_sign_in", "sign-in: p99, ms"),
    Row("while_sign_in", "… while expired records are removed"),
    Row("swept", "records removed a second meanwhile, of a million sessions and a million events"),
]


def number(value):
    """Three significant digits."""
    for least, digits in ((99.95, 0), (9.995, 1), (0.0995, 2)):
        if value >= least:
            return f"{value:,.{digits}f}"
    return f"{value:.3f}"


def cell(rounds, name):
    """The median of a figure and its range; a dash if it was not measured."""
    values = [figures[name] for figures in rounds if name in figures]
    if not values:
        return "–"
    text = number(statistics.median(values))
    least, most = number(min(values)), number(max(values))
    return text if least == most else f"{text} ({least}–{most})"


def ratio(row, ours, others):
    """How many times better ours is: the median of the ratios within each round."""
    pairs = [(a[row.name], b[row.name]) for a, b in zip(ours, others) if a.get(row.name) and b.get(row.name)]
    if not pairs:
        return "–"
    return f"{statistics.median(b / a if row.is_cost else a / b for a, b in pairs):.2f}"


def paragraph(text):
    return textwrap.fill(text, MAX_COLUMNS, break_long_words=False, break_on_hyphens=False)


def lines(header, rows):
    yield "| " + " | ".join(header) + " |"
    yield "|---|" + "---:|" * (len(header) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def table(rows, results, ratios):
    """A table of the rounds in `results`, which are columns by their names. `ratios` are further columns: how many
    times better the first of two names in `results` is."""
    body = [
        [
            row.label,
            *(cell(rounds, row.name) for rounds in results.values()),
            *(ratio(row, results[ours], results[others]) for ours, others in ratios.values()),
        ]
        for row in rows
    ]
    return "\n".join(lines(["", *results, *ratios], body))


def comparison(results, users):
    """The table of W1 to W7. `results` are the rounds of `Cloakroom`, of each peer and of `limit`, by these names."""
    rows = [replace(row, label=row.label.format(users=users)) for row in ROWS]
    others = [name for name in results if name != "Cloakroom"]
    return table(rows, results, {f"ratio to {name}": ("Cloakroom", name) for name in others})


def explanations(results):
    """What figures outside the table show."""
    limits, ours = results["limit"], results["Cloakroom"]
    names = ("commits", "small_c1", "small_c16", "small_c64", "small_one_user", "nginx_plain")
    median = {name: number(statistics.median(figures[name] for figures in limits)) for name in names}
    waits = statistics.median(figures.get("lock_waits", 0) for figures in ours)
    return paragraph(
        f"A ratio above 1 means that Cloakroom is better. nginx without `sendfile` sends {median['nginx_plain']} "
        "MiB/s. Uploads of different users wait for no row of each other. The statement that records a file, alone, "
        f"reaches {median['small_c1']} a second over one connection, {median['small_c16']} over 16 and "
        f"{median['small_c64']} over 64 for files of as many users, and {median['small_one_user']} over 16 for those of "
        f"one user; commits that change only a row of their own reach {median['commits']} over 16. While 64 users "
        f"upload, {waits:.0f} of 100 connections that run a statement wait for a lock."
    )


def growth(results):
    """The second table. `results` are the rounds by the number of users."""
    header = ["users", *(f"{users:,}" for users in results)]
    rows = [[row.label, *(cell(rounds, row.name) for rounds in results.values())] for row in GROWTH_ROWS]
    return "\n".join(lines(header, rows))


def missing(results):
    """The figures of the table that the service or the limits lack or that are zero, which none can be."""
    names = {"Cloakroom": [row.name for row in ROWS]}
    names["limit"] = ["w1_c1_rate", "w1_c16_rate", "w1_c64_rate", "w2", "w3", "w4", "w5", "w6", "commits"]
    return [
        f"{server}: {name}"
        for server, expected in names.items()
        for name in expected
        for figures in results[server]
        if not figures.get(name)
    ]
