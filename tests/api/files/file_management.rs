//! Listing, changing and deleting files, and who may.

use crate::harness::*;

/// Ann's files `b.txt` (30 bytes), `C.png` (10), `a.txt` (20) and `d.pdf` (20), uploaded in this order.
fn four_files(api: &Server) -> Tokens {
    let ann = api.sign_up("ann");
    for (name, content_type, size, description) in [
        ("b.txt", "text/plain", 30, Some("Holiday 100%")),
        ("C.png", "image/png", 10, Some("a_b")),
        ("a.txt", "text/plain", 20, None),
        ("d.pdf", "application/pdf", 20, Some("HOLIDAY")),
    ] {
        let form = file_form(name, content_type, &vec![b'x'; size]);
        let form = description.iter().fold(form, |form, text| form.field("description", text));
        api.upload_form(&ann, form).expect(201);
    }
    ann
}

/// RFC 5789 is what clients of other services send for a change of some fields, which is what `PUT` is here.
#[test]
fn patch_is_the_same_as_put() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let file = api.new_file(&ann, "a.txt", "a");
    let patch = |path: &str, sender: &Tokens, body: Value| {
        api.request("PATCH", path).by(sender).json(body).send()
    };
    let (own, of_ann) = (format!("/uploads/{file}"), format!("/users/{}", ann.id()));
    let answer = patch(&own, &ann, json!({"filename": "b.txt"})).expect(200);
    answer.has(json!({"filename": "b.txt", "is_public": false}));
    patch("/users/me", &ann, json!({"name": "Ann"})).expect(200).has(json!({"username": "ann"}));
    patch(&of_ann, &root, json!({"name": "Ann A."})).expect(200).has(json!({"name": "Ann A."}));
    patch(&format!("/admin{of_ann}"), &root, json!({"is_active": false})).expect(200);
    patch(&of_ann, &ann, json!({"name": "x"})).expect(401);
    patch("/users", &root, json!({})).expect(405);
    let events = "audit_events WHERE action IN ('file.update', 'user.update')";
    assert_eq!(api.database.count(events), 4);
    let request = api.request("PATCH", &own).by(&root).header("If-Match", "\"99\"");
    request.json(json!({})).send().expect(403);
}

#[test]
fn the_list_pages_searches_filters_and_sorts() {
    let api = Server::start(&[]);
    let ann = four_files(&api);
    let bob = api.sign_up("bob");
    api.new_file(&bob, "bob.txt", "holiday");
    for (query, names, total, pages) in [
        ("", "d.pdf a.txt C.png b.txt", 4, 1),
        ("size=3", "d.pdf a.txt C.png", 4, 2),
        ("size=3&page=2", "b.txt", 4, 2),
        ("size=3&page=3", "", 4, 2),
        ("size=100&page=9223372036854775807", "", 4, 1),
        ("sort_order=asc", "b.txt C.png a.txt d.pdf", 4, 1),
        ("sort_by=uploaded_at&sort_order=desc&size=1", "d.pdf", 4, 4),
        ("sort_by=filename&sort_order=asc", "a.txt b.txt C.png d.pdf", 4, 1),
        ("sort_by=filename", "d.pdf C.png b.txt a.txt", 4, 1),
        ("search=&content_type=&sort_by=filename&size=2", "d.pdf C.png", 4, 2),
        ("search=HOLI", "d.pdf b.txt", 2, 1),
        ("search=.TXT&size=1", "a.txt", 2, 2),
        ("search=.TXT&size=1&page=9223372036854775807", "", 2, 2),
        ("search=%25", "b.txt", 1, 1),
        ("search=_", "C.png", 1, 1),
        ("search=none", "", 0, 0),
        ("search=", "d.pdf a.txt C.png b.txt", 4, 1),
        ("content_type=text/plain", "a.txt b.txt", 2, 1),
        ("content_type=Text/Plain", "a.txt b.txt", 2, 1),
        ("content_type=text/plain&search=holiday", "b.txt", 1, 1),
        ("content_type=text", "", 0, 0),
        ("content_type=", "d.pdf a.txt C.png b.txt", 4, 1),
    ] {
        let answer = api.list_files(&ann, query).case(query).expect(200);
        let body = answer.has(json!({"total": total, "pages": pages})).json();
        assert_eq!(names_of(&body["items"], "filename").join(" "), names, "{query}");
    }
    let answer = api.get("/uploads/?size=2", &ann).expect(200).has(json!({"page": 1, "size": 2}));
    assert_eq!(answer.member_names(), ["items", "page", "pages", "size", "total"]);
}

