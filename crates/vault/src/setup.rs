//! What an operator does to a Vault: initialize, unseal, apply `deploy/vault/`. For `exequatur dev` and
//! tests; it must not be linked by a zone.

use std::path::Path;
use std::time::Duration;

use rustify_derive::Endpoint;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::call::Call;
use crate::classify::Meaning;
use crate::link::Link;
use crate::{Config, Error, Kind, Token, endpoints};

#[derive(Endpoint)]
#[endpoint(path = "{self.path}", method = "POST")]
struct Write {
    #[endpoint(skip)]
    path: String,
    #[endpoint(raw)]
    body: Vec<u8>,
}

#[derive(Endpoint)]
#[endpoint(path = "{self.path}")]
struct List {
    #[endpoint(skip)]
    path: String,
    #[endpoint(query)]
    list: bool,
}

#[derive(Endpoint)]
#[endpoint(path = "{self.path}", method = "DELETE")]
struct Delete {
    #[endpoint(skip)]
    path: String,
}

#[derive(Deserialize)]
struct Initialized {
    keys_base64: Vec<String>,
    root_token: String,
}

/// What a fresh Vault gave; one key share.
#[derive(Debug)]
pub struct Fresh {
    /// Unseals.
    pub key: Token,
    /// May do everything.
    pub root: Token,
}

/// An operator with a token.
pub struct Operator {
    link: Link,
    token: Option<Token>,
}

impl Operator {
    /// Calls nothing. `config.auth` is not used.
    ///
    /// # Errors
    /// `BadConfig`.
    pub fn new(config: Config, token: Option<Token>) -> Result<Self, Error> {
        Ok(Self { link: Link::new(Config { auth: None, ..config })?, token })
    }

    /// Initializes with one key share.
    ///
    /// # Errors
    /// `BadRequest` when it was initialized before.
    pub async fn initialize(&self) -> Result<Fresh, Error> {
        let body = json!({ "secret_shares": 1, "secret_threshold": 1 });
        let Initialized { keys_base64, root_token } = self.post("sys/init", &body).await?.plain()?;
        let malformed = || Error::new(Kind::Malformed, "operate");
        let key = Token::new(keys_base64.into_iter().next().ok_or_else(malformed)?)?;
        Ok(Fresh { key, root: Token::new(root_token)? })
    }

    /// Unseals and waits until the server is active, 30 s at most.
    ///
    /// # Errors
    /// `BadRequest` for a wrong key; the last error when it does not get active.
    pub async fn unseal(&self, key: &Token) -> Result<(), Error> {
        self.post("sys/unseal", &json!({ "key": key.expose() })).await?;
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            // A fresh link each time: the breaker would wait ten seconds between two looks.
            let link = Link::new(self.link.config().clone())?;
            let end_of_call = Instant::now() + self.link.config().timeout();
            let call = Call { meaning: Meaning::Health, ..Call::new("health", end_of_call) };
            match link.send(&call, &endpoints::Health {}, None).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => {}
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Writes JSON to a path below `/v1/`; what comes back.
    ///
    /// # Errors
    /// As any call.
    pub async fn write(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let answer = self.post(path, body).await?;
        if answer.is_empty() { Ok(Value::Null) } else { answer.plain() }
    }

    /// Reads a path below `/v1/`.
    ///
    /// # Errors
    /// As any call.
    pub async fn read(&self, path: &str) -> Result<Value, Error> {
        let read = endpoints::Read { path: path.to_owned(), version: None };
        self.link.send(&self.call(), &read, self.token.as_ref()).await?.plain()
    }

    /// Lists a path below `/v1/`; `null` when nothing is there.
    ///
    /// # Errors
    /// As any call.
    pub async fn list(&self, path: &str) -> Result<Value, Error> {
        let list = List { path: path.to_owned(), list: true };
        match self.link.send(&self.call(), &list, self.token.as_ref()).await {
            Ok(answer) => answer.plain(),
            Err(error) if error.kind() == Kind::NotFound => Ok(Value::Null),
            Err(error) => Err(error),
        }
    }

    /// Deletes a path below `/v1/`.
    ///
    /// # Errors
    /// As any call.
    pub async fn delete(&self, path: &str) -> Result<(), Error> {
        let delete = Delete { path: path.to_owned() };
        self.link.send(&self.call(), &delete, self.token.as_ref()).await.map(drop)
    }

    /// Applies `folder/steps`; `${NAME}` in the files becomes the value of that name. A mount that is there
    /// already stays as it is.
    ///
    /// # Errors
    /// `BadConfig` when a file is missing or a step unknown; as any call.
    pub async fn apply(&self, folder: &Path, values: &[(&str, &str)]) -> Result<(), Error> {
        for line in text(&folder.join("steps"))?.lines().filter(|line| !line.starts_with('#')) {
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                [] => {}
                ["policy", name, file] => self.policy(name, &folder.join(file), values).await?,
                ["write", path, file] => {
                    let body = serde_json::from_str(&filled(&folder.join(file), values)?)
                        .map_err(|_| Error::config(format!("`{file}` is no JSON")))?;
                    let mount = path.starts_with("sys/mounts/") || path.starts_with("sys/auth/");
                    match self.write(path, &body).await {
                        Err(error) if mount && error.kind() == Kind::BadRequest => self.read(path).await?,
                        other => other?,
                    };
                }
                _ => return Err(Error::config(format!("unknown step `{line}`"))),
            }
        }
        Ok(())
    }

    /// Writes one policy file under a name, with `${NAME}` replaced.
    ///
    /// # Errors
    /// As [`Operator::apply`].
    pub async fn policy(&self, name: &str, file: &Path, values: &[(&str, &str)]) -> Result<(), Error> {
        let body = json!({ "policy": filled(file, values)? });
        self.write(&format!("sys/policies/acl/{name}"), &body).await.map(drop)
    }

    fn call(&self) -> Call {
        Call::new("operate", Instant::now() + self.link.config().timeout())
    }

    async fn post(&self, path: &str, body: &Value) -> Result<crate::answer::Answer, Error> {
        let write = Write { path: path.to_owned(), body: body.to_string().into_bytes() };
        self.link.send(&self.call(), &write, self.token.as_ref()).await
    }
}

fn text(file: &Path) -> Result<String, Error> {
    std::fs::read_to_string(file).map_err(|e| Error::config(format!("`{}`: {}", file.display(), e.kind())))
}

fn filled(file: &Path, values: &[(&str, &str)]) -> Result<String, Error> {
    let mut filled = text(file)?;
    for (name, value) in values {
        filled = filled.replace(&format!("${{{name}}}"), value);
    }
    // Comments may name variables; what is applied may not.
    if filled.lines().any(|line| !line.starts_with('#') && line.contains("${")) {
        return Err(Error::config(format!("`{}` needs a value that is not given", file.display())));
    }
    Ok(filled)
}
