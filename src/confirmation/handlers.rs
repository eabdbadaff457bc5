//! The confirmation of e-mail addresses. Until the link of a mail is opened, no account has anything of a registration,
//! or of a wish for another address: all of it is in the sealed token, which is stored until its mail is sent. The link
//! proves the mailbox, and the password proves who asked for the mail. So a mail that a stranger caused is of no use to
//! the owner of the mailbox, and the stranger never sees the link.

use time::OffsetDateTime;
use uuid::Uuid;

use super::statements;
use crate::accounts::proof::Proof;
use crate::accounts::statements as accounts;
use crate::accounts::statements::AccountFields;
use crate::auth::email_token::{EmailChange, EmailToken, Registration};
use crate::db::installation;
use crate::error::{Error, Unique};
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::rules;
use crate::model::text::mailed_address;
use crate::model::timestamp::Timestamp;
use crate::model::user::{LoginName, Role, Stats, User};
use crate::provider;
use crate::request::context::RequestContext;
use crate::request::limits::{self, Caller, Limit};

/// Queues the mail of a registration, and responds with the account that its owner would get. The response is the same,
/// and takes the same work, whether or not an account has the address.
pub fn register(
    context: &RequestContext,
    username: Option<String>,
    email: String,
    name: Option<String>,
    password_hash: String,
) -> Result<Response, Error> {
    let (id, name) = (Uuid::new_v4(), name.filter(|name| !name.is_empty()));
    let email = mailed_address(email);
    let registration = Registration { id, username, email, name, password_hash };
    let account = account_of(&registration);
    let sealed = seal(context, &EmailToken::Registration(registration))?;
    let username = account.username.as_deref();
    statements::queue_registration(&context.db, username, &account.email, &sealed)
        .map_err(Error::at_registration)?;
    context.app.wake_background(); // which wakes the thread that sends mail
    response::json(201, &account)
}

/// The account that a registration makes, if its address is confirmed now.
fn account_of(registration: &Registration) -> User {
    let Registration { id, username, email, name, .. } = registration;
    let now = Timestamp::now();
    User {
        id: *id,
        username: username.clone(),
        email: email.clone(),
        name: name.clone(),
        role: Role::default(),
        permissions: Vec::new(),
        is_active: true,
        created_at: now,
        updated_at: now,
        last_login: None,
        second_factor: false,
        has_password: true,
        has_identity: false,
        storage_quota: None,
        file_quota: None,
        pending_email: None,
        stats: Stats::default(),
    }
}

/// The sealed token of the mail that confirms another address of an account whose credentials are at `version`. The
/// address is a [`mailed_address`].
pub fn seal_change(
    context: &RequestContext,
    account: Uuid,
    version: i32,
    email: String,
) -> Result<Vec<u8>, Error> {
    seal(context, &EmailToken::Change(EmailChange { account, version, email }))
}

/// Seals a token for a mail.
fn seal(context: &RequestContext, token: &EmailToken) -> Result<Vec<u8>, Error> {
    let installation = installation_id(context)?;
    token.seal(&context.app.sealing_keys, installation, OffsetDateTime::now_utc())
}

/// The id of the installation, which a new one may not have before its store is reached.
fn installation_id(context: &RequestContext) -> Result<Uuid, Error> {
    installation::find(&context.db)?.id.ok_or(Error::Unavailable)
}

