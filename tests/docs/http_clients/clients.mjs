// The flows of flows.jsonl by axios, got, ky and undici, as their defaults send them.
// Usage: node clients.mjs FLOWS URL ADMIN PASSWORD

import assert from "node:assert/strict";
import { File } from "node:buffer";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

import axios from "axios";
import got from "got";
import ky from "ky";
import { Agent, FormData as UndiciFormData, request } from "undici";

const [flows, url, admin, password] = process.argv.slice(2);
const base = `${url}/api/v1/`;

/** The form of a step, with its file. */
function formOf({ form, file: { name, content, times = 1 } }, FormData = globalThis.FormData) {
  const parts = new FormData();
  parts.append("file", new File([Buffer.from(content.repeat(times), "latin1")], name));
  for (const [field, text] of Object.entries(form ?? {})) parts.append(field, text);
  return parts;
}

/** Each sends a step and answers with status and bytes, also of an error, which most of them throw by default. */
const clients = {
  axios: async ({ method, path, headers, query: params, ...step }) => {
    const data = step.file ? formOf(step) : step.form ? new URLSearchParams(step.form) : step.json;
    const options = { baseURL: base, method, url: path, headers, params, data };
    const { status, data: bytes } =
      await axios.request({ ...options, responseType: "arraybuffer", validateStatus: () => true });
    return [status, bytes];
  },
  got: async ({ method, path, headers, query: searchParams, json, ...step }) => {
    const content = step.file ? { body: formOf(step) } : step.form ? { form: step.form } : json ? { json } : {};
    const answer =
      await got(path, { prefixUrl: base, method, headers, searchParams, ...content, throwHttpErrors: false });
    return [answer.statusCode, answer.rawBody];
  },
  ky: async ({ method, path, headers, query: searchParams, json, ...step }) => {
    const body = step.file ? formOf(step) : step.form && new URLSearchParams(step.form);
    const content = json ? { json } : { body };
    const answer =
      await ky(path, { prefixUrl: base, method, headers, searchParams, ...content, throwHttpErrors: false });
    return [answer.status, Buffer.from(await answer.arrayBuffer())];
  },
  undici: async ({ method, path, headers, query, json, ...step }) => {
    const isForm = step.form && !step.file;
    const type = isForm ? { "content-type": "application/x-www-form-urlencoded" } : {};
    const body = step.file ? formOf(step, UndiciFormData)
      : isForm ? String(new URLSearchParams(step.form)) : json && JSON.stringify(json);
    const answer = await request(base + path, { dispatcher, method, headers: { ...headers, ...type }, query, body });
    return [answer.statusCode, Buffer.from(await answer.body.arrayBuffer())];
  },
};
const dispatcher = new Agent();

/** Whether a value has all of a part, members of members too. */
const includes = (value, part) => (part && typeof part === "object"
  ? Object.entries(part).every(([name, member]) => includes(value?.[name], member)) : value === part);

for (const [client, send] of Object.entries(clients)) {
  const known = { name: `u${randomUUID().slice(0, 8)}`, admin, password };
  for (const line of readFileSync(flows, "utf8").trim().split("\n")) {
    const step = JSON.parse(line.replace(/\{([a-z]+)\}/g, (_, name) => known[name]));
    const [method, path] = step.request.split(" ");
    const headers = step.bearer ? { Authorization: `Bearer ${step.bearer}` } : {};
    const [status, bytes] = await send({ ...step, method, path, headers });
    const told = `${client}: ${line}: ${status} ${bytes.toString().slice(0, 500)}`;
    assert.equal(status, step.status, told);
    if ("has" in step) assert(includes(JSON.parse(bytes.toString()), step.has), told);
    if ("text" in step) assert.equal(bytes.toString("latin1"), step.text, told);
    for (const [name, member] of Object.entries(step.keep ?? {})) known[name] = JSON.parse(bytes.toString())[member];
  }
}
