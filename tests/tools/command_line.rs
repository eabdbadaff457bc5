//! What all commands have in common: progress, settings, exit statuses.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::*;

#[test]
fn a_command_shows_its_progress_on_a_terminal_and_nowhere_else() {
    let (api, [user]) = Server::with_users(&[], ["ann"]);
    api.new_file(&user, "a.txt", "text");
    let terminal = Terminal::start(command(&api.database.url, &api.data, &[]), "check");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.starts_with("comparing contents: 0 of 1\n"), "{screen:?}");
    assert_eq!(api.run_beside(&["check"]).exits(0).err(), "");
}

/// What production refuses, a misspelt name, and nonsense for settings of every kind.
const BAD_SETTINGS: &[(&str, &str)] = &[
    ("CLOAKROOM_ENV", "production"),
    ("CLOAKROOM_ADMIN_PASSWORD", PASSWORD),
    ("CLOAKROOM_JWT_SECRET", ""),
    ("CLOAKROOM_AUTH_ENABLED", "false"),
    ("CLOAKROOM_LISTN", "x"),
    ("CLOAKROOM_LISTEN", "x"),
    ("CLOAKROOM_LOG", "x"),
    ("CLOAKROOM_DATABASE_POOL_SIZE", "x"),
    ("CLOAKROOM_SCRYPT", "x"),
    ("CLOAKROOM_TRASH_DAYS", "x"),
    ("CLOAKROOM_ERROR_FORMAT", "x"),
    ("CLOAKROOM_SMTP_URL", "x"),
    ("CLOAKROOM_MAIL_FROM", "x"),
    ("CLOAKROOM_MAX_UPLOAD_SIZE", "x"),
];

#[test]
fn a_command_asks_only_for_the_settings_it_uses_also_in_production() {
    let (database, server) = (Database::create(), SmtpServer::start(SmtpOptions::default()));
    let url = server.url();
    let mail = mail_settings(&url);
    let used = [
        ("CLOAKROOM_DATABASE_URL", &*database.url),
        ("CLOAKROOM_DATABASE_POOL_SIZE", ""),
        ("CLOAKROOM_SCRYPT", "4,8,1"),
        ("CLOAKROOM_TRASH_DAYS", ""),
    ];
    let without_database = BAD_SETTINGS.iter().filter(|(_, value)| *value == "x");
    let without_database = without_database.map(|(name, _)| (*name, "")).collect::<Vec<_>>();
    let mail = [&without_database[..], &mail, &[("CLOAKROOM_DATABASE_POOL_SIZE", "x")]].concat();
    let url = "is not set; allowed: a PostgreSQL URL, such as postgres://user:password@host/database, or \
               key/value text, such as host=localhost dbname=cloakroom";
    let cost = "holds \"x\"; allowed: log2 N (1 to 24), r (1 to 32) and p (1 to 64), at most 1 GiB a hash, \
                such as 14,8,5";
    let days = "holds \"x\"; allowed: a whole number from 0 to 3650";
    let format = "holds \"x\"; allowed: detail, envelope";
    let sender = "holds \"x\"; allowed: an e-mail address, such as Cloakroom <noreply@example.com>";
    // The command, the settings that it uses, one of them, a bad value of it, and what is said about that.
    for (arguments, used, name, bad, fault) in [
        (&["migrate"][..], &used[..], "CLOAKROOM_DATABASE_URL", "", url),
        (&["audit"], &used, "CLOAKROOM_DATABASE_URL", "", url),
        (&["create-admin", "--email", "a@example.com"], &used, "CLOAKROOM_SCRYPT", "x", cost),
        (&["gc"], &used, "CLOAKROOM_TRASH_DAYS", "x", days),
        (&["adopt-data-dir", "none"], &used, "CLOAKROOM_DATABASE_URL", "", url),
        (&["send-test-mail", "--to", "a@example.com"], &mail, "CLOAKROOM_MAIL_FROM", "x", sender),
        (&["openapi"], &mail, "CLOAKROOM_ERROR_FORMAT", "x", format),
    ] {
        let settings = [BAD_SETTINGS, used].concat();
        run("", arguments, &settings).exits(0);
        let text = run("", arguments, &[&settings[..], &[(name, bad)]].concat()).exits(2).err();
        let expected = format!("cloakroom cannot start with these settings:\n  {name} {fault}\n");
        assert!(text.starts_with(&expected), "{arguments:?}: {text}");
    }
    for command in ["config", "serve"] {
        let text = run("", &[command], BAD_SETTINGS).exits(2).err();
        // A bad secret is not set, and a setting that production needs is one more fault.
        for name in ["JWT_SECRET is not set", "AUTH_ENABLED is false", "DATABASE_URL is not set"] {
            assert!(text.contains(&format!("\n  CLOAKROOM_{name}; ")), "{name}: {text}");
        }
        for (name, _) in BAD_SETTINGS.iter().filter(|(_, value)| *value == "x") {
            assert!(text.contains(&format!("\n  {name} ")), "{name}: {text}");
        }
    }
}

