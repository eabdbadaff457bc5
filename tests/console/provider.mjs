// The OpenID provider of `identities.py`, on the port that is its first argument: npm's oidc-provider with its answers
// as they are, and a page for signing in that asks for a login name only. It knows whoever is named: `ann` has the
// address ann@example.com, which is not confirmed for names that begin with `new`, and `nameless` has nothing. Its
// second argument is how many seconds its clock is ahead. CONSOLE_WORK is where npm has installed packages.

import { generateKeyPairSync } from "node:crypto";
import { pathToFileURL } from "node:url";

const { Provider } = await import(
  pathToFileURL(`${process.env.CONSOLE_WORK}/node/node_modules/oidc-provider/lib/index.js`).href);
const port = Number(process.argv[2]);
const { now } = Date;
Date.now = () => now() + Number(process.argv[3]) * 1000;
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), use: "sig", alg: "RS256" };

const page = (body) => `<!doctype html><html lang="en"><title>Provider</title>${body}`;

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "cloakroom", client_secret: "secret", redirect_uris: ["http://127.0.0.1/callback"] }],
  jwks: { keys: [key] },
  cookies: { keys: ["a key of the tests"] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], auth_time: null },
  features: {
    devInteractions: { enabled: false },
    // Its own pages for this load fonts from elsewhere.
    rpInitiatedLogout: {
      logoutSource: (context, form) => {
        context.body = page(`<h1>Sign out of the provider?</h1>${form}
          <button form="op.logoutForm" name="logout" value="yes">Yes, sign me out</button>`);
      },
      postLogoutSuccessSource: (context) => { context.body = page("<h1>Signed out of the provider</h1>"); },
    },
  },
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  async findAccount(_, sub) {
    const of = sub === "nameless" ? {} : { email: `${sub}@example.com`, email_verified: !sub.startsWith("new"), name: `Dr ${sub}` };
    return { accountId: sub, claims: () => ({ sub, ...of }) };
  },
  // Nobody is asked whether the service may know them.
  async loadExistingGrant({ oidc: { client, session } }) {
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope("openid email profile");
    await grant.save();
    return grant;
  },
});
// The port of each service is another one.
provider.Client.prototype.redirectUriAllowed = (address) =>
  /^http:\/\/127\.0\.0\.1:\d+\/api\/v1\/auth\/oidc\/callback$/.test(address);

provider.use(async (context, next) => {
  const { req, res, path, method } = context;
  if (!path.startsWith("/interaction/")) return next();
  if (method === "GET") {
    context.type = "html";
    context.body = page(`<h1>Sign in to the provider</h1>
      <form method="post"><label>Login name <input name="login" autofocus></label>
      <button name="does" value="sign-in">Continue</button> <button name="does" value="cancel">Refuse</button></form>`);
    return undefined;
  }
  let body = "";
  for await (const part of req) body += part;
  const sent = new URLSearchParams(body);
  const isRefused = sent.get("does") === "cancel";
  const result = isRefused ? { error: "access_denied" } : { login: { accountId: sent.get("login") } };
  context.respond = false;
  return provider.interactionFinished(req, res, result);
});
provider.listen(port, "127.0.0.1", () => console.log("listening"));
