//! Who somebody is to an OpenID provider.

/// An identity that a browser has proven.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The provider, and who it says that this is (OpenID Connect Core, 2): only both together tell people apart.
    pub issuer: String,
    pub subject: String,
    /// The address, if the provider says that it has confirmed it. It tells nobody apart.
    pub email: Option<String>,
    /// Whether the person has signed in to the provider just now, and not only some time ago.
    pub is_fresh: bool,
}
