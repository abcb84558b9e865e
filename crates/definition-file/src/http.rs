//! The `http` part of a tool file.

use exequatur_proto::definition::v1::{
    FormBody, HttpTemplate, JsonList, JsonMember, JsonNode, JsonObject, Source, http_template::Body,
    json_node::Node as Json, source::From,
};
use exequatur_yaml::{FileError, Kind, Node};

use crate::source;

pub(crate) fn read(node: &Node) -> Result<HttpTemplate, FileError> {
    let mut map = node.map()?;
    let method = map.need("method")?.text()?.to_owned();
    let (scheme, host, port) = origin(map.need("url")?)?;
    let path = map.take("path").map_or_else(|| Ok(Vec::new()), path)?;
    let query = map.take("query").map_or_else(|| Ok(Vec::new()), source::pairs)?;
    let headers = map.take("headers").map_or_else(|| Ok(Vec::new()), source::pairs)?;
    let body = match (map.take("json"), map.take("form")) {
        (None, None) => None,
        (Some(node), None) => Some(Body::Json(json(node)?.0)),
        (None, Some(node)) => Some(Body::Form(FormBody { pairs: source::pairs(node)? })),
        (Some(_), Some(node)) => return Err(node.error("a request has one of `json` and `form`")),
    };
    map.done()?;
    Ok(HttpTemplate { method, scheme, host, port, path, query, headers, body })
}

/// `https://host` or `http://host:port`: no path, query or user.
fn origin(node: &Node) -> Result<(String, String, u32), FileError> {
    let wrong =
        || node.error("must be `https://host` or `https://host:port`; path and query have their own keys");
    let (scheme, rest) = node.text()?.split_once("://").ok_or_else(wrong)?;
    let usual = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return Err(wrong()),
    };
    if rest.contains(['/', '?', '#', '@']) {
        return Err(wrong());
    }
    let (host, port) = host_port(rest, Some(usual)).ok_or_else(wrong)?;
    Ok((scheme.to_owned(), host, port))
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
pub(crate) fn host_port(text: &str, usual: Option<u32>) -> Option<(String, u32)> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        if !host.contains(':') {
            return None;
        }
        (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let port = match port {
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => port.parse().ok()?,
        Some(_) => return None,
        None => usual?,
    };
    Some((host.to_owned(), port))
}

/// `/v1/items/{id}`, or a list of segments.
fn path(node: &Node) -> Result<Vec<Source>, FileError> {
    if let Kind::List(items) = &node.kind {
        return items.iter().map(source::required).collect();
    }
    let text = node.text()?;
    let Some(rest) = text.strip_prefix('/') else { return Err(node.error("a path begins with `/`")) };
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    rest.split('/')
        .map(|segment| {
            let from = match segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) {
                Some(name) if !name.is_empty() && !name.contains(['{', '}']) => {
                    From::Argument(source::name_pointer(name))
                }
                _ if segment.contains(['{', '}']) => {
                    return Err(node.error("a segment is fixed text or one `{argument}`, never both"));
                }
                _ if segment.contains(['%', '?', '#']) => {
                    return Err(node.error(
                        "a path holds no `%`, `?` or `#`; write text as it is, or a list of segments",
                    ));
                }
                _ => From::Literal(segment.to_owned()),
            };
            Ok(Source { from: Some(from) })
        })
        .collect()
}

/// A template node, and whether it may be left out.
fn json(node: &Node) -> Result<(JsonNode, bool), FileError> {
    let (inner, optional) = match &node.kind {
        Kind::Map(_) if source::is_argument(node) => {
            let (pointer, optional) = source::argument(node)?;
            (Json::Argument(pointer), optional)
        }
        Kind::Map(entries) => {
            let mut members = Vec::with_capacity(entries.len());
            for (_, name, value) in entries {
                let (value, optional) = json(value)?;
                members.push(JsonMember { name: name.clone(), value: Some(value), optional });
            }
            (Json::Object(JsonObject { members }), false)
        }
        Kind::List(items) => {
            let items = items
                .iter()
                .map(|item| match json(item)? {
                    (_, true) => Err(item.error("an item of a list cannot be `$optional`")),
                    (inner, false) => Ok(inner),
                })
                .collect::<Result<_, _>>()?;
            (Json::List(JsonList { items }), false)
        }
        _ => (Json::Literal(node.to_json()), false),
    };
    Ok((JsonNode { node: Some(inner) }, optional))
}
