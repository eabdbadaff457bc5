// Uploads a file in several requests with tus-js-client. After a lost connection, or when it is started again, it goes on
// where the file stood.
//
// Usage: TOKEN=... node tus.mjs URL FILE, with the URL of the service

import { createReadStream, statSync } from "node:fs";
import { basename } from "node:path";

import * as tus from "tus-js-client";

const [url, path] = process.argv.slice(2);
const upload = new tus.Upload(createReadStream(path), {
  endpoint: `${url}/api/v1/uploads/partial`,
  headers: { Authorization: `Bearer ${process.env.TOKEN}` },
  metadata: { filename: basename(path) }, // perhaps filetype, folder, description and sha256
  uploadSize: statSync(path).size,
  chunkSize: 8_000_000, // proxies bound a piece
  retryDelays: [0, 1000, 3000, 5000, 10_000], // counted anew once bytes have arrived
  // Where begun uploads are noted; browsers have a place of their own.
  urlStorage: new tus.FileUrlStorage(`${path}.uploads`),
  removeFingerprintOnSuccess: true,
  // Or it would begin anew where a proxy has no service for a moment.
  onAfterResponse: (_, response) => {
    if ([429, 502, 503, 504].includes(response.getStatus())) throw new Error("not now");
  },
  onError: (error) => {
    console.error(error.message);
    process.exitCode = 1;
  },
  onSuccess: ({ lastResponse }) => console.log(lastResponse.getHeader("Content-Location")),
});
const [begun] = await upload.findPreviousUploads();
if (begun) upload.resumeFromPreviousUpload(begun);
upload.start();
