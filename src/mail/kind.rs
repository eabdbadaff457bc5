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

/// A row of the table. The text is the file that has the name of the kind.
macro_rules! kind {
    ($name:literal, $link:expr, $subject:literal) => {
        MailKind {
            name: $name,
            subject: $subject,
            text: include_str!(concat!("templates/", $name, ".txt")),
            link: $link,
        }
    };
}

/// All that the outbox holds, and what is sent in its place.
static KINDS: [MailKind; 14] = [
    kind!("password_reset", Some(MailLink::PasswordReset), "Reset your Cloakroom password"),
    kind!("invitation", Some(MailLink::Invitation), "You have a Cloakroom account"),
    kind!(
        "email_confirmation",
        Some(MailLink::EmailConfirmation),
        "Confirm your e-mail address for Cloakroom"
    ),
    // Instead of the one before, if an account has the address.
    kind!("email_taken", None, "You have a Cloakroom account already"),
    // To the present address.
    kind!(
        "email_change_requested",
        None,
        "Your Cloakroom account is about to change its e-mail address"
    ),
    kind!("password_changed", None, "Your Cloakroom password was changed"),
    // This one goes to the address before.
    kind!("email_changed", None, "The e-mail address of your Cloakroom account was changed"),
    kind!("token_created", None, "A personal access token of your Cloakroom account was created"),
    kind!("second_factor_enabled", None, "Your Cloakroom account has a second factor"),
    kind!(
        "second_factor_disabled",
        None,
        "The second factor of your Cloakroom account was taken away"
    ),
    kind!("recovery_code_used", None, "A recovery code of your Cloakroom account was used"),
    kind!("recovery_codes_renewed", None, "New recovery codes of your Cloakroom account were made"),
    kind!("too_many_wrong_codes", None, "The password of your Cloakroom account must be reset"),
    kind!("files_lost", None, "Files of your Cloakroom account were lost"),
];

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
