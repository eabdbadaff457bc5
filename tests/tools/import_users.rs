//! The command `import-users`: the rows of a file become accounts.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};
use std::thread;

use crate::harness::*;

const SETTINGS: &[(&str, &str)] = &[ROOMY_SCRYPT];

/// Imports a file of these bytes.
fn import(api: &Server, file: impl AsRef<[u8]>, more: &[&str]) -> Output {
    import_with(api, SETTINGS, file, more)
}

fn import_with(
    api: &Server,
    settings: &[(&str, &str)],
    file: impl AsRef<[u8]>,
    more: &[&str],
) -> Output {
    let path = api.data.join("users.csv");
    fs::write(&path, file).expect("a file");
    let path = path.to_str().expect("a path of the test");
    run_in(&api.data, &api.database.url, &[&["import-users", path], more].concat(), settings)
}

/// The last line of the command.
fn summed_up(verb: &str, accounts: &str, there: usize, invited: usize) -> String {
    format!("{verb}: {accounts}; there already: {there}; invited: {invited}.\n")
}

/// What must not change. Events of refusals are written later than they are answered.
fn state_of(api: &Server) -> Vec<String> {
    let events = "(SELECT * FROM audit_events WHERE outcome = 'success')";
    let tables = ["users", "listed_users", events];
    let rows = |table| {
        let rows = format!("SELECT coalesce(jsonb_agg(t ORDER BY t)::text, '') FROM {table} t");
        api.database.texts(&rows).remove(0)
    };
    tables.map(rows).to_vec()
}

#[test]
fn rows_become_accounts_as_an_administrator_makes_them() {
    let (api, [root]) = Server::with_users(SETTINGS, ["root"]);
    let file = "\u{feff}Name,EMAIL,shoe_size,username,role,is_active,created_at,last_login,\"line\nbreak\"\r\n\
                \"Ann, \"\"the\"\" first\", ann@example.com ,38, Ann ,user,T,2024-01-02 03:04:05.678Z,,\r\n\
                \r\n\
                Bo,bo@b\u{fc}cher.example,39,,admin,1,2024-01-02 03:04:05+00,2025-06-07T08:09:10.5+02:00,x\r\n\
                ,cy@example.com,,,,no,2024-01-02 03:04:05,,\"a\nb\"\r\n\
                ,dee@example.com,,dee,,,,,\n\
                A\u{308},eve@example.com,,,,YES,,,";
    let output = import(&api, file, &[]).exits(0);
    let ignored = "ignored columns: shoe_size, line\\nbreak\n";
    assert_eq!(output.out(), ignored.to_owned() + &summed_up("imported", "5 accounts", 0, 0));
    let users = api.get("/users?sort_by=email&sort_order=asc&limit=10", &root).expect(200);
    let user = |email: &str| {
        let users = users.list("users");
        users.into_iter().find(|user| user["email"] == email).expect("an account")
    };
    let is = |email: &str, expected: Value| {
        let user = user(email);
        for (name, value) in expected.as_object().expect("an object") {
            assert_eq!(user[name], *value, "{email}: {name}");
        }
    };
    let at = "2024-01-02T03:04:05.000000Z";
    is(
        "ann@example.com",
        json!({"username": "Ann", "name": "Ann, \"the\" first", "role": "user", "is_active": true,
               "created_at": "2024-01-02T03:04:05.678000Z", "last_login": null, "permissions": []}),
    );
    is(
        "bo@b\u{fc}cher.example",
        json!({"name": "Bo", "role": "admin", "created_at": at, "last_login": "2025-06-07T06:09:10.500000Z"}),
    );
    is("cy@example.com", json!({"name": null, "is_active": false, "created_at": at}));
    is("dee@example.com", json!({"username": "dee", "name": null, "is_active": true}));
    is("eve@example.com", json!({"name": "\u{c4}", "is_active": true}));
    assert_eq!(api.get("/admin/stats", &root).expect(200).json()["users"]["total"], 6);
    // They are settled, have no password, and an event each.
    let made = "users WHERE is_settled AND NOT is_self_registered AND password_hash IS NULL";
    assert_eq!(api.database.count(made), 5);
    let events = api.all_events(&root, "action=user.create");
    assert_eq!(events.len(), 5);
    for event in events {
        let expected = [json!({"by": "import"}), Value::Null, json!("success"), Value::Null];
        let fields = ["details", "actor_id", "outcome", "address"].map(|name| event[name].clone());
        assert_eq!(fields, expected);
    }
    api.run_beside(&["check"]).exits(0).prints("no faults, no warnings.");
    // Nobody can sign in before a password is chosen.
    api.login("Ann", "").expect(422);
    api.login("Ann", PASSWORD).refused(401, "Invalid username or password");
    let token = api.reset_token("ann@example.com");
    api.reset_password(&token, NEW_PASSWORD).expect(200);
    api.login("ann", NEW_PASSWORD).expect(200);
    // A second run passes them over, whatever else the rows say.
    let before = state_of(&api);
    let again = file.replace("Ann, ", "Other, ").replace(" Ann ", "root");
    let output = import(&api, again, &[]).exits(0);
    assert!(output.out().ends_with(&summed_up("imported", "0 accounts", 5, 0)), "{}", output.out());
    assert_eq!(state_of(&api), before);
    let more = "email\nANN@example.com\nnew@example.com\nBO@B\u{dc}CHER.example\n";
    let dry = import(&api, more, &["--dry-run"]).exits(0).out();
    assert_eq!(dry, summed_up("to be imported", "1 account", 2, 0));
    assert_eq!(state_of(&api), before);
    let done = import(&api, more, &[]).exits(0).out();
    assert_eq!(done, summed_up("imported", "1 account", 2, 0));
}

