//! The events of the audit log: every one of them is provoked and read back with all its fields.

use super::tour::*;
use crate::harness::*;

fn sign_ins_and_sessions(tour: &Tour) {
    let register = |body: Value| tour.post("/auth/register", Anonymous, body);
    let body = json!({"username": "ann", "email": "ann@example.com", "password": PASSWORD});
    let ann = tour.step(register(body.clone()), 201, &["auth.register by it on user it"]).id();
    tour.name("ann", &ann);
    tour.step(register(body), 400, &[]);
    let body = json!({"email": "mia@example.com", "password": PASSWORD});
    let session = json!({"session_id": "its session"});
    let mia = tour.event(register(body), 201, "auth.register by it on user it", session);
    tour.name("mia", mia.tokens().id());
    tour.step(tour.sign_in("ann", "wrong password"), 401, &["auth.login failed on user ann"]);
    tour.step(tour.sign_in("nobody@example.com", PASSWORD), 401, &["auth.login failed"]);
    let logout = |scope: &str, status: &str, user: &Tokens, sessions: u32| {
        let request = tour.post(&format!("/auth/logout{scope}"), user, json!({}));
        let details = json!({"scope": status, "sessions": sessions});
        tour.event(request, 204, "auth.logout by ann on user ann", details);
    };
    let ann = tour.login("ann", "ann");
    logout("?scope=others", "others", &ann, 0);
    logout("?scope=local", "local", &ann, 1);
    let ann = [tour.login("ann", "ann"), tour.login("ann", "ann")];
    logout("", "all", &ann[0], 2);
    // Refreshes are no events, but the use of a stolen token is one.
    let ann = tour.login("ann@example.com", "ann");
    tour.name("ann's", &ann.session());
    let refresh = || tour.post("/auth/refresh", Anonymous, json!({"refresh_token": ann.refresh}));
    tour.step(refresh(), 200, &[]);
    tour.api.database.run("UPDATE sessions SET rotated_at = array[now() - interval '1 hour'] WHERE rotated_at <> '{}'");
    tour.step(refresh(), 401, &["auth.refresh_reuse failed by ann on session ann's"]);
    tour.step(refresh(), 401, &[]);
}

fn passwords(tour: &Tour) {
    let ann = tour.login("ann", "ann");
    let change = |current: &str| {
        let body = json!({"current_password": current, "new_password": NEW_PASSWORD});
        tour.post("/users/change-password", &ann, body)
    };
    tour.step(change("wrong password"), 400, &["password.change failed by ann on user ann"]);
    tour.step(change(PASSWORD), 200, &["password.change by ann on user ann"]);
    let reset = |email: &str| {
        tour.post("/auth/request-password-reset", Anonymous, json!({ "email": email }))
    };
    tour.step(reset("nobody@example.com"), 200, &[]);
    tour.step(reset("ANN@example.com"), 200, &["password.reset_request on user ann"]);
    let line = tour.api.logged("password reset token");
    let token = line.split_whitespace().last().expect("a token");
    let reset = |token: &str| {
        let body = json!({"token": token, "new_password": PASSWORD});
        tour.post("/auth/reset-password", Anonymous, body)
    };
    tour.step(reset(token), 200, &["password.reset by ann on user ann"]);
    tour.step(reset(token), 400, &["password.reset failed on user ann"]);
    tour.step(reset("nonsense"), 400, &["password.reset failed"]);
}

fn profiles(tour: &Tour) {
    let ann = tour.login("ann", "ann");
    let update = |body: Value| tour.put("/users/me", &ann, body);
    tour.step(update(json!({})), 200, &[]);
    tour.step(update(json!({"username": "ann", "email": "ann@example.com"})), 200, &[]);
    let (updated, moved) = ("user.update by ann on user ann", "email.change by ann on user ann");
    let name = json!({"fields": ["name"]});
    tour.event(update(json!({"name": "Ann Anderson"})), 200, updated, name);
    for body in [
        json!({"name": "A", "email": "ann2@example.com"}),
        json!({"email": "ann2@example.com", "current_password": "wrong password"}),
    ] {
        tour.step(update(body), 400, &["email.change failed by ann on user ann"]);
    }
    let to = |email: &str| json!({"email": email, "current_password": PASSWORD});
    tour.step(update(to("ann2@example.com")), 200, &[moved]);
    let all = with_member(&with_member(&to("ann@example.com"), "username", "annie"), "name", "A");
    let both = [(moved, json!({})), (updated, json!({"fields": ["username", "name"]}))];
    tour.events_of(update(all), 200, &both);
    tour.step(update(to("root@example.com")), 409, &[]);
}

