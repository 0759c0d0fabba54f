// Call-backs for whenever another folder or file is shown.
/** @type {((moved: boolean) => unknown)[]} */
const calls = [];

/** @param {(moved: boolean) => unknown} call */
export function onShow(call) {
  calls.push(call);
}

/** @param {boolean} moved */
export function shown(moved) {
  for (const call of calls) call(moved);
}
