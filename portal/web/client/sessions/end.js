// Ending one or many sessions after a confirmation dialog.
import * as times from "../common/times.js";
import * as selection from "../lists/pick.js";

const dialog = document.getElementById("end");
/** @type {string[]} */
let ending = [];

// Job number and age, which distinguish sessions with similar names.
/** @param {PageElement} row */
function detail(row) {
  const text = document.createElement("span");
  text.className = "sub";
  text.textContent = `${row.dataset.job ? `job ${row.dataset.job}, ` : ""}launched ${times.age(row.dataset.created)} ago`;
  return text;
}

/** @param {string[]} ids */
function ask(ids) {
  ending = ids;
  const targets = ids.map((id) => document.getElementById(`s-${id}`)).filter(Boolean);
  const names = targets.map((row) => ("foreign" in row.dataset ? `${row.dataset.owner}'s ${row.dataset.name}` : row.dataset.name));
  const reason = dialog.querySelector(".end-reason");
  if (reason) {
    reason.hidden = !targets.some((row) => "foreign" in row.dataset);
    reason.querySelector("input").value = "";
  }
  const isSingle = ids.length === 1;
  document.getElementById("end-title").textContent = isSingle ? `End ${names[0]}?` : `End ${selection.counted(ids.length)}?`;
  const list = dialog.querySelector(".end-names");
  list.hidden = isSingle;
  list.replaceChildren(...(isSingle ? [] : names).map((name, index) => {
    const item = document.createElement("li");
    const files = document.createElement("span");
    files.className = "sub";
    files.textContent = `${targets[index].dataset.kept}`;
    item.append(name, detail(targets[index]), files);
    return item;
  }));
  for (const fact of ["stays", "goes", "advice"]) {
    dialog.querySelector(`[data-${fact}]`).textContent = isSingle ? targets[0]?.dataset[fact] ?? "" : "";
  }
  for (const text of dialog.querySelectorAll("[data-many]")) text.hidden = (text.dataset.many === "true") === isSingle;
  dialog.querySelector(".btn-danger span").textContent = `End ${selection.counted(ids.length)}`;
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const target = event.target.closest?.("[data-end]");
  if (target) {
    event.preventDefault();
    ask([target.dataset.end]);
  } else if (event.target.closest?.("[data-end-picked]")) {
    ask(selection.chosen());
  } else if (event.target.closest?.("[data-end-cancel]") || event.target === dialog) {
    dialog.close();
  }
});

/** @param {number} status */
function failed(status) {
  if (status === 404) return "Nothing was ended: some of these sessions no longer exist.";
  return `The portal did not answer. ${ending.length === 1 ? "It" : "They"} may not have been ended. The list will show it when the connection is back.`;
}

const form = dialog.querySelector("form");
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const values = { csrf_token: form.elements.csrf_token.value, ids: ending, reason: form.elements.reason?.value ?? "" };
  selection.send(form, "/sessions/end", values, { failed, focus: ending.map((id) => `s-${id}`) });
});
