//! Links to files: what they show, whom they serve, and how many a user may have. `extras/ends.rs` has what ends them.

use crate::harness::*;

/// The secret part of a link.
fn token_of(path: &str) -> &str {
    path.strip_prefix("/api/v1/links/").expect("a path of a link")
}

#[test]
fn a_link_is_shown_once_and_only_its_hash_is_stored() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_LOG", "trace")], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "text");
    let answer = api.create_link(&ann, &file, json!({})).expect(201).has(json!({"inline": false}));
    assert_eq!(
        answer.member_names(),
        ["created_at", "expires_at", "id", "inline", "named_url", "url"]
    );
    let mut shown = answer.json();
    let url = shown["url"].as_str().expect("a path").to_owned();
    let token = token_of(&url);
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    assert!(token.len() == 43 && token.bytes().all(is_plain), "256 bits in base64url: {token}");
    assert_eq!(api.open_link(&url).expect(200).text(), "text");
    for secret in ["url", "named_url"] {
        shown.as_object_mut().expect("an object").remove(secret);
    }
    api.list_links(&ann, &file).expect(200).has(json!({"links": [shown]}));
    let row: String = api.database.value("SELECT file_links::text FROM file_links");
    let hash = sha256(token.as_bytes());
    assert!(!row.contains(token) && row.contains(hash.trim_start_matches("sha256:")), "{row}");
    let minutes = "SELECT extract(epoch FROM expires_at - created_at)::float8 / 60 FROM file_links";
    assert_eq!(api.database.value::<f64>(minutes), 1440.0);
    // Another one is another one, and the newest comes first.
    let other = api.create_link(&ann, &file, json!({"inline": true})).expect(201);
    assert_ne!(other.json()["url"], json!(url));
    let listed = api.list_links(&ann, &file).expect(200).names("links", "id");
    assert_eq!(listed[0], other.id());
    assert!(!api.log().contains(token), "{}", api.log());
}

/// Programs such as `wget` and `curl -O` save what they download under the last segment of its address.
#[test]
fn a_link_may_end_with_the_name_of_the_file_or_any_other() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (name, segment) in [
        ("report.txt", "report.txt"),
        ("a b+c%2F&?#.txt", "a%20b%2Bc%252F%26%3F%23.txt"),
        ("na\u{ef}ve \"x\".txt", "na%C3%AFve%20%22x%22.txt"),
        ("~-_.txt", "~-_.txt"),
    ] {
        let file = api.new_file(&ann, "a.txt", "text");
        api.update_file(&ann, &file, json!({"filename": name})).expect(200);
        let made = api.create_link(&ann, &file, json!({})).expect(201).json();
        let [url, named] =
            ["url", "named_url"].map(|member| made[member].as_str().expect("a path"));
        assert_eq!(named, format!("{url}/{segment}"));
        for path in [named, &format!("{url}/anything.exe"), &format!("{named}/")] {
            let answer = api.open_link(path).case(path).expect(200);
            assert_eq!(answer.text(), "text");
            assert_eq!(
                answer.header("content-disposition"),
                api.open_link(url).header("content-disposition")
            );
            api.open_link(&format!("{path}?about=true"))
                .case(path)
                .expect(200)
                .has(json!({"filename": name}));
        }
        api.delete_file(&ann, &file).expect(204);
        api.open_link(named).refused(404, "Link not found");
    }
}

