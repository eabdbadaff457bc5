//! The events of the audit log: every one of them is provoked and read back with all its fields.

use std::sync::Mutex;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::*;

/// What a step of the tour must have written: action, outcome, actor, kind and id of the subject, details.
type Event = (&'static str, &'static str, Option<String>, Option<(&'static str, String)>, Value);

fn success(
    action: &'static str,
    actor: &str,
    subject: (&'static str, &str),
    details: Value,
) -> Event {
    (action, "success", Some(actor.to_owned()), Some((subject.0, subject.1.to_owned())), details)
}

/// A service with the admin `root`, and requests whose events are looked at.
struct Tour {
    api: Server,
    root: Mutex<Tokens>,
}

impl Tour {
    fn start() -> Tour {
        let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
        let root = Mutex::new(api.sign_up_admin("root"));
        Tour { api, root }
    }

    fn root(&self) -> Tokens {
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
    fn step(
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

    fn post(&self, path: &str, sender: impl Credentials, body: Value) -> Request {
        self.api.request("POST", path).by(sender).json(body)
    }

    fn put(&self, path: &str, sender: impl Credentials, body: Value) -> Request {
        self.api.request("PUT", path).by(sender).json(body)
    }

    fn delete(&self, path: &str, sender: impl Credentials) -> Request {
        self.api.request("DELETE", path).by(sender)
    }

    /// Signs in and expects the event.
    #[track_caller]
    fn login(&self, name: &str, password: &str) -> Tokens {
        let body = json!({"username": name, "password": password});
        let answer = self.step(self.post("/auth/login", Anonymous, body), 200, |answer| {
            let tokens = answer.tokens();
            let session = claims(&tokens.access)["sid"].clone();
            vec![success(
                "auth.login",
                tokens.id(),
                ("user", tokens.id()),
                json!({ "session_id": session }),
            )]
        });
        answer.tokens()
    }

    /// Signs in with what is refused, and expects the event.
    #[track_caller]
    fn refused_login(
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
fn own(action: &'static str, user: &Tokens, details: Value) -> Event {
    success(action, user.id(), ("user", user.id()), details)
}

fn sign_ins_and_sessions(tour: &Tour) {
    let body = json!({"username": "ann", "email": "ann@example.com", "password": PASSWORD});
    let answer = tour.step(tour.post("/auth/register", Anonymous, body.clone()), 201, |answer| {
        vec![success("auth.register", &answer.id(), ("user", &answer.id()), json!({}))]
    });
    let ann_id = answer.id();
    tour.step(tour.post("/auth/register", Anonymous, body), 400, |_| vec![]);
    let body = json!({"email": "mia@example.com", "password": PASSWORD});
    tour.step(tour.post("/auth/register", Anonymous, body), 201, |answer| {
        let mia = answer.tokens();
        let session = claims(&mia.access)["sid"].clone();
        vec![own("auth.register", &mia, json!({ "session_id": session }))]
    });
    tour.refused_login("ann", "wrong password", 401, Some(&ann_id), json!({}));
    tour.refused_login("nobody@example.com", PASSWORD, 401, None, json!({}));
    let ann = tour.login("ann", PASSWORD);
    let logout =
        |scope: &str, user: &Tokens| tour.post(&format!("/auth/logout{scope}"), user, json!({}));
    let ended = |user: &Tokens, scope, sessions| {
        vec![own("auth.logout", user, json!({"scope": scope, "sessions": sessions}))]
    };
    tour.step(logout("?scope=others", &ann), 204, |_| ended(&ann, "others", 0));
    tour.step(logout("?scope=local", &ann), 204, |_| ended(&ann, "local", 1));
    let ann = [tour.login("ann", PASSWORD), tour.login("ann", PASSWORD)];
    tour.step(logout("", &ann[0]), 204, |_| ended(&ann[0], "all", 2));
    // Refreshes are no events, but the use of a stolen token is one.
    let ann = tour.login("ann@example.com", PASSWORD);
    let refresh = || tour.post("/auth/refresh", Anonymous, json!({"refresh_token": ann.refresh}));
    tour.step(refresh(), 200, |_| vec![]);
    tour.api.database.run("UPDATE sessions SET rotated_at = array[now() - interval '1 hour'] WHERE rotated_at <> '{}'");
    tour.step(refresh(), 401, |_| {
        let session = claims(&ann.access)["sid"].as_str().expect("text").to_owned();
        let subject = Some(("session", session));
        vec![("auth.refresh_reuse", "failure", Some(ann.id().to_owned()), subject, json!({}))]
    });
    tour.step(refresh(), 401, |_| vec![]);
}

fn passwords_and_profiles(tour: &Tour) {
    let ann = tour.login("ann", PASSWORD);
    let change = |user: &Tokens, current: &str, new: &str| {
        let body = json!({"current_password": current, "new_password": new});
        tour.post("/users/change-password", user, body)
    };
    tour.step(change(&ann, "wrong password", NEW_PASSWORD), 400, |_| {
        let id = ann.id().to_owned();
        vec![("password.change", "failure", Some(id.clone()), Some(("user", id)), json!({}))]
    });
    tour.step(change(&ann, PASSWORD, NEW_PASSWORD), 200, |_| {
        vec![own("password.change", &ann, json!({}))]
    });
    let reset = |email: &str| {
        tour.post("/auth/request-password-reset", Anonymous, json!({ "email": email }))
    };
    tour.step(reset("nobody@example.com"), 200, |_| vec![]);
    tour.step(reset("ANN@example.com"), 200, |_| {
        let subject = Some(("user", ann.id().to_owned()));
        vec![("password.reset_request", "success", None, subject, json!({}))]
    });
    let line = tour.api.logged("password reset token");
    let token = line.split_whitespace().last().expect("a token");
    let reset = |token: &str| {
        tour.post(
            "/auth/reset-password",
            Anonymous,
            json!({"token": token, "new_password": PASSWORD}),
        )
    };
    tour.step(reset(token), 200, |_| vec![own("password.reset", &ann, json!({}))]);
    tour.step(reset(token), 400, |_| {
        vec![("password.reset", "failure", None, Some(("user", ann.id().to_owned())), json!({}))]
    });
    tour.step(reset("nonsense"), 400, |_| {
        vec![("password.reset", "failure", None, None, json!({}))]
    });
    let ann = tour.login("ann", PASSWORD);
    let update = |body: Value| tour.put("/users/me", &ann, body);
    tour.step(update(json!({})), 200, |_| vec![]);
    tour.step(update(json!({"username": "ann", "email": "ann@example.com"})), 200, |_| vec![]);
    tour.step(update(json!({"name": "Ann Anderson"})), 200, |_| {
        vec![own("user.update", &ann, json!({"fields": ["name"]}))]
    });
    tour.step(update(json!({"email": "ann2@example.com"})), 200, |_| {
        vec![own("email.change", &ann, json!({}))]
    });
    let all = json!({"username": "annie", "name": "A", "email": "ann@example.com"});
    tour.step(update(all), 200, |_| {
        vec![
            own("email.change", &ann, json!({})),
            own("user.update", &ann, json!({"fields": ["username", "name"]})),
        ]
    });
    tour.step(update(json!({"email": "root@example.com"})), 409, |_| vec![]);
}

fn user_management(tour: &Tour) {
    let root = tour.root();
    let body = json!({"email": "bo@example.com", "name": "Bo", "password": PASSWORD});
    let created = |answer: &Answer| {
        vec![success("user.create", root.id(), ("user", &answer.id()), json!({}))]
    };
    let bo = tour.step(tour.post("/users", &root, body), 201, created).id();
    tour.step(tour.post("/users/test-only/create", &root, json!({"username": "cy"})), 201, created);
    let update = |body: Value| tour.put(&format!("/users/{bo}"), &root, body);
    let by_root = |action, details| success(action, root.id(), ("user", &bo), details);
    let state = |role, is_active| json!({"role": role, "is_active": is_active});
    tour.step(update(json!({"role": "user", "is_active": true, "name": "Bo"})), 200, |_| vec![]);
    tour.step(update(json!({"role": "admin", "name": "B"})), 200, |_| {
        let (old, new) = (state("user", true), state("admin", true));
        vec![by_root("user.update", json!({"fields": ["name", "role"], "old": old, "new": new}))]
    });
    let many = json!({
        "username": "bob", "email": "bob@example.com", "password": NEW_PASSWORD, "permissions": ["x"],
        "is_active": false, "role": "user",
    });
    tour.step(tour.put(&format!("/admin/users/{bo}"), &root, many), 200, |_| {
        let fields = ["username", "role", "permissions", "is_active"];
        let (old, new) = (state("admin", true), state("user", false));
        vec![
            by_root("email.change", json!({})),
            by_root("password.change", json!({})),
            by_root("user.update", json!({"fields": fields, "old": old, "new": new})),
        ]
    });
    tour.refused_login("bob", NEW_PASSWORD, 403, Some(&bo), json!({"reason": "inactive_account"}));
    tour.step(tour.delete(&format!("/users/{bo}"), &root), 204, |_| {
        vec![by_root("user.delete", json!({}))]
    });
    tour.step(tour.delete(&format!("/users/{bo}"), &root), 404, |_| vec![]);
    tour.step(tour.delete(&format!("/users/{}", root.id()), &root), 409, |_| {
        let id = root.id().to_owned();
        vec![("user.delete", "failure", Some(id.clone()), Some(("user", id)), json!({}))]
    });
    let mia = tour.login("mia@example.com", PASSWORD);
    for (request, endpoint) in [
        (tour.api.request("GET", "/users"), "GET /api/v1/users"),
        (tour.api.request("DELETE", &format!("/users/{bo}")), "DELETE /api/v1/users/{user_id}"),
    ] {
        tour.step(request.by(&mia), 403, |_| {
            let details = json!({ "endpoint": endpoint });
            vec![("access.denied", "failure", Some(mia.id().to_owned()), None, details)]
        });
    }
}

fn files_and_exports(tour: &Tour) {
    let (ann, mia) = (tour.login("annie", PASSWORD), tour.login("mia@example.com", PASSWORD));
    let upload = |form: Form| {
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        tour.api
            .request("POST", "/uploads")
            .by(&ann)
            .header("Content-Type", &content_type)
            .body(form.bytes())
    };
    let file = tour
        .step(upload(file_form("secret plans.txt", "text/plain", b"text")), 201, |answer| {
            vec![success("file.upload", ann.id(), ("file", &answer.id()), json!({"file_size": 4}))]
        })
        .id();
    tour.step(upload(file_form("a.exe", "application/x-msdownload", b"MZ")), 415, |_| vec![]);
    let path = format!("/uploads/{file}");
    let by_ann = |action, details| vec![success(action, ann.id(), ("file", &file), details)];
    tour.step(tour.put(&path, &ann, json!({"filename": "secret plans.txt"})), 200, |_| vec![]);
    let body = json!({"filename": "b.txt", "description": "secret", "is_public": true});
    tour.step(tour.put(&path, &ann, body), 200, |_| {
        by_ann("file.update", json!({"fields": ["filename", "description", "is_public"]}))
    });
    tour.step(tour.put(&path, &mia, json!({"filename": "c.txt"})), 403, |_| vec![]);
    tour.step(tour.delete(&path, &mia), 403, |_| vec![]);
    tour.step(tour.api.request("GET", &format!("{path}/download")).by(&ann), 200, |_| vec![]);
    tour.step(tour.delete(&path, &ann), 204, |_| by_ann("file.delete", json!({})));
    let rows = tour.api.database.count("users WHERE NOT is_deleted");
    for (path, sender, is_filtered, rows) in [
        ("/users/export-full", Some(tour.root()), false, rows),
        ("/users/export?email=annie@", None, true, 0),
        ("/users/exports/csv?email=mia", None, true, 1),
    ] {
        let request = tour.api.request("GET", path);
        let request = match &sender {
            Some(sender) => request.by(sender),
            None => request,
        };
        let actor = sender.map(|sender| sender.id().to_owned());
        tour.step(request, 200, |_| {
            let details = json!({"rows": rows, "is_filtered": is_filtered});
            vec![("users.export", "success", actor, None, details)]
        });
    }
    tour.step(tour.api.request("HEAD", "/users/export-full"), 200, |_| vec![]);
    tour.step(tour.api.request("GET", "/users/export-alive"), 200, |_| vec![]);
}

fn sessions_in_sight_and_personal_tokens(tour: &Tour) {
    let root = tour.root();
    let (ann, other) = (tour.login("annie", PASSWORD), tour.login("annie", PASSWORD));
    let session = claims(&other.access)["sid"].as_str().expect("text").to_owned();
    let end = || tour.delete(&format!("/auth/sessions/{session}"), &ann);
    tour.step(end(), 204, |_| {
        vec![success("auth.session_end", ann.id(), ("session", &session), json!({}))]
    });
    tour.step(end(), 404, |_| vec![]);
    let create = |read_only: bool| {
        let body = json!({"name": "secret robot", "read_only": read_only});
        tour.post("/auth/tokens", &ann, body)
    };
    let created = |read_only: bool| {
        let by_ann = |answer: &Answer| {
            let details = json!({ "read_only": read_only });
            vec![success("auth.token_create", ann.id(), ("token", &answer.id()), details)]
        };
        tour.step(create(read_only), 201, by_ann).id()
    };
    let token = created(true);
    let delete = || tour.delete(&format!("/auth/tokens/{token}"), &ann);
    tour.step(delete(), 204, |_| {
        vec![success("auth.token_delete", ann.id(), ("token", &token), json!({}))]
    });
    tour.step(delete(), 404, |_| vec![]);
    let token = created(false);
    tour.step(tour.delete(&format!("/users/{}/tokens", ann.id()), &root), 204, |_| {
        vec![success("auth.token_delete", root.id(), ("token", &token), json!({}))]
    });
    tour.step(tour.delete(&format!("/users/{}/tokens", ann.id()), &root), 204, |_| vec![]);
    tour.step(tour.delete(&format!("/users/{}/sessions", ann.id()), &root), 204, |_| {
        vec![success("auth.session_end", root.id(), ("user", ann.id()), json!({}))]
    });
}

fn leaving(tour: &Tour) {
    let ann = tour.login("annie", PASSWORD);
    let leave = |password: &str| {
        tour.post("/users/me/delete", &ann, json!({ "current_password": password }))
    };
    tour.step(leave("wrong password"), 400, |_| {
        let id = ann.id().to_owned();
        vec![("user.delete", "failure", Some(id.clone()), Some(("user", id)), json!({}))]
    });
    tour.step(leave(PASSWORD), 204, |_| vec![own("user.delete", &ann, json!({}))]);
    let root = tour.root();
    let body = json!({ "current_password": PASSWORD });
    tour.step(tour.post("/users/me/delete", &root, body), 409, |_| {
        let id = root.id().to_owned();
        vec![("user.delete", "failure", Some(id.clone()), Some(("user", id)), json!({}))]
    });
}

#[test]
fn every_change_and_every_refusal_is_one_event_and_nothing_else_is() {
    let tour = Tour::start();
    sign_ins_and_sessions(&tour);
    passwords_and_profiles(&tour);
    user_management(&tour);
    files_and_exports(&tour);
    sessions_in_sight_and_personal_tokens(&tour);
    leaving(&tour);
    let log: String =
        tour.api.database.value("SELECT string_agg(e::text, ' ') FROM audit_events e");
    for word in [
        "@",
        "example",
        "correct horse",
        "battery",
        "wrong password",
        "ann",
        "Bo",
        "secret",
        "plans",
        ".txt",
        "eyJ",
        "cloak_",
        "robot",
        "text/plain",
        "nobody",
    ] {
        assert!(!log.contains(word), "{word}: {log}");
    }
    // Deleting everything is an event for each account.
    let root = tour.root();
    let users = tour.api.database.count("users WHERE NOT is_deleted");
    tour.api
        .delete("/users/test-only/delete-all", &root)
        .expect(200)
        .has(json!({ "deleted": users }));
    let deleted = "audit_events e JOIN users u ON u.id = e.subject_id AND u.is_deleted WHERE e.action = 'user.delete'";
    assert_eq!(tour.api.database.count(&format!("{deleted} AND e.outcome = 'success'")), users + 2);
}

#[test]
fn a_change_of_address_that_its_password_does_not_confirm_is_a_failure() {
    let api = Server::start(&[("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", "true")]);
    let (root, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    let change = |password: &str| {
        api.update_me(&ann, json!({"email": "ann2@example.com", "current_password": password}))
    };
    change("wrong").expect(400);
    change(PASSWORD).expect(200);
    let events =
        eventually(|| Some(api.all_events(&root, "action=email.change")).filter(|e| e.len() == 2));
    for (event, outcome) in events.iter().zip(["success", "failure"]) {
        assert_eq!(event["outcome"], json!(outcome), "{event}");
        assert_eq!(event["actor_id"], json!(ann.id()));
        assert_eq!(event["subject_id"], json!(ann.id()));
    }
}

#[test]
fn an_admin_made_on_the_command_line_is_an_event_without_an_actor() {
    let api = Server::start(&[]);
    let password = [("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)];
    let create = || {
        run(&api.database.url, &["create-admin", "--email", "root@example.com"], &password).exits(0)
    };
    create();
    create();
    let root = api.login("root@example.com", PASSWORD).expect(200).tokens();
    let events = api.all_events(&root, "action=admin.create");
    let found: Vec<_> =
        events.iter().map(|event| without_member(&without_member(event, "id"), "at")).collect();
    let expected = |is_new| {
        json!({
            "action": "admin.create", "outcome": "success", "actor_id": null, "subject_type": "user",
            "subject_id": root.id(), "address": null, "request_id": null, "details": {"is_new": is_new},
        })
    };
    assert_eq!(found, [expected(false), expected(true)]);
}

#[test]
fn without_authentication_the_actor_is_the_development_admin() {
    let api = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    let admin = api.me(Anonymous).expect(200).id();
    let body = json!({"email": "bo@example.com", "name": "Bo", "password": PASSWORD});
    let bo = api.create_user(Anonymous, body).expect(201).id();
    let events = api.all_events(Anonymous, &format!("actor_id={admin}"));
    assert_eq!(names_of(&json!(events), "action"), ["user.create"]);
    assert_eq!(events[0]["subject_id"], json!(bo));
}
