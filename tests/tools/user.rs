//! `cloakroom user`: the table of accounts, and passwords that an operator sets.

use std::fs::File;

use serde_json::json;

use crate::harness::*;

/// Sets a password by the command, which is given it by the variable.
fn reset(api: &Server, user: &str, password: &str) -> std::process::Output {
    let settings = [("CLOAKROOM_USER_PASSWORD", password)];
    run(&api.database.url, &["user", "reset-password", user], &settings)
}

#[test]
fn the_table_has_every_account_but_deleted_ones_and_a_search_finds_a_part_of_a_name() {
    let api = Server::start(&[]);
    let root = api.sign_up_admin("root");
    let ann = api.sign_up("ann");
    api.new_file(&ann, "a.txt", "four");
    let gone = api.sign_up("gone");
    api.delete_user(&root, gone.id()).expect(204);
    let body = json!({"email": "Nameless@example.com", "name": "N", "password": PASSWORD, "is_active": false});
    api.create_user(&root, body).expect(201);
    let list = |arguments: &[&str]| {
        let arguments = [&["user", "list"], arguments].concat();
        let text = run(&api.database.url, &arguments, &[]).exits(0).out();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        text.lines().map(words).collect::<Vec<_>>()
    };
    let all = list(&[]);
    let header = "id username email role active created last_login files bytes";
    assert_eq!(all[0].join(" "), header);
    let names = all[1..].iter().map(|line| [&*line[1], &*line[3], &*line[4], &*line[7], &*line[8]]);
    let expected = [
        ["root", "admin", "yes", "0", "0"],
        ["ann", "user", "yes", "1", "4"],
        ["-", "user", "no", "0", "0"],
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    assert_eq!(all[2][0], ann.id());
    assert_eq!(
        all[2][5],
        api.me(&ann).expect(200).json()["created_at"].as_str().unwrap()[..19].to_owned() + "Z"
    );
    assert_eq!((&*all[3][2], &*all[3][6]), ("Nameless@example.com", "-"));
    for (part, found) in [("AMEL", &all[3]), ("nn", &all[2]), ("root@", &all[1])] {
        assert_eq!(list(&["--search", part]), [all[0].clone(), found.clone()], "{part}");
    }
    assert_eq!(list(&["--search", "a_n"]), [all[0].clone()], "no pattern");
}

#[test]
fn a_table_of_many_accounts_has_each_of_them_once() {
    let database = Database::create_migrated();
    database.run(
        "INSERT INTO users (id, username, email, password_hash, created_at)
         SELECT gen_random_uuid(), 'user' || n, 'user' || n || '@example.com', 'x', now() - make_interval(secs => n / 3)
         FROM generate_series(1, 2500) n",
    );
    let text = run(&database.url, &["user", "list"], &[]).exits(0).out();
    let names = text.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), text.lines().count()), (2500, 2501));
}

#[test]
fn a_password_that_an_operator_sets_ends_sessions_and_tokens_and_is_an_event_without_an_actor() {
    let api = Server::start(&[]);
    let root = api.sign_up_admin("root");
    let names = [("ann", "ann".to_owned()), ("bob", "BOB@example.com".to_owned())];
    for (name, given) in names {
        let user = api.sign_up(name);
        let token = api.new_token(&user, false);
        let output = reset(&api, &given, NEW_PASSWORD).exits(0);
        let expected = format!(
            "The password of {name} ({name}@example.com) is set. Its sessions and personal access tokens have ended.\n"
        );
        assert_eq!(output.out() + &output.err(), expected);
        api.me(&user).refused(401, "Invalid token");
        api.me(&*token).expect(401);
        api.login(name, PASSWORD).expect(401);
        api.login(name, NEW_PASSWORD).expect(200);
        let query = format!("subject_id={}&action=password.reset", user.id());
        let events = api.all_events(&root, &query);
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(
            (&events[0]["actor_id"], &events[0]["outcome"]),
            (&json!(null), &json!("success"))
        );
    }
    // By its id, and by an account that is not active.
    let eve = api.sign_up("eve");
    api.update_user(&root, eve.id(), json!({"is_active": false})).expect(200);
    let output = reset(&api, eve.id(), NEW_PASSWORD).exits(0);
    assert!(
        output.out().ends_with("cannot sign in before an administrator activates it.\n"),
        "{}",
        output.out()
    );
    api.login("eve", NEW_PASSWORD).expect(403);
}