fn user_management(tour: &Tour) {
    let root = &tour.root;
    let body = json!({"email": "bo@example.com", "name": "Bo", "password": PASSWORD});
    let created = ["user.create by root on user it"];
    let bo = tour.step(tour.post("/users", root, body), 201, &created).id();
    tour.name("bo", &bo);
    let cy = json!({"username": "cy"});
    tour.step(tour.post("/users/test-only/create", root, cy), 201, &created);
    let path = format!("/users/{bo}");
    let state = |role, is_active| json!({"role": role, "is_active": is_active});
    let same = json!({"role": "user", "is_active": true, "name": "Bo"});
    tour.step(tour.put(&path, root, same), 200, &[]);
    let change = tour.put(&path, root, json!({"role": "admin", "name": "B"}));
    let fields = json!(["name", "role"]);
    let details =
        json!({"fields": fields, "old": state("user", true), "new": state("admin", true)});
    tour.event(change, 200, "user.update by root on user bo", details);
    let many = json!({
        "username": "bob", "email": "bob@example.com", "password": NEW_PASSWORD, "permissions": ["x"],
        "is_active": false, "role": "user",
    });
    let fields = json!(["username", "role", "permissions", "is_active"]);
    let details =
        json!({"fields": fields, "old": state("admin", true), "new": state("user", false)});
    tour.events_of(
        tour.put(&format!("/admin/users/{bo}"), root, many),
        200,
        &[
            ("email.change by root on user bo", json!({})),
            ("password.change by root on user bo", json!({})),
            ("user.update by root on user bo", details),
        ],
    );
    let inactive = json!({"reason": "inactive_account"});
    tour.event(tour.sign_in("bob", NEW_PASSWORD), 403, "auth.login failed on user bo", inactive);
    tour.step(tour.delete(&path, root), 204, &["user.delete by root on user bo"]);
    tour.step(tour.delete(&path, root), 404, &[]);
    let last = json!({"reason": "last_admin"});
    let own = tour.delete(&format!("/users/{}", root.id()), root);
    tour.event(own, 409, "user.delete failed by root on user root", last);
    let mia = tour.login("mia@example.com", "mia");
    for (request, endpoint) in [
        (tour.api.request("GET", "/users"), "GET /api/v1/users"),
        (tour.api.request("DELETE", &path), "DELETE /api/v1/users/{user_id}"),
    ] {
        let details = json!({ "endpoint": endpoint });
        tour.event(request.by(&mia), 403, "access.denied failed by mia", details);
    }
}

fn sessions_in_sight(tour: &Tour) {
    let (ann, other) = (tour.login("annie", "ann"), tour.login("annie", "ann"));
    let mia = tour.login("mia@example.com", "mia");
    tour.name("first", &ann.session());
    tour.name("second", &other.session());
    let end =
        |by: &Tokens, of: &Tokens| tour.delete(&format!("/auth/sessions/{}", of.session()), by);
    tour.step(end(&mia, &other), 404, &[]);
    tour.step(end(&ann, &other), 204, &["auth.session_end by ann on session second"]);
    tour.step(end(&ann, &other), 404, &[]);
    tour.step(tour.api.request("GET", "/auth/sessions").by(&ann), 200, &[]);
    tour.step(end(&ann, &ann), 204, &["auth.session_end by ann on session first"]);
    // All sessions of a user are one event with their number. Those of earlier steps end before.
    tour.api.logout(tour.login("annie", "ann")).expect(204);
    let ann = tour.login("annie", "ann");
    tour.login("annie", "ann");
    let path = format!("/users/{}/sessions", ann.id());
    let endpoint = json!({"endpoint": "DELETE /api/v1/users/{user_id}/sessions"});
    tour.event(tour.delete(&path, &mia), 403, "access.denied failed by mia", endpoint);
    for sessions in [2, 0] {
        let (event, number) =
            ("auth.session_end by root on user ann", json!({"sessions": sessions}));
        tour.event(tour.delete(&path, &tour.root), 204, event, number);
    }
}

