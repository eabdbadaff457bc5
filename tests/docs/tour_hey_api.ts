// The same tour as tour.ts with the client that @hey-api/openapi-ts generates from the document.
//
// Usage: node tour_hey_api.js URL ADMIN PASSWORD, with the username and the password of an administrator

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createClient, createConfig } from "./cloakroom/client/index.js";
import * as api from "./cloakroom/index.js";
import {
  adminName, adminPassword, content, done, hash, ok, password, refused, registration, textFile, untilAnswered, url,
  username,
} from "./tour_common.js";

/** A client that sends this token with each request that needs one. */
function signedIn(token?: string) {
  return createClient(createConfig<api.ClientOptions>({ baseUrl: url, auth: token }));
}

// Register. Programs decide by `reason` what to do about an error; `detail` and `hint` are for people.
const anyone = signedIn();
const account = ok(await api.register({ client: anyone, body: registration }));
assert("username" in account && account.username === username);
const taken = refused(await api.register({ client: anyone, body: registration }), 400);
assert.equal(taken.reason, "USERNAME_TAKEN");

// Sign in, and exchange the refresh token for the next pair of tokens.
const signIn = ok(await api.login({ client: anyone, body: { username, password } }));
const tokens = ok(await api.refreshTokens({ client: anyone, body: { refresh_token: signIn.refresh_token } }));
const client = signedIn(tokens.access_token);

const profile = ok(await api.getMyProfile({ client }));
assert.equal(profile.id, account.id);
assert.equal(profile.stats.total_uploads, 0);

// Upload.
function upload(name: string) {
  const headers = { "Idempotency-Key": randomUUID() };
  const body = { file: textFile(name), description: "A tour" };
  return untilAnswered(async () => ok(await api.uploadFile({ client, headers, body })));
}
const files = [await upload("first.txt"), await upload("second.txt"), await upload("third.txt")];
const file = files[0];
assert.equal(file.filename, "first.txt");
assert.equal(file.file_hash, hash);

// List, page by page.
const listed: string[] = [];
for (let page = 1, pages = 1; page <= pages; page += 1) {
  const query = { page, size: 2, sort_by: "filename", sort_order: "asc" } as const;
  const list = ok(await api.listFiles({ client, query }));
  listed.push(...list.items.map((item) => item.filename));
  pages = list.pages;
}
assert.deepEqual(listed, ["first.txt", "second.txt", "third.txt"]);

// Download all of it, or only a part. A file has the type it was uploaded with, so the caller says how to read it.
const path = { file_id: file.id };
const whole = ok(await api.downloadFile({ client, path, parseAs: "blob" }));
assert.equal(await whole.text(), content);
const part = await api.downloadFile({ client, path, headers: { Range: "bytes=4-8" }, parseAs: "blob" });
assert.equal(part.response?.status, 206);
assert.equal(await ok(part).text(), "first");

// Change, delete and restore. The `next` of the changes so far is where those that come later begin.
const changed = ok(await api.updateFile({ client, path, body: { description: null, is_public: true } }));
assert(changed.is_public);
done(await api.deleteFile({ client, path }));
const gone = refused(await api.getFile({ client, path }), 404);
assert.equal(gone.reason, "FILE_NOT_FOUND");
const changes = ok(await api.listChanges({ client }));
assert.equal(changes.changes.length, 2);
const deleted = ok(await api.listFiles({ client, query: { deleted: true } }));
assert.deepEqual(deleted.items.map((item) => item.id), [file.id]);
const restored = ok(await api.restoreFile({ client, path }));
assert(restored.is_public);
const news = ok(await api.listChanges({ client, query: { after: changes.next, wait: 30 } }));
assert.deepEqual(news.changes.map((change) => [change.file_id, change.change]), [[file.id, "present"]]);

// Sign out: the access token is refused from then on.
done(await api.logout({ client }));
const ended = refused(await api.getMyProfile({ client }), 401);
assert.equal(ended.reason, "SESSION_ENDED");

// An administrator reads the audit log with a cursor.
const admin = ok(await api.login({ client: anyone, body: { username: adminName, password: adminPassword } }));
const actions: string[] = [];
let before: string | undefined;
do {
  const query = { actor_id: account.id, limit: 3, before };
  const list = ok(await api.listAuditEvents({ client: signedIn(admin.access_token), query }));
  actions.push(...list.events.map((event) => event.action));
  before = list.next ?? undefined;
} while (before);
assert.deepEqual(actions, [
  "auth.logout", "file.restore", "file.delete", "file.update", "file.upload", "file.upload", "file.upload",
  "auth.login", "auth.register",
]);