#[test]
fn a_link_answers_anyone_as_a_download_answers_the_owner() {
    for server in ["builtin", "rouille"] {
        let (api, [ann]) = Server::with_users(&[("CLOAKROOM_HTTP_SERVER", server)], ["ann"]);
        let file = api.new_file(&ann, "na\u{ef}ve.txt", "0123456789");
        let link = api.new_link(&ann, &file);
        let tag = format!("\"{}\"", sha256(b"0123456789").trim_start_matches("sha256:"));
        let long_ago = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (method, headers, status) in [
            ("GET", &[][..], 200),
            ("HEAD", &[], 200),
            ("GET", &[("Range", "bytes=2-4")], 206),
            ("GET", &[("Range", "bytes=-3")], 206),
            ("GET", &[("Range", "bytes=0-1,3-4")], 200),
            ("GET", &[("Range", "bytes=10-")], 416),
            ("HEAD", &[("Range", "bytes=2-4")], 200),
            ("GET", &[("If-None-Match", &*tag)], 304),
            ("GET", &[("If-None-Match", "\"other\"")], 200),
            ("GET", &[("If-Modified-Since", long_ago)], 200),
            ("GET", &[("Range", "bytes=2-4"), ("If-Range", &*tag)], 206),
            ("GET", &[("Range", "bytes=2-4"), ("If-Range", "\"other\"")], 200),
            // Nobody looks at tokens here.
            ("GET", &[("Authorization", "Bearer nonsense")], 200),
        ] {
            let with = |request: Request| {
                headers.iter().fold(request, |r, (name, value)| r.header(name, value)).send()
            };
            let case = format!("{server} {method} {headers:?}");
            let found = with(api.request_at_root(method, &link)).case(&case).expect(status);
            if headers.iter().any(|(name, _)| *name == "Authorization") {
                continue;
            }
            let download = with(api.download_request(method, &ann, &file)).expect(status);
            assert_eq!(found.bytes, download.bytes, "{case}");
            // 416 has the error body, which names no policy.
            let of_file = found.has_header("Content-Security-Policy");
            for name in [
                "Content-Type",
                "Content-Length",
                "Content-Range",
                "Content-Disposition",
                "Content-Security-Policy",
                "ETag",
                "Last-Modified",
                "Accept-Ranges",
                "Cache-Control",
                "X-Content-Type-Options",
                "Referrer-Policy",
            ] {
                assert_eq!(found.headers.get(name), download.headers.get(name), "{case} {name}");
            }
            assert_eq!(found.header("Referrer-Policy"), "no-referrer", "{case}");
            if of_file {
                let embedders = "Cross-Origin-Resource-Policy";
                assert_eq!(found.header(embedders), "cross-origin", "{case}");
                assert_eq!(download.header(embedders), "same-site", "{case}");
                let sandbox = "sandbox; default-src 'none'";
                assert_eq!(found.header("Content-Security-Policy"), sandbox, "{case}");
            } else {
                assert_eq!(status, 416, "{case}");
            }
        }
    }
}

#[test]
fn a_token_that_has_ended_opens_no_public_file_and_tells_nothing_more_at_a_link() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let file = api.new_file(&ann, "a.txt", "text");
    api.update_file(&ann, &file, json!({"is_public": true})).expect(200);
    let link = api.new_link(&ann, &file);
    let script = api.new_token(&bob, false);
    api.download(&script, &file).expect(200);
    // That ends the token of the script, too.
    api.change_password(&bob, PASSWORD, NEW_PASSWORD).expect(200);
    api.logout(&bob).expect(204);
    let open = |path: &str, sender: Option<&String>| {
        let request = api.request_at_root("GET", path);
        let answer = sender.iter().fold(request, |request, token| request.by(*token)).send();
        (answer.status, answer.text(), names(&answer))
    };
    for token in [&bob.access, &script] {
        for path in [&format!("/uploads/{file}"), &format!("/uploads/{file}/download")] {
            api.get(path, token).refused(401, "Invalid token");
        }
        // Without a token a client on the same host may export, in development.
        api.get("/users/export", token).refused(401, "Invalid token");
        for path in [&link, &format!("{link}?about=true"), "/api/v1/links/unknown"] {
            assert_eq!(open(path, Some(token)), open(path, None), "{path}");
        }
    }
}

