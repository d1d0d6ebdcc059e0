// Markdown to DOM nodes. Text of a model goes into text nodes only: nothing here ever parses HTML.

const DEEPEST = 8; // quotes and lists inside one another
const SAFE = new Set(["http:", "https:", "mailto:"]);

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)(.*)$/;
const TASK = /^\[([ xX])\]\s+/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function render(text) {
  const fragment = document.createDocumentFragment();
  blocks(text.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), fragment, 0);
  return fragment;
}

function blocks(lines, parent, depth) {
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) { at += 1; continue; }
    const take = depth < DEEPEST ? reader(lines, at) : paragraph;
    at = take(lines, at, parent, depth);
  }
}

function reader(lines, at) {
  const line = lines[at];
  if (FENCE.test(line)) return code;
  if (HEADING.test(line)) return heading;
  if (RULE.test(line)) return rule;
  if (QUOTE.test(line)) return quote;
  if (ITEM.test(line)) return list;
  if (startsTable(lines, at)) return table;
  return paragraph;
}

function code(lines, at, parent) {
  const [, fence, language] = FENCE.exec(lines[at]);
  const body = [];
  for (at += 1; at < lines.length; at += 1) {
    const end = lines[at].trim();
    if (end.length >= fence.length && end[0] === fence[0] && end.split("").every((c) => c === fence[0])) { at += 1; break; }
    body.push(lines[at]);
  }
  const copy = element("button", { type: "button", class: "copy" }, "Copy");
  const head = element("div", { class: "code-head" }, element("span", {}, language), copy);
  parent.append(element("div", { class: "code" }, head, element("pre", { tabindex: "0" }, element("code", {}, body.join("\n")))));
  return at;
}

function heading(lines, at, parent) {
  const [, marks, text] = HEADING.exec(lines[at]);
  // The page has its own h1 and h2.
  const node = element(`h${Math.min(marks.length + 2, 6)}`, { class: `h${marks.length}` });
  inline(text, node);
  parent.append(node);
  return at + 1;
}

function rule(lines, at, parent) {
  parent.append(element("hr"));
  return at + 1;
}

function quote(lines, at, parent, depth) {
  const inside = [];
  for (; at < lines.length && QUOTE.test(lines[at]); at += 1) inside.push(lines[at].replace(QUOTE, ""));
  const node = element("blockquote");
  blocks(inside, node, depth + 1);
  parent.append(node);
  return at;
}

function list(lines, at, parent, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const node = element(ordered ? "ol" : "ul", ordered && parseInt(mark, 10) !== 1 ? { start: String(parseInt(mark, 10)) } : {});
  while (at < lines.length) {
    const found = ITEM.exec(lines[at]);
    if (!found || found[1].length > indent.length + 1 || /\d/.test(found[2]) !== ordered || RULE.test(lines[at])) break;
    if (found[1].length < indent.length) break;
    const inside = [found[3]];
    at = itemLines(lines, at + 1, indent.length, inside);
    node.append(item(inside, depth));
  }
  parent.append(node);
  return at;
}

// Lines that belong to a list item: those further in than its mark, and blank ones between them.
function itemLines(lines, at, indent, inside) {
  const ownFrom = inside.length;
  let step = -1;
  while (at < lines.length) {
    const line = lines[at];
    const deep = line.length - line.trimStart().length;
    if (!line.trim()) {
      const next = lines.slice(at + 1, at + 3).find((each) => each.trim());
      if (!next || next.length - next.trimStart().length <= indent) break;
      inside.push("");
    } else if (deep > indent) {
      if (step < 0) step = deep;
      inside.push(line.slice(Math.min(deep, step)));
    } else if (inside.length === ownFrom && !reads(line)) {
      inside.push(line.trim());
    } else break;
    at += 1;
  }
  while (at < lines.length && !lines[at].trim() && at + 1 < lines.length && ITEM.test(lines[at + 1])) at += 1;
  return at;
}

