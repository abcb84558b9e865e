//! Generates messages for this crate and, one file per service and side, the
//! code that the crates under `crates/rpc` include. No system protoc is used.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost_types::FileDescriptorSet;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", root.display());

    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();

    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(&files)?;
    // The encoded form keeps the method options, which the typed form drops.
    fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
    let set = compiler.file_descriptor_set();

    let mut messages = prost_build::Config::new();
    messages.enable_type_names().include_file("messages.rs").out_dir(&out);
    messages.compile_fds(without_services(&set))?;

    let rpc = out.join("rpc");
    services(&set, &rpc)?;
    println!("cargo:rpc_dir={}", rpc.display());
    Ok(())
}

fn collect(dir: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, into)?;
        } else if path.extension().is_some_and(|e| e == "proto") {
            into.push(path);
        }
    }
    Ok(())
}

fn without_services(set: &FileDescriptorSet) -> FileDescriptorSet {
    let mut set = set.clone();
    for file in &mut set.file {
        file.service.clear();
    }
    set
}

fn services(set: &FileDescriptorSet, rpc: &Path) -> Result<(), Box<dyn Error>> {
    for file in &set.file {
        for (position, service) in file.service.iter().enumerate() {
            let mut only = set.clone();
            for other in &mut only.file {
                if other.name() == file.name() {
                    other.service = vec![service.clone()];
                    keep_comments_of(other, position);
                } else {
                    other.service.clear();
                }
            }
            for (side, server) in [("client", false), ("server", true)] {
                let dir = rpc.join(snake(service.name())).join(side);
                fs::create_dir_all(&dir)?;
                let mut builder = tonic_prost_build::configure()
                    .build_client(!server)
                    .build_server(server)
                    .out_dir(&dir)
                    .extern_path(".exequatur", "::exequatur_proto");
                if server {
                    // Requests are decoded strictly; see crates/codec.
                    builder = builder.codec_path("::exequatur_codec::StrictCodec");
                }
                builder.compile_fds(only.clone())?;
                let generated = dir.join(format!("{}.rs", file.package()));
                fs::rename(generated, rpc.join(format!("{}_{side}.rs", snake(service.name()))))?;
                fs::remove_dir_all(&dir)?;
            }
            fs::remove_dir_all(rpc.join(snake(service.name())))?;
        }
    }
    Ok(())
}

/// Comments are found by position: move those of the kept service to position 0.
fn keep_comments_of(file: &mut prost_types::FileDescriptorProto, position: usize) {
    const SERVICE: i32 = 6;
    let Some(info) = &mut file.source_code_info else { return };
    let position = i32::try_from(position).unwrap_or(i32::MAX);
    info.location.retain(|l| l.path.first() != Some(&SERVICE) || l.path.get(1) == Some(&position));
    for location in &mut info.location {
        if location.path.first() == Some(&SERVICE)
            && let Some(at) = location.path.get_mut(1)
        {
            *at = 0;
        }
    }
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.trim_end_matches("Service").chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
