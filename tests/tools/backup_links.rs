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

/// What happens to a content.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Nothing,
    Rots,
    Cut,
    Removed,
    /// A symbolic link to the content in the data directory, or to all of them, takes its place.
    Linked,
    AllLinked,
}

/// Changes one of the contents that are in this directory; `original` is that in the data directory.
fn change(contents: &Path, id: &str, change: Change, original: &Path) {
    let path = contents.join(id);
    match change {
        Change::Nothing => {}
        Change::Rots => rot(&path),
        Change::Cut => fs::write(path, "con").expect("cut"),
        Change::Removed => fs::remove_file(path).expect("removed"),
        Change::Linked => {
            fs::remove_file(&path).expect("removed");
            symlink(original, path).expect("a link");
        }
        Change::AllLinked => {
            fs::remove_dir_all(contents).expect("removed");
            symlink(original.parent().expect("a directory"), contents).expect("a link");
        }
    }
}

#[test]
fn a_content_is_linked_copied_anew_or_missed_by_what_the_last_backup_and_the_data_directory_have() {
    use Change::{AllLinked, Cut, Linked, Nothing, Removed, Rots};
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let [file, _] = ["content", "other"].map(|text| api.new_file(&ann, "a.txt", text));
    let original = api.data.content(&file);
    let hash = "has another SHA-256 than is recorded";
    let (kept, anew) = ("0 copied, 2 linked to the backup before; ", "1 copied, 1 linked to ");
    let (rotted, lost) = ("the backup is whole, but 1 of its contents have rotted", "1 in all");
    // What happens to the content in the last backup and to that in the data directory, what is said of the content,
    // whether the new backup is whole, the status, and what else is said.
    for (in_last, in_data, fault, is_whole, status, words) in [
        (Nothing, Nothing, "", true, 0, kept),
        (Removed, Nothing, "", true, 0, anew),
        (Rots, Nothing, hash, true, 0, anew),
        (Cut, Nothing, "has 3 bytes, not 7", true, 0, anew),
        (Linked, Nothing, "is not a file", true, 0, anew),
        (AllLinked, Nothing, "", true, 0, "2 copied, 0 linked to "),
        (Nothing, Rots, hash, true, 1, rotted),
        (Nothing, Cut, "has 3 bytes, not 7", false, 1, lost),
        (Nothing, Removed, "is missing", false, 1, lost),
        (Rots, Rots, hash, false, 1, lost),
    ] {
        let backups = Backups::create();
        let (first, printed) = backups.make(&api);
        assert!(printed.contains("2 copied, 0 linked to the backup before; 2 of 2 contents read"));
        change(&first.join("files"), &file, in_last, &original);
        change(&api.data.join("files"), &file, in_data, &original);
        let output = backup(&api, &backups, &[]).exits(status);
        let said = output.out() + &output.err();
        let place = if in_data == Nothing { first.join("files") } else { "files".into() };
        let named = fault.is_empty()
            || said.lines().any(|line| {
                line.contains(&*place.join(&file).to_string_lossy()) && line.contains(fault)
            });
        assert!(named && said.contains(words), "{in_last:?} {in_data:?}: {said}");
        assert_eq!(said.contains("2 of 2 contents read and right, in "), status == 0, "{said}");
        assert_eq!(backups.partial().is_empty(), is_whole);
        if is_whole {
            let second = backups.whole().pop().expect("a backup");
            let found = fs::symlink_metadata(content(&second, &file)).expect("a content");
            let links = if words == kept || words == rotted { 2 } else { 1 };
            assert!(found.is_file() && found.nlink() == links, "{in_last:?} {found:?}");
            api.run_beside(&["backup", "--verify", second.to_str().expect("a path")]).exits(0);
            assert_eq!(fs::read_to_string(content(&second, &file)).expect("text"), "content");
        }
        fs::write(&original, "content").expect("as it was");
        // Contents are never links to the data directory.
        assert_eq!(fs::metadata(&original).expect("a content").nlink(), 1);
    }
}

#[test]
fn of_linked_contents_a_share_is_read_and_the_size_of_all_is_compared() {
    const COUNT: usize = 200;
    let (api, backups) = (Server::start(&[]), Backups::create());
    fill(&api, COUNT);
    let (first, _) = backups.make(&api);
    entries(first.join("files")).iter().for_each(|path| rot(path));
    let output = backup(&api, &backups, &["--verify-share", "1/4"]).exits(0);
    let read = output.err().lines().filter(|line| line.contains("has another SHA-256")).count();
    // A quarter of random ids.
    assert!((20..=90).contains(&read), "{read}");
    let rest = COUNT - read;
    let linked = "linked to the backup before";
    output.prints(&format!(
        "{read} copied, {rest} {linked}; {read} of {COUNT} contents read and right, in "
    ));
    // All are read where nothing is said.
    let expected = format!("{rest} copied, {read} {linked}; {COUNT} of {COUNT} contents read");
    backup(&api, &backups, &[]).exits(0).prints(&expected);
    let cut = &listed(&first)[0].0;
    fs::write(api.data.content(cut), "").expect("cut");
    let output = backup(&api, &backups, &["--verify-share", "1/1000"]).exits(1);
    output.prints(&format!("files/{cut} ")).prints(" has 0 bytes, not ");
    for wrong in ["0", "1/0", "2/3", "7%"] {
        backup(&api, &backups, &["--verify-share", wrong]).exits(2);
    }
    backup(&api, &backups, &["--verify", "--verify-share", "1/2"]).exits(2);
}