#[test]
fn passwords_from_elsewhere_go_on_and_their_hashes_become_our_own() {
    let (api, [_]) = Server::with_users(SETTINGS, ["root"]);
    let own = [SCRYPT, SCRYPT_CHEAPER];
    let hashes: Vec<&str> = IMPORTED_HASHES.into_iter().chain(own).collect();
    let rows = hashes.iter().enumerate().map(|(n, hash)| format!("u{n}@example.com,\"{hash}\"\n"));
    let file = "email,password_hash\n".to_owned() + &rows.collect::<String>();
    let output = import(&api, file, &["--invite"]).exits(0).out();
    assert_eq!(output, summed_up("imported", "10 accounts", 0, 0));
    let stored = |name: &str| -> String {
        api.database.value(&format!("SELECT password_hash FROM users WHERE email = '{name}'"))
    };
    let of_account = |name: &str, column: &str| -> String {
        api.database.value(&format!("SELECT {column}::text FROM users WHERE email = '{name}'"))
    };
    for (n, hash) in hashes.iter().enumerate() {
        let name = format!("u{n}@example.com");
        // What costs no more than a hash of this program is stored as one.
        let is_own = hash.starts_with("$scrypt$");
        let expected = if is_own { (*hash).to_owned() } else { format!("imported:{hash}") };
        assert_eq!(stored(&name), expected);
        api.login(&name, NEW_PASSWORD).case(hash).expect(401);
        api.login(&name, PASSWORD).case(hash).expect(200);
        assert!(stored(&name).starts_with(ROOMY_HASH), "{}", stored(&name));
        assert_eq!(of_account(&name, "credentials_version"), "1");
        api.login(&name, PASSWORD).expect(200);
    }
    let events = "audit_events WHERE action NOT IN ('auth.login', 'auth.register', 'user.create')";
    assert_eq!((api.database.count(events), api.database.count("outbox")), (0, 0));
}

#[test]
fn a_hash_that_this_host_has_no_memory_for_is_told_by_the_import_and_by_doctor() {
    let (api, [_]) = Server::with_users(&[], ["root"]);
    let file = format!(
        "email,password_hash\na@example.com,\"{ARGON2ID_64_MIB}\"\nb@example.com,{BCRYPT_14}\n"
    );
    let told = "accounts: 1 cannot sign in with their imported password hashes, whose checks take up to 65536 KiB";
    for more in [&["--dry-run"][..], &[]] {
        let output = import_with(&api, &[], &file, more).exits(0);
        assert!(output.out().contains(&format!("warning: {told}")), "{}", output.out());
    }
    let doctor = api.run_beside(&["doctor"]).out();
    assert!(doctor.contains(&format!("warning {told}")), "{doctor}");
    let roomy = [("CLOAKROOM_SCRYPT", "16,8,1")];
    let doctor = run_in(&api.data, &api.database.url, &["doctor"], &roomy).out();
    assert!(!doctor.contains("imported password hashes"), "{doctor}");
    let file = file.replace("a@", "c@");
    let output = import_with(&api, &roomy, file, &[]).exits(0).out();
    assert_eq!(output, summed_up("imported", "1 account", 1, 0));
}

