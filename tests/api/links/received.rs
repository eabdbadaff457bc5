//! What its owner sees of what strangers have sent by a link: files, events and mail.

use crate::harness::*;

/// The files whose `received_by` is a link's, by their names.
fn received(api: &Server, user: &Tokens, query: &str) -> Vec<String> {
    let answer = api.list_files(user, query).expect(200);
    answer.names("items", "filename")
}

#[test]
fn a_received_file_is_listed_by_its_link_for_its_owner_alone_and_keeps_it() {
    let (api, [ann, bob]) = Server::with_users(&[("CLOAKROOM_PUBLIC_LIST", "on")], ["ann", "bob"]);
    api.settle();
    let link = api.ask_for_files(&ann, json!({}));
    api.send_file(&link, "sent.txt", b"sent").expect(201);
    api.new_file(&ann, "own.txt", "own");
    assert_eq!(received(&api, &ann, "received=true"), ["sent.txt"]);
    assert_eq!(received(&api, &ann, "received=false"), ["own.txt"]);
    assert_eq!(received(&api, &ann, "received=true&search=own"), [""; 0]);
    assert_eq!(received(&api, &ann, "received=true&folder=/in&sort_by=filename"), ["sent.txt"]);
    assert_eq!(received(&api, &ann, "received="), ["own.txt", "sent.txt"]);
    api.list_files(&ann, "received=perhaps").invalid(&[("query.received", "bool_type")]);
    let listed = api.list_files(&ann, "received=true").expect(200).list("items")[0].clone();
    let (id, by) = (listed["id"].as_str().expect("an id"), listed["received_by"].clone());
    assert!(by.is_string());
    api.database.run("DELETE FROM file_links");
    let path = format!("/uploads/{id}");
    api.get(&path, &ann).expect(200).has(json!({"received_by": by}));
    let public = api.update_file(&ann, id, json!({"is_public": true})).expect(200);
    public.has(json!({"received_by": by}));
    api.get(&path, &bob).expect(200).has(json!({"received_by": null, "folder": null}));
    for (user, expected) in [(&ann, by.clone()), (&bob, Value::Null)] {
        let public = api.get("/uploads/public", user).expect(200).list("files");
        assert_eq!(public[0]["received_by"], expected);
    }
    let changes = api.get("/changes", &ann).expect(200).list("changes");
    let told: Vec<_> = changes.iter().map(|change| change["file"]["received_by"].clone()).collect();
    assert!(told.contains(&by) && told.contains(&Value::Null), "{told:?}");
    api.delete_file(&ann, id).expect(204);
    assert_eq!(received(&api, &ann, "deleted=true&received=true"), ["sent.txt"]);
    assert_eq!(received(&api, &ann, "deleted=true&received=false"), [""; 0]);
    api.post(&format!("/uploads/{id}/restore"), &ann, json!({}))
        .expect(200)
        .has(json!({"received_by": by}));
    api.post("/uploads/delete", &ann, json!({"ids": [id]})).expect(200);
    let since = json!({"deleted_since": "2020-01-01T00:00:00Z"});
    api.post("/uploads/restore", &ann, since).expect(200);
    api.get(&path, &ann).expect(200).has(json!({"received_by": by}));
}

