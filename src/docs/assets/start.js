// Starts Swagger UI. Operations stand in the order of the document, because no sorter is given.

// The value with each reference in it replaced by what it leads to. One that leads back to where it stands remains.
const resolve = (value, document, through = []) => {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item) => resolve(item, document, through));
  const { $ref, ...members } = value;
  if (typeof $ref !== "string") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolve(item, document, through)]));
  }
  if (through.includes($ref)) return value;
  const words = $ref.slice(2).split("/").map((word) => word.replaceAll("~1", "/").replaceAll("~0", "~"));
  const target = words.reduce((found, word) => found[word], document);
  return { ...resolve(target, document, [...through, $ref]), ...resolve(members, document, through), $$ref: $ref };
};

// Does what Swagger UI brings for documents of any kind, with less work: this one is JSON, and refers only to itself.
const lighter = {
  fn: {
    resolveSubtree: async (document, path) => {
      const value = path.reduce((found, name) => found?.[name], document);
      return { spec: resolve(value, document) ?? null, errors: [] };
    },
  },
  statePlugins: {
    spec: {
      wrapActions: {
        parseToJson: (_, system) => (text) => system.specActions.updateJsonSpec(JSON.parse(text)),
      },
    },
  },
};

// Shows a tag that no operation has as a text to open. Such texts say what holds for all operations.
const topics = {
  wrapComponents: {
    OperationTag: (OperationTag, { React, getComponent }) => {
      const { createElement: h, memo } = React;
      const Topic = memo(({ name, text }) => h("details", { className: "topic" },
        h("summary", null, name), h(getComponent("Markdown", true), { source: text })));
      return ({ tag, tagObj, ...others }) => tagObj.get("operations").size > 0
        ? h(OperationTag, { tag, tagObj, ...others })
        : h(Topic, { name: tag, text: tagObj.getIn(["tagDetails", "description"]) });
    },
  },
};

// Shows the code samples of an operation above its responses. ReDoc does so by itself.
const samples = {
  wrapComponents: {
    responses: (Responses, { React: { createElement: h }, specSelectors }) => (properties) => {
      const { path, method } = properties;
      const found = specSelectors.specJson().getIn(["paths", path, method, "x-codeSamples"])?.toJS() ?? [];
      const sample = ({ label, lang, source }) =>
        h("details", { key: label ?? lang }, h("summary", null, label ?? lang), h("pre", null, source));
      return h("div", null, h("div", { className: "code-samples" }, found.map(sample)), h(Responses, properties));
    },
  },
};

// Asks for the code of a second factor above the name and the password, and sends it with them. A code serves once.
let code = "";
const secondFactor = {
  wrapComponents: {
    oauth2: (Oauth2, { React: { createElement: h } }) => (properties) => {
      const isAuthorized = properties.authSelectors.authorized().get(properties.name);
      const input = h("input", {
        id: "second_factor_code", type: "text", autoComplete: "one-time-code",
        onChange: (event) => { code = event.target.value; },
      });
      const label = h("label", { htmlFor: "second_factor_code" }, "code, if the account has a second factor:");
      return h("div", null, isAuthorized ? null : h("div", { className: "wrapper" }, label, input),
        h(Oauth2, properties));
    },
  },
  statePlugins: {
    auth: {
      wrapActions: {
        authorizeRequest: (authorize) => (request) => {
          const body = code === "" ? request.body : `${request.body}&code=${encodeURIComponent(code)}`;
          code = "";
          return authorize({ ...request, body });
        },
      },
    },
  },
};

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true, // the address names the operation that is open, so that a link can lead to it
  displayRequestDuration: true,
  filter: true,
  tryItOutEnabled: true,
  persistAuthorization: false, // a token is forgotten when the page is closed or loaded again
  validatorUrl: null, // the default would send the document to another host
  plugins: [lighter, topics, samples, secondFactor],
});
