// The console's functions that need no page, only a little of what surrounds one when their modules are loaded.

import assert from "node:assert/strict";
import { test } from "node:test";

Object.assign(globalThis, {
  location: { pathname: "/console/files", search: "", origin: "https://example.com" },
  history: {},
  addEventListener() {},
  BroadcastChannel: class {},
  Node: Object,
  document: {
    createElement: () => ({ setAttribute() {}, append() {}, addEventListener() {} }),
    getElementById: () => ({ textContent: "{}" }),
  },
});
const from = (name) => import(`../../src/console/${name}.js`);
const { ApiError, errorOf, offlineError } = await from("api");
const { formatBytes, formatDateTime, formatDuration, formatHour, formatRelative, formatUntil, localTime,
  utcTime } = await from("format");
const { changes } = await from("forms");
const { tokenIn } = await from("mail-token");
const { match, withQuery } = await from("router");
const { asked, oneOf } = await from("tables");
const { deviceName } = await from("user-agents");
const { typeName } = await from("texts/file-types");
const { declaredType } = await from("file-type");

test("sizes have the unit that suits them, and its next one from where they would be rounded up to it", () => {
  const sizes = [0, 1, 1023, 1024, 9.94 * 1024, 9.96 * 1024, 1023.4 * 1024, 1023.6 * 1024, 2 ** 50, 2 ** 60];
  assert.deepEqual(sizes.map(formatBytes), ["0 bytes", "1 byte", "1,023 bytes", "1 kB", "9.9 kB", "10 kB", "1,023 kB",
    "1 MB", "1,024 TB", "1,048,576 TB"]);
});

test("types are called as people call them, and unknown ones by the ending of the name where it has one", () => {
  const word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
  const types = [[word], ["image/heic"], ["image/svg+xml"], ["audio/x-wav"], ["video/quicktime"], ["x/y", "plan.dwg"],
    ["x/y", ".profile"], ["x/y", "notes."], ["image/vnd.dwg", "a.b.DWG"], ["text/*"]];
  assert.deepEqual(types.map(([type, name]) => typeName(type, name)), ["Word document", "HEIC picture", "SVG picture",
    "WAV audio", "MOV video", "DWG file", "x/y", "x/y", "DWG file", "Text of any kind"]);
});

test("a file is declared as the service takes it, or as something that it finds out", async () => {
  const excel = "application/vnd.ms-excel";
  const sent = (types, type, name = "a.txt", content = "a,b") =>
    declaredType(new File([content], name, { type }), { types, spellings: types });
  const cases = [
    [["text/plain"], "", "application/octet-stream"], [["any"], "", "application/octet-stream"],
    [["text/plain"], "text/markdown", "text/plain"], [["text/*"], "text/markdown", "text/markdown"],
    [["text/plain"], "application/json", "text/plain"], [["text/plain"], "application/x-yaml", "text/plain"],
    [["image/png"], "text/markdown", "text/markdown"], [["text/plain"], "image/svg+xml", "image/svg+xml"],
    [["text/plain"], "text/markdown", "text/markdown", "a.md", "a\0"], [["text/csv"], excel, "text/csv", "a.CSV"],
    [["text/plain"], excel, "text/plain", "a.csv"], [["text/csv", excel], excel, excel, "a.csv"],
    [["text/csv"], excel, excel, "a.xls"],
  ];
  for (const [types, type, expected, ...rest] of cases) {
    assert.equal(await sent(types, type, ...rest), expected, `${types}: ${type}`);
  }
});

test("times are relative in the unit that fits once, and in neither direction further than they are", () => {
  const ago = (seconds) => formatRelative(new Date(Date.now() - seconds * 1000).toISOString());
  assert.deepEqual([59, 61, 119.5, 3599, 3601].map(ago),
    ["now", "1 minute ago", "1 minute ago", "59 minutes ago", "1 hour ago"]);
  // Two calendar days may lie between, so "yesterday" would be wrong.
  assert.deepEqual([86_401, 47.5 * 3600, 59 * 86_400].map(ago), ["1 day ago", "1 day ago", "1 month ago"]);
  assert.deepEqual([-62, -7300].map(ago), ["in 1 minute", "in 2 hours"]);
  assert.deepEqual([formatRelative(null), formatDateTime(null)], ["", ""]);
});

