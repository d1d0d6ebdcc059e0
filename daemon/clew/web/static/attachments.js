// Files on their way into a message: chosen, dropped or pasted, uploaded at once, and sent with what is written.

export const MOST = 16;

export function place(chat, id) {
  return `/chat/files/${encodeURIComponent(id)}?chat=${encodeURIComponent(chat)}`;
}

// A file as it stands with a message: the picture, or its name, each a link.
export function shown(chat, file) {
  const link = document.createElement("a");
  link.href = place(chat, file.id);
  link.className = "file";
  link.target = "_blank";
  link.rel = "noopener";
  if (!file.mime.startsWith("image/")) {
    link.textContent = file.name;
    link.download = file.name;
    return link;
  }
  const picture = document.createElement("img");
  picture.src = link.href;
  picture.alt = file.name;
  picture.loading = "lazy";
  picture.addEventListener("error", () => picture.replaceWith(file.name)); // another kind than its name says
  link.append(picture);
  return link;
}

export class Attachments {
  // list: the element that shows them. on: change(), and tell(words) for what went wrong.
  constructor(chat, list, on) {
    this.chat = chat;
    this.list = list;
    this.on = on;
    this.mostBytes = Infinity;
    this.uploading = Promise.resolve();
    this.entries = new Set(); // {node, file}; file: null while it is uploaded
  }

  get busy() {
    return [...this.entries].some((each) => !each.file);
  }

  get ready() {
    return [...this.entries].map((each) => each.file).filter(Boolean);
  }

  add(files) {
    for (const file of files) {
      if (this.entries.size >= MOST) this.on.tell(`A message has at most ${MOST} files.`);
      else if (file.size > this.mostBytes) this.on.tell(`${file.name} is too large: at most ${this.mostBytes.toLocaleString()} bytes are taken.`);
      else this.upload(file, this.entry(file.name || "pasted"));
    }
  }

  // Those that are there, to be sent now.
  take() {
    const files = this.ready;
    for (const each of [...this.entries]) this.remove(each);
    return files;
  }

  // One after the other: they keep the order in which they were chosen.
  upload(file, entry) {
    this.uploading = this.uploading.then(() => this.entries.has(entry) && this.uploaded(file, entry));
  }

  async uploaded(file, entry) {
    try {
      const query = new URLSearchParams({ chat: this.chat, name: file.name || "pasted", type: file.type });
      const answer = await fetch(`/chat/files?${query}`, {
        method: "POST",
        headers: { "Content-Type": "application/octet-stream" },
        body: file,
      });
      const taken = await answer.json();
      if (!answer.ok) throw new Error(taken.error);
      entry.file = { ...taken, size: file.size };
      entry.node.classList.remove("busy");
    } catch (error) {
      this.remove(entry);
      this.on.tell(`${file.name || "The file"} could not be uploaded: ${error.message}`);
    }
    this.on.change();
  }

  entry(name) {
    const node = document.createElement("li");
    node.className = "busy";
    const remove = document.createElement("button");
    remove.type = "button";
    remove.textContent = "×";
    remove.setAttribute("aria-label", `Leave ${name} out`);
    const entry = { node, file: null };
    remove.addEventListener("click", () => { this.remove(entry); this.on.change(); });
    node.append(name, remove);
    this.entries.add(entry);
    this.list.append(node);
    this.list.hidden = false;
    this.on.change();
    return entry;
  }

  remove(entry) {
    this.entries.delete(entry);
    entry.node.remove();
    this.list.hidden = this.entries.size === 0;
  }
}
