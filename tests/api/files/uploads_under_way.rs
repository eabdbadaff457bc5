//! Uploads under way count towards the quotas that many share by what has come of them, so that the disk has an end.

use std::net::TcpStream;

use crate::harness::*;

/// Keeps contents from being removed, as a backup does.
pub const AS_OF_A_BACKUP: &str =
    "SELECT pg_advisory_xact_lock(hashtext('cloakroom: removal of contents'))";

/// The bytes of uploads that are under way.
pub fn under_way(api: &Server) -> u64 {
    let drafts = entries(api.data.join("tmp"));
    drafts.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum()
}

/// Begins an upload of 60,000 bytes, of which the first 45,000 are sent.
fn begin(api: &Server, user: &Tokens) -> TcpStream {
    let form = file_form("a.txt", "text/plain", &[b'x'; 60_000]).bytes();
    let stream =
        api.begin_upload(user, &format!("Content-Length: {}", form.len()), &form[..45_000]);
    stream.set_nonblocking(true).expect("a mode");
    stream
}

/// Whether the response to an upload has begun.
fn is_answered(stream: &TcpStream) -> bool {
    stream.peek(&mut [0]).is_ok()
}

#[test]
fn uploads_under_way_count_by_the_bytes_that_have_come() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_STORAGE_QUOTA", "100000")], ["ann"]);
    let keyed = || {
        let request = api.upload_request(&ann, file_form("k.txt", "text/plain", b"k").bytes());
        request.header("Idempotency-Key", "a-key-of-ours").send().expect(201)
    };
    keyed();
    let uploads: Vec<_> = (0..20).map(|_| begin(&api, &ann)).collect();
    // Two fit by what has come of them.
    wait_until(|| uploads.iter().filter(|one| is_answered(one)).count() == 18);
    wait_until(|| under_way(&api) > 80_000);
    assert!(under_way(&api) <= 100_000);
    let (answered, waiting): (Vec<_>, Vec<_>) = uploads.into_iter().partition(is_answered);
    for stream in answered {
        stream.set_nonblocking(false).expect("a mode");
        assert_eq!(status_of(stream), 507);
    }
    api.upload(&ann, "b.txt", vec![b'x'; 20_000]).refused(507, "Storage quota exceeded");
    api.upload(&ann, "b.txt", vec![b'x'; 5_000]).expect(201);
    // A repeated one stores nothing.
    if has_extras() {
        keyed().has(json!({"file_size": 1}));
    }
    // What is given up counts no longer.
    drop(waiting);
    wait_until(|| under_way(&api) == 0);
    api.upload(&ann, "b.txt", vec![b'x'; 94_999]).expect(201);
    api.upload(&ann, "b.txt", "x").refused(507, "Storage quota exceeded");
}

#[test]
fn uploads_under_way_of_young_accounts_count_for_their_half() {
    let settings =
        [("CLOAKROOM_STORAGE_QUOTA", "220000"), ("CLOAKROOM_REGISTRATIONS_PER_DAY", "50")];
    let (api, [ann, bob, dora]) = Server::with_users(&settings, ["ann", "bob", "dora"]);
    api.database
        .run("UPDATE users SET created_at = now() - interval '7 days' WHERE username = 'dora'");
    let uploads: Vec<_> = (0..10).map(|n| begin(&api, [&ann, &bob][n % 2])).collect();
    wait_until(|| uploads.iter().filter(|one| is_answered(one)).count() == 8);
    assert!(under_way(&api) <= 110_000);
    api.upload(&bob, "b.txt", vec![b'x'; 30_000]).refused(507, "Storage quota exceeded");
    api.upload(&dora, "b.txt", vec![b'x'; 100_000]).expect(201);
    drop(uploads);
    wait_until(|| under_way(&api) == 0);
    api.upload(&bob, "b.txt", vec![b'x'; 109_000]).expect(201);
}
