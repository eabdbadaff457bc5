"""Exceptions from the tests of schemathesis that depend on values.

Those for whole endpoints are in schemathesis.toml.
"""

import base64
import json
import pathlib
import re

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import (
    AllowHeaderMismatch,
    ObjectLevelAuthorizationViolation,
    RejectedPositiveData,
    UseAfterFree,
)
from schemathesis.transport.serialization import Binary


def ids_in_use(file):
    """The ids of the accounts and sessions whose tokens accounts.py has written to a file."""
    for account in json.loads(file.read_text())["auth"]:
        claims = account["fixedHeaders"][0]["value"].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(claims + "=="))
        yield from (claims["sub"], claims["sid"])


# What an upload in several requests brings is sent as it is.
schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")

# scripts/test-docs starts schemathesis in the directory of this file.
IDS_IN_USE = set(ids_in_use(pathlib.Path("accounts.json")))


@schemathesis.hook
def before_load_schema(context, schema):
    """Makes random addresses well-formed. The document has no `format` for them, because the one that generators of
    clients know takes ASCII only, and the service takes others."""
    for component in schema["components"]["schemas"].values():
        address = component.get("properties", {}).get("email", {})
        if address.get("examples") == ["ann@example.com"] and "pattern" not in address:
            address["format"] = "email"


@schemathesis.hook
def filter_case(context, case):
    """Keeps the tests from changing the accounts and ending the sessions that send the requests."""
    return case.method == "GET" or IDS_IN_USE.isdisjoint(map(str, (case.path_parameters or {}).values()))


@schemathesis.hook
def map_case(context, case):
    """Says nothing twice, which may be an error that OpenAPI cannot describe: asks for pages either by `page` and
    `size` or by `limit` and `offset`, and for active accounts either by `is_active` or by `active`. Sorts only deleted
    files by their deletion. Waits for no changes, which would take up to half a minute each time. Names files that come
    in several requests, whose metadata has values in Base64."""
    if case.meta.generation.mode.is_positive and "Upload-Metadata" in (case.headers or {}):
        name = base64.b64encode(case.headers["Upload-Metadata"].encode() or b"a.txt").decode()
        case.headers["Upload-Metadata"] = f"filename {name}"
    query = case.query or {}
    if query and case.meta.generation.mode.is_positive:
        twice = {"limit", "offset"} if {"page", "size"} & query.keys() else set()
        twice |= {"active"} if "is_active" in query else set()
        case.query = {name: value for name, value in query.items() if name not in twice | {"wait"}}
        if case.query.get("sort_by") == "deleted_at":
            case.query["deleted"] = "true"
    return case


restored_files = set()  # the paths that have their ids


@schemathesis.hook
def after_call(context, case, response):
    """Notes which deleted files are there again: one, or any if some were restored together."""
    if response.status_code == 200 and case.path.endswith("/restore") and response.json().get("restored") != 0:
        restored_files.add(case.formatted_path.removesuffix("/restore"))


def is_restored(case, response):
    """A deleted file is there again after it was restored."""
    return any(case.formatted_path.startswith(path) for path in restored_files)


def is_public(case, response):
    """A public file may be read by every user."""
    return response.json().get("is_public", False)


def sends_text_beside_file(case, response):
    """In a multipart form a number or a boolean is text, too. schemathesis knows that, but not of forms with a file."""
    return (
        case.media_type == "multipart/form-data"
        and isinstance(case.body, dict)
        and isinstance(case.body.get("file"), Binary)
    )


def is_no_filename(case, response):
    """The names `.` and `..` and those that consist of spaces are refused. As a pattern this would be hard to read."""
    return "Must be a filename" in response.text


def is_trimmed(case, response):
    """Names and addresses are trimmed before they are measured. As a pattern this would be hard to read."""
    body = case.body if isinstance(case.body, dict) else {}
    names = [body.get(name) for name in ("name", "username", "email")]
    return any(isinstance(name, str) and name != name.strip() for name in names)


def has_value_of_a_form(case, response):
    """A boolean may also be 0, 1 or a word as in forms, and a whole number a text. The document has the usual types."""
    words = {"true", "t", "yes", "y", "on", "false", "f", "no", "n", "off"}
    values = [*(case.body.values() if isinstance(case.body, dict) else ()), *(case.query or {}).values()]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    texts = [value.strip().lower() for value in values if isinstance(value, str)]
    return any(value in (0, 1) for value in numbers) or any(
        text in words or re.fullmatch(r"[+-]?[0-9]+([.]0+)?", text) for text in texts)


