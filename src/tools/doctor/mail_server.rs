//! Whether the mail server takes mail, and whether mail waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{Config, Environment, MailServer, Smtp};
use crate::mail::{MailError, smtp};
use crate::tools::database::diagnosis::Stored;
use crate::tools::findings::{Findings, Level};
use crate::tools::send_test_mail::advice;
use crate::tools::within_max_wait;

/// How long the dialogue with the server may take.
const MAX_DIALOGUE: Duration = Duration::from_secs(10);
/// Mail that waits longer is late. Failed attempts are repeated after a quarter of an hour at the latest.
const MAX_MAIL_AGE: Duration = Duration::from_secs(1200);

/// Connects to the configured server and signs in, but sends nothing.
pub fn judge(findings: &mut Findings, config: &Arc<Config>, stored: Option<&Stored>) {
    let is_refused = config.shown.iter().all(|setting| setting.name != "CLOAKROOM_SMTP_URL");
    match &config.smtp {
        _ if is_refused => {
            findings.warning("mail: not looked at, because CLOAKROOM_SMTP_URL is wrong", "");
        }
        Smtp::Off => findings.ok("mail: CLOAKROOM_SMTP_URL holds the word none: no mail is sent"),
        Smtp::Unset if config.environment == Environment::Development => {
            findings.ok(
                "mail: CLOAKROOM_SMTP_URL is not set: reset tokens are logged in place of a mail",
            );
        }
        Smtp::Unset => {
            findings.warning("mail: not looked at, because CLOAKROOM_SMTP_URL is not set", "");
        }
        Smtp::Server(server) => judge_server(findings, server.clone()),
    }
    if let Some(stored) = stored {
        judge_outbox(findings, stored);
    }
}

fn judge_server(findings: &mut Findings, server: MailServer) {
    let (shown, is_local) = (server.to_string(), server.is_local());
    let signs_in = if server.user.is_some() { ", takes the user and the password" } else { "" };
    match within_max_wait(move || tls_version(&server)) {
        Some(Ok(Some(version))) => {
            findings.ok(format_args!("mail: {shown} answers{signs_in}, {version}"));
        }
        Some(Ok(None)) if is_local => findings.ok(format_args!("mail: {shown} answers{signs_in}")),
        Some(Ok(None)) => findings.warning(
            format_args!("mail: {shown} answers, and offers no encryption"),
            "The links in messages about password resets can be read on their way: use smtps:// with port 465, or a \
             port on which the server offers STARTTLS, usually 587.",
        ),
        Some(Err(error)) => {
            findings.fault(format_args!("mail: {shown}: {error}"), advice(&error));
        }
        None => findings.fault(
            format_args!("mail: {shown}: no answer in time"),
            "Check the host in CLOAKROOM_SMTP_URL, and whether this system can look its name up.",
        ),
    }
}

/// Signs in to the server and ends the session. Returns the version of TLS; `None` if the session was not encrypted.
fn tls_version(server: &MailServer) -> Result<Option<String>, MailError> {
    let mut observe = |_: &str| {};
    let mut session = smtp::open_session(server, Instant::now() + MAX_DIALOGUE, &mut observe)?;
    let version = session.stream.tls_version();
    session.quit();
    Ok(version)
}

/// Reports how much mail waits.
pub fn judge_outbox(findings: &mut Findings, stored: &Stored) {
    let Stored { mail_waiting, mail_failed, mail_oldest, .. } = stored;
    let oldest = match mail_waiting {
        0 => String::new(),
        _ => format!(", the oldest for {} s", mail_oldest.as_secs()),
    };
    findings.judge(
        *mail_oldest <= MAX_MAIL_AGE,
        Level::Warning,
        format_args!(
            "outbox: messages that wait: {mail_waiting}{oldest}; given up in the last 30 days: {mail_failed}"
        ),
        "Read the log of the service about mail; `cloakroom send-test-mail --to ADDRESS` shows the dialogue with the \
         mail server. Without a service that runs, nothing is sent.",
    );
}
