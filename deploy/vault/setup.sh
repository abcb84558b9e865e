#!/usr/bin/env bash
# Sets up Vault or OpenBao for Exequatur. Needs the `bao` or `vault` program (BAO=...), VAULT_ADDR,
# VAULT_CACERT and an operator's VAULT_TOKEN.
#   setup.sh                            mounts, policies, roles, as in `steps`
#   setup.sh scoped ENGINE TENANT CREDENTIAL   lets scoped tokens read one credential of kv2, database or totp
# CREDENTIAL_VAULT_CIDR and CONNECTOR_CIDR are the addresses that the two zones call from.
set -euo pipefail
cd "$(dirname "$0")"
bao=${BAO:-$(command -v bao || command -v vault)}
export BAO_ADDR=${VAULT_ADDR:?} BAO_CACERT=${VAULT_CACERT:-} BAO_TOKEN=${VAULT_TOKEN:?}

filled() {
  local text name
  text=$(cat "$1")
  for name in CREDENTIAL_VAULT_CIDR CONNECTOR_CIDR TENANT CREDENTIAL; do
    if [[ $text == *"\${$name}"* ]]; then text=${text//"\${$name}"/${!name:?set $name}}; fi
  done
  printf '%s\n' "$text"
}

fits='^[a-z0-9][a-z0-9._-]{0,62}$'
case ${1:-all} in
  all)
    while read -r verb target file; do
      case $verb in
        policy) filled "$file" | "$bao" policy write "$target" - ;;
        write)
          # A mount that is there already stays as it is.
          if [[ $target == sys/mounts/* || $target == sys/auth/* ]] && "$bao" read "$target" >/dev/null 2>&1; then
            echo "$target is there"
          else
            filled "$file" | "$bao" write "$target" -
          fi ;;
        '' | '#'*) ;;
        *) echo "unknown step $verb" >&2; exit 2 ;;
      esac
    done <steps ;;
  scoped)
    ENGINE=${2:?engine} TENANT=${3:?tenant} CREDENTIAL=${4:?credential}
    if ! [[ $ENGINE =~ ^(kv2|database|totp)$ && $TENANT =~ $fits && $CREDENTIAL =~ $fits && $CREDENTIAL =~ [a-z0-9_]$ ]] ||
      [[ $TENANT == *--* || $TENANT == *- ]]; then
      echo "engine, tenant or credential has no allowed form, see README.md" >&2; exit 2
    fi
    filled "policies/scoped-$ENGINE.hcl" | "$bao" policy write "exequatur-scoped-$TENANT--$CREDENTIAL" - ;;
  *) sed -n '2,7p' "$0" >&2; exit 2 ;;
esac
