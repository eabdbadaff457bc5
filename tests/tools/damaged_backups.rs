//! Damaged backups: `backup --verify` and `restore` name what is damaged, and nothing of them is restored, unless the
//! damaged contents are to be skipped.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use crate::harness::*;

/// Verifies a backup, without any settings.
fn verify(backup: &Path) -> Output {
    let mut command = Command::new(BINARY);
    command.env_clear().args(["backup", "--verify"]).arg(backup).output().expect("the binary runs")
}

/// A backup of the user `ann` with five files, which hold `content 0` and so on, and the ids of these in order.
/// Uploads the file with this number, with a key.
fn keyed(api: &Server, sender: &Tokens, n: usize) -> Answer {
    let form = file_form("a.txt", "text/plain", format!("content {n}").as_bytes());
    api.upload_request(sender, form.bytes()).header("Idempotency-Key", &n.to_string()).send()
}

fn backup_of_five(backups: &Backups) -> (PathBuf, Vec<String>) {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for n in 0..5 {
        keyed(&api, &ann, n).expect(201);
    }
    let (backup, _) = backups.make(&api);
    let ids = listed(&backup).into_iter().map(|(id, _)| id).collect();
    (backup, ids)
}

#[test]
fn a_whole_backup_is_found_whole_without_settings_and_without_a_database() {
    let backups = Backups::create();
    let (backup, _) = backup_of_five(&backups);
    let dump = fs::metadata(backup.join("database.dump")).expect("a dump").len() as f64;
    let (path, dump) = (backup.display(), dump / 1024.0);
    let expected =
        format!("{path} is whole: 1 user, 5 files (45 bytes), and a dump of {dump:.2} KiB.\n");
    assert_eq!(verify(&backup).exits(0).out(), expected);
    run("", &["backup", "--verify", "--keep", "1", "backup"], &[]).exits(2);
}

/// What happens to a file of a backup.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// One bit of the first, the middle and the last byte, one after the other.
    Bits,
    /// The last byte is missing.
    Cut,
    Missing,
    /// A symbolic link to what was there, elsewhere.
    Link,
    /// A named pipe, to which nobody writes: opening it would wait forever.
    Pipe,
    /// These bytes in place of others.
    Text(&'static str),
}

/// Makes the changes, one after the other, and calls `examine` after each; in the end all is as it was.
fn with_change(path: &Path, change: Change, examine: impl Fn()) {
    let elsewhere = Directory::create();
    let moved = elsewhere.join("moved");
    let original = fs::read(path).unwrap_or_default();
    let flipped = |at: usize| {
        let mut bytes = original.clone();
        bytes[at] ^= 1;
        bytes
    };
    fs::rename(path, &moved).expect("moved");
    match change {
        Change::Missing => {}
        Change::Link => symlink(&moved, path).expect("a link"),
        Change::Pipe => {
            assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
        }
        Change::Cut => fs::write(path, &original[..original.len() - 1]).expect("cut"),
        Change::Text(text) => fs::write(path, text).expect("changed"),
        Change::Bits => {
            for at in [0, original.len() / 2] {
                fs::write(path, flipped(at)).expect("changed");
                examine();
            }
            fs::write(path, flipped(original.len() - 1)).expect("changed");
        }
    }
    examine();
    let _ = fs::remove_file(path);
    fs::rename(&moved, path).expect("moved back");
}

