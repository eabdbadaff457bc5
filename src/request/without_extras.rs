//! What the core build has in place of the modules of these names, see `src/without_extras.rs`.

/// A personal access token is an invalid token.
pub mod personal_token {
    use std::time::Duration;

    use crate::db::Database;
    use crate::error::{Error, TokenProblem};
    use crate::model::user::{TokenHash, TokenScope, User};

    pub fn hash_of(_: &str) -> Result<Option<TokenHash>, Error> {
        Ok(None)
    }

    pub fn authenticate(
        _: &Database,
        _: &TokenHash,
        _: Duration,
    ) -> Result<(User, TokenScope, i32), Error> {
        Err(Error::InvalidToken(TokenProblem::NotOurs))
    }
}

/// No address holds a token.
pub mod view_token {
    use crate::error::Error;
    use crate::request::context::RequestContext;

    pub fn of(_: &RequestContext) -> Option<String> {
        None
    }

    pub fn refusal(error: Error) -> Error {
        error
    }
}