fn personal_tokens(tour: &Tour) {
    let root = &tour.root;
    let (ann, mia) = (tour.login("annie", "ann"), tour.login("mia@example.com", "mia"));
    let create = |body: Value, read_only: bool, days: i32| {
        let scope = if read_only { "read" } else { "all" };
        let details = json!({"scope": scope, "read_only": read_only, "expires_in_days": days});
        let request = tour.post("/auth/tokens", &ann, body);
        tour.event(request, 201, "auth.token_create by ann on token it", details)
    };
    let backup = create(json!({"name": "secret backup"}), false, 90).id();
    tour.name("backup", &backup);
    create(json!({"name": "b", "read_only": true, "expires_in_days": 7}), true, 7);
    let last = create(json!({"name": "c"}), false, 90);
    tour.step(tour.post("/auth/tokens", &ann, json!({"name": ""})), 422, &[]);
    let delete = |user: &Tokens| tour.delete(&format!("/auth/tokens/{backup}"), user);
    tour.step(delete(&mia), 404, &[]);
    tour.step(delete(&ann), 204, &["auth.token_delete by ann on token backup"]);
    tour.step(delete(&ann), 404, &[]);
    // What a token may not do is no matter of the user's role.
    let token = last.json()["token"].as_str().expect("a token").to_owned();
    tour.step(tour.api.request("GET", "/auth/tokens").by(&token), 403, &[]);
    tour.step(tour.put("/users/me", &token, json!({"name": "B"})), 403, &[]);
    // A change that is made with a token is its user's.
    let eve =
        json!({"username": "eve", "email": "eve@example.com", "name": "E", "password": PASSWORD});
    let endpoint = json!({"endpoint": "POST /api/v1/users"});
    tour.event(tour.post("/users", &token, eve), 403, "access.denied failed by ann", endpoint);
    // All tokens of a user are one event with their number, and none are no event.
    let path = format!("/users/{}/tokens", ann.id());
    let number = json!({"tokens": 2});
    tour.event(tour.delete(&path, root), 204, "auth.token_delete by root on user ann", number);
    tour.step(tour.delete(&path, root), 204, &[]);
    tour.step(tour.delete("/users/no-id/tokens", root), 422, &[]);
}

fn leaving(tour: &Tour) {
    let (root, mia) = (&tour.root, tour.login("mia@example.com", "mia"));
    let leave = |user: &Tokens, password: &str| {
        tour.post("/users/me/delete", user, json!({ "current_password": password }))
    };
    tour.step(leave(&mia, "wrong password"), 400, &["user.delete failed by mia on user mia"]);
    let last = json!({"reason": "last_admin"});
    tour.event(leave(root, PASSWORD), 409, "user.delete failed by root on user root", last);
    tour.step(leave(&mia, PASSWORD), 204, &["user.delete by mia on user mia"]);
    tour.step(leave(&mia, PASSWORD), 401, &[]);
}

fn links_to_send_files_by(tour: &Tour, ann: &Tokens, mia: &Tokens) {
    let ask = || tour.post("/links", ann, json!({"upload_to": "/in", "note": "secret"}));
    tour.step(ask(), 403, &[]);
    tour.api.settle();
    let details =
        json!({"link_id": "it", "expires_in_minutes": 1440, "inline": false, "upload_to": "/in"});
    let made = tour.event(ask(), 201, "file.link_create by ann on link it", details);
    tour.name("sent by", &made.id());
    let url = made.json()["url"].as_str().expect("a path").to_owned();
    // Whoever sends, nobody acts.
    let send = |kind: &str| {
        let form = file_form("secret.txt", kind, b"four");
        tour.api.send_request(&url, form).by(mia).header("Idempotency-Key", "a")
    };
    tour.step(send("application/zip"), 415, &[]);
    let request = send("text/plain");
    let request_id = request.send().expect(201).header("X-Request-ID").to_owned();
    let events = tour.api.all_events(&tour.root, "action=file.receive");
    assert_eq!(events.len(), 1);
    let file: String =
        tour.api.database.value("SELECT id::text FROM files WHERE received_by IS NOT NULL");
    let details = json!({
        "link_id": made.id(), "owner_id": ann.id(), "file_size": 4, "filename": "secret.txt"
    });
    for (name, value) in [
        ("actor_id", Value::Null),
        ("outcome", json!("success")),
        ("subject_type", json!("file")),
        ("subject_id", json!(file)),
        ("address", json!("127.0.0.1")),
        ("request_id", json!(request_id)),
        ("details", details),
    ] {
        assert_eq!(events[0][name], value, "{name}");
    }
    tour.step(send("text/plain"), 201, &[]);
    let ended = json!({"link_id": "sent by", "upload_to": "/in"});
    let end = tour.delete(&format!("/links/{}", made.id()), ann);
    tour.event(end, 204, "file.link_delete by ann on link sent by", ended);
    tour.step(send("text/plain"), 404, &[]);
}

