import os
import requests

def download(url, token, file_id, path):
    """Downloads a file, or only the rest of it after an interruption. A content never changes."""
    size = os.path.getsize(path) if os.path.exists(path) else 0
    headers = {"Authorization": f"Bearer {token}"}
    if size:
        headers["Range"] = f"bytes={size}-"
    address = f"{url}/api/v1/uploads/{file_id}/download"
    with requests.get(address, headers=headers, stream=True) as response:
        if size and response.status_code == 416:
            return  # Nothing is missing.
        response.raise_for_status()
        with open(path, "ab" if response.status_code == 206 else "wb") as file:
            for chunk in response.iter_content(65536):
                file.write(chunk)
