//! `cloakroom create-admin`: accounts that it makes or changes, and where it reads the password.

use std::fs::File;

use serde_json::json;

use crate::harness::*;

#[test]
fn create_admin_makes_an_admin_or_makes_an_account_one() {
    let api = Server::start(&[]);
    let create = |arguments: &[&str], password: &str| {
        let arguments = [&["create-admin"], arguments].concat();
        run(&api.database.url, &arguments, &[("CLOAKROOM_ADMIN_PASSWORD", password)])
    };
    let root = ["--email", "root@example.com", "--username", "root"];
    let output = create(&root, NEW_PASSWORD).exits(0);
    assert!(!output.out().contains("battery") && !output.err().contains("battery"));
    assert_eq!(api.login("root", NEW_PASSWORD).expect(200).tokens().user["role"], "admin");
    // An existing account keeps its username, its sessions end, and it becomes active.
    let ann = api.sign_up("ann");
    api.database.run("UPDATE users SET is_active = false WHERE username = 'ann'");
    let arguments = ["--email", "ANN@example.com", "--username", "other"];
    create(&arguments, NEW_PASSWORD).exits(0).prints("username: ann");
    api.me(&ann).refused(401, "Invalid token");
    api.login("ann", PASSWORD).expect(401);
    assert_eq!(api.login("ann", NEW_PASSWORD).expect(200).tokens().user["role"], "admin");
    let (new, too_short) = ("new@example.com", "Password must be at least 8 characters long");
    let none =
        "cloakroom: no password given: type one, pipe one, or set CLOAKROOM_ADMIN_PASSWORD\n";
    for (arguments, password, text) in [
        (&["--email", new, "--username", "ANN"][..], NEW_PASSWORD, "Username already exists"),
        (&["--email", "nonsense"], NEW_PASSWORD, "Invalid e-mail address"),
        (&["--email", new, "--username", "a b"], NEW_PASSWORD, "username"),
        (&["--email", new], "short", too_short),
        (&["--email", new], "", none),
    ] {
        create(arguments, password).exits(1).reports(text);
    }
    create(&[], NEW_PASSWORD).exits(2).reports("--email");
    assert_eq!(api.database.count("users"), 2);
}

#[test]
fn create_admin_reads_the_first_line_of_standard_input() {
    let (database, data) = (Database::create(), Directory::create());
    let input = data.join("input");
    std::fs::write(&input, " battery staple \r\nanother line\n").unwrap();
    let mut command = command(&database.url, &data, &[]);
    command.args(["create-admin", "--email", "root@example.com"]);
    command.stdin(File::open(&input).unwrap()).output().unwrap().exits(0);
    let api = Server::start_on(&database, &[]);
    api.login("root@example.com", " battery staple ").expect(200);
}

#[test]
fn create_admin_finds_an_account_by_its_address_in_each_spelling() {
    let api = Server::start(&[]);
    let body = json!({"username": "bob", "email": "bo@b\u{fc}cher.example", "password": PASSWORD});
    api.register_with(body).expect(201);
    for email in ["BO@xn--bcher-kva.example", "bo@B\u{dc}CHER.ex\u{ff41}mple"] {
        let password = [("CLOAKROOM_ADMIN_PASSWORD", NEW_PASSWORD)];
        let created = run(&api.database.url, &["create-admin", "--email", email], &password);
        created.exits(0).prints("username: bob");
    }
    api.login("bob", NEW_PASSWORD).expect(200);
    assert_eq!(api.database.count("users"), 1);
}

#[test]
fn create_admin_asks_twice_on_a_terminal_and_shows_no_password() {
    let api = Server::start(&[]);
    let ask = |answers: &[(&str, &str)]| {
        let arguments = "create-admin --email root@example.com --username root";
        let mut terminal = Terminal::start(command(&api.database.url, &api.data, &[]), arguments);
        answers.iter().for_each(|(prompt, line)| terminal.answer(prompt, line));
        let (status, screen) = terminal.end();
        assert!(!screen.contains("battery") && !screen.contains("horse"), "{screen}");
        (status, screen.lines().last().unwrap_or_default().to_owned())
    };
    let (first, second) = ("New password for root@example.com: ", "Repeat the password: ");
    let failure = |text: &str| (Some(1), format!("cloakroom: {text}"));
    let differ = "the two passwords differ, and nothing was changed";
    assert_eq!(ask(&[(first, NEW_PASSWORD), (second, PASSWORD)]), failure(differ));
    let too_short = "password: Password must be at least 8 characters long";
    assert_eq!(ask(&[(first, "short")]), failure(too_short), "not asked again");
    let none = "no password given: type one, pipe one, or set CLOAKROOM_ADMIN_PASSWORD";
    assert_eq!(ask(&[(first, "")]), failure(none));
    assert_eq!(api.database.count("users"), 0);
    let made = "Admin root@example.com created; username: root.".to_owned();
    assert_eq!(ask(&[(first, NEW_PASSWORD), (second, NEW_PASSWORD)]), (Some(0), made));
    api.login("root", NEW_PASSWORD).expect(200);
}

#[test]
fn create_admin_says_where_to_sign_in_if_there_is_a_console() {
    let api = Server::start(&[]);
    let url = ("CLOAKROOM_PUBLIC_URL", "https://files.example.com");
    let page = "https://files.example.com/console/account/second-factor";
    for (console, is_shown) in [("on", true), ("off", false)] {
        let settings =
            [url, ("CLOAKROOM_CONSOLE", console), ("CLOAKROOM_ADMIN_PASSWORD", NEW_PASSWORD)];
        let created =
            run(&api.database.url, &["create-admin", "--email", "root@example.com"], &settings)
                .exits(0);
        assert_eq!(created.out().contains(page), is_shown, "{}", created.out());
    }
}
