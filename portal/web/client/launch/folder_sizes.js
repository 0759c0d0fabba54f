// The sizes of folders in the launcher, and what is free: asked for while the list is shown.
const PAUSE = 1500;
const MOST_TURNS = 40;
/** @type {PageElement | null} */
let list = null;

/** @param {PageElement} mine */
async function fill(mine) {
  const places = [...mine.querySelectorAll("[data-size-of]")];
  if (!places.length) return;
  const query = new URLSearchParams(places.map((place) => ["name", place.dataset.sizeOf]));
  for (let turn = 0; turn < MOST_TURNS && mine.isConnected; turn += 1) {
    const answer = await fetch(`/folder-sizes?${query}`).catch(() => null);
    if (!answer?.ok || answer.redirected) return;
    const found = await answer.json();
    for (const place of places) place.textContent = found.sizes[place.dataset.sizeOf] ?? "";
    const free = mine.querySelector("[data-free]");
    if (free) [free.textContent, free.hidden] = [found.free, !found.free];
    if (found.complete) return;
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