/// Strangers cannot serve each other files: a link to a folder shows what came by a link only once the owner has taken
/// it in hand.
#[test]
fn a_link_to_a_folder_shows_no_file_as_it_was_received() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let sending = api.ask_for_files(&ann, json!({"upload_to": "/share"}));
    let shown = api.new_link_to(&ann, json!({"folder": "/share"}));
    api.new_file_in(&ann, "/share", "own.txt");
    let send = |name: &str| {
        api.send_file(&sending, name, name.as_bytes()).expect(201);
        let found = api.list_files(&ann, &format!("search={name}")).expect(200).list("items");
        found[0]["id"].as_str().expect("an id").to_owned()
    };
    let of_link = |id: &str| api.open_link(&format!("{shown}/{id}")).status;
    let zipped = || String::from_utf8_lossy(&api.open_link(&shown).expect(200).bytes).into_owned();
    let hidden = |id: &str, name: &str| {
        assert_eq!(api.shared(&shown), ["/:own.txt"], "{name}");
        assert_eq!(of_link(id), 404, "{name}");
        assert!(!zipped().contains(name), "{name}");
    };
    type Change = fn(&Server, &Tokens, &str);
    let changes: [(&str, Change); 5] = [
        ("name.txt", |api, ann, id| {
            drop(api.update_file(ann, id, json!({"filename": "new.txt"})).expect(200))
        }),
        ("said.txt", |api, ann, id| {
            drop(api.update_file(ann, id, json!({"description": "seen"})).expect(200))
        }),
        ("move.txt", |api, ann, id| {
            drop(api.update_file(ann, id, json!({"folder": "/share/a"})).expect(200))
        }),
        ("many.txt", |api, ann, id| {
            api.post("/uploads/update", ann, json!({"ids": [id], "folder": "/share/b"}))
                .expect(200);
        }),
        ("tree.txt", |api, ann, id| {
            api.database.run(&format!("UPDATE files SET folder = E'other\\x01' WHERE id = '{id}'"));
            api.post("/folders/move", ann, json!({"from": "/other", "to": "/share/c"})).expect(200);
        }),
    ];
    for (name, change) in changes {
        let id = send(name);
        hidden(&id, name);
        // None of these is a change of what the stranger chose.
        api.update_file(
            &ann,
            &id,
            json!({"is_public": true, "filename": name, "folder": "/share"}),
        )
        .expect(200);
        hidden(&id, name);
        api.delete_file(&ann, &id).expect(204);
        api.post(&format!("/uploads/{id}/restore"), &ann, json!({})).expect(200);
        api.post("/uploads/delete", &ann, json!({"ids": [id]})).expect(200);
        api.post("/uploads/restore", &ann, json!({"deleted_since": "2020-01-01T00:00:00Z"}))
            .expect(200);
        hidden(&id, name);
        // Its owner has it in all ways, and may share it by itself.
        let own = api.get("/uploads/zip?folder=/share", &ann).expect(200).bytes;
        assert!(String::from_utf8_lossy(&own).contains(name), "{name}");
        let by_name = api.new_link_to(&ann, json!({"files": [id]}));
        assert_eq!(api.shared(&by_name), [format!("/:{name}")]);
        change(&api, &ann, &id);
        assert_eq!(of_link(&id), 200, "{name}");
        assert_eq!(api.shared(&shown).len(), 2, "{name}");
        api.delete_file(&ann, &id).expect(204);
        let permanently = format!("/uploads/{id}?permanently=true");
        api.delete(&permanently, &ann).expect(204);
    }
}

#[test]
fn what_strangers_send_is_counted_for_the_link_and_blinds_no_log() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let admin = api.sign_up_admin("admin");
    api.settle();
    api.database.wait_unless_hour_lasts();
    let link = api.ask_for_files(&ann, json!({"max_files": 1000}));
    let id: String = api.database.value("SELECT id::text FROM file_links");
    let request = api.send_request(&link, file_form("0.txt", "text/plain", b"hello"));
    request.header("X-Request-ID", &uuid(7)).send().expect(201);
    let event = api.all_events(&admin, "action=file.receive").remove(0);
    for (name, value) in [
        ("actor_id", Value::Null),
        ("subject_type", json!("file")),
        ("subject_id", api.all_files(&ann)[0]["id"].clone()),
        ("address", json!("127.0.0.1")),
        ("request_id", json!(uuid(7))),
        (
            "details",
            json!({"file_size": 5, "link_id": id, "owner_id": ann.id(), "filename": "0.txt"}),
        ),
    ] {
        assert_eq!(event[name], value, "{name}");
    }
    for n in 1..110 {
        api.send_file(&link, &format!("{n}.txt"), b"x").expect(201);
    }
    assert_eq!(api.all_events(&admin, "action=file.receive").len(), 100);
    api.new_file(&ann, "own.txt", "own");
    assert_eq!(
        api.all_events(&admin, "action=file.upload").len(),
        1,
        "the owner's count is another"
    );
    // Once the hour is over, one event tells of the rest.
    api.database.run("UPDATE skipped_changes SET hour = hour - interval '1 hour'");
    let rest = eventually(|| {
        api.collect_garbage();
        api.all_events(&admin, "action=file.receive")
            .into_iter()
            .find(|event| event["details"]["count"].is_number())
    });
    assert_eq!(
        (&rest["actor_id"], &rest["subject_type"], &rest["subject_id"]),
        (&Value::Null, &json!("link"), &json!(id))
    );
    assert_eq!((&rest["details"]["count"], &rest["details"]["link_id"]), (&json!(10), &json!(id)));
}