fn files(tour: &Tour) {
    let (ann, mia) = (tour.login("annie", "ann"), tour.login("mia@example.com", "mia"));
    let upload = |form: Form| tour.api.upload_request(&ann, form.bytes());
    let plans = upload(file_form("secret plans.txt", "text/plain", b"text"));
    let uploaded = "file.upload by ann on file it";
    let file = tour.event(plans, 201, uploaded, json!({"file_size": 4})).id();
    tour.name("plans", &file);
    tour.step(upload(file_form("a.exe", "application/x-msdownload", b"MZ")), 415, &[]);
    let path = format!("/uploads/{file}");
    tour.step(tour.put(&path, &ann, json!({"filename": "secret plans.txt"})), 200, &[]);
    let body = json!({"filename": "b.txt", "description": "secret", "is_public": true});
    let fields = json!({"fields": ["filename", "description", "is_public"]});
    tour.event(tour.put(&path, &ann, body), 200, "file.update by ann on file plans", fields);
    tour.step(tour.put(&path, &mia, json!({"filename": "c.txt"})), 403, &[]);
    tour.step(tour.delete(&path, &mia), 403, &[]);
    tour.step(tour.api.request("GET", &format!("{path}/download")).by(&ann), 200, &[]);
    let links = format!("{path}/links");
    let link = tour.post(&links, &ann, json!({"expires_in_minutes": 5, "inline": true}));
    let details = json!({"link_id": "it", "expires_in_minutes": 5, "inline": true});
    let link = tour.event(link, 201, "file.link_create by ann on file plans", details);
    let url = link.json()["url"].as_str().expect("a path").to_owned();
    tour.step(tour.api.request_at_root("GET", &url), 200, &[]);
    tour.step(tour.post(&links, &mia, json!({})), 403, &[]);
    tour.name("link", &link.id());
    let one = format!("{links}/{}", link.id());
    tour.step(tour.delete(&one, &mia), 403, &[]);
    let ended = json!({"link_id": "link"});
    tour.event(tour.delete(&one, &ann), 204, "file.link_delete by ann on file plans", ended);
    tour.step(tour.delete(&one, &ann), 404, &[]);
    // Links to several are what their events are about, but one to a file is about that, however it is ended.
    let made = "file.link_create by ann on link it";
    let link = tour.post("/links", &ann, json!({"files": [file], "expires_in_minutes": 5}));
    let details = json!({"link_id": "it", "expires_in_minutes": 5, "inline": false, "files": 1});
    let of_files = tour.event(link, 201, made, details);
    tour.name("several", &of_files.id());
    let link = tour.post("/links", &ann, json!({"folder": "/shelf", "inline": true}));
    let details =
        json!({"link_id": "it", "expires_in_minutes": 1440, "inline": true, "folder": "/shelf"});
    tour.event(link, 201, made, details);
    tour.step(tour.post("/links", &mia, json!({"files": [file]})), 404, &[]);
    let url = of_files.json()["url"].as_str().expect("a path").to_owned();
    tour.step(tour.api.request_at_root("GET", &url), 200, &[]);
    let one = format!("/links/{}", of_files.id());
    tour.step(tour.delete(&one, &mia), 404, &[]);
    let ended = json!({"link_id": "several", "files": 1});
    tour.event(tour.delete(&one, &ann), 204, "file.link_delete by ann on link several", ended);
    tour.step(tour.delete(&one, &ann), 404, &[]);
    let link = tour.api.create_link(&ann, &file, json!({})).expect(201).id();
    tour.name("other link", &link);
    let end = tour.delete(&format!("/links/{link}"), &ann);
    let ended = json!({"link_id": "other link"});
    tour.event(end, 204, "file.link_delete by ann on file plans", ended);
    links_to_send_files_by(tour, &ann, &mia);
    tour.step(tour.api.request("GET", "/uploads/zip").by(&ann), 200, &[]);
    let restore = || tour.post(&format!("{path}/restore"), &ann, json!({}));
    tour.step(restore(), 200, &[]);
    tour.step(tour.delete(&path, &ann), 204, &["file.delete by ann on file plans"]);
    tour.step(restore(), 200, &["file.restore by ann on file plans"]);
    tour.step(tour.delete(&path, &ann), 204, &["file.delete by ann on file plans"]);
    let since =
        || tour.post("/uploads/restore", &ann, json!({"deleted_since": "2026-01-01T00:00:00Z"}));
    tour.event(since(), 200, "file.restore by ann on user ann", json!({"count": 1}));
    tour.step(since(), 200, &[]);
    let put = tour.put(&path, &ann, json!({"folder": "/shelf"}));
    tour.event(put, 200, "file.update by ann on file plans", json!({"fields": ["folder"]}));
    let moved = tour.post("/folders/move", &ann, json!({"from": "/shelf", "to": "/loft"}));
    let details = json!({"folder": "/shelf", "to": "/loft", "count": 1});
    tour.event(moved, 200, "folder.move by ann on user ann", details);
    tour.step(tour.post("/folders/move", &ann, json!({"from": "/shelf", "to": "/loft"})), 404, &[]);
    let gone = json!({"folder": "/loft", "count": 1});
    let delete = || tour.delete("/folders?folder=/loft", &ann);
    tour.event(delete(), 200, "folder.delete by ann on user ann", gone);
    tour.step(delete(), 404, &[]);
    let for_good = format!("{path}?permanently=true");
    tour.step(tour.delete(&for_good, &ann), 204, &["file.purge by ann on file plans"]);
    tour.step(tour.delete(&for_good, &ann), 404, &[]);
}

