//! Requests whose events in the audit log are looked at, one after the other.

use std::sync::Mutex;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::*;

/// What a step of the tour must have written: action, outcome, actor, kind and id of the subject, details.
pub type Event =
    (&'static str, &'static str, Option<String>, Option<(&'static str, String)>, Value);

pub fn success(
    action: &'static str,
    actor: &str,
    subject: (&'static str, &str),
    details: Value,
) -> Event {
    (action, "success", Some(actor.to_owned()), Some((subject.0, subject.1.to_owned())), details)
}

/// A service with the admin `root`, and requests whose events are looked at.
pub struct Tour {
    pub api: Server,
    root: Mutex<Tokens>,
}

impl Tour {
    pub fn start() -> Tour {
        let api = Server::start(&[
            ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
            ("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", "true"),
        ]);
        let root = Mutex::new(api.sign_up_admin("root"));
        Tour { api, root }
    }

    pub fn root(&self) -> Tokens {
        self.root.lock().unwrap().clone()
    }

    /// The events of a request, as soon as there are any; sorted by action.
    fn events(&self, request_id: &str) -> Vec<Value> {
        let root = self.root();
        let mut events = eventually(|| {
            let mut events = self.api.all_events(&root, "limit=100");
            events.retain(|event| event["request_id"] == request_id);
            (!events.is_empty()).then_some(events)
        });
        events.sort_by_key(|event| event["action"].to_string());
        events
    }

    /// Sends a request and expects its status and, in the order of actions, its events.
    #[track_caller]
    pub fn step(
        &self,
        request: Request,
        status: u16,
        expected: impl FnOnce(&Answer) -> Vec<Event>,
    ) -> Answer {
        let request_id = Uuid::new_v4().to_string();
        let answer = request.header("X-Request-ID", &request_id).send().expect(status);
        let expected: Vec<_> = expected(&answer)
            .into_iter()
            .map(|(action, outcome, actor, subject, details)| {
                let (subject_type, subject_id) = subject.unzip();
                json!({
                    "action": action, "outcome": outcome, "actor_id": actor, "subject_type": subject_type,
                    "subject_id": subject_id, "address": "127.0.0.1", "request_id": request_id, "details": details,
                })
            })
            .collect();
        if expected.is_empty() {
            // Whatever is written for this request is written before the failure of a later one.
            let later = Uuid::new_v4().to_string();
            let wrong = json!({"username": "nobody", "password": "wrong"});
            let login = self.api.request("POST", "/auth/login").json(wrong);
            login.header("X-Request-ID", &later).send().expect(401);
            self.events(&later);
            let events = self.api.all_events(self.root(), "limit=100");
            assert!(events.iter().all(|event| event["request_id"] != request_id), "{events:?}");
            return answer;
        }
        let mut events = self.events(&request_id);
        for event in &mut events {
            let event = event.as_object_mut().expect("an object");
            let at = event.remove("at").expect("a time").to_string();
            assert!(at.len() == 29 && at.ends_with("Z\""), "{at}");
            assert_eq!(event.remove("id").expect("an id").as_str().map(str::len), Some(36));
        }
        assert_eq!(events, expected, "{answer:?}");
        answer
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

    /// Signs in and expects the event.
    #[track_caller]
    pub fn login(&self, name: &str, password: &str) -> Tokens {
        let body = json!({"username": name, "password": password});
        let answer = self.step(self.post("/auth/login", Anonymous, body), 200, |answer| {
            let tokens = answer.tokens();
            vec![own("auth.login", &tokens, json!({"session_id": tokens.session()}))]
        });
        answer.tokens()
    }

    /// Signs in with what is refused, and expects the event.
    #[track_caller]
    pub fn refused_login(
        &self,
        name: &str,
        password: &str,
        status: u16,
        subject: Option<&str>,
        details: Value,
    ) {
        let body = json!({"username": name, "password": password});
        let subject = subject.map(|id| ("user", id.to_owned()));
        self.step(self.post("/auth/login", Anonymous, body), status, |_| {
            vec![("auth.login", "failure", None, subject, details)]
        });
    }
}

/// The event of an action of a user on their own account.
pub fn own(action: &'static str, user: &Tokens, details: Value) -> Event {
    success(action, user.id(), ("user", user.id()), details)
}

/// The event of an action on a user's own account that was refused.
pub fn own_refused(action: &'static str, user: &Tokens, details: Value) -> Event {
    let id = user.id().to_owned();
    (action, "failure", Some(id.clone()), Some(("user", id)), details)
}
