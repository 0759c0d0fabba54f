// What is called whenever another folder or file is shown.
const calls = [];

export function onShow(call) {
  calls.push(call);
}

export function shown(moved) {
  for (const call of calls) call(moved);
}
