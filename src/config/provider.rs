//! The settings of an OpenID provider, by which people sign in.

use rustls::pki_types::CertificateDer;

use super::reader::SettingsReader;
use super::store::certificates;
use super::values::{Origin, Secret, is_loopback};
use super::words::Environment;

const ISSUER: &str = "CLOAKROOM_OIDC_ISSUER";
const CLIENT_ID: &str = "CLOAKROOM_OIDC_CLIENT_ID";
const CLIENT_SECRET: &str = "CLOAKROOM_OIDC_CLIENT_SECRET";

const ISSUERS: &str = "an https URL without user, query and fragment, of at most 200 bytes, such as \
                       https://login.example.com; in development also http to this host";
/// Longest issuer, in bytes: a cookie holds it, and a browser keeps few bytes of cookies.
const MAX_ISSUER: usize = 200;
/// Longest name, in characters.
const MAX_NAME: usize = 100;

/// An OpenID provider, and how to use it.
#[derive(Clone)]
#[cfg_attr(not(feature = "oidc"), expect(dead_code, reason = "only its client uses them"))]
pub struct ProviderSettings {
    /// The URL that ID tokens name, as it was written.
    pub issuer: String,
    pub client_id: String,
    pub client_secret: Secret,
    /// The authorities that may sign its certificate; `None` for those that the system trusts.
    pub authorities: Option<Vec<CertificateDer<'static>>>,
    /// What people know it as.
    pub name: String,
    /// Whether what it says of addresses is believed without `email_verified`.
    pub trusts_emails: bool,
    /// The domains whose addresses may have new accounts, in lower case; none for all.
    pub domains: Vec<String>,
    /// The claim of administrators, and the text that it has.
    pub admin_claim: Option<(String, String)>,
    /// What is asked for, with spaces between.
    pub scopes: String,
}

#[cfg(feature = "oidc")]
impl ProviderSettings {
    /// Whether it knows its people, so that the accounts that it makes are none of strangers.
    pub fn knows_people(&self) -> bool {
        self.trusts_emails || !self.domains.is_empty()
    }

    /// Whether an account may be made for this address.
    pub fn admits(&self, email: &str) -> bool {
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain).to_lowercase();
        self.domains.is_empty() || self.domains.contains(&domain)
    }
}

/// The value of `CLOAKROOM_OIDC_EMAILS`.
fn emails(text: &str) -> Option<bool> {
    match text {
        "verified" => Some(false),
        "all" => Some(true),
        _ => None,
    }
}

fn domains(text: &str) -> Option<Vec<String>> {
    let is_domain = |domain: &String| {
        let is_good = |b: u8| !b.is_ascii() || b.is_ascii_alphanumeric() || b"-.".contains(&b);
        !domain.is_empty() && !domain.starts_with('.') && domain.bytes().all(is_good)
    };
    let all: Vec<_> = text.split(',').map(|domain| domain.trim().to_lowercase()).collect();
    all.iter().all(is_domain).then_some(all)
}

/// `openid` is one of them (Core, 3.1.2.1); the others are tokens (RFC 6749, 3.3).
fn scopes(text: &str) -> Option<String> {
    let is_good = |b: u8| b.is_ascii_graphic() && !b"\"\\".contains(&b);
    let all: Vec<_> = text.split_whitespace().collect();
    let is_list = all.contains(&"openid") && all.iter().all(|it| it.bytes().all(is_good));
    is_list.then(|| all.join(" "))
}

/// Whether the provider may be asked at this URL: over TLS or, if that is allowed, without TLS on this host.
pub fn is_provider_url(url: &str, may_be_plain: bool) -> bool {
    let begin = url.find("://").map_or(url.len(), |at| at + 3);
    let end = url[begin..].find(['/', '?']).map_or(url.len(), |at| begin + at);
    let is_clean = |b: u8| b.is_ascii_graphic() && !b"\\\"<>^`{|}#".contains(&b);
    Origin::parse(&url[..end]).is_some_and(|Origin { scheme, host, .. }| {
        let is_local = may_be_plain && is_loopback(host.trim_matches(['[', ']']));
        let is_safe = scheme == "https" || scheme == "http" && is_local;
        is_safe && !url[..end].contains('@') && url.bytes().all(is_clean)
    })
}

