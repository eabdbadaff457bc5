//! The command `import-files`: a directory tree becomes files of an account.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::*;

/// The arguments that import a directory for `ann`.
fn arguments<'a>(tree: &'a Directory, more: &[&'a str]) -> Vec<&'a str> {
    let tree = tree.path().to_str().expect("a path of the test");
    [&["import-files", tree, "--owner", "ann"], more].concat()
}

fn import(api: &Server, tree: &Directory, more: &[&str]) -> Output {
    api.run_beside(&arguments(tree, more))
}

/// Makes a file, and the directories on the way to it.
fn put(tree: &Directory, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = tree.join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
    fs::write(path, content).expect("a file");
}

/// Folder, name and type of all files of a user, as the service shows them.
fn shown(api: &Server, user: &Tokens) -> BTreeSet<[String; 3]> {
    let text = |file: &Value, field: &str| file[field].as_str().expect("a text").to_owned();
    let fields = ["folder", "filename", "content_type"];
    api.all_files(user).iter().map(|file| fields.map(|field| text(file, field))).collect()
}

/// What must not change: records with their versions, events, and contents with their times.
fn state_of(api: &Server) -> impl PartialEq + std::fmt::Debug {
    let records =
        "SELECT concat(id, ' ', folder, ' ', filename, ' ', version) FROM files ORDER BY 1";
    let events = "(SELECT FROM audit_events) e";
    let contents: Vec<_> = api.data.contents();
    (api.database.texts(records), api.database.count(events), contents)
}

/// The last line of the command.
fn summed_up(files: &str, verb: &str, there: usize, passed_over: [usize; 3]) -> String {
    let [links, special, systems] = passed_over;
    format!(
        "{verb}: {files}; there already: {there}; passed over: symbolic links: {links}, special files: {special}, \
         other file systems: {systems}.\n"
    )
}

/// The content of a file of the tree, which tells its path.
fn content_of(path: &str) -> String {
    format!("the content of {path}")
}

#[test]
fn a_tree_is_there_as_it_was_and_a_second_run_changes_nothing() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let (tree, outside) = (Directory::create(), Directory::create());
    let (long, deep) = ("x".repeat(255), ["d"; 16].join("/"));
    let regular = [
        "a/in a".to_owned(),
        "a/b/1".into(),
        "a-b/1".into(),
        "a b/1".into(),
        "a.b/1".into(),
        "\u{c4}/composed".into(),
        "A\u{308}/decomposed".into(),
        "\u{c4}.txt".into(),
        "A\u{308}.txt".into(),
        format!("{long}/{long}"),
        format!("{deep}/deepest"),
        ".hidden".into(),
        ".git/config".into(),
        "empty/".to_owned() + &"y".repeat(255),
    ];
    regular.iter().for_each(|path| put(&tree, path, content_of(path)));
    put(&tree, "empty/empty", "");
    put(&tree, format!("{deep}/d/too deep"), "x");
    put(&tree, "back\\slash/x", "x");
    put(&tree, Path::new(OsStr::from_bytes(b"not\xff/x")), "x");
    put(&tree, Path::new(OsStr::from_bytes(b"x\xff")), "x");
    fs::create_dir(tree.join("nothing")).expect("a directory");
    put(&outside, "secret", "secret");
    for (target, link) in [
        (outside.path(), "link to a directory"),
        (&outside.join("secret"), "link to a file"),
        (Path::new("a"), "link inside"),
        (Path::new("nowhere"), "a/dangling"),
    ] {
        symlink(target, tree.join(link)).expect("a link");
    }
    let _socket = UnixListener::bind(tree.join("socket")).expect("a socket");
    assert!(Command::new("mkfifo").arg(tree.join("a/pipe")).status().expect("mkfifo").success());

    let size: usize = regular.iter().map(|path| content_of(path).len()).sum();
    let output = import(&api, &tree, &[]).exits(1).reports("cloakroom: 4 files refused\n");
    let printed = output.out();
    for refused in [
        format!("\"{deep}/d/too deep\": Must be at most 16 folders deep\n"),
        "\"back\\\\slash/x\": Must not contain a backslash\n".into(),
        "\"not\\xFF/x\": Must be UTF-8\n".into(),
        "\"x\\xFF\": Must be UTF-8\n".into(),
    ] {
        assert!(printed.contains(&refused), "{refused}: {printed}");
    }
    let files = format!("15 files ({:.2} KiB)", size as f64 / 1024.0);
    assert!(printed.ends_with(&summed_up(&files, "imported", 0, [4, 2, 0])), "{printed}");
    assert_eq!(printed.lines().count(), 5, "{printed}");

    // A service that ran meanwhile serves the same bytes, each in its folder.
    let mut found = BTreeSet::new();
    for file in api.all_files(&ann) {
        let [id, hash, folder, name] = ["id", "file_hash", "folder", "filename"]
            .map(|field| file[field].as_str().expect("a text").to_owned());
        let content = api.download(&ann, &id).expect(200).text();
        assert_eq!(hash, sha256(content.as_bytes()));
        let folder = folder.trim_start_matches('/');
        found.insert((if folder.is_empty() { name } else { format!("{folder}/{name}") }, content));
    }
    let nfc = |path: &str| path.replace("A\u{308}", "\u{c4}");
    let mut expected: BTreeSet<_> =
        regular.iter().map(|path| (nfc(path), content_of(path))).collect();
    expected.insert(("empty/empty".into(), String::new()));
    assert_eq!(found, expected);
    // As an upload, by the owner, from no address.
    let events = "audit_events WHERE action = 'file.upload' AND address IS NULL AND actor_id =";
    let events = format!("{events} '{}'", ann.id());
    assert!(api.database.count(&events) > 0);
    assert_eq!(api.file_stats(&ann), (15, size as i64));
    api.run_beside(&["check"]).exits(0).prints("no faults, no warnings.");

    let before = state_of(&api);
    let printed = import(&api, &tree, &[]).exits(1).out();
    let last = summed_up("0 files (0 bytes)", "imported", 15, [4, 2, 0]);
    assert!(printed.ends_with(&last), "{printed}");
    assert_eq!(state_of(&api), before);
    // The same bytes under another name, other bytes under the same name, and another folder are other files.
    put(&tree, "a/copy", content_of("a/in a"));
    put(&tree, "a/in a", content_of("a/IN A"));
    let printed = import(&api, &tree, &[]).exits(1).out();
    assert!(printed.contains("2 files (") && printed.contains("already: 14;"), "{printed}");
    let printed = import(&api, &tree, &["--folder", "old/"]).exits(1).out();
    // One level more is too deep for one more.
    assert!(printed.contains("15 files (") && printed.contains("already: 0;"), "{printed}");
    let moved = "files WHERE folder = U&'old\\0001a\\0001b\\0001'";
    assert_eq!((api.database.count(moved), api.database.count("files")), (1, 32));
}

