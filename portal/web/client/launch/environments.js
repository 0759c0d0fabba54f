// The choice of an image: searching the environments, showing the first of many, and own files.
import htmx from "htmx.org";

const container = () => document.querySelector("[data-environments]");
let all = false;

function draw() {
  const box = container();
  if (!box) return;
  const search = document.getElementById("env-search");
  const words = (search?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const most = all || words.length ? Infinity : Number(box.dataset.firstShown);
  const cards = [...box.children];
  cards.forEach((card, number) => {
    const matches = words.every((word) => card.dataset.words.includes(word));
    card.hidden = !matches || (number >= most && !card.querySelector(":checked") && !("kept" in card.dataset));
  });
  const button = document.querySelector("[data-env-all]");
  if (button) button.hidden = Boolean(words.length) || all;
  const none = document.querySelector("[data-env-none]");
  if (!none) return;
  none.hidden = cards.some((card) => !card.hidden);
  none.textContent = none.hidden ? "" : none.dataset.none;
}

document.addEventListener("input", (event) => {
  if (event.target.id === "env-search") draw();
});
// Enter chooses the first match, Escape shows all again; neither submits the form.
document.addEventListener("keydown", (event) => {
  const search = event.target;
  if (search.id !== "env-search" || !["Enter", "Escape"].includes(event.key)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (event.key === "Escape") search.value = "";
  else if (search.value.trim()) choose([...container().children].find((card) => !card.hidden));
  draw();
});

/** @param {PageElement | undefined} card */
function choose(card) {
  const radio = card?.querySelector(":checked") ?? card?.querySelector(".proposed input");
  if (!radio || radio.checked) return;
  radio.checked = true;
  for (const kind of ["input", "change"]) radio.dispatchEvent(new Event(kind, { bubbles: true }));
}

document.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-env-all]")) return;
  all = true;
  const first = [...container().children].find((card) => card.hidden);
  draw();
  first?.querySelector(".proposed input").focus();
});

// Lists the user's image files only once the choice "own" is selected.
function listOwnFiles() {
  if (!document.querySelector("[name=image][value=own]:checked")) return;
  const looking = document.querySelector("[data-own-looking]");
  if (!looking) return;
  looking.hidden = false;
  htmx.trigger(document.body, "own-image");
}
document.addEventListener("change", (event) => {
  if (event.target.name === "image") listOwnFiles();
});
document.addEventListener("click", (event) => {
  const file = event.target.closest?.("[data-own-file]");
  if (!file) return;
  const field = document.getElementById("field-image");
  field.value = file.dataset.ownFile;
  for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
  field.focus();
});

function prepare() {
  const search = document.querySelector("[data-env-search]");
  if (search) search.hidden = false;
  draw();
  listOwnFiles();
}
prepare();
document.addEventListener("htmx:afterSettle", prepare);
