// The one time a browser shows its token; afterwards it has a cookie that scripts cannot read.

const at = (id) => document.getElementById(id);

export function offerLogin(done) {
  const dialog = at("login");
  const complain = (words) => {
    at("login-error").textContent = words;
    at("login-error").hidden = !words;
  };
  at("login-form").onsubmit = async (event) => {
    event.preventDefault();
    complain("");
    try {
      const answer = await fetch("/login", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ token: at("token").value }),
      });
      if (!answer.ok) {
        const { error, hint } = await answer.json();
        return complain(answer.status === 401 ? error : `${error} ${hint}`);
      }
    } catch {
      return complain("clew does not answer. Try again in a moment.");
    }
    at("token").value = "";
    dialog.close();
    done();
  };
  dialog.oncancel = (event) => event.preventDefault();
  if (!dialog.open) dialog.showModal();
}
