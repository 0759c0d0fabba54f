// The wizard's draft (draft.js). Values of variables that look secret are not kept, since browsers may
// write a tab's storage to disk.
(() => {
  const wizard = () => document.getElementById("wizard");
  const secret = () => slipwayEnv.stored().map(([name]) => name).filter(slipwayEnv.secret);

  slipwayDraft.keep({
    form: wizard,
    wrong: () => wizard().querySelector(".steps .wrong, [role=alert]:not([hidden])") !== null,
    more: {
      name: "env",
      read: () => ({
        variables: slipwayEnv.stored().filter(([name]) => !slipwayEnv.secret(name)),
        secret: secret(),
      }),
      lost: () => secret().length > 0,
      write({ variables, secret: lost }) {
        if (!variables.length && !lost.length) return;
        const kept = Object.fromEntries(variables);
        wizard().querySelector("[data-env]").value = variables.length ? JSON.stringify(kept) : "";
        slipwayEnv.restore(Object.keys(kept), lost);
      },
    },
  });
})();
