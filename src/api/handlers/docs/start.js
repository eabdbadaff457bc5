// Starts Swagger UI. Operations stand in the order of the document, because no sorter is given.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true, // the address names the operation that is open, so that a link can lead to it
  displayRequestDuration: true,
  filter: true,
  tryItOutEnabled: true,
  persistAuthorization: false, // a token is forgotten when the page is closed or loaded again
  validatorUrl: null, // the default would send the document to another host
});
