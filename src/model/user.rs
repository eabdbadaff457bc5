//! Users as the API shows them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::timestamp::Timestamp;

/// What an account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Its own profile and files.
    #[default]
    User,
    /// Everything about users as well.
    Admin,
}

impl Role {
    /// The word in tokens, bodies and the database.
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

/// A full User (contract, 7), without `stats`. Never holds the password hash.
#[derive(Debug, Clone, Serialize)]
pub struct User {
    /// Made by the service.
    pub id: Uuid,
    /// Absent where the account was registered by e-mail only.
    pub username: Option<String>,
    /// As given.
    pub email: String,
    /// Display name.
    pub name: Option<String>,
    /// What the account may do.
    pub role: Role,
    /// Free words for clients; the service does not read them.
    pub permissions: Vec<String>,
    /// False: may not sign in.
    pub is_active: bool,
    /// Creation.
    pub created_at: Timestamp,
    /// Last change of the profile.
    pub updated_at: Timestamp,
    /// Last login.
    pub last_login: Option<Timestamp>,
    /// What the account stores; shown only as part of a [`Profile`].
    #[serde(skip)]
    pub stats: Stats,
}

/// What an account stores.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Stats {
    /// Storage.
    pub total_uploads: i64,
    /// Bytes of all files.
    pub total_storage_used: i64,
}

/// A full User with `stats`.
#[derive(Serialize)]
pub struct Profile<'a> {
    #[serde(flatten)]
    user: &'a User,
    stats: Stats,
}

impl<'a> Profile<'a> {
    /// The profile of `user`.
    pub fn of(user: &'a User) -> Profile<'a> {
        Profile { user, stats: user.stats }
    }
}
