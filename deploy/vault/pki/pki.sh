#!/usr/bin/env bash
# Zone certificates from the PKI engine of Vault or OpenBao. Needs the `bao` or `vault` program (BAO=...),
# VAULT_ADDR, VAULT_CACERT and a VAULT_TOKEN.
#   pki.sh setup REALM CA_BUNDLE   mounts `zones`, imports the realm's CA (certificate and key in one PEM
#                                  file), makes a role and a policy `zone-certificate-ZONE` for each zone
#   pki.sh issue REALM ZONE DIR [TTL]   a new certificate for one zone, put in place in DIR (tls.crt, tls.key);
#                                  the zone takes it within seconds, without a restart
set -euo pipefail
bao=${BAO:-$(command -v bao || command -v vault)}
export BAO_ADDR=${VAULT_ADDR:?} BAO_CACERT=${VAULT_CACERT:-} BAO_TOKEN=${VAULT_TOKEN:?}
here=$(cd "$(dirname "$0")" && pwd)

usage() { sed -n '2,8p' "$0" >&2; exit 2; }
filled() { sed -e "s/\${REALM}/$realm/g" -e "s/\${ZONE}/$zone/g" "$1"; }

realm=${2:-}
[[ $realm =~ ^[a-z0-9][a-z0-9.-]{0,253}$ ]] || usage
case ${1:-} in
  setup)
    bundle=${3:?a PEM file with the certificate and the key of the CA}
    "$bao" read sys/mounts/zones >/dev/null 2>&1 || "$bao" secrets enable -path=zones -max-lease-ttl=8760h pki
    "$bao" write zones/config/ca pem_bundle=@"$bundle" >/dev/null
    for zone in governance approval credential-vault connector; do
      filled "$here/role.json" | "$bao" write "zones/roles/$zone" -
      filled "$here/policy.hcl" | "$bao" policy write "zone-certificate-$zone" -
    done ;;
  issue)
    zone=${3:-} dir=${4:-} ttl=${5:-720h}
    [[ $zone =~ ^(governance|approval|credential-vault|connector)$ && -d $dir ]] || usage
    umask 077
    answer=$(mktemp -d "$dir/.issue-XXXXXX")
    trap 'rm -rf "$answer"' EXIT
    "$bao" write -format=json "zones/issue/$zone" uri_sans="spiffe://$realm/zone/$zone" \
      alt_names=localhost ip_sans=127.0.0.1,::1 ttl="$ttl" >"$answer/json"
    for part in certificate private_key; do
      python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["data"][sys.argv[2]])' \
        "$answer/json" "$part" >"$answer/$part"
    done
    # The zone takes a pair only whole: between the two moves it stays with the old one.
    mv -f "$answer/private_key" "$dir/tls.key"
    mv -f "$answer/certificate" "$dir/tls.crt" ;;
  *) usage ;;
esac