#[test]
fn a_link_has_the_present_name_of_the_file_and_a_download_that_of_its_upload() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "draft.txt", "text");
    let link = api.create_link(&ann, &file, json!({"inline": true})).expect(201).json();
    let url = link["url"].as_str().expect("a path");
    let name = |method: &str, known: &str, status| {
        let request = api.request_at_root(method, url).header("If-None-Match", known);
        request.send().expect(status).header("Content-Disposition").to_owned()
    };
    assert_eq!(name("GET", "\"other\"", 200), "inline; filename=draft.txt");
    api.update_file(&ann, &file, json!({"filename": "na\u{ef}ve.txt"})).expect(200);
    let present = "inline; filename=\"na_ve.txt\"; filename*=UTF-8''na%C3%AFve.txt";
    assert_eq!(name("GET", "\"other\"", 200), present);
    assert_eq!(name("HEAD", "\"other\"", 200), present);
    assert_eq!(name("GET", "*", 304), present, "a browser that has the content learns the name");
    let download = api.download(&ann, &file).expect(200);
    assert_eq!(download.header("Content-Disposition"), "attachment; filename=draft.txt");
}

#[test]
fn browsers_show_only_texts_and_pictures_that_are_not_xml() {
    let types =
        "image/png,text/plain,text/html,image/svg+xml,application/pdf,image/webp,image/x+xml";
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", types)], ["ann"]);
    for (content_type, content, disposition) in [
        ("text/plain", b"text".as_slice(), "inline"),
        ("image/png", PNG, "inline"),
        ("image/x-png", PNG, "inline"),
        ("image/webp", b"text", "inline"),
        ("image/svg+xml", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "attachment"),
        ("image/x+xml", b"<x/>", "attachment"),
        ("text/html", b"<p>", "attachment"),
        ("application/pdf", b"%PDF-1.4", "attachment"),
    ] {
        let form = file_form("a.bin", content_type, content);
        let file = api.upload_form(&ann, form).case(content_type).expect(201).id();
        for (body, expected) in [
            (json!({"inline": true}), disposition),
            (json!({"inline": false}), "attachment"),
            (json!({"inline": null}), "attachment"),
        ] {
            let link = api.create_link(&ann, &file, body).expect(201).json();
            let answer = api.open_link(link["url"].as_str().expect("a path")).expect(200);
            let shown = answer.header("Content-Disposition");
            assert_eq!(shown, format!("{expected}; filename=a.bin"), "{content_type}");
            let policy = answer.header("Content-Security-Policy");
            assert_eq!(policy, "sandbox; default-src 'none'", "{content_type}");
            assert_eq!(answer.header("X-Content-Type-Options"), "nosniff", "{content_type}");
        }
    }
}

#[test]
fn a_new_link_lives_as_long_as_its_fields_say() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "text");
    for (body, minutes) in [
        (json!({"expires_in_minutes": 1}), 1.0),
        (json!({"expires_in_minutes": 43_200, "other": 1}), 43_200.0),
        (json!({"expires_in_minutes": null}), 1440.0),
    ] {
        let id = api.create_link(&ann, &file, body).expect(201).id();
        let lifetime = "extract(epoch FROM expires_at - created_at)::float8 / 60";
        let found = format!("SELECT {lifetime} FROM file_links WHERE id = '{id}'");
        assert_eq!(api.database.value::<f64>(&found), minutes);
    }
    // No body is an empty one.
    api.request("POST", &format!("/uploads/{file}/links")).by(&ann).send().expect(201);
}

