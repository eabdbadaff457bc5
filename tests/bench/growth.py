"""What grows with the number of users, of one user's files and sessions, and of records that have expired."""

import time

import load
import processes
import seed
from client import call
from workloads import EXPORT, ME, UPLOADS

# Requests that are measured over one connection: name of the figure, path, and whose token, counted from 0.
REQUESTS = (
    ("me", ME, 0),
    ("files", f"{UPLOADS}?page=1&size=20", 0),
    ("users", "/api/v1/users", 0),
    ("users_name", "/api/v1/users?name=number%20999", 0),
    ("admin_users", "/api/v1/admin/users", 0),
    ("admin_users_search", "/api/v1/admin/users?search=user999", 0),
    ("users_search_all", "/api/v1/users?search=example.com", 0),
    ("users_search_none", "/api/v1/users?search=nobody&sort_by=name", 0),
    ("users_search_short", "/api/v1/users?search=a&sort_by=email", 0),
    # The last page of a million; one past the end where there are fewer.
    ("users_far", "/api/v1/admin/users?page=50000&size=20", 0),
    ("users_far_name", "/api/v1/admin/users?page=50000&size=20&sort_by=name", 0),
    ("admin_stats", "/api/v1/admin/stats", 0),
)
# User 6 has many files where a database is filled in with them.
MANY_FILES = (
    ("many_files", f"{UPLOADS}?page=1&size=20", 5),
    ("many_files_name", f"{UPLOADS}?sort_by=filename&sort_order=asc", 5),
    ("many_files_size", f"{UPLOADS}?sort_by=file_size", 5),
    ("many_files_oldest", f"{UPLOADS}?sort_order=asc", 5),
    ("many_files_type", f"{UPLOADS}?content_type=application/pdf", 5),
    ("many_files_search", f"{UPLOADS}?search=report-9999", 5),
)
# Users who are given many sessions: the first signs the others out, and the second changes the password.
CROWDED = (7, 8)


def measure(server, directory, seconds, step, has_many_files):
    """Figures of a server whose database has some number of users: milliseconds, if the name says nothing else."""
    figures = {}
    for name, path, user in REQUESTS + (MANY_FILES if has_many_files else ()):
        step(f"GET {path}")
        token = server.tokens[user]
        load.wrk(server, 1, 1, path, [token], directory)  # fills the caches of PostgreSQL
        figures[name] = load.wrk(server, 1, seconds, path, [token], directory).p50
    step("current user, 16 connections")
    figures["me_rate"] = load.wrk(server, 16, seconds, ME, server.tokens, directory).rate
    step("export")
    processes.forget_peak(server.pid)
    figures["export"] = load.export(server, EXPORT, server.tokens[0])
    figures["export_peak"] = processes.peak(server.pid)
    return figures


def check_command(service):
    """Seconds that `cloakroom check` takes, which reads all contents."""
    began = time.perf_counter()
    seed.command(service, "check")
    return {"check": time.perf_counter() - began}


def many_sessions(service, server, step, count):
    """Requests of users with so many live sessions, as an earlier version may have left them."""
    step(f"{count:,} sessions of a user")
    seed.fill_sessions(service, CROWDED, count)
    first, second = (server.tokens[user - 1] for user in CROWDED)
    login = {"username": f"user{CROWDED[0]}", "password": seed.PASSWORD}
    password = {"current_password": seed.PASSWORD, "new_password": f"{seed.PASSWORD} anew"}
    requests = (
        ("sessions_list", "GET", "/auth/sessions", None, first),
        ("sessions_sign_in", "POST", "/auth/login", login, None),
        ("sessions_logout", "POST", "/auth/logout?scope=others", None, first),
        ("sessions_password", "POST", "/users/change-password", password, second),
    )
    figures = {}
    try:
        for name, method, path, body, token in requests:
            began = time.perf_counter()
            call(server.url, method, f"/api/v1{path}", body, token)
            figures[name] = (time.perf_counter() - began) * 1000
    finally:
        seed.forget_sessions(service, CROWDED)
    return figures


def sweep(service, directory, seconds, step, count):
    """p99 of others before and while the service removes so many expired sessions, and as many audit events.

    A service begins to sweep when it starts. A figure whose load was still running when nothing was left is missing.
    """

    def loads(server, prefix, is_valid):
        found = {}
        for name, run in (
            ("me", lambda: load.wrk(server, 1, seconds, ME, server.tokens, directory)),
            ("me_c16", lambda: load.wrk(server, 16, seconds, ME, server.tokens, directory)),
            ("files", lambda: load.wrk(server, 1, seconds, f"{UPLOADS}?page=1&size=20", server.tokens[:1], directory)),
            ("sign_in", lambda: load.sign_ins(server, 1, seconds)),
        ):
            step(f"{prefix} expired records are removed: {name}")
            result = run()
            if is_valid():
                found[f"{prefix}_{name}"] = result.p99
        return found

    step("p99 before expired records are removed")
    with service.running() as server:
        load.wrk(server, 16, 1, ME, server.tokens, directory)
        figures = loads(server, "before", lambda: True)
    step(f"filling in {count:,} expired sessions and audit events")
    seed.fill_expired(service, count)
    try:
        with service.running() as server:
            load.wrk(server, 16, 1, ME, server.tokens, directory)
            left, began = seed.expired(service), time.perf_counter()
            figures |= loads(server, "while", lambda: seed.expired(service) > 0)
            figures["swept"] = (left - seed.expired(service)) / (time.perf_counter() - began)
    finally:
        seed.remove_expired(service)
    return figures