function reads(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function item(lines, depth) {
  const node = element("li");
  const task = TASK.exec(lines[0]);
  if (task) {
    lines[0] = lines[0].slice(task[0].length);
    node.className = "task";
    const box = element("input", { type: "checkbox", disabled: "" });
    box.checked = task[1] !== " ";
    node.append(box);
  }
  const inside = document.createDocumentFragment();
  blocks(lines, inside, depth + 1);
  const only = inside.children.length && inside.firstElementChild.tagName === "P" ? inside.firstElementChild : null;
  if (only) only.replaceWith(...only.childNodes);
  node.append(inside);
  return node;
}

function startsTable(lines, at) {
  return lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && DIVIDER.test(lines[at + 1]) &&
    cells(lines[at]).length === cells(lines[at + 1]).length;
}

function cells(line) {
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return text.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function table(lines, at, parent) {
  const sides = cells(lines[at + 1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "middle" : "right") : ""));
  const row = (line, kind) => element("tr", {}, ...sides.map((side, column) => {
    const cell = element(kind, side ? { class: side } : {});
    inline(cells(line)[column] ?? "", cell);
    return cell;
  }));
  const body = element("tbody");
  const head = element("thead", {}, row(lines[at], "th"));
  for (at += 2; at < lines.length && lines[at].includes("|"); at += 1) body.append(row(lines[at], "td"));
  parent.append(element("div", { class: "table", tabindex: "0" }, element("table", {}, head, body)));
  return at;
}

function paragraph(lines, at, parent, depth) {
  const inside = [];
  do {
    inside.push(lines[at].trim());
    at += 1;
  } while (at < lines.length && lines[at].trim() && (depth >= DEEPEST || (!reads(lines[at]) && !startsTable(lines, at))));
  const node = element("p");
  inline(inside.join("\n"), node);
  parent.append(node);
  return at;
}

// Inline: one pass from left to right. `missing` remembers marks that are not closed any more, so that a text of nothing
// but opening marks costs no more than its length.

const PAIRS = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];
const SPECIAL = /[\\`*_~[\]!<\nhm]/g;
const ESCAPED = /[!-/:-@[-`{-~]/;
const URL_HERE = /(?:https?:\/\/|mailto:)[^\s<>"'`]+/y;

export function inline(text, parent, depth = 0) {
  const missing = new Set();
  let plainFrom = 0;
  let at = 0;
  const flush = (end) => { if (end > plainFrom) parent.append(text.slice(plainFrom, end)); };
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const found = SPECIAL.exec(text);
    if (!found) break;
    at = found.index;
    const span = depth < DEEPEST ? spanAt(text, at, missing, depth) : null;
    if (!span) { at += 1; continue; }
    flush(at);
    parent.append(span.node);
    at = span.end;
    plainFrom = at;
  }
  flush(text.length);
}

function spanAt(text, at, missing, depth) {
  switch (text[at]) {
    case "\n": return { node: element("br"), end: at + 1 };
    case "\\": return ESCAPED.test(text[at + 1] ?? "") ? { node: text[at + 1], end: at + 2 } : null;
    case "`": return codeSpan(text, at, missing);
    case "[": return link(text, at, missing, depth);
    case "!": return text[at + 1] === "[" ? link(text, at + 1, missing, depth) : null;
    case "<": return angled(text, at, missing);
    case "h": case "m": return bare(text, at);
    default: return emphasis(text, at, missing, depth);
  }
}

function closing(text, mark, from, missing) {
  if (missing.has(mark)) return -1;
  const end = text.indexOf(mark, from);
  if (end < 0) missing.add(mark);
  return end;
}

function codeSpan(text, at, missing) {
  const mark = /^`+/.exec(text.slice(at, at + 16))[0];
  let end = closing(text, mark, at + mark.length, missing);
  while (end >= 0 && text[end + mark.length] === "`") {
    end += mark.length;
    while (text[end] === "`") end += 1;
    end = closing(text, mark, end, missing);
  }
  if (end < 0) return { node: mark, end: at + mark.length };
  const inside = text.slice(at + mark.length, end).replace(/\n/g, " ");
  const trimmed = /^ .*\S.* $/.test(inside) ? inside.slice(1, -1) : inside;
  return { node: element("code", {}, trimmed), end: end + mark.length };
}

