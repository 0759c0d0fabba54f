// The wizard's draft (common/draft.js). Values of variables that look secret are not kept, since browsers may
// write a tab's storage to disk.
import * as drafts from "../common/draft.js";
import * as env from "./env.js";

const wizard = () => document.getElementById("wizard");
const secret = () => env.stored().map(([name]) => name).filter(env.secret);

drafts.keep({
  form: wizard,
  wrong: () => wizard().querySelector(".steps .wrong, [role=alert]:not([hidden])") !== null,
  more: {
    name: "env",
    read: () => ({
      variables: env.stored().filter(([name]) => !env.secret(name)),
      secret: secret(),
    }),
    lost: () => secret().length > 0,
    /** @param {{ variables: [string, string][], secret: string[] }} kept */
    write({ variables, secret: lost }) {
      if (!variables.length && !lost.length) return;
      const kept = Object.fromEntries(variables);
      wizard().querySelector("[data-env]").value = variables.length ? JSON.stringify(kept) : "";
      env.restore(Object.keys(kept), lost);
    },
  },
});
