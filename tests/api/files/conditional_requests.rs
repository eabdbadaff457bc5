//! Conditions of requests about files (RFC 9110, 13), and the headers that tell versions and digests.

use crate::harness::*;

const PAST: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
const FUTURE: &str = "Fri, 01 Jan 2100 00:00:00 GMT";

/// A request with these headers, in whose values `TAG` stands for a tag.
fn with_headers(mut request: Request, headers: &[(&str, &str)], tag: &str) -> Request {
    for (name, value) in headers {
        request = request.header(name, &value.replace("TAG", tag));
    }
    request
}

#[test]
fn metadata_downloads_and_links_are_read_under_conditions() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "content");
    let metadata = format!("/uploads/{file}");
    let download = format!("/uploads/{file}/download");
    let link = has_extras().then(|| api.new_link(&ann, &file).replace("/api/v1", ""));
    for path in [&metadata, &download].into_iter().chain(&link) {
        let first = api.get(path, &ann).expect(200);
        let (tag, modified) = (first.header("ETag"), first.header("Last-Modified"));
        for (headers, expected) in [
            (&[("If-None-Match", "TAG")][..], 304),
            (&[("If-None-Match", "W/TAG")], 304),
            (&[("If-None-Match", "*")], 304),
            (&[("If-None-Match", "\"other\""), ("If-None-Match", "TAG")], 304),
            (&[("If-None-Match", "\"other\"")], 200),
            (&[("If-None-Match", "\"other\""), ("If-Modified-Since", FUTURE)], 200),
            (&[("If-Modified-Since", FUTURE)], 304),
            (&[("If-Modified-Since", modified)], 304),
            (&[("If-Modified-Since", PAST)], 200),
            (&[("If-Modified-Since", "then")], 200),
            (&[("If-Match", "TAG")], 200),
            (&[("If-Match", "*")], 200),
            (&[("If-Match", "\"other\", TAG")], 200),
            (&[("If-Match", "\"other\""), ("If-Match", "TAG")], 200),
            (&[("If-Match", "TAG"), ("If-None-Match", "TAG")], 304),
            (&[("If-Match", "\"other\"")], 412),
            (&[("If-Match", "W/TAG")], 412),
            (&[("If-Match", "TA\"")], 412),
            (&[("If-Match", "\"other\""), ("If-None-Match", "TAG")], 412),
            (&[("If-Unmodified-Since", modified)], 200),
            (&[("If-Unmodified-Since", FUTURE)], 200),
            (&[("If-Unmodified-Since", PAST)], 412),
            (&[("If-Unmodified-Since", "then")], 200),
            (&[("If-Match", "TAG"), ("If-Unmodified-Since", PAST)], 200),
        ] {
            for method in ["GET", "HEAD"] {
                let request = with_headers(api.request(method, path).by(&ann), headers, tag);
                let answer = request.send().case(format!("{method} {path} {headers:?}"));
                let answer = answer.expect(expected);
                if expected == 304 {
                    assert_eq!(answer.header("ETag"), tag);
                    assert!(answer.bytes.is_empty());
                }
            }
        }
    }
    let other = api.sign_up("bob");
    let request = api.request("GET", &metadata).by(&other).header("If-Match", "\"other\"");
    request.send().refused(403, "Not enough permissions");
}

#[test]
fn each_change_gives_a_file_another_version() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let uploaded = api.upload(&ann, "a.txt", "content").expect(201);
    let file = uploaded.id();
    let mut tags = vec![uploaded.header("ETag").to_owned()];
    for n in 0..3 {
        let changed = api.update_file(&ann, &file, json!({"description": format!("{n}")}));
        let changed = changed.expect(200);
        let read = api.show_file(&ann, &file).expect(200);
        assert_eq!(read.header("ETag"), changed.header("ETag"));
        assert!(!tags.contains(&changed.header("ETag").to_owned()));
        tags.push(changed.header("ETag").to_owned());
    }
}

#[test]
fn a_file_is_changed_and_deleted_only_in_the_state_that_the_request_names() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    for (headers, is_met) in [
        (&[("If-Match", "TAG")][..], true),
        (&[("If-Match", "*")], true),
        (&[("If-Match", "\"99\""), ("If-Match", "TAG")], true),
        (&[("If-Match", "TAG"), ("If-Unmodified-Since", PAST)], true),
        (&[("If-None-Match", "\"99\"")], true),
        (&[("If-Unmodified-Since", FUTURE)], true),
        (&[("If-Unmodified-Since", "then")], true),
        (&[("If-Modified-Since", FUTURE)], true),
        (&[("If-Match", "\"99\"")], false),
        (&[("If-Match", "W/TAG")], false),
        (&[("If-Match", "99")], false),
        (&[("If-Match", "TAG"), ("If-None-Match", "TAG")], false),
        (&[("If-None-Match", "TAG")], false),
        (&[("If-None-Match", "W/TAG")], false),
        (&[("If-None-Match", "*")], false),
        (&[("If-Unmodified-Since", PAST)], false),
    ] {
        let file = api.new_file(&ann, "a.txt", "content");
        let path = format!("/uploads/{file}");
        let before = api.show_file(&ann, &file).expect(200);
        let put = api.request("PUT", &path).by(&ann).json(json!({"description": "new"}));
        let put = with_headers(put, headers, before.header("ETag")).send();
        let put = put.case(format!("{headers:?}"));
        let between = api.show_file(&ann, &file).expect(200);
        if is_met {
            put.expect(200);
        } else {
            put.refused(412, "Precondition failed")
                .has(json!({"error_code": "PRECONDITION_FAILED"}));
            assert_eq!(between.json(), before.json(), "{headers:?}");
            assert_eq!(between.header("ETag"), before.header("ETag"), "{headers:?}");
        }
        let delete = api.request("DELETE", &path).by(&ann);
        let delete = with_headers(delete, headers, between.header("ETag")).send();
        let delete = delete.case(format!("{headers:?}"));
        match is_met {
            true => delete.expect(204),
            false => delete.refused(412, "Precondition failed"),
        };
        api.show_file(&ann, &file).expect(if is_met { 404 } else { 200 });
    }
    // What is wrong otherwise comes first.
    let file = api.new_file(&ann, "a.txt", "content");
    let path = format!("/uploads/{file}");
    let unmet = |request: Request| request.header("If-Match", "\"99\"").send();
    unmet(api.request("PUT", &path).by(&ann).json(json!({"is_public": 2})))
        .invalid(&[("body.is_public", "bool_type")]);
    unmet(api.request("PUT", &path).by(&bob).json(json!({}))).expect(403);
    unmet(api.request("DELETE", &path).by(&bob)).expect(403);
    api.delete_file(&ann, &file).expect(204);
    unmet(api.request("PUT", &path).by(&ann).json(json!({}))).expect(404);
    unmet(api.request("DELETE", &path).by(&ann)).expect(404);
    let events = "audit_events WHERE action = 'file.update'";
    assert_eq!(api.database.count(events), 8, "a change that was refused is no event");
}

