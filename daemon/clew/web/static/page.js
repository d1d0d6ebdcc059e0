// The chat page: what is typed goes into the outbox and over the socket, what comes back onto the timeline.

import { Attachments } from "./attachments.js";
import { Connection } from "./connection.js";
import { offerLogin } from "./login.js";
import { message, Outbox } from "./outbox.js";
import { Preview } from "./preview.js";
import { Timeline } from "./timeline.js";

const FIRST_SIGHT = 200; // lines that the daemon sends to a page that has none
const OLDER = 100;
const NEAR_END = 120; // pixels
const STATES = { open: "Connected", connecting: "Connecting", waiting: "Reconnecting", offline: "Offline" };

const at = (id) => document.getElementById(id);
const [scroller, log, text, send, notice] = ["scroller", "log", "text", "send", "notice"].map(at);
const chat = new URLSearchParams(location.search).get("chat") || "local"; // start.js has looked at it
const draftKey = `clew.draft.${chat}`;

const outbox = new Outbox(chat);
const timeline = new Timeline(log, chat);
const attachments = new Attachments(chat, at("files"), { change: fit, tell });
const preview = new Preview(at("preview"), followEnd);
let messageBytes = 128 * 1024;
let atEnd = true;
let allLoaded = false;

const connection = new Connection(chat, {
  state: showState,
  open() {
    preview.clear();
    for (const each of outbox.list()) {
      timeline.addOwn(each);
      connection.send(each);
    }
    setTimeout(showEmpty, 400);
  },
  frame: receive,
  login: () => offerLogin(() => connection.connect()),
  greeting(answer) {
    messageBytes = answer.message_bytes;
    attachments.mostBytes = answer.attachment_bytes;
    at("logout").hidden = !answer.logged_in || answer.login;
    at("to-console").hidden = !answer.login && !answer.console;
    if (answer.name) remember(answer.name);
  },
  after: () => timeline.newest,
});

// Whose unsent words this browser holds; link.js asks for it.
function remember(name) {
  at("logout").title = `Logged in as ${name}`;
  try { localStorage.setItem("clew.name", name); } catch { /* no storage */ }
}

function receive(frame) {
  switch (frame.type) {
    case "message": return receiveLine(frame);
    case "ack": return acknowledged(frame.id);
    case "delta": return preview.delta(frame);
    case "typing": return preview.typing();
    case "error": return refused(frame);
  }
}

function receiveLine(line) {
  if (line.role === "user") outbox.remove(line.id);
  else preview.replied(line);
  const isNew = timeline.add(line);
  at("older").hidden = allLoaded || timeline.size < FIRST_SIGHT;
  if (line.role === "assistant" && isNew && connection.isOpen) announce(line.text);
  showEmpty();
  followEnd(isNew);
}

function acknowledged(id) {
  outbox.remove(id);
  timeline.settle(id, "sent");
}

function refused(frame) {
  if (!frame.id) return tell(frame.text);
  outbox.remove(frame.id);
  timeline.settle(frame.id, "failed", frame.text);
}

function announce(words) {
  at("announce").textContent = words.slice(0, 500);
}

function tell(words) {
  notice.textContent = words;
  notice.hidden = !words;
}

function showState(state) {
  at("state").dataset.state = state;
  at("state").textContent = STATES[state];
  if (state !== "open") preview.clear();
}

function showEmpty() {
  at("empty").hidden = timeline.size > 0 || !connection.isOpen;
}

// Scrolling ---------------------------------------------------------------------------------------------------------

function followEnd(isNew = false) {
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
  else if (isNew) at("to-end").hidden = false;
}

function toEnd() {
  atEnd = true;
  at("to-end").hidden = true;
  followEnd();
}

scroller.addEventListener("scroll", () => {
  atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END;
  if (atEnd) at("to-end").hidden = true;
}, { passive: true });
new ResizeObserver(() => followEnd()).observe(scroller);
at("to-end").addEventListener("click", toEnd);

