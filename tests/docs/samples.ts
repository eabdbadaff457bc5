// Runs the TypeScript code that the document shows. samples.py has written it to a module.
//
// Usage: node samples.js URL ADMIN PASSWORD, with the username and the password of an administrator

import assert from "node:assert/strict";
import { changes, download, events, upload } from "./document_code.js";
import { adminName, adminPassword, content, textFile, url } from "./tour_common.js";

const login = await fetch(`${url}/api/v1/auth/login`, {
  method: "POST",
  body: JSON.stringify({ username: adminName, password: adminPassword }),
});
const token: string = (await login.json()).access_token;

const ids: string[] = [];
for (const name of ["first.txt", "second.txt", "third.txt"]) {
  const file = await upload(url, token, textFile(name), "A sample");
  assert.equal(file.filename, name);
  assert.equal(file.description, "A sample");
  ids.push(file.id);
}

const downloads = [await download(url, token, ids[0])];
for (const first of [4, content.length]) downloads.push(await download(url, token, ids[0], first));
const texts = await Promise.all(downloads.map((part) => part.text()));
assert.deepEqual(texts, [content, content.slice(4), ""]);

const pages = changes(url, token);
const { value: present } = await pages.next();
const headers = { Authorization: `Bearer ${token}` };
assert((await fetch(`${url}/api/v1/uploads/${ids[0]}`, { method: "DELETE", headers })).ok);
for (const follow of [pages, changes(url, token, present.next)]) {
  const { value: page } = await follow.next();
  assert.deepEqual([page.changes[0].file_id, page.changes[0].change], [ids[0], "deleted"]);
}

const uploaded: string[] = [];
for await (const event of events(url, token, { action: "file.upload", limit: "2" })) {
  uploaded.push(event.subject_id);
}
assert.deepEqual(uploaded.slice(0, 3), ids.reverse());