#[test]
fn only_the_owner_makes_lists_and_ends_links() {
    let (api, [ann, bob, root]) = Server::with_users(&[], ["ann", "bob", "root"]);
    let (file, other) = (api.new_file(&ann, "a.txt", "text"), api.new_file(&ann, "b.txt", "b"));
    api.update_file(&ann, &file, json!({"is_public": true})).expect(200);
    let link = api.create_link(&ann, &file, json!({})).expect(201).id();
    for sender in [&bob, &root] {
        api.create_link(sender, &file, json!({})).refused(403, "Not enough permissions");
        api.list_links(sender, &file).refused(403, "Not enough permissions");
        api.delete_link(sender, &file, &link).refused(403, "Not enough permissions");
    }
    api.create_link(&ann, UNKNOWN_ID, json!({})).refused(404, "File not found");
    api.list_links(&ann, UNKNOWN_ID).refused(404, "File not found");
    api.delete_link(&ann, UNKNOWN_ID, &link).refused(404, "File not found");
    for id in [UNKNOWN_ID, &*file] {
        api.delete_link(&ann, &file, id).refused(404, "Link not found");
    }
    api.delete_link(&ann, &other, &link).refused(404, "Link not found");
    let bad = ("path.file_id", "uuid_parsing");
    api.create_link(&ann, "no-id", json!({})).invalid(&[bad]);
    api.list_links(&ann, "no-id").invalid(&[bad]);
    api.delete_link(&ann, "no-id", "x").invalid(&[bad, ("path.link_id", "uuid_parsing")]);
    api.delete_link(&ann, &file, "x").invalid(&[("path.link_id", "uuid_parsing")]);
    assert_eq!(api.database.count("file_links"), 1);
    assert!(api.delete_link(&ann, &file, &link).expect(204).bytes.is_empty());
    api.list_links(&ann, &file).expect(200).has(json!({"links": []}));
}

#[test]
fn a_user_sees_all_own_live_links_and_in_which_hour_each_was_used_last() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let [a, b] = ["a.txt", "b.txt"].map(|name| api.new_file(&ann, name, "text"));
    api.new_link(&bob, &api.new_file(&bob, "of bob", "x"));
    let all = || api.get("/links", &ann).expect(200).list("links");
    assert_eq!(api.get("/links", &ann).expect(200).member_names(), ["links"]);
    assert_eq!(all().len(), 0);
    let urls = [&a, &a, &b].map(|file| api.new_link(&ann, file));
    api.update_file(&ann, &b, json!({"filename": "c.txt"})).expect(200);
    let links = all();
    let files: Vec<_> = links.iter().map(|link| link["filename"].clone()).collect();
    assert_eq!(files, ["c.txt", "a.txt", "a.txt"]);
    let of_a = api.list_links(&ann, &a).expect(200).list("links");
    let expected = of_a.into_iter().map(|mut link| {
        let more = json!({
            "file_id": a, "filename": "a.txt", "files": null, "folder": null, "last_used_at": null, "upload_to": null,
            "max_files": null, "max_bytes": null, "note": null, "notify": null, "received_files": null,
            "received_bytes": null,
        });
        let members = link.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        link
    });
    assert!(links[1..].iter().cloned().eq(expected), "{links:?}");
    // What is a use, and what is none.
    let used = || all()[0]["last_used_at"].as_str().map(str::to_owned);
    let open = |method: &str, query: &str, header: (&str, &str), status: u16| {
        let request = api.request_at_root(method, &format!("{}{query}", urls[2]));
        request.header(header.0, header.1).send().expect(status)
    };
    let none = ("Accept", "*/*");
    open("HEAD", "", none, 200);
    open("GET", "?about=true", none, 200);
    open("HEAD", "?about=1", none, 200);
    open("GET", "", ("Range", "bytes=1000-"), 416);
    assert_eq!(used(), None);
    let tag = open("HEAD", "", none, 200).header("ETag").to_owned();
    for (header, status) in
        [(none, 200), (("Range", "bytes=0-1"), 206), (("If-None-Match", &*tag), 304)]
    {
        api.database.run("UPDATE file_links SET last_used_at = NULL");
        open("GET", "", header, status);
        let hour = used().expect("a time");
        assert!(hour.ends_with(":00:00.000000Z"), "{hour}");
    }
    assert_eq!(all()[1]["last_used_at"], json!(null));
    // Later uses in the hour write nothing, the first one of another hour does.
    let row = || {
        api.database.value::<String>("SELECT string_agg(xmin::text || ctid, ' ') FROM file_links")
    };
    let before = row();
    open("GET", "", none, 200);
    assert_eq!(row(), before);
    api.database.run("UPDATE file_links SET last_used_at = last_used_at - interval '1 hour'");
    let before = used();
    open("GET", "", none, 200);
    assert!(used() > before);
    // What has ended is not listed.
    api.delete_link(&ann, &a, links[2]["id"].as_str().expect("an id")).expect(204);
    api.database.run(&format!(
        "UPDATE file_links SET expires_at = now() WHERE id = '{}'",
        links[1]["id"].as_str().expect("an id")
    ));
    assert_eq!(all().len(), 1);
    api.delete_file(&ann, &b).expect(204);
    assert_eq!(all().len(), 0);
    api.get("/links", &bob).expect(200);
    api.put("/links", &ann, json!({})).refused(405, "Method Not Allowed");
}