/// `POST /api/v1/auth/confirm-email`: makes the account of a registration, or gives an account its new address, if the
/// password is that of the registration or of the account.
pub fn confirm(context: &mut RequestContext) -> Result<Response, Error> {
    let (token, proof, username) = context.request.json()?.read(|body| {
        let token = body.required("token", rules::token);
        let proof = match provider::code::read(body, "password") {
            Some(code) => Proof::Code(code),
            None => Proof::Password(body.required("password", rules::non_empty)),
        };
        // Forms send a field that was left empty, too.
        (token, proof, body.filter("username", rules::username))
    })?;
    let (keys, now) = (&context.app.sealing_keys, OffsetDateTime::now_utc());
    let outcome = match EmailToken::verify(keys, installation_id(context)?, &token, now) {
        Some(EmailToken::Registration(registration)) => match proof {
            Proof::Password(password) => make_account(context, registration, &password, username),
            Proof::Code(_) => refuse(context, &proof),
        },
        Some(EmailToken::Change(change)) => change_email(context, &change, &proof),
        None => refuse(context, &proof),
    };
    match outcome {
        Ok(()) => response::message("E-mail address has been confirmed"),
        Err(Error::Taken(Unique::Email)) => Err(Error::InvalidConfirmationToken),
        Err(error) => Err(error.at_registration()),
    }
}

/// Refuses the token. A code that was sent with it is used up all the same.
fn refuse(context: &RequestContext, proof: &Proof) -> Result<(), Error> {
    if let Proof::Code(code) = proof {
        provider::code::take(context, code)?;
    }
    Err(Error::InvalidConfirmationToken)
}

/// Makes the account of a registration. A `username` replaces the one of the registration.
fn make_account(
    context: &mut RequestContext,
    registration: Registration,
    password: &str,
    username: Option<String>,
) -> Result<(), Error> {
    if !context.app.config.registers() {
        return Err(Error::InvalidConfirmationToken);
    }
    check_password(context, (registration.id, None), password, &registration.password_hash)?;
    let account = AccountFields {
        username: username.or(registration.username),
        email: Some(registration.email),
        name: registration.name,
        password_hash: Some(registration.password_hash),
        registration: Some(registration.id),
        ..AccountFields::default()
    };
    let insert = || accounts::insert(&context.db, &account, None);
    // Of two uses of one link at one moment, the later one may meet the username before the id. A second look tells.
    let user = insert().or_else(|error| match error {
        Error::Taken(Unique::Username) => insert(),
        other => Err(other),
    })?;
    context.account_in_log = Some(user.id);
    Ok(())
}

/// Gives an account its new address, if the password is right, or the identity that a code proves. A refusal is an
/// event of the audit log.
fn change_email(
    context: &mut RequestContext,
    change: &EmailChange,
    proof: &Proof,
) -> Result<(), Error> {
    let EmailChange { account, version, email } = change;
    context.account_in_log = Some(*account);
    context.db.changes_are_of(*account);
    context.audits(RefusedAction::EmailChange, Some(*account));
    let proven = match proof {
        Proof::Code(code) => Some(provider::code::take(context, code)?),
        Proof::Password(_) => None,
    };
    let found = accounts::find_credentials(&context.db, *account, context.client)?;
    let found = found.filter(|found| found.version == *version);
    let found = found.ok_or(Error::InvalidConfirmationToken)?;
    match (proof, &found.password_hash, &proven) {
        (Proof::Password(password), Some(stored), _) => {
            check_password(context, (*account, found.known_network), password, stored)?;
        }
        (_, _, Some(identity)) if found.is_proven_by(identity) => {}
        (Proof::Code(_), ..) => return Err(Error::InvalidProviderCode),
        _ => return Err(Error::InvalidConfirmationToken),
    }
    statements::change_email(&context.db, *account, *version, email)
}

/// Checks the password of a token. Wrong ones count as failed sign-ins of the account that the token is for or makes.
fn check_password(
    context: &mut RequestContext,
    (account, known_network): (Uuid, Option<String>),
    password: &str,
    stored: &str,
) -> Result<(), Error> {
    let name = LoginName::OfAccount(account);
    let hash_request = context.hash_request();
    let caller = Caller::SigningIn(&name, known_network.as_deref());
    let attempt = limits::take(context, Limit::FailedSignIns, caller)?;
    if context.app.hasher.check(password, Some(stored), hash_request)?.is_none() {
        attempt.count();
        return Err(Error::InvalidConfirmationToken);
    }
    Ok(())
}
