//! The kinds of mail that the service sends.

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A link to set a new password, which the owner of the account asked for.
    PasswordReset,
    /// A link to set the first password of an account that an administrator made.
    Invitation,
    /// A notice that the password was changed.
    PasswordChanged,
    /// A notice that the account has another e-mail address, which goes to the one before.
    EmailChanged,
    /// A notice that a personal access token was created.
    TokenCreated,
    /// A notice that signing in needs a second factor from now on.
    SecondFactorEnabled,
    /// A notice that it needs none any more.
    SecondFactorDisabled,
    /// A notice that a recovery code was used.
    RecoveryCodeUsed,
    /// A notice that new recovery codes were made, which end the ones before.
    RecoveryCodesRenewed,
    /// A notice that the password serves no longer, because too many wrong codes were sent with it.
    TooManyWrongCodes,
    /// The message of `cloakroom send-test-mail`, which is never stored.
    Test,
}

impl MessageKind {
    /// The word for it in the database and in the log.
    pub fn name(self) -> &'static str {
        match self {
            MessageKind::PasswordReset => "password_reset",
            MessageKind::Invitation => "invitation",
            MessageKind::PasswordChanged => "password_changed",
            MessageKind::EmailChanged => "email_changed",
            MessageKind::TokenCreated => "token_created",
            MessageKind::SecondFactorEnabled => "second_factor_enabled",
            MessageKind::SecondFactorDisabled => "second_factor_disabled",
            MessageKind::RecoveryCodeUsed => "recovery_code_used",
            MessageKind::RecoveryCodesRenewed => "recovery_codes_renewed",
            MessageKind::TooManyWrongCodes => "too_many_wrong_codes",
            MessageKind::Test => "test",
        }
    }

    /// The kind with this word.
    pub fn from_name(name: &str) -> Option<MessageKind> {
        use MessageKind::*;
        let kinds = [
            PasswordReset,
            Invitation,
            PasswordChanged,
            EmailChanged,
            TokenCreated,
            SecondFactorEnabled,
            SecondFactorDisabled,
            RecoveryCodeUsed,
            RecoveryCodesRenewed,
            TooManyWrongCodes,
            Test,
        ];
        kinds.into_iter().find(|kind| kind.name() == name)
    }
}