#[test]
fn a_page_for_the_receiver_learns_what_a_link_is_to_without_using_it() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "na\u{ef}ve.txt", "text");
    let about = |url: &str| api.request_at_root("GET", &format!("{url}?about=true")).send();
    for (inline, shown) in [(false, false), (true, true)] {
        let link = api.create_link(&ann, &file, json!({ "inline": inline })).expect(201).json();
        let answer = about(link["url"].as_str().expect("a path")).expect(200);
        assert_eq!(answer.header("Cache-Control"), "no-store");
        let expected = json!({
            "filename": "na\u{ef}ve.txt", "file_size": 4, "content_type": "text/plain", "inline": shown,
            "created_at": link["created_at"], "expires_at": link["expires_at"], "sender": "ann"
        });
        assert_eq!(answer.json(), expected);
    }
    // What browsers do not show is not shown, whatever the owner asked for.
    let page = file_form("a.pdf", "application/pdf", b"%PDF-1.7");
    let page = api.upload_form(&ann, page).expect(201).id();
    let link = api.create_link(&ann, &page, json!({"inline": true})).expect(201).json();
    let url = link["url"].as_str().expect("a path");
    about(url).expect(200).has(json!({"inline": false}));
    api.update_me(&ann, json!({"name": "Ann Lee"})).expect(200);
    about(url).expect(200).has(json!({"sender": "Ann Lee"}));
    api.database.run("UPDATE users SET name = NULL, username = NULL");
    about(url).expect(200).has(json!({"sender": null}));
    let wrong = api.request_at_root("GET", &format!("{url}?about=perhaps")).send();
    wrong.invalid(&[("query.about", "bool_type")]);
    about("/api/v1/links/unknown").refused(404, "Link not found");
    api.database.run("UPDATE users SET is_active = false");
    about(url).refused(404, "Link not found");
}

#[test]
fn a_link_serves_while_the_hour_of_its_use_cannot_be_stored() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let link = api.new_link(&ann, &api.new_file(&ann, "a.txt", "text"));
    api.database.run(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER fail BEFORE UPDATE ON file_links FOR EACH ROW EXECUTE FUNCTION fail()",
    );
    for _ in 0..20 {
        assert_eq!(api.open_link(&link).expect(200).text(), "text");
    }
    let lines = api.log().lines().filter(|line| line.contains("was not stored")).count();
    assert!((1..=3).contains(&lines), "{}", api.log());
    api.database.run("DROP TRIGGER fail ON file_links");
    wait_until(|| {
        api.open_link(&link).expect(200);
        api.database.count("file_links WHERE last_used_at IS NOT NULL") == 1
    });
}

#[test]
fn personal_access_tokens_make_links_unless_they_are_read_only() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "text");
    let (token, read_only) = (api.new_token(&ann, false), api.new_token(&ann, true));
    let link = api.new_link(&token, &file);
    api.open_link(&link).expect(200);
    api.create_link(&read_only, &file, json!({})).refused(403, "Not enough permissions");
    let id = api.list_links(&read_only, &file).expect(200).names("links", "id").remove(0);
    api.delete_link(&read_only, &file, &id).refused(403, "Not enough permissions");
    api.delete_link(&token, &file, &id).expect(204);
    let open = Server::start_with(&api.database, &api.data, &[("CLOAKROOM_AUTH_ENABLED", "false")]);
    let file = open.new_file(Anonymous, "a.txt", "of the development admin");
    let link = open.new_link(Anonymous, &file);
    assert_eq!(open.open_link(&link).expect(200).text(), "of the development admin");
}