#[test]
fn a_dry_run_says_what_would_be_done_and_changes_nothing() {
    let settings = [("CLOAKROOM_USER_STORAGE_QUOTA", "1000"), ("CLOAKROOM_MAX_UPLOAD_SIZE", "500")];
    let (api, [_]) = Server::with_users(&settings, ["ann"]);
    let tree = Directory::create();
    (0..4).for_each(|n| put(&tree, format!("{n}/x"), numbers(300)));
    put(&tree, "large", numbers(501));
    put(&tree, "program", [0x7f, b'E', b'L', b'F', 2, 1, 1, 0].repeat(8));
    let run = |more: &[&str]| {
        let output =
            command(&api.database.url, &api.data, &settings).args(arguments(&tree, more)).output();
        output.expect("the binary runs").exits(1)
    };
    let (before, listed) = (state_of(&api), listing(api.data.path()));
    let dry = run(&["--dry-run"]).reports("cloakroom: 3 files refused\n").out();
    assert!(dry.ends_with(&summed_up("3 files (900 bytes)", "to be imported", 0, [0; 3])), "{dry}");
    assert!(dry.contains("\"large\": File size exceeds maximum limit (500 bytes)\n"), "{dry}");
    assert!(dry.contains("\"program\": File type not allowed\n"), "{dry}");
    assert!(dry.contains("/x\": Storage quota exceeded\n"), "{dry}");
    assert_eq!((state_of(&api), listing(api.data.path())), (before, listed));
    // It does what it has said.
    let done = run(&[]).out();
    assert!(done.ends_with(&summed_up("3 files (900 bytes)", "imported", 0, [0; 3])), "{done}");
    assert!(api.data.contents().len() == 3 && api.database.count("files") == 3);
    // A small file finds room where a large one has none.
    put(&tree, "small", numbers(100));
    let again = run(&[]).out();
    assert!(again.ends_with(&summed_up("1 file (100 bytes)", "imported", 3, [0; 3])), "{again}");
    let refused = |text: &str| again.matches(text).count();
    assert_eq!((refused("Storage quota exceeded\n"), refused("\": ")), (1, 3), "{again}");
}

