//! Accounts as clients see them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

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
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Admin => "admin",
        }
    }

    /// Every role with its name.
    pub const CHOICES: [(&'static str, Role); 2] = [("user", Role::User), ("admin", Role::Admin)];

    /// The role with this name.
    pub fn named(name: &str) -> Option<Role> {
        Role::CHOICES.iter().find(|(word, _)| *word == name).map(|(_, role)| *role)
    }
}

impl JsonSchema for Role {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Role".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Role::CHOICES.map(|(word, _)| word) })
    }
}

/// An account.
//
// It has no password hash, so that no response can contain one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct User {
    pub id: Uuid,
    /// `null` if the account was registered with an e-mail address only.
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
    /// Serialised only as part of a [`Profile`].
    #[serde(skip)]
    pub stats: Stats,
}

/// What an account has stored.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub struct Stats {
    /// Number of files.
    pub total_uploads: i64,
    /// Bytes of all its files.
    pub total_storage_used: i64,
}

/// An account together with what it has stored.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Profile")]
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
