//! What uploads in several requests keep of quotas, and when they give it back.

use std::io::Write;

use crate::files::uploads_under_way::under_way;
use crate::harness::partial::{ALL, BYTES, id_of};
use crate::harness::*;

const FULL: &str = "Storage quota exceeded";

/// What counts for the service.
fn charged(api: &Server) -> i64 {
    api.database.value("SELECT sum(used)::bigint FROM storage_shards")
}

/// Makes all uploads so old, as if no byte had come since.
fn make_idle(api: &Server, minutes: u32) {
    api.database.run(&format!(
        "UPDATE partial_uploads SET touched_at = touched_at - interval '{minutes} minutes'"
    ));
}

#[test]
fn the_whole_length_and_a_file_are_reserved_until_the_upload_ends() {
    let settings = [("CLOAKROOM_USER_STORAGE_QUOTA", "1000"), ("CLOAKROOM_USER_FILE_QUOTA", "3")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let path = api.begin_partial(&ann, 600);
    api.beginning(ALL, &ann, 401).send().refused(507, FULL);
    api.upload(&ann, "a.txt", vec![b'x'; 401]).refused(507, FULL);
    let small = api.upload(&ann, "a.txt", vec![b'x'; 300]).expect(201).id();
    // A restored file finds what is reserved taken.
    api.delete_file(&ann, &small).expect(204);
    let other = api.begin_partial(&ann, 400);
    api.request("POST", &format!("/uploads/{small}/restore")).by(&ann).send().refused(507, FULL);
    api.beginning(ALL, &ann, 0).send().refused(507, FULL);
    api.tus("DELETE", &other, &ann).send().expect(204);
    api.tus("DELETE", &other, &ann).send().expect(404);
    // Given back once.
    api.beginning(ALL, &ann, 401).send().refused(507, FULL);
    let other = api.begin_partial(&ann, 400);
    api.adding(&other, &ann, 0, &[b'x'; 400]).send().expect(204);
    api.adding(&other, &ann, 400, b"").send().expect(204);
    assert_eq!(api.file_stats(&ann), (1, 400));
    api.beginning(ALL, &ann, 1).send().refused(507, FULL);
    api.adding(&path, &ann, 0, &[b'x'; 600]).send().expect(204);
    assert_eq!((api.file_stats(&ann), charged(&api)), ((2, 1000), 1000));
    api.delete_for_good(&ann, id_of(&path)).expect(204);
    // Three files are all.
    api.begin_partial(&ann, 1);
    let third = api.begin_partial(&ann, 1);
    api.beginning(ALL, &ann, 1).send().refused(507, FULL);
    api.upload(&ann, "a.txt", "x").refused(507, FULL);
    api.adding(&third, &ann, 0, b"x").send().expect(204);
    // One whose time is over keeps nothing.
    api.beginning(ALL, &ann, 598).send().refused(507, FULL);
    api.database.run("UPDATE partial_uploads SET expires_at = now()");
    api.begin_partial(&ann, 599);
}

/// Only quotas keep a file from coming back, however many uploads are open.
#[test]
fn deleted_files_come_back_beside_uploads_that_are_open() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_USER_FILE_QUOTA", "6")], ["ann"]);
    let files =
        ["a.txt", "b.txt", "c.txt"].map(|name| api.upload(&ann, name, "x").expect(201).id());
    api.begin_partial(&ann, 1);
    api.begin_partial(&ann, 1);
    api.delete_file(&ann, &files[0]).expect(204);
    let restore = |id: &str| api.request("POST", &format!("/uploads/{id}/restore")).by(&ann).send();
    restore(&files[0]).expect(200);
    for file in &files {
        api.delete_file(&ann, file).expect(204);
    }
    let since = json!({"deleted_since": "2026-01-01T00:00:00Z"});
    let answer = api.post("/uploads/restore", &ann, since).expect(200).json();
    assert_eq!(answer, json!({"restored": 3, "left": 0}));
    // With the sixth, which is open, there are as many as there may be.
    api.delete_file(&ann, &files[0]).expect(204);
    api.begin_partial(&ann, 1);
    api.begin_partial(&ann, 1);
    restore(&files[0]).refused(507, FULL);
}

