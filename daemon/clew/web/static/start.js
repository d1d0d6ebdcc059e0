// Opens the chat that the address names, or says that its name is none.

const named = new URLSearchParams(location.search).get("chat") || "local";

if (/^[A-Za-z0-9_.-]{1,64}$/.test(named)) import("./page.js");
else refuse();

function refuse() {
  const at = (id) => document.getElementById(id);
  const notice = at("notice");
  notice.textContent = `“${named.slice(0, 80)}” is no name for a chat: use 1 to 64 letters, digits, dots, dashes and underscores.`;
  notice.hidden = false;
  at("state").textContent = "No such chat";
  at("state").dataset.state = "offline";
  for (const id of ["text", "send", "new-thread"]) at(id).disabled = true;
}
