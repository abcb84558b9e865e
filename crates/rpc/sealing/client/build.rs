//! Points at the code that `crates/proto` generated for this service and side.
fn main() {
    let dir = std::env::var("DEP_EXEQUATUR_PROTO_RPC_DIR").unwrap_or_default();
    println!("cargo:rustc-env=RPC_DIR={dir}");
}
