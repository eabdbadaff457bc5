//! The core build, which has no feature `extras`: what it does where the other one uses a feature beyond the
//! specification. Each module has the name of the one in whose place it is.

/// No setting switches confirmations on here.
pub mod confirmation {
    use uuid::Uuid;

    use crate::error::Error;
    use crate::http::response::Response;
    use crate::request::context::RequestContext;

    pub fn register(
        _: &RequestContext,
        _: Option<String>,
        _: String,
        _: Option<String>,
        _: String,
    ) -> Result<Response, Error> {
        Err(Error::FeatureOff)
    }

    pub fn seal_change(_: &RequestContext, _: Uuid, _: i32, _: String) -> Result<Vec<u8>, Error> {
        Err(Error::FeatureOff)
    }
}

/// No request names a folder.
pub mod folders {
    use crate::error::{Error, Problem};
    use crate::http::multipart::Multipart;
    use crate::http::params::Params;

    pub fn field(_: &mut Params) -> Option<String> {
        None
    }

    pub fn part(_: &mut Multipart) -> Result<Result<String, Problem>, Error> {
        Ok(Ok(String::new()))
    }

    pub fn filters(_: &mut Params) -> (Option<String>, Option<String>, Option<bool>) {
        (None, None, None)
    }
}

/// No upload has a key, because the header is not read.
pub mod repeats {
    use uuid::Uuid;

    use crate::db::Database;
    use crate::error::Error;
    use crate::http::request::Request;
    use crate::model::file::{File, KeyedUpload, NewFile};

    pub fn key(_: &Request) -> Result<Option<String>, Error> {
        Ok(None)
    }

    pub fn find(_: &Database, _: Uuid, _: &str) -> Result<Option<KeyedUpload>, Error> {
        Ok(None)
    }

    pub fn key_reused() -> Error {
        Error::FeatureOff
    }

    pub fn first_file(_: &NewFile, _: &KeyedUpload) -> Result<File, Error> {
        Err(Error::FeatureOff)
    }
}

/// Codes cannot be checked, so an account with a second factor cannot sign in.
pub mod second_factor {
    pub mod code {
        use uuid::Uuid;

        use crate::error::Error;
        use crate::model::second_factor::{AcceptedCode, StoredSecondFactor};
        use crate::request::context::RequestContext;

        pub fn check_at_login(
            _: &mut RequestContext,
            _: Uuid,
            _: &StoredSecondFactor,
            _: Option<&str>,
        ) -> Result<AcceptedCode, Error> {
            Err(Error::SecondFactorRequired { is_password_refused: false })
        }

        /// The credentials of the account have changed since they were checked.
        pub fn refused_code(context: &mut RequestContext, _: Uuid, _: bool) -> Error {
            context.bad_credentials()
        }
    }
}

/// A deletion is final.
pub mod undo {
    use crate::error::Error;
    use crate::files::statements::{Deletion, FileQuery};
    use crate::http::params::Params;
    use crate::http::response::Response;
    use crate::model::page::PageRequest;
    use crate::request::context::RequestContext;
    use crate::request::identity::SignedIn;

    pub fn is_asked_for(_: &mut Params) -> bool {
        false
    }

    pub fn list(
        _: &RequestContext,
        _: &SignedIn,
        _: &FileQuery,
        _: PageRequest,
    ) -> Result<Response, Error> {
        Err(Error::FeatureOff)
    }

    pub fn deletion(_: &RequestContext, _: &SignedIn) -> Result<Deletion, Error> {
        Ok(Deletion { is_restorable: false, is_permanent: false })
    }
}