#[test]
fn the_statement_decides_about_quotas_that_others_use_up_meanwhile() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let tree = Directory::create();
    put(&tree, "a", "x");
    let change = "UPDATE users SET file_quota = 0 WHERE username = 'ann'";
    let output = api.database.commit_during(change, || import(&api, &tree, &[]));
    output.exits(1).prints("\"a\": Storage quota exceeded\n");
    assert_eq!((api.file_stats(&ann).0, api.data.contents().len()), (0, 0));
}

#[test]
fn types_are_those_that_contents_show_or_else_extensions() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let files: &[(&str, &[u8], Option<&str>, &str)] = &[
        ("a.png", png, Some("image/png"), "image/png"),
        ("picture", png, Some("image/png"), "image/png"),
        ("picture.txt", png, Some("image/png"), "image/png"),
        ("a.html", b"text", Some("text/plain"), "text/plain"),
        ("empty", b"", Some("text/plain"), "text/plain"),
        ("text", b"text", Some("text/plain"), "text/plain"),
        ("a.gif", b"GIF89a\x80", None, "image/gif"),
        ("bytes", b"\xff\0\x01", None, "application/octet-stream"),
        ("a.mp4", b"\xff\0\x01", None, "video/mp4"),
    ];
    for (types, is_any) in [("", false), ("any", true)] {
        let settings = [("CLOAKROOM_ALLOWED_UPLOAD_TYPES", types)];
        let (api, [ann]) = Server::with_users(&settings, ["ann"]);
        let tree = Directory::create();
        files.iter().for_each(|(name, content, ..)| put(&tree, name, content));
        let mut command = command(&api.database.url, &api.data, &settings);
        let output = command.args(arguments(&tree, &[])).output().expect("the binary runs");
        output.exits(i32::from(!is_any));
        let stored = files.iter().filter_map(|(name, _, listed, any)| {
            let stored = if is_any { Some(*any) } else { *listed };
            stored.map(|stored| ["/", name, stored].map(str::to_owned))
        });
        assert_eq!(shown(&api, &ann), stored.collect());
    }
}