#[test]
fn a_type_is_shown_as_the_list_of_types_spells_it_and_found_by_any_spelling() {
    let api = Server::start(&[]);
    let ann = four_files(&api);
    let id = api.upload_form(&ann, file_form("e.jpg", "image/jpg", b"")).expect(201).id();
    for stored in ["image/jpeg", "image/jpg", "image/pjpeg"] {
        // Earlier releases stored a type as it was declared.
        api.database
            .run(&format!("UPDATE files SET content_type = '{stored}' WHERE filename = 'e.jpg'"));
        let shown = json!({"content_type": "image/jpeg"});
        api.show_file(&ann, &id).case(stored).expect(200).has(shown.clone());
        api.update_file(&ann, &id, json!({})).case(stored).expect(200).has(shown);
        assert_eq!(api.download(&ann, &id).expect(200).header("Content-Type"), "image/jpeg");
        for filter in ["image/jpeg", "image/jpg", "Image/PJPEG"] {
            let query = format!("content_type={filter}");
            let body = api.list_files(&ann, &query).case(&query).expect(200).json();
            assert_eq!(names_of(&body["items"], "id").join(" "), id, "{stored}: {filter}");
            assert_eq!(names_of(&body["items"], "content_type"), ["image/jpeg"]);
        }
        let newest = api.list_files(&ann, "size=1").expect(200).json();
        assert_eq!(names_of(&newest["items"], "content_type"), ["image/jpeg"]);
    }
    // A type that the list no longer has is shown as it was stored.
    let odd = "UPDATE files SET content_type = 'image/gif' WHERE filename = 'e.jpg'";
    api.database.run(odd);
    api.show_file(&ann, &id).expect(200).has(json!({"content_type": "image/gif"}));
}

#[test]
fn files_of_one_size_and_those_whose_names_differ_in_case_only_are_in_the_order_of_ids() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for i in 0..12 {
        api.new_file(&ann, ["same.txt", "Same.TXT", "SAME.txt"][i % 3], ["", "a"][i % 2]);
    }
    for order in ["asc", "desc"] {
        let list = |sort: &str| {
            let query = format!("sort_by={sort}&sort_order={order}");
            api.list_files(&ann, &query).expect(200).names("items", "id")
        };
        let ids = list("filename");
        assert!(ids.len() == 12 && ids.is_sorted(), "{order}: {ids:?}");
        let ids = list("file_size");
        let (first, last) = ids.split_at(6);
        assert!(first.is_sorted() && last.is_sorted(), "{order}: {ids:?}");
        let sizes = api.list_files(&ann, &format!("sort_by=file_size&sort_order={order}"));
        let sizes =
            sizes.expect(200).list("items").into_iter().map(|item| item["file_size"].as_i64());
        assert!(
            if order == "asc" { sizes.is_sorted() } else { sizes.rev().is_sorted() },
            "{order}"
        );
    }
}

#[test]
fn a_file_is_its_owners_and_a_public_one_everybodys_to_read() {
    let (api, [ann, bob, root]) = Server::with_users(&[], ["ann", "bob", "root"]);
    let secret = api.new_file(&ann, "a.txt", "secret");
    let public = api.new_file(&ann, "b.txt", "public");
    api.update_file(&ann, &public, json!({"is_public": true}))
        .expect(200)
        .has(json!({"is_public": true}));
    let unknown = UNKNOWN_ID.to_owned();
    for (who, user) in [("another user", &bob), ("an admin", &root)] {
        for (method, path, of_secret, of_public) in [
            ("GET", "", 403, 200),
            ("GET", "/download", 403, 200),
            ("PUT", "", 403, 403),
            ("DELETE", "", 403, 403),
        ] {
            for (id, status) in [(&secret, of_secret), (&public, of_public), (&unknown, 404)] {
                let request = api.request(method, &format!("/uploads/{id}{path}")).by(user);
                let answer = request.json(json!({"filename": "x"})).send().case(who).expect(status);
                match status {
                    403 => drop(answer.refused(403, "Not enough permissions")),
                    404 => drop(answer.refused(404, "File not found")),
                    _ => {}
                }
            }
        }
    }
    api.list_files(&bob, "").expect(200).has(json!({"total": 0}));
}

