// A session from its launch to its end, by the types that openapi-typescript makes of the API's document.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [baseUrl, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

type Answer<T> = { data?: T; error?: components["schemas"]["Problem"] };

function done<T>({ data, error }: Answer<T>): T {
  if (data === undefined) throw new Error(`${error?.title}: ${error?.detail}`);
  return data;
}

const body = { environment: "python", resources: { cpus: 1, memory: "600m" } };
const launched = done(await client.POST("/sessions", { body }));
const session: components["schemas"]["Session"] = launched.sessions[0];
const path = { session_id: session.id };
const listed = done(await client.GET("/sessions", { params: { query: { state: "running" } } }));
const opened = done(
  await client.POST("/sessions/{session_id}/apps/{app}", { params: { path: { ...path, app: "jupyterlab" } } }),
);
const ended = done(await client.DELETE("/sessions/{session_id}", { params: { path } }));
const refused = await client.POST("/sessions", { body: { ...body, environment: "nothing" } });
console.log(
  JSON.stringify({
    session: session.id,
    listed: listed.sessions.map(({ id }) => id),
    url: opened.url,
    ended: ended.id,
    problem: refused.error?.errors?.map(({ field }) => field),
  }),
);
