//! Requests that are refused, in a table, and what sends them.

use std::collections::HashMap;

use crate::harness::*;
use crate::openapi::document::ALL_ON;

/// A request; its bearer token, if it has one; a header, a body, or a file of a media type; and the status and the
/// reason of its answer. Paths without a slash in front are below `/api/v1`, and `{names}` are those of [`World`].
type Row = (&'static str, &'static str, &'static str, u16, &'static str);

/// Settings, and what a service with them refuses, one after the other.
type Refusals = (&'static [(&'static str, &'static str)], &'static [Row]);

#[rustfmt::skip]
pub const REFUSALS: &[Refusals] = &[
    (&SETTINGS, &[
        ("GET auth/me", "", "", 401, "AUTHENTICATION_REQUIRED"),
        ("POST auth/refresh", "", "", 401, "REFRESH_TOKEN_REQUIRED"),
        ("GET auth/me", "", "Authorization: Basic YTpi", 401, "INVALID_AUTHENTICATION_SCHEME"),
        ("GET auth/me", "a b", "", 401, "INVALID_AUTHORIZATION_HEADER"),
        ("GET auth/me", "nonsense", "", 401, "INVALID_TOKEN"),
        ("GET auth/me", "{refresh}", "", 401, "NOT_AN_ACCESS_TOKEN"),
        ("POST auth/refresh", "", r#"{"refresh_token": "{ann}"}"#, 401, "NOT_A_REFRESH_TOKEN"),
        ("GET auth/me", "{expired}", "", 401, "TOKEN_EXPIRED"),
        ("GET auth/me", "{ended}", "", 401, "SESSION_ENDED"),
        ("GET auth/me", "{of nobody}", "", 401, "ACCOUNT_NOT_USABLE"),
        ("GET auth/me", "cloak_00000000000000000000000000000000000iqUEf", "", 401, "PERSONAL_TOKEN_ENDED"),
        ("GET auth/me", "{camera}", "", 403, "UPLOAD_TOKEN"),
        // Nothing says which of these accounts exists.
        ("POST auth/login", "", r#"{"username": "ann", "password": "wrong horse"}"#, 401, "BAD_CREDENTIALS"),
        ("POST auth/login", "", r#"{"username": "nobody", "password": "wrong horse"}"#, 401, "BAD_CREDENTIALS"),
        ("POST auth/login", "", r#"{"username": "carl", "password": "wrong horse"}"#, 401, "BAD_CREDENTIALS"),
        ("POST auth/login", "", r#"{"username": "carl", "password": "{password}"}"#, 403, "ACCOUNT_INACTIVE"),
        ("POST auth/login", "", r#"{"username": "fay", "password": "{password}"}"#, 401, "SECOND_FACTOR_REQUIRED"),
        ("POST auth/login", "", r#"{"username": "fay", "password": "{password}", "code": "no code"}"#,
            401, "SECOND_FACTOR_INVALID"),
        ("POST auth/login", "", r#"{"username": "gus", "password": "{password}"}"#, 401, "TOO_MANY_WRONG_CODES"),
        ("GET users/export", "{root}", "", 401, "EXPORT_API_KEY_REQUIRED"),
        ("GET users/export", "{root}", "X-API-Key: wrong", 401, "INVALID_API_KEY"),
        ("GET users/export", "{root}", "X-API-Key: {key}", 413, "EXPORT_TOO_LARGE"),
        ("DELETE users/{unknown}", "{root}", "", 404, "USER_NOT_FOUND"),
        ("DELETE auth/sessions/{unknown}", "{root}", "", 404, "SESSION_NOT_FOUND"),
        ("DELETE auth/tokens/{unknown}", "{root}", "", 404, "TOKEN_NOT_FOUND"),
        ("DELETE uploads/{unknown}", "{root}", "", 404, "FILE_NOT_FOUND"),
        ("POST auth/register", "", r#"{"username": "ANN", "email": "new@example.com", "password": "{password}"}"#,
            400, "USERNAME_TAKEN"),
        ("POST auth/register", "", r#"{"username": "new", "email": "ann@example.com", "password": "{password}"}"#,
            400, "EMAIL_TAKEN"),
        ("PUT users/me", "{ann}", r#"{"username": "root"}"#, 409, "USERNAME_TAKEN"),
        ("PUT users/me", "{ann}", r#"{"email": "root@example.com"}"#, 409, "EMAIL_TAKEN"),
        ("DELETE users/{root's id}", "{root}", "", 409, "LAST_ADMIN"),
        ("POST users/{carl's id}/password-link", "{root}", "", 409, "USER_INACTIVE"),
        ("POST auth/tokens", "{bob}", r#"{"name": "a"}"#, 409, "TOO_MANY_TOKENS"),
        ("POST users/change-password", "{ann}", r#"{"current_password": "wrong horse", "new_password": "{password}"}"#,
            400, "WRONG_PASSWORD"),
        ("POST auth/reset-password", "", r#"{"token": "nonsense", "new_password": "{password}"}"#,
            400, "INVALID_RESET_TOKEN"),
        ("DELETE folders?folder=a", "{ann}", "", 404, "FOLDER_NOT_FOUND"),
        ("GET links/unknown", "", "", 404, "LINK_NOT_FOUND"),
        ("POST links/unknown/files", "", "file text/plain a", 404, "LINK_NOT_FOUND"),
        ("POST links", "{ann}", r#"{"upload_to": "/"}"#, 403, "YOUNG_ACCOUNT"),
        ("POST uploads/{own}/links", "{ann}", "{}", 409, "TOO_MANY_LINKS"),
        ("GET uploads/zip?ids={unknown}", "{ann}", "", 404, "FILE_NOT_FOUND"),
        ("GET uploads/zip", "{bob}", "", 413, "TOO_MANY_FILES"),
        ("POST auth/second-factor", "{fay}", r#"{"current_password": "{password}"}"#, 409, "SECOND_FACTOR_ENABLED"),
        ("POST auth/second-factor/confirm", "{ann}", r#"{"code": "123456"}"#, 404, "SECOND_FACTOR_NOT_FOUND"),
        ("DELETE auth/second-factor", "{fay}", r#"{"current_password": "{password}", "code": "no code"}"#,
            400, "SECOND_FACTOR_INVALID"),
        ("GET uploads/{own}/download", "{ann}", "Range: bytes=900-", 416, "RANGE_NOT_SATISFIABLE"),
        ("DELETE uploads/{own}", "{ann}", "If-Match: \"99\"", 412, "PRECONDITION_FAILED"),
        ("GET changes?after=0-0-00000000000000000000000000000000-0000000000000000", "{ann}", "", 410, "GONE"),
        ("GET /nope", "", "", 404, "PATH_NOT_FOUND"),
        ("GET nope", "{ann}", "", 404, "PATH_NOT_FOUND"),
        ("GET users/test-only/alive", "{ann}", "", 404, "FEATURE_OFF"),
        ("PUT auth/me", "", "", 405, "METHOD_NOT_ALLOWED"),
        ("GET uploads?limit=1000", "{ann}", "", 400, "LIMIT_OUT_OF_RANGE"),
        ("GET uploads?offset=-1", "{ann}", "", 400, "OFFSET_OUT_OF_RANGE"),
        ("POST auth/login", "", "{129 KiB}", 413, "BODY_TOO_LARGE"),
        ("POST auth/login", "", "Content-Encoding: gzip\nno JSON", 415, "CONTENT_ENCODING"),
        ("POST uploads", "{ann}", "file text/plain {1025 KiB}", 413, "FILE_TOO_LARGE"),
        ("POST uploads", "{ann}", "file text/html <p>", 415, "TYPE_NOT_ALLOWED"),
        ("POST uploads", "{ann}", "file image/jpeg GIF89a", 415, "TYPE_CONTRADICTED"),
    ]),
    (&[("CLOAKROOM_AUTH_ENABLED", "false"), ("CLOAKROOM_SMTP_URL", "none"), ("CLOAKROOM_METRICS", "off")], &[
        ("POST users", "", r#"{"email": "cy@example.com", "name": "Cy", "invite": true}"#, 404, "FEATURE_OFF"),
        ("GET /metrics", "", "", 404, "PATH_NOT_FOUND"),
        ("POST users/change-password", "", r#"{"current_password": "{password}", "new_password": "{password}"}"#,
            403, "DEVELOPMENT_ADMIN"),
        ("GET auth/me", "", "Host: evil.example", 403, "FOREIGN_PAGE"),
    ]),
    (&[SETTINGS[0], SETTINGS[1], ("CLOAKROOM_API_KEY_SCOPE", "all")], &[
        ("POST auth/login", "", "{}", 401, "API_KEY_REQUIRED"),
        ("POST auth/login", "", "X-API-Key: wrong", 401, "INVALID_API_KEY"),
    ]),
    (&[SETTINGS[0], ("CLOAKROOM_STORAGE_QUOTA", "10")], &[
        ("GET users/export", "{ann}", "", 500, "API_KEY_MISCONFIGURED"),
        ("POST uploads", "{ann}", "file text/plain more than ten bytes", 507, "STORAGE_FULL"),
    ]),
    (&ALL_ON, &[
        ("POST auth/oidc/token", "", r#"{"code": "a", "verifier": "b"}"#, 400, "INVALID_CODE"),
        ("POST auth/oidc/join", "{ann}", r#"{"code": "a", "verifier": "b"}"#, 400, "INVALID_CODE"),
        ("DELETE auth/oidc", "{ann}", r#"{"current_password": "{password}"}"#, 404, "IDENTITY_NOT_FOUND"),
    ]),
    (&[("CLOAKROOM_EMAIL_CONFIRMATION", "required")], &[
        ("POST auth/confirm-email", "", r#"{"password": "{password}", "token": "nonsense"}"#,
            400, "INVALID_CONFIRMATION_TOKEN"),
    ]),
    (&[("CLOAKROOM_RATE_LIMIT_ENABLED", "true"), ("CLOAKROOM_RATE_LIMIT_AUTH", "1")], &[
        ("POST auth/login", "", r#"{"username": "ann", "password": "wrong horse"}"#, 401, "BAD_CREDENTIALS"),
        ("POST auth/login", "", r#"{"username": "ann"}"#, 429, "LOGIN_RATE_LIMITED"),
        ("POST auth/register", "", r#"{"username": "ann", "email": "new@example.com", "password": "{password}"}"#,
            400, "USERNAME_TAKEN"),
        ("POST auth/register", "", "{}", 429, "RATE_LIMITED"),
    ]),
];

/// Operations, and a query or the fields of a body that they refuse with what they show of 422.
#[rustfmt::skip]
pub const BAD_FIELDS: &[(&str, &str)] = &[
    ("register request_password_reset update_my_profile create_user update_user admin_update_user",
        r#"{"email": "ann", "name": "Ann", "password": "{password}"}"#),
    ("login confirm_email begin_second_factor confirm_second_factor disable_second_factor", "{}"),
    ("renew_recovery_codes delete_my_account restore_files delete_files update_files", "{}"),
    ("refresh_tokens refresh_tokens_by_other_path", r#"{"refresh_token": 5}"#),
    ("logout", "scope=mine"),
    ("start_provider_sign_in", "challenge=a"),
    ("sign_in_by_provider join_identity leave_identity", "{}"),
    ("reset_password", r#"{"token": "x", "new_password": "short"}"#),
    ("create_personal_token", r#"{"expires_in_days": 400}"#),
    ("change_password", r#"{"current_password": "{password}", "new_password": "short"}"#),
    ("list_users admin_list_users", "role=owner&page=2&limit=10"),
    ("list_audit_events export_audit_events", "outcome=failed&from=yesterday"),
    ("admin_get_daily_statistics", "days=366"),
    ("export_users export_users_csv", "format=pdf"),
    ("export_all_users", "bom=perhaps"),
    ("list_files", "sort_by=size&page=2&limit=10"),
    ("upload_file send_file_by_link", ""),
    ("upload_file send_file_by_link", "field description a"),
    ("update_file", r#"{"filename": ".."}"#),
    ("delete_file", "permanently=perhaps"),
    ("list_changes list_public_files", "after=x"),
    ("list_folders", "in=a//b"),
    ("delete_folder", "folder=/"),
    ("move_folder", "{}"),
    ("download_by_link download_file_by_link", "about=perhaps"),
    ("download_by_link", "about=true&after=x"),
    ("download_archive", "ids="),
    ("create_link", "{}"),
    ("create_file_link", r#"{"expires_in_minutes": 43201}"#),
    ("test_only_create_user", r#"{"role": "owner"}"#),
];

const SETTINGS: [(&str, &str); 5] = [
    ("CLOAKROOM_API_KEY_ENABLED", "true"),
    ("CLOAKROOM_API_KEY", "a-key-for-tests-0123456789"),
    ("CLOAKROOM_EXPORT_MAX_ROWS", "1"),
    ("CLOAKROOM_HEAD_TIMEOUT_SECONDS", "1"),
    ("CLOAKROOM_MAX_UPLOAD_SIZE", "1048576"),
];

/// A service with the accounts, files and tokens that provoke most errors, and what the names in the table stand for.
pub struct World {
    pub api: Server,
    names: HashMap<&'static str, String>,
}

impl World {
    pub fn start() -> World {
        let (api, [root, ann, bob, fay, gus, _]) =
            Server::with_users(&SETTINGS, ["root", "ann", "bob", "fay", "gus", "carl"]);
        for user in [&fay, &gus] {
            api.new_second_factor(user, PASSWORD);
        }
        let own = api.new_file(&ann, "a.txt", &"a".repeat(900));
        // Bob has as many personal access tokens, and the file as many links, as one may have, and Bob more files than
        // an archive.
        api.database.run(&format!(
            "UPDATE users SET is_active = false WHERE username = 'carl';
             UPDATE users SET wrong_codes = 100 WHERE username = 'gus';
             INSERT INTO personal_tokens (id, user_id, token_hash, name, scope, expires_at)
             SELECT gen_random_uuid(), id, sha256(n::text::bytea), 'a', 'read', now() + interval '1 day'
             FROM users, generate_series(1, 50) n WHERE username = 'bob';
             INSERT INTO file_links (id, file_id, user_id, token_hash, inline, expires_at)
             SELECT gen_random_uuid(), id, user_id, sha256(n::text::bytea), false, now() + interval '1 day'
             FROM files, generate_series(1, 100) n WHERE id = '{own}';
             INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
             SELECT gen_random_uuid(), id, 'f', 'f', 'text/plain', 1, 'f', repeat('0', 64)
             FROM users, generate_series(1, 10001) WHERE username = 'bob'"
        ));
        let camera = api.create_token(&ann, json!({"name": "a camera", "scope": "upload"}));
        let camera = camera.expect(201).json()["token"].as_str().expect("a token").to_owned();
        let carl: String = api.database.value("SELECT id::text FROM users WHERE username = 'carl'");
        let changed = |claim, value| sign(with_member(&claims(&ann.access), claim, value));
        let names = HashMap::from([
            ("{expired}", changed("exp", json!(now() - 9))),
            ("{ended}", changed("sid", json!(UNKNOWN_ID))),
            ("{of nobody}", changed("sub", json!(UNKNOWN_ID))),
            ("{ann}", ann.access),
            ("{refresh}", ann.refresh),
            ("{bob}", bob.access),
            ("{fay}", fay.access),
            ("{camera}", camera),
            ("{root's id}", root.id().to_owned()),
            ("{carl's id}", carl),
            ("{root}", root.access),
            ("{own}", own),
            ("{unknown}", UNKNOWN_ID.to_owned()),
            ("{password}", PASSWORD.to_owned()),
            ("{key}", SETTINGS[1].1.to_owned()),
            ("{129 KiB}", "a".repeat(129 << 10)),
            ("{1025 KiB}", "a".repeat(1025 << 10)),
        ]);
        World { api, names }
    }

    /// A text with what its names stand for.
    pub fn fill_in(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// The request of a row to one of the services.
    pub fn request(&self, api: &Server, line: &str, token: &str, with: &str) -> Request {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/api/v1/{}", self.fill_in(path)),
        };
        let mut request = api.request_at_root(method, &path);
        if !token.is_empty() {
            request = request.by(self.fill_in(token));
        }
        self.fill_in(with).split_terminator('\n').fold(request, with_part)
    }
}

/// Adds a header, a form with a file or a field, or a body.
pub fn with_part(request: Request, part: &str) -> Request {
    let of_form = |kind: &str| part.strip_prefix(kind).and_then(|rest| rest.split_once(' '));
    let form = match (of_form("file "), of_form("field ")) {
        (Some((media_type, content)), _) => file_form("a", media_type, content.as_bytes()),
        (_, Some((name, value))) => Form::default().field(name, value),
        _ => {
            return match part.split_once(": ") {
                Some((name, value)) if !part.starts_with('{') => request.header(name, value),
                _ => request.body(part),
            };
        }
    };
    let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
    request.header("Content-Type", &media_type).body(form.bytes())
}