/// The words of a mail, with one blank between them.
fn words(mail: &ReceivedMail) -> String {
    mail.text().split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn mail_tells_the_owner_at_the_first_file_and_then_at_most_once_an_hour() {
    let page = ("CLOAKROOM_PUBLIC_URL", "https://files.example.com");
    let (smtp, api) = service_with_mail(&[page]);
    let ann = api.sign_up("ann");
    api.settle();
    let link = api.ask_for_files(&ann, json!({"note": "a chosen text", "upload_to": "/chosen"}));
    let silent = api.ask_for_files(&ann, json!({"notify": false}));
    let other = api.ask_for_files(&ann, json!({}));
    api.send_file(&silent, "a.txt", b"a").expect(201);
    api.send_file(&link, "chosen.txt", b"a").expect(201);
    let first = smtp.wait_for_mail_to("ann@example.com");
    assert_eq!(first.subject(), "Files came to your Cloakroom account");
    let text = words(&first);
    assert!(
        text.contains("One file came") && text.contains("https://files.example.com/console"),
        "{text}"
    );
    assert!(!text.contains("chosen"), "{text}");
    api.database.wait_for_empty_outbox();
    // The next ones wait together, whatever link they come by.
    for n in 0..3 {
        api.send_file([&link, &other][n % 2], &format!("{n}.txt"), b"a").expect(201);
    }
    let waiting: String = api.database.value(
        "SELECT string_agg(files || ' ' || round(extract(epoch FROM due_at - now()) / 60), ',') FROM outbox",
    );
    assert_eq!(waiting, "3 60");
    assert_eq!(smtp.received().len(), 1);
    let due = || api.database.run("UPDATE outbox SET due_at = now()");
    due();
    assert!(words(&smtp.wait_for(2)[1]).contains("3 files came"));
    api.database.wait_for_empty_outbox();
    // An account gets ten a day.
    for n in 3..=10 {
        api.send_file(&other, &format!("{n}.txt"), b"a").expect(201);
        due();
        smtp.wait_for(n);
        api.database.wait_for_empty_outbox();
    }
    api.send_file(&other, "11.txt", b"a").expect(201);
    let wait: f64 =
        api.database.value("SELECT extract(epoch FROM due_at - now())::float8 / 3600 FROM outbox");
    assert!((23.9..=24.0).contains(&wait), "{wait}");
    // None goes to an account that has another address, or is inactive, when it is sent.
    for change in ["email = 'b@example.com', email_key = 'b@example.com'", "is_active = false"] {
        api.database.run(&format!("UPDATE users SET {change}"));
        due();
        api.database.wait_for_empty_outbox();
        assert!(
            smtp.received().iter().all(
                |mail| mail.subject() != first.subject() || mail.recipient == "ann@example.com"
            )
        );
        api.database.run("UPDATE mail_counts SET queued_at = ARRAY[now()]; UPDATE users SET email_changed_at = NULL");
        if change.starts_with("email") {
            api.send_file(&other, "12.txt", b"a").expect(201);
        }
    }
    assert_eq!(
        api.database.count("mail_counts WHERE cardinality(networks) > 0"),
        0,
        "no mailbox counts them"
    );
}

#[test]
fn an_account_that_is_not_settled_gets_no_mail_of_files() {
    let (smtp, api) = service_with_mail(&[("CLOAKROOM_REGISTRATION", "off")]);
    let open = api.beside(&mail_settings(&smtp.url()));
    let ann = open.sign_up("ann");
    let link = api.ask_for_files(&ann, json!({}));
    api.send_file(&link, "a.txt", b"a").expect(201);
    assert_eq!(api.database.count("outbox"), 0);
    api.database.run("UPDATE users SET is_settled = true, email_changed_at = now()");
    api.send_file(&link, "b.txt", b"b").expect(201);
    assert_eq!(api.database.count("outbox"), 0);
    api.database.run("UPDATE users SET email_changed_at = NULL");
    api.send_file(&link, "c.txt", b"c").expect(201);
    assert!(words(&smtp.wait_for_mail_to("ann@example.com")).contains("One file came"));
}

#[test]
fn what_comes_while_the_mail_server_is_away_is_told_in_one_mail() {
    let (smtp, api) = service_with_mail(&[]);
    let ann = api.sign_up("ann");
    api.settle();
    let link = api.ask_for_files(&ann, json!({}));
    smtp.port.close();
    api.send_file(&link, "0.txt", b"a").expect(201);
    wait_until(|| api.database.count("outbox WHERE waits_for_server") == 1);
    for hour in 1..=3 {
        api.database.run("UPDATE mail_counts SET queued_at = ARRAY[now() - interval '61 minutes']");
        wait_until(|| api.database.count("outbox WHERE waits_for_server") == 1);
        api.send_file(&link, &format!("{hour}.txt"), b"a").expect(201);
    }
    assert_eq!(api.metric("cloakroom_mail_waiting"), Some(1.0));
    smtp.port.open_again();
    api.database.run("UPDATE outbox SET due_at = now()");
    assert!(words(&smtp.wait_for_mail_to("ann@example.com")).contains("4 files came"));
    api.database.wait_for_empty_outbox();
    assert_eq!(smtp.received().len(), 1);
    // A mail that is for later does not wait yet.
    api.database.run("UPDATE mail_counts SET queued_at = ARRAY[now()]");
    api.send_file(&link, "4.txt", b"a").expect(201);
    assert_eq!(
        (api.metric("cloakroom_mail_waiting"), api.metric("cloakroom_mail_oldest_seconds")),
        (Some(0.0), Some(0.0))
    );
}
