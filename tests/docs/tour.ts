// The tour of the README with openapi-fetch and the types that openapi-typescript generates from the document.
//
// Usage: node tour.js URL

import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import createClient from "openapi-fetch";
import type { paths } from "./cloakroom.js";

const api = createClient<paths>({ baseUrl: process.argv[2] });

/** The data of a response, whose status must be one of success. */
function ok<T>({ data, error, response }: { data?: T; error?: unknown; response: Response }): T {
  assert(response.ok, `${response.url}: ${response.status} ${JSON.stringify(error)}`);
  return data as T;
}

function bearer(token: string) {
  return { Authorization: `Bearer ${token}` };
}

const username = `tour_${randomUUID().slice(0, 8)}`;
const password = "correct horse";

const account = ok(
  await api.POST("/api/v1/auth/register", { body: { username, email: `${username}@example.com`, password } }),
);
assert("username" in account && account.username === username);

const tokens = ok(await api.POST("/api/v1/auth/login", { body: { username, password } }));
const headers = bearer(tokens.access_token);

const profile = ok(await api.GET("/api/v1/auth/me", { headers }));
assert.equal(profile.id, account.id);
assert.equal(profile.stats.total_uploads, 0);

const content = "The first file of a tour.\n";
const form = new FormData();
form.append("file", new Blob([content], { type: "text/plain" }), "tour.txt");
form.append("description", "A tour");
// A schema has no type for the content of a file, so the form is passed beside the typed body.
const file = ok(
  await api.POST("/api/v1/uploads", { headers, body: { file: "" }, bodySerializer: () => form }),
);
assert.equal(file.filename, "tour.txt");
assert.equal(file.file_hash, `sha256:${createHash("sha256").update(content).digest("hex")}`);

const page = ok(await api.GET("/api/v1/uploads", { headers, params: { query: { search: "tour", size: 5 } } }));
assert.deepEqual(page.items.map((item) => item.id), [file.id]);

const path = { file_id: file.id };
const download = ok(
  await api.GET("/api/v1/uploads/{file_id}/download", { headers, params: { path }, parseAs: "text" }),
);
assert.equal(download, content);

const renewed = ok(await api.POST("/api/v1/auth/refresh", { body: { refresh_token: tokens.refresh_token } }));
ok(await api.POST("/api/v1/auth/logout", { headers: bearer(renewed.access_token) }));
const ended = await api.GET("/api/v1/auth/me", { headers: bearer(renewed.access_token) });
assert.equal(ended.response.status, 401);