at("older").addEventListener("click", async () => {
  const button = at("older");
  button.disabled = true;
  try {
    const answer = await fetch(`/api/v1/chats/${chat}/messages?before=${timeline.oldest}&limit=${OLDER}`);
    const page = await answer.json();
    if (!answer.ok) throw new Error(page.error);
    const fromEnd = scroller.scrollHeight - scroller.scrollTop;
    for (const line of page.messages.reverse()) timeline.add(line);
    scroller.scrollTop = scroller.scrollHeight - fromEnd;
    allLoaded = !page.more;
    button.hidden = allLoaded;
  } catch (error) {
    tell(`Older messages could not be loaded: ${error.message}`);
  } finally {
    button.disabled = false;
  }
});

// Writing -----------------------------------------------------------------------------------------------------------

function write(words, files = []) {
  const bytes = new TextEncoder().encode(words).length;
  if (bytes > messageBytes) {
    tell(`This message is too long: it has ${bytes.toLocaleString()} bytes, and at most ${messageBytes.toLocaleString()} are taken.`);
    return false;
  }
  const mine = message(words.toWellFormed ? words.toWellFormed() : words, files);
  const kept = outbox.put(mine);
  tell(kept ? "" : "This browser keeps nothing: do not close the page before the message is sent.");
  timeline.addOwn(mine);
  connection.send(mine);
  showEmpty();
  toEnd();
  return true;
}

function sendable() {
  return !attachments.busy && (text.value.trim() || attachments.ready.length);
}

function fit() {
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
  send.disabled = !sendable();
  try { localStorage.setItem(draftKey, text.value); } catch { /* a draft is a comfort */ }
}

at("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!sendable() || !write(text.value, attachments.ready)) return;
  attachments.take();
  text.value = "";
  fit();
  text.focus();
});
text.addEventListener("input", () => { tell(""); fit(); });
text.addEventListener("keydown", (event) => {
  // On a touch screen's keyboard there is no Shift + Enter.
  const sends = event.key === "Enter" && !event.shiftKey && !event.isComposing && !matchMedia("(pointer: coarse)").matches;
  if (!sends) return;
  event.preventDefault();
  at("composer").requestSubmit();
});
at("attach").addEventListener("click", () => at("file").click());
at("file").addEventListener("change", () => {
  attachments.add(at("file").files);
  at("file").value = "";
});
text.addEventListener("paste", (event) => {
  if (!event.clipboardData.files.length) return;
  event.preventDefault();
  attachments.add(event.clipboardData.files);
});
document.addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault();
});
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  attachments.add(event.dataTransfer.files);
});
at("new-thread").addEventListener("click", () => write("/new"));
at("empty").addEventListener("click", (event) => {
  if (event.target.matches("button")) write(event.target.textContent);
});
log.addEventListener("click", (event) => {
  if (event.target.matches(".choice")) write(event.target.dataset.answer);
});
log.addEventListener("click", (event) => {
  if (!event.target.matches(".again")) return;
  text.value = event.target.closest(".entry").querySelector(".bubble").textContent;
  fit();
  text.focus();
});
at("logout").addEventListener("click", async () => {
  await fetch("/logout", { method: "POST", headers: { "Content-Type": "application/json" } });
  location.reload();
});

// Copying code ------------------------------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  if (!event.target.matches(".copy")) return;
  const words = event.target.closest(".code").querySelector("code").textContent;
  event.target.textContent = (await copied(words)) ? "Copied" : "Not copied";
  setTimeout(() => { event.target.textContent = "Copy"; }, 1500);
});

async function copied(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    // Pages without TLS have no clipboard.
    const box = document.createElement("textarea");
    box.value = words;
    box.className = "unseen";
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  }
}

// Start -------------------------------------------------------------------------------------------------------------

if (chat !== "local") {
  at("chat-name").textContent = chat;
  at("chat-name").hidden = false;
  document.title = `${chat} · clew`;
}
try { text.value = localStorage.getItem(draftKey) ?? ""; } catch { /* none */ }
fit();
if (matchMedia("(pointer: fine)").matches) text.focus();
connection.connect();
