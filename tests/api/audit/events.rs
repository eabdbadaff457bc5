//! The events of the audit log: every one of them is provoked and read back with all its fields.

use serde_json::{Value, json};

use super::tour::*;
use crate::harness::*;

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
        let session = ann.session();
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
        vec![own_refused("password.change", &ann, json!({}))]
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
    for body in [
        json!({"name": "A", "email": "ann2@example.com"}),
        json!({"email": "ann2@example.com", "current_password": "wrong password"}),
    ] {
        tour.step(update(body), 400, |_| vec![own_refused("email.change", &ann, json!({}))]);
    }
    let body = json!({"email": "ann2@example.com", "current_password": PASSWORD});
    tour.step(update(body), 200, |_| vec![own("email.change", &ann, json!({}))]);
    let all = json!({
        "username": "annie", "name": "A", "email": "ann@example.com", "current_password": PASSWORD,
    });
    tour.step(update(all), 200, |_| {
        vec![
            own("email.change", &ann, json!({})),
            own("user.update", &ann, json!({"fields": ["username", "name"]})),
        ]
    });
    let taken = json!({"email": "root@example.com", "current_password": PASSWORD});
    tour.step(update(taken), 409, |_| vec![]);
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
        vec![own_refused("user.delete", &root, json!({"reason": "last_admin"}))]
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

fn sessions_in_sight(tour: &Tour) {
    let root = tour.root();
    let ann = [tour.login("annie", PASSWORD), tour.login("annie", PASSWORD)];
    let mia = tour.login("mia@example.com", PASSWORD);
    let ids = [ann[0].session(), ann[1].session()];
    let end = |user: &Tokens, id: &str| tour.delete(&format!("/auth/sessions/{id}"), user);
    tour.step(end(&mia, &ids[1]), 404, |_| vec![]);
    tour.step(end(&ann[0], &ids[1]), 204, |_| {
        vec![success("auth.session_end", ann[0].id(), ("session", &ids[1]), json!({}))]
    });
    tour.step(end(&ann[0], &ids[1]), 404, |_| vec![]);
    tour.step(tour.api.request("GET", "/auth/sessions").by(&ann[0]), 200, |_| vec![]);
    tour.step(end(&ann[0], &ids[0]), 204, |_| {
        vec![success("auth.session_end", ann[0].id(), ("session", &ids[0]), json!({}))]
    });
    // All sessions of a user are one event with their number. Those of earlier steps end before.
    tour.api.logout(tour.login("annie", PASSWORD)).expect(204);
    let ann = tour.login("annie", PASSWORD);
    tour.login("annie", PASSWORD);
    let path = format!("/users/{}/sessions", ann.id());
    tour.step(tour.delete(&path, &mia), 403, |_| {
        let details = json!({"endpoint": "DELETE /api/v1/users/{user_id}/sessions"});
        vec![("access.denied", "failure", Some(mia.id().to_owned()), None, details)]
    });
    for sessions in [2, 0] {
        tour.step(tour.delete(&path, &root), 204, |_| {
            let details = json!({ "sessions": sessions });
            vec![success("auth.session_end", root.id(), ("user", ann.id()), details)]
        });
    }
}

fn personal_tokens(tour: &Tour) {
    let root = tour.root();
    let (ann, mia) = (tour.login("annie", PASSWORD), tour.login("mia@example.com", PASSWORD));
    let create = |body: Value, read_only: bool, days: i32| {
        tour.step(tour.post("/auth/tokens", &ann, body), 201, |answer| {
            let details = json!({"read_only": read_only, "expires_in_days": days});
            vec![success("auth.token_create", ann.id(), ("token", &answer.id()), details)]
        })
    };
    let backup = create(json!({"name": "secret backup"}), false, 90);
    create(json!({"name": "b", "read_only": true, "expires_in_days": 7}), true, 7);
    let last = create(json!({"name": "c"}), false, 90);
    tour.step(tour.post("/auth/tokens", &ann, json!({"name": ""})), 422, |_| vec![]);
    let delete = |user: &Tokens| tour.delete(&format!("/auth/tokens/{}", backup.id()), user);
    tour.step(delete(&mia), 404, |_| vec![]);
    tour.step(delete(&ann), 204, |_| {
        vec![success("auth.token_delete", ann.id(), ("token", &backup.id()), json!({}))]
    });
    tour.step(delete(&ann), 404, |_| vec![]);
    // What a token may not do is no matter of the user's role.
    let token = last.json()["token"].as_str().expect("a token").to_owned();
    tour.step(tour.api.request("GET", "/auth/tokens").by(&token), 403, |_| vec![]);
    tour.step(tour.put("/users/me", &token, json!({"name": "B"})), 403, |_| vec![]);
    // A change that is made with a token is its user's.
    let body =
        json!({"username": "eve", "email": "eve@example.com", "name": "E", "password": PASSWORD});
    tour.step(tour.post("/users", &token, body), 403, |_| {
        let details = json!({"endpoint": "POST /api/v1/users"});
        vec![("access.denied", "failure", Some(ann.id().to_owned()), None, details)]
    });
    // All tokens of a user are one event with their number, and none are no event.
    let path = format!("/users/{}/tokens", ann.id());
    tour.step(tour.delete(&path, &root), 204, |_| {
        vec![success("auth.token_delete", root.id(), ("user", ann.id()), json!({"tokens": 2}))]
    });
    tour.step(tour.delete(&path, &root), 204, |_| vec![]);
    tour.step(tour.delete("/users/no-id/tokens", &root), 422, |_| vec![]);
}

