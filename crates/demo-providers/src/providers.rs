//! What each HTTP provider answers when nothing misbehaves: an SMS gateway in Twilio's shape, a CRM and a
//! file store.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::account::Accounts;

/// A request as the providers see it.
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) authorization: &'a str,
    pub(crate) body: &'a [u8],
    pub(crate) sequence: u64,
}

/// An answer: status, body.
pub(crate) type Answer = (u16, Value);

/// Which provider a path belongs to.
pub(crate) fn of_path(path: &str) -> &'static str {
    if path.starts_with("/2010-04-01/") {
        "sms"
    } else if path.starts_with("/contacts") {
        "crm"
    } else if path.starts_with("/files") {
        "files"
    } else {
        "http"
    }
}

/// The real answer.
pub(crate) fn answer(provider: &str, call: &Call<'_>, accounts: &Accounts) -> Answer {
    match provider {
        "sms" => sms(call, accounts),
        "crm" => crm(call, accounts),
        "files" => files(call, accounts),
        _ => (404, json!({"error": "not found"})),
    }
}

/// The secret in an authorization header: the token of Bearer, the password of Basic.
pub(crate) fn secret_of(authorization: &str) -> String {
    if let Some(token) = authorization.strip_prefix("Bearer ") {
        return token.to_owned();
    }
    basic(authorization).map_or_else(String::new, |(_, password)| password)
}

fn basic(authorization: &str) -> Option<(String, String)> {
    let pair = STANDARD.decode(authorization.strip_prefix("Basic ")?).ok()?;
    let pair = String::from_utf8(pair).ok()?;
    let (user, password) = pair.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

fn sms(call: &Call<'_>, accounts: &Accounts) -> Answer {
    let expected = format!("/2010-04-01/Accounts/{}/Messages.json", accounts.sms.account);
    let known = basic(call.authorization)
        .is_some_and(|(user, password)| user == accounts.sms.account && password == accounts.sms.token);
    if !known {
        return twilio_error(401, 20003, "Authenticate");
    }
    if call.path != expected {
        return twilio_error(404, 20404, "The requested resource was not found");
    }
    if call.method != "POST" {
        return twilio_error(405, 20004, "Method not allowed");
    }
    if !call.content_type.starts_with("application/x-www-form-urlencoded") {
        return twilio_error(400, 21604, "A 'To' phone number is required.");
    }
    let form = form(call.body);
    let field =
        |name: &str| form.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str()).unwrap_or_default();
    if field("To").is_empty() {
        return twilio_error(400, 21604, "A 'To' phone number is required.");
    }
    if field("From").is_empty() {
        return twilio_error(400, 21603, "A 'From' phone number is required.");
    }
    if field("Body").is_empty() {
        return twilio_error(400, 21602, "Message body is required.");
    }
    let sid = format!("SM{:032x}", call.sequence);
    let message = json!({
        "sid": sid,
        "account_sid": accounts.sms.account,
        "to": field("To"),
        "from": field("From"),
        "body": field("Body"),
        "status": "queued",
        "num_segments": "1",
        "error_code": null,
        "error_message": null,
        "uri": format!("/2010-04-01/Accounts/{}/Messages/{sid}.json", accounts.sms.account),
    });
    (201, message)
}

fn twilio_error(status: u16, code: u32, message: &str) -> Answer {
    (
        status,
        json!({"code": code, "message": message, "more_info": format!("https://www.twilio.com/docs/errors/{code}"), "status": status}),
    )
}

const CONTACTS: [(&str, &str, &str, &str); 4] = [
    ("117", "Ada Example", "+15550100", "ada@example.org"),
    ("118", "Bo Sample", "+15550101", "bo@example.org"),
    ("119", "Cleo Specimen", "+15550102", "cleo@example.net"),
    ("120", "Zoë Ångström", "+15550103", "zoe@example.net"),
];

fn crm(call: &Call<'_>, accounts: &Accounts) -> Answer {
    if !bearer_is(call, &accounts.crm.token) {
        return (401, json!({"error": "unauthorized"}));
    }
    if call.method != "GET" {
        return (405, json!({"error": "method not allowed"}));
    }
    let id = call.path.strip_prefix("/contacts/").unwrap_or_default();
    let id = percent_decode_str(id).decode_utf8_lossy();
    // Ids may name their tenant first, as in `demo/117`.
    let local = id.rsplit('/').next().unwrap_or_default();
    match CONTACTS.iter().find(|contact| contact.0 == local) {
        Some((_, name, phone, email)) => {
            (200, json!({"id": id, "name": name, "phone": phone, "email": email}))
        }
        None if local.is_empty() || local.starts_with("missing") => {
            (404, json!({"error": "no such contact"}))
        }
        // Everybody has an entry here, so that any id can be tried.
        None => {
            (200, json!({"id": id, "name": format!("Contact {local}"), "phone": "+15550199", "email": null}))
        }
    }
}

fn files(call: &Call<'_>, accounts: &Accounts) -> Answer {
    if !bearer_is(call, &accounts.files.token) {
        return (401, json!({"error": "unauthorized"}));
    }
    if call.method != "DELETE" {
        return (405, json!({"error": "method not allowed"}));
    }
    (
        200,
        json!({"deleted": percent_decode_str(call.path.strip_prefix("/files/").unwrap_or_default()).decode_utf8_lossy()}),
    )
}

fn bearer_is(call: &Call<'_>, token: &str) -> bool {
    call.authorization.strip_prefix("Bearer ") == Some(token)
}

fn form(body: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(body);
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (form_text(name), form_text(value))
        })
        .collect()
}

fn form_text(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}