#[test]
fn all_faults_are_told_with_their_lines_and_columns_and_nothing_is_imported() {
    let (api, [_]) = Server::with_users(SETTINGS, ["root"]);
    let before = state_of(&api);
    let (long, bits) = ("x".repeat(256), BCRYPT_2B.replace("$04$", "$15$"));
    let mut file =
        "email,username,name,role,is_active,created_at,last_login,password_hash\n".to_owned();
    let mut expected = Vec::new();
    let mut line = 2;
    let mut row = |text: &str, faults: &[&str]| {
        file += &format!("{text}\n");
        let begin = line + text.matches("\r\n").count();
        expected.extend(faults.iter().map(|fault| format!("line {begin}{fault}")));
        line += 1 + text.matches('\n').count();
    };
    row(
        "good@example.com,good,\"two\nlines\",,,,,",
        &[", column name: Must not contain control characters"],
    );
    row(",nobody,,,,,,", &[", column email: Field required"]);
    row("\r\nnonsense,,,,,,,", &[", column email: Invalid e-mail address"]);
    row("a@example.com,ab,,,,,,", &[", column username: Must be at least 3 characters long"]);
    row(
        "b@example.com,a b c,,root,perhaps,,,",
        &[
            ", column username: Only letters, digits and underscore are allowed",
            ", column role: Must be one of: user, admin",
            ", column is_active: Must be a boolean",
        ],
    );
    let name = format!("c@example.com,,{long},,,,,");
    row(&name, &[", column name: Must be at most 255 characters long"]);
    row(
        "d@example.com,,,,,yesterday,2024-13-01,",
        &[", column created_at: Invalid timestamp", ", column last_login: Invalid timestamp"],
    );
    row(
        "e@example.com,,,,,,,5f4dcc3b5aa765d61d8327deb882cf99",
        &[", column password_hash: Must be a hash of bcrypt ($2a$, $2b$, $2y$), of Argon2id \
           ($argon2id$v=19$m=...,t=...,p=...$) or of scrypt ($scrypt$ln=...,r=...,p=...$)"],
    );
    row(
        &format!("f@example.com,,,,,,,{bits}"),
        &[", column password_hash: Must have a cost of bcrypt from 04 to 14"],
    );
    let costly = SCRYPT.replace("ln=4,r=8,p=1", "ln=6,r=8,p=5");
    row(
        &format!("g@example.com,,,,,,,\"{costly}\""),
        &[
            ", column password_hash: Must take at most the memory, and 4 times the work, of CLOAKROOM_SCRYPT=6,8,1",
        ],
    );
    row("h@example.com,,,,,,", &[": Must have 8 fields, as the header has"]);
    row("i@example.com,,,,,,,,", &[": Must have 8 fields, as the header has"]);
    row("GOOD@example.com,,,,,,,", &[", column email: Must not be that of line 2 too"]);
    row("j@example.com,Good,,,,,,", &[", column username: Must not be that of line 2 too"]);
    row("k@example.com,ROOT,,,,,,", &[", column username: Username already exists"]);
    row("root@example.com,other,,,,,,", &[]);
    row("l@example.com,fine,,,,,,", &[]);
    let mut file = file.into_bytes();
    file.extend(b"m\xff@example.com,,\xff,,,,,\n");
    expected.push(format!("line {line}, column email: Must be UTF-8"));
    expected.push(format!("line {line}, column name: Must be UTF-8"));
    for more in [&["--dry-run"][..], &["--invite"], &[]] {
        let output = import(&api, &file, more).exits(1);
        let printed = output.out();
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
        let faults = format!("cloakroom: {} faults: nothing was imported\n", expected.len());
        output.reports(&faults);
        assert!(!printed.contains("5f4dcc") && !printed.contains("nonsense"), "no value is shown");
        assert_eq!(state_of(&api), before);
    }
}