#[test]
fn one_that_is_killed_goes_on_when_it_is_run_again() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let tree = Directory::create();
    (0..600).for_each(|n| put(&tree, format!("{}/{n}", n % 7), n.to_string()));
    for least in [100, 300] {
        let mut command = command(&api.database.url, &api.data, &[]);
        let mut process =
            command.args(arguments(&tree, &[])).stdout(Stdio::null()).spawn().expect("it runs");
        wait_until(|| api.database.count("files") >= least);
        process.kill().expect("it runs");
        process.wait().expect("it ends");
    }
    let printed = import(&api, &tree, &[]).exits(0).out();
    assert!(printed.starts_with("imported: "), "{printed}");
    let once = "(SELECT FROM files GROUP BY folder, filename, file_hash) f";
    assert_eq!((api.file_stats(&ann).0, api.database.count(once)), (600, 600));
    let printed = import(&api, &tree, &[]).exits(0).out();
    assert_eq!(printed, summed_up("0 files (0 bytes)", "imported", 600, [0; 3]));
    // What was not recorded yet goes as after a crash.
    api.run_beside(&["check"]).exits(0);
}

#[test]
fn a_file_that_grows_is_passed_over_and_those_of_a_reason_are_named_up_to_twenty() {
    let (api, [_]) = Server::with_users(&[("CLOAKROOM_MAX_UPLOAD_SIZE", "1000000000")], ["ann"]);
    let tree = Directory::create();
    put(&tree, "whole", "x");
    (0..23).for_each(|n| put(&tree, format!("{n}.gif"), b"GIF89a\x80"));
    put(&tree, "log", vec![b'x'; 8 << 20]);
    let is_over = AtomicBool::new(false);
    let (printed, all) = thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = File::options().append(true).open(tree.join("log")).expect("a file");
            while !is_over.load(Ordering::Relaxed) {
                log.write_all(b"x").expect("written");
            }
        });
        let printed = import(&api, &tree, &[]).exits(1).out();
        let all = import(&api, &tree, &["--dry-run", "--all"]).exits(1).out();
        is_over.store(true, Ordering::Relaxed);
        (printed, all)
    });
    assert!(printed.contains("\"log\": changed while it was read\n"), "{printed}");
    let named = |printed: &str| printed.matches(".gif\": File type not allowed\n").count();
    assert!(printed.contains("\nand 3 more\n"), "{printed}");
    assert_eq!((named(&printed), named(&all)), (20, 23), "{all}");
    assert_eq!((api.database.count("files"), api.data.contents().len()), (1, 1));
    import(&api, &tree, &[]).exits(1).prints("1 file (8");
}

/// As many files as are read at a time nearly fill the quota. Each changes while it is read, and so leaves its room to
/// the one that comes after them.
#[test]
fn a_file_that_changes_takes_nothing_of_the_quota() {
    let quota = [("CLOAKROOM_USER_STORAGE_QUOTA", "36M")];
    let (api, [ann]) = Server::with_users(&quota, ["ann"]);
    let tree = Directory::create();
    let logs: Vec<_> = (0..8).map(|n| format!("{n}.txt")).collect();
    logs.iter().for_each(|log| put(&tree, log, vec![b'x'; 4 << 20]));
    put(&tree, "below/other.txt", vec![b'x'; 6 << 20]);
    let is_over = AtomicBool::new(false);
    let printed = thread::scope(|scope| {
        scope.spawn(|| {
            let open = |log| File::options().write(true).open(tree.join(log)).expect("a file");
            let opened: Vec<_> = logs.iter().map(open).collect();
            while !is_over.load(Ordering::Relaxed) {
                opened.iter().for_each(|log| log.write_all_at(b"y", 0).expect("written"));
            }
        });
        let arguments = arguments(&tree, &[]);
        let printed = command(&api.database.url, &api.data, &quota).args(arguments).output();
        is_over.store(true, Ordering::Relaxed);
        printed.expect("the binary runs").exits(1).out()
    });
    assert_eq!(printed.matches("changed while it was read").count(), 8, "{printed}");
    assert_eq!(api.file_stats(&ann), (1, 6 << 20), "{printed}");
}

