//! Accounts as clients see them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::timestamp::Timestamp;

/// What an account is allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Use its own profile and files.
    #[default]
    User,
    /// Manage all accounts as well.
    Admin,
}

impl Role {
    /// The word for the role in tokens, bodies and the database.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Admin => "admin",
        }
    }

    /// Every role, by its name.
    pub const CHOICES: [(&'static str, Role); 2] = [("user", Role::User), ("admin", Role::Admin)];

    /// The role of that name.
    pub fn named(name: &str) -> Option<Role> {
        [Role::User, Role::Admin].into_iter().find(|role| role.name() == name)
    }
}

/// An account, without its password hash, so that no response can contain one.
#[derive(Debug, Clone, Serialize)]
pub struct User {
    pub id: Uuid,
    /// Absent where the account was registered by e-mail address only.
    pub username: Option<String>,
    /// As it was given: its case is kept, but not compared.
    pub email: String,
    /// Display name.
    pub name: Option<String>,
    pub role: Role,
    /// Words for clients to interpret; the service only keeps them.
    pub permissions: Vec<String>,
    /// Whether the account may sign in.
    pub is_active: bool,
    pub created_at: Timestamp,
    /// Last change of the profile or the password.
    pub updated_at: Timestamp,
    pub last_login: Option<Timestamp>,
    /// Serialised only as part of a [`Profile`].
    #[serde(skip)]
    pub stats: Stats,
}

/// What an account has stored.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Stats {
    /// Number of files.
    pub total_uploads: i64,
    /// Bytes of all its files.
    pub total_storage_used: i64,
}

/// An account with its `stats`, as the profile and the lists of administrators show it.
#[derive(Serialize)]
pub struct Profile<'a> {
    #[serde(flatten)]
    user: &'a User,
    stats: Stats,
}

impl<'a> Profile<'a> {
    pub fn of(user: &'a User) -> Profile<'a> {
        Profile { user, stats: user.stats }
    }
}
