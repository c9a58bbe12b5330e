// A worker that opens the session and sends probes at a steady pace, whatever the page is busy with.
"use strict";

/** Between one probe and the next, in milliseconds. */
const PACE = 20;
/** As many bytes as an answer has. */
const LENGTH = 24;
/** Where so much waits to be sent, a probe more would only wait behind it. */
const MAX_WAITING = 4096;
/** Answers go to the page this often, in milliseconds. */
const REPORT = 100;

let socket = null;
let origin = 0;
let next = 0;
let fresh = [];
const sent = [];

/** Microseconds since the page began to measure. */
const now = () => Math.round((performance.timeOrigin + performance.now() - origin) * 1000);

function probe() {
  if (socket.readyState !== WebSocket.OPEN) return;
  if (socket.bufferedAmount < MAX_WAITING) {
    const question = new DataView(new ArrayBuffer(LENGTH));
    question.setUint32(0, sent.length, true);
    sent.push(now());
    fresh.push({ number: sent.length - 1, sent: sent.at(-1) });
    socket.send(question.buffer);
  }
  next = Math.max(next + PACE, performance.now());
  setTimeout(probe, next - performance.now());
}

function begin() {
  next = performance.now();
  probe();
  setInterval(() => {
    if (fresh.length) postMessage({ probes: fresh });
    fresh = [];
  }, REPORT);
}

function hear(event) {
  const back = now();
  if (typeof event.data === "string") {
    const first = JSON.parse(event.data);
    postMessage(first);
    if (first.open) begin();
    return;
  }
  const answer = new DataView(event.data);
  const number = answer.getUint32(0, true);
  fresh.push({ number, back, server: answer.getFloat64(8, true), arrived: answer.getFloat64(16, true) });
}

onmessage = ({ data }) => {
  if (data.end) {
    socket.send(data.end);
    return;
  }
  origin = data.origin;
  socket = new WebSocket(data.url);
  socket.binaryType = "arraybuffer";
  socket.onmessage = hear;
  socket.onclose = () => postMessage({ closed: true });
};
