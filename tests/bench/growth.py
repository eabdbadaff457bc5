"""What grows with the number of users, and with the number of one user's files."""

import load
import processes
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
