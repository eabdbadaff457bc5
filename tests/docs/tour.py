"""The tour of the README with the Python client that openapi-python-client generates from the document.

Usage: tour.py URL
"""

import hashlib
import io
import sys
import uuid

from cloakroom_client import AuthenticatedClient, Client
from cloakroom_client.api.authentication import get_current_user, login, logout, refresh_tokens, register
from cloakroom_client.api.files import download_file, list_files, upload_file
from cloakroom_client.models import File as StoredFile
from cloakroom_client.models import (
    FilePage,
    LoginRequest,
    Profile,
    RefreshTokensRequest,
    RegisterRequest,
    TokenResponse,
    UploadFileForm,
    User,
)
from cloakroom_client.types import File


def main() -> None:
    url = sys.argv[1]
    anyone = Client(base_url=url)
    username = f"tour_{uuid.uuid4().hex[:12]}"
    password = "correct horse"

    account = register.sync(
        client=anyone,
        body=RegisterRequest(username=username, email=f"{username}@example.com", password=password),
    )
    assert isinstance(account, User) and account.username == username, account

    tokens = login.sync(client=anyone, body=LoginRequest(username=username, password=password))
    assert isinstance(tokens, TokenResponse), tokens
    user = AuthenticatedClient(base_url=url, token=tokens.access_token)

    profile = get_current_user.sync(client=user)
    assert isinstance(profile, Profile) and profile.id == account.id and profile.stats.total_uploads == 0, profile

    content = "The first file of a tour.\n".encode()
    body = UploadFileForm(
        file=File(payload=io.BytesIO(content), file_name="tour.txt", mime_type="text/plain"), description="A tour"
    )
    file = upload_file.sync(client=user, body=body)
    assert isinstance(file, StoredFile) and file.filename == "tour.txt", file
    assert file.file_hash == f"sha256:{hashlib.sha256(content).hexdigest()}", file

    page = list_files.sync(client=user, search="tour", size=5)
    assert isinstance(page, FilePage) and [item.id for item in page.items] == [file.id], page

    download = download_file.sync(file.id, client=user)
    assert isinstance(download, File) and download.payload.read() == content, download

    renewed = refresh_tokens.sync(client=anyone, body=RefreshTokensRequest(refresh_token=tokens.refresh_token))
    assert isinstance(renewed, TokenResponse), renewed
    user = AuthenticatedClient(base_url=url, token=renewed.access_token)

    assert logout.sync_detailed(client=user).status_code == 204
    assert get_current_user.sync_detailed(client=user).status_code == 401


if __name__ == "__main__":
    main()