/// What comes in one request, and in several, together has no more room than either.
#[test]
fn both_kinds_of_uploads_under_way_share_the_room_of_the_service() {
    let settings =
        [("CLOAKROOM_STORAGE_QUOTA", "10000000"), ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "any")];
    let (api, [ann, bob]) = Server::with_users(&settings, ["ann", "bob"]);
    api.upload(&ann, "a.txt", "x").expect(201);
    let path = api.begin_partial(&ann, 9_000_000);
    let form = file_form("b.bin", "application/x-b", &[b'x'; 7_000_000]).bytes();
    let head = format!("Content-Length: {}", form.len());
    let begin = |sent: usize| api.begin_upload(&bob, &head, &form[..sent]);
    let stream = begin(6_000_000);
    wait_until(|| under_way(&api) > 5_900_000);
    api.adding(&path, &ann, 0, &vec![b'x'; 9_000_000]).send().refused(507, FULL);
    let came = api.offset(&path, &ann);
    assert!((2_900_000..=4_100_000).contains(&came), "{came}");
    // What was given up counts until its thread has noticed.
    drop(stream);
    let go_on_to = |end: usize| {
        wait_until(|| {
            let at = api.offset(&path, &ann);
            api.adding(&path, &ann, at, &vec![b'x'; end - at]).send().status == 204
        });
    };
    go_on_to(6_000_000);
    // It is refused where it does not fit any more, and not at its end, which never comes.
    let mut stream = begin(3_900_000);
    wait_until(|| under_way(&api) > 3_800_000);
    stream.write_all(&form[3_900_000..4_200_000]).expect("more is sent");
    wait_until(|| under_way(&api) == 0);
    go_on_to(9_000_000);
    assert_eq!(charged(&api), 9_000_001);
}

#[test]
fn what_others_share_counts_only_the_bytes_that_have_come() {
    let settings =
        [("CLOAKROOM_STORAGE_QUOTA", "10000000"), ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "any")];
    let (api, [ann, bob]) = Server::with_users(&settings, ["ann", "bob"]);
    let path = api.begin_partial(&ann, 9_000_000);
    assert_eq!(charged(&api), 0);
    // Whoever announces much and sends little takes little.
    let mut stream = api.begin_adding(&path, &ann, (0, 9_000_000), b"x");
    api.wait_for_bytes(&path, 1);
    assert!((1..=1 << 20).contains(&charged(&api)), "{}", charged(&api));
    stream.write_all(&vec![b'x'; 2_999_999]).expect("more is sent");
    api.wait_for_bytes(&path, 3_000_000);
    assert!((3_000_000..=6_100_000).contains(&charged(&api)), "{}", charged(&api));
    drop(stream);
    wait_until(|| charged(&api) == 3_000_000);
    // At a step that does not fit, what came before is kept.
    api.upload(&bob, "b.bin", vec![b'x'; 5_000_000]).expect(201);
    api.adding(&path, &ann, 3_000_000, &vec![b'x'; 6_000_000]).send().refused(507, FULL);
    let at = api.offset(&path, &ann);
    assert!((3_000_000..=5_000_000).contains(&at), "{at}");
    assert_eq!(charged(&api), 5_000_000 + at as i64);
    // A beginning that brings bytes which do not fit is none.
    let request = api.beginning(ALL, &ann, 5_000_000).header("Content-Type", BYTES);
    request.body(vec![b'x'; 5_000_000]).send().refused(507, FULL);
    assert_eq!(api.partial_uploads(&ann).len(), 1);
    api.tus("DELETE", &path, &ann).send().expect(204);
    assert_eq!(charged(&api), 5_000_000);
    assert!(api.run_beside(&["check"]).status.success());
}