const QUOTES_2: &str = "line 2: Must have quotes only around a whole field, and two for one in it";
const QUOTES_4: &str = "line 4: Must have quotes only around a whole field, and two for one in it";

#[test]
fn a_file_without_the_columns_and_other_files_are_refused() {
    let (api, [_]) = Server::with_users(SETTINGS, ["root"]);
    let which = "line 1: Must name the columns, email or username among them, separated by commas";
    for (file, fault) in [
        ("", which),
        ("\n\n", which),
        ("name,role\nAnn,user\n", which),
        ("email;username\nann@example.com;ann\n", which),
        ("email,name,Email\n", "line 1, column email: Must be there only once"),
        ("username\nann\n", "1 fault: nothing was imported"),
        // A reader that does not mind would take all that follows for one field.
        ("email,x\na@example.com,\"hello\nb@example.com,y\n", QUOTES_2),
        ("email,x\na@example.com,\"he\"llo\"\n", QUOTES_2),
        ("email,x\r\n\"a@example.com\"x,y\r\n", QUOTES_2),
        ("email,x\ra@example.com,5\" disks\r", QUOTES_2),
        ("email,x\na@example.com,\"two\nlines\"\"\"\nb@example.com, \"y\"\n", QUOTES_4),
    ] {
        import(&api, file, &[]).exits(1).reports(&format!("cloakroom: {fault}\n"));
    }
    // Lines may end with CR alone, as old programs write them.
    let faulty = import(&api, "email,x\r\"a@example.com\",\"\"\"y\"\rnobody,\r", &[]).exits(1);
    let told = "ignored columns: x\nline 3, column email: Invalid e-mail address\n";
    assert_eq!(faulty.out(), told);
    let empty = import(&api, "email\n", &[]).exits(0).out();
    assert_eq!(empty, summed_up("imported", "0 accounts", 0, 0));
    let rows: String = (0..100_001).map(|n| format!("u{n}@example.com\n")).collect();
    import(&api, format!("email\n{rows}"), &[])
        .exits(1)
        .reports("more than 100000 rows: split the file");
    let large = vec![b'x'; (64 << 20) + 1];
    import(&api, large, &[]).exits(1).reports("users.csv: larger than 64 MiB\n");
    api.run_beside(&["import-users", "/nowhere.csv"])
        .exits(1)
        .reports("cloakroom: /nowhere.csv: No such file");
    api.run_beside(&["import-users", "/"]).exits(1).reports("cloakroom: /: Is a directory");
    assert_eq!(api.database.count("users"), 1);
}

