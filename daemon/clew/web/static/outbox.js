// Messages that are not yet acknowledged. They outlive the page: each is a key of its own in localStorage, so that two tabs
// of one chat never overwrite each other's.

export class Outbox {
  constructor(chat) {
    this.prefix = `clew.outbox.${chat}.`;
    this.unsaved = new Map(); // where the browser refuses storage, or it is full
  }

  put(message) {
    try {
      localStorage.setItem(this.prefix + message.id, JSON.stringify(message));
      return true;
    } catch {
      this.unsaved.set(message.id, message);
      return false;
    }
  }

  remove(id) {
    this.unsaved.delete(id);
    try { localStorage.removeItem(this.prefix + id); } catch { /* it was never there */ }
  }

  // All of them, in the order in which they were written.
  list() {
    const found = [...this.unsaved.values()];
    try {
      for (let index = 0; index < localStorage.length; index += 1) {
        const key = localStorage.key(index);
        if (key.startsWith(this.prefix)) found.push(...this.read(key));
      }
    } catch { /* no storage */ }
    return found.sort((a, b) => a.at - b.at || a.turn - b.turn);
  }

  read(key) {
    try {
      const message = JSON.parse(localStorage.getItem(key));
      if (typeof message.id === "string" && typeof message.text === "string") return [{ attachments: [], ...message }];
    } catch { /* falls through: it is damaged */ }
    localStorage.removeItem(key);
    return [];
  }
}

let written = 0;

// `at` in milliseconds since the epoch; `turn` orders messages of one millisecond.
export function message(text, attachments = []) {
  written += 1;
  return { id: uuid(), text, attachments, at: Date.now(), turn: written };
}

function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  // Pages without TLS have no randomUUID.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
