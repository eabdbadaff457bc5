// What the tours of both TypeScript clients share: the account and the file they make, and how they read a response.
// Both clients return the body of a response as `data` or, if its status is not one of success, as `error`.

import assert from "node:assert/strict";
import { File as NodeFile } from "node:buffer";
import { createHash, randomUUID } from "node:crypto";

interface Result<Data, Failure> {
  data?: Data;
  error?: Failure;
  response?: Response; // absent if there was none, for instance because the service is down
}

/** The data of a response, whose status must be one of success. */
export function ok<Data, Failure>({ data, error, response }: Result<Data, Failure>): NonNullable<Data> {
  assert(response?.ok && data, `${response?.url}: ${response?.status} ${JSON.stringify(error)}`);
  return data;
}

/** The error of a response, which must have this status. */
export function refused<Data, Failure>({ error, response }: Result<Data, Failure>, status: number) {
  assert.equal(response?.status, status, `${response?.url}`);
  assert(error);
  return error;
}

/** Checks that a response says success without content. */
export function done<Data, Failure>({ error, response }: Result<Data, Failure>) {
  assert.equal(response?.status, 204, `${response?.url}: ${JSON.stringify(error)}`);
}

/** Does what may be repeated until an answer comes: a connection that ends before it is a `TypeError` of `fetch`. */
export async function untilAnswered<T>(attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await attempt();
    } catch (error) {
      const isLost = error instanceof TypeError || (error instanceof assert.AssertionError && /undefined/.test(error.message));
      if (!isLost || attempts === 5) throw error;
    }
  }
}

export const [url, adminName, adminPassword] = process.argv.slice(2) as [string, string, string];
export const username = `tour_${randomUUID().slice(0, 8)}`;
export const password = "correct horse";
export const registration = { username, email: `${username}@example.com`, password };

export const content = "The first file of a tour.\n";
export const hash = `sha256:${createHash("sha256").update(content).digest("hex")}`;
/** A file to upload, such as a browser has from `<input type="file">`. */
export function textFile(name: string): File {
  // Node.js 18 has no global `File`, and the types of its own lack what browsers have added since.
  return new NodeFile([content], name, { type: "text/plain" }) as unknown as File;
}