#[test]
fn a_user_has_at_most_a_thousand_live_links_also_when_they_are_made_in_parallel() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    api.database.insert_files(ann.id(), &[1; 10]);
    api.database.run(
        "INSERT INTO file_links (id, file_id, user_id, token_hash, inline, expires_at)
         SELECT gen_random_uuid(), id, user_id, sha256((id::text || n)::bytea), false, now() + interval '1 day'
         FROM files, generate_series(1, 99) n",
    );
    let files: Vec<_> = (0..2).map(|_| api.new_file(&ann, "a.txt", "a")).collect();
    let of_bob = api.new_file(&bob, "b.txt", "b");
    // Whatever they are to.
    let create = |i: usize| match i % 4 {
        0 | 1 => api.create_link(&ann, &files[i % 2], json!({})),
        2 => api.post("/links", &ann, json!({"files": files})),
        _ => api.post("/links", &ann, json!({"folder": "/"})),
    };
    assert_eq!(tally(parallel(20, |i| create(i).status)), [(201, 10), (409, 10)].into());
    assert_eq!(api.database.count("file_links"), 1000);
    (0..4).for_each(|i| drop(create(i).refused(409, "Too many links")));
    api.create_link(&bob, &of_bob, json!({})).expect(201);
}

#[test]
fn downloads_by_links_take_no_memory_for_the_content() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let content = numbers(8 << 20);
    let link = api.new_link(&ann, &api.new_file(&ann, "a.txt", &content));
    api.open_link(&link).expect(200);
    let before = api.peak_memory();
    for answer in parallel(16, |_| api.open_link(&link)) {
        assert!(answer.expect(200).bytes == content.as_bytes());
    }
    let grown = api.peak_growth(before);
    assert!(grown < content.len() as u64, "{grown} bytes for 16 downloads of {}", content.len());
}

#[test]
fn a_link_needs_no_api_key_and_has_a_limit_of_its_own() {
    let api = Server::start(&[
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY_SCOPE", "all"),
        ("CLOAKROOM_API_KEY", "key"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "1000"),
        ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1"),
    ]);
    let keyed = |method: &str, path: &str| api.request(method, path).header("X-API-Key", "key");
    let body = json!({"username": "ann", "email": "ann@example.com", "password": PASSWORD});
    keyed("POST", "/auth/register").json(body.clone()).send().expect(201);
    let ann = keyed("POST", "/auth/login").json(body).send().expect(200).tokens();
    let form = file_form("a.txt", "text/plain", b"text").bytes();
    let upload = api.upload_request(&ann, form).header("X-API-Key", "key");
    let links = format!("/uploads/{}/links", upload.send().expect(201).id());
    api.create_link(&ann, UNKNOWN_ID, json!({})).refused(401, "API key is required");
    let link = keyed("POST", &links).by(&ann).json(json!({})).send().expect(201).json();
    let id = link["id"].as_str().expect("an id");
    // The owner is one who has a key.
    api.delete(&format!("/links/{id}"), &ann).refused(401, "API key is required");
    let link = link["url"].as_str().expect("a path");
    let open = |path: &str, client: &str| {
        api.request_at_root("GET", path).header("X-Forwarded-For", client).send()
    };
    assert_eq!(open(link, "192.0.2.1").expect(200).rate_limit(), (600, 599));
    let unknown = "/api/v1/links/unknown";
    // Ten tokens a second come back meanwhile.
    let until_refused = |path| {
        let mut answers = (0..6000).map(|_| open(path, "192.0.2.1"));
        answers.find(|answer| answer.status == 429).expect("a limit")
    };
    until_refused(unknown).refused(429, "Rate limit exceeded");
    until_refused(link);
    open(link, "192.0.2.2").expect(200);
    // The limit of the address for other requests is another one.
    let me = keyed("GET", "/auth/me").header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(me.send().expect(401).rate_limit(), (1000, 999));
}

