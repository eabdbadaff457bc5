//! The flows of flows.jsonl by reqwest, as its defaults send them. Usage: client FLOWS URL ADMIN PASSWORD
//!
//! Its `blocking` client is not tried: where an answer comes before all of a body is sent, such as 413, it tells only
//! that the body could not be sent (reqwest 0.13).

use std::collections::HashMap;
use std::error::Error;

use reqwest::multipart::{Form, Part};
use reqwest::{Client, Response};
use serde_json::Value;

/// The members of an object as texts; none of anything else.
fn texts(value: &Value) -> HashMap<&str, &str> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, text)| (name.as_str(), text.as_str().expect("a text"))).collect()
}

async fn send(client: &Client, base: &str, step: &Value) -> Result<Response, Box<dyn Error>> {
    let (method, path) =
        step["request"].as_str().expect("a text").split_once(' ').expect("two words");
    let mut request =
        client.request(method.parse()?, format!("{base}{path}")).query(&texts(&step["query"]));
    if let Some(token) = step["bearer"].as_str() {
        request = request.bearer_auth(token);
    }
    let (form, file) = (texts(&step["form"]), &step["file"]);
    if let (Some(name), Some(content)) = (file["name"].as_str(), file["content"].as_str()) {
        let bytes: Vec<u8> = content.chars().map(|c| u8::try_from(c).expect("Latin-1")).collect();
        let bytes = bytes.repeat(file["times"].as_u64().unwrap_or(1).try_into()?);
        let mut parts = Form::new().part("file", Part::bytes(bytes).file_name(name.to_owned()));
        for (name, text) in form {
            parts = parts.text(name.to_owned(), text.to_owned());
        }
        request = request.multipart(parts);
    } else if !form.is_empty() {
        request = request.form(&form);
    } else if !step["json"].is_null() {
        request = request.json(&step["json"]);
    }
    Ok(request.send().await?)
}

/// Whether a value has all of a part, members of members too.
fn includes(value: &Value, part: &Value) -> bool {
    match part.as_object() {
        Some(members) => members.iter().all(|(name, member)| includes(&value[name], member)),
        None => value == part,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [flows, url, admin, password] = &arguments[..] else { return Err("four arguments".into()) };
    let (client, base) = (Client::new(), format!("{url}/api/v1/"));
    let name = format!("u{}", &uuid::Uuid::new_v4().to_string()[..8]);
    let known = [("name", &name), ("admin", admin), ("password", password)];
    let mut known: Vec<_> = known.map(|(name, text)| (format!("{{{name}}}"), text.clone())).into();
    for line in std::fs::read_to_string(flows)?.lines() {
        let line =
            known.iter().rev().fold(line.to_owned(), |line, (name, text)| line.replace(name, text));
        let step: Value = serde_json::from_str(&line)?;
        let answer = send(&client, &base, &step)
            .await
            .map_err(|error| format!("reqwest: {line}: {error:?}"))?;
        let (status, bytes) = (answer.status().as_u16(), answer.bytes().await?);
        let told = format!("reqwest: {line}: {status} {}", String::from_utf8_lossy(&bytes));
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        assert_eq!(step["status"], status, "{told}");
        assert!(includes(&body, &step["has"]) || step["has"].is_null(), "{told}");
        if let Some(text) = step["text"].as_str() {
            assert!(text.chars().eq(bytes.iter().map(|byte| char::from(*byte))), "{told}");
        }
        for (name, member) in texts(&step["keep"]) {
            known.push((format!("{{{name}}}"), body[member].as_str().expect("a text").to_owned()));
        }
    }
    Ok(())
}
