// Fields for times: UTC without this script; with it, in the reader's zone, and sent with their offset.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
const local = (/** @type {Date} */ time) =>
  `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}T${two(time.getHours())}:${two(time.getMinutes())}`;

for (const form of document.querySelectorAll("[data-local-times]")) {
  const fields = [...form.querySelectorAll("input[type=datetime-local]")];
  for (const field of fields) {
    const time = new Date(`${field.getAttribute("value")}Z`);
    if (!Number.isNaN(time.getTime())) field.value = local(time);
    const hint = document.getElementById(`hint-${field.name}`);
    if (hint) hint.textContent = hint.textContent.replace("in UTC", `in your time (${zone})`);
  }
  form.addEventListener("formdata", (event) => {
    for (const field of fields) {
      const time = new Date(field.value);
      if (field.value && !Number.isNaN(time.getTime())) event.formData.set(field.name, time.toISOString());
    }
  });
}
