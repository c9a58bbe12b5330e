// A worker that loads the line in one direction, until it is ended.
"use strict";

/** The most that waits in each connection, and what is added at once, in bytes. */
const MAX_WAITING = 512 << 10;
const CHUNK = 64 << 10;
/** Between one look and the next, in milliseconds. */
const LOOK = 4;

function noise() {
  const bytes = new Uint8Array(CHUNK);
  for (let from = 0; from < CHUNK; from += 65536) {
    crypto.getRandomValues(bytes.subarray(from, from + 65536));
  }
  return bytes;
}

onmessage = ({ data: { urls, isUpload } }) => {
  const sockets = urls.map((url) => new WebSocket(url));
  for (const socket of sockets) socket.binaryType = "arraybuffer";
  if (!isUpload) {
    // What comes is counted at the server, and let go.
    for (const socket of sockets) socket.onmessage = () => {};
    return;
  }
  const chunk = noise();
  const fill = () => {
    for (const socket of sockets) {
      while (socket.readyState === WebSocket.OPEN && socket.bufferedAmount < MAX_WAITING) socket.send(chunk);
    }
    setTimeout(fill, LOOK);
  };
  fill();
};