#[test]
fn a_public_file_is_private_while_its_owner_is_inactive() {
    let (api, [ann, bob, root]) = Server::with_users(&[], ["ann", "bob", "root"]);
    let id = api.new_file(&ann, "a.txt", "public");
    api.update_file(&ann, &id, json!({"is_public": true})).expect(200);
    let tag = api.download(&bob, &id).expect(200).header("ETag").to_owned();
    for is_active in [false, true, false] {
        api.update_user(&root, ann.id(), json!({ "is_active": is_active })).expect(200);
        for user in [&bob, &root] {
            let answers = [
                (api.show_file(user, &id), 200),
                (api.download(user, &id), 200),
                (api.download_request("GET", user, &id).header("Range", "bytes=1-2").send(), 206),
                (api.download_request("GET", user, &id).header("If-None-Match", &tag).send(), 304),
            ];
            for (answer, status) in answers {
                match is_active {
                    true => drop(answer.expect(status)),
                    false => drop(answer.refused(403, "Not enough permissions")),
                }
            }
            let head = api.download_request("HEAD", user, &id).send();
            assert_eq!(head.status, if is_active { 200 } else { 403 });
        }
    }
    api.delete_user(&root, ann.id()).expect(204);
    api.show_file(&bob, &id).refused(404, "File not found");
}

#[test]
fn ids_of_files_are_uuids() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for path in ["/uploads/x", "/uploads/x/download", "/uploads/1", "/uploads/%ff", "/uploads/%00"]
    {
        api.get(path, &ann).invalid(&[("path.file_id", "uuid_parsing")]);
        api.get(path, Anonymous).refused(401, "Authentication required");
    }
}

#[test]
fn an_update_changes_what_is_given_and_nothing_else() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let form = file_form("a.txt", "text/plain", b"one").field("description", "d");
    let uploaded = api.upload_form(&ann, form).expect(201);
    let (id, before) = (uploaded.id(), uploaded.json());
    let update = |body| api.update_file(&ann, &id, body);
    let after = update(json!({"filename": "dir/b.txt"})).expect(200);
    let after = after
        .has(json!({"filename": "b.txt", "original_filename": "a.txt", "description": "d"}))
        .json();
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    assert_eq!(after["upload_date"], before["upload_date"]);
    let longest = "c".repeat(255);
    for (body, filename, description) in [
        (json!({}), "b.txt", "d"),
        (
            json!({"filename": null, "description": null, "is_public": null, "file_size": 0}),
            "b.txt",
            "d",
        ),
        (json!({"description": "e"}), "b.txt", "e"),
        (json!({"filename": longest}), &longest, "e"),
        (json!({"description": " f "}), &longest, " f "),
    ] {
        let expected = json!({"filename": filename, "description": description, "file_size": 3, "is_public": false});
        update(body).expect(200).has(expected);
    }
    let long =
        json!({"filename": "x".repeat(256), "description": "x".repeat(4097), "is_public": "maybe"});
    update(long).invalid(&[
        ("body.filename", "string_too_long"),
        ("body.description", "string_too_long"),
        ("body.is_public", "bool_type"),
    ]);
    update(json!({"filename": "dir/a.txt"})).expect(200).has(json!({"filename": "a.txt"}));
    // Control characters are refused, and so are those that change the direction of text.
    for c in CONTROL_CHARACTERS {
        for name in [format!("a{c}.txt"), format!("a.txt{c}"), format!("dir{c}/a.txt")] {
            update(json!({ "filename": name })).invalid(&[("body.filename", "value_error")]);
        }
        let description = json!({ "description": format!("a{c}b") });
        match c {
            '\t' | '\n' | '\r' => update(description.clone()).expect(200).has(description),
            _ => update(description).invalid(&[("body.description", "value_error")]),
        };
    }
    let file = api.show_file(&ann, &id).expect(200).has(json!({"filename": "a.txt"})).json();
    assert_eq!(file["uploaded_at"], file["upload_date"]);
    assert!(file["uploaded_at"].is_string(), "{file}");
    let listed = api.list_files(&ann, "").expect(200).json();
    assert_eq!(listed["items"][0]["uploaded_at"], file["upload_date"]);
    update(json!({"filename": "..", "description": 1, "is_public": 2})).invalid(&[
        ("body.filename", "value_error"),
        ("body.description", "string_type"),
        ("body.is_public", "bool_type"),
    ]);
}

