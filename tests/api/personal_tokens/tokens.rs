//! Personal access tokens: their form, what they may be used for, and what ends them. `access.rs` has the table of the
//! endpoints that accept them.

use crate::harness::*;
use crate::service::access;
use crate::sign_in::tokens::challenge;

const REFUSED: &str = "Not enough permissions";

/// A well-formed token that nobody has. The checksum is Python's `zlib.crc32(b"0" * 34)`.
fn unknown_token() -> String {
    format!("cloak_{}0iqUEf", "0".repeat(34))
}

#[test]
fn a_token_is_shown_once_and_only_its_hash_is_stored() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_LOG", "trace")], ["ann"]);
    let begin = now();
    let answer = api.create_token(&ann, json!({"name": " backup \n"})).expect(201);
    let names =
        ["created_at", "expires_at", "id", "last_used_at", "name", "read_only", "scope", "token"];
    assert_eq!(answer.member_names(), names);
    let answer = answer.has(json!({"name": "backup", "scope": "all", "read_only": false}));
    let answer = answer.has(json!({"last_used_at": null}));
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    let digits = token.strip_prefix("cloak_").expect("the prefix");
    assert!(digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_alphanumeric()), "{token}");
    api.me(&token).expect(200).has(json!({"username": "ann"}));
    // The list shows the same, but for the token itself and its use.
    let listed = api.list_tokens(&ann).expect(200).list("tokens");
    let shown = with_member(&answer.json(), "last_used_at", listed[0]["last_used_at"].clone());
    assert_eq!(listed, [without_member(&shown, "token")]);
    let row: String = api.database.value("SELECT personal_tokens::text FROM personal_tokens");
    let hash = sha256(token.as_bytes());
    assert!(!row.contains(digits) && row.contains(hash.trim_start_matches("sha256:")), "{row}");
    let time = |what: &str| -> i64 {
        api.database
            .value(&format!("SELECT extract(epoch FROM {what})::bigint FROM personal_tokens"))
    };
    let (used, hour) = (time("last_used_at"), time("date_trunc('hour', now(), 'UTC')"));
    assert!(
        used == hour || used == hour - 3600,
        "{used} is not {hour}, or an hour began meanwhile"
    );
    let (expires_at, default) = (time("expires_at") as u64, begin + 90 * 86_400);
    assert!((default..=default + 60).contains(&expires_at), "{expires_at} {default}");
    assert!(!api.log().contains(digits), "a token is in the log");
}

#[test]
fn a_token_in_place_of_an_id_is_not_logged() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let tokens = [api.new_token(&ann, false), ann.access.clone()];
    for token in &tokens {
        api.delete_token(&ann, token).expect(422);
    }
    wait_until(|| api.log().matches(" DELETE ").count() == tokens.len());
    let log = api.log();
    assert!(tokens.iter().all(|token| !log.contains(&token[..40])), "{log}");
}

#[test]
fn a_new_token_lives_as_long_and_has_the_scope_that_its_fields_say() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (body, days, scope) in [
        (json!({"name": "x".repeat(100), "expires_in_days": 1, "read_only": true}), 1, "read"),
        (json!({"name": "a", "expires_in_days": 365, "read_only": false}), 365, "all"),
        (json!({"name": "a", "expires_in_days": 30.0}), 30, "all"),
        (json!({"name": "a", "expires_in_days": null, "read_only": null, "other": 1}), 90, "all"),
        (json!({"name": "a", "scope": "read", "read_only": true}), 90, "read"),
        (json!({"name": "a", "scope": "read", "read_only": false}), 90, "read"),
        (json!({"name": "a", "scope": "upload", "read_only": false}), 90, "upload"),
        (json!({"name": "a", "scope": "all"}), 90, "all"),
        (json!({"name": "a", "scope": null}), 90, "all"),
    ] {
        let expected = json!({"scope": scope, "read_only": scope == "read"});
        let id = api.create_token(&ann, body).expect(201).has(expected).id();
        let right = format!("expires_at - created_at = interval '{} hours'", 24 * days);
        assert_eq!(
            api.database.count(&format!("personal_tokens WHERE id = '{id}' AND {right}")),
            1
        );
    }
    let listed = api.list_tokens(&ann).expect(200).names("tokens", "name");
    assert_eq!(listed.len(), 9);
    assert_eq!(listed[8], "x".repeat(100), "newest first");
    let listed = api.list_tokens(&ann).expect(200).names("tokens", "scope");
    assert_eq!(listed, ["all", "all", "upload", "read", "read", "all", "all", "all", "read"]);
}

