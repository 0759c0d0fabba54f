// An OpenID provider for the tests: everybody logs in with the name of an account, and any password.
// node provider.js SETTINGS, where SETTINGS is JSON: port, portal, client, secret, groups by user.
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const { port, portal, client, secret, groups } = JSON.parse(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [{
    client_id: client,
    client_secret: secret,
    redirect_uris: [`${portal}/login/oidc/callback`],
    post_logout_redirect_uris: [`${portal}/login/oidc/logged-out`],
    backchannel_logout_uri: `${portal}/login/oidc/back-channel`,
    backchannel_logout_session_required: true,
  }],
  claims: { openid: ["sub", "sid"], profile: ["preferred_username", "groups"], email: ["email", "email_verified"] },
  // The portal is on this machine, where the provider would send nothing by itself.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  cookies: { keys: ["only for tests"] },
  features: { backchannelLogout: { enabled: true } },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({
      sub: `id-of-${id}`,
      preferred_username: id,
      groups: groups[id] ?? [],
      email: `${id}@example.org`,
      email_verified: true,
    }),
  }),
  // Nobody is asked for consent.
  loadExistingGrant: async (context) => {
    const { client: known, session, provider: own } = context.oidc;
    const grant = new own.Grant({ clientId: known.clientId, accountId: session.accountId });
    grant.addOIDCScope("openid profile email");
    await grant.save();
    return grant;
  },
});

createServer(provider.callback()).listen(port, "127.0.0.1", () => process.stdout.write("ready\n"));
