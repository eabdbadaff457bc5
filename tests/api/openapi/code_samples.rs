//! The code that the document shows runs as it stands there. `scripts/test-docs` runs the other languages.

use std::fs;
use std::process::Command;

use crate::harness::*;
use crate::openapi::document::everything;

/// The code for a shell that an operation shows.
fn shell_sample(document: &Value, operation_id: &str) -> String {
    let operation = Operation::named(document, operation_id);
    let samples = operation.json["x-codeSamples"].as_array().expect("samples");
    let languages: Vec<_> = samples.iter().map(|sample| &sample["lang"]).collect();
    assert_eq!(languages, ["Shell", "Python", "TypeScript"]);
    samples[0]["source"].as_str().expect("code").to_owned()
}

/// Runs it in a directory, and returns what it prints.
fn run_sample(code: &str, directory: &Directory, api: &Server, token: &str, file: &str) -> String {
    let output = Command::new("sh")
        .args(["-euc", code])
        .current_dir(directory.path())
        .env("URL", format!("http://{}", api.address))
        .envs([("TOKEN", token), ("FILE_ID", file)])
        .output()
        .expect("sh runs");
    assert!(output.status.success(), "{code}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn the_samples_with_curl_work() {
    let document = everything();
    let (api, directory) = (Server::start(&[]), Directory::create());
    let (root, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    let content = format!("%PDF-1.7\n{}", numbers(50_000));
    let path = directory.join("report.pdf");
    fs::write(&path, &content).expect("a file");
    let uploaded =
        run_sample(&shell_sample(&document, "upload_file"), &directory, &api, &ann.access, "");
    let uploaded: Value = serde_json::from_str(&uploaded).expect("JSON");
    assert_eq!(uploaded["description"], "Quarterly report");
    let id = uploaded["id"].as_str().expect("an id");

    let download = shell_sample(&document, "download_file");
    for length in [0, 20_000] {
        fs::write(&path, &content[..length]).expect("the beginning of the file");
        run_sample(&download, &directory, &api, &ann.access, id);
        assert_eq!(fs::read_to_string(&path).expect("the file"), content);
    }

    let changes = shell_sample(&document, "list_changes");
    let follow = || {
        let pages = run_sample(&changes, &directory, &api, &ann.access, "");
        let pages = pages.lines().map(|page| serde_json::from_str::<Value>(page).expect("JSON"));
        pages.map(|page| names_of(&page["changes"], "file_id")).collect::<Vec<_>>()
    };
    assert_eq!([follow(), follow()], [vec![vec![id.to_owned()]], vec![vec![]]]);
    api.delete_file(&ann, id).expect(204);
    assert_eq!(follow(), [vec![id.to_owned()]]);

    let refused =
        "SELECT 'auth.login'::audit_action, 'failure'::audit_outcome FROM generate_series(1, 205)";
    api.database.run(&format!("INSERT INTO audit_events (action, outcome) {refused}"));
    let events = api.all_events(&root, "action=auth.login&outcome=failure");
    let expected = names_of(&events.into(), "id");
    assert_eq!(expected.len(), 205);
    let audit = run_sample(
        &shell_sample(&document, "list_audit_events"),
        &directory,
        &api,
        &root.access,
        "",
    );
    let pages = audit.lines().map(|page| serde_json::from_str::<Value>(page).expect("JSON"));
    let found: Vec<_> = pages.flat_map(|page| names_of(&page["events"], "id")).collect();
    assert_eq!(found, expected);
}
