# One role of the database engine for scoped hand-over; one policy per credential, named
# exequatur-scoped-${TENANT}--${CREDENTIAL}.
path "database/creds/${TENANT}--${CREDENTIAL}" {
  capabilities = ["read"]
}