#[test]
fn whatever_is_damaged_is_named_and_nothing_is_restored() {
    use Change::{Bits, Cut, Link, Missing, Pipe, Text};
    let backups = Backups::create();
    let (backup, ids) = backup_of_five(&backups);
    let content = format!("files/{}", ids[2]);
    let target = Installation::empty();
    let (hash, no_file) = ("has another SHA-256 than is recorded", "is not a file");
    let former = "{\"format\":1,\"created_at\":\"2026-01-02T03:04:05Z\",\"contents\":[\n],\n\"sha256\":\"\"}\n";
    // The file, what happens to it, what is said, and whether it can be skipped.
    for (name, change, words, can_be_skipped) in [
        (&*content, Bits, hash, true),
        (&*content, Cut, hash, true),
        (&*content, Missing, "is missing", true),
        (&*content, Link, no_file, true),
        (&*content, Pipe, no_file, true),
        ("database.dump", Bits, hash, false),
        ("database.dump", Cut, " bytes, not ", false),
        ("database.dump", Missing, "is missing", false),
        ("database.dump", Link, no_file, false),
        ("contents.sha256", Bits, hash, false),
        ("contents.sha256", Cut, " bytes, not ", false),
        ("contents.sha256", Text(""), "has 0 bytes, not ", false),
        ("contents.sha256", Missing, "is missing", false),
        ("contents.sha256", Link, no_file, false),
        ("manifest.json", Cut, "it was cut short or changed: ", false),
        ("manifest.json", Text(""), "it was cut short or changed: ", false),
        ("manifest.json", Missing, "is no backup, because it has no manifest.json", false),
        ("manifest.json", Link, no_file, false),
        ("manifest.json", Text(former), "it has format 1, but", false),
        ("manifest.json", Text("{\"format\":3}"), "use a newer cloakroom", false),
        ("files", Link, "is missing or not a directory", false),
    ] {
        with_change(&backup.join(name), change, || {
            let skips = || target.command(&backup, &["--skip-damaged"]).output().expect("it runs");
            let skips = (!can_be_skipped).then(skips);
            for output in [verify(&backup), target.restore(&backup)].into_iter().chain(skips) {
                let output = output.exits(1);
                let said = output.out() + &output.err();
                assert!(said.contains(name) && said.contains(words), "{name} {change:?}: {said}");
            }
            target.is_untouched();
        });
    }
    verify(&backup).exits(0);
    // Neither is what is no whole backup.
    let partial = backup.with_extension("partial");
    fs::rename(&backup, &partial).expect("renamed");
    for (path, words) in [
        (&*partial, ".partial is not whole"),
        (backups.path(), "is no backup, because it has no manifest.json"),
        (&backup.join("none"), "none: No such file or directory"),
    ] {
        for output in [verify(path), target.restore(path)] {
            output.exits(1).reports(words);
        }
    }
    target.is_untouched();
    // A dump that PostgreSQL cannot read, though it is the one of the manifest.
    fs::rename(&partial, &backup).expect("renamed");
    fs::write(backup.join("database.dump"), "no dump").expect("written");
    let version = manifest(&backup)["schema_version"].as_i64().expect("a version");
    adopt_dump(&backup, i32::try_from(version).expect("a version"));
    let error = target.restore(&backup).exits(1).err();
    assert!(error.contains("pg_restore failed (exit status: 1): error: "), "{error}");
    assert!(error.ends_with("Nothing was restored.\n"), "{error}");
    target.is_untouched();
}

#[test]
fn damaged_contents_are_all_named_and_left_out_where_they_are_to_be_skipped() {
    let backups = Backups::create();
    let (backup, ids) = backup_of_five(&backups);
    let content = |n: usize| backup.join("files").join(&ids[n]);
    let text = fs::read_to_string(content(0)).expect("a content");
    fs::write(content(0), text.replace("content", "kontent")).expect("changed");
    fs::remove_file(content(1)).expect("removed");
    fs::write(content(2), "content").expect("cut");
    fs::write(backup.join("files/other"), "").expect("written");
    let target = Installation::empty();
    let lines = [
        format!("files/{} has another SHA-256 than is recorded", ids[0]),
        format!("files/{} is missing", ids[1]),
        format!("files/{} has another SHA-256 than is recorded", ids[2]),
        "files/other is not in contents.sha256".to_owned(),
    ];
    let summary = "contents: 3, files that contents.sha256 does not name: 1";
    let verified = format!("{} is damaged: {summary}\n", backup.display());
    let refused = format!("the backup is damaged ({summary}): nothing was changed.");
    for (output, words) in [(verify(&backup), verified), (target.restore(&backup), refused)] {
        let output = output.exits(1).reports(&words);
        assert_eq!(output.out().lines().collect::<Vec<_>>(), lines);
    }
    target.is_untouched();
    let output = target.command(&backup, &["--skip-damaged"]).output().expect("it runs").exits(0);
    let summary = "manifest: 1 user, 5 files, 45 bytes\n\
                   damaged:  3 files, 27 bytes, not restored\n\
                   database: 1 user, 2 files, 18 bytes\n\
                   contents: 2 files, 18 bytes\n";
    output.prints(summary);
    assert!(target.warnings(&[]).is_empty());
    let restored = target.serve();
    let ann = restored.sign_in("ann");
    let mut left = names_of(&restored.list_files(&ann, "").json()["items"], "id");
    left.sort();
    assert_eq!(left, ids[3..]);
    assert_eq!(restored.file_stats(&ann), (2, 18));
    assert_eq!(target.database.value::<i64>("SELECT sum(used)::bigint FROM storage_shards"), 18);
    for (id, status) in ids.iter().zip([404, 404, 404, 200, 200]) {
        restored.download(&ann, id).expect(status);
    }
    // Clients that send their uploads again heal the loss.
    let mut known = 0;
    for n in 0..5 {
        let is_known = keyed(&restored, &ann, n).expect(201).has_header("Idempotency-Replayed");
        known += i32::from(is_known);
    }
    assert_eq!((known, restored.file_stats(&ann)), (2, (5, 45)));
    let root = restored.sign_up_admin("root");
    let events = restored.all_events(&root, "action=file.delete");
    assert_eq!(events.len(), 3, "{events:?}");
    for event in events {
        assert_eq!(event["details"], json!({"reason": "damaged in the backup"}));
    }
}