#[test]
fn the_secret_of_a_link_is_neither_in_the_log_nor_in_the_metrics() {
    for server in ["builtin", "rouille"] {
        let settings = [("CLOAKROOM_HTTP_SERVER", server), ("CLOAKROOM_LOG", "trace")];
        let (api, [ann]) = Server::with_users(&settings, ["ann"]);
        let file = api.new_file(&ann, "a.txt", "text");
        let link = api.new_link(&ann, &file);
        let token = token_of(&link);
        for (method, path, status) in [
            ("GET", link.clone(), 200),
            ("HEAD", link.clone(), 200),
            ("GET", format!("{link}/"), 200),
            ("GET", format!("{link}?a={token}"), 200),
            ("GET", format!("/api/v1/%6cinks/{token}"), 200),
            ("POST", link.clone(), 405),
            ("PUT", link.clone(), 405),
            ("PATCH", link.clone(), 405),
            // It would be an id.
            ("DELETE", link.clone(), 401),
            ("OPTIONS", link.clone(), 405),
            ("GET", format!("{link}/more"), 200),
            ("HEAD", format!("{link}/more/"), 200),
            ("GET", format!("{link}/{token}"), 200),
            ("GET", format!("{link}/%ff"), 200),
            ("POST", format!("{link}/more"), 405),
            ("GET", format!("{link}/more/more"), 404),
            ("GET", format!("{link}x"), 404),
            ("GET", format!("/api/v1/links/{}", &token[..20]), 404),
            ("GET", format!("/api/v1/links%2F{token}"), 404),
            ("GET", format!("//api/v1/links/{token}"), 404),
            ("GET", format!("/links/{token}"), 404),
            ("GET", format!("/{token}"), 404),
        ] {
            let answer = api.request_at_root(method, &path).send();
            let answer = answer.case(format!("{server} {method} {path}")).expect(status);
            assert!(status == 200 || !String::from_utf8_lossy(&answer.bytes).contains(token));
        }
        // The content is gone although the record is there, which is an error with a cause that is logged.
        std::fs::remove_file(api.data.content(&file)).expect("removed");
        api.open_link(&link).expect(500);
        let head = format!("GET {link} HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n");
        assert_eq!(ask(&api.address, head).1.status, 400);
        // The last request, so all lines before it are there.
        api.request_at_root("GET", "/last").send().expect(404);
        api.logged("/last");
        let log = api.log();
        for part in [&token[..43], &token[..20], &token[23..]] {
            assert!(!log.contains(part), "{server}: {part} in {log}");
        }
        assert!(log.contains(" GET /api/v1/links/(not-logged) 200 "), "{log}");
        assert!(log.contains(" OPTIONS /api/v1/links/(not-logged) 405 "), "{log}");
        let metrics = api.metrics();
        assert!(metrics.contains("/api/v1/links/{token}") && !metrics.contains(token), "{metrics}");
    }
}

/// The names of an answer's headers.
fn names(answer: &Answer) -> Vec<String> {
    answer.headers.keys().map(|name| name.as_str().to_owned()).collect()
}

/// The parts of a refusal that do not differ between two requests.
fn refusal(answer: Answer) -> (u16, Value, Vec<String>) {
    (answer.status, answer.json(), names(&answer))
}

