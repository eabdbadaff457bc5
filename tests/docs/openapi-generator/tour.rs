//! A tour with the Rust client that openapi-generator makes from the document, for its main points.
//!
//! Usage: tour URL ADMIN PASSWORD, with the username and the password of an administrator

use std::env;
use std::error::Error as StdError;
use std::fs;

use cloakroom_client::apis::administration_api::list_audit_events;
use cloakroom_client::apis::authentication_api::{login, logout, refresh_tokens, register};
use cloakroom_client::apis::configuration::Configuration;
use cloakroom_client::apis::files_api::{
    delete_file, download_file, get_file, list_changes, list_files, restore_file, update_file,
    upload_file,
};
use cloakroom_client::apis::your_account_api::get_my_profile;
use cloakroom_client::apis::Error;
use cloakroom_client::models::{
    ApiError, FileSortKey, LoginRequest, RefreshTokensRequest, RegisterRequest, Registered,
    SortOrder, TokenResponse, UpdateFileRequest,
};

type Outcome<T = ()> = Result<T, Box<dyn StdError>>;

const CONTENT: &str = "The first file of a tour.\n";

/// Sends requests to the service, with an access token if there is one.
fn client(url: &str, token: Option<String>) -> Configuration {
    Configuration { base_path: url.to_owned(), bearer_access_token: token, ..Configuration::new() }
}

/// The `reason` of the error that a request is answered with.
fn reason_of_refusal<T, E>(answer: Result<T, Error<E>>) -> Outcome<String> {
    match answer {
        Err(Error::ResponseError(response)) => {
            Ok(serde_json::from_str::<ApiError>(&response.content)?.reason.to_string())
        }
        Err(error) => Err(error.to_string().into()),
        Ok(_) => Err("the request was not refused".into()),
    }
}

async fn sign_in(
    anyone: &Configuration,
    username: String,
    password: String,
) -> Outcome<TokenResponse> {
    let request = LoginRequest { username: Some(username), ..LoginRequest::new(password) };
    Ok(login(anyone, request).await?)
}

async fn use_files(user: &Configuration) -> Outcome {
    // The client takes the name of the file from its path. It declares no type, so the file is plain text.
    let directory = env::temp_dir().join(format!("tour-{}", uuid::Uuid::new_v4()));
    fs::create_dir(&directory)?;
    let mut files = Vec::new();
    for name in ["first.txt", "second.txt", "third.txt"] {
        fs::write(directory.join(name), CONTENT)?;
        // Sends the file until an answer comes: the key makes sure that it is stored once.
        let key = uuid::Uuid::new_v4().to_string();
        let mut attempts = 0;
        files.push(loop {
            attempts += 1;
            let (path, key) = (directory.join(name), Some(&*key));
            match upload_file(user, path, key, Some("A tour"), None).await {
                Err(Error::Reqwest(_)) if attempts < 5 => {}
                outcome => break outcome?,
            }
        });
    }
    fs::remove_dir_all(&directory)?;
    assert_eq!((files[0].filename.as_str(), files[0].file_size), ("first.txt", 26));

    let mut listed = Vec::new();
    let (mut page, mut pages) = (1, 1);
    while i64::from(page) <= pages {
        let (key, order) = (Some(FileSortKey::Filename), Some(SortOrder::Asc));
        let (of, size, no) = (Some(page), Some(2), None);
        let list = list_files(user, no, no, no, no, None, None, key, order, of, size, None, None);
        let list = list.await?;
        listed.extend(list.items.into_iter().map(|file| file.filename));
        (page, pages) = (page + 1, list.pages);
    }
    assert_eq!(listed, ["first.txt", "second.txt", "third.txt"]);

    let id = files[0].id.to_string();
    let whole = download_file(user, &id, None, None, None, None, None, None, None).await?;
    assert_eq!(whole.text().await?, CONTENT);
    let range = Some("bytes=4-8");
    let part = download_file(user, &id, None, range, None, None, None, None, None).await?;
    assert_eq!(part.status(), 206);
    assert_eq!(part.text().await?, "first");

    // `Some(None)` sends null.
    let change = UpdateFileRequest {
        description: Some(None),
        is_public: Some(Some(true)),
        ..Default::default()
    };
    assert!(update_file(user, &id, None, None, None, Some(change)).await?.is_public);
    delete_file(user, &id, None, None, None, None).await?;
    let gone = get_file(user, &id, None, None, None, None).await;
    assert_eq!(reason_of_refusal(gone)?, "FILE_NOT_FOUND");
    let changes = list_changes(user, None, None, None).await?;
    assert!(restore_file(user, &id).await?.is_public);
    let changes = list_changes(user, Some(&changes.next), None, Some(30)).await?;
    let changed: Vec<_> = changes.changes.iter().map(|change| change.file_id.to_string()).collect();
    assert_eq!(changed, [id]);
    Ok(())
}

/// What an account did, newest first, read with the cursor of the audit log.
async fn audit_actions(admin: &Configuration, actor: &str) -> Outcome<Vec<String>> {
    let (mut actions, mut before) = (Vec::new(), None::<String>);
    loop {
        let (actor, cursor) = (Some(actor), before.as_deref());
        let page =
            list_audit_events(admin, actor, None, None, None, None, None, Some(3), cursor).await?;
        actions.extend(page.events.iter().map(|event| event.action.to_string()));
        match page.next {
            Some(next) => before = Some(next),
            None => return Ok(actions),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [url, admin_name, admin_password] = &arguments[..] else {
        return Err("usage: tour URL ADMIN PASSWORD".into());
    };
    let anyone = client(url, None);
    let username = format!("tour_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let password = "correct horse".to_owned();

    let mut registration =
        RegisterRequest::new(format!("{username}@example.com"), password.clone());
    registration.username = Some(Some(username.clone()));
    let Registered::User(account) = register(&anyone, registration.clone()).await? else {
        return Err("with a username the answer is the account".into());
    };
    assert_eq!(account.username.as_ref(), Some(&username));
    assert_eq!(reason_of_refusal(register(&anyone, registration).await)?, "USERNAME_TAKEN");

    let tokens = sign_in(&anyone, username, password).await?;
    let refresh = RefreshTokensRequest { refresh_token: Some(Some(tokens.refresh_token)), token: None };
    let tokens = refresh_tokens(&anyone, Some(refresh)).await?;
    let user = client(url, Some(tokens.access_token));
    assert_eq!(get_my_profile(&user).await?.id, account.id);

    use_files(&user).await?;

    logout(&user, None).await?;
    assert_eq!(reason_of_refusal(get_my_profile(&user).await)?, "SESSION_ENDED");

    let tokens = sign_in(&anyone, admin_name.clone(), admin_password.clone()).await?;
    let actions =
        audit_actions(&client(url, Some(tokens.access_token)), &account.id.to_string()).await?;
    assert_eq!(actions[..4], ["auth.logout", "file.restore", "file.delete", "file.update"]);
    assert_eq!(actions[4..7], ["file.upload"; 3]);
    assert_eq!(actions[7..], ["auth.login", "auth.register"]);
    Ok(())
}
