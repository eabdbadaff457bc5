//! A file system without hard links, such as exFAT, SMB and some of FUSE, serves as data directory and takes backups.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use crate::harness::*;

/// A library that refuses to make hard links in every process that loads it, with the error of such file systems.
const REFUSING: &str = "#include <errno.h>
    int link(const char *from, const char *to) { errno = EPERM; return -1; }
    int linkat(int a, const char *from, int b, const char *to, int flags) { errno = EPERM; return -1; }";

/// Compiles the library.
fn refusing_library(directory: &Directory) -> PathBuf {
    let (source, library) = (directory.join("refusing.c"), directory.join("refusing.so"));
    fs::write(&source, REFUSING).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(compiler.status().expect("a C compiler").success());
    let mut link = Command::new("ln");
    link.env("LD_PRELOAD", &library).arg(&source).arg(directory.join("link"));
    assert!(!link.output().expect("ln").status.success(), "it has no effect");
    library
}

#[test]
fn a_file_system_without_hard_links_serves_and_is_backed_up_and_restored() {
    let directory = Directory::create();
    let library = refusing_library(&directory);
    let settings = [
        ("LD_PRELOAD", library.to_str().expect("a path")),
        // So that the secret is made, as well as the installation id.
        ("CLOAKROOM_JWT_SECRET", ""),
    ];
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let services = parallel(4, |_| Server::start_with(&database, &data, &settings));
    // All have the same secret.
    let ann = services[0].sign_up("ann");
    services.iter().for_each(|api| drop(api.me(&ann).expect(200)));
    let api = &services[0];
    let file = api.new_file(&ann, "a.txt", "content");
    let made = Installation { database: database.clone(), data: data.clone() };
    assert_eq!(made.entries(), ["files", "installation-id", "jwt-secret", "tmp", "trash"]);
    let backups = Backups::create();
    let run = |place: &Installation, arguments: &[&str]| place.run(arguments, &settings).exits(0);
    run(&made, &backups.arguments()).prints("1 copied, 0 linked to the backup before");
    // A copy stands in the place of a link.
    run(&made, &backups.arguments()).prints("1 copied, 0 linked to the backup before");
    let backup = backups.whole().pop().expect("a backup");
    let content = backup.join("files").join(&file);
    assert_eq!(fs::metadata(&content).expect("a content").nlink(), 1);
    let backup = backup.to_str().expect("a path");
    run(&made, &["backup", "--verify", backup]);
    let target = Installation::empty();
    run(&target, &["restore", backup]);
    run(&target, &["check"]);
    let restored = Server::start_with(&target.database, &target.data, &settings);
    let ann = restored.sign_in("ann");
    assert_eq!(restored.download(&ann, &file).expect(200).text(), "content");
    assert_eq!(target.entries().iter().filter(|name| name.starts_with("jwt-secret")).count(), 1);
}
