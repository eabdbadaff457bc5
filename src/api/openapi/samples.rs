//! The errors that the document shows as examples.

use crate::config::Config;
use crate::error::{Error, Forbidden, TokenProblem, Unique, UploadLimits};
use crate::http::multipart::MAX_FORM_OVERHEAD;
use crate::http::request::MAX_TEXT_BODY;

/// One error of each kind but 422, whose examples depend on the fields of an endpoint. Limits are those of the
/// settings. No two have the same status and reason.
pub fn samples(config: &Config) -> Vec<Error> {
    use Error::*;
    let accepted: Vec<_> = config.allowed_upload_types.iter().collect();
    let limits = UploadLimits { file: config.max_upload_size, rest: MAX_FORM_OVERHEAD };
    let limited = |login| RateLimited { retry_after: 12, login };
    #[rustfmt::skip] // In groups, as in the table of errors.
    let mut samples = vec![
        BadRequest, SecondAuthorization, HeadersTooLarge, HeadTooSlow, VersionNotSupported, ExpectationFailed,
        RouteNotFound { has_docs: config.docs }, MethodNotAllowed("GET, HEAD".to_owned()), FeatureOff,
        AuthenticationRequired, RefreshTokenRequired, InvalidScheme, InvalidAuthorization, UserNotUsable,
        ApiKeyMissing { is_export: true }, ApiKeyMissing { is_export: false }, ApiKeyInvalid, ApiKeyMisconfigured,
        AdminRequired, UserNotFound, SessionNotFound, TokenNotFound, FileNotFound, TooManyTokens,
        LinkNotFound, TooManyLinks, LastAdmin,
        ExportTooLarge(config.export_max_rows), OffsetOutOfRange, LimitOutOfRange,
        SecondFactorRequired { is_password_refused: false }, SecondFactorRequired { is_password_refused: true },
        InvalidCode { at_sign_in: true }, InvalidCode { at_sign_in: false }, SecondFactorEnabled, SecondFactorNotFound,
        AdminSecondFactorRequired, BadCredentials, InactiveAccount, WrongCurrentPassword, InvalidResetToken,
        BodyTooLarge(MAX_TEXT_BODY), BodyCutShort, BodyMalformed, BodyTooSlow,
        FileTooLarge(config.max_upload_size), FormTooLarge(limits), StorageFull, RangeNotSatisfiable(4096),
        TypeNotAllowed { declared: "text/html".to_owned(), accepted: accepted.join(", ") },
        TypeContradicted { declared: "image/jpeg".to_owned(), recognised: "image/png" },
        limited(true), limited(false), Unavailable, OutcomeUnknown, TimedOut, Internal(String::new()),
    ];
    let taken = [Unique::Username, Unique::Email];
    samples.extend(taken.map(TakenAtRegistration));
    samples.extend(taken.map(Taken));
    samples.extend(token_problems().map(InvalidToken));
    samples.extend(refusals().map(NotPermitted));
    samples
}

fn token_problems() -> [TokenProblem; 6] {
    use TokenProblem::*;
    [NotOurs, NotAccess, NotRefresh, Expired, SessionEnded, PersonalTokenEnded]
}

fn refusals() -> [Forbidden; 8] {
    use Forbidden::*;
    [
        PrivateFile,
        ForeignFile,
        PersonalToken,
        AdminByPersonalToken,
        ReadOnlyToken,
        OwnSecondFactor,
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
