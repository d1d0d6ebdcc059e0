// The messages of a chat as they stand on the page, in the order of their seq. Own messages have none until the daemon names
// it; those not yet acknowledged stay at the end.

import { shown } from "./attachments.js";
import { render } from "./markdown.js";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

function dayName(date) {
  const today = new Date();
  const yesterday = new Date();
  yesterday.setDate(today.getDate() - 1);
  if (date.toDateString() === today.toDateString()) return "Today";
  if (date.toDateString() === yesterday.toDateString()) return "Yesterday";
  return (date.getFullYear() === today.getFullYear() ? day : dayOfYear).format(date);
}

function part(name, className, text = "") {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

// What may be answered to a question, each with its code.
function choices(code) {
  const row = part("div", "choices");
  for (const word of ["Yes", "No", "Always"]) {
    const button = part("button", "choice", word);
    button.type = "button";
    button.dataset.answer = `${word.toLowerCase()} ${code}`;
    row.append(button);
  }
  return row;
}

export class Timeline {
  constructor(log, chat) {
    this.log = log;
    this.chat = chat;
    this.nodes = new Map();
    this.newest = 0;
    this.oldest = Infinity;
  }

  get size() {
    return this.nodes.size;
  }

  // A line that the daemon sent. Returns whether it is new on this page.
  add(line) {
    this.newest = Math.max(this.newest, line.seq);
    this.oldest = Math.min(this.oldest, line.seq);
    const key = `${line.role}:${line.id}`;
    const known = this.nodes.get(key);
    const node = known ?? this.entry(line.role, line.text, new Date(line.at * 1000), line.attachments ?? line.files);
    node.dataset.seq = line.seq;
    this.nodes.set(key, node);
    if (line.role === "user") this.settle(line.id, "sent");
    if (line.failed) node.classList.add("unanswered");
    if (line.role === "user") this.closeQuestions();
    if (line.question && !known) node.querySelector(".meta").before(choices(line.question));
    if (!known) this.insert(node, line.seq);
    return !known;
  }

  // A message written here. Returns whether it is new on this page.
  addOwn(message) {
    const key = `user:${message.id}`;
    if (this.nodes.has(key)) return false;
    const node = this.entry("user", message.text, new Date(message.at), message.attachments);
    this.nodes.set(key, node);
    this.closeQuestions();
    this.log.append(node);
    this.settle(message.id, "pending");
    this.markDay(node);
    return true;
  }

  // Whatever is said next is the answer, or a no.
  closeQuestions() {
    for (const each of this.log.querySelectorAll(".choices")) each.remove();
  }

  // state: pending, sent or failed. reason: why it failed.
  settle(id, state, reason = "") {
    const node = this.nodes.get(`user:${id}`);
    if (!node) return;
    node.dataset.state = state;
    const words = { pending: "Waiting to be sent", sent: "Sent", failed: `Not taken: ${reason}` }[state];
    const label = node.querySelector(".sending");
    label.textContent = words;
    label.title = words;
    node.querySelector(".again").hidden = state !== "failed";
  }

  entry(role, text, at, files = []) {
    const node = part("article", `entry ${role}`);
    node.dataset.day = at.toDateString();
    const separator = part("div", "day", dayName(at));
    separator.hidden = true;
    const author = part("span", "unseen", role === "user" ? "You:" : "clew:");
    const words = part("div", role === "user" ? "bubble" : "prose");
    if (role === "user") words.textContent = text;
    else words.append(render(text));
    words.hidden = !text;
    const beside = part("div", "files");
    beside.append(...files.map((each) => shown(this.chat, each)));
    beside.hidden = files.length === 0;
    const time = part("time", "", clock.format(at));
    time.dateTime = at.toISOString();
    time.title = exact.format(at);
    const meta = part("footer", "meta");
    meta.append(time);
    if (role === "user") {
      const again = part("button", "again", "Write it again");
      again.type = "button";
      meta.append(part("span", "sending"), again);
    }
    node.append(separator, author, beside, words, meta);
    return node;
  }

  insert(node, seq) {
    let next = null;
    for (let each = this.log.lastElementChild; each; each = each.previousElementSibling) {
      if (Number(each.dataset.seq) > seq || each.dataset.state === "pending") next = each;
      else break;
    }
    this.log.insertBefore(node, next);
    this.markDay(node);
    if (next) this.markDay(next);
  }

  // Each day's first message carries its name.
  markDay(node) {
    const before = node.previousElementSibling;
    node.querySelector(".day").hidden = before?.dataset.day === node.dataset.day;
  }
}
