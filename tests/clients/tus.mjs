// Uploads a file with tus-js-client.
//
//   node tus.mjs ENDPOINT FILE OPTIONS [ABORT_AFTER]
//
// OPTIONS are the client's as JSON; with `stream`, it gets a stream whose length it does not know. After ABORT_AFTER
// bytes the upload is aborted, and goes on from where the server says that it was. Prints the upload's URL.
import { createReadStream, readFileSync } from "node:fs";
import tus from "tus-js-client";

const [endpoint, file, text, abortAfter] = process.argv.slice(2);
const { stream, ...options } = JSON.parse(text);
let abort = Number(abortAfter ?? Number.POSITIVE_INFINITY);

const upload = new tus.Upload(stream ? createReadStream(file) : readFileSync(file), {
  endpoint,
  retryDelays: [0, 100],
  ...options,
  onChunkComplete: (_, sent) => {
    if (sent < abort) return;
    abort = Number.POSITIVE_INFINITY;
    upload.abort().then(() => setTimeout(() => upload.start(), 50));
  },
  onError: (error) => {
    process.stderr.write(`${error}\n`);
    process.exit(1);
  },
  onSuccess: () => process.stdout.write(upload.url),
});
upload.start();
