//! Sends one request to Vault and reads its answer: deadline, size limit, breaker, typed error. Must
//! not know sessions; it never logs and keeps no body.

use arc_swap::ArcSwap;
use http::HeaderValue;
use rustify::endpoint::Endpoint;
use tokio::time::timeout_at;
use zeroize::{Zeroize as _, Zeroizing};

use crate::answer::Answer;
use crate::breaker::Breaker;
use crate::call::Call;
use crate::classify::{Meaning, classify};
use crate::{Config, Error, Kind, Token, tls};

/// An answer is read up to here; a secret of 64 KiB fits in any escaping.
const MAX_ANSWER_BYTES: usize = 512 * 1024;

/// The one way to Vault.
pub(crate) struct Link {
    config: Config,
    base: String,
    namespace: Option<HeaderValue>,
    pool: ArcSwap<reqwest::Client>,
    breaker: Breaker,
}

impl Link {
    pub(crate) fn new(config: Config) -> Result<Self, Error> {
        let base = config.base()?;
        let namespace = config.namespace.as_deref().map(HeaderValue::from_str).transpose();
        let namespace = namespace.map_err(|_| Error::config("`namespace` is no header value"))?;
        let pool = ArcSwap::from_pointee(tls::pool(&config)?);
        Ok(Self { config, base, namespace, pool, breaker: Breaker::default() })
    }

    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// Reads CA and client certificate afresh.
    pub(crate) fn reload(&self) -> Result<(), Error> {
        self.pool.store(std::sync::Arc::new(tls::pool(&self.config)?));
        Ok(())
    }

    /// One request, at most once on the wire.
    pub(crate) async fn send<E: Endpoint>(
        &self,
        call: &Call,
        endpoint: &E,
        token: Option<&Token>,
    ) -> Result<Answer, Error> {
        let request = self.request(call, endpoint, token)?;
        let failed = |kind| Error::new(kind, call.name);
        let admission = timeout_at(call.by, self.breaker.admit(call.lane))
            .await
            .map_err(|_| failed(Kind::TimedOut))?
            .map_err(failed)?;
        if admission.is_probe() {
            // A renewed CA or certificate heals a connection that failed for it.
            if let Err(error) = self.reload() {
                admission.end(Some(Kind::Unreachable));
                return Err(error);
            }
        }
        let answer =
            timeout_at(call.by, self.exchange(call.meaning, request)).await.unwrap_or(Err(Kind::TimedOut));
        admission.end(answer.as_ref().err().copied().filter(|kind| is_failing(call.meaning, *kind)));
        answer.map(|body| Answer::new(call.name, body)).map_err(failed)
    }

    fn request<E: Endpoint>(
        &self,
        call: &Call,
        endpoint: &E,
        token: Option<&Token>,
    ) -> Result<reqwest::Request, Error> {
        let bad = || Error::new(Kind::BadRequest, call.name);
        let mut request = endpoint.request(&self.base).map_err(|_| bad())?;
        // vaultrs's paths begin with `/`, which would double; Vault answers that with a redirect.
        let uri = request.uri().to_string().replacen("/v1//", "/v1/", 1);
        *request.uri_mut() = uri.parse().map_err(|_| bad())?;
        let headers = request.headers_mut();
        headers.insert("X-Vault-Request", HeaderValue::from_static("true"));
        if let Some(token) = token {
            headers.insert("X-Vault-Token", token.header().ok_or_else(bad)?);
        }
        if let Some(ttl_s) = call.wrap_s {
            headers.insert("X-Vault-Wrap-TTL", HeaderValue::from(ttl_s));
        }
        if let (Some(namespace), Meaning::Ordinary) = (&self.namespace, call.meaning) {
            headers.insert("X-Vault-Namespace", namespace.clone());
        }
        reqwest::Request::try_from(request).map_err(|_| bad())
    }

    async fn exchange(
        &self,
        meaning: Meaning,
        request: reqwest::Request,
    ) -> Result<Zeroizing<Vec<u8>>, Kind> {
        let pool = self.pool.load_full();
        let mut response = pool.execute(request).await.map_err(|_| Kind::Unreachable)?;
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        let announced = announced.unwrap_or(8 * 1024);
        if announced > MAX_ANSWER_BYTES {
            return Err(Kind::TooLarge);
        }
        // Room for all of it at once: a buffer that grows leaves copies behind.
        let mut body = Zeroizing::new(Vec::with_capacity(announced));
        while let Some(chunk) = response.chunk().await.map_err(|_| Kind::Unreachable)? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(Kind::TooLarge);
            }
            if body.len() + chunk.len() > body.capacity() {
                let mut larger = Vec::with_capacity((body.len() + chunk.len()).saturating_mul(2));
                larger.extend_from_slice(&body);
                body.zeroize();
                *body = larger;
            }
            body.extend_from_slice(&chunk);
        }
        let told = classify(meaning, response.status().as_u16(), &body);
        // A page of something in between is no word of Vault's.
        let foreign = body.first().is_some_and(|first| *first != b'{').then_some(Kind::Foreign);
        told.or(foreign).map_or(Ok(body), Err)
    }
}

/// Whether this says that Vault does not work, as against a no to this caller.
const fn is_failing(meaning: Meaning, kind: Kind) -> bool {
    match kind {
        // A standby that is asked for its health answers; ordinary calls may be forwarded.
        Kind::Standby => matches!(meaning, Meaning::Ordinary),
        // Too large is one secret's fault: counted, it would close Vault for all others.
        Kind::TooLarge => false,
        Kind::Malformed => true,
        kind => kind.is_retryable(),
    }
}
