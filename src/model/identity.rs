//! Who somebody is to an OpenID provider.

/// An identity that a browser has proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The provider, and who it says that this is (OpenID Connect Core, 2): only both together tell people apart.
    pub issuer: String,
    pub subject: String,
    /// The address, if the provider says that it has confirmed it. It tells nobody apart.
    pub email: Option<String>,
    /// Display name.
    pub name: Option<String>,
    /// Whether the person has signed in to the provider just now, and not only some time ago.
    pub is_fresh: bool,
    /// Whether it may be joined to an account: it is fresh, or the provider never tells.
    pub may_join: bool,
    /// Whether the provider knows its people, so that an account that it makes is none of a stranger.
    pub is_known: bool,
    /// Whether the provider says that its owner is an administrator, if it is asked.
    pub is_admin: Option<bool>,
}
