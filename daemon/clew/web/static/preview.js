// What the model is saying right now. It is never a reply: the reply takes its place.

import { render } from "./markdown.js";

const LONG = 20000; // characters from which the text is drawn less often
const FINISHED = 50;

export class Preview {
  constructor(node, drawn) {
    this.node = node;
    this.drawn = drawn;
    this.finished = [];
    this.clear();
  }

  clear() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.frame = this.timer = null;
    this.turn = this.asked = null;
    this.text = "";
    this.node.hidden = true;
    this.node.replaceChildren();
  }

  typing() {
    if (this.turn) return;
    const dots = document.createElement("div");
    dots.className = "typing";
    dots.setAttribute("role", "img");
    dots.setAttribute("aria-label", "clew is writing");
    dots.append(...[1, 2, 3].map(() => document.createElement("span")));
    this.node.replaceChildren(dots);
    this.node.hidden = false;
    this.drawn();
  }

  delta(frame) {
    if (this.finished.includes(frame.turn)) return;
    if (this.turn !== frame.turn || frame.restart) this.text = "";
    this.turn = frame.turn;
    this.asked = frame.in_reply_to ?? null;
    this.text += frame.text;
    if (this.frame || this.timer) return;
    if (this.text.length > LONG) this.timer = setTimeout(() => this.draw(), 300);
    else this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = this.timer = null;
    const words = document.createElement("div");
    words.className = "prose streaming";
    words.append(render(this.text));
    this.node.replaceChildren(words);
    this.node.hidden = false;
    this.drawn();
  }

  // A reply came: what was shown of it goes.
  replied(line) {
    const mine = this.asked === null || line.in_reply_to === this.asked || line.answers.includes(this.asked);
    if (this.turn && !mine) return;
    if (this.turn) this.finished = [...this.finished.slice(-FINISHED), this.turn];
    this.clear();
  }
}
