# connector: reads nothing by itself. Unwrapping needs no policy (the wrapping token is the right to do it)
# and scoped reads use the token that came with the lease.
path "auth/token/lookup-self" {
  capabilities = ["read"]
}
path "auth/token/renew-self" {
  capabilities = ["update"]
}
path "auth/token/revoke-self" {
  capabilities = ["update"]
}