#[test]
fn wrong_arguments_are_status_2_of_every_command_and_a_database_that_does_not_answer_is_1() {
    for arguments in [
        "nonsense",
        "serve nonsense",
        "migrate nonsense",
        "config nonsense",
        "openapi nonsense",
        "create-admin",
        "doctor nonsense",
        "audit nonsense",
        "gc nonsense",
        "check nonsense",
        "backup",
        "restore",
        "import-files",
        "import-files directory",
        "import-files --owner ann",
        "import-users",
        "import-users a.csv b.csv",
        "send-test-mail",
        "adopt-data-dir",
        "adopt-data-dir nonsense",
    ] {
        run(NOWHERE, &arguments.split(' ').collect::<Vec<_>>(), &[]).exits(2);
    }
    for arguments in [["backup", "backups"], ["restore", "none"]] {
        run(NOWHERE, &arguments, &[("CLOAKROOM_DATABASE_POOL_SIZE", "x")]).exits(2);
    }
    run(NOWHERE, &["audit"], &[]).exits(1);
}

#[test]
fn a_taken_port_is_reported() {
    let api = Server::start(&[]);
    let output = run(&api.database.url, &["serve"], &[("CLOAKROOM_LISTEN", &api.address)]);
    output.exits(1).reports(&format!("cannot listen on {}", api.address));
}

#[test]
fn the_version_is_told_and_help_is_at_most_a_hundred_columns_wide() {
    let version = run(NOWHERE, &["--version"], &[]).exits(0).out();
    assert_eq!(version, format!("cloakroom {}\n", env!("CARGO_PKG_VERSION")));
    let help = |arguments: &[&str]| run("", &[arguments, &["--help"]].concat(), &[]).exits(0).out();
    let commands = help(&[]);
    let names = commands.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = names.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.filter(|name| *name != "help").collect();
    assert!(names.contains(&"serve") && names.contains(&"send-test-mail"), "{names:?}");
    let all = names.iter().map(|name| help(&[name])).collect::<String>() + &commands;
    assert_eq!(all.lines().find(|line| line.chars().count() > 100), None);
}

