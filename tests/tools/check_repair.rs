//! `cloakroom check --repair`: missing contents are brought back from the trash.

use std::fs;
use std::path::PathBuf;

use time::OffsetDateTime;

use crate::harness::*;

/// Moves a content to the trash, as the sweep of the day before, and returns its path there.
fn discard(data: &Directory, id: &str) -> PathBuf {
    let yesterday = OffsetDateTime::now_utc().date().previous_day().expect("a date");
    let day = data.join("trash").join(yesterday.to_string());
    fs::create_dir_all(&day).expect("a directory");
    let place = day.join(id);
    fs::rename(data.content(id), &place).expect("moved");
    place
}

#[test]
fn missing_contents_are_brought_back_from_the_trash_only_where_asked_and_if_whole() {
    let (service, ids) = Installation::after(|api| {
        let ann = api.sign_up("ann");
        ["one", "two", "three", "four"].map(|text| api.new_file(&ann, "a.txt", text))
    });
    let [whole, changed, twice, damaged] = &ids;
    let (data, content) = (&service.data, |id: &str| service.data.content(id));
    let place = discard(data, whole);
    fs::write(discard(data, changed), "twx").expect("changed");
    // Of two, the later one is not what was uploaded.
    let earlier = discard(data, twice);
    let later = data.join("trash").join(OffsetDateTime::now_utc().date().to_string());
    fs::create_dir(&later).expect("a directory");
    fs::write(later.join(twice), "").expect("a file");
    // What is there stays, whatever the trash has.
    fs::copy(content(damaged), earlier.with_file_name(damaged)).expect("copied");
    fs::write(content(damaged), "fouR").expect("changed");
    let before = listing(data.path());
    let faults = service.faults(&[]);
    let advice = "`cloakroom check --repair` moves it back";
    one_names(&faults, &[whole, "is missing; it is ", &place.display().to_string(), advice]);
    one_names(&faults, &[twice, "is missing; it is ", &earlier.display().to_string(), advice]);
    one_names(&faults, &[changed, "is missing; ", "is not what was uploaded"]);
    one_names(&faults, &[damaged, "another SHA-256"]);
    assert_eq!(listing(data.path()), before);

    let output = service.check(&["--repair"]).exits(1);
    let warnings = findings_of(&output, "warning");
    one_names(&warnings, &[whole, "was missing and is back, from", &place.display().to_string()]);
    one_names(&warnings, &[twice, "was missing and is back, from", &earlier.display().to_string()]);
    let faults = findings_of(&output, "fault");
    one_names(&faults, &[changed, "is missing; "]);
    one_names(&faults, &[damaged, "another SHA-256"]);
    assert_eq!(fs::read_to_string(content(whole)).expect("a content"), "one");
    assert_eq!(fs::read_to_string(content(twice)).expect("a content"), "three");
    assert_eq!(fs::read_to_string(content(damaged)).expect("a content"), "fouR");
    assert!(!content(changed).exists() && !place.exists() && !earlier.exists());
    assert!(later.join(twice).exists());
    // A second run finds nothing more to do, and the sweep leaves what was brought back where it is.
    for id in [whole, twice] {
        make_older(&content(id), 5);
    }
    assert_eq!(service.check(&["--repair"]).exits(1).out().matches("is back").count(), 0);
    service.run(&["gc"], &[]).exits(1);
    assert!(content(whole).exists() && content(twice).exists());
}

#[test]
fn repairs_and_sweeps_at_the_same_time_lose_nothing() {
    let (service, ids) = Installation::after(|api| {
        let ann = api.sign_up("ann");
        let mut ids = Vec::new();
        ids.resize_with(60, || api.new_file(&ann, "a.txt", "one"));
        ids
    });
    for id in &ids {
        make_older(&discard(&service.data, id), 5);
    }
    parallel(4, |i| match i {
        // Contents that are missing are no success of this one.
        0 => drop(service.run(&["gc"], &[])),
        1 => drop(service.run(&["gc", "--confirm"], &[])),
        _ => drop(service.check(&["--repair"]).exits(0)),
    });
    assert!(service.warnings(&[]).is_empty());
    assert_eq!((service.data.contents().len(), service.data.trash().len()), (60, 0));
}
