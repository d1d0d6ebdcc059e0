// Logs this browser in with the secret that stands behind `#` in the address. Nothing is used up before the button is pressed.

const at = (id) => document.getElementById(id);
let secret = "";

function take() {
  if (!location.hash) return;
  secret = location.hash.slice(1);
  history.replaceState(null, "", location.pathname); // it stays in no history
  complain("");
}

function complain(words) {
  at("link-error").textContent = words;
  at("link-error").hidden = !words;
}

// What somebody else has written in this browser and not sent is theirs.
function forgetOthers(name) {
  try {
    const before = localStorage.getItem("clew.name");
    localStorage.setItem("clew.name", name);
    if (before === null || before === name) return;
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith("clew.outbox.") || key.startsWith("clew.draft.")) localStorage.removeItem(key);
    }
  } catch { /* no storage, nothing to forget */ }
}

at("link-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!secret) return complain("Open the link as you were given it: this address has lost its secret.");
  at("log-in").disabled = true;
  try {
    const answer = await fetch("/login/link", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ link: secret }),
    });
    const told = await answer.json();
    if (!answer.ok) return complain(`${told.error} ${told.hint}`.trim());
    forgetOthers(told.name);
    location.replace("/");
  } catch {
    complain("clew does not answer. Try again in a moment.");
  } finally {
    at("log-in").disabled = false;
  }
});

addEventListener("hashchange", take);
take();
