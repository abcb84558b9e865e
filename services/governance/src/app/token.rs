//! Run tokens (RFC 9068): minted here, checked here and nowhere else. A claim that cannot be read is
//! not a claim that is absent.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason};
use exequatur_identity::Peer;
use exequatur_lifecycle::Run as RunState;
use exequatur_proto::trust::v1::{PublicKey, Purpose};
use exequatur_service::{RunClaims, Tokens};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::App;
use crate::store::RunRow;

const TYPE: &str = "at+jwt";
/// Seconds that a clock may differ on nbf and iat.
const LEEWAY_S: i64 = 5;
/// Bytes of a token that are looked at.
const MAX_TOKEN: usize = 8 * 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    iss: String,
    sub: String,
    aud: String,
    exp: i64,
    nbf: i64,
    iat: i64,
    jti: String,
    tenant: String,
    run: String,
    scope: String,
    #[serde(rename = "type")]
    kind: String,
}

fn invalid() -> Fault {
    Fault::new(Reason::TokenInvalid, "the run token is not acceptable; renew it or start a run")
}

impl App {
    /// Mints a token of a run that ends at `expires_at`.
    pub(crate) fn mint(
        &self,
        run: &RunRow,
        now: UnixMillis,
        expires_at: UnixMillis,
    ) -> Result<String, Fault> {
        let claims = Claims {
            iss: self.zones.own.clone(),
            sub: format!("agent/{}", run.agent),
            aud: self.zones.own.clone(),
            exp: expires_at.0.div_euclid(1000),
            nbf: now.0.div_euclid(1000),
            iat: now.0.div_euclid(1000),
            jti: uuid::Uuid::now_v7().to_string(),
            tenant: run.tenant.clone(),
            run: run.run.clone(),
            scope: run.scopes.join(" "),
            kind: "agent".to_owned(),
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some(TYPE.to_owned());
        header.kid = Some(self.token_key.kid().to_owned());
        let key = self.token_key.pkcs8().map_err(Fault::internal)?;
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ed_der(&key)).map_err(Fault::internal)
    }

    fn read(&self, bearer: &str, now: UnixMillis) -> Result<Claims, Fault> {
        if bearer.len() > MAX_TOKEN {
            return Err(invalid());
        }
        let header = jsonwebtoken::decode_header(bearer).map_err(|_| invalid())?;
        let kid = header.kid.as_deref().ok_or_else(invalid)?;
        if header.typ.as_deref() != Some(TYPE) || header.alg != Algorithm::EdDSA {
            return Err(invalid());
        }
        let key = self.trust.key(&self.zones.own, Purpose::RunToken, Some(kid)).ok_or_else(invalid)?;
        if !is_valid(&key, now) {
            return Err(invalid());
        }
        // Only the signature is the library's; every claim is judged below, strictly.
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        let claims = jsonwebtoken::decode::<Claims>(bearer, &DecodingKey::from_ed_der(&key.key), &validation)
            .map_err(|_| invalid())?
            .claims;
        let seconds = now.0.div_euclid(1000);
        let times =
            claims.exp > seconds && claims.nbf <= seconds + LEEWAY_S && claims.iat <= seconds + LEEWAY_S;
        let own = claims.iss == self.zones.own && claims.aud == self.zones.own && claims.kind == "agent";
        if times && own { Ok(claims) } else { Err(invalid()) }
    }

    /// The run behind checked claims, which must be active and the same.
    async fn alive(&self, claims: &Claims) -> Result<RunRow, Fault> {
        let mut tx = self.store.begin().await?;
        let run = self.rows.run(&mut tx, &claims.tenant, &claims.run).await?.ok_or_else(invalid)?;
        self.served(&run.tenant)?;
        if claims.sub != format!("agent/{}", run.agent) || claims.scope != run.scopes.join(" ") {
            return Err(invalid());
        }
        match run.state {
            RunState::Active if tx.now() < run.expires_at => Ok(run),
            RunState::Active | RunState::Expired => {
                Err(Fault::new(Reason::RunExpired, "the run's life is over; start another run"))
            }
            RunState::Revoked | RunState::Cancelled | RunState::Completed => {
                Err(Fault::new(Reason::RunRevoked, "the run has ended; nothing more can be proposed in it"))
            }
        }
    }

    /// Public run-token keys as a JWK set.
    #[must_use]
    pub fn jwks(&self) -> String {
        let keys: Vec<_> = self
            .trust
            .keys(Purpose::RunToken)
            .iter()
            .map(|k| {
                json!({"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": k.kid,
                    "x": URL_SAFE_NO_PAD.encode(&k.key)})
            })
            .collect();
        json!({"keys": keys}).to_string()
    }
}

fn is_valid(key: &PublicKey, now: UnixMillis) -> bool {
    let millis = |t: &prost_types::Timestamp| UnixMillis::from_proto(t);
    key.not_before.as_ref().is_none_or(|t| millis(t) <= now)
        && key.not_after.as_ref().is_none_or(|t| now < millis(t))
        && key.revoked_at.as_ref().is_none_or(|t| now < millis(t))
}

#[async_trait]
impl Tokens for App {
    async fn verify(&self, bearer: &str, _peer: Option<&Peer>) -> Result<RunClaims, Fault> {
        let now = self.store.clock().now()?;
        let claims = self.read(bearer, now)?;
        let run = self.alive(&claims).await?;
        Ok(RunClaims {
            run: run.run,
            tenant: run.tenant,
            agent: run.agent,
            scopes: run.scopes,
            expires_at_s: claims.exp,
            token: claims.jti,
        })
    }
}
