//! The texts of messages, which are the files in `templates/`, and the values that take the place of their
//! placeholders.

use crate::model::message_kind::MessageKind;

/// The texts of one kind of message. Placeholders are names in braces.
pub struct Template {
    pub subject: &'static str,
    pub text: &'static str,
    pub html: &'static str,
}

macro_rules! template {
    ($subject:literal, $name:literal) => {
        Template {
            subject: $subject,
            text: include_str!(concat!("templates/", $name, ".txt")),
            html: include_str!(concat!("templates/", $name, ".html")),
        }
    };
}

/// The texts of a kind of message.
pub fn template(kind: MessageKind) -> Template {
    use MessageKind::*;
    match kind {
        PasswordReset => template!("Reset your Cloakroom password", "password_reset"),
        Invitation => template!("You have a Cloakroom account", "invitation"),
        PasswordChanged => template!("Your Cloakroom password was changed", "password_changed"),
        EmailChanged => {
            template!("The e-mail address of your Cloakroom account was changed", "email_changed")
        }
        TokenCreated => template!(
            "A personal access token of your Cloakroom account was created",
            "token_created"
        ),
        SecondFactorEnabled => {
            template!("Your Cloakroom account has a second factor", "second_factor_enabled")
        }
        SecondFactorDisabled => template!(
            "The second factor of your Cloakroom account was taken away",
            "second_factor_disabled"
        ),
        RecoveryCodeUsed => {
            template!("A recovery code of your Cloakroom account was used", "recovery_code_used")
        }
        RecoveryCodesRenewed => template!(
            "New recovery codes of your Cloakroom account were made",
            "recovery_codes_renewed"
        ),
        TooManyWrongCodes => template!(
            "The password of your Cloakroom account must be reset",
            "too_many_wrong_codes"
        ),
        Test => template!("Test message from Cloakroom", "test"),
    }
}

/// Replaces the placeholders of a template by their values, passed through `escape`. Values are not searched for
/// placeholders, and braces around other words stay.
pub fn substitute(
    template: &str,
    values: &[(&'static str, String)],
    escape: impl Fn(&str) -> String,
) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let found = after.split_once('}').and_then(|(name, after)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((value, after))
        });
        rest = match found {
            Some((value, after)) => {
                text.push_str(&escape(value));
                after
            }
            None => {
                text.push('{');
                after
            }
        };
    }
    text.push_str(rest);
    text
}

/// Escapes a text for HTML, both between tags and in the quotes of an attribute.
pub fn escape_html(text: &str) -> String {
    let mut html = String::new();
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_placeholders_are_replaced_and_values_are_not_searched() {
        let values = [("a", "<{b}>".to_owned()), ("b", "2".to_owned())];
        for (template, text, html) in [
            ("", "", ""),
            ("{a}{b}", "<{b}>2", "&lt;{b}&gt;2"),
            ("{c} {} {a", "{c} {} {a", "{c} {} {a"),
            ("{{a}}", "{<{b}>}", "{&lt;{b}&gt;}"),
            ("x}{b", "x}{b", "x}{b"),
        ] {
            assert_eq!(substitute(template, &values, str::to_owned), text);
            assert_eq!(substitute(template, &values, escape_html), html);
        }
        assert_eq!(escape_html("a\"b'c&d"), "a&quot;b&#39;c&amp;d");
    }
}
