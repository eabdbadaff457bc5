//! Requests by an honest client, and assertions on what they are answered.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http;

use super::claims;
use super::documented::{Operation, assert_documented};

/// The tokens of a signed-in user, and the user as the login answered it.
#[derive(Debug, Clone)]
pub struct Tokens {
    pub access: String,
    pub refresh: String,
    pub user: Value,
}

impl Tokens {
    pub fn id(&self) -> &str {
        self.user["id"].as_str().expect("an id")
    }

    /// The id of the session that the tokens are of.
    pub fn session(&self) -> String {
        claims(&self.access)["sid"].as_str().expect("a session").to_owned()
    }
}

/// Who sends a request: the bearer of an access token, or nobody.
pub trait Credentials {
    fn access_token(&self) -> Option<&str>;
}

/// The sender of a request without an `Authorization` header.
pub struct Anonymous;

impl Credentials for Anonymous {
    fn access_token(&self) -> Option<&str> {
        None
    }
}

impl Credentials for Tokens {
    fn access_token(&self) -> Option<&str> {
        Some(&self.access)
    }
}

impl Credentials for str {
    fn access_token(&self) -> Option<&str> {
        Some(self)
    }
}

impl Credentials for String {
    fn access_token(&self) -> Option<&str> {
        Some(self)
    }
}

impl<T: Credentials + ?Sized> Credentials for &T {
    fn access_token(&self) -> Option<&str> {
        (**self).access_token()
    }
}

/// A request that has not been sent yet.
#[derive(Clone)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub fn new(method: &str, url: String) -> Request {
        Request { method: method.to_owned(), url, headers: Vec::new(), body: None }
    }

    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Whether it has this header.
    pub fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(header, _)| header == name)
    }

    /// Sends the access token of `sender` along.
    pub fn by(self, sender: impl Credentials) -> Request {
        match sender.access_token() {
            Some(token) => self.header("Authorization", &format!("Bearer {token}")),
            None => self,
        }
    }

    pub fn json(self, body: Value) -> Request {
        self.header("Content-Type", "application/json").body(body.to_string())
    }

    pub fn form(self, pairs: String) -> Request {
        self.header("Content-Type", "application/x-www-form-urlencoded").body(pairs)
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = Some(body.into());
        self
    }

    /// Its operation in a document.
    pub fn operation<'a>(&self, document: &'a Value) -> Option<Operation<'a>> {
        let path = self.url.splitn(4, '/').nth(3)?.split('?').next()?;
        Operation::of_request(document, &self.method, &format!("/{path}"))
    }

    #[track_caller]
    pub fn send(&self) -> Answer {
        self.try_send().unwrap_or_else(|e| panic!("{} {}: {e}", self.method, self.url))
    }

    /// Sends it on a connection of its own. Fails if the connection breaks or the answer takes over a minute.
    pub fn try_send(&self) -> Result<Answer, ureq::Error> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(Duration::from_secs(60)))
            .max_redirects(0)
            .build()
            .into();
        let mut request = http::Request::builder().method(self.method.as_str()).uri(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = match &self.body {
            Some(body) => agent.run(request.body(body.as_slice())?),
            None => agent.run(request.body(())?),
        }?;
        let (parts, body) = response.into_parts();
        let bytes = body.into_with_config().limit(u64::MAX).read_to_vec()?;
        let context = format!("{} {}", self.method, self.url);
        let answer =
            Answer { status: parts.status.as_u16(), headers: parts.headers, bytes, context };
        assert_documented(&self.method, &self.url, &answer);
        Ok(answer)
    }
}

/// A whole response, and what to say of its request when an assertion fails.
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub bytes: Vec<u8>,
    context: String,
}