/// Reads the settings of the provider; `None` if there is none, or if one of them is wrong.
pub fn read(r: &mut SettingsReader, environment: Environment) -> Option<ProviderSettings> {
    let may_be_plain = environment == Environment::Development;
    let issuer = r.setting(&[ISSUER]).read("", ISSUERS, |url| {
        let is_url = is_provider_url(url, may_be_plain);
        (is_url && !url.contains('?') && url.len() <= MAX_ISSUER).then(|| url.to_owned())
    });
    let client_id = r.setting(&[CLIENT_ID]).read("", "", |text| Some(text.to_owned()));
    let client_secret = r.setting(&[CLIENT_SECRET]).secret("");
    let allowed = "a PEM file with the certificates of the authorities that sign the provider's";
    let authorities = r.setting(&["CLOAKROOM_OIDC_CA"]).read("", allowed, certificates);
    let host = issuer.as_deref().and_then(|url| url.split('/').nth(2));
    let host = host.unwrap_or_default().to_owned();
    let allowed = "a text of at most 100 characters without control characters";
    let name = r.setting(&["CLOAKROOM_OIDC_NAME"]).read(&host, allowed, |text| {
        let is_good = text.chars().count() <= MAX_NAME && !text.contains(char::is_control);
        is_good.then(|| text.to_owned())
    });
    let allowed = "verified or all";
    let trusts_emails = r.setting(&["CLOAKROOM_OIDC_EMAILS"]).read("verified", allowed, emails);
    let allowed = "domains with commas between, such as example.com,example.org";
    let domains = r.setting(&["CLOAKROOM_OIDC_DOMAINS"]).read("", allowed, domains);
    let allowed =
        "the name of a claim, a colon and the text that it has, such as groups:cloakroom-admins";
    let admin_claim = r.setting(&["CLOAKROOM_OIDC_ADMIN_CLAIM"]).read("", allowed, |text| {
        // Names of claims that are unique everywhere are URLs or URNs (Core, 5.1.2), which have colons themselves.
        let is_url = ["https://", "http://", "urn:"].iter().any(|it| text.starts_with(it));
        let (name, value) = if is_url { text.rsplit_once(':') } else { text.split_once(':') }?;
        (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    });
    let allowed = "scopes with spaces between, openid among them";
    let own = "openid email profile";
    let scopes_asked = r.setting(&["CLOAKROOM_OIDC_SCOPES"]).read(own, allowed, scopes);
    let issuer = issuer?;
    if cfg!(not(feature = "oidc")) {
        let fault = "this build cannot sign in by OpenID Connect: the cargo feature oidc adds it, and the Debian \
                     package has it";
        r.faults.push((ISSUER, format!("{ISSUER} is set, and {fault}")));
        return None;
    }
    for (variable, is_set) in
        [(CLIENT_ID, client_id.is_some()), (CLIENT_SECRET, client_secret.is_some())]
    {
        if !is_set {
            r.faults.push((variable, format!("{variable} is not set; {ISSUER} needs it")));
        }
    }
    let (client_id, client_secret) = client_id.zip(client_secret)?;
    let name = name.unwrap_or(host);
    Some(ProviderSettings {
        issuer,
        client_id,
        client_secret,
        authorities,
        name,
        trusts_emails: trusts_emails.unwrap_or(false),
        domains: domains.unwrap_or_default(),
        admin_claim,
        scopes: scopes_asked.unwrap_or_else(|| own.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "oidc")]
    impl ProviderSettings {
        /// Those of a provider, with the defaults of all others.
        pub fn of_issuer(issuer: &str) -> ProviderSettings {
            ProviderSettings {
                issuer: issuer.to_owned(),
                client_id: "cloakroom".to_owned(),
                client_secret: Secret::new(String::new()),
                authorities: None,
                name: "Example ID".to_owned(),
                trusts_emails: false,
                domains: Vec::new(),
                admin_claim: None,
                scopes: "openid".to_owned(),
            }
        }
    }

    #[test]
    fn a_provider_is_asked_over_tls_or_on_this_host() {
        for (url, encrypted, plain) in [
            ("https://login.example.com", true, true),
            ("https://login.example.com:8443/realms/a?b=c", true, true),
            ("http://127.0.0.1:8080/a", false, true),
            ("http://[::1]:8080?a", false, true),
            ("http://login.example.com", false, false),
            ("http://localhost.example.com/", false, false),
            ("https://ann:x@login.example.com", false, false),
            ("http://127.0.0.1@login.example.com", false, false),
            ("https://login.example.com/#a", false, false),
            ("https://login.example.com/a b", false, false),
            ("https://", false, false),
            ("ftp://login.example.com", false, false),
            ("file:///etc/passwd", false, false),
            ("https:login.example.com", false, false),
            ("", false, false),
        ] {
            assert_eq!(is_provider_url(url, false), encrypted, "{url}");
            assert_eq!(is_provider_url(url, true), plain, "{url}");
        }
    }
}
