// The sizes of folders in the wizard and the free space, loaded while the list is shown.
const PAUSE = 1500;
const MOST_TURNS = 40;
/** @type {PageElement | null} */
let list = null;

/** @param {PageElement} mine */
async function fill(mine) {
  const cells = [...mine.querySelectorAll("[data-size-of]")];
  if (!cells.length) return;
  const query = new URLSearchParams(cells.map((cell) => ["name", cell.dataset.sizeOf]));
  for (let turn = 0; turn < MOST_TURNS && mine.isConnected; turn += 1) {
    const answer = await fetch(`/folder-sizes?${query}`).catch(() => null);
    if (!answer?.ok || answer.redirected) return;
    const result = await answer.json();
    for (const cell of cells) cell.textContent = result.sizes[cell.dataset.sizeOf] ?? "";
    const free = mine.querySelector("[data-free]");
    if (free) [free.textContent, free.hidden] = [result.free, !result.free];
    if (result.complete) return;
    await new Promise((then) => setTimeout(then, PAUSE));
  }
}

function look() {
  const now = document.getElementById("folder-list");
  if (now && now !== list) {
    list = now;
    fill(now);
  }
}

document.addEventListener("htmx:load", look);
look();