/// By a process that asks for confirmations.
fn confirmed_addresses(tour: &Tour) {
    let confirming = tour.api.beside(&[("CLOAKROOM_EMAIL_CONFIRMATION", "required")]);
    let post = |path: &str, body: Value| confirming.request("POST", path).json(body);
    let body = json!({"username": "una", "email": "una@example.com", "password": PASSWORD});
    let mut una = String::new();
    let token = confirming.confirmation_token(|| {
        una = tour.step(post("/auth/register", body), 201, &[]).id();
    });
    tour.name("una", &una);
    let login = || post("/auth/login", json!({"username": "una", "password": PASSWORD}));
    tour.step(login(), 401, &["auth.login failed"]);
    let confirm = |token: &str, password: &str| {
        post("/auth/confirm-email", json!({"token": token, "password": password}))
    };
    // Nobody is refused anything before there is an account.
    tour.step(confirm(&token, "wrong horse"), 400, &[]);
    tour.step(confirm(&token, PASSWORD), 200, &["auth.register by una on user una"]);
    tour.step(confirm(&token, PASSWORD), 400, &[]);
    let una = confirming.sign_in("una");
    let change =
        confirming.request("PUT", "/users/me").by(&una).json(json!({"email": "una2@example.com"}));
    let token = confirming.confirmation_token(|| {
        tour.step(change, 200, &["email.change_request by una on user una"]);
    });
    let refused = ["email.change failed on user una"];
    tour.step(confirm(&token, "wrong horse"), 400, &refused);
    tour.step(confirm(&token, PASSWORD), 200, &["email.change by una on user una"]);
    tour.step(confirm(&token, PASSWORD), 400, &refused);
}