#[test]
fn a_token_for_uploads_adds_files_and_does_nothing_else() {
    let settings = [("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"), ("CLOAKROOM_PUBLIC_LIST", "on")];
    let (api, [root]) = Server::with_users(&settings, ["root"]);
    let body = json!({"name": "a camera", "scope": "upload"});
    let token = api.create_token(&root, body).expect(201).json()["token"].clone();
    let token = token.as_str().expect("a token");
    let file = api.new_file(token, "a.txt", "text");
    for (method, path, [anonymous, ..]) in access::TABLE {
        // Without a provider these are not there; the tests of identities send a personal token, too.
        let needs_provider = path.contains("/auth/oidc");
        let needs_nobody = *anonymous != 401 && !path.contains("/export") || needs_provider;
        let adds = path.starts_with("/api/v1/uploads/partial/")
            || *method == "POST" && *path == "/api/v1/uploads/partial";
        if needs_nobody || adds || path.contains("/auth/refresh") || *path == "/api/v1/uploads" {
            continue;
        }
        let answer = api.request_at_root(method, &path.replace("{file}", &file)).by(token).send();
        answer.case(path).refused(403, REFUSED);
    }
    // The scope comes before the query and the body.
    let refused = api.get("/uploads?page=0", token).refused(403, REFUSED);
    refused.has(json!({"reason": "UPLOAD_TOKEN"}));
    api.request("HEAD", "/auth/me").by(token).send().expect(403);
    // Whatever else an upload may say.
    let again = |key: &str| {
        let form = file_form("b.txt", "text/plain", b"text").bytes();
        api.upload_request(token, form).header("Idempotency-Key", key).send()
    };
    assert_eq!(again("key").expect(201).id(), again("key").expect(201).id());
    api.post("/uploads", token, json!({})).expect(422);
    assert_eq!(api.all_files(&root).len(), 2);
}

#[test]
fn a_token_is_accepted_where_an_access_token_is_and_a_read_only_one_for_reading() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let (token, read_only) = (api.new_token(&ann, false), api.new_token(&ann, true));
    let file = api.new_file(&token, "a.txt", "text");
    api.update_file(&token, &file, json!({"description": "by a script"})).expect(200);
    for token in [&token, &read_only] {
        assert_eq!(api.profile(token).expect(200).json(), api.profile(&ann).expect(200).json());
        assert_eq!(api.download(token, &file).expect(200).text(), "text");
        api.download_request("HEAD", token, &file).send().expect(200);
        api.list_users(token, "").refused(403, "Admin privileges required.");
        api.refresh(token).refused(401, "Invalid token");
    }
    for refused in [
        api.show_file(api.new_token(&bob, false), &file),
        api.upload(&read_only, "b.txt", "text"),
        api.update_file(&read_only, &file, json!({"description": "x"})),
        api.delete_file(&read_only, &file),
        // The token is refused before the id and the body are checked, like a wrong role.
        api.update_file(&read_only, "no-id", json!({"filename": 7})),
    ] {
        refused.refused(403, REFUSED);
    }
    assert_eq!(api.all_files(&ann).len(), 1);
    api.delete_file(&token, &file).expect(204);
}

