//! Uploads in several requests by links to send files by.

use crate::harness::partial::{ALL, BYTES, id_of, metadata};
use crate::harness::*;

const FULL: &str = "Storage quota exceeded";

#[test]
fn whoever_has_a_link_sends_a_file_in_several_requests_and_learns_nothing_of_it() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let link = api.ask_for_files(&ann, json!({"upload_to": "/in"}));
    let pairs = [("filename", "a.txt"), ("folder", "/a/../b"), ("description", "Hello")];
    let begun = api
        .tus("POST", &format!("{link}/partial"), Anonymous)
        .header("Upload-Length", "10")
        .header("Upload-Metadata", &metadata(&pairs))
        .send()
        .expect(201);
    let path = begun.header("Location").to_owned();
    assert!(path.starts_with(&format!("{link}/partial/")), "{path}");
    api.adding(&path, Anonymous, 0, b"01234").send().expect(204);
    assert_eq!(api.offset(&path, Anonymous), 5);
    let listed = api.partial_uploads(&ann);
    let shown = json!([&listed[0]["filename"], &listed[0]["folder"], &listed[0]["offset"]]);
    assert_eq!(shown, json!(["a.txt", "/in", 5]));
    assert!(listed[0]["received_by"].is_string());
    let last = api.adding(&path, Anonymous, 5, b"56789").send().expect(204);
    assert!(!last.has_header("Content-Location") && !last.has_header("ETag"));
    let again = api.adding(&path, Anonymous, 10, b"").send().expect(204);
    assert!(!again.has_header("Content-Location") && !again.has_header("ETag"));
    let head = api.tus("HEAD", &path, Anonymous).send().expect(200);
    assert!(!head.has_header("Content-Location") && !head.has_header("ETag"));
    let files = api.all_files(&ann);
    assert_eq!(files.len(), 1);
    assert_ne!(files[0]["id"], json!(id_of(&path)));
    assert_eq!((&files[0]["folder"], &files[0]["description"]), (&json!("/in"), &json!("Hello")));
    assert_eq!(files[0]["received_by"], listed[0]["received_by"]);
    let shown = api.about_link(&link);
    assert_eq!((&shown["files_left"], &shown["bytes_left"]), (&json!(99), &json!(1073741814)));
    assert_eq!(api.database.count("audit_events WHERE action = 'file.receive'"), 1);
    // The file is none that the sender can find, and the upload none of other places.
    for path in [format!("{ALL}/{}", id_of(&path)), format!("/api/v1/uploads/{}", id_of(&path))] {
        api.tus("GET", &path, &ann).send().expect(404);
    }
    let other = api.ask_for_files(&ann, json!({"upload_to": "/in"}));
    api.tus("HEAD", &format!("{other}/partial/{}", id_of(&path)), Anonymous).send().expect(404);
    api.tus("DELETE", &path, Anonymous).send().expect(204);
    assert_eq!(api.all_files(&ann).len(), 1);
}

#[test]
fn a_link_s_uploads_keep_of_what_the_link_takes_and_count_for_its_owner_when_bytes_come() {
    let quotas =
        [("CLOAKROOM_USER_STORAGE_QUOTA", "2000000"), ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "any")];
    let (api, ann) = Server::with_settled(&quotas, "ann");
    let link = api.ask_for_files(&ann, json!({"max_bytes": 1_500_000, "max_files": 3}));
    let all = format!("{link}/partial");
    let begin = |length| api.beginning(&all, Anonymous, length).send();
    let first = api.begin_by_link(&link, 1_200_000);
    let left = |link: &str| {
        let about = api.about_link(link);
        (about["files_left"].as_i64().unwrap(), about["bytes_left"].as_i64().unwrap())
    };
    assert_eq!(left(&link), (2, 300_000));
    begin(300_001).refused(507, FULL);
    api.send_file(&link, "a.txt", &vec![b'x'; 300_001]).refused(507, FULL);
    // Nobody takes room from the owner by announcing lengths.
    let own = api.begin_partial(&ann, 2_000_000);
    api.tus("DELETE", &own, &ann).send().expect(204);
    api.adding(&first, Anonymous, 0, &vec![b'x'; 600_000]).send().expect(204);
    api.beginning(ALL, &ann, 1_400_001).send().refused(507, FULL);
    let own = api.begin_partial(&ann, 1_400_000);
    // Now what comes does not fit beside the owner's.
    api.adding(&first, Anonymous, 600_000, &vec![b'x'; 600_000]).send().refused(507, FULL);
    let at = api.offset(&first, Anonymous);
    assert_eq!(at, 600_000);
    api.tus("DELETE", &own, &ann).send().expect(204);
    api.adding(&first, Anonymous, at, &vec![b'x'; 600_000]).send().expect(204);
    assert_eq!((left(&link), api.file_stats(&ann)), ((2, 300_000), (1, 1_200_000)));
    let [second, third] = [300_000, 0].map(|length| begin(length).status);
    assert_eq!((second, third), (201, 507), "an empty one does not fit into a full link");
    assert_eq!(left(&link), (1, 0));
    // What was begun goes on.
    let open = api.partial_uploads(&ann);
    let path = format!("{all}/{}", open[0]["id"].as_str().unwrap());
    api.send_file(&link, "a.txt", b"x").refused(507, FULL);
    api.adding(&path, Anonymous, 0, &vec![b'x'; 300_000]).send().expect(204);
    assert_eq!((left(&link), api.file_stats(&ann)), ((1, 0), (2, 1_500_000)));
    assert!(api.run_beside(&["check"]).status.success());
}