test("how long it is until an end is rounded to the nearest, so what was made for seven days has seven left", () => {
  const until = (seconds) => formatUntil(new Date(Date.now() + seconds * 1000).toISOString());
  const seconds = [7 * 86_400 - 5, 86_400 - 5, 3600 - 5, 90 * 60 - 5, 6.4 * 86_400, 50 * 60, 30 * 86_400 - 5];
  assert.deepEqual(seconds.map(until), ["in 7 days", "in 1 day", "in 1 hour", "in 1 hour", "in 6 days", "in 50 minutes",
    "in 30 days"]);
  assert.deepEqual([20, -5].map(until), ["in 0 minutes", "in 0 minutes"]);
});

test("a time that is exact to the hour is shown as that hour", () => {
  const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  assert.equal(formatHour(new Date(hour).toISOString()), "In the last hour");
  const [from, to] = [hour - 3_600_000, hour].map((time) => new Intl.DateTimeFormat(undefined, { timeStyle: "short" })
    .format(time).match(/\d+:\d\d/)[0]);
  const shown = formatHour(new Date(hour - 3_600_000).toISOString());
  assert.ok(shown.includes(from) && shown.includes(to), shown);
});

test("a duration has the largest unit of which it is a multiple", () => {
  assert.deepEqual([1, 90, 120, 1440, 10_080].map(formatDuration),
    ["1 minute", "90 minutes", "2 hours", "1 day", "7 days"]);
});

test("what was typed as a time is sent in UTC, and comes back; what is none stays", () => {
  for (const text of ["2026-01-31T10:20", "2026-07-31T10:20:30"]) assert.equal(localTime(utcTime(text)), text);
  assert.match(utcTime("2026-01-31T10:20"), /^2026-01-3[01]T\d\d:\d[05]:00\.000Z$/);
  assert.deepEqual([utcTime(""), utcTime("soon"), localTime("soon"), localTime("")], ["", "soon", "", ""]);
});

test("changes of a form are the values that differ", () => {
  const stored = { name: "Ann", username: null, is_public: false, size: 0, words: ["a", "b"] };
  assert.deepEqual(changes(stored, { name: "Ann", username: "", other: "", is_public: false, words: ["a", "b"] }), {});
  assert.deepEqual(changes(stored, { name: "", username: "u", is_public: true, size: null, words: ["b", "a"] }),
    { name: "", username: "u", is_public: true, size: null, words: ["b", "a"] });
});

test("ends of lines and the blanks around a text, which forms do not keep, are no changes", () => {
  const stored = { described: " a\r\nb\n", other: "\n" };
  assert.deepEqual(changes(stored, { described: "a\nb", other: "" }), {});
  assert.deepEqual(changes(stored, { described: "a b", other: "c" }), { described: "a b", other: "c" });
});

test("a path belongs to the first route that fits, with its parts decoded where that is possible", () => {
  const routes = ["/console", "/console/files/deleted", "/console/files/:id"].map((path) => ({ path }));
  const found = (path) => {
    const { route, params } = match(routes, path) ?? { params: {} };
    return [route && routes.indexOf(route), params.id];
  };
  assert.deepEqual(found("/console/"), [0, undefined]);
  assert.deepEqual(found("/console/files/deleted"), [1, undefined]);
  assert.deepEqual(found("/console/files/a%2Fb%20c/"), [2, "a/b c"]);
  assert.deepEqual(found("/console/files/%E0%A4%A"), [2, "%E0%A4%A"]);
  for (const path of ["/console/files", "/console//files", "/console/files/a/b", "/", "/console/files//"]) {
    assert.equal(match(routes, path), null, path);
  }
});

