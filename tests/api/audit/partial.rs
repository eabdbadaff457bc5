//! The events of uploads in several requests: one once the file is recorded, as of a file that came in one.

use super::tour::*;
use crate::harness::partial::{ALL, id_of};
use crate::harness::*;

#[test]
fn an_upload_in_several_requests_is_an_event_once_its_file_is_recorded() {
    let tour = Tour::start();
    let api = &tour.api;
    let ann = api.sign_up("ann");
    tour.name("ann", ann.id());
    let path = tour.step(api.beginning(ALL, &ann, 4), 201, &[]).header("Location").to_owned();
    tour.name("plans", id_of(&path));
    tour.step(api.adding(&path, &ann, 0, b"te"), 204, &[]);
    tour.step(api.adding(&path, &ann, 0, b"te"), 409, &[]);
    let last = || api.adding(&path, &ann, 2, b"xt");
    let size = || json!({"file_size": 4});
    tour.event(last(), 204, "file.upload by ann on file plans", size());
    tour.step(last(), 409, &[]);
    tour.step(api.adding(&path, &ann, 4, b""), 204, &[]);
    tour.step(api.tus("HEAD", &path, &ann), 200, &[]);
    // Of a complete one only the upload is forgotten.
    tour.step(api.tus("DELETE", &path, &ann), 204, &[]);
    let path = api.begin_partial(&ann, 4);
    tour.step(api.tus("DELETE", &path, &ann), 204, &[]);
    tour.step(api.tus("DELETE", &path, &ann), 404, &[]);
    api.settle();
    let made = api.post("/links", &ann, json!({"upload_to": "/"})).expect(201);
    tour.name("link", &made.id());
    let path = api.begin_by_link(made.json()["url"].as_str().expect("a path"), 4);
    let file: String = api.database.value("SELECT file_id::text FROM partial_uploads");
    tour.name("sent", &file);
    let mut details = size();
    details["link_id"] = json!("link");
    details["owner_id"] = json!("ann");
    // Whoever sends, nobody acts.
    let request = api.adding(&path, Anonymous, 0, b"text");
    tour.event(request, 204, "file.receive on file sent", details);
}
