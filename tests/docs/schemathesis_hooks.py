"""Exceptions from the tests of schemathesis that depend on values. Those of whole endpoints are in schemathesis.toml."""

import base64
import json
import pathlib

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import RejectedPositiveData


def account_ids(file):
    """The ids of the accounts whose tokens accounts.py has written to a file: the subjects of these tokens."""
    for account in json.loads(file.read_text())["auth"]:
        payload = account["fixedHeaders"][0]["value"].split(".")[1]
        yield json.loads(base64.urlsafe_b64decode(payload + "=="))["sub"]


# scripts/test-docs starts schemathesis in the directory of this file.
ACCOUNTS = set(account_ids(pathlib.Path("accounts.json")))


@schemathesis.hook
def filter_case(context, case):
    """Keeps an administrator from ending the sessions of the accounts that send the requests, its own included."""
    return case.method == "GET" or (case.path_parameters or {}).get("user_id") not in ACCOUNTS


def mixes_paging(case, response):
    """Pages are asked for by `page` and `size` or by `limit` and `offset`. OpenAPI cannot say that both is an error."""
    names = set(case.query or {})
    return response.status_code == 422 and bool(names & {"page", "size"} and names & {"limit", "offset"})


def sends_text_in_multipart(case, response):
    """In a multipart form a number or a boolean is text, too. schemathesis knows that, but not in a form with a file."""
    return (
        case.media_type == "multipart/form-data"
        and isinstance(case.body, dict)
        and isinstance(case.body.get("file"), bytes)
    )


# What schemathesis takes for a failure, and the condition under which it is none.
EXCEPTIONS = [
    (RejectedPositiveData, mixes_paging),
    (AcceptedNegativeData, sends_text_in_multipart),
]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    return not any(isinstance(failure, kind) and applies(case, response) for kind, applies in EXCEPTIONS)
