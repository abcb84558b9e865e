# credential-vault: asks for secrets and never sees one. Every read goes wrapped, for 60 s at most: Vault
# itself refuses a read without a wrap time (no wrapping is less than the minimum).
path "secret/data/*" {
  capabilities     = ["read"]
  min_wrapping_ttl = "1s"
  max_wrapping_ttl = "60s"
}
path "database/creds/*" {
  capabilities     = ["read"]
  min_wrapping_ttl = "1s"
  max_wrapping_ttl = "60s"
}
path "totp/code/*" {
  capabilities     = ["read"]
  min_wrapping_ttl = "1s"
  max_wrapping_ttl = "60s"
}

# Scoped hand-over: a token role cannot bound the life of a batch token, so the list below does.
path "auth/token/create/exequatur-scoped" {
  capabilities        = ["update"]
  required_parameters = ["policies", "ttl"]
  allowed_parameters = {
    "policies" = []
    "ttl" = [
      "40s", "50s", "60s", "70s", "80s", "90s", "100s", "110s", "120s", "130s",
      "140s", "150s", "160s", "170s", "180s", "190s", "200s", "210s", "220s",
      "230s", "240s", "250s", "260s", "270s", "280s", "290s", "300s", "310s",
      "320s", "330s"
    ]
  }
}

# Leases and tokens that an action held, ended when it ends or by the sweeper after a crash.
path "sys/leases/revoke" {
  capabilities = ["update"]
}
path "sys/leases/lookup" {
  capabilities = ["update"]
}
path "auth/token/revoke-accessor" {
  capabilities = ["update"]
}
path "auth/token/lookup-accessor" {
  capabilities = ["update"]
}

# Its own login; the default policy is not attached.
path "auth/token/lookup-self" {
  capabilities = ["read"]
}
path "auth/token/renew-self" {
  capabilities = ["update"]
}
path "auth/token/revoke-self" {
  capabilities = ["update"]
}
