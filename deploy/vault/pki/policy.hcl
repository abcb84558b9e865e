# One zone's own certificate: for whatever renews it, beside the zone and never inside it.
path "zones/issue/${ZONE}" {
  capabilities = ["update"]
}
