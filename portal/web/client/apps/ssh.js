// The SSH page works without this; it announces when SSH is open.
document.addEventListener("htmx:afterSettle", () => {
  const open = document.querySelector("#ssh-status .chip.live");
  if (open) document.getElementById("announce").textContent = "SSH is open.";
});