#[test]
fn young_accounts_share_their_half() {
    let settings = [
        ("CLOAKROOM_STORAGE_QUOTA", "4000000"),
        ("CLOAKROOM_REGISTRATIONS_PER_DAY", "50"),
        ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "any"),
    ];
    let (api, [ann, bob]) = Server::with_users(&settings, ["ann", "bob"]);
    let path = api.begin_partial(&ann, 3_000_000);
    api.adding(&path, &ann, 0, &vec![b'x'; 3_000_000]).send().refused(507, FULL);
    let at = api.offset(&path, &ann) as i64;
    assert!((1_000_000..=2_000_000).contains(&at), "{at}");
    api.upload(&bob, "b.bin", vec![b'x'; 1_500_000]).refused(507, FULL);
    api.tus("DELETE", &path, &ann).send().expect(204);
    let path = api.begin_partial(&ann, 1_500_000);
    api.adding(&path, &ann, 0, &vec![b'x'; 1_500_000]).send().expect(204);
    api.upload(&bob, "b.bin", vec![b'x'; 1_000_000]).refused(507, FULL);
    assert!(api.run_beside(&["check"]).status.success());
}

#[test]
fn a_new_upload_ends_those_that_are_not_used_if_it_fits_then() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_USER_STORAGE_QUOTA", "1000")], ["ann"]);
    let [oldest, old, new] = [300, 300, 300].map(|length| api.begin_partial(&ann, length));
    api.adding(&old, &ann, 0, b"x").send().expect(204);
    api.adding(&oldest, &ann, 0, b"x").send().expect(204);
    make_idle(&api, 9);
    api.beginning(ALL, &ann, 200).send().refused(507, FULL);
    make_idle(&api, 2);
    api.adding(&new, &ann, 0, b"x").send().expect(204);
    // Without the one that is used it would not fit: none ends for it.
    api.beginning(ALL, &ann, 701).send().refused(507, FULL);
    assert_eq!(api.partial_uploads(&ann).len(), 3);
    let newest = api.begin_partial(&ann, 200);
    // The longest unused is the one whose last byte came first.
    api.tus("HEAD", &old, &ann).send().expect(404);
    for path in [&oldest, &new, &newest] {
        api.tus("HEAD", path, &ann).send().expect(200);
    }
    assert_eq!(entries(api.data.join("partial")).len(), 3);
}

#[test]
fn a_user_has_at_most_a_hundred_uploads_at_once() {
    let (api, [ann]) = Server::with_users(&[PATIENT], ["ann"]);
    let paths: Vec<_> = (0..99).map(|_| api.begin_partial(&ann, 1)).collect();
    let statuses = parallel(4, |_| api.beginning(ALL, &ann, 1).send().status);
    assert_eq!(tally(statuses), [(201, 1), (429, 3)].into());
    let refused = api.beginning(ALL, &ann, 1).send().expect(429);
    assert!(refused.has_header("Retry-After"));
    api.adding(&paths[0], &ann, 0, b"x").send().expect(204);
    api.begin_partial(&ann, 1);
}

/// The list has an end, and strangers cannot crowd out the owner's own.
#[test]
fn an_owner_s_own_uploads_are_listed_before_those_by_links() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let own = api.begin_partial(&ann, 1);
    let by_link = api.begin_by_link(&api.ask_for_files(&ann, json!({})), 1);
    api.database.run(&format!(
        "INSERT INTO partial_uploads (id, file_id, user_id, link_id, folder, filename, file_size, expires_at,
                                      created_at)
         SELECT gen_random_uuid(), gen_random_uuid(), user_id, link_id, folder, filename, 1, expires_at,
                created_at + interval '1 minute'
         FROM partial_uploads, generate_series(1, 500) WHERE id = '{}'",
        id_of(&by_link)
    ));
    let listed = api.partial_uploads(&ann);
    assert_eq!((listed.len(), &listed[499]["id"]), (500, &json!(id_of(&own))));
    assert!(listed[..499].iter().all(|one| !one["received_by"].is_null()));
}

#[test]
fn an_upload_whose_file_cannot_be_made_keeps_nothing() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    std::fs::write(api.data.join("partial"), b"").expect("a file in the way");
    api.beginning(ALL, &ann, 10).send().expect(500);
    assert!(api.partial_uploads(&ann).is_empty());
    assert_eq!(api.database.count("partial_uploads"), 0);
}