#[test]
fn a_blank_description_is_none() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let none = json!({ "description": null });
    for blank in ["", " ", "\t\r\n \u{3000}"] {
        let form = file_form("a.txt", "text/plain", b"").field("description", blank);
        let id = api.upload_form(&ann, form).expect(201).has(none.clone()).id();
        api.update_file(&ann, &id, json!({"description": "d"})).expect(200);
        let unset = api.update_file(&ann, &id, json!({ "description": blank })).expect(200);
        unset.has(none.clone());
        api.show_file(&ann, &id).expect(200).has(none.clone());
    }
    // Former versions stored an empty one.
    let id = api.new_file(&ann, "a.txt", "");
    api.database.run("UPDATE files SET description = ''");
    api.show_file(&ann, &id).expect(200).has(json!({"description": ""}));
    api.update_file(&ann, &id, json!({"description": ""})).expect(200).has(none);
}

#[test]
fn a_deleted_file_is_gone_and_makes_room() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_USER_STORAGE_QUOTA", "10")], ["ann"]);
    let id = api.new_file(&ann, "a.txt", "0123456789");
    api.upload(&ann, "b.txt", "1").expect(507);
    api.delete_file(&ann, &id).expect(204);
    api.show_file(&ann, &id).refused(404, "File not found");
    api.download(&ann, &id).refused(404, "File not found");
    api.new_file(&ann, "b.txt", "0123456789");
}

#[test]
fn a_file_that_is_deleted_while_others_read_it_is_whole_or_gone() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let ids: Vec<_> = (0..40).map(|_| api.new_file(&ann, "a.txt", "one")).collect();
    parallel(4, |i| {
        for id in &ids {
            if i == 0 {
                api.delete_file(&ann, id).expect(204);
            } else {
                let answer = api.download(&ann, id);
                let whole = answer.status == 200 && answer.bytes == b"one";
                assert!(whole || answer.status == 404, "{answer:?}");
            }
        }
    });
    assert_eq!(api.file_stats(&ann), (0, 0));
    // The core build keeps none of them for a restoration.
    let kept = if has_extras() { 40 } else { 0 };
    wait_until(|| api.data.contents().len() == kept);
}

#[test]
fn uploads_and_deletions_at_once_keep_the_totals_right() {
    let api = Server::start(&[]);
    let users: Vec<_> = (0..3).map(|i| api.sign_up(&format!("user{i}"))).collect();
    parallel(12, |i| {
        for _ in 0..10 {
            let id = api.new_file(&users[i % 3], "a.txt", "four");
            if i % 2 == 0 {
                api.delete_file(&users[i % 3], &id).expect(204);
            }
        }
    });
    wait_until(|| api.database.count("deleted_contents") == 0);
    assert_eq!(api.database.value::<i64>("SELECT sum(used)::bigint FROM storage_shards"), 60 * 4);
    for user in &users {
        assert_eq!(api.file_stats(user), (20, 80));
    }
    if !has_extras() {
        return;
    }
    assert_eq!(api.data.contents().len(), 120);
    let kept =
        "SELECT sum(deleted_files)::bigint FROM users WHERE deleted_bytes = 4 * deleted_files";
    assert_eq!(api.database.value::<i64>(kept), 60);
}
