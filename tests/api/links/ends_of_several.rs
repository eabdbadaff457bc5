//! What ends links to several files, and what takes a file out of them. `extras/ends.rs` has what ends all links of an
//! account.

use crate::harness::*;

/// A list of the files after this place asks for the turn of the link. The place is after a file without a folder.
const A_PLACE: &str = "after=OGYxNGU0NWZjZWVhNDY3ZmFiMmYwYzJiOGE1ZDljMTF2aXNpdG9ycy50eHQ";

#[test]
fn a_deleted_file_leaves_a_link_for_good_and_the_last_one_ends_it() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let [a, b, c] = ["a.txt", "b.txt", "c.txt"].map(|name| api.new_file(&ann, name, "text"));
    let link = api.new_link_to(&ann, json!({"files": [c, a, b]}));
    let of_all = api.new_link_to(&ann, json!({"folder": "/"}));
    let other = api.new_link_to(&ann, json!({"files": [a]}));
    let left = || {
        let links = api.get("/links", &ann).expect(200).list("links");
        links.iter().map(|link| link["files"].as_i64()).collect::<Vec<_>>()
    };
    assert_eq!(api.shared(&link), ["/:a.txt", "/:b.txt", "/:c.txt"]);
    // After any place, what is counted is all of them.
    let page = api.open_link(&format!("{link}?about=true&{A_PLACE}")).expect(200);
    page.has(json!({"total_files": 3, "total_size": 12, "files": [], "next": null}));
    // A change of the file is no deletion.
    api.update_file(&ann, &b, json!({"filename": "b2.txt", "folder": "/f"})).expect(200);
    assert_eq!(api.shared(&link), ["/:a.txt", "/:b2.txt", "/:c.txt"]);
    api.delete_file(&ann, &a).expect(204);
    api.post(&format!("/uploads/{a}/restore"), &ann, json!({})).expect(200);
    assert_eq!(api.shared(&link), ["/:b2.txt", "/:c.txt"]);
    api.open_link(&format!("{link}/{a}")).refused(404, "Link not found");
    api.open_link(&other).refused(404, "Link not found");
    assert_eq!(left(), [None, Some(2)]);
    // Both at once, by their folder and by their ids, of which one is none of the link's.
    api.delete("/folders?folder=/f", &ann).expect(200);
    assert_eq!(api.shared(&link), ["/:c.txt"]);
    api.post("/uploads/delete", &ann, json!({"ids": [a, c]})).expect(200);
    for path in ["", "?about=true", "/files.zip", &format!("/{c}")] {
        api.open_link(&format!("{link}{path}")).case(path).refused(404, "Link not found");
    }
    assert_eq!(left(), [None]);
    let all = json!({"deleted_since": "2026-01-01T00:00:00Z"});
    api.post("/uploads/restore", &ann, all).expect(200).has(json!({"restored": 3}));
    api.open_link(&link).refused(404, "Link not found");
    assert_eq!(api.shared(&of_all), ["/:a.txt", "/:c.txt", "/f:b2.txt"]);
    // Nor do deletions for good leave anything.
    let last = api.new_link_to(&ann, json!({"files": [a]}));
    api.delete(&format!("/uploads/{a}?permanently=true"), &ann).expect(204);
    api.open_link(&last).refused(404, "Link not found");
    assert_eq!(left(), [None]);
}

#[test]
fn the_owner_ends_any_own_link_by_its_id_and_nobody_else_does() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let file = api.new_file(&ann, "a.txt", "text");
    let read_only = api.new_token(&ann, true);
    for answer in [
        api.create_link(&ann, &file, json!({})),
        api.post("/links", &ann, json!({"files": [file]})),
        api.post("/links", &ann, json!({"folder": "/"})),
    ] {
        let link = answer.expect(201).json();
        let [id, url] = ["id", "url"].map(|name| link[name].as_str().expect("a text"));
        let end = |path: &str, sender| api.delete(&format!("/links/{path}"), sender);
        end(id, &bob).refused(404, "Link not found");
        end(&file, &ann).refused(404, "Link not found");
        // The secret part is no id, so whoever has the link alone does not end it.
        let secret = url.rsplit('/').next().expect("a token");
        end(secret, &ann).invalid(&[("path.link_id", "uuid_parsing")]);
        api.delete(&format!("/links/{id}"), read_only.as_str())
            .refused(403, "Not enough permissions");
        api.delete(&format!("/links/{id}"), Anonymous).expect(401);
        api.open_link(url).expect(200);
        assert!(end(id, &ann).expect(204).bytes.is_empty());
        api.open_link(url).refused(404, "Link not found");
        end(id, &ann).refused(404, "Link not found");
    }
    assert_eq!(api.database.count("file_links"), 0);
}

