//! The errors that the document shows as examples.

use crate::config::Config;
use crate::error::{Error, Forbidden, TokenProblem, Unique};
use crate::http::request::MAX_TEXT_BODY;

/// One error of each kind but 422, whose examples depend on the fields of an endpoint. Limits are those of the
/// settings. No two have the same status and reason.
pub fn samples(config: &Config) -> Vec<Error> {
    let accepted: Vec<_> = config.allowed_upload_types.iter().collect();
    let mut samples = vec![
        Error::BadRequest,
        Error::HeadersTooLarge,
        Error::HeadTooSlow,
        Error::VersionNotSupported,
        Error::ExpectationFailed,
        Error::RouteNotFound { has_docs: config.docs },
        Error::MethodNotAllowed("GET, HEAD".to_owned()),
        Error::AuthenticationRequired,
        Error::InvalidScheme,
        Error::InvalidAuthorization,
        Error::UserNotUsable,
        Error::ApiKeyMissing { is_export: true },
        Error::ApiKeyMissing { is_export: false },
        Error::ApiKeyInvalid,
        Error::ApiKeyMisconfigured,
        Error::AdminRequired,
        Error::UserNotFound,
        Error::SessionNotFound,
        Error::TokenNotFound,
        Error::TooManyTokens,
        Error::LastAdmin,
        Error::FeatureOff,
        Error::ExportTooLarge(config.export_max_rows),
        Error::OffsetOutOfRange,
        Error::LimitOutOfRange,
        Error::BadCredentials,
        Error::InactiveAccount,
        Error::WrongCurrentPassword,
        Error::InvalidResetToken,
        Error::BodyTooLarge(MAX_TEXT_BODY),
        Error::FileTooLarge(config.max_upload_size),
        Error::TypeNotAllowed { declared: "text/html".to_owned(), accepted: accepted.join(", ") },
        Error::TypeContradicted { declared: "image/jpeg".to_owned(), recognised: "image/png" },
        Error::StorageFull,
        Error::FileNotFound,
        Error::RangeNotSatisfiable(4096),
        Error::BodyCutShort,
        Error::BodyMalformed,
        Error::BodyTooSlow,
        Error::RateLimited { retry_after: 12, login: true },
        Error::RateLimited { retry_after: 12, login: false },
        Error::Unavailable,
        Error::OutcomeUnknown,
        Error::TimedOut,
        Error::Internal(String::new()),
    ];
    let taken = [Unique::Username, Unique::Email];
    samples.extend(taken.map(Error::TakenAtRegistration));
    samples.extend(taken.map(Error::Taken));
    samples.extend(token_problems().map(Error::InvalidToken));
    samples.extend(refusals().map(Error::NotPermitted));
    samples
}

fn token_problems() -> [TokenProblem; 6] {
    use TokenProblem::*;
    [NotOurs, NotAccess, NotRefresh, Expired, SessionEnded, PersonalTokenEnded]
}

fn refusals() -> [Forbidden; 7] {
    use Forbidden::*;
    [
        PrivateFile,
        ForeignFile,
        PersonalToken,
        AdminByPersonalToken,
        ReadOnlyToken,
        DevelopmentAdmin,
        ForeignPage,
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The compiler demands a row in the table of errors for each variant. So it is enough that each row has a sample.
    #[test]
    fn each_row_of_the_table_of_errors_has_one_sample() {
        let table = include_str!("../../error/explanation.rs");
        let rows = table.split("=> row(").skip(1).map(|row| {
            let mut words = row.split([',', '"']);
            let status = words.next().unwrap_or_default().parse::<u16>();
            (status.unwrap_or_default(), words.nth(1).unwrap_or_default())
        });
        let rows: BTreeSet<_> = rows.filter(|(status, _)| *status != 422).collect();
        let mut sampled = BTreeSet::new();
        for sample in samples(&Config::of_test_database()) {
            let (status, reason) = (sample.status(), sample.reason());
            assert!(sampled.insert((status, reason)), "{status} {reason} has two samples");
        }
        assert_eq!(sampled, rows);
    }
}
