// The wizard's first step: searching the environments, and showing the first of many.
(() => {
  const place = () => document.querySelector("[data-environments]");
  let all = false;

  function draw() {
    const box = place();
    if (!box) return;
    const search = document.getElementById("env-search");
    const words = (search?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const most = all || words.length ? Infinity : Number(box.dataset.firstShown);
    const cards = [...box.children];
    cards.forEach((card, number) => {
      const found = words.every((word) => card.dataset.words.includes(word));
      card.hidden = !found || (number >= most && !card.querySelector(":checked") && !("kept" in card.dataset));
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
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-env-all]")) return;
    all = true;
    const first = [...place().children].find((card) => card.hidden);
    draw();
    first?.querySelector(".proposed input").focus();
  });

  function prepare() {
    const search = document.querySelector("[data-env-search]");
    if (search) search.hidden = false;
    draw();
  }
  prepare();
  document.addEventListener("htmx:afterSettle", prepare);
})();