#[test]
fn links_that_do_not_work_are_answered_alike_whatever_the_cause() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let link_of = |name: &str| {
        let user = api.sign_up(name);
        let file = api.new_file(&user, "a.txt", "text");
        let answer = api.create_link(&user, &file, json!({})).expect(201).json();
        let text = |name: &str| answer[name].as_str().expect("text").to_owned();
        (user, file, text("id"), text("url"))
    };
    let (_, _, expired, expired_url) = link_of("ann");
    let (bob, file, link, revoked_url) = link_of("bob");
    let (cyd, cyd_file, _, without_file_url) = link_of("cyd");
    let (dan, _, _, without_owner_url) = link_of("dan");
    let (eve, _, _, of_inactive_url) = link_of("eve");
    for url in [&expired_url, &revoked_url, &without_file_url, &without_owner_url, &of_inactive_url]
    {
        api.open_link(url).expect(200);
    }
    api.database.run(&format!("UPDATE file_links SET expires_at = now() WHERE id = '{expired}'"));
    api.delete_link(&bob, &file, &link).expect(204);
    // By another spelling of its path, too.
    api.delete(&format!("/uploads/{cyd_file}/"), &cyd).expect(204);
    api.delete_user(&root, dan.id()).expect(204);
    api.update_user(&root, eve.id(), json!({"is_active": false})).expect(200);
    let unknown = format!("/api/v1/links/{}", "A".repeat(43));
    let answer = api.open_link(&unknown).refused(404, "Link not found");
    assert_eq!(answer.header("Vary"), "Accept");
    let expected = refusal(answer);
    let open = |method, path: &str, accept| {
        api.request_at_root(method, path).header("Accept", accept).send().expect(404)
    };
    let navigation = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8";
    let page = open("GET", &unknown, navigation);
    for (name, value) in [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Vary", "Accept"),
        ("Cache-Control", "no-store"),
    ] {
        assert_eq!(page.header(name), value);
    }
    let text = page.text();
    assert!(text.contains("<h1>This link has ended</h1>") && !text.contains("script"), "{text}");
    let policy = page.header("Content-Security-Policy");
    assert!(
        policy.starts_with("sandbox; default-src 'none'; frame-ancestors 'none'; style-src 'sha")
    );
    for path in [
        &expired_url,
        &revoked_url,
        &without_file_url,
        &without_owner_url,
        &of_inactive_url,
        "/api/v1/links/x",
        "/api/v1/links/%00",
        "/api/v1/links/%ff%fe",
        &format!("/api/v1/links/{UNKNOWN_ID}"),
        &format!("{revoked_url}A"),
        &revoked_url[..revoked_url.len() - 1],
        &format!("/api/v1/links/{}", "A".repeat(4000)),
    ] {
        assert_eq!(refusal(api.open_link(path)), expected, "{path}");
        for accept in ["*/*", "application/json", "image/avif,image/*,*/*;q=0.8"] {
            assert_eq!(refusal(open("GET", path, accept)), expected, "{path} {accept}");
        }
        let shown = open("GET", path, navigation);
        assert_eq!((&shown.bytes, names(&shown)), (&page.bytes, names(&page)), "{path}");
        let head = open("HEAD", path, navigation);
        assert_eq!((head.bytes.len(), names(&head)), (0, names(&page)), "{path}");
    }
    // Those of an inactive account only wait.
    api.update_user(&root, eve.id(), json!({"is_active": true})).expect(200);
    assert_eq!(api.open_link(&of_inactive_url).expect(200).text(), "text");
    assert_eq!(api.database.count("file_links"), 2, "the expired one is left to the sweep");
}

#[test]
fn links_that_have_expired_are_removed_in_the_background() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "text");
    let (first, second) = (api.new_link(&ann, &file), api.new_link(&ann, &file));
    let oldest = "(SELECT id FROM file_links ORDER BY created_at LIMIT 1)";
    api.database.run(&format!("UPDATE file_links SET expires_at = now() WHERE id = {oldest}"));
    api.open_link(&first).refused(404, "Link not found");
    assert_eq!(api.list_links(&ann, &file).expect(200).list("links").len(), 1);
    // A sweep runs at the start, and every hour.
    let again = Server::start_with(&api.database, &api.data, &[]);
    wait_until(|| api.database.count("file_links") == 1);
    again.open_link(&second).expect(200);
}
