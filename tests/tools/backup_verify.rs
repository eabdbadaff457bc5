//! `cloakroom backup --verify`: finds what has rotted in a backup.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::harness::*;

/// Verifies a backup, without any settings.
fn verify(backup: &Path) -> Output {
    let mut command = Command::new(BINARY);
    command.env_clear().stdin(Stdio::null()).args(["backup", "--verify"]).arg(backup);
    command.output().expect("the binary runs")
}

/// A backup with five files, and the paths of their contents in the order of their ids.
fn backup_of_five(backups: &Backups) -> (std::path::PathBuf, Vec<std::path::PathBuf>) {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    for n in 0..5 {
        api.new_file(&ann, "a.txt", &format!("content {n}"));
    }
    let (backup, _) = backups.make(&api);
    let ids = names_of(&manifest(&backup)["contents"], "id");
    let paths = ids.iter().map(|id| backup.join("files").join(id)).collect();
    (backup, paths)
}

#[test]
fn a_whole_backup_is_found_whole_without_settings_and_without_a_database() {
    let backups = Backups::create();
    let (backup, _) = backup_of_five(&backups);
    let dump = fs::metadata(backup.join("database.dump")).expect("a dump").len() as f64;
    let printed = verify(&backup).exits(0).out();
    let expected = format!(
        "{} is whole: 1 user, 5 files (45 bytes), and a dump of {:.2} KiB.\n",
        backup.display(),
        dump / 1024.0
    );
    assert_eq!(printed, expected);
}

#[test]
fn everything_that_is_damaged_or_missing_or_not_in_the_manifest_is_named() {
    let backups = Backups::create();
    let (backup, contents) = backup_of_five(&backups);
    fs::write(&contents[0], "content X").expect("changed");
    fs::remove_file(&contents[1]).expect("removed");
    fs::write(&contents[2], "content ").expect("cut");
    fs::remove_file(&contents[3]).expect("removed");
    // Nobody writes to it, so opening it would wait forever.
    assert!(Command::new("mkfifo").arg(&contents[3]).status().expect("mkfifo runs").success());
    fs::write(backup.join("files/other"), "").expect("written");
    fs::remove_file(backup.join("database.dump")).expect("removed");
    let output = verify(&backup).exits(1);
    let name = |n: usize| contents[n].file_name().expect("a name").to_string_lossy().into_owned();
    let expected = [
        "database.dump is missing".to_owned(),
        format!("files/{} has another SHA-256 than is recorded", name(0)),
        format!("files/{} is missing", name(1)),
        format!("files/{} has 8 bytes, not 9", name(2)),
        format!("files/{} is not a file", name(3)),
        "files/other is not in the manifest".to_owned(),
    ];
    assert_eq!(output.out().lines().collect::<Vec<_>>(), expected);
    let summary = format!(
        "cloakroom: {} is damaged: the dump of the database, contents: 4, files that the manifest does not name: 1\n",
        backup.display()
    );
    assert_eq!(output.err(), summary);
}

#[test]
fn one_changed_byte_is_found_wherever_it_is() {
    let backups = Backups::create();
    let (backup, contents) = backup_of_five(&backups);
    for path in [&contents[4], &backup.join("database.dump"), &backup.join("manifest.json")] {
        let whole = fs::read(path).expect("a file");
        for at in [0, whole.len() / 2, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(path, changed).expect("changed");
            let output = verify(&backup).exits(1);
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = output.out() + &output.err();
            assert!(text.contains(&name), "{name} at {at}: {text}");
        }
        fs::write(path, whole).expect("as it was");
    }
    verify(&backup).exits(0);
}

#[test]
fn what_is_no_whole_backup_is_refused_by_name() {
    let backups = Backups::create();
    let (backup, _) = backup_of_five(&backups);
    let partial = backup.with_extension("partial");
    fs::rename(&backup, &partial).expect("renamed");
    let error = verify(&partial).exits(1).err();
    assert!(error.contains(".partial is not whole"), "{error}");
    fs::rename(&partial, &backup).expect("renamed");
    let error = verify(backups.path()).exits(1).err();
    assert!(error.contains("is no backup, because it has no manifest.json"), "{error}");
    let error = verify(&backup.join("none")).exits(1).err();
    assert!(error.contains("none: No such file or directory"), "{error}");
    let mut both = Command::new(BINARY);
    both.args(["backup", "--verify", "--keep", "1"])
        .arg(&backup)
        .output()
        .expect("it runs")
        .exits(2);
}

#[test]
fn symbolic_links_are_no_part_of_a_backup_and_restored_neither() {
    let (backups, elsewhere) = (Backups::create(), Directory::create());
    let (backup, contents) = backup_of_five(&backups);
    let id = contents[0].file_name().expect("a name").to_string_lossy().into_owned();
    for (name, fault) in [
        (&*format!("files/{id}"), format!("files/{id} is not a file")),
        ("database.dump", "database.dump is not a file".into()),
        ("manifest.json", "manifest.json: it is not a file".into()),
        ("files", "files is missing or not a directory".into()),
    ] {
        // What it leads to is as it should be.
        let (path, moved) = (backup.join(name), elsewhere.join("moved"));
        fs::rename(&path, &moved).expect("moved");
        symlink(&moved, &path).expect("a link");
        let output = verify(&backup).exits(1);
        assert!((output.out() + &output.err()).contains(&fault), "{name}: {}", output.err());
        let target = Target::create();
        let output = target.restore(&backup).exits(1);
        assert!((output.out() + &output.err()).contains(&fault), "{name}: {}", output.err());
        target.is_untouched();
        fs::remove_file(&path).expect("removed");
        fs::rename(&moved, &path).expect("moved back");
    }
    verify(&backup).exits(0);
}