#[test]
fn a_token_has_the_role_that_its_user_has_at_the_moment() {
    let (api, [root, ann]) =
        Server::with_users(&[("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true")], ["root", "ann"]);
    let (token, read_only) = (api.new_token(&ann, false), api.new_token(&ann, true));
    for (role, status) in [("user", 403), ("admin", 200), ("user", 403)] {
        api.update_user(&root, ann.id(), json!({"role": role})).expect(200);
        for token in [&token, &read_only] {
            api.list_users(token, "").case(role).expect(status);
            api.export_full(token).case(role).expect(status);
        }
    }
    api.export_full(unknown_token()).refused(401, "Invalid token");
}

#[test]
fn an_expired_token_is_refused() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let token = api.new_token(&ann, false);
    let id = api.list_tokens(&ann).expect(200).names("tokens", "id").remove(0);
    let staying = api.new_token(&ann, false);
    api.database.run(&format!("UPDATE personal_tokens SET expires_at = now() WHERE id = '{id}'"));
    api.me(&token).refused(401, "Invalid token");
    assert_eq!(api.list_tokens(&ann).expect(200).list("tokens").len(), 1);
    api.delete_token(&ann, &id).refused(404, "Token not found");
    let used = api.database.count("personal_tokens WHERE last_used_at IS NOT NULL");
    assert_eq!(used, 0, "a refused token is not used");
    api.me(&staying).expect(200);
}

#[test]
fn the_hour_of_the_last_use_is_written_once_an_hour() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let token = api.new_token(&ann, false);
    let row = || {
        api.database
            .value::<String>("SELECT xmin::text || ' ' || last_used_at FROM personal_tokens")
    };
    // Twenty requests that come together all want to write the hour.
    for answer in parallel(20, |_| api.me(&token)) {
        answer.expect(200);
    }
    let first = row();
    for _ in 0..5 {
        api.me(&token).expect(200);
    }
    let began = "date_trunc('hour', now(), 'UTC')";
    let is_same_hour = format!("personal_tokens WHERE last_used_at = {began}");
    // An hour may begin between the requests.
    assert!(row() == first || api.database.count(&is_same_hour) == 1, "{first}, {}", row());
    let earlier = format!("{began} - interval '1 h'");
    api.database.run(&format!("UPDATE personal_tokens SET last_used_at = {earlier}"));
    api.me(&token).expect(200);
    let hours = "SELECT extract(epoch FROM last_used_at)::float8 / 3600 FROM personal_tokens";
    let hours: f64 = api.database.value(hours);
    assert_eq!(hours.fract(), 0.0);
    assert!(now() as f64 / 3600.0 - hours < 1.02, "{hours}");
}

#[test]
fn malformed_tokens_and_signed_tokens_do_not_touch_the_table() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3")], ["ann"]);
    let token = api.new_token(&ann, false);
    let lock = api.database.begin("LOCK TABLE personal_tokens");
    api.me(&token).refused(504, "Request timed out");
    api.me(&ann).expect(200);
    let swapped = if token.ends_with('x') { "y" } else { "x" };
    for (malformed, reason) in [
        (format!("{}{swapped}", &token[..45]), "another last character"),
        (token[..45].to_owned(), "cut short"),
        (format!("cloak_{}", "0".repeat(5000)), "far too long"),
    ] {
        api.me(&malformed).case(reason).refused(401, "Invalid token");
    }
    lock.roll_back();
    api.me(unknown_token()).refused(401, "Invalid token");
    api.me(&token).expect(200);
}