test("the token of a mail is found in whatever a gateway or a mail program leaves of its link, or is pasted", () => {
  // A signed token, whose signature may end in any character of its alphabet, and a sealed one.
  const signed = `eyJhbGciOiJIUzM4NCJ9.eyJzdWIiOiIxIn0.${"aB3_".repeat(15)}-_-`;
  const sealed = `AQ${"x-Y_9".repeat(30)}-`;
  const page = "https://files.example.com/console/reset";
  for (const token of [signed, sealed]) {
    const [first, second] = [token.slice(0, 30), token.slice(30)];
    for (const text of [
      `#token=${token}`, `?token=${token}`, `${page}#token=${token}`, `${page}?token=${token}`,
      `#token%3D${token}`, `%23token=${token}`, `${page}%23token%3D${token}`, `%2523token%253D${token}`,
      `#token=${token}#token=${token}`, `#token=${token}?token=${token}`, `#token=${token}%23token=${token}`,
      `?token=#token=${token}`, `#token=&token=${token}`,
      `#token=%3C${token}%3E`, `#token=<${token}>`, `#token="${token}"`, `#token=%22${token}%22`,
      `<${page}#token=${token}>`,
      `#token=${token}&utm_source=mail`, `#utm_source=mail&token=${token}`, `?x=1&amp;token=${token}&amp;y=2`,
      `#token=3D${token}`, `#token%3D3D${token}`, `#TOKEN=${token}`,
      `#token=${first}=\r\n${second}`, `#token=3D${first}=\n${second}=\n`, `#token=${first}%3D%0D%0A${second}`,
      ...[".", ">", ")", "*", ".)", ").", "**", ">.", ",", ";", "!", "'", "]", "...", "%2E", "%3E", "%20", "\u2026"]
        .map((end) => `#token=${token}${end}`),
      `${page}/#token=${token}`, `${page}*token=${token}`, `*${page}#token=${token}*`, `[link](${page}#token=${token})`,
      `https://protection.example.net/?url=${encodeURIComponent(`${page}#token=${token}`)}&data=05%7C02&reserved=0`,
      `https://a.example/?u=${encodeURIComponent(encodeURIComponent(`${page}#token=${token}`))}&h=1`,
      token, ` ${token} `, `${token}.`, `<${token}>`, `"${token}"`, `#${token}`, `?${token}`, `${first}\n${second}`,
      `${page}#token=${first}\n${second}`, `${page}\r\n#token=\r\n${token}`, `  ${page}#token=${first}  ${second}\n`,
      `> ${page}#token=${first}\n> ${second}`, `${page}#token=${first}\u200b${second}`,
      `Hello,\n\nopen this link:\n\n${page}#token=${token}\n\nThe link works once, within an hour.`,
      `> open this link:\r\n>\r\n> ${page}#token=${token}\r\n>\r\n> The link works once.`,
    ]) assert.equal(tokenIn(text), token, text);
  }
  assert.equal(tokenIn(`${page}#token=${signed}. The link works once`), signed);
  assert.equal(tokenIn("#token=x"), "x");
  for (const text of [
    "", " ", "#", "#token=", "?token=&x=1", "#token=%00", "#token=%20", "#token=.", "#token=<>", "%", "%E0%A4%A",
    page, `${page}#`, `${page}#token=`, "files.example.com", "hello", `Open the link: ${page}`, "=".repeat(99),
    `${page}/a/${"long/".repeat(20)}`, "#state=eyJhbGciOiJIUzM4NCJ9",
  ]) assert.equal(tokenIn(text), "", text);
});

test("an address changes by the names that are given, and loses those without a value", () => {
  location.search = "?search=a+b&page=3&sort_by=size";
  assert.equal(withQuery({ page: null, search: "&=?#" }), "/console/files?search=%26%3D%3F%23&sort_by=size");
  assert.equal(withQuery({ page: "", search: null, sort_by: undefined }), "/console/files");
  location.search = "";
});