#[test]
fn uploads_by_a_link_end_with_it_and_with_their_time() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let made = api.post("/links", &ann, json!({"upload_to": "/"})).expect(201).json();
    let link = made["url"].as_str().expect("a path");
    let path = api.begin_by_link(link, 10);
    api.adding(&path, Anonymous, 0, b"01234").send().expect(204);
    let hours: f64 = api
        .database
        .value("SELECT extract(epoch FROM expires_at - now())::float8 / 3600 FROM partial_uploads");
    assert!((0.9..1.01).contains(&hours), "{hours}");
    // The owner ends any.
    let own = format!("{ALL}/{}", id_of(&path));
    api.tus("HEAD", &own, &ann).send().expect(404);
    api.tus("DELETE", &own, &ann).send().expect(204);
    api.tus("HEAD", &path, Anonymous).send().expect(404);
    let path = api.begin_by_link(link, 10);
    let writer = api.begin_adding(&path, Anonymous, (0, 10), b"01234");
    api.wait_for_bytes(&path, 5);
    api.delete(&format!("/links/{}", made["id"].as_str().unwrap()), &ann).expect(204);
    for method in ["HEAD", "DELETE", "PATCH"] {
        let request = api.tus(method, &path, Anonymous).header("Content-Type", BYTES);
        let answer = request.header("Upload-Offset", "5").send().expect(404);
        if method != "HEAD" {
            answer.refused(404, "Link not found");
        }
    }
    api.beginning(&format!("{link}/partial"), Anonymous, 1).send().refused(404, "Link not found");
    // What is under way is refused with its next step, or with its end.
    drop(writer);
    assert!(api.partial_uploads(&ann).is_empty());
    wait_until(|| entries(api.data.join("partial")).is_empty());
    let shards: i64 = api.database.value("SELECT sum(used)::bigint FROM storage_shards");
    assert_eq!(shards, 0);
}

/// With its link an upload ends, in the list too, whether it has begun, goes on or is complete.
#[test]
fn uploads_by_a_link_last_no_longer_than_it() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let link = api.ask_for_files(&ann, json!({"expires_in_minutes": 5}));
    let path = api.begin_by_link(&link, 10);
    let is_the_link_s = || {
        let equal = "SELECT bool_and(p.expires_at = l.expires_at)
                     FROM partial_uploads p JOIN file_links l ON l.id = link_id";
        api.database.value::<bool>(equal)
    };
    assert!(is_the_link_s(), "it has begun");
    api.adding(&path, Anonymous, 0, b"01234").send().expect(204);
    assert!(is_the_link_s(), "it goes on");
    let listed = api.partial_uploads(&ann);
    let links = api.get("/links", &ann).expect(200).list("links");
    assert_eq!((listed.len(), &listed[0]["expires_at"]), (1, &links[0]["expires_at"]));
    api.adding(&path, Anonymous, 5, b"56789").send().expect(204);
    assert!(is_the_link_s(), "it is complete");
}

/// Those that nobody goes on with make room for the same network, and it never has more than its half.
#[test]
fn what_a_network_has_given_up_does_not_block_it() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let link = api.ask_for_files(&ann, json!({}));
    let paths: Vec<_> = (0..10).map(|_| api.begin_by_link(&link, 1)).collect();
    let begin = || api.beginning(&format!("{link}/partial"), Anonymous, 1).send();
    begin().expect(429);
    let given_up = "UPDATE partial_uploads SET touched_at = touched_at - interval '11 minutes'";
    api.database.run(given_up);
    api.database.run(&format!(
        "UPDATE partial_uploads SET touched_at = touched_at - interval '1 minute' WHERE id = '{}'",
        id_of(&paths[3])
    ));
    begin().expect(201);
    // The longest unused has ended for it.
    api.tus("HEAD", &paths[3], Anonymous).send().expect(404);
    for _ in 1..10 {
        begin().expect(201);
    }
    begin().expect(429);
    assert_eq!(api.partial_uploads(&ann).len(), 10);
}

#[test]
fn a_link_has_twenty_uploads_at_once_and_a_network_half_of_them() {
    let settings = [("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")];
    let (api, ann) = Server::with_settled(&settings, "ann");
    let link = api.ask_for_files(&ann, json!({}));
    let begin = |network: usize| {
        let request = api.beginning(&format!("{link}/partial"), Anonymous, 1);
        request.header("X-Forwarded-For", &format!("192.0.{network}.1")).send().status
    };
    let statuses: Vec<_> = (0..11).map(|_| begin(1)).collect();
    assert_eq!(tally(statuses), [(201, 10), (429, 1)].into());
    let statuses: Vec<_> = (2..14).map(begin).collect();
    assert_eq!(tally(statuses), [(201, 10), (429, 2)].into());
    assert_eq!(api.partial_uploads(&ann).len(), 20);
}

/// A token in the path is escaped, whatever it is, and a stranger's is none.
#[test]
fn a_token_that_is_no_link_is_no_way_to_uploads() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let file = api.new_file(&ann, "a.txt", "a");
    let to_file = api.new_link(&ann, &file);
    for link in ["/api/v1/links/none", "/api/v1/links/%0d%0aX:%20y", &to_file] {
        let all = format!("{link}/partial");
        api.beginning(&all, Anonymous, 1).send().refused(404, "Link not found");
        let one = format!("{all}/{UNKNOWN_ID}");
        api.adding(&one, Anonymous, 0, b"x").send().refused(404, "Link not found");
    }
    let link = api.ask_for_files(&ann, json!({}));
    let one = format!("{link}/partial/..%2f..%2fx");
    api.tus("DELETE", &one, Anonymous).send().invalid(&[("path.upload_id", "uuid_parsing")]);
}
