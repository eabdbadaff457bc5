//! Requests whose events in the audit log are looked at, one after the other.

use std::sync::Mutex;

use uuid::Uuid;

use crate::harness::*;

/// A service with the admin `root`, and requests whose events are looked at.
///
/// An event that a step must have written is a text, such as `auth.login failed by root on user ann`, and its details.
/// In both, ids are replaced by names: those that the tour has given, `it` for what the answer shows, and `its session`
/// for the session that it opens.
pub struct Tour {
    pub api: Server,
    pub root: Tokens,
    /// Ids and their names.
    names: Mutex<Vec<(String, &'static str)>>,
}

impl Tour {
    pub fn start() -> Tour {
        let test_only = ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true");
        let required = ("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", "true");
        let (api, [root]) = Server::with_users(&[test_only, required], ["root"]);
        let names = Mutex::new(vec![(root.id().to_owned(), "root")]);
        Tour { api, root, names }
    }

    /// Gives an id a name.
    pub fn name(&self, name: &'static str, id: &str) {
        self.names.lock().expect("no panic").push((id.to_owned(), name));
    }

    /// The events of a request, as soon as there are any; sorted by action.
    fn events(&self, request_id: &str) -> Vec<Value> {
        let mut events = eventually(|| {
            let mut events = self.api.all_events(&self.root, "limit=100");
            events.retain(|event| event["request_id"] == request_id);
            (!events.is_empty()).then_some(events)
        });
        events.sort_by_key(|event| event["action"].to_string());
        events
    }

    /// An event as a text and its details, of a request and its answer.
    fn described(&self, event: &Value, answer: &Answer) -> (String, Value) {
        let text = |name: &str| event[name].as_str();
        let at = text("at").expect("a time");
        assert!(at.len() == 27 && at.ends_with('Z'), "{at}");
        assert_eq!(text("id").map(str::len), Some(36), "{event}");
        assert_eq!(text("address"), Some("127.0.0.1"), "{event}");
        assert_eq!(event.as_object().map(|members| members.len()), Some(10), "{event}");
        let failed = match text("outcome") {
            Some("success") => "",
            Some("failure") => " failed",
            _ => panic!("{event}"),
        };
        let by = text("actor_id").map(|id| format!(" by {id}")).unwrap_or_default();
        let kind = text("subject_type").map(|kind| format!(" on {kind}")).unwrap_or_default();
        let subject = text("subject_id").map(|id| format!(" {id}")).unwrap_or_default();
        let action = text("action").expect("an action");
        let event_text = format!("{action}{failed}{by}{kind}{subject}");
        let mut details = event["details"].clone();
        // No part of the event: it is looked up in the list of files, whose names tests of their own know.
        details.as_object_mut().expect("an object").remove("filename");
        let details = self.named(details.to_string(), answer);
        (self.named(event_text, answer), serde_json::from_str(&details).expect("JSON"))
    }

    /// The text with names in place of ids.
    fn named(&self, text: String, answer: &Answer) -> String {
        let mut names = self.names.lock().expect("no panic").clone();
        let body = serde_json::from_slice(&answer.bytes).unwrap_or(json!(null));
        for id in [&body["id"], &body["user"]["id"]] {
            names.extend(id.as_str().map(|id| (id.to_owned(), "it")));
        }
        if body["access_token"].is_string() {
            names.push((answer.tokens().session(), "its session"));
        }
        names.iter().fold(text, |text, (id, name)| text.replace(id, name))
    }

    /// Sends a request and expects its status and, in the order of actions, its events.
    #[track_caller]
    pub fn events_of(&self, request: Request, status: u16, expected: &[(&str, Value)]) -> Answer {
        let request_id = Uuid::new_v4().to_string();
        let answer = request.header("X-Request-ID", &request_id).send().expect(status);
        if expected.is_empty() {
            // Whatever is written for this request is written before the failure of a later one.
            let later = Uuid::new_v4().to_string();
            let wrong = json!({"username": "nobody", "password": "wrong"});
            let login = self.api.request("POST", "/auth/login").json(wrong);
            login.header("X-Request-ID", &later).send().expect(401);
            self.events(&later);
            let events = self.api.all_events(&self.root, "limit=100");
            assert!(events.iter().all(|event| event["request_id"] != request_id), "{events:?}");
            return answer;
        }
        let events = self.events(&request_id);
        let found: Vec<_> = events.iter().map(|event| self.described(event, &answer)).collect();
        let expected: Vec<_> =
            expected.iter().map(|(text, details)| ((*text).to_owned(), details.clone())).collect();
        assert_eq!(found, expected, "{answer:?}");
        answer
    }

    /// The same with events that have no details.
    #[track_caller]
    pub fn step(&self, request: Request, status: u16, expected: &[&str]) -> Answer {
        let events: Vec<_> = expected.iter().map(|event| (*event, json!({}))).collect();
        self.events_of(request, status, &events)
    }

    /// The same with one event.
    #[track_caller]
    pub fn event(&self, request: Request, status: u16, event: &str, details: Value) -> Answer {
        self.events_of(request, status, &[(event, details)])
    }

    pub fn post(&self, path: &str, sender: impl Credentials, body: Value) -> Request {
        self.api.request("POST", path).by(sender).json(body)
    }

    pub fn put(&self, path: &str, sender: impl Credentials, body: Value) -> Request {
        self.api.request("PUT", path).by(sender).json(body)
    }

    pub fn delete(&self, path: &str, sender: impl Credentials) -> Request {
        self.api.request("DELETE", path).by(sender)
    }

    pub fn sign_in(&self, name: &str, password: &str) -> Request {
        self.post("/auth/login", Anonymous, json!({"username": name, "password": password}))
    }

    /// Signs in the user with this name in the tour, and expects the event.
    #[track_caller]
    pub fn login(&self, name: &str, user: &str) -> Tokens {
        let event = format!("auth.login by {user} on user {user}");
        let details = json!({"session_id": "its session"});
        self.event(self.sign_in(name, PASSWORD), 200, &event, details).tokens()
    }
}