#[test]
fn a_link_whose_time_is_over_breaks_the_archive_that_is_sent() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    // More than a connection buffers.
    api.new_file(&ann, "a.txt", &numbers(9 << 20));
    api.new_file(&ann, "b.txt", "text");
    let link = api.new_link_to(&ann, json!({"folder": "/"}));
    for (end, is_whole) in
        [("NULL", true), ("is_active = false", false), ("expires_at = now()", false)]
    {
        let mut connection = api.begin(&format!("GET {link} HTTP/1.1"), Anonymous);
        let head = connection.head().expect("a head");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.and_then(|it| it.parse().ok()).expect("a length");
        match end {
            "NULL" => {}
            "is_active = false" => api.database.run("UPDATE users SET is_active = false"),
            _ => api.database.run("UPDATE file_links SET expires_at = now()"),
        }
        // The list is read again when it is older than a second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert_eq!(connection.rest().len() == length, is_whole, "{end}");
        api.database.run("UPDATE users SET is_active = true");
    }
}

#[test]
fn one_name_follows_the_id_of_one_of_several_and_nothing_else() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "text");
    let several = api.new_link_to(&ann, json!({"files": [file]}));
    let one = api.new_link(&ann, &file);
    for (path, status) in [
        (format!("{several}/{file}/a.txt"), 200),
        (format!("{several}/{file}/a.txt/"), 200),
        (format!("{several}/{file}/a.zip"), 200),
        (format!("{several}/{file}/a.txt/more"), 404),
        (format!("{several}/files.zip/"), 200),
        (format!("{several}/files.zip/more"), 404),
        (format!("{one}/a.txt/"), 200),
        (format!("{one}/{file}/a.txt"), 404),
    ] {
        api.open_link(&path).case(path).expect(status);
    }
}

/// Whoever has a link may ask for its list or its archive often, and keeps neither another link nor its owner waiting.
#[test]
fn long_lists_by_one_link_run_one_after_the_other() {
    let (api, [ann]) = Server::with_users(&[PATIENT], ["ann"]);
    let links = [(); 2].map(|()| api.new_link_to(&ann, json!({"folder": "/"})));
    let insert = |count: u32| {
        api.database.run(&format!(
            "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
             SELECT gen_random_uuid(), '{}', 'f' || n, 'f', 'text/plain', 0, 'f', 'h'
             FROM generate_series(1, {count}) n",
            ann.id()
        ));
    };
    // Lists sort names, and the statements that find the link and count its files do not.
    let folded =
        "CREATE OR REPLACE FUNCTION folded(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
                  BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN lower($1); END $$";
    insert(1000);
    api.database.run(folded);
    // A thousand need no turn, and with one more the lists of a link do, and archives, and those of one's own.
    for (more, running) in [(0, 6), (1, 3)] {
        insert(more);
        let lock = api.database.begin("SELECT pg_advisory_xact_lock(1)");
        let begin = |path: &str, sender: &str| api.begin(&format!("GET {path} HTTP/1.1"), sender);
        let list = format!("{}?about=true", links[0]);
        let own = ann.access.as_str();
        let kinds = [(&*list, ""), (&*links[1], ""), ("/api/v1/uploads/zip", own)];
        let mut begun: Vec<_> =
            (0..2).flat_map(|_| kinds).map(|(path, sender)| begin(path, sender)).collect();
        wait_until(|| api.database.blocked_statements() >= running);
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(
            api.database.blocked_statements(),
            running,
            "one of each kind, if it takes turns"
        );
        lock.roll_back();
        for answer in &mut begun {
            assert_eq!(answer.answer().status, 200);
        }
    }
}