#[test]
fn a_reader_that_closes_the_pipe_early_is_no_failure() {
    let api = Server::start(&[]);
    let pipe = || std::io::pipe().expect("a pipe").1;
    for arguments in [
        "openapi",
        "config",
        "migrate",
        "audit",
        "gc",
        "check",
        "backup backups",
        "--help",
        "create-admin --email a@example.com",
    ] {
        let password = [("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)];
        let mut command = command(&api.database.url, &api.data, &password);
        let output = command.args(arguments.split(' ')).stdout(pipe()).output().expect("it runs");
        assert_eq!(output.exits(0).err(), "", "{arguments:?}");
    }
    // Standard error may be closed, too; the status says that the command failed.
    let mut command = command("", &api.data, &[]);
    command.arg("config").stderr(pipe()).output().expect("it runs").exits(2);
}

#[test]
fn a_command_that_a_signal_ends_has_the_status_of_the_signal() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let (backup, _) = backups.make(&api);
    let backup = backup.to_str().expect("a path of the test");
    let proxy = DatabaseProxy::start(&api.database.url);
    proxy.hold(b"");
    let settings = [("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)];
    for arguments in [
        &["migrate"][..],
        &["doctor"],
        &["create-admin", "--email", "root@example.com"],
        &["gc"],
        &["check"],
        &["check", "--remove-lost", UNKNOWN_ID],
        &backups.arguments(),
        &["restore", backup],
        &["audit"],
        &["audit", "--follow"],
        &["import-files", "/", "--owner", "ann"],
        &["import-users", "/dev/null"],
        &["adopt-data-dir", "none"],
    ] {
        for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let held = proxy.held();
            let mut command = command(&proxy.url, &api.data, &settings);
            command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = command.spawn().expect("the binary runs");
            wait_until(|| proxy.held() > held);
            kill_process(Pid::from_child(&process), signal).expect("it runs");
            let ended = process.wait().expect("it ends");
            assert_eq!(ended.code(), Some(status), "{arguments:?}");
        }
    }
}

/// Fails unless an output names twenty things of this kind, and then how many more there are.
#[track_caller]
fn names_twenty(printed: &str, kind: &str, more: &str) {
    let lines: Vec<_> = printed.lines().collect();
    let named = lines.iter().filter(|line| line.contains(kind)).count();
    assert_eq!(named, 20, "{kind}: {printed}");
    let last = lines.iter().rposition(|line| line.contains(kind)).expect("a line");
    assert_eq!(lines.get(last + 1), Some(&more), "{kind}: {printed}");
}

#[test]
fn of_each_kind_twenty_are_named_and_then_how_many_more_unless_all_are_to_be() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    fill(&api, 70);
    let whole = backups.make(&api).0;
    let whole = whole.to_str().expect("a path of the test");
    let ids = api.database.texts("SELECT id::text FROM files ORDER BY id");
    ids[..23].iter().for_each(|id| fs::remove_file(api.data.content(id)).expect("removed"));
    for n in 1..=24 {
        let path = api.data.content(&uuid(n));
        fs::write(&path, "").expect("a file");
        make_older(&path, 3);
    }
    let run = |arguments: &[&str]| {
        let limited = api.run_beside(arguments).exits(1).out();
        let all = api.run_beside(&[arguments, &["--all"]].concat()).exits(1).out();
        assert!(!all.contains("more"), "{all}");
        (limited, all)
    };
    let (limited, all) = run(&["check"]);
    names_twenty(&limited, ") is missing", "fault   and 3 more");
    names_twenty(&limited, "has no record", "fault   and 4 more");
    assert!(limited.ends_with("\n47 faults, no warnings.\n"), "{limited}");
    let count = |text: &str, part: &str| text.lines().filter(|line| line.contains(part)).count();
    let kinds = [") is missing", "has no record"].map(|kind| count(&all, kind));
    assert_eq!(kinds, [23, 24]);
    let (limited, all) = run(&backups.arguments());
    names_twenty(&limited, ") is missing", "and 3 more");
    assert_eq!(count(&all, ") is missing"), 23);
    let limited = api.run_beside(&["gc", "--confirm"]).exits(0).out();
    names_twenty(&limited, "moved /", "and 4 more");

    for (n, id) in ids[..22].iter().enumerate() {
        let path = Path::new(whole).join("files");
        fs::rename(path.join(id), path.join(n.to_string())).expect("renamed");
    }
    let target = Installation::empty();
    for arguments in [&["restore", whole], &["backup", whole]] {
        let all = if arguments[0] == "backup" { vec!["--verify", "--all"] } else { vec!["--all"] };
        let run = |more: &[&str]| target.run(&[&arguments[..], more].concat(), &[]).exits(1).out();
        let limited = run(&all[..all.len() - 1]);
        names_twenty(&limited, " is missing", "and 2 more");
        names_twenty(&limited, " is not in contents.sha256", "and 2 more");
        assert_eq!(count(&run(&all), " is missing"), 22);
    }
}
