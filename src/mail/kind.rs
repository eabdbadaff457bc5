//! The kinds of mail: a table of their subjects and texts, which are the files in `templates/`.

/// A kind of mail.
#[derive(Debug)]
pub struct MailKind {
    /// The word for it in the database and in the log.
    pub name: &'static str,
    pub subject: &'static str,
    /// The text. Placeholders are names in braces.
    pub text: &'static str,
    /// What the link in it is for; `None` if it has none, and only reports a change.
    pub link: Option<MailLink>,
}

/// What a link in a mail is for.
#[derive(Debug, Clone, Copy)]
pub enum MailLink {
    /// A new password, which the owner of the account asked for.
    PasswordReset,
    /// The first password of an account that an administrator made.
    Invitation,
    /// The confirmation that the address is the reader's.
    EmailConfirmation,
}

/// Makes the table of rows `"name" LINK "subject"`. The text is the file that has the name of the kind.
macro_rules! kinds {
    ($($name:literal $($link:ident)? $subject:literal;)+) => {
        /// Every kind of mail.
        static KINDS: &[MailKind] = &[$(MailKind {
            name: $name,
            subject: $subject,
            text: include_str!(concat!("templates/", $name, ".txt")),
            link: kinds!(@link $($link)?),
        }),+];
    };
    (@link) => { None };
    (@link $link:ident) => { Some(MailLink::$link) };
}

kinds! {
    "password_reset" PasswordReset "Reset your Cloakroom password";
    "invitation" Invitation "You have a Cloakroom account";
    "email_confirmation" EmailConfirmation "Confirm your e-mail address for Cloakroom";
    // Sent in place of the one before if an account has the address.
    "email_taken" "You have a Cloakroom account already";
    // To the present address.
    "email_change_requested" "Your Cloakroom account is about to change its e-mail address";
    "password_changed" "Your Cloakroom password was changed";
    // To the former address.
    "email_changed" "The e-mail address of your Cloakroom account was changed";
    "token_created" "A personal access token of your Cloakroom account was created";
    "second_factor_enabled" "Your Cloakroom account has a second factor";
    "second_factor_disabled" "The second factor of your Cloakroom account was taken away";
    "recovery_code_used" "A recovery code of your Cloakroom account was used";
    "recovery_codes_renewed" "New recovery codes of your Cloakroom account were made";
    "too_many_wrong_codes" "The password of your Cloakroom account must be reset";
    "identity_joined" "Your Cloakroom account can be signed in to in another way";
    "files_lost" "Files of your Cloakroom account were lost";
    "files_received" "Files came to your Cloakroom account";
}

/// The kind with this word; `None` if there is none.
pub fn mail_kind(name: &str) -> Option<&'static MailKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Replaces the placeholders of a text by their values. Values are not searched for placeholders, and braces around
/// other words stay.
pub fn substitute(template: &str, values: &[(&'static str, String)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let found = after.split_once('}').and_then(|(name, after)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((value, after))
        });
        let (value, after) = found.map_or(("{", after), |(value, after)| (value, after));
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_placeholders_are_replaced_and_values_are_not_searched() {
        let values = [("a", "<{b}>".to_owned()), ("b", "2".to_owned())];
        for (template, text) in [
            ("", ""),
            ("{a}{b}", "<{b}>2"),
            ("{c} {} {a", "{c} {} {a"),
            ("{{a}}", "{<{b}>}"),
            ("x}{b", "x}{b"),
        ] {
            assert_eq!(substitute(template, &values), text);
        }
    }
}