function emphasis(text, at, missing, depth) {
  for (const [mark, name] of PAIRS) {
    if (!text.startsWith(mark, at)) continue;
    const after = text[at + mark.length];
    if (!after || /\s/.test(after) || (mark[0] === "_" && /[\p{L}\p{N}]/u.test(text[at - 1] ?? ""))) continue;
    const end = emphasisEnd(text, mark, at + mark.length + 1, missing);
    if (end < 0) continue;
    const node = element(name);
    inline(text.slice(at + mark.length, end), node, depth + 1);
    return { node, end: end + mark.length };
  }
  return null;
}

function emphasisEnd(text, mark, from, missing) {
  for (let end = closing(text, mark, from, missing), tries = 0; end >= 0 && tries < 50; tries += 1) {
    const doubled = mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark);
    const inWord = mark[0] === "_" && /[\p{L}\p{N}]/u.test(text[end + mark.length] ?? "");
    if (!/\s/.test(text[end - 1]) && !doubled && !inWord) return mark.length === 2 && text[end + 2] === mark[0] ? end + 1 : end;
    end = closing(text, mark, end + (doubled ? 2 : 1), missing);
  }
  return -1;
}

export function safeUrl(text) {
  let url;
  try { url = new URL(text.trim()); } catch { return null; }
  return SAFE.has(url.protocol) ? url.href : null;
}

function anchor(href) {
  return element("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" });
}

function link(text, at, missing, depth) {
  const middle = closing(text, "](", at + 1, missing);
  if (middle < 0 || middle - at > 1000) return null;
  const end = linkEnd(text, middle + 2);
  if (end < 0) return null;
  const target = text.slice(middle + 2, end).trim().replace(/^<(.*)>$/, "$1").split(/\s+"/)[0];
  const href = safeUrl(target);
  const label = text.slice(at + 1, middle) || target;
  if (label.includes("[") && label.includes("](")) return null;
  // Where a link leads is never hidden: a target that is not allowed stands there as text.
  if (!href) return { node: `${label} (${target})`, end: end + 1 };
  const node = anchor(href);
  inline(label, node, depth + DEEPEST - 2);
  return { node, end: end + 1 };
}

function linkEnd(text, from) {
  let open = 0;
  for (let at = from; at < text.length && at - from < 2000; at += 1) {
    if (text[at] === "\n") return -1;
    if (text[at] === "(") open += 1;
    if (text[at] === ")" && open-- === 0) return at;
  }
  return -1;
}

function angled(text, at, missing) {
  const end = closing(text, ">", at + 1, missing);
  if (end < 0 || end - at > 2000) return null;
  const inside = text.slice(at + 1, end);
  const href = /^(https?:\/\/|mailto:)\S+$/.test(inside) ? safeUrl(inside) : null;
  if (!href) return null;
  const node = anchor(href);
  node.append(inside);
  return { node, end: end + 1 };
}

function bare(text, at) {
  if (/[\p{L}\p{N}]/u.test(text[at - 1] ?? "")) return null;
  URL_HERE.lastIndex = at;
  const found = URL_HERE.exec(text);
  if (!found) return null;
  let target = found[0].replace(/[.,:;!?*_~]+$/, "");
  while (target.endsWith(")") && target.split("(").length < target.split(")").length) target = target.slice(0, -1);
  const href = safeUrl(target);
  if (!href) return null;
  const node = anchor(href);
  node.append(target);
  return { node, end: at + target.length };
}