impl Answer {
    /// Names the case of a table that was asked, for the message of a failed assertion.
    pub fn case(mut self, reason: impl fmt::Display) -> Answer {
        self.context = format!("{reason}: {}", self.context);
        self
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Expects an error with this status and message.
    #[track_caller]
    pub fn refused(self, status: u16, message: &str) -> Answer {
        assert_eq!((self.status, &self.json()["detail"]), (status, &json!(message)), "{self:?}");
        self
    }

    /// Expects a 422 that names exactly these places and types of problems, in any order.
    #[track_caller]
    pub fn invalid(self, expected: &[(&str, &str)]) -> Answer {
        let mut expected: Vec<_> =
            expected.iter().map(|(l, t)| ((*l).to_owned(), (*t).to_owned())).collect();
        expected.sort();
        assert_eq!(self.problems(), expected, "{self:?}");
        self
    }

    /// The same with problems of one part of the request as a text, such as `limit int_parsing, role enum`.
    #[track_caller]
    pub fn invalid_in(self, part: &str, problems: &str) -> Answer {
        let place = |problem: &str| {
            let (field, kind) = problem.split_once(' ').expect("a field and a problem");
            (format!("{part}.{field}"), kind.to_owned())
        };
        let mut expected: Vec<_> = problems.split(", ").map(place).collect();
        expected.sort();
        assert_eq!(self.problems(), expected, "{self:?}");
        self
    }

    /// The problems that a 422 names: places such as `body.email`, and types; sorted.
    #[track_caller]
    pub fn problems(&self) -> Vec<(String, String)> {
        let body = self.json();
        assert_eq!(
            (self.status, &body["error_code"]),
            (422, &json!("VALIDATION_ERROR")),
            "{self:?}"
        );
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let problem = |detail: &Value| {
            let place: Vec<_> = detail["loc"].as_array().expect("loc").iter().map(text).collect();
            (place.join("."), text(&detail["type"]))
        };
        let mut found: Vec<_> =
            body["detail"].as_array().expect("a list").iter().map(problem).collect();
        found.sort();
        found
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Expects an object with these members, and perhaps others.
    #[track_caller]
    pub fn has(self, expected: Value) -> Answer {
        let body = self.json();
        for (name, value) in expected.as_object().expect("an object") {
            assert_eq!(&body[name], value, "{name}: {self:?}");
        }
        self
    }

    /// The names of the object's members, sorted.
    #[track_caller]
    pub fn member_names(&self) -> Vec<String> {
        let body = self.json();
        let mut names: Vec<_> = body.as_object().expect("an object").keys().cloned().collect();
        names.sort();
        names
    }

    #[track_caller]
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).expect("UTF-8")
    }

    /// The member `list` of the object in the body.
    #[track_caller]
    pub fn list(&self, list: &str) -> Vec<Value> {
        self.json()[list].as_array().unwrap_or_else(|| panic!("no {list}: {self:?}")).clone()
    }

    /// The member `name` of every object in the list that is the member `list`.
    #[track_caller]
    pub fn names(&self, list: &str, name: &str) -> Vec<String> {
        names_of(&json!(self.list(list)), name)
    }

    /// The `id` of the object in the body.
    #[track_caller]
    pub fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_else(|| panic!("no id: {self:?}")).to_owned()
    }

    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}"));
        value.to_str().expect("ASCII")
    }

    pub fn has_header(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    /// The headers `X-RateLimit-Limit` and `X-RateLimit-Remaining`.
    #[track_caller]
    pub fn rate_limit(&self) -> (u64, u64) {
        let number = |name| self.header(name).parse().expect("a number");
        (number("X-RateLimit-Limit"), number("X-RateLimit-Remaining"))
    }

    #[track_caller]
    pub fn tokens(&self) -> Tokens {
        let body = self.json();
        let text = |name: &str| {
            body[name].as_str().unwrap_or_else(|| panic!("no {name}: {self:?}")).to_owned()
        };
        Tokens {
            access: text("access_token"),
            refresh: text("refresh_token"),
            user: body["user"].clone(),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let body: String = String::from_utf8_lossy(&self.bytes).chars().take(2000).collect();
        write!(f, "{}: {} {:?} {body}", self.context, self.status, self.headers)
    }
}

/// The member `name` of every object in a list, which must be a text.
#[track_caller]
pub fn names_of(list: &Value, name: &str) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items.map(|item| item[name].as_str().expect("text").to_owned()).collect()
}
