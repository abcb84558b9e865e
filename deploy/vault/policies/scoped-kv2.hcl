# One credential of KV v2 for scoped hand-over; one policy per credential, named
# exequatur-scoped-${TENANT}--${CREDENTIAL}.
path "secret/data/${TENANT}/${CREDENTIAL}" {
  capabilities = ["read"]
}
