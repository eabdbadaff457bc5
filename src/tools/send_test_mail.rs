//! `cloakroom send-test-mail`: sends one message and shows the dialogue with the mail server, so that an administrator
//! sees what is wrong with the settings.

use super::output::print_line;
use crate::config::{Config, Smtp, UnknownVariable};
use crate::mail::kind::MailKind;
use crate::mail::{Mail, MailError, Mailer};
use crate::model::timestamp::Timestamp;
use crate::serve::CommandError;

/// The message, which is never stored.
static TEST: MailKind = MailKind {
    name: "test",
    subject: "Test message from Cloakroom",
    text: include_str!("test_mail.txt"),
    link: None,
};
/// What to do if no mail server is set.
const SERVER: &str =
    "set it to the URL of a mail server, such as smtps://user:password@mail.example.com:465";

/// Sends the message to this address, whether or not an account has it. Needs no database.
pub fn send_test_mail(config: &Config, address: &str) -> Result<(), CommandError> {
    let mailer = Mailer::new(config).ok_or_else(|| {
        let warnings = config.unknown.iter().map(UnknownVariable::warning);
        CommandError::Settings(missing_settings(config).into_iter().chain(warnings).collect())
    })?;
    print_line(format_args!("Sending a test message through {}", config.smtp));
    let mail = Mail::new(&TEST, Timestamp::now(), |_| Err("it has no link".to_owned()))?;
    mailer
        .send(address, &mail, &mut |line| print_line(line))
        .map_err(|error| format!("not sent: {error}. {}", advice(&error)))?;
    print_line(
        "The mail server has taken the message. If it does not arrive, look into the recipient's spam folder, and \
         check the SPF and DKIM records of the sender's domain.",
    );
    Ok(())
}

/// Says which of the settings that mail needs are not set.
fn missing_settings(config: &Config) -> Vec<String> {
    let state = match config.smtp {
        Smtp::Off => "holds the word none",
        Smtp::Unset => "is not set",
        Smtp::Server(_) => "",
    };
    if !state.is_empty() {
        return vec![format!("CLOAKROOM_SMTP_URL {state}, so no mail is sent; {SERVER}")];
    }
    let confirmation_page = config.email_confirmation_url.as_ref();
    let settings = [
        ("MAIL_FROM", config.mail_from.is_none()),
        ("PASSWORD_RESET_URL", config.password_reset_url.is_none()),
        ("EMAIL_CONFIRMATION_URL", config.confirms_email() && confirmation_page.is_none()),
    ];
    let missing = settings.into_iter().filter(|(_, is_missing)| *is_missing);
    missing
        .map(|(name, _)| format!("CLOAKROOM_{name} is not set, and CLOAKROOM_SMTP_URL needs it"))
        .collect()
}

/// Returns what an administrator can do about the error.
pub fn advice(error: &MailError) -> &'static str {
    if error.code.is_some_and(|code| code / 100 == 4) {
        return "The server refuses for now, as if it were busy, or did not know the sender yet (greylisting): try \
                again in some minutes, as the service does by itself.";
    }
    match error.step {
        "composing" => "Check the address after --to.",
        "connecting" => {
            "Check the host and the port in CLOAKROOM_SMTP_URL, and whether a firewall lets connections out."
        }
        "greeting" | "EHLO" => {
            "Check the port in CLOAKROOM_SMTP_URL: smtps:// is for port 465, smtp:// for 587 and 25."
        }
        "STARTTLS" => {
            "Use smtps:// with port 465, or a port on which the server offers STARTTLS, usually 587."
        }
        "TLS" => {
            "The host in CLOAKROOM_SMTP_URL must be the name in the server's certificate, and the certificate's \
             authority must be trusted by this system (or be in the file that SSL_CERT_FILE names); smtps:// is for \
             port 465, smtp:// for 587 and 25."
        }
        "AUTH mechanism" => {
            "Neither the user nor the password is wrong, but the server takes no password, or not on this port (587 \
             and 465 usually do). Use a relay that takes one, or an app password if the provider has those."
        }
        "AUTH" => {
            "Check the user and the password in CLOAKROOM_SMTP_URL; characters such as @ : / % are written as %40 %3A \
             %2F %25. Some providers require a separate password for each application, or SMTP to be switched on first."
        }
        "MAIL FROM" => {
            "The server does not accept this sender: check CLOAKROOM_MAIL_FROM, and whether the server asks for a user \
             and a password."
        }
        "RCPT TO" => {
            "The server does not accept this recipient: check the address after --to, and whether the server asks for \
             a user and a password."
        }
        _ => "The server does not accept the message: its answer above says why.",
    }
}
