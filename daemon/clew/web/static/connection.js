// One WebSocket at a time, opened again whenever it is lost. Calls `on.state(name)`, `on.open()`, `on.frame(frame)`,
// `on.login()`, `on.greeting(answer)`; asks `on.after()` for the newest seq that the page has.

const FIRST_PAUSE = 400;
const LONGEST_PAUSE = 15000;
const ACK_PATIENCE = 10000; // without an acknowledgement for so long, the connection counts as dead

export class Connection {
  constructor(chat, on) {
    this.chat = chat;
    this.on = on;
    this.socket = null;
    this.pause = FIRST_PAUSE;
    this.timer = null;
    this.waiting = new Map();
    this.connecting = false;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.hurry(); });
  }

  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  hurry() {
    if (this.socket || this.connecting) return;
    this.pause = FIRST_PAUSE;
    this.connect();
  }

  async connect() {
    if (this.connecting || this.socket) return;
    clearTimeout(this.timer);
    this.connecting = true;
    try {
      const answer = await fetch("/login", { cache: "no-store", signal: AbortSignal.timeout(ACK_PATIENCE) });
      if (!answer.ok) throw new Error(answer.statusText);
      const greeting = await answer.json();
      this.on.greeting(greeting);
      if (greeting.login) this.on.login();
      else this.open();
    } catch {
      this.later();
    } finally {
      this.connecting = false;
    }
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const query = new URLSearchParams({ chat: this.chat, after: String(this.on.after()) });
    const socket = new WebSocket(`${scheme}//${location.host}/chat/ws?${query}`);
    this.socket = socket;
    socket.onopen = () => {
      this.pause = FIRST_PAUSE;
      this.on.state("open");
      this.on.open();
    };
    socket.onmessage = (event) => {
      const frame = JSON.parse(event.data);
      if (frame.id) this.answered(frame.id);
      this.on.frame(frame);
    };
    socket.onclose = () => this.lost(socket);
  }

  lost(socket) {
    if (this.socket !== socket) return;
    this.socket = null;
    for (const timer of this.waiting.values()) clearTimeout(timer);
    this.waiting.clear();
    this.later();
  }

  later() {
    this.on.state(navigator.onLine ? "waiting" : "offline");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.pause * (0.7 + 0.6 * Math.random()));
    this.pause = Math.min(this.pause * 1.7, LONGEST_PAUSE);
  }

  send(message) {
    if (!this.isOpen) return;
    const socket = this.socket;
    const attachments = message.attachments.map((each) => each.id);
    socket.send(JSON.stringify({ type: "message", id: message.id, text: message.text, attachments }));
    this.answered(message.id);
    this.waiting.set(message.id, setTimeout(() => { socket.close(); this.lost(socket); }, ACK_PATIENCE));
  }

  answered(id) {
    clearTimeout(this.waiting.get(id));
    this.waiting.delete(id);
  }
}
