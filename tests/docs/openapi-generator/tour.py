"""A tour with the Python client that openapi-generator makes from the document, for its main points.

Usage: tour.py URL ADMIN PASSWORD, with the username and the password of an administrator
"""

import hashlib
import json
import sys
import uuid
from collections.abc import Callable

from cloakroom_client import (
    AdministrationApi,
    ApiClient,
    ApiException,
    AuthenticationApi,
    Configuration,
    FileSortKey,
    FileState,
    FilesApi,
    LoginRequest,
    RefreshTokensRequest,
    RegisterRequest,
    SortOrder,
    StoredFile,
    TokenResponse,
    UpdateFileRequest,
    User,
    YourAccountApi,
)
from urllib3.exceptions import HTTPError

CONTENT = b"The first file of a tour.\n"


def reason_of_refusal(request: Callable[[], object]) -> str:
    """The `reason` of the error that a request is answered with."""
    try:
        answer = request()
    except ApiException as error:
        reason: str = json.loads(error.body or "")["reason"]
        return reason
    raise AssertionError(answer)


def sign_in(url: str, username: str, password: str) -> TokenResponse:
    return AuthenticationApi(ApiClient(Configuration(url))).login(LoginRequest(username=username, password=password))


def signed_in(url: str, token: str) -> ApiClient:
    return ApiClient(Configuration(url, access_token=token))


def use_files(files: FilesApi) -> None:
    def upload(name: str) -> StoredFile:
        """Sends a file until an answer comes: the key makes sure that it is stored once."""
        key = str(uuid.uuid4())
        for _ in range(5):
            try:
                return files.upload_file((name, CONTENT), description="A tour", idempotency_key=key)
            except HTTPError:
                continue
        raise AssertionError("no answer")

    file, *_ = [upload(name) for name in ("first.txt", "second.txt", "third.txt")]
    assert file.filename == "first.txt", file
    assert file.file_hash == f"sha256:{hashlib.sha256(CONTENT).hexdigest()}", file

    listed: list[str] = []
    number, pages = 1, 1
    while number <= pages:
        page = files.list_files(page=number, size=2, sort_by=FileSortKey.FILENAME, sort_order=SortOrder.ASC)
        listed += [item.filename for item in page.items]
        number, pages = number + 1, page.pages
    assert listed == ["first.txt", "second.txt", "third.txt"], listed

    assert files.download_file(file.id) == CONTENT
    assert files.download_file(file.id, range="bytes=4-8") == b"first"
    change = UpdateFileRequest(description=None, is_public=True)
    assert files.update_file(file.id, update_file_request=change).is_public
    files.delete_file(file.id)
    assert reason_of_refusal(lambda: files.get_file(file.id)) == "FILE_NOT_FOUND"
    changes = files.list_changes()
    assert [item.id for item in files.list_files(deleted=True).items] == [file.id]
    assert files.restore_file(file.id).is_public
    changes = files.list_changes(after=changes.next, wait=30)
    assert [(change.file_id, change.change) for change in changes.changes] == [(file.id, FileState.PRESENT)], changes


def audit_actions(administration: AdministrationApi, actor: uuid.UUID) -> list[str]:
    """What an account did, newest first, read with the cursor of the audit log."""
    page = administration.list_audit_events(actor_id=actor, limit=3)
    actions = [event.action.value for event in page.events]
    while page.next:
        page = administration.list_audit_events(actor_id=actor, limit=3, before=page.next)
        actions += [event.action.value for event in page.events]
    return actions


def main() -> None:
    url, admin_name, admin_password = sys.argv[1:]
    anyone = AuthenticationApi(ApiClient(Configuration(url)))
    username = f"tour_{uuid.uuid4().hex[:12]}"
    password = "correct horse"

    registration = RegisterRequest(username=username, email=f"{username}@example.com", password=password)
    account = anyone.register(registration).actual_instance
    assert isinstance(account, User) and account.username == username, account
    assert reason_of_refusal(lambda: anyone.register(registration)) == "USERNAME_TAKEN"

    refresh_token = sign_in(url, username, password).refresh_token
    tokens = anyone.refresh_tokens(RefreshTokensRequest(refresh_token=refresh_token))
    client = signed_in(url, tokens.access_token)
    profile = YourAccountApi(client).get_my_profile
    assert profile().id == account.id

    use_files(FilesApi(client))

    AuthenticationApi(client).logout()
    assert reason_of_refusal(profile) == "SESSION_ENDED"

    admin = AdministrationApi(signed_in(url, sign_in(url, admin_name, admin_password).access_token))
    actions = audit_actions(admin, account.id)
    files = ["file.restore", "file.delete", "file.update", *["file.upload"] * 3]
    assert actions == ["auth.logout", *files, "auth.login", "auth.register"], actions


if __name__ == "__main__":
    main()
