// A worker that opens the session and sends probes at a steady pace, whatever the page is busy with.
"use strict";

/** Between one probe and the next, in milliseconds. */
const PACE = 20;
/** WebSockets that carry probes in turn, so that a lost one holds few others back. The server counts on the same number. */
const SOCKETS = 8;
/** As many bytes as an answer has. */
const LENGTH = 24;
/** Where so much waits to be sent, a probe more would only wait behind it. */
const MAX_WAITING = 512;
/** Answers go to the page this often, in milliseconds. */
const REPORT = 100;

const sockets = [];
let origin = 0;
let next = 0;
let fresh = [];
let count = 0;

/** Microseconds since the page began to measure. */
const now = () => Math.round((performance.timeOrigin + performance.now() - origin) * 1000);

function probe() {
  const socket = sockets[count % SOCKETS];
  if (socket.readyState !== WebSocket.OPEN) return;
  if (socket.bufferedAmount < MAX_WAITING) {
    const question = new DataView(new ArrayBuffer(LENGTH));
    question.setUint32(0, count, true);
    fresh.push({ number: count, sent: now() });
    socket.send(question.buffer);
  }
  // The number goes with the WebSocket, so that one that is stuck holds no other back.
  count += 1;
  next = Math.max(next + PACE, performance.now());
  setTimeout(probe, next - performance.now());
}

function begin(first) {
  next = performance.now();
  probe();
  setInterval(() => {
    if (fresh.length) postMessage({ probes: fresh });
    fresh = [];
  }, REPORT);
  postMessage(first);
}

function hear(event) {
  const back = now();
  const answer = new DataView(event.data);
  const number = answer.getUint32(0, true);
  fresh.push({ number, back, server: answer.getFloat64(8, true), arrived: answer.getFloat64(16, true) });
}

function connect(url) {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  socket.onmessage = hear;
  socket.onclose = () => postMessage({ closed: true });
  sockets.push(socket);
  return socket;
}

/** The session's other WebSockets, once the server has opened it. */
function join(first, urls) {
  if (first.refused) {
    postMessage(first);
    return;
  }
  let waiting = SOCKETS - 1;
  for (let nth = 0; nth < SOCKETS - 1; nth += 1) {
    connect(`${urls.probes}?cookie=${first.open.cookie}`).onopen = () => {
      waiting -= 1;
      if (!waiting) begin(first);
    };
  }
}

onmessage = ({ data }) => {
  if (data.end) {
    sockets[0].send(data.end);
    return;
  }
  origin = data.origin;
  const session = connect(data.urls.session);
  session.onmessage = (event) => {
    session.onmessage = hear;
    join(JSON.parse(event.data), data.urls);
  };
};
