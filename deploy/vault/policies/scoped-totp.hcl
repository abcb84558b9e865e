# One key of the TOTP engine for scoped hand-over; one policy per credential, named
# exequatur-scoped-${TENANT}--${CREDENTIAL}.
path "totp/code/${TENANT}--${CREDENTIAL}" {
  capabilities = ["read"]
}
