//! `cloakroom check --remove-lost`: files whose content is lost for good.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::json;

use crate::harness::*;

/// Runs the command beside a service.
fn remove_lost(api: &Server, ids: &[&str]) -> std::process::Output {
    api.run_beside(&[&["check", "--remove-lost"], ids].concat())
}

#[test]
fn lost_files_are_deleted_for_good_and_told_so_the_next_backup_is_whole() {
    let (mail, backups) = (SmtpServer::start(SmtpOptions::default()), Backups::create());
    let url = mail.url();
    let (api, [ann, bob, root]) = Server::with_users(&mail_settings(&url), ["ann", "bob", "root"]);
    let mut ids = ["one", "two", "three"].map(|text| api.new_file(&ann, "a.txt", text));
    let of_bob = api.new_file(&bob, "b.txt", "four");
    let (kept, deleted) = (api.new_file(&ann, "kept.txt", "five"), &ids[2]);
    api.delete_file(&ann, deleted).expect(204);
    let cursor = api.get("/changes?limit=1000", &ann).expect(200).json()["next"].clone();
    let lost = [&*ids[0], &ids[1], deleted, &of_bob];
    lost.iter().for_each(|id| fs::remove_file(api.data.content(id)).expect("removed"));
    for _ in 0..2 {
        api.run_beside(&backups.arguments()).exits(1).reports("4 in all");
    }
    let output = remove_lost(&api, &lost).exits(0);
    for (id, name) in lost.iter().zip(["a.txt", "a.txt", "a.txt", "b.txt"]) {
        let owner = if name == "b.txt" { "bob" } else { "ann" };
        let line = format!("files/{id} ({name:?}, owner {owner}) was deleted for good\n");
        assert!(output.out().contains(&line), "{}", output.out());
    }
    let (_, printed) = backups.make(&api);
    assert!(printed.contains("1 file (4 bytes)"), "{printed}");
    let output = api.run_beside(&["check"]).exits(0);
    assert_eq!(findings_of(&output, "warning"), [""; 0]);
    assert_eq!(api.file_stats(&ann), (1, 4));
    api.download(&ann, &kept).expect(200);
    api.get("/uploads?deleted=true", &ann).expect(200).has(json!({"total": 0}));
    // Clients that follow changes learn of those that they have not been told of.
    let query = format!("/changes?after={}", cursor.as_str().expect("a cursor"));
    let changes = api.get(&query, &ann).expect(200).list("changes");
    let mut told: Vec<_> = changes.iter().map(|change| change["file_id"].clone()).collect();
    told.sort_by_key(ToString::to_string);
    ids[..2].sort();
    assert_eq!(told, ids[..2]);
    assert!(changes.iter().all(|change| change["change"] == "deleted"), "{changes:?}");
    let events = api.all_events(&root, "action=file.purge");
    assert_eq!(events.len(), 4, "{events:?}");
    for event in events {
        assert_eq!(event["details"], json!({"reason": "content lost"}));
        assert_eq!(event["actor_id"], json!(null));
    }
    // Each owner gets one mail, which names no file.
    for name in ["ann", "bob"] {
        let received = mail.wait_for_mail_to(&format!("{name}@example.com"));
        assert_eq!(received.subject(), "Files of your Cloakroom account were lost");
        assert!(received.text().contains("no backup has them") && !received.text().contains("txt"));
    }
    wait_until(|| api.database.count("outbox") == 0);
    assert_eq!(mail.received().len(), 2);
}

#[test]
fn a_file_whose_content_is_anywhere_is_left_and_named() {
    let (api, [ann], backups) = {
        let (api, users) = Server::with_users(&[], ["ann"]);
        (api, users, Backups::create())
    };
    let backed_up = api.new_file(&ann, "a.txt", "one");
    let (backup, _) = backups.make(&api);
    let [whole, discarded, lost] =
        ["two", "three", "four"].map(|text| api.new_file(&ann, "a.txt", text));
    let content = |id: &str| api.data.content(id);
    let trash = api.data.join("trash/2026-01-02");
    fs::create_dir_all(&trash).expect("a directory");
    fs::rename(content(&discarded), trash.join(&discarded)).expect("moved");
    fs::remove_file(content(&backed_up)).expect("removed");
    fs::remove_file(content(&lost)).expect("removed");
    let count = || api.database.count("files");
    let of_backup = backup.join("files").join(&backed_up);
    for (id, place) in [
        (&whole, content(&whole)),
        (&discarded, trash.join(&discarded)),
        (&backed_up, of_backup.canonicalize().expect("a content")),
    ] {
        let output = remove_lost(&api, &[id]).exits(1).reports(id);
        let line = format!("files/{id} is left: {} has the right bytes\n", place.display());
        assert_eq!(output.out(), line);
        assert_eq!(count(), 4);
    }
    remove_lost(&api, &[UNKNOWN_ID]).exits(1).reports(UNKNOWN_ID);
    // While the last backup is away, nobody knows what it holds.
    let away = backups.path().join("away");
    fs::rename(&backup, &away).expect("renamed");
    let refused = remove_lost(&api, &[&lost]).exits(1).reports("the last backup, which ");
    refused.reports(&format!("remove {}", api.data.join("last-backup").display()));
    assert_eq!(count(), 4);
    fs::rename(&away, &backup).expect("renamed back");
    // What is lost goes, although others are left.
    remove_lost(&api, &[&whole, &lost]).exits(1).prints(&format!("files/{lost} ("));
    assert_eq!(count(), 3);
    fs::remove_dir_all(&backup).expect("removed");
    fs::remove_file(api.data.join("last-backup")).expect("removed");
    remove_lost(&api, &[&backed_up]).exits(0);
    for arguments in [&["check", "--remove-lost"][..], &["check", "--remove-lost", "x"]] {
        api.run_beside(arguments).exits(2);
    }
    api.run_beside(&["check", "--repair", "--remove-lost", &whole]).exits(2);
}

