//! Values by byte strings; a walk meets every value whose key is the beginning of a text. Knows no rule.

#[derive(Debug)]
struct Node<T> {
    /// Ascending by byte.
    edges: Vec<(u8, usize)>,
    value: Option<T>,
}

/// A trie.
#[derive(Debug)]
pub(crate) struct Trie<T> {
    nodes: Vec<Node<T>>,
}

impl<T> Default for Trie<T> {
    fn default() -> Self {
        Self { nodes: vec![Node { edges: Vec::new(), value: None }] }
    }
}

impl<T> Trie<T> {
    /// Puts a value under a key, in place of what was there.
    pub(crate) fn insert(&mut self, key: impl Iterator<Item = u8>, value: T) {
        let mut at = 0;
        for byte in key {
            let fresh = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else { return };
            at = match node.edges.binary_search_by_key(&byte, |(b, _)| *b) {
                Ok(found) => node.edges.get(found).map_or(fresh, |(_, to)| *to),
                Err(place) => {
                    node.edges.insert(place, (byte, fresh));
                    self.nodes.push(Node { edges: Vec::new(), value: None });
                    fresh
                }
            };
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.value = Some(value);
        }
    }

    /// Meets the values on the way of a text, shortest key first.
    pub(crate) fn walk<'a>(&'a self, text: impl Iterator<Item = u8>, mut meet: impl FnMut(&'a T)) {
        let Some(mut node) = self.nodes.first() else { return };
        node.value.iter().for_each(&mut meet);
        for byte in text {
            let edge = node.edges.binary_search_by_key(&byte, |(b, _)| *b).ok();
            let Some(next) = edge.and_then(|e| node.edges.get(e)).and_then(|(_, to)| self.nodes.get(*to))
            else {
                return;
            };
            node = next;
            node.value.iter().for_each(&mut meet);
        }
    }
}
