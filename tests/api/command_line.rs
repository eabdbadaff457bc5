//! The commands of the binary, and starting several processes at once.

use std::fs::File;

use crate::harness::*;

#[test]
fn several_processes_may_start_at_once_on_an_empty_database() {
    let database = Database::create();
    let servers = parallel(5, |_| Server::start_on(&database, &[]));
    let ann = servers[0].sign_up("ann");
    for api in &servers {
        api.me(&ann).expect(200);
    }
    let applied = servers.iter().filter(|api| api.log().contains("V1__accounts applied")).count();
    assert_eq!(applied, 1);
}

#[test]
fn migrate_may_be_run_again() {
    let database = Database::create();
    for _ in 0..2 {
        let text = run(&database.url, &["migrate"], &[]).exits(0).out();
        assert_eq!(text, "The database is up to date.\n");
    }
}

#[test]
fn a_newer_schema_is_refused_with_both_versions() {
    let database = Database::create();
    run(&database.url, &["migrate"], &[]).exits(0);
    let newest: i32 = database.value("SELECT max(version) FROM refinery_schema_history");
    database.run(
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
         SELECT 999, 'later', applied_on, checksum FROM refinery_schema_history LIMIT 1",
    );
    for command in ["serve", "migrate"] {
        let text = run(&database.url, &[command], &[]).exits(1).err();
        assert!(text.contains("999") && text.contains(&format!("up to {newest}")), "{text}");
    }
}

#[test]
fn create_admin_makes_an_admin_or_makes_an_account_one() {
    let api = Server::start(&[]);
    let create = |arguments: &[&str], password: &str| {
        let arguments = [&["create-admin"], arguments].concat();
        run(&api.database.url, &arguments, &[("CLOAKROOM_ADMIN_PASSWORD", password)])
    };
    let output =
        create(&["--email", "root@example.com", "--username", "root"], NEW_PASSWORD).exits(0);
    assert!(!output.out().contains("battery") && !output.err().contains("battery"));
    assert_eq!(api.login("root", NEW_PASSWORD).expect(200).tokens().user["role"], "admin");
    // An existing account keeps its username, its sessions end, and it becomes active.
    let ann = api.sign_up("ann");
    api.database.run("UPDATE users SET is_active = false WHERE username = 'ann'");
    let output =
        create(&["--email", "ANN@example.com", "--username", "other"], NEW_PASSWORD).exits(0);
    assert!(output.out().contains("username: ann"), "{output:?}");
    api.me(&ann).refused(401, "Invalid token");
    api.login("ann", PASSWORD).expect(401);
    assert_eq!(api.login("ann", NEW_PASSWORD).expect(200).tokens().user["role"], "admin");
    let too_short = "Password must be at least 8 characters long";
    for (arguments, password, code, text) in [
        (
            &["--email", "new@example.com", "--username", "ANN"][..],
            NEW_PASSWORD,
            1,
            "Username already exists",
        ),
        (&["--email", "nonsense"], NEW_PASSWORD, 1, "Invalid e-mail address"),
        (&["--email", "new@example.com", "--username", "a b"], NEW_PASSWORD, 1, "username"),
        (&["--email", "new@example.com"], "short", 1, too_short),
        (&["--email", "new@example.com"], "", 1, too_short),
        (&[], NEW_PASSWORD, 2, "--email"),
    ] {
        let output = create(arguments, password).exits(code);
        assert!(output.err().contains(text), "{}", output.err());
    }
    assert_eq!(api.database.count("users"), 2);
}

#[test]
fn create_admin_reads_the_first_line_of_standard_input() {
    let (database, data) = (Database::create(), Directory::create());
    let input = data.join("input");
    std::fs::write(&input, " battery staple \r\nanother line\n").unwrap();
    let mut command = command(&database.url, &data, &[]);
    command
        .args(["create-admin", "--email", "root@example.com"])
        .stdin(File::open(&input).unwrap());
    command.output().unwrap().exits(0);
    let api = Server::start_on(&database, &[]);
    api.login("root@example.com", " battery staple ").expect(200);
}

#[test]
fn help_and_version_are_there() {
    let nowhere = "postgres://127.0.0.1:1/cloakroom";
    let help = run(nowhere, &["--help"], &[]).exits(0).out();
    for command in ["serve", "migrate", "config", "create-admin"] {
        assert!(help.contains(command), "{help}");
    }
    let version = run(nowhere, &["--version"], &[]).exits(0).out();
    assert_eq!(version, format!("cloakroom {}\n", env!("CARGO_PKG_VERSION")));
    run(nowhere, &["nonsense"], &[]).exits(2);
}

#[test]
fn a_taken_port_is_reported() {
    let api = Server::start(&[]);
    let text =
        run(&api.database.url, &["serve"], &[("CLOAKROOM_LISTEN", &api.address)]).exits(1).err();
    assert!(text.contains(&format!("cannot listen on {}", api.address)), "{text}");
}