#[test]
fn of_changes_of_one_version_at_one_moment_one_is_made() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "content");
    let tag = api.show_file(&ann, &file).header("ETag").to_owned();
    let answers = parallel(20, |n| {
        let change = json!({"description": format!("{n}")});
        let request = api.request("PUT", &format!("/uploads/{file}")).by(&ann).json(change);
        let answer = request.header("If-Match", &tag).send();
        (answer.status, answer.json()["description"].clone())
    });
    assert_eq!(tally(answers.iter().map(|(status, _)| *status)), [(200, 1), (412, 19)].into());
    let made = answers.iter().find(|(status, _)| *status == 200).expect("one was made");
    assert_eq!(api.show_file(&ann, &file).json()["description"], made.1);
    // Deletions and changes wait for each other too.
    let tag = api.show_file(&ann, &file).header("ETag").to_owned();
    let statuses = parallel(20, |n| {
        let path = format!("/uploads/{file}");
        let request = match n % 2 {
            0 => api.request("PUT", &path).json(json!({"description": "last"})),
            _ => api.request("DELETE", &path),
        };
        request.by(&ann).header("If-Match", &tag).send().status
    });
    let made = statuses.iter().filter(|status| [200, 204].contains(*status)).count();
    assert_eq!(made, 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 204, 404, 412].contains(status)), "{statuses:?}");
}

#[test]
fn downloads_and_links_carry_the_digest_of_the_whole_content() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "content");
    let link = has_extras().then(|| api.new_link(&ann, &file));
    let digest = "sha-256=:7XACtDnprIRfIjV9giusFERzD722AW0+yUMil7nsn3M=:"; // sha256sum, base64
    for method in ["GET", "HEAD"] {
        let request = api.download_request(method, &ann, &file);
        assert_eq!(request.send().expect(200).header("Repr-Digest"), digest);
        if let Some(link) = &link {
            let answer = api.request_at_root(method, link).send().expect(200);
            assert_eq!(answer.header("Repr-Digest"), digest);
        }
    }
    let range = api.download_request("GET", &ann, &file).header("Range", "bytes=1-2");
    assert_eq!(range.send().expect(206).header("Repr-Digest"), digest);
}

#[test]
fn what_is_made_says_where_it_is() {
    let api = Server::start(&[]);
    let admin = api.sign_up_admin("admin");
    let upload = api.upload(&admin, "a.txt", "content").expect(201);
    assert_eq!(upload.header("Location"), format!("/api/v1/uploads/{}", upload.id()));
    let body =
        json!({"username": "bob", "email": "bob@example.com", "name": "Bob", "password": PASSWORD});
    let user = api.create_user(&admin, body).expect(201);
    assert_eq!(user.header("Location"), format!("/api/v1/users/{}", user.id()));
}

#[test]
fn an_upload_may_say_the_hash_of_its_content() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let (right, wrong) = (sha256(b"content"), sha256(b"other"));
    let digits = right.strip_prefix("sha256:").unwrap_or(&right).to_owned();
    let file = || file_form("a.txt", "text/plain", b"content");
    let hash = |text: &str| Form::default().field("sha256", text);
    for (reason, form) in [
        ("before the file", hash(&digits).then(file())),
        ("after it", file().then(hash(&digits))),
        ("as responses write it", hash(&format!("sha256:{digits}")).then(file())),
        ("in upper case", hash(&digits.to_uppercase()).then(file())),
        ("twice", hash(&digits).then(file()).then(hash(&digits))),
    ] {
        api.upload_form(&ann, form).case(reason).expect(201);
    }
    for (reason, form, field) in [
        ("of another content, before", hash(&wrong).then(file()), "body.file"),
        ("of another content, after", file().then(hash(&wrong)), "body.file"),
        ("two that differ", hash(&digits).then(file()).then(hash(&wrong)), "body.sha256"),
        ("no hash", hash("content").then(file()), "body.sha256"),
        ("too short", hash(&digits[1..]).then(file()), "body.sha256"),
        ("too long", hash(&format!("sha256:{digits}0")).then(file()), "body.sha256"),
        ("empty", hash("").then(file()), "body.sha256"),
    ] {
        api.upload_form(&ann, form).case(reason).invalid(&[(field, "value_error")]);
    }
    assert_eq!((api.file_stats(&ann).0, api.data.contents().len()), (5, 5));
    let answer = api.upload_form(&ann, hash(&wrong).then(file()));
    assert_eq!(answer.json()["detail"][0]["msg"], "The content has another SHA-256");
}