#[test]
fn an_owner_a_directory_or_a_folder_that_cannot_be_is_refused() {
    let (api, [ann, _]) = Server::with_users(&[], ["ann", "bob"]);
    let tree = Directory::create();
    put(&tree, "a", "x");
    api.database.run("UPDATE users SET is_active = false WHERE username = 'bob'");
    let path = tree.path().to_str().expect("a path of the test");
    let file = tree.join("a").display().to_string();
    for owner in ["bob", "nobody", "", "bob@example.com"] {
        let output = api.run_beside(&["import-files", path, "--owner", owner]).exits(1);
        output.reports(&format!("--owner: no active account is named {owner:?}"));
    }
    for (directory, reason) in [(&*file, "Not a directory"), ("/nowhere", "No such file")] {
        let output = api.run_beside(&["import-files", directory, "--owner", "ann"]).exits(1);
        output.reports(&format!("cloakroom: {directory}: {reason}"));
    }
    import(&api, &tree, &["--folder", "/a/../b"])
        .exits(2)
        .reports("--folder: Must not have a name .");
    api.run_beside(&["import-files", path]).exits(2);
    assert_eq!(api.database.count("files"), 0);
    api.run_beside(&["import-files", path, "--owner", "ANN@example.com"]).exits(0);
    assert_eq!(api.file_stats(&ann).0, 1);
    // What decides about files must be right.
    for setting in ["CLOAKROOM_MAX_UPLOAD_SIZE", "CLOAKROOM_ALLOWED_UPLOAD_TYPES"] {
        let mut command = command(&api.database.url, &api.data, &[(setting, "x")]);
        command.args(arguments(&tree, &[])).output().expect("it runs").exits(2).reports(setting);
    }
}

/// Only root can give files away, and reads all of them.
#[test]
fn contents_are_of_the_owner_of_the_data_directory() {
    let (api, [_]) = Server::with_users(&[], ["ann"]);
    let tree = Directory::create();
    put(&tree, "closed", "x");
    fs::set_permissions(tree.join("closed"), Permissions::from_mode(0o000)).expect("permissions");
    if rustix::process::geteuid().is_root() {
        let chown = ["chown", "-R", "1234:1235"];
        let mut chown = Command::new(chown[0]).args(&chown[1..]).arg(api.data.path()).spawn();
        assert!(chown.as_mut().expect("chown").wait().expect("it ends").success());
        import(&api, &tree, &[]).exits(0);
        let content = fs::metadata(&api.data.contents()[0]).expect("a content");
        assert_eq!((content.uid(), content.gid(), content.mode() & 0o777), (1234, 1235, 0o600));
    } else {
        import(&api, &tree, &[]).exits(1).prints("\"closed\": Permission denied");
    }
}

#[test]
fn it_shows_its_progress_on_a_terminal() {
    let (api, [_]) = Server::with_users(&[], ["ann"]);
    let tree = Directory::create();
    put(&tree, "a", "x");
    let arguments = arguments(&tree, &[]).join(" ");
    let terminal = Terminal::start(command(&api.database.url, &api.data, &[]), &arguments);
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.starts_with("reading files\nimported: 1 file (1 byte);"), "{screen:?}");
}

/// The lines of the page, with the directory of the test in place of the one that it names.
#[test]
fn the_lines_of_the_page_work_as_typed() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let (tree, programs) = (Directory::create(), Directory::create());
    put(&tree, "2026/a.txt", "x");
    symlink(BINARY, programs.join("cloakroom")).expect("a link");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/IMPORT.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, lines) = page.split_once("```sh\n").expect("lines");
    let (lines, _) = lines.split_once("```").expect("their end");
    let lines = lines.replace("/srv/files", &tree.path().display().to_string());
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").expect("a path"));
    let command = command(&api.database.url, &api.data, &[]);
    let settings = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut shell = Command::new("/bin/bash");
    shell.args(["-euo", "pipefail", "-c", &lines]).env_clear().envs(settings).env("PATH", path);
    shell.output().expect("bash runs").exits(0).prints("to be imported: 1 file (1 byte);");
    assert_eq!(shown(&api, &ann).len(), 1);
}