#[test]
fn requests_with_tokens_share_a_bucket_of_their_user_and_rejected_ones_count_for_their_address() {
    let limits = [("CLOAKROOM_RATE_LIMIT_AUTH", "100"), ("CLOAKROOM_RATE_LIMIT_GENERAL", "4")];
    let settings = [&[("CLOAKROOM_RATE_LIMIT_ENABLED", "true")][..], &limits].concat();
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let (token, other) = (api.new_token(&ann, false), api.new_token(&ann, true));
    for (sender, remaining) in
        [(&token, 3), (&ann.access, 3), (&other, 2), (&token, 1), (&other, 0), (&ann.access, 2)]
    {
        assert_eq!(api.me(sender).expect(200).rate_limit(), (4, remaining));
    }
    api.me(&token).refused(429, "Rate limit exceeded");
    let malformed = "cloak_nonsense".to_owned();
    for (rejected, remaining) in
        [(&malformed, 3), (&unknown_token(), 2), (&malformed, 1), (&malformed, 0)]
    {
        assert_eq!(api.me(rejected).refused(401, "Invalid token").rate_limit(), (4, remaining));
    }
    api.me(unknown_token()).refused(429, "Rate limit exceeded");
    // A request that is refused for its token counts like one that is refused for its role.
    let read_only = api.new_token(api.sign_up("bob"), true);
    for remaining in [3, 2, 1, 0] {
        let answer = api.request("POST", "/auth/logout").by(&read_only).send();
        assert_eq!(answer.refused(403, REFUSED).rate_limit(), (4, remaining));
    }
    api.me(&read_only).refused(429, "Rate limit exceeded");
}

#[test]
fn a_leaked_token_cannot_keep_its_owner_from_revoking_it() {
    let (api, [root]) = Server::with_users(&[("CLOAKROOM_RATE_LIMIT_ENABLED", "true")], ["root"]);
    let leaked = api.new_token(&root, true);
    // It floods what it may read and what refuses it, each until it is refused for its number.
    for (method, path, status) in [
        ("GET", "/auth/me", 200),
        ("GET", "/users", 200),
        ("POST", "/users/change-password", 403),
        ("POST", "/users/me/delete", 403),
        ("PUT", "/users/me", 403),
        ("POST", "/auth/logout", 403),
        ("GET", "/auth/sessions", 403),
        ("DELETE", "/auth/tokens/no-id", 403),
        ("POST", "/uploads", 403),
        ("DELETE", "/users/no-id", 403),
    ] {
        let send = || api.request(method, path).by(&leaked).send();
        // At least 200 a minute are allowed.
        let statuses = tally((0..400).map(|_| send().status));
        assert!(statuses.keys().all(|found| [429, status].contains(found)), "{path}: {statuses:?}");
        assert!(statuses[&429] > 0, "{path}: {statuses:?}");
    }
    // The owner notices nothing of it.
    let again = api.sign_in("root");
    for owner in [&root, &again] {
        api.me(owner).expect(200);
        api.list_users(owner, "").expect(200);
        let tokens = api.list_tokens(owner).expect(200).json();
        assert_eq!(tokens["tokens"].as_array().map(Vec::len), Some(1));
        api.change_password(owner, "wrong horse", NEW_PASSWORD).expect(400);
        api.upload(owner, "a.txt", "text").expect(201);
    }
    let id = api.list_tokens(&root).json()["tokens"][0]["id"].as_str().unwrap().to_owned();
    api.delete_token(&root, &id).expect(204);
    api.me(&leaked).expect(401);
}

#[test]
fn a_refused_personal_token_is_described_and_a_sign_out_ends_none() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let description = |answer: Answer, expected: &str| {
        let answer = answer.refused(401, "Invalid token");
        assert_eq!(answer.header("WWW-Authenticate"), challenge(expected), "{answer:?}");
    };
    let personal = api.new_token(&ann, false);
    description(api.me(format!("{personal}x")), "malformed or not ours");
    let (expired, unused) = (api.new_token(&ann, false), api.new_token(&ann, false));
    api.database.run(
        "UPDATE personal_tokens SET expires_at = now() - interval '1 second'
         WHERE id = (SELECT id FROM personal_tokens ORDER BY created_at OFFSET 1 LIMIT 1)",
    );
    description(api.me(&expired), "session ended");
    api.me(&unused).expect(200);
    api.logout(&ann).expect(204);
    api.me(&personal).expect(200);
}
