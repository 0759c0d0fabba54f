// Asks before an action on jobs. On the list, the response is the list; elsewhere a page.
/**
 * The rows that are selected on the list; null on the page of one job.
 * @typedef {typeof import("../lists/pick.js")} Selection
 */

/** @param {Selection | null} selection */
export function askBeforeActions(selection) {
  const dialog = document.getElementById("job-dialog");
  if (!dialog) return;
  const form = dialog.querySelector("form");
  const button = form.querySelector(".btn-danger");
  /** @type {never[]} */
  /** @type {string[]} */
  let ids = [];
  let action = "";

  const element = (/** @type {string} */ id) => document.querySelector(`[data-id="${CSS.escape(id)}"]`);
  const counted = (/** @type {number} */ number) => (number === 1 ? "job" : `${number} jobs`);

  /** @param {string} verbKey @param {string[]} numbers */
  function ask(verbKey, numbers) {
    [action, ids] = [verbKey, numbers];
    const names = ids.map((id) => element(id)?.dataset.called ?? `job ${id}`);
    const single = ids.length === 1;
    let verb = "";
    for (const text of dialog.querySelectorAll("[data-for]")) {
      const its = text.dataset.for === action;
      text.hidden = !its || (text.dataset.many === "true") === single;
      if (its && text.dataset.verb) verb = text.dataset.verb;
    }
    document.getElementById("job-dialog-title").textContent = `${verb} ${single ? names[0] : counted(ids.length)}?`;
    const list = dialog.querySelector(".end-names");
    list.hidden = single;
    list.replaceChildren(...(single ? [] : names).map((name) => {
      const item = document.createElement("li");
      item.textContent = name;
      return item;
    }));
    const risky = ["cancel", "requeue"].includes(action);
    button.classList.toggle("btn-danger", risky);
    button.classList.toggle("btn-primary", !risky);
    button.querySelector("span").textContent = `${verb} ${counted(ids.length)}`;
    form.action = `/jobs/act/${action}`;
    dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const single = event.target.closest?.("[data-act]");
    const many = event.target.closest?.("[data-act-picked]");
    if (single) {
      event.preventDefault();
      ask(single.dataset.act, [single.value]);
    } else if (many && selection) {
      ask(many.dataset.actPicked, selection.chosen(many.dataset.actPicked));
    } else if (event.target.closest?.("[data-job-dialog-close]") || event.target === dialog) {
      dialog.close();
    }
  });

  /** @param {number} status */
  function failed(status) {
    if (status === 404) return "Nothing was done: some of these jobs no longer exist.";
    if (status === 0 || status >= 500) return "The portal did not answer. It may have done this, or not. The list will show it when the connection is back.";
    return "The portal refused this. Reload the page and try again.";
  }

  form.addEventListener("submit", (event) => {
    for (const old of form.querySelectorAll("[name=ids]")) old.remove();
    if (!selection) {
      for (const id of ids) {
        const field = document.createElement("input");
        [field.type, field.name, field.value] = ["hidden", "ids", id];
        form.append(field);
      }
      return;
    }
    event.preventDefault();
    const values = { csrf_token: form.elements.csrf_token.value, ids };
    const leaves = action === "cancel" || action === "requeue"; // other actions keep the row
    selection.send(form, `/jobs/act/${action}`, values, { failed, focus: leaves ? ids.map((id) => element(id)?.id) : [] });
  });
}