#[test]
fn standard_input_is_read_too() {
    let (api, [_]) = Server::with_users(SETTINGS, ["root"]);
    let mut command = command(&api.database.url, &api.data, SETTINGS);
    command.args(["import-users", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("the binary runs");
    let mut input = process.stdin.take().expect("a pipe");
    input.write_all(b"username,email\nann,ann@example.com\n").expect("it reads");
    drop(input);
    let output = process.wait_with_output().expect("it ends").exits(0);
    assert_eq!(output.out(), summed_up("imported", "1 account", 0, 0));
}

/// What others do meanwhile, the unique indexes decide.
#[test]
fn an_address_or_a_username_that_others_get_meanwhile_is_as_if_it_had_been_there() {
    let (api, [_]) = Server::with_users(SETTINGS, ["root"]);
    let file = "email,username\nann@example.com,ann\nbo@example.com,bo2\ncy@example.com,cy2\n";
    let insert = |email: &str, username: &str| {
        format!(
            "INSERT INTO users (id, username, email, email_key) VALUES
             (gen_random_uuid(), '{username}', '{email}', '{email}')"
        )
    };
    // Another account gets the username: nothing is stored.
    let taken = insert("other@example.com", "BO2");
    let output = api.database.commit_during(&taken, || import(&api, file, &[]));
    output.exits(1).prints("line 3, column username: Username already exists\n");
    assert_eq!(api.database.count("users"), 2);
    api.database.run("DELETE FROM users WHERE username = 'BO2'");
    // Another one gets the address: it is passed over. A registration that comes meanwhile finds the others there.
    let held = api.database.begin(&insert("cy@example.com", "cyril"));
    let (output, registered) = thread::scope(|scope| {
        let importing = scope.spawn(|| import(&api, file, &[]));
        api.database.wait_for_blocked_statement();
        let registering = scope.spawn(|| api.register("ann"));
        wait_until(|| api.database.blocked_statements() == 2);
        held.commit();
        (importing.join().expect("no panic"), registering.join().expect("no panic"))
    });
    assert_eq!(output.exits(0).out(), summed_up("imported", "2 accounts", 1, 0));
    registered.refused(400, "Username already exists");
    assert_eq!(api.database.count("users"), 4);
}

#[test]
fn those_without_a_hash_are_invited() {
    let (smtp, api) = service_with_mail(SETTINGS);
    api.register("root").expect(201);
    let file = format!(
        "email,is_active,password_hash\nann@example.com,,\nbo@example.com,,{BCRYPT_2B}\ncy@example.com,false,\n\
         dee@example.com,,\nroot@example.com,,\n"
    );
    let dry = import(&api, &file, &["--dry-run", "--invite"]).exits(0).out();
    assert_eq!(dry, summed_up("to be imported", "4 accounts", 1, 2));
    let done = import(&api, &file, &["--invite"]).exits(0).out();
    assert_eq!(done, summed_up("imported", "4 accounts", 1, 2));
    let mails = smtp.wait_for(2);
    let mut recipients: Vec<_> = mails.iter().map(|mail| mail.recipient.clone()).collect();
    recipients.sort();
    assert_eq!(recipients, ["ann@example.com", "dee@example.com"]);
    assert!(mails.iter().all(|mail| mail.subject() == "You have a Cloakroom account"));
    api.reset_password(&mails[0].token(RESET_URL), NEW_PASSWORD).expect(200);
    api.login(&mails[0].recipient, NEW_PASSWORD).expect(200);
}

#[test]
fn invitations_are_due_a_second_apart_and_each_has_its_day() {
    let (api, [_]) = Server::with_users(SETTINGS, ["root"]);
    // The service stops, so that it sends none.
    let (database, data, _) = api.end(Signal::TERM);
    let path = data.join("users.csv");
    let rows: String = (0..1500).map(|n| format!("u{n}@example.com\n")).collect();
    fs::write(&path, format!("email\n{rows}")).expect("a file");
    let arguments = ["import-users", path.to_str().expect("a path of the test"), "--invite"];
    let off = [("CLOAKROOM_SMTP_URL", "none")];
    run_in(&data, &database.url, &arguments, &off)
        .exits(2)
        .reports("--invite: CLOAKROOM_SMTP_URL is none, so no mail is sent");
    assert_eq!(database.count("users"), 1);
    let output = run_in(&data, &database.url, &arguments, &[]).exits(0).out();
    assert_eq!(output, summed_up("imported", "1500 accounts", 0, 1500));
    let apart = "SELECT bool_and(kind = 'invitation' AND created_at = due_at) AND count(DISTINCT due_at) = 1500
                 AND max(due_at) - min(due_at) = interval '1499 seconds' AND min(priority) = 2 FROM outbox";
    assert!(database.value::<bool>(apart));
}

#[test]
fn ten_thousand_rows_are_imported_at_once() {
    let (api, [root]) = Server::with_users(SETTINGS, ["root"]);
    let rows = (0..10_000).map(|n| format!("u{n}@example.com,u_{n},Name {n},{BCRYPT_2B}\n"));
    let file = "email,username,name,password_hash\n".to_owned() + &rows.collect::<String>();
    let output = import(&api, &file, &[]).exits(0).out();
    assert_eq!(output, summed_up("imported", "10000 accounts", 0, 0));
    assert_eq!(api.get("/users?limit=1", &root).expect(200).json()["total"], 10_001);
    api.login("u_9999", PASSWORD).expect(200);
    let output = import(&api, &file, &[]).exits(0).out();
    assert_eq!(output, summed_up("imported", "0 accounts", 10_000, 0));
}

#[test]
fn it_shows_its_progress_on_a_terminal() {
    let (api, [_]) = Server::with_users(SETTINGS, ["root"]);
    let path = api.data.join("users.csv");
    fs::write(&path, "email\nann@example.com\n").expect("a file");
    let terminal = Terminal::start(
        command(&api.database.url, &api.data, &[]),
        &format!("import-users {}", path.display()),
    );
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.starts_with("storing accounts: 0 of 1\nimported: 1 account;"), "{screen:?}");
}