#[test]
fn of_damaged_contents_the_right_bytes_are_brought_back_and_those_without_are_deleted_where_asked()
{
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let backups = Backups::create();
    let backed_up = api.new_file(&ann, "a.txt", "backed up");
    let (backup, _) = backups.make(&api);
    let [in_trash, same_size, cut, replaced, right] =
        ["in trash", "same size", "cut", "replaced", "right"]
            .map(|text| api.new_file(&ann, "a.txt", text));
    let content = |id: &str| api.data.content(id);
    let [day, later_day] = ["2026-01-02", "2026-01-03"].map(|day| api.data.join("trash").join(day));
    for (day, bytes) in [(&day, "in trash"), (&later_day, "in trasH")] {
        fs::create_dir_all(day).expect("a directory");
        fs::write(day.join(&in_trash), bytes).expect("a copy");
    }
    fs::write(content(&backed_up), "backed uP").expect("changed");
    fs::write(content(&in_trash), "").expect("cut");
    fs::write(content(&same_size), "same sizE").expect("changed");
    fs::write(content(&cut), "cu").expect("cut");
    fs::remove_file(content(&replaced)).expect("removed");
    fs::create_dir(content(&replaced)).expect("a directory");
    let output = api.run_beside(&backups.arguments()).exits(1).reports("4 in all");
    output.reports("--repair").reports("--remove-lost");
    assert_eq!(backups.partial().len(), 1);
    let faults = findings_of(&api.run_beside(&["check"]).exits(1), "fault");
    let of_backup = backup.canonicalize().expect("a backup").join("files").join(&backed_up);
    let of_trash = day.join(&in_trash);
    let advice = "has the right bytes: `cloakroom check --repair` brings them back";
    for (id, copy) in [(&backed_up, &of_backup), (&in_trash, &of_trash)] {
        one_names(&faults, &[&format!("files/{id} "), &format!("; {} {advice}", copy.display())]);
    }
    for id in [&same_size, &cut, &replaced] {
        one_names(&faults, &[id, "; neither the trash nor the last backup has a copy"]);
    }

    // What is right anywhere is left, and named.
    let output = remove_lost(&api, &[&same_size, &backed_up, &cut, &right, &in_trash, &replaced]);
    for (id, place) in
        [(&backed_up, &of_backup), (&in_trash, &of_trash), (&right, &content(&right))]
    {
        let line = format!("files/{id} is left: {} has the right bytes\n", place.display());
        output.clone().exits(1).prints(&line).reports(id);
    }
    let trash = api.data.trash();
    for (id, bytes) in [(&same_size, Some("same sizE")), (&cut, Some("cu")), (&replaced, None)] {
        assert!(output.out().contains(&format!("files/{id} (\"a.txt\", owner ann) was deleted")));
        let place = trash.iter().find(|path| path.ends_with(id)).expect("in the trash");
        assert!(!content(id).exists());
        assert_eq!(fs::read_to_string(place).ok().as_deref(), bytes);
    }
    assert_eq!(api.database.count("files"), 3);

    let output = api.run_beside(&["check", "--repair"]).exits(0);
    let warnings = findings_of(&output, "warning");
    for (id, copy) in [(&backed_up, &of_backup), (&in_trash, &of_trash)] {
        let words = format!("was damaged and is back, from {}", copy.display());
        one_names(&warnings, &[id, &words]);
    }
    one_names(&warnings, &["records: 3 files", "; 2 damaged or missing"]);
    for (id, text) in [(&backed_up, "backed up"), (&in_trash, "in trash"), (&right, "right")] {
        assert_eq!(api.download(&ann, id).expect(200).text(), text);
    }
    // A link to the backup would rot together with it.
    assert_eq!(fs::metadata(content(&backed_up)).expect("a content").nlink(), 1);
    assert!(of_backup.exists() && !of_trash.exists());
    assert_eq!(findings_of(&api.run_beside(&["check"]).exits(0), "warning"), [""; 0]);
    let (_, printed) = backups.make(&api);
    assert!(printed.contains("3 files") && printed.contains("2 copied, 1 linked"), "{printed}");
}
