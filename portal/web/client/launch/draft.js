// The wizard's draft (common/draft.js). Values of variables that look secret are not stored, since browsers
// may write a tab's storage to disk.
import * as drafts from "../common/draft.js";
import * as env from "./env.js";

const wizard = () => document.getElementById("wizard");
const secret = () => env.stored().map(([name]) => name).filter(env.secret);

drafts.keep({
  form: wizard,
  hasErrors: () => wizard().querySelector(".steps .wrong, [role=alert]:not([hidden])") !== null,
  special: {
    name: "env",
    read: () => ({
      variables: env.stored().filter(([name]) => !env.secret(name)),
      secret: secret(),
    }),
    lost: () => secret().length > 0,
    /** @param {{ variables: [string, string][], secret: string[] }} draft */
    write({ variables, secret: lost }) {
      if (!variables.length && !lost.length) return;
      const values = Object.fromEntries(variables);
      wizard().querySelector("[data-env]").value = variables.length ? JSON.stringify(values) : "";
      env.restore(Object.keys(values), lost);
    },
  },
});