test("of an address that was changed by hand only what the API takes is asked for", () => {
  const of = (text) => asked(new URLSearchParams(text), { sorts: ["upload_date", "filename"] });
  const { size } = of("");
  assert.deepEqual(of("sort_by=filename&sort_order=desc&page=7&size=100"),
    { sort_by: "filename", sort_order: "desc", page: "7", size: "100" });
  const nothing = { sort_by: null, sort_order: null, page: 1, size };
  for (const other of ["0", "99", "1000000", "x"]) assert.deepEqual(of({ size: other }), nothing, other);
  for (const page of ["0", "-1", "1.5", "", "x", "9".repeat(17), "1e3"]) assert.deepEqual(of({ page }), nothing, page);
  assert.deepEqual(of("sort_by=password&sort_order=up"), nothing);
  assert.equal(of("sort_by=filename").sort_order, "asc");
  assert.equal(oneOf(new URLSearchParams("role=admin&role=x"), "role", ["admin"]), "admin");
});

test("errors of both shapes are sentences, at the fields they are about", () => {
  const plain = { detail: [{ loc: ["body", "name"], msg: "Too short" }, { loc: ["body", "name"], msg: "Odd." }] };
  const wrapped = { error: { reason: "INVALID", message: "Invalid", details: plain.detail } };
  for (const body of [plain, wrapped]) {
    const error = errorOf(422, () => null, JSON.stringify(body));
    assert.deepEqual(error.fields, { name: "Too short. Odd." });
    assert.equal(error.retryAt, null);
  }
  const known = { detail: "Rate limit exceeded", reason: "RATE_LIMITED" };
  const limited = errorOf(429, (name) => (name === "Retry-After" ? "12" : null), JSON.stringify(known));
  assert.equal(limited.message, "Too many requests.");
  assert.ok(Math.abs(limited.retryAt - Date.now() - 12_000) < 1000);
});

test("an error of fields says what is wrong with them, and one without fields what its detail says", () => {
  const fields = { name: "Odd." };
  assert.equal(new ApiError({ status: 422, detail: "Invalid", fields }).message, "Odd.");
  assert.equal(new ApiError({ status: 422, detail: "Not readable" }).message, "Not readable.");
  assert.equal(errorOf(422, () => null, '{"detail":"Odd"}').message, "Odd.");
  assert.equal(new ApiError({ status: 422 }).message, "Something went wrong. Try again.");
});

test("what is no answer of the API is an error all the same", () => {
  for (const body of ["<html>Bad gateway</html>", "", "null", "[]", "5", '{"detail":{}}']) {
    const error = errorOf(502, () => null, body);
    assert.equal(error.message, "The service cannot be reached.", body);
    assert.ok(error.retryAt > Date.now(), "a proxy's refusal passes by itself");
  }
  assert.deepEqual([offlineError().reason, offlineError({ name: "TimeoutError" }).reason], ["OFFLINE", "NO_ANSWER"]);
  assert.equal(new ApiError({ status: 400, detail: "Odd", hint: "Send `a`: to /api/v1/x" }).message, "Odd.");
  assert.equal(new ApiError({ status: 400, detail: "Odd", hint: "Use `b`." }).message, "Odd. Use b.");
});

test("devices are named as people know them, and programs by what they say", () => {
  const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/131.0.0.0 Safari/537.36";
  assert.equal(deviceName(chrome), "Chrome 131 on Linux");
  assert.equal(deviceName(`${chrome} Edg/131.0.0.0`), "Edge 131 on Linux");
  assert.equal(deviceName("backup/1.0"), "backup/1.0");
  assert.equal(deviceName("😀".repeat(81)), `${"😀".repeat(80)}…`);
  assert.equal(deviceName(null), deviceName(" "));
});
