// Proposes only the QOS of the entered account. The server does the same for the form that it sends, and
// rejects a QOS that the account may not use.
const form = () => document.getElementById("compose");
const shown = 80; // as the template shortens the hint

function narrow() {
  const every = form()?.querySelector("[data-every-qos]");
  if (!every) return;
  const account = form().querySelector("[name=account]")?.value.trim() ?? "";
  const all = [...every.content.querySelectorAll("option")];
  const isAccount = all.some((option) => option.dataset.accounts.split(" ").includes(account))
    || [...document.querySelectorAll("#offers-account option")].some((option) => option.value === account);
  const offers = all.filter((option) => !isAccount || option.dataset.accounts.split(" ").includes(account));
  document.getElementById("offers-qos").replaceChildren(...offers.map((option) => option.cloneNode(true)));
  const names = offers.map((option) => option.value).join(", ") || "none is open to you";
  document.getElementById("hint-qos").textContent = names.length > shown ? `${names.slice(0, shown - 3)}...` : names;
}

document.addEventListener("input", (event) => {
  if (event.target.form === form() && event.target.name === "account") narrow();
});
