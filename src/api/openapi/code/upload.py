import requests

def upload(url, token, path, content_type, description):
    """Uploads a file and returns its metadata, with its id."""
    with open(path, "rb") as file:
        response = requests.post(
            f"{url}/api/v1/uploads",
            headers={"Authorization": f"Bearer {token}"},
            files={"file": (path, file, content_type)},
            data={"description": description},
        )
    response.raise_for_status()
    return response.json()
