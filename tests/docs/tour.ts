// A tour with openapi-fetch and the types that openapi-typescript generates from the document.
//
// Usage: node tour.js URL ADMIN PASSWORD, with the username and the password of an administrator

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import createClient from "openapi-fetch";
import type { paths } from "./cloakroom.js";
import {
  adminName, adminPassword, content, done, hash, ok, password, refused, registration, textFile, untilAnswered, url,
  username,
} from "./tour_common.js";

const api = createClient<paths>({ baseUrl: url });

function bearer(token: string) {
  return { Authorization: `Bearer ${token}` };
}

// Register. Programs decide by `reason` what to do about an error; `detail` and `hint` are for people.
const account = ok(await api.POST("/api/v1/auth/register", { body: registration }));
assert("username" in account && account.username === username);
const taken = refused(await api.POST("/api/v1/auth/register", { body: registration }), 400);
assert.equal(taken.reason, "USERNAME_TAKEN");

// Sign in, and exchange the refresh token for the next pair of tokens.
const signIn = ok(await api.POST("/api/v1/auth/login", { body: { username, password } }));
const tokens = ok(await api.POST("/api/v1/auth/refresh", { body: { refresh_token: signIn.refresh_token } }));
const headers = bearer(tokens.access_token);

const profile = ok(await api.GET("/api/v1/users/me", { headers }));
assert.equal(profile.id, account.id);
assert.equal(profile.stats.total_uploads, 0);

// Upload. A schema has no type for the content of a file, so the form is passed beside the typed body.
function upload(name: string) {
  const form = new FormData();
  form.append("file", textFile(name));
  form.append("description", "A tour");
  const params = { header: { "Idempotency-Key": randomUUID() } };
  return untilAnswered(async () =>
    ok(await api.POST("/api/v1/uploads", { headers, params, body: { file: "" }, bodySerializer: () => form })));
}
const files = [await upload("first.txt"), await upload("second.txt"), await upload("third.txt")];
const file = files[0];
assert.equal(file.filename, "first.txt");
assert.equal(file.file_hash, hash);

// List, page by page.
const listed: string[] = [];
for (let page = 1, pages = 1; page <= pages; page += 1) {
  const query = { page, size: 2, sort_by: "filename", sort_order: "asc" } as const;
  const list = ok(await api.GET("/api/v1/uploads", { headers, params: { query } }));
  listed.push(...list.items.map((item) => item.filename));
  pages = list.pages;
}
assert.deepEqual(listed, ["first.txt", "second.txt", "third.txt"]);

// Download all of it, or only a part.
const path = { file_id: file.id };
const download = "/api/v1/uploads/{file_id}/download";
const whole = ok(await api.GET(download, { headers, params: { path }, parseAs: "text" }));
assert.equal(whole, content);
const range = { path, header: { Range: "bytes=4-8" } };
const part = await api.GET(download, { headers, params: range, parseAs: "text" });
assert.equal(part.response.status, 206);
assert.equal(ok(part), "first");

// Change, delete and restore. The `next` of the changes so far is where those that come later begin.
const change = { description: null, is_public: true };
const changed = ok(await api.PUT("/api/v1/uploads/{file_id}", { headers, params: { path }, body: change }));
assert(changed.is_public);
done(await api.DELETE("/api/v1/uploads/{file_id}", { headers, params: { path } }));
const gone = refused(await api.GET("/api/v1/uploads/{file_id}", { headers, params: { path } }), 404);
assert.equal(gone.reason, "FILE_NOT_FOUND");
const changes = ok(await api.GET("/api/v1/changes", { headers }));
assert.equal(changes.changes.length, 2);
const deleted = ok(await api.GET("/api/v1/uploads", { headers, params: { query: { deleted: true } } }));
assert.deepEqual(deleted.items.map((item) => item.id), [file.id]);
const restored = ok(await api.POST("/api/v1/uploads/{file_id}/restore", { headers, params: { path } }));
assert(restored.is_public);
const later = { after: changes.next, wait: 30 };
const news = ok(await api.GET("/api/v1/changes", { headers, params: { query: later } }));
assert.deepEqual(news.changes.map((change) => [change.file_id, change.change]), [[file.id, "present"]]);

// Sign out: the access token is refused from then on.
done(await api.POST("/api/v1/auth/logout", { headers }));
const ended = refused(await api.GET("/api/v1/users/me", { headers }), 401);
assert.equal(ended.reason, "SESSION_ENDED");

// An administrator reads the audit log with a cursor.
const admin = ok(await api.POST("/api/v1/auth/login", { body: { username: adminName, password: adminPassword } }));
const actions: string[] = [];
let before: string | undefined;
do {
  const query = { actor_id: account.id, limit: 3, before };
  const list = ok(await api.GET("/api/v1/admin/audit", { headers: bearer(admin.access_token), params: { query } }));
  actions.push(...list.events.map((event) => event.action));
  before = list.next ?? undefined;
} while (before);
assert.deepEqual(actions, [
  "auth.logout", "file.restore", "file.delete", "file.update", "file.upload", "file.upload", "file.upload",
  "auth.login", "auth.register",
]);