fn exports(tour: &Tour) {
    let rows = tour.api.database.count("users WHERE NOT is_deleted");
    let by_root = tour.api.request("GET", "/users/export-full").by(&tour.root);
    let get = |path: &str| tour.api.request("GET", path);
    for (request, event, is_filtered, rows) in [
        (by_root, "users.export by root", false, rows),
        (get("/users/export?email="), "users.export", false, rows),
        (get("/users/exports/csv?email=&format=csv"), "users.export", false, rows),
        (get("/users/export?email=annie@"), "users.export", true, 0),
        (get("/users/exports/csv?email=mia"), "users.export", true, 1),
    ] {
        tour.event(request, 200, event, json!({"rows": rows, "is_filtered": is_filtered}));
    }
    tour.step(tour.api.request("HEAD", "/users/export-full"), 200, &[]);
    tour.step(get("/users/export-alive"), 200, &[]);
}

fn second_factors(tour: &Tour) {
    let fay = tour.api.sign_up("fay");
    tour.name("fay", fay.id());
    let password = json!({"current_password": PASSWORD});
    let offer = tour.step(tour.post("/auth/second-factor", &fay, password), 200, &[]).json();
    let secret = offer["secret"].as_str().expect("a secret").to_owned();
    let factor = SecondFactor { secret, recovery_codes: Vec::new() };
    let confirm = tour.post("/auth/second-factor/confirm", &fay, json!({"code": factor.code()}));
    let (enabled, disabled) =
        ("second_factor.enable by fay on user fay", "second_factor.disable by fay on user fay");
    let codes = tour.step(confirm, 200, &[enabled]).json()["recovery_codes"].clone();
    let login = |code: &Value| {
        let body = json!({"username": "fay", "password": PASSWORD, "code": code});
        tour.post("/auth/login", Anonymous, body)
    };
    for (code, reason) in [
        (json!(null), "second_factor_required"),
        (json!(factor.wrong_code()), "second_factor_invalid"),
    ] {
        let details = json!({ "reason": reason });
        tour.event(login(&code), 401, "auth.login failed on user fay", details);
    }
    let recovered = "second_factor.recovery by fay on user fay";
    let signed_in = ("auth.login by fay on user fay", json!({"session_id": "its session"}));
    tour.events_of(login(&codes[0]), 200, &[signed_in, (recovered, json!({"codes_left": 9}))]);
    let proofs = |password: &str, code: &Value| json!({"current_password": password, "code": code});
    let renew = proofs(PASSWORD, &codes[1]);
    let renew = tour.post("/auth/second-factor/recovery-codes", &fay, renew);
    let events = [(enabled, json!({"new_recovery_codes": true})), (recovered, json!({}))];
    let renewed = tour.events_of(renew, 200, &events);
    let code = renewed.json()["recovery_codes"][0].clone();
    let disable = |password| tour.delete("/auth/second-factor", &fay).json(proofs(password, &code));
    let refused = ["second_factor.disable failed by fay on user fay"];
    tour.step(disable("wrong password"), 400, &refused);
    tour.step(disable(PASSWORD), 204, &[disabled, recovered]);
}

#[test]
fn every_change_and_every_refusal_is_one_event_and_nothing_else_is() {
    let tour = Tour::start();
    sign_ins_and_sessions(&tour);
    passwords(&tour);
    profiles(&tour);
    user_management(&tour);
    files(&tour);
    confirmed_addresses(&tour);
    exports(&tour);
    sessions_in_sight(&tour);
    personal_tokens(&tour);
    second_factors(&tour);
    leaving(&tour);
    let missing =
        "SELECT string_agg(action::text, ' ') FROM unnest(enum_range(NULL::audit_action)) action
                   WHERE NOT EXISTS (SELECT FROM audit_events e WHERE e.action = action.action)";
    // The command line is no request, and the test below is about it; a provider has tests of its own.
    assert_eq!(
        tour.api.database.value::<String>(missing),
        "admin.create identity.join identity.leave auth.role"
    );
    let log: String =
        tour.api.database.value("SELECT string_agg(e::text, ' ') FROM audit_events e");
    let words =
        "@ example battery ann Bo secret plans .txt eyJ cloak_ backup eve text/plain nobody";
    for word in words.split(' ').chain(["correct horse", "wrong password"]) {
        assert!(!log.contains(word), "{word}: {log}");
    }
    // Deleting everything is an event for each account.
    let users = tour.api.database.count("users WHERE NOT is_deleted");
    let answer = tour.api.delete("/users/test-only/delete-all", &tour.root).expect(200);
    answer.has(json!({ "deleted": users }));
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
