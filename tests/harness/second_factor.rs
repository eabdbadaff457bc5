//! Second factors: an authenticator app, and the endpoints that it is set up with.

use serde_json::json;
use totp_rs::{Algorithm, Builder};

use super::{Answer, Credentials, Server, Tokens, now};

/// A second factor as its owner has it.
pub struct SecondFactor {
    /// In base 32.
    pub secret: String,
    pub recovery_codes: Vec<String>,
}

impl SecondFactor {
    /// The bytes of the secret.
    pub fn bytes(&self) -> [u8; 20] {
        decoded(&self.secret).try_into().expect("20 bytes")
    }

    /// The code that the app shows now.
    pub fn code(&self) -> String {
        self.code_at(0)
    }

    /// The code of an app whose clock is so many seconds fast.
    pub fn code_at(&self, seconds: i64) -> String {
        let app = Builder::new().with_algorithm(Algorithm::SHA1).with_secret(self.bytes()).build();
        app.expect("an app")
            .generate(now().checked_add_signed(seconds).expect("a time"))
            .to_string()
    }

    /// Six digits that are no code of these minutes.
    pub fn wrong_code(&self) -> String {
        let codes: Vec<_> = (-4..=4).map(|step| self.code_at(30 * step)).collect();
        let mut wrong = (0..10).map(|n| format!("12345{n}"));
        wrong.find(|code| !codes.contains(code)).expect("a wrong code")
    }
}

/// The bytes of a text in base 32, bit by bit.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |c: u8| if c.is_ascii_digit() { c - b'2' + 26 } else { c - b'A' };
    let bits = text.bytes().flat_map(|c| (0..5).rev().map(move |bit| digit(c) >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect()
}

/// Runs `work` until it begins and ends in one time step, and returns what it returned then. So the code of another
/// clock is as many steps away when it is looked at as when it was made.
pub fn within_one_step<T>(mut work: impl FnMut() -> T) -> T {
    loop {
        let step = now() / 30;
        let outcome = work();
        if now() / 30 == step {
            return outcome;
        }
    }
}

/// `/auth/second-factor`.
impl Server {
    pub fn second_factor(&self, sender: impl Credentials) -> Answer {
        self.get("/auth/second-factor", sender)
    }

    pub fn begin_second_factor(&self, sender: impl Credentials, password: &str) -> Answer {
        self.post("/auth/second-factor", sender, json!({"current_password": password}))
    }

    pub fn confirm_second_factor(&self, sender: impl Credentials, code: &str) -> Answer {
        self.post("/auth/second-factor/confirm", sender, json!({"code": code}))
    }

    pub fn renew_recovery_codes(
        &self,
        sender: impl Credentials,
        password: &str,
        code: &str,
    ) -> Answer {
        let body = json!({"current_password": password, "code": code});
        self.post("/auth/second-factor/recovery-codes", sender, body)
    }

    pub fn disable_second_factor(
        &self,
        sender: impl Credentials,
        password: &str,
        code: &str,
    ) -> Answer {
        let body = json!({"current_password": password, "code": code});
        self.request("DELETE", "/auth/second-factor").by(sender).json(body).send()
    }

    /// `DELETE /users/{id}/second-factor`.
    pub fn reset_second_factor(&self, sender: impl Credentials, id: &str) -> Answer {
        self.delete(&format!("/users/{id}/second-factor"), sender)
    }

    pub fn login_with_code(&self, name: &str, password: &str, code: &str) -> Answer {
        self.login_with(json!({"username": name, "password": password, "code": code}))
    }

    /// Has a second factor offered, which is not confirmed yet and has no recovery codes.
    #[track_caller]
    pub fn offer_second_factor(&self, user: &Tokens, password: &str) -> SecondFactor {
        let offer = self.begin_second_factor(user, password).expect(200).json();
        let secret = offer["secret"].as_str().expect("a secret").to_owned();
        SecondFactor { secret, recovery_codes: Vec::new() }
    }

    /// Sets up a second factor, and forgets which code was used for it: otherwise the next code would be good only half
    /// a minute later.
    #[track_caller]
    pub fn new_second_factor(&self, user: &Tokens, password: &str) -> SecondFactor {
        let mut factor = self.offer_second_factor(user, password);
        let confirmed = self.confirm_second_factor(user, &factor.code()).expect(200).json();
        let codes = confirmed["recovery_codes"].as_array().expect("codes").iter();
        factor.recovery_codes =
            codes.map(|code| code.as_str().expect("a code").to_owned()).collect();
        self.forget_used_codes();
        factor
    }

    /// Lets all users use the present code once more.
    pub fn forget_used_codes(&self) {
        self.database
            .run("UPDATE users SET second_factor_step = NULL WHERE second_factor_step IS NOT NULL");
    }
}
