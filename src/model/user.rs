//! Accounts, and the sessions and tokens of their users, as clients see them.

use serde::{Deserialize, Serialize};
use time::Duration;
use uuid::Uuid;

use super::file::FileQuotas;
use super::timestamp::Timestamp;

/// What an account is allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May use its own profile and files.
    #[default]
    User,
    /// May also manage all accounts.
    Admin,
}

impl Role {
    /// The name of the role in tokens, JSON and the database.
    pub const fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Admin => "admin",
        }
    }

    /// Every role with its name.
    pub const CHOICES: [(&'static str, Role); 2] =
        [(Role::User.name(), Role::User), (Role::Admin.name(), Role::Admin)];
}

/// An account. It has no password hash, so that no response can contain one.
#[derive(Debug, Clone, Serialize)]
pub struct User {
    pub id: Uuid,
    /// `None` if the account was registered with an e-mail address only.
    pub username: Option<String>,
    /// Stored as it was given, but compared without regard to case.
    pub email: String,
    /// Display name.
    pub name: Option<String>,
    pub role: Role,
    /// Words for clients to interpret; the service only stores them.
    pub permissions: Vec<String>,
    /// Whether the account may sign in.
    pub is_active: bool,
    pub created_at: Timestamp,
    /// When the profile or the password last changed.
    pub updated_at: Timestamp,
    pub last_login: Option<Timestamp>,
    /// Whether signing in needs a code of the second factor.
    pub second_factor: bool,
    /// Whether it has a password, which the owner of an invited account may not have chosen yet.
    pub has_password: bool,
    /// Whether its owner can sign in by an OpenID provider.
    pub has_identity: bool,
    /// The most bytes that the user may have, if an administrator has set that. `None` is the default of the settings.
    pub storage_quota: Option<i64>,
    /// The most files, likewise.
    pub file_quota: Option<i64>,
    /// The address that takes the place of `email` once it is confirmed. Only in the response to the request for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_email: Option<String>,
    /// Serialised only as part of a [`Profile`].
    #[serde(skip)]
    pub stats: Stats,
}

/// How long an account is young. Anyone can make accounts, so a limit for each of them limits nobody, and those that
/// are young share some.
const YOUNG: Duration = Duration::days(7);

impl User {
    /// How many bytes and files the user may have: the user's own quotas, or else the defaults.
    pub fn quotas(&self, defaults: &FileQuotas) -> (i64, i64) {
        // Both fit: an exbibyte is 2^60 bytes.
        let (bytes, files) = (defaults.user_bytes.cast_signed(), i64::from(defaults.user_files));
        (self.storage_quota.unwrap_or(bytes), self.file_quota.unwrap_or(files))
    }

    /// Whether the account is younger than seven days.
    pub fn is_young(&self) -> bool {
        Timestamp::now().0 - self.created_at.0 < YOUNG
    }
}

/// What an account has stored.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Stats {
    /// Number of files.
    pub total_uploads: i64,
    /// Bytes of all its files.
    pub total_storage_used: i64,
}

/// Totals of accounts. Months are calendar months, UTC.
#[derive(Serialize)]
pub struct UserStatistics {
    pub total: i64,
    /// Accounts that may sign in.
    pub active: i64,
    /// Accounts created this month.
    pub new_this_month: i64,
}

/// An account together with what it has stored.
#[derive(Serialize)]
pub struct Profile<'a> {
    #[serde(flatten)]
    user: &'a User,
    stats: ProfileStats,
}

/// What an account has stored, and how much it may have.
#[derive(Serialize)]
struct ProfileStats {
    #[serde(flatten)]
    stored: Stats,
    /// The user's own quota of bytes, or else the default.
    storage_quota: i64,
    file_quota: i64,
}

impl<'a> Profile<'a> {
    /// `defaults` are the quotas of users without their own.
    pub fn of(user: &'a User, defaults: &FileQuotas) -> Profile<'a> {
        let (storage_quota, file_quota) = user.quotas(defaults);
        Profile { user, stats: ProfileStats { stored: user.stats, storage_quota, file_quota } }
    }
}

/// What an access token says of the sign-in that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignIn {
    /// Tokens that other software signed have none.
    pub session: Option<Uuid>,
    /// When the token was issued (Unix time, seconds).
    pub issued_at: Option<u64>,
}

impl SignIn {
    /// The parameters of the database function `is_signed_in`.
    pub fn params(self) -> (Option<Uuid>, i64) {
        (self.session, self.issued_at.and_then(|at| i64::try_from(at).ok()).unwrap_or(0))
    }
}

/// The SHA-256 of a token, under which it is stored.
pub type TokenHash = [u8; 32];

/// What a personal access token is accepted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "no token has a scope"))]
pub enum TokenScope {
    /// All that any personal access token is accepted for.
    #[default]
    All,
    /// `GET` and `HEAD`.
    Read,
    /// `POST /uploads` alone, for devices that add files.
    Upload,
}

/// Whose failed sign-ins are counted together. A username and an address of one account are the same.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum LoginName {
    /// Any name of the account with this id.
    OfAccount(Uuid),
    /// The SHA-256 of the [`email_key`](super::text::email_key) of a name that no account has.
    Unknown(Vec<u8>),
}
