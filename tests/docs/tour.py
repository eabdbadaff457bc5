"""A tour with the Python client that openapi-python-client generates from the document.

Usage: tour.py URL ADMIN PASSWORD, with the username and the password of an administrator
"""

import hashlib
import io
import sys
import uuid
from http import HTTPStatus

import httpx
from cloakroom_client import AuthenticatedClient, Client
from cloakroom_client.api.administration import list_audit_events
from cloakroom_client.api.authentication import login, logout, refresh_tokens, register
from cloakroom_client.api.files import (
    delete_file,
    download_file,
    get_file,
    list_changes,
    list_files,
    restore_file,
    update_file,
    upload_file,
)
from cloakroom_client.api.your_account import get_my_profile
from cloakroom_client.models import (
    ApiError,
    AuditEventList,
    ChangeList,
    FilePage,
    FileSortKey,
    FileState,
    LoginRequest,
    Profile,
    Reason,
    RefreshTokensRequest,
    RegisterRequest,
    SortOrder,
    StoredFile,
    TokenResponse,
    UpdateFileRequest,
    UploadFileForm,
    User,
)
from cloakroom_client.types import UNSET, File, Unset

CONTENT = b"The first file of a tour.\n"


def sign_in(url: str, username: str, password: str) -> TokenResponse:
    tokens = login.sync(client=Client(base_url=url), body=LoginRequest(username=username, password=password))
    assert isinstance(tokens, TokenResponse), tokens
    return tokens


def upload(client: AuthenticatedClient, name: str) -> StoredFile:
    """Sends a file until an answer comes: the key makes sure that it is stored once."""
    key = str(uuid.uuid4())
    for _ in range(5):
        content = File(payload=io.BytesIO(CONTENT), file_name=name, mime_type="text/plain")
        form = UploadFileForm(file=content, description="A tour")
        try:
            file = upload_file.sync(client=client, body=form, idempotency_key=key)
        except httpx.TransportError:
            continue
        assert isinstance(file, StoredFile) and file.filename == name, file
        return file
    raise AssertionError("no answer")


def use_files(client: AuthenticatedClient) -> None:
    file, *_ = [upload(client, name) for name in ("first.txt", "second.txt", "third.txt")]
    assert file.file_hash == f"sha256:{hashlib.sha256(CONTENT).hexdigest()}", file

    # List, page by page.
    listed: list[str] = []
    number, pages = 1, 1
    while number <= pages:
        page = list_files.sync(
            client=client, page=number, size=2, sort_by=FileSortKey.FILENAME, sort_order=SortOrder.ASC
        )
        assert isinstance(page, FilePage), page
        listed += [item.filename for item in page.items]
        number, pages = number + 1, page.pages
    assert listed == ["first.txt", "second.txt", "third.txt"], listed

    # Download all of it, or only a part.
    whole = download_file.sync(file.id, client=client)
    assert isinstance(whole, File) and whole.payload.read() == CONTENT, whole
    part = download_file.sync_detailed(file.id, client=client, range_="bytes=4-8")
    assert part.status_code == HTTPStatus.PARTIAL_CONTENT and part.content == b"first", part

    # Change, delete and restore. `next_` of the changes so far is where those that come later begin.
    changed = update_file.sync(file.id, client=client, body=UpdateFileRequest(description=None, is_public=True))
    assert isinstance(changed, StoredFile) and changed.is_public, changed
    assert delete_file.sync_detailed(file.id, client=client).status_code == HTTPStatus.NO_CONTENT
    gone = get_file.sync(file.id, client=client)
    assert isinstance(gone, ApiError) and gone.reason == Reason.FILE_NOT_FOUND, gone
    changes = list_changes.sync(client=client)
    assert isinstance(changes, ChangeList) and len(changes.changes) == 2, changes
    deleted = list_files.sync(client=client, deleted=True)
    assert isinstance(deleted, FilePage) and [item.id for item in deleted.items] == [file.id], deleted
    restored = restore_file.sync(file.id, client=client)
    assert isinstance(restored, StoredFile) and restored.is_public, restored
    changes = list_changes.sync(client=client, after=changes.next_, wait=30)
    assert isinstance(changes, ChangeList), changes
    assert [(change.file_id, change.change) for change in changes.changes] == [(file.id, FileState.PRESENT)], changes


def audit_actions(client: AuthenticatedClient, actor: uuid.UUID) -> list[str]:
    """What an account did, newest first, read with the cursor of the audit log."""
    actions: list[str] = []
    before: str | None | Unset = UNSET
    while before is not None:
        page = list_audit_events.sync(client=client, actor_id=actor, limit=3, before=before)
        assert isinstance(page, AuditEventList), page
        actions += [event.action.value for event in page.events]
        before = page.next_
    return actions


def main() -> None:
    url, admin_name, admin_password = sys.argv[1:]
    anyone = Client(base_url=url)
    username = f"tour_{uuid.uuid4().hex[:12]}"
    password = "correct horse"

    # Register. Programs decide by `reason` what to do about an error; `detail` and `hint` are for people.
    registration = RegisterRequest(username=username, email=f"{username}@example.com", password=password)
    account = register.sync(client=anyone, body=registration)
    assert isinstance(account, User) and account.username == username, account
    taken = register.sync(client=anyone, body=registration)
    assert isinstance(taken, ApiError) and taken.reason == Reason.USERNAME_TAKEN, taken

    # Sign in, and exchange the refresh token for the next pair of tokens.
    refresh_token = sign_in(url, username, password).refresh_token
    tokens = refresh_tokens.sync(client=anyone, body=RefreshTokensRequest(refresh_token=refresh_token))
    assert isinstance(tokens, TokenResponse), tokens
    user = AuthenticatedClient(base_url=url, token=tokens.access_token)
    profile = get_my_profile.sync(client=user)
    assert isinstance(profile, Profile) and profile.id == account.id and profile.stats.total_uploads == 0, profile

    use_files(user)

    # Sign out: the access token is refused from then on.
    assert logout.sync_detailed(client=user).status_code == HTTPStatus.NO_CONTENT
    ended = get_my_profile.sync(client=user)
    assert isinstance(ended, ApiError) and ended.reason == Reason.SESSION_ENDED, ended

    admin = AuthenticatedClient(base_url=url, token=sign_in(url, admin_name, admin_password).access_token)
    actions = audit_actions(admin, account.id)
    assert actions == [
        "auth.logout",
        "file.restore",
        "file.delete",
        "file.update",
        *["file.upload"] * 3,
        "auth.login",
        "auth.register",
    ], actions


if __name__ == "__main__":
    main()