def has_empty_filter(case, response):
    """A filter without a value is no filter. OpenAPI has only a deprecated word for that."""
    return "" in (case.query or {}).values()


def is_blank(case, response):
    """A body of white space is an empty one, which has no fields."""
    return isinstance(case.body, bytes) and not case.body.decode(errors="replace").strip()


def is_empty_list(case, response):
    """The list of an account's tokens or sessions is there after all of them were deleted: it is empty."""
    return [] in response.json().values()


def has_both_names(case, response):
    """Of two names of a field only the advised one is read if both are given, so the other one may be anything."""
    names = {"/api/v1/auth/login": {"username", "email"},
             "/api/v1/users/change-password": {"current_password", "old_password"}}.get(case.path)
    return names is not None and isinstance(case.body, dict) and names <= case.body.keys()


def has_key_of_another_upload(case, response):
    """An upload has the key of another one. OpenAPI cannot say that they belong together."""
    return "KEY_REUSED" in response.text


def is_beyond_years(case, response):
    """An offset moves a time out of the years 1 to 9999. OpenAPI has no words for that."""
    edges = ("0001-01-01", "9999-12-31")
    return "Invalid timestamp" in response.text and any(edge in f"{case.query} {case.body}" for edge in edges)


def has_many_parts(case, response):
    """A form has more than 16 parts. OpenAPI limits only the names, of which each may have several parts."""
    return "Must have at most 16 parts" in response.text


def invites(case, response):
    """In optional fields null is the same as absent. A password is optional where a user is invited."""
    return (
        case.path == "/api/v1/users"
        and isinstance(case.body, dict)
        and case.body.get("invite") is True
        and case.body.get("password") is None
    )


def names_two_folders(case, response):
    """A list is of the files in a folder or of those below one. OpenAPI cannot say that of two parameters."""
    return "Must not be given beside folder" in response.text


def ends_link_by_its_secret(case, response):
    """The path that ends a link has its id, where the one that opens it has its secret part. OpenAPI takes both for one
    path, whose parameter has one name, and so schemathesis takes one for the other."""
    return case.method == "DELETE" and case.path == "/api/v1/links/{token}" and "link_id" in response.text


def is_for_another_link(case, response):
    """Fields that only a link to send files by has are ignored in a request for another link."""
    return (
        case.method == "POST"
        and case.path == "/api/v1/links"
        and isinstance(case.body, dict)
        and case.body.get("upload_to") is None
    )


def is_beyond_quota(case, response):
    """A link takes at most as many bytes as its owner's quota, which the document does not know."""
    return case.path == "/api/v1/links" and "max_bytes" in response.text


def has_name_of_a_download(case, response):
    """A link may be followed by any name under which programs save what they download, such as `files`."""
    return case.path == "/api/v1/links/{token}/files"


# What schemathesis takes for a failure, and the condition under which it is none.
EXCEPTIONS = [
    (ObjectLevelAuthorizationViolation, is_public),
    (RejectedPositiveData, is_no_filename),
    (RejectedPositiveData, is_trimmed),
    (RejectedPositiveData, has_key_of_another_upload),
    (RejectedPositiveData, is_beyond_years),
    (RejectedPositiveData, has_many_parts),
    (RejectedPositiveData, names_two_folders),
    (RejectedPositiveData, ends_link_by_its_secret),
    (RejectedPositiveData, is_beyond_quota),
    (AcceptedNegativeData, sends_text_beside_file),
    (AcceptedNegativeData, is_trimmed),
    (AcceptedNegativeData, has_value_of_a_form),
    (AcceptedNegativeData, has_empty_filter),
    (AcceptedNegativeData, has_both_names),
    (AcceptedNegativeData, is_blank),
    (AcceptedNegativeData, invites),
    (AcceptedNegativeData, is_for_another_link),
    (AllowHeaderMismatch, has_name_of_a_download),
    (UseAfterFree, is_empty_list),
    (UseAfterFree, is_restored),
]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Keeps the failures to which no exception applies."""
    return not any(isinstance(failure, kind) and applies(case, response) for kind, applies in EXCEPTIONS)
