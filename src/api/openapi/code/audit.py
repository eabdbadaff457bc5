import requests

def events(url, token, **filters):
    """Yields all events of the audit log that match, the newest first, page by page."""
    while True:
        response = requests.get(
            f"{url}/api/v1/admin/audit",
            headers={"Authorization": f"Bearer {token}"},
            params=filters,
        )
        response.raise_for_status()
        page = response.json()
        yield from page["events"]
        if page["next"] is None:
            return
        filters["before"] = page["next"]