fn leaving(tour: &Tour) {
    let (root, mia) = (tour.root(), tour.login("mia@example.com", PASSWORD));
    let leave = |user: &Tokens, password: &str| {
        tour.post("/users/me/delete", user, json!({ "current_password": password }))
    };
    tour.step(leave(&mia, "wrong password"), 400, |_| {
        vec![own_refused("user.delete", &mia, json!({}))]
    });
    tour.step(leave(&root, PASSWORD), 409, |_| {
        vec![own_refused("user.delete", &root, json!({"reason": "last_admin"}))]
    });
    tour.step(leave(&mia, PASSWORD), 204, |_| vec![own("user.delete", &mia, json!({}))]);
    tour.step(leave(&mia, PASSWORD), 401, |_| vec![]);
}

fn files_and_exports(tour: &Tour) {
    let (ann, mia) = (tour.login("annie", PASSWORD), tour.login("mia@example.com", PASSWORD));
    let upload = |form: Form| tour.api.upload_request(&ann, form.bytes());
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
    let links = format!("{path}/links");
    let link = tour.post(&links, &ann, json!({"expires_in_minutes": 5, "inline": true}));
    let link = tour.step(link, 201, |answer| {
        let details = json!({"link_id": answer.id(), "expires_in_minutes": 5, "inline": true});
        by_ann("file.link_create", details)
    });
    let url = link.json()["url"].as_str().expect("a path").to_owned();
    tour.step(tour.api.request_at_root("GET", &url), 200, |_| vec![]);
    tour.step(tour.post(&links, &mia, json!({})), 403, |_| vec![]);
    let one = format!("{links}/{}", link.id());
    tour.step(tour.delete(&one, &mia), 403, |_| vec![]);
    let ended = json!({"link_id": link.id()});
    tour.step(tour.delete(&one, &ann), 204, |_| by_ann("file.link_delete", ended));
    tour.step(tour.delete(&one, &ann), 404, |_| vec![]);
    tour.step(tour.delete(&path, &ann), 204, |_| by_ann("file.delete", json!({})));
    let rows = tour.api.database.count("users WHERE NOT is_deleted");
    for (path, sender, is_filtered, rows) in [
        ("/users/export-full", Some(tour.root()), false, rows),
        ("/users/export?email=", None, false, rows),
        ("/users/exports/csv?email=&format=csv", None, false, rows),
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

fn second_factors(tour: &Tour) {
    let fay = tour.api.sign_up("fay");
    let password = json!({"current_password": PASSWORD});
    let offer = tour.step(tour.post("/auth/second-factor", &fay, password), 200, |_| vec![]).json();
    let secret = offer["secret"].as_str().expect("a secret").to_owned();
    let factor = SecondFactor { secret, recovery_codes: Vec::new() };
    let confirm = tour.post("/auth/second-factor/confirm", &fay, json!({"code": factor.code()}));
    let enabled = |details| vec![own("second_factor.enable", &fay, details)];
    let codes = tour.step(confirm, 200, |_| enabled(json!({}))).json()["recovery_codes"].clone();
    let required = json!({"reason": "second_factor_required"});
    tour.refused_login("fay", PASSWORD, 401, Some(fay.id()), required);
    let login = |code: Value| {
        let body = json!({"username": "fay", "password": PASSWORD, "code": code});
        tour.post("/auth/login", Anonymous, body)
    };
    tour.step(login(json!(factor.wrong_code())), 401, |_| {
        let subject = Some(("user", fay.id().to_owned()));
        vec![("auth.login", "failure", None, subject, json!({"reason": "second_factor_invalid"}))]
    });
    let recovered = |details| own("second_factor.recovery", &fay, details);
    tour.step(login(codes[0].clone()), 200, |answer| {
        let session = json!({"session_id": answer.tokens().session()});
        vec![own("auth.login", &fay, session), recovered(json!({"codes_left": 9}))]
    });
    let proofs = |password: &str, code: &Value| json!({"current_password": password, "code": code});
    let renew = proofs(PASSWORD, &codes[1]);
    let renew = tour.post("/auth/second-factor/recovery-codes", &fay, renew);
    let renewed = tour.step(renew, 200, |_| {
        let mut events = enabled(json!({"new_recovery_codes": true}));
        events.push(recovered(json!({})));
        events
    });
    let code = renewed.json()["recovery_codes"][0].clone();
    let disable = |password| tour.delete("/auth/second-factor", &fay).json(proofs(password, &code));
    tour.step(disable("wrong password"), 400, |_| {
        vec![own_refused("second_factor.disable", &fay, json!({}))]
    });
    tour.step(disable(PASSWORD), 204, |_| {
        vec![own("second_factor.disable", &fay, json!({})), recovered(json!({}))]
    });
}

#[test]
fn every_change_and_every_refusal_is_one_event_and_nothing_else_is() {
    let tour = Tour::start();
    sign_ins_and_sessions(&tour);
    passwords_and_profiles(&tour);
    user_management(&tour);
    files_and_exports(&tour);
    sessions_in_sight(&tour);
    personal_tokens(&tour);
    second_factors(&tour);
    leaving(&tour);
    let missing =
        "SELECT string_agg(action::text, ' ') FROM unnest(enum_range(NULL::audit_action)) action
                   WHERE NOT EXISTS (SELECT FROM audit_events e WHERE e.action = action.action)";
    // The command line is no request; the test below is about it.
    assert_eq!(tour.api.database.value::<String>(missing), "admin.create");
    let log: String =
        tour.api.database.value("SELECT string_agg(e::text, ' ') FROM audit_events e");
    let words =
        "@ example battery ann Bo secret plans .txt eyJ cloak_ backup eve text/plain nobody";
    for word in words.split(' ').chain(["correct horse", "wrong password"]) {
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
fn an_admin_made_on_the_command_line_is_an_event_without_an_actor() {
    let api = Server::start(&[]);
    for _ in 0..2 {
        api.create_admin("root@example.com", PASSWORD);
    }
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