#[test]
fn uploads_end_with_their_time_and_with_their_account() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let hours = |path: &str| -> f64 {
        let lasts = format!(
            "SELECT extract(epoch FROM expires_at - now())::float8 / 3600 FROM partial_uploads WHERE id = '{}'",
            id_of(path)
        );
        api.database.value(&lasts)
    };
    let path = api.begin_partial(&ann, 10);
    assert!((0.9..1.01).contains(&hours(&path)), "{}", hours(&path));
    api.adding(&path, &ann, 0, b"01").send().expect(204);
    assert!((23.9..24.01).contains(&hours(&path)), "{}", hours(&path));
    let age = |by: &str| {
        api.database
            .run(&format!("UPDATE partial_uploads SET created_at = created_at - interval '{by}'"));
    };
    age("6 days 12 hours");
    // An empty request moves nothing.
    api.database.run("UPDATE partial_uploads SET expires_at = now() + interval '2 hours'");
    api.adding(&path, &ann, 2, b"").send().expect(204);
    assert!(hours(&path) < 2.01);
    let moved = api.adding(&path, &ann, 2, b"23").send().expect(204);
    assert!((11.9..12.01).contains(&hours(&path)), "seven days in all: {}", hours(&path));
    assert!(moved.header("Upload-Expires").ends_with(" GMT"));
    // One that is over is none at once, and its bytes go soon; so do those of an account that ends.
    let of_bob = api.begin_partial(&bob, 10);
    api.adding(&of_bob, &bob, 0, b"0123").send().expect(204);
    assert_eq!(charged(&api), 8);
    api.database.run(&format!(
        "UPDATE partial_uploads SET expires_at = now() WHERE id = '{}'",
        id_of(&path)
    ));
    api.tus("HEAD", &path, &ann).send().expect(404);
    api.delete_me(&bob, PASSWORD).expect(204);
    assert_eq!(api.database.count("partial_uploads WHERE expires_at > now()"), 0);
    for file in entries(api.data.join("partial")) {
        make_older(&file, 1);
    }
    let beside = api.beside(&[]);
    wait_until(|| entries(beside.data.join("partial")).is_empty());
    wait_until(|| charged(&api) == 0);
    assert_eq!(api.database.count("partial_uploads"), 0);
}

/// What goes on has its time anew, and is nobody's room, long before so much has come that it is synced.
#[test]
fn an_upload_that_goes_on_is_not_unused_before_its_first_sync() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_USER_STORAGE_QUOTA", "1000")], ["ann"]);
    let path = api.begin_partial(&ann, 600);
    api.adding(&path, &ann, 0, b"0123456789").send().expect(204);
    api.database.run(
        "UPDATE partial_uploads
         SET touched_at = now() - interval '11 minutes', expires_at = now() + interval '1 minute'",
    );
    let stream = api.begin_adding(&path, &ann, (10, 590), b"more");
    api.wait_for_bytes(&path, 14);
    api.beginning(ALL, &ann, 600).send().refused(507, "Storage quota exceeded");
    let left = "SELECT extract(epoch FROM min(expires_at) - now())::bigint FROM partial_uploads";
    assert!(api.database.value::<i64>(left) > 3600);
    drop(stream);
    wait_until(|| api.offset(&path, &ann) == 14);
}

/// While its owner is inactive an upload waits, also one whose bytes were on their way.
#[test]
fn the_bytes_of_an_inactive_owner_are_kept() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let path = api.begin_partial(&ann, 100);
    api.adding(&path, &ann, 0, b"0123456789").send().expect(204);
    let stream = api.begin_adding(&path, &ann, (10, 90), b"more");
    api.wait_for_bytes(&path, 14);
    api.database.run("UPDATE users SET is_active = false");
    drop(stream);
    wait_until(|| api.log().matches("PATCH /api/v1/uploads/partial/").count() == 2);
    api.database.run("UPDATE users SET is_active = true");
    let ann = api.sign_in("ann");
    assert!(api.offset(&path, &ann) >= 10);
}
