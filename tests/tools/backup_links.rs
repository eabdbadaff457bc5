//! Contents that a backup links to the last one: what has rotted there is not taken over, and the data directory must
//! have them.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::harness::*;

fn content(backup: &Path, id: &str) -> PathBuf {
    backup.join("files").join(id)
}

/// Makes a backup with these further arguments.
fn backup(api: &Server, backups: &Backups, arguments: &[&str]) -> Output {
    api.run_beside(&[&backups.arguments()[..], arguments].concat())
}

/// Changes the content of a file to something else of the same size.
fn rot(path: &Path) {
    let mut bytes = fs::read(path).expect("a content");
    bytes[0] ^= 1;
    fs::write(path, bytes).expect("changed");
}

#[test]
fn a_copy_that_has_rotted_in_the_last_backup_is_named_and_made_anew() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let [rotten, cut, kept] =
        ["rotten", "cut", "kept"].map(|text| api.new_file(&ann, "a.txt", text));
    let (first, printed) = backups.make(&api);
    assert!(printed.contains("before; 3 of 3 contents read and right, in "), "{printed}");
    rot(&content(&first, &rotten));
    fs::write(content(&first, &cut), "cu").expect("cut");
    let output = backup(&api, &backups, &[]).exits(0);
    let expected = "2 copied, 1 linked to the backup before; 3 of 3 contents read and right, in ";
    assert!(output.out().contains(expected), "{}", output.out());
    for (id, fault) in
        [(&rotten, "has another SHA-256 than is recorded"), (&cut, "has 2 bytes, not 3")]
    {
        let line = format!("{} {fault}: the content is copied anew", content(&first, id).display());
        assert!(output.err().contains(&line), "{}", output.err());
    }
    assert!(!output.err().contains(&kept), "{}", output.err());
    let second = backups.whole().pop().expect("a backup");
    api.run_beside(&["backup", "--verify", second.to_str().expect("a path")]).exits(0);
    for id in [&rotten, &cut, &kept] {
        assert_eq!(fs::metadata(api.data.content(id)).expect("a content").nlink(), 1);
    }
    // Where the data directory has rotted, too, there is nothing to take.
    rot(&content(&second, &rotten));
    rot(&api.data.content(&rotten));
    let output = backup(&api, &backups, &[]).exits(1);
    assert!(output.out().contains("has another SHA-256 than is recorded"), "{}", output.out());
    assert_eq!((backups.whole().len(), backups.partial().len()), (2, 1));
}

#[test]
fn a_content_that_only_the_last_backup_has_is_missed() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let [lost, cut] = ["lost", "cut"].map(|text| api.new_file(&ann, "a.txt", text));
    backups.make(&api);
    fs::remove_file(api.data.content(&lost)).expect("removed");
    fs::write(api.data.content(&cut), "cu").expect("cut");
    let output = backup(&api, &backups, &["--verify-share", "1/1000"]).exits(1);
    for (id, fault) in [(lost, "is missing"), (cut, "has 2 bytes, not 3")] {
        let line = format!("files/{id} (\"a.txt\", owner ann) {fault}\n");
        assert!(output.out().contains(&line), "{}", output.out());
    }
    assert_eq!((backups.whole().len(), backups.partial().len()), (1, 1));
}

#[test]
fn a_content_that_has_rotted_in_the_data_directory_is_named_although_the_last_backup_has_it_whole()
{
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let [rotten, _] = ["rotten", "kept"].map(|text| api.new_file(&ann, "a.txt", text));
    backups.make(&api);
    rot(&api.data.content(&rotten));
    let output = backup(&api, &backups, &[]).exits(1);
    let line =
        format!("files/{rotten} (\"a.txt\", owner ann) has another SHA-256 than is recorded\n");
    assert!(
        output.out().starts_with(&line) && output.out().contains(" is whole: "),
        "{}",
        output.out()
    );
    let advice = "the backup is whole, but 1 of its contents have rotted in the data directory: copy them back from ";
    assert!(output.err().contains(advice), "{}", output.err());
    assert_eq!((backups.whole().len(), backups.partial().len()), (2, 0));
    // Of two shares one has it.
    let half = ["--verify-share", "1/2"];
    let halves = [(); 2].map(|()| backup(&api, &backups, &half).status.success());
    assert_eq!(halves.iter().filter(|is_well| **is_well).count(), 1);
    // As the message says.
    let newest = backups.whole().pop().expect("a backup");
    fs::copy(content(&newest, &rotten), api.data.content(&rotten)).expect("restored");
    let output = backup(&api, &backups, &[]).exits(0);
    let expected = "0 copied, 2 linked to the backup before; 2 of 2 contents read and right, in ";
    assert!(output.out().contains(expected), "{}", output.out());
}

#[test]
fn of_linked_contents_a_share_is_read_and_the_last_line_says_how_many_were_right() {
    const COUNT: usize = 200;
    let (api, backups) = (Server::start(&[]), Backups::create());
    fill(&api, COUNT);
    let (first, _) = backups.make(&api);
    for entry in fs::read_dir(first.join("files")).expect("contents") {
        rot(&entry.expect("an entry").path());
    }
    let output = backup(&api, &backups, &["--verify-share", "1/4"]).exits(0);
    let read = output.err().lines().filter(|line| line.contains("has another SHA-256")).count();
    // A quarter of random ids.
    assert!((20..=90).contains(&read), "{read}");
    let expected = format!(
        "{read} copied, {} linked to the backup before; {read} of {COUNT} contents read and right, in ",
        COUNT - read
    );
    assert!(output.out().contains(&expected), "{}", output.out());
    // All are read where nothing is said.
    let output = backup(&api, &backups, &[]).exits(0);
    let expected = format!(
        "{} copied, {read} linked to the backup before; {COUNT} of {COUNT} contents read",
        COUNT - read
    );
    assert!(output.out().contains(&expected), "{}", output.out());
    for wrong in ["0", "1/0", "2/3", "7%"] {
        backup(&api, &backups, &["--verify-share", wrong]).exits(2);
    }
    backup(&api, &backups, &["--verify", "--verify-share", "1/2"]).exits(2);
}

#[test]
fn symbolic_links_in_the_last_backup_are_not_taken_for_contents() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let file = api.new_file(api.sign_up("ann"), "a.txt", "content");
    let (first, _) = backups.make(&api);
    fs::remove_file(content(&first, &file)).expect("removed");
    symlink(api.data.content(&file), content(&first, &file)).expect("a link");
    let is_copy = |backup: &Path| {
        let found = fs::symlink_metadata(content(backup, &file)).expect("a content");
        assert!(found.is_file() && found.nlink() == 1, "{found:?}");
        assert_eq!(fs::metadata(api.data.content(&file)).expect("a content").nlink(), 1);
    };
    let output = backup(&api, &backups, &["--verify-share", "1/1000"]).exits(0);
    assert!(output.err().contains(" is not a file: "), "{}", output.err());
    let second = backups.whole().pop().expect("a backup");
    is_copy(&second);
    // The same with all contents.
    fs::remove_dir_all(second.join("files")).expect("removed");
    symlink(api.data.join("files"), second.join("files")).expect("a link");
    let output = backup(&api, &backups, &[]).exits(0);
    assert!(output.out().contains("1 copied, 0 linked"), "{}", output.out());
    is_copy(&backups.whole().pop().expect("a backup"));
}