#[test]
fn accounts_that_are_no_persons_and_unacceptable_passwords_are_refused_and_nothing_is_changed() {
    let api = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    let id = |answer: Answer| answer.json()["id"].as_str().unwrap().to_owned();
    let development_admin = id(api.me(Anonymous).expect(200));
    let ann = id(api.register("ann").expect(201));
    let gone = id(api.register("gone").expect(201));
    api.delete_user(Anonymous, &gone).expect(204);
    let nobody = "cloakroom: there is no account with this username, e-mail address or id; `cloakroom user list` shows \
                  all\n";
    for name in [&*development_admin, &gone, "gone", "nobody@example.com", UNKNOWN_ID, "", "%"] {
        assert_eq!(reset(&api, name, NEW_PASSWORD).exits(1).err(), nobody, "{name}");
    }
    let none = "no password given: type one, pipe one, or set CLOAKROOM_USER_PASSWORD";
    let too_short = "password: Password must be at least 8 characters long";
    for (password, fault) in [("", none), ("short", too_short)] {
        assert_eq!(reset(&api, "ann", password).exits(1).err(), format!("cloakroom: {fault}\n"));
    }
    api.login("ann", PASSWORD).expect(200);
    // The id of an account in another form may be a username, and is no id.
    let name = ann.replace('-', "");
    assert_eq!(reset(&api, &name, NEW_PASSWORD).exits(1).err(), nobody);
    let empty = Database::create();
    let text = run(&empty.url, &["user", "list"], &[]).exits(1).err();
    assert!(text.contains("schema version 0") && text.contains("cloakroom migrate"), "{text}");
    assert_eq!(empty.count("pg_tables WHERE schemaname = 'public'"), 0, "it migrates nothing");
}

#[test]
fn a_password_is_typed_twice_or_is_the_first_line_of_standard_input() {
    let api = Server::start(&[]);
    api.register("ann").expect(201);
    let arguments = "user reset-password ann";
    let ask = |answers: &[(&str, &str)]| {
        let mut terminal = Terminal::start(command(&api.database.url, &api.data, &[]), arguments);
        answers.iter().for_each(|(prompt, line)| terminal.answer(prompt, line));
        let (status, screen) = terminal.end();
        assert!(!screen.contains("battery") && !screen.contains("horse"), "{screen}");
        (status, screen.lines().last().unwrap_or_default().to_owned())
    };
    let (first, second) = ("New password for ann (ann@example.com): ", "Repeat the password: ");
    let too_short = "cloakroom: password: Password must be at least 8 characters long";
    assert_eq!(ask(&[(first, "short")]), (Some(1), too_short.to_owned()), "not asked again");
    let differ = "cloakroom: the two passwords differ, and nothing was changed";
    assert_eq!(ask(&[(first, NEW_PASSWORD), (second, PASSWORD)]), (Some(1), differ.to_owned()));
    api.login("ann", PASSWORD).expect(200);
    assert_eq!(ask(&[(first, NEW_PASSWORD), (second, NEW_PASSWORD)]).0, Some(0));
    api.login("ann", NEW_PASSWORD).expect(200);
    let input = api.data.join("input");
    std::fs::write(&input, " blanks count \nanother line\n").unwrap();
    let mut piped = command(&api.database.url, &api.data, &[]);
    piped.args(arguments.split(' ')).stdin(File::open(&input).unwrap());
    piped.output().unwrap().exits(0);
    api.login("ann", " blanks count ").expect(200);
}
