//! Who a peer is: SPIFFE IDs, mutual TLS 1.3 with hot reload, verified channels. Knows no method and no role store.
