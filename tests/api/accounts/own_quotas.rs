//! Quotas of one user, which administrators set in place of the defaults.

use crate::harness::*;

const FULL: &str = "Storage quota exceeded";

/// What an account shows: its own quotas as they are set, and those that apply.
fn quotas(account: &Value) -> [Value; 4] {
    let stats = &account["stats"];
    [
        &account["storage_quota"],
        &account["file_quota"],
        &stats["storage_quota"],
        &stats["file_quota"],
    ]
    .map(Value::clone)
}

#[test]
fn administrators_set_quotas_and_null_is_the_default() {
    let settings = [("CLOAKROOM_USER_STORAGE_QUOTA", "1000"), ("CLOAKROOM_USER_FILE_QUOTA", "10")];
    let (api, [root, ann]) = Server::with_users(&settings, ["root", "ann"]);
    let null = Value::Null;
    let default = [null.clone(), null.clone(), json!(1000), json!(10)];
    assert_eq!(quotas(&api.me(&ann).expect(200).json()), default);
    for (body, expected) in [
        (json!({"storage_quota": 5}), [json!(5), null.clone(), json!(5), json!(10)]),
        (json!({"file_quota": 0}), [json!(5), json!(0), json!(5), json!(0)]),
        (json!({"name": "Ann"}), [json!(5), json!(0), json!(5), json!(0)]),
        (
            json!({"storage_quota": i64::MAX, "file_quota": null}),
            [json!(i64::MAX), null.clone(), json!(i64::MAX), json!(10)],
        ),
        (json!({"storage_quota": null}), default.clone()),
    ] {
        let answer = api.update_user(&root, ann.id(), body.clone()).case(&body).expect(200);
        answer.has(json!({"storage_quota": expected[0], "file_quota": expected[1]}));
        assert_eq!(quotas(&api.me(&ann).expect(200).json()), expected, "{body}");
    }
    let own = json!({"storage_quota": 7, "file_quota": 1});
    let new = json!({
        "email": "new@example.com", "name": "New", "password": PASSWORD, "storage_quota": 7, "file_quota": 1
    });
    api.create_user(&root, new).expect(201).has(own.clone());
    let listed = api.get("/admin/users?search=new@", &root).expect(200).list("items");
    assert_eq!(quotas(&listed[0]), [json!(7), json!(1), json!(7), json!(1)]);
    // Users may not set their own.
    api.update_me(&ann, own).expect(200).has(json!({"storage_quota": null, "file_quota": null}));
    let audited = "audit_events WHERE action = 'user.update' AND details->'fields' ?| '{storage_quota,file_quota}'";
    assert_eq!(api.database.count(audited), 4);
}

#[test]
fn a_users_own_quotas_are_exact_under_parallel_uploads() {
    let settings = [("CLOAKROOM_USER_STORAGE_QUOTA", "100"), ("CLOAKROOM_USER_FILE_QUOTA", "3")];
    let (api, [root, ann, bob, carl]) =
        Server::with_users(&settings, ["root", "ann", "bob", "carl"]);
    api.update_user(&root, ann.id(), json!({"storage_quota": 230, "file_quota": 50})).expect(200);
    api.update_user(&root, bob.id(), json!({"storage_quota": 1000, "file_quota": 7})).expect(200);
    api.update_user(&root, carl.id(), json!({"storage_quota": 0})).expect(200);
    let answers = parallel(60, |n| api.upload([&ann, &bob, &carl][n % 3], "a.txt", "x".repeat(10)));
    for answer in &answers {
        assert!([201, 507].contains(&answer.status), "{answer:?}");
    }
    assert_eq!([&ann, &bob, &carl].map(|user| api.file_stats(user)), [(20, 200), (7, 70), (0, 0)]);
    let answers = parallel(9, |_| api.upload(&ann, "a.txt", "x".repeat(10)));
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 3);
    api.upload(&ann, "a.txt", "x").refused(507, FULL);
    api.upload(&carl, "a.txt", "").refused(507, FULL);
    api.upload(&root, "a.txt", "x".repeat(101)).refused(507, FULL);
}

#[test]
fn lower_quotas_take_nothing_away_and_larger_ones_keep_more_deleted_files() {
    let settings = [("CLOAKROOM_USER_STORAGE_QUOTA", "100"), ("CLOAKROOM_USER_FILE_QUOTA", "2")];
    let (api, [root, ann, bob]) = Server::with_users(&settings, ["root", "ann", "bob"]);
    for user in [&ann, &bob] {
        api.update_user(&root, user.id(), json!({"file_quota": 3, "storage_quota": 60}))
            .expect(200);
    }
    let files = ["a", "b", "c"].map(|name| api.new_file(&ann, name, &"x".repeat(20)));
    api.update_user(&root, ann.id(), json!({"file_quota": 1, "storage_quota": 10})).expect(200);
    assert_eq!(api.file_stats(&ann), (3, 60));
    api.upload(&ann, "d", "").refused(507, FULL);
    if !has_extras() {
        return;
    }
    // What is deleted stays restorable up to the defaults, which are larger now, but does not fit.
    api.delete_file(&ann, &files[0]).expect(204);
    api.delete_file(&ann, &files[1]).expect(204);
    let deleted =
        |user: &Tokens| api.get("/uploads?deleted=true", user).expect(200).list("items").len();
    assert_eq!(deleted(&ann), 2);
    api.request("POST", &format!("/uploads/{}/restore", files[0]))
        .by(&ann)
        .send()
        .refused(507, FULL);
    api.update_user(&root, ann.id(), json!({"file_quota": null, "storage_quota": 40})).expect(200);
    api.request("POST", &format!("/uploads/{}/restore", files[0])).by(&ann).send().expect(200);
    // A larger quota of its own lets a user keep more than the default.
    for name in ["a", "b", "c"] {
        let file = api.new_file(&bob, name, "x");
        api.delete_file(&bob, &file).expect(204);
    }
    assert_eq!(deleted(&bob), 3);
    api.update_user(&root, bob.id(), json!({"file_quota": null})).expect(200);
    assert_eq!(deleted(&bob), 3, "nothing goes before its time");
}
