/** Yields all events of the audit log that match, the newest first, page by page. */
async function* events(url: string, token: string, filters: Record<string, string> = {}) {
  const query = new URLSearchParams(filters);
  for (;;) {
    const response = await fetch(`${url}/api/v1/admin/audit?${query}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    if (!response.ok) throw new Error(await response.text());
    const page = await response.json();
    yield* page.events;
    if (page.next === null) return;
    query.set("before", page.next);
  }
}
